//! A SyncSet with its expressions compiled.
//!
//! In: the resource as the API server gave it. Out: [`CompiledSet`], or every error in it.
//!
//! An expression sees only the parameters. The steps of all expressions of a set share one budget.
//! The cluster of a Sync is a literal, or the Secret that a generator of clusters found: no
//! expression computes its name.

use moorline_api::{ClusterSecretRef, SyncSet, SyncSpec};
use moorline_cel::{
    CelValue, EvaluationError, Expression, ExpressionProblem, Kind, Language, StepBudget, Variable, evaluate,
    read,
};
use serde_json::{Map, Value, json};

use crate::child_name::child_name;
use crate::parameters::Parameters;
use crate::pull_request_rules::check_template;
use crate::rollout::RolloutPolicy;
use crate::settable_fields::is_settable;
use crate::unread_field::find_unread_field;

/// Maximum number of steps of all expressions of a set.
const MAX_STEPS: usize = 2_000_000;
/// The variable of the expressions.
const VARIABLES: [Variable; 1] = [Variable { name: "params", kind: Kind::Any }];

/// The field with the Secret of a cluster, and the only value that it may be set to.
const CLUSTER: (&str, &str) = ("/spec/cluster/secretRef/name", "params.cluster.name");
/// The field with the key in that Secret.
const CLUSTER_KEY: &str = "/spec/cluster/secretRef/key";

/// A SyncSet whose expressions are compiled.
#[derive(Debug, Clone)]
pub struct CompiledSet {
    name: String,
    suffix: Expression,
    fields: Vec<(String, Expression)>,
    /// True if each Sync is of the cluster that a generator found.
    takes_cluster: bool,
    /// Labels, annotations and spec as they are written.
    template: Value,
    pub(crate) rollout: Option<RolloutPolicy>,
}

/// A Sync that a set of parameters gives.
pub(crate) struct FilledTemplate {
    pub(crate) name: String,
    /// Labels, annotations and spec.
    pub(crate) body: Value,
}

impl CompiledSet {
    /// Compiles a SyncSet; `raw` is the resource as the API server gave it, without defaults in the
    /// template.
    ///
    /// # Errors
    ///
    /// Returns every error of the spec, with its field.
    pub fn compile(set: &SyncSet, raw: &Value) -> Result<Self, Vec<String>> {
        let mut errors = Vec::new();
        let suffix = compile("spec.name", &set.spec.name).map_err(|error| errors.push(error)).ok();
        let mut fields = Vec::new();
        for (at, field) in set.spec.set.iter().enumerate() {
            if field.field == CLUSTER.0 && field.value != CLUSTER.1 {
                errors.push(format!("spec.set[{at}].value: {} may be set to {} only", CLUSTER.0, CLUSTER.1));
            } else if field.field != CLUSTER.0 && !is_settable(&field.field) {
                errors.push(format!(
                    "spec.set[{at}].field: {} cannot be set by an expression: write it into the template",
                    field.field
                ));
            } else if set.spec.set.iter().take(at).any(|earlier| earlier.field == field.field) {
                errors.push(format!("spec.set[{at}].field: {} is set twice", field.field));
            }
            match compile(&format!("spec.set[{at}].value"), &field.value) {
                Ok(_) if field.field == CLUSTER.0 => {}
                Ok(value) => fields.push((field.field.clone(), value)),
                Err(error) => errors.push(error),
            }
        }
        let template = raw.pointer("/spec/template").cloned().unwrap_or_default();
        errors.extend(own_keys(&template));
        errors.extend(check_template(set));
        let unread = raw.get("spec").and_then(|given| find_unread_field(given, &set.spec));
        errors.extend(unread.map(|field| {
            format!(
                "{field}: this Moorline does not know the field: remove it, or run the Moorline that knows it"
            )
        }));
        let takes_cluster = set.spec.set.iter().any(|field| field.field == CLUSTER.0);
        let rollout = set.spec.rollout.as_ref().map(RolloutPolicy::of).transpose();
        let rollout = rollout.map_err(|found| errors.extend(found)).ok().flatten();
        let name = set.metadata.name.clone().unwrap_or_default();
        match suffix {
            Some(suffix) if errors.is_empty() => {
                Ok(Self { name, suffix, fields, takes_cluster, template, rollout })
            }
            _ => Err(errors),
        }
    }

    /// Returns the budget of one pass over all sets of parameters.
    pub(crate) fn budget() -> StepBudget {
        StepBudget::new(MAX_STEPS)
    }

    /// Fills the template with a set of parameters.
    pub(crate) fn fill(
        &self,
        parameters: &Parameters,
        steps: &mut StepBudget,
    ) -> Result<FilledTemplate, String> {
        let cluster = parameters.cluster.as_ref();
        let parameters = Value::Object(parameters.values.clone());
        let text = match value_of(&self.suffix, &parameters, steps) {
            Ok(Value::String(text)) => text,
            Ok(other) => return Err(format!("spec.name: {other} is no text; its parameters: {parameters}")),
            Err(problem) => return Err(format!("spec.name: {problem}; its parameters: {parameters}")),
        };
        let name = child_name(&self.name, &text)
            .ok_or_else(|| format!("spec.name: {text:?} makes no name of a Sync"))?;
        let mut body = self.template.clone();
        if self.takes_cluster {
            put_cluster(&mut body, cluster).map_err(|problem| format!("{name}: {}: {problem}", CLUSTER.0))?;
        }
        for (field, expression) in &self.fields {
            let value = value_of(expression, &parameters, steps)
                .map_err(|problem| format!("{name}: the value of {field}: {problem}"))?;
            put(&mut body, field, value).map_err(|problem| format!("{name}: {field}: {problem}"))?;
        }
        let spec = body.get("spec").cloned().unwrap_or_default();
        if let Err(error) = serde_json::from_value::<SyncSpec>(spec) {
            return Err(format!("{name}: its spec does not fit: {error}"));
        }
        Ok(FilledTemplate { name, body })
    }
}

/// Sets the cluster that a generator found. Without a key, that of the template stays.
fn put_cluster(body: &mut Value, cluster: Option<&ClusterSecretRef>) -> Result<(), &'static str> {
    let cluster = cluster.ok_or("no clusters generator gives the cluster of this Sync")?;
    put(body, CLUSTER.0, json!(cluster.name))?;
    cluster.key.as_ref().map_or(Ok(()), |key| put(body, CLUSTER_KEY, json!(key)))
}

/// Returns the errors of labels and annotations that only people may write.
fn own_keys(template: &Value) -> Vec<String> {
    let keys = |place: &str| -> Vec<String> {
        let map = template.pointer(&format!("/metadata/{place}")).and_then(Value::as_object);
        map.into_iter().flat_map(Map::keys).map(|key| format!("{place}: {key}")).collect()
    };
    let all = ["labels", "annotations"].into_iter().flat_map(keys);
    let ours = all.filter(|key| key.contains(": moorline.dev/"));
    ours.map(|key| format!("spec.template.metadata.{key} is written by people and by Moorline only"))
        .collect()
}

fn compile(field: &str, text: &str) -> Result<Expression, String> {
    read(text, Language::Kubernetes, &VARIABLES).map(|(expression, _)| expression).map_err(|found| {
        let problem = found.into_iter().next().map(|error| match error.problem {
            ExpressionProblem::Syntax(words) => words,
            problem => problem.to_string(),
        });
        format!("{field}: {}", problem.unwrap_or_default())
    })
}

fn value_of(expression: &Expression, parameters: &Value, steps: &mut StepBudget) -> Result<Value, String> {
    let given = [CelValue::from_json(parameters, &VARIABLES[0].kind)];
    let found = evaluate(expression, &given, false, steps).map_err(|error| explain(&error))?;
    to_json(found)
}

fn explain(error: &EvaluationError) -> String {
    match error {
        EvaluationError::MissingField(field) => format!("there is no field {field}"),
        EvaluationError::WrongType(what) => format!("{what} does not support the types of its operands"),
        EvaluationError::Number(_) => "a number or an index is out of range".to_owned(),
        EvaluationError::Unsupported => "it uses a function that is not supported".to_owned(),
        EvaluationError::OutOfSteps => "the expressions of the set take too many steps".to_owned(),
    }
}

/// Returns a value as JSON.
fn to_json(value: CelValue<'_>) -> Result<Value, String> {
    match value {
        CelValue::Null => Ok(Value::Null),
        CelValue::Bool(value) => Ok(json!(value)),
        CelValue::Int(value) => Ok(json!(value)),
        CelValue::Uint(value) => Ok(json!(value)),
        CelValue::Double(value) if value.is_finite() => Ok(json!(value)),
        CelValue::Text(text) => Ok(Value::String(text.into_owned())),
        CelValue::JsonList(items, _) => Ok(Value::Array(items.to_vec())),
        CelValue::JsonMap(map, _) => Ok(Value::Object(map.clone())),
        CelValue::List(items) => {
            items.iter().cloned().map(to_json).collect::<Result<_, _>>().map(Value::Array)
        }
        CelValue::Entries(entries) => {
            let entry = |(key, value): &(CelValue<'_>, CelValue<'_>)| match key {
                CelValue::Text(key) => Ok((key.clone().into_owned(), to_json(value.clone())?)),
                _ => Err("write texts as the keys of a mapping".to_owned()),
            };
            entries.iter().map(entry).collect::<Result<_, _>>().map(Value::Object)
        }
        _ => Err("write an expression whose value is a text, a number, a boolean or a list".to_owned()),
    }
}

/// Sets the value at a pointer; null removes it. Missing mappings on the way are created.
fn put(body: &mut Value, pointer: &str, value: Value) -> Result<(), &'static str> {
    let plain = |part: &str| part.replace("~1", "/").replace("~0", "~");
    let mut parts: Vec<String> = pointer.split('/').skip(1).map(plain).collect();
    let last = parts.pop().ok_or("names no field")?;
    let is_text = pointer.starts_with("/metadata/") || pointer.starts_with("/spec/render/substitute/vars/");
    if is_text && !value.is_string() && !value.is_null() {
        return Err("a text is needed");
    }
    let mut place = body;
    for part in parts {
        let Value::Object(map) = place else { return Err("lies in a value that is no mapping") };
        place = map.entry(part).or_insert_with(|| json!({}));
    }
    let Value::Object(map) = place else { return Err("lies in a value that is no mapping") };
    match value {
        Value::Null => drop(map.remove(&last)),
        value => drop(map.insert(last, value)),
    }
    Ok(())
}
