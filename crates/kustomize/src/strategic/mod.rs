//! Strategic merge patches, as kustomize applies them.
//!
//! In: an object, a patch in the form of a part of it, and schemas. Out: the patched object, or its
//! deletion. This is not the merge of the API server: the only directive is `$patch` with `delete`,
//! `replace` and `merge`, and every keyed list of the object is processed, even if the patch does
//! not name it.
//!
//! Odd behavior of kustomize in corner cases is reproduced, because the results must be equal: an
//! item without the key of its list removes others, and `$patch: replace` on the whole object has
//! no effect.

mod directive;
mod keyed_list;
mod nodes;

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::Value;

use self::directive::{Directive, take_map_directive};
use self::nodes::{MergeNode, NodeId, Nodes};
use super::schema::{MergeSchema, Schemas};
use moorline_yaml::{self as yaml, Dialect};

/// Most steps of a merge, one for each visited node and each compared item: about a second.
/// Ordinary merges take thousands.
const MAX_STEPS: usize = 100_000_000;
/// Most maps, lists and scalars in the result.
const MAX_NODES: usize = 4_000_000;

/// Result of a merge.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub(crate) enum Merged {
    /// The merged object.
    Object(Value),
    /// The patch deleted or emptied the object.
    Deleted,
}

/// Reason why a patch cannot be merged.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StrategicMergeError {
    /// Values of different types, such as a map and a list.
    #[error("{}: the object has {target} there and the patch has {patch}", shown(.path))]
    Kinds {
        /// The field.
        path: String,
        /// The value in the object.
        target: &'static str,
        /// The value in the patch.
        patch: &'static str,
    },
    /// An item without keys in a list that merges by keys, or the reverse.
    #[error("{}: the list merges by {by}, and one of its items is {item}", shown(.path))]
    Item {
        /// The list.
        path: String,
        /// Keys of the list.
        by: String,
        /// Type of the item.
        item: &'static str,
    },
    /// An unknown value of `$patch`.
    #[error("{}: $patch must be delete, replace or merge", shown(.path))]
    Directive {
        /// Path of the directive.
        path: String,
    },
    /// A number replaces a text that may be quoted; it would become a text if the text is.
    #[error("{}: a number or boolean replaces a string; if the string is quoted, the result would be a string, and this cannot be determined", shown(.path))]
    Quotes {
        /// The field.
        path: String,
    },
    /// A field with an empty name.
    #[error("{}: it has a field with an empty name, which cannot be merged", shown(.path))]
    EmptyName {
        /// The map.
        path: String,
    },
    /// The merge takes too long, or the result is too large.
    #[error("{}: merging takes more than {MAX_STEPS} steps or gives more than {MAX_NODES} values", shown(.path))]
    TooMuch {
        /// Path at which it stopped.
        path: String,
    },
}

/// True if a text is quoted; none if unknown.
type IsQuoted<'a> = dyn Fn(&str) -> Option<bool> + 'a;

/// Spelling of the object, as far as its values do not show it.
#[derive(Clone, Copy)]
pub(crate) struct TargetStyle<'a> {
    /// True if its nulls are kept: explicit ones are, implicit ones are not.
    pub(crate) keeps_nulls: bool,
    /// True if a text that needs no quotes has some; none if unknown. Kustomize keeps the quotes
    /// when it replaces the value, so a number becomes a text: `cpu: "500m"` and `cpu: 1` give
    /// `cpu: "1"`. None if the values are never written out.
    pub(crate) is_quoted: Option<&'a IsQuoted<'a>>,
    /// Collects the texts that were made of numbers and truth values: kustomize keeps their type.
    pub(crate) quoted_scalars: Option<&'a RefCell<BTreeSet<String>>>,
}

/// Merges a patch into an object.
pub(crate) fn merge(
    target: Value,
    patch: &Value,
    schemas: &Schemas,
    writing: TargetStyle<'_>,
) -> Result<Merged, StrategicMergeError> {
    within(MAX_STEPS, target, patch, schemas, writing)
}

fn within(
    limit: usize,
    target: Value,
    patch: &Value,
    schemas: &Schemas,
    writing: TargetStyle<'_>,
) -> Result<Merged, StrategicMergeError> {
    let mut nodes = Nodes::default();
    let (target, patch) = (nodes.insert_value(target), nodes.insert_value(patch.clone()));
    let mut merge = MergeState {
        nodes,
        schemas,
        writing,
        path: Vec::new(),
        remaining_steps: limit,
        unknown_quotes: None,
    };
    if merge.walk(Some(target), Some(patch), None)?.is_none() || merge.nodes.is_empty(target) {
        return Ok(Merged::Deleted);
    }
    if let Some(path) = merge.unknown_quotes {
        return Err(StrategicMergeError::Quotes { path });
    }
    // Reads the original object and not the result of the walk: so `replace` on the whole object
    // has no effect.
    let mut left = MAX_NODES;
    let merged = merge.nodes.value(target, &mut left);
    merged.map(Merged::Object).ok_or(StrategicMergeError::TooMuch { path: String::new() })
}

/// State of a merge.
struct MergeState<'a> {
    nodes: Nodes,
    schemas: &'a Schemas,
    writing: TargetStyle<'a>,
    path: Vec<String>,
    /// First field whose quotes are unknown.
    unknown_quotes: Option<String>,
    /// Remaining steps.
    remaining_steps: usize,
}

/// Result for one path.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    Is(NodeId),
    /// An explicit null of the object itself. Nulls of patches delete.
    OwnNull,
}

impl<'a> MergeState<'a> {
    /// Merges the values at one path; none if it is removed.
    fn walk(
        &mut self,
        target: Option<NodeId>,
        patch: Option<NodeId>,
        schema: Option<MergeSchema<'a>>,
    ) -> Result<Option<Outcome>, StrategicMergeError> {
        self.step(1)?;
        // An embedded object is recognized wherever the path has no schema.
        let schema = schema.or_else(|| self.kind(target?)).or_else(|| self.kind(patch?));
        let present = |id: &NodeId| !self.nodes.is_null(*id);
        let (old, new) = (target.filter(present), patch.filter(present));
        if let (Some(old), Some(new)) = (old, new)
            && self.type_name(old) != self.type_name(new)
        {
            let (target, patch) = (self.type_name(old), self.type_name(new));
            return Err(StrategicMergeError::Kinds { path: self.place(), target, patch });
        }
        match old.or(new).map(|id| self.nodes.get(id)) {
            None | Some(MergeNode::Null | MergeNode::Map(_)) => self.map(target, patch, schema),
            Some(MergeNode::List(_)) => match schema.filter(MergeSchema::is_keyed_list) {
                Some(schema) => Ok(self.keyed_list(target, patch, schema)?.map(Outcome::Is)),
                None => Ok(self.replaced_whole(target, patch)),
            },
            Some(MergeNode::Scalar(_)) => Ok(self.replaced_whole(target, patch)),
        }
    }

    /// Returns a value that is replaced as a whole: the patch's, if there is one.
    fn replaced_whole(&self, target: Option<NodeId>, patch: Option<NodeId>) -> Option<Outcome> {
        patch.or(target).filter(|id| !self.nodes.is_null(*id)).map(Outcome::Is)
    }

    fn map(
        &mut self,
        target: Option<NodeId>,
        patch: Option<NodeId>,
        schema: Option<MergeSchema<'a>>,
    ) -> Result<Option<Outcome>, StrategicMergeError> {
        let target = match target {
            Some(target) if !self.nodes.is_null(target) => {
                if patch.is_some_and(|patch| self.nodes.is_null(patch)) {
                    return Ok(None);
                }
                match take_map_directive(self, patch)? {
                    Directive::Delete => return Ok(None),
                    Directive::Replace => patch.unwrap_or(target),
                    Directive::Merge => target,
                }
            }
            // An unknown directive stays a field if there is nothing to merge with.
            target => match (target, patch, take_map_directive(self, patch)) {
                (_, _, Ok(Directive::Delete)) | (None, None, _) => return Ok(None),
                (Some(_), None, _) => return Ok(self.writing.keeps_nulls.then_some(Outcome::OwnNull)),
                (_, Some(patch), _) if self.nodes.is_null(patch) => return Ok(None),
                (_, Some(patch), _) => patch,
            },
        };
        for name in self.names(target, patch) {
            if name.is_empty() {
                return Err(StrategicMergeError::EmptyName { path: self.place() });
            }
            let old = self.nodes.field(target, &name);
            let new = patch.and_then(|patch| self.nodes.field(patch, &name));
            let schema = schema.and_then(|schema| schema.field(&name));
            self.path.push(name.clone());
            let outcome = self.walk(old, new, schema)?;
            self.path.pop();
            self.set(target, name, outcome);
        }
        Ok(Some(Outcome::Is(target)))
    }

    /// Returns the names of the fields of both maps.
    fn names(&self, target: NodeId, patch: Option<NodeId>) -> Vec<String> {
        let names = |id: NodeId| match self.nodes.get(id) {
            MergeNode::Map(fields) => fields.keys().cloned().collect(),
            MergeNode::Null | MergeNode::Scalar(_) | MergeNode::List(_) => Vec::new(),
        };
        let mut all = names(target);
        if let Some(patch) = patch.filter(|patch| *patch != target) {
            all.extend(names(patch));
            all.sort();
            all.dedup();
        }
        all
    }

    fn set(&mut self, map: NodeId, name: String, outcome: Option<Outcome>) {
        let value = match outcome {
            Some(Outcome::Is(value)) => value,
            Some(Outcome::OwnNull) => self.nodes.add(MergeNode::Null),
            None => {
                if let Some(fields) = self.nodes.fields_mut(map) {
                    fields.remove(&name);
                }
                return;
            }
        };
        match self.nodes.field(map, &name) {
            Some(field) => self.replace(field, value, name),
            None => {
                if let Some(fields) = self.nodes.fields_mut(map) {
                    fields.insert(name, value);
                }
            }
        }
    }

    /// Sets the value of a field. Existing quotes stay, and turn a number into a text.
    fn replace(&mut self, field: NodeId, value: NodeId, name: String) {
        if field == value {
            return;
        }
        if let (MergeNode::Scalar(Value::String(was)), MergeNode::Scalar(Value::Bool(_) | Value::Number(_))) =
            (self.nodes.get(field), self.nodes.get(value))
            && let Some(ask) = self.writing.is_quoted
        {
            let is_quoted = if needs_quotes(was) { Some(true) } else { ask(was) };
            match is_quoted {
                Some(true) => {
                    let text = self.nodes.text(value).into_owned();
                    if let Some(quoted) = self.writing.quoted_scalars {
                        quoted.borrow_mut().insert(text.clone());
                    }
                    // Also in the patch, because another item of the list may use the node again.
                    self.nodes.set(value, MergeNode::Scalar(text.into()));
                }
                Some(false) => {}
                None => {
                    self.path.push(name);
                    self.unknown_quotes.get_or_insert(self.place());
                    self.path.pop();
                }
            }
        }
        self.nodes.copy(value, field);
    }

    /// Returns the schema of a map that contains apiVersion and kind.
    fn kind(&self, id: NodeId) -> Option<MergeSchema<'a>> {
        let word = |name| {
            let field = self.nodes.field(id, name).filter(|field| !self.nodes.is_empty(*field))?;
            Some(self.nodes.text(field)).filter(|text| !text.is_empty())
        };
        self.schemas.schema_of(&word("apiVersion")?, &word("kind")?)
    }

    fn type_name(&self, id: NodeId) -> &'static str {
        match self.nodes.get(id) {
            MergeNode::Null => "null",
            MergeNode::Scalar(_) => "a single value",
            MergeNode::Map(_) => "a map",
            MergeNode::List(_) => "a list",
        }
    }

    fn place(&self) -> String {
        self.path.join(".").replace(".[", "[")
    }

    /// Returns the path of the list while its items are processed.
    fn list_place(&self) -> String {
        let items = self.path.iter().rev().take_while(|step| step.starts_with('[')).count();
        self.path[..self.path.len() - items].join(".").replace(".[", "[")
    }

    fn step(&mut self, steps: usize) -> Result<(), StrategicMergeError> {
        self.remaining_steps = self
            .remaining_steps
            .checked_sub(steps)
            .ok_or_else(|| StrategicMergeError::TooMuch { path: self.place() })?;
        Ok(())
    }
}

/// True if a text must have been quoted, because unquoted it would have another type.
fn needs_quotes(text: &str) -> bool {
    let read = yaml::read("", text.as_bytes(), Dialect::Kustomize);
    !read.is_ok_and(|read| matches!(&read[..], [only] if only.value == text))
}

fn shown(path: &str) -> &str {
    match path {
        "" => "the whole object",
        path => path,
    }
}

#[cfg(test)]
mod tests;
