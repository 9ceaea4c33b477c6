//! All Syncs of a set.
//!
//! In: a compiled set, and its sets of parameters.
//! Out: [`SetChildren`], ordered by name, or every error: then nothing of the set changes. The
//! order of the parameters has no effect.

use std::collections::BTreeMap;

use moorline_api::{INSTANCE_LABEL, SYNC_SET_ANNOTATION, SYNC_SET_HASH_ANNOTATION};
use serde_json::{Value, json};

use crate::existing::SetOwner;
use crate::generate::ParameterSets;
use crate::hash;
use crate::rollout::RolloutPolicy;
use crate::template::CompiledSet;

/// Number of bytes of the hash of a Sync.
const HASH_BYTES: usize = 16;
/// Maximum number of errors that are reported.
const MAX_ERRORS: usize = 5;

/// A Sync of a set.
#[derive(Debug, Clone, PartialEq)]
pub struct SetChild {
    /// Its name.
    pub name: String,
    /// Hash of everything that the set writes.
    pub hash: String,
    /// The manifest that is applied.
    pub manifest: Value,
}

/// All Syncs of a set, by name.
#[derive(Debug, Clone, PartialEq)]
pub struct SetChildren {
    by_name: BTreeMap<String, SetChild>,
    has_empty_generator: bool,
    rollout: Option<RolloutPolicy>,
}

impl SetChildren {
    /// Builds the Syncs. `check` refuses a spec that the daemon would refuse.
    ///
    /// # Errors
    ///
    /// Returns the first errors: of an expression, a type, a spec, or two Syncs with one name.
    pub fn build(
        set: &CompiledSet,
        owner: &SetOwner,
        parameters: &ParameterSets,
        check: impl Fn(&str, &Value) -> Result<(), String>,
    ) -> Result<Self, Vec<String>> {
        let (mut found, mut errors, mut steps) = (BTreeMap::new(), Vec::new(), CompiledSet::budget());
        for one in parameters.sets() {
            let filled = match set.fill(one, &mut steps) {
                Ok(filled) => filled,
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            };
            let child = SetChild::new(owner, filled.name, &filled.body);
            if let Err(error) = check(&child.name, &child.manifest) {
                errors.push(format!("{}: {error}", child.name));
            }
            let name = child.name.clone();
            if found.insert(name.clone(), child).is_some() {
                errors.push(format!(
                    "two sets of parameters give the name {name}: spec.name must give each its own name"
                ));
            }
        }
        // The same errors in the same order, for each order of the parameters.
        errors.sort();
        errors.dedup();
        errors.truncate(MAX_ERRORS);
        match errors.is_empty() {
            true => Ok(Self {
                by_name: found,
                has_empty_generator: parameters.has_empty_generator(),
                rollout: set.rollout.clone(),
            }),
            false => Err(errors),
        }
    }

    /// Returns the Syncs, by name.
    pub fn iter(&self) -> impl Iterator<Item = &SetChild> {
        self.by_name.values()
    }

    /// Returns the number of Syncs.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// True if the generators give no Sync.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// True if a generator gives nothing: then no removal is within the budget.
    pub(crate) fn has_empty_generator(&self) -> bool {
        self.has_empty_generator
    }

    /// Returns the stages, if the set has any.
    pub(crate) fn rollout(&self) -> Option<&RolloutPolicy> {
        self.rollout.as_ref()
    }

    /// Returns the Sync of this name.
    pub fn get(&self, name: &str) -> Option<&SetChild> {
        self.by_name.get(name)
    }
}

impl SetChild {
    fn new(owner: &SetOwner, name: String, body: &Value) -> Self {
        let mut manifest = json!({
            "apiVersion": "moorline.dev/v1alpha1",
            "kind": "Sync",
            "metadata": {
                "namespace": owner.namespace,
                "name": name,
                "labels": body.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({})),
                "annotations": body.pointer("/metadata/annotations").cloned().unwrap_or_else(|| json!({})),
            },
            "spec": body.get("spec").cloned().unwrap_or_default(),
        });
        if let Some(spec) = manifest["spec"].as_object_mut()
            && spec.get("suspend") == Some(&json!(false))
        {
            // A person may suspend a Sync of a set.
            spec.remove("suspend");
        }
        if let Some(instance) = &owner.instance {
            manifest["metadata"]["labels"][INSTANCE_LABEL] = json!(instance);
        }
        let hash = hash(&manifest.to_string(), HASH_BYTES);
        manifest["metadata"]["annotations"][SYNC_SET_ANNOTATION] = json!(owner.mark(&name));
        manifest["metadata"]["annotations"][SYNC_SET_HASH_ANNOTATION] = json!(hash);
        Self { name, hash, manifest }
    }
}
