//! Secrets with the kubeconfigs of clusters to sets of parameters.
//!
//! In: a generator, and the metadata of the Secrets that its labels select.
//! Out: a set for each Secret: its name, labels and annotations. Copies of whole objects, which
//! tools keep in annotations, have the content of a Secret, and are left out.

use moorline_api::{ClusterGenerator, ClusterSecretRef, ClusterSelector, LabelCondition, LabelOperator};
use serde_json::{Map, Value, json};

use crate::parameters::Parameters;

/// Maximum number of bytes of an annotation that becomes a parameter.
const MAX_ANNOTATION_BYTES: usize = 256;
/// Part of the keys of annotations in which tools keep copies of what they applied.
const COPIES: &str = "last-applied";
/// Maximum number of bytes of a label's key or value.
const MAX_LABEL_BYTES: usize = 317;

/// A Secret of the namespace, without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSecret {
    name: String,
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
}

impl ListedSecret {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads the metadata of an item of a list; none without a name.
    pub fn of(item: &Map<String, Value>) -> Option<Self> {
        let metadata = item.get("metadata")?;
        let texts = |place: &str, fits: &dyn Fn(&str, &str) -> bool| -> Map<String, Value> {
            let all = metadata.get(place).and_then(Value::as_object);
            let fitting = all
                .into_iter()
                .flatten()
                .filter(|(key, value)| value.as_str().is_some_and(|text| fits(key, text)));
            fitting.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        let name = metadata.get("name")?.as_str().filter(|name| !name.is_empty())?.to_owned();
        let labels = texts("labels", &|_, _| true);
        Some(Self { name, labels, annotations: texts("annotations", &is_plain) })
    }
}

/// True for an annotation with a short plain text.
fn is_plain(key: &str, text: &str) -> bool {
    !key.contains(COPIES)
        && text.len() <= MAX_ANNOTATION_BYTES
        && !text.starts_with(['{', '['])
        && !text.chars().any(char::is_control)
}

/// Returns the sets of parameters of a generator, in the order of the names.
pub(crate) fn parameters_of(generator: &ClusterGenerator, secrets: &[ListedSecret]) -> Vec<Parameters> {
    let set = |secret: &ListedSecret| {
        let ListedSecret { name, labels, annotations } = secret;
        let shown = json!({"name": name, "labels": labels, "annotations": annotations});
        Parameters {
            values: Map::from_iter([("cluster".to_owned(), shown)]),
            cluster: Some(ClusterSecretRef { name: name.clone(), key: generator.key.clone() }),
        }
    };
    let mut sorted: Vec<&ListedSecret> = secrets.iter().collect();
    sorted.sort_by(|one, other| one.name.cmp(&other.name));
    sorted.into_iter().map(set).collect()
}

/// Returns the selector of a generator as the API server reads it.
///
/// # Errors
///
/// Returns the first part that could mean another selector, or select every Secret.
pub fn label_selector(selector: &ClusterSelector) -> Result<String, String> {
    let mut parts = Vec::new();
    for (key, value) in &selector.match_labels {
        parts.push(format!("{}={}", checked(key)?, checked_value(value)?));
    }
    for condition in &selector.match_expressions {
        parts.push(condition_text(condition)?);
    }
    match parts.is_empty() {
        true => Err("clusters.selector: write matchLabels or matchExpressions".to_owned()),
        false => Ok(parts.join(",")),
    }
}

fn condition_text(condition: &LabelCondition) -> Result<String, String> {
    let (key, values) = (checked(&condition.key)?, &condition.values);
    let listed = || -> Result<String, String> {
        let values: Vec<&str> = values.iter().map(|value| checked_value(value)).collect::<Result<_, _>>()?;
        Ok(values.join(","))
    };
    match (condition.operator, values.is_empty()) {
        (LabelOperator::In, false) => Ok(format!("{key} in ({})", listed()?)),
        (LabelOperator::NotIn, false) => Ok(format!("{key} notin ({})", listed()?)),
        (LabelOperator::Exists, true) => Ok(key.to_owned()),
        (LabelOperator::DoesNotExist, true) => Ok(format!("!{key}")),
        (LabelOperator::In | LabelOperator::NotIn, true) => {
            Err(format!("clusters.selector: write values for the label {key}"))
        }
        (LabelOperator::Exists | LabelOperator::DoesNotExist, false) => {
            Err(format!("clusters.selector: Exists and DoesNotExist of the label {key} have no values"))
        }
    }
}

/// Returns a key that ends where it should.
fn checked(key: &str) -> Result<&str, String> {
    match key.is_empty() {
        true => Err("clusters.selector: a label has a key".to_owned()),
        false => checked_value(key),
    }
}

fn checked_value(text: &str) -> Result<&str, String> {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_./".contains(char);
    match text.chars().all(is_plain) && text.len() <= MAX_LABEL_BYTES {
        true => Ok(text),
        false => Err(format!("clusters.selector: {text:?} is no key or value of a label")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_means_what_is_written_or_is_refused() {
        for (selector, expect) in [
            (json!({"matchLabels": {"a/b": "c", "env": "prod"}}), Ok("a/b=c,env=prod")),
            (json!({"matchLabels": {"a": ""}}), Ok("a=")),
            (
                json!({"matchExpressions": [
                    {"key": "env", "operator": "In", "values": ["a", "b"]},
                    {"key": "env", "operator": "NotIn", "values": ["c"]},
                    {"key": "here", "operator": "Exists"}, {"key": "off", "operator": "DoesNotExist"},
                ]}),
                Ok("env in (a,b),env notin (c),here,!off"),
            ),
            (json!({}), Err("write matchLabels")),
            (json!({"matchLabels": {"": "a"}}), Err("has a key")),
            (json!({"matchLabels": {"a": "b,c"}}), Err("no key or value")),
            (json!({"matchLabels": {"a,b": "c"}}), Err("no key or value")),
            (json!({"matchLabels": {"!a": "c"}}), Err("no key or value")),
            (json!({"matchExpressions": [{"key": "a", "operator": "In"}]}), Err("write values")),
            (json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b)"]}]}), Err("no key")),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
                Err("have no values"),
            ),
        ] {
            let read: ClusterSelector = serde_json::from_value(selector.clone()).unwrap();
            match (label_selector(&read), expect) {
                (Ok(found), Ok(expect)) => assert_eq!(found, expect),
                (Err(found), Err(expect)) => assert!(found.contains(expect), "{selector}: {found}"),
                (found, _) => panic!("{selector}: {found:?}"),
            }
        }
    }

    #[test]
    fn no_annotation_with_a_copy_of_the_content_becomes_a_parameter() {
        let long = "x".repeat(257);
        let item = json!({"metadata": {
            "name": "east", "labels": {"env": "prod"},
            "annotations": {
                "region": "eu", "kubectl.kubernetes.io/last-applied-configuration": "planted",
                "kapp.k14s.io/original": "{\"data\": {}}", "long": long, "lines": "a\nb",
            },
        }, "data": {"kubeconfig": "planted"}});
        let secret = ListedSecret::of(item.as_object().unwrap()).unwrap();
        let generator: ClusterGenerator =
            serde_json::from_value(json!({"selector": {}, "key": "value"})).unwrap();
        let sets = parameters_of(&generator, &[secret]);
        let shown =
            json!({"cluster": {"name": "east", "labels": {"env": "prod"}, "annotations": {"region": "eu"}}});
        assert_eq!(Value::Object(sets[0].values.clone()), shown);
        assert_eq!(
            sets[0].cluster,
            Some(ClusterSecretRef { name: "east".into(), key: Some("value".into()) })
        );
        assert_eq!(ListedSecret::of(json!({"metadata": {}}).as_object().unwrap()), None);
    }
}
