//! Fields that a Sync leaves to other managers: `spec.ignoreFields`.
//!
//! In: a [`DesiredSet`] as rendered, and the rules.
//! Out: the set without these fields. The hash of an object with ignored fields is of the whole
//! rendered object and of the list of fields, so that a change of either is detected.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{DesiredObject, canonical};
use moorline_core::object::ObjectId;
use moorline_managed_fields::remove_values;

/// Ignores fields of some objects. A filter that is none matches every object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoreRule {
    /// The API group; empty for the core group.
    pub group: Option<Box<str>>,
    /// The kind.
    pub kind: Option<Box<str>>,
    /// The namespace.
    pub namespace: Option<Box<str>>,
    /// The name.
    pub name: Option<Box<str>>,
    /// JSON pointers.
    pub paths: Vec<Box<str>>,
}

/// The ignored fields of one object.
#[derive(Debug, PartialEq, Eq)]
pub struct IgnoredFields {
    /// Their positions, as JSON pointers into `rendered`.
    pub paths: Vec<Box<str>>,
    /// The canonical form including them.
    pub rendered: Arc<[u8]>,
}

impl IgnoredFields {
    /// Parses the rendered object.
    pub fn body(&self) -> Map<String, Value> {
        canonical::parse_canonical(&self.rendered)
    }
}

impl IgnoreRule {
    /// True if the rule applies to the object.
    pub fn matches(&self, id: &ObjectId) -> bool {
        let fits =
            |wanted: &Option<Box<str>>, found: &str| wanted.as_deref().is_none_or(|text| text == found);
        fits(&self.group, id.group())
            && fits(&self.kind, id.kind())
            && fits(&self.namespace, id.namespace().unwrap_or_default())
            && fits(&self.name, id.name())
    }
}

/// Adds positions to the ignored fields of an object.
pub(super) fn ignore_paths(object: &mut DesiredObject, mut paths: Vec<Box<str>>) {
    let rendered = match object.ignored.take() {
        Some(before) => {
            paths.extend(before.paths.iter().cloned());
            before.rendered.clone()
        }
        None => object.canonical.clone(),
    };
    paths.sort();
    paths.dedup();
    // The form is JSON that this program wrote, so parsing cannot fail.
    let mut body = Value::Object(canonical::parse_canonical(&rendered));
    let text = [&*rendered, b"\0ignored\0", paths.join("\0").as_bytes()].concat();
    object.hash.digest = canonical::digest(&text);
    remove_values(&mut body, &paths);
    object.canonical = serde_json::to_vec(&body).unwrap_or_default().into();
    object.ignored = Some(Arc::new(IgnoredFields { paths, rendered }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::{Scopes, build_desired_set};
    use moorline_core::tree::FileTree;
    use moorline_render::{RenderOptions, Rendered, render};
    use serde_json::json;

    fn web(replicas: u8, ignores: &[IgnoreRule]) -> DesiredObject {
        let web = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": replicas, "paused": true},
        });
        let tree = FileTree::from_texts([("a.json", web.to_string().as_str())]);
        let Rendered::Complete(complete) = render(&tree, &RenderOptions::default()) else {
            panic!("it is sound")
        };
        let set =
            build_desired_set(complete, "shop", &Scopes::builtin()).unwrap().without_ignored_fields(ignores);
        set.objects()[0].clone()
    }

    fn ignore(kind: &str, paths: &[&str]) -> IgnoreRule {
        let paths = paths.iter().map(|path| Box::from(*path)).collect();
        IgnoreRule { group: None, kind: Some(kind.into()), namespace: None, name: None, paths }
    }

    #[test]
    fn what_is_ignored_is_not_applied_and_is_in_the_hash() {
        let (plain, other) = (web(3, &[]), web(3, &[ignore("Job", &["/spec/replicas"])]));
        assert_eq!((plain.hash, &plain.canonical), (other.hash, &other.canonical));
        let ignoring = web(3, &[ignore("Deployment", &["/spec/replicas", "/spec/absent"])]);
        let body: Value = serde_json::from_slice(&ignoring.canonical).unwrap();
        assert_eq!(body["spec"], json!({"paused": true}));
        let hashes = [
            plain.hash,
            ignoring.hash,
            web(4, &[ignore("Deployment", &["/spec/replicas", "/spec/absent"])]).hash,
            web(3, &[ignore("Deployment", &["/spec/replicas"])]).hash,
        ];
        let different: std::collections::BTreeSet<String> = hashes.iter().map(ToString::to_string).collect();
        assert_eq!(different.len(), hashes.len());
    }
}
