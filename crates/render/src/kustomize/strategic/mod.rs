//! A strategic merge, as kustomize does it.
//!
//! In: an object, a patch in the form of a part of it, and what is known of kinds. Out: the object as patched, or that
//! it is gone. It is not the merge of the API server: of the directives there is `$patch` with `delete`, `replace` and
//! `merge` only, and every keyed list of the object is gone through, also those that the patch does not name.
//!
//! The tool's behaviour in corners is kept, however odd, because the objects must be equal: an item without the key of
//! its list pushes others out, and `$patch: replace` on the whole object changes nothing.

mod directive;
mod keyed;
mod nodes;

use serde_json::Value;

use self::directive::Directive;
use self::nodes::{Id, Node, Nodes};
use super::schema::{Schema, Schemas};
use moorline_yaml::{self as yaml, Dialect};

/// How many steps a merge may take, one for each node walked and each item compared: about a second. Ordinary merges
/// take thousands.
const MAX_STEPS: usize = 100_000_000;
/// How many maps, lists and scalars the result may have.
const MAX_NODES: usize = 4_000_000;

/// An object after a merge.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub(crate) enum Merged {
    /// It goes on.
    Object(Value),
    /// Nothing of it is left: the patch deletes it, or has emptied it.
    Deleted,
}

/// A reason why a patch cannot be merged.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// A map is to be merged with a list, or the like.
    #[error("{}: the object has {target} there and the patch has {patch}", shown(.path))]
    Kinds {
        /// The field.
        path: String,
        /// The value in the object.
        target: &'static str,
        /// The value in the patch.
        patch: &'static str,
    },
    /// An item of a list that merges by keys cannot have keys, or the other way round.
    #[error("{}: the list merges by {by}, and one of its items is {item}", shown(.path))]
    Item {
        /// The list.
        path: String,
        /// The keys that tell its items apart.
        by: String,
        /// The kind of the item.
        item: &'static str,
    },
    /// `$patch` with another word.
    #[error("{}: $patch must be delete, replace or merge", shown(.path))]
    Directive {
        /// Where it stands.
        path: String,
    },
    /// A text gives way to a number, and becomes a text if it had quotes.
    #[error("{}: a text becomes a number or true or false, and it is not clear whether the text has quotes, which would make a text of it", shown(.path))]
    Quotes {
        /// The field.
        path: String,
    },
    /// A field whose name is empty.
    #[error("{}: a field in it has an empty name, over which no merge comes", shown(.path))]
    EmptyName {
        /// The map.
        path: String,
    },
    /// The merge takes too long, or makes too much of too little.
    #[error("{}: merging takes more than {MAX_STEPS} steps or gives more than {MAX_NODES} values", shown(.path))]
    TooMuch {
        /// Where it was given up.
        path: String,
    },
}

/// True if a text has quotes; none if nobody knows.
type IsQuoted<'a> = dyn Fn(&str) -> Option<bool> + 'a;

/// The way an object is written, where its values do not tell.
#[derive(Clone, Copy)]
pub(crate) struct Writing<'a> {
    /// True if its nulls stay: they do where they are written, and not where a value is left out.
    pub(crate) keeps_nulls: bool,
    /// True if a text that needs no quotes has some; none if nobody knows. Quotes stay where another value comes in, and make a
    /// text of a number, as `cpu: "500m"` and `cpu: 1` become `cpu: "1"`. Not asked where the values are never written out.
    pub(crate) is_quoted: Option<&'a IsQuoted<'a>>,
}

/// Merges a patch into an object.
pub(crate) fn merge(
    target: Value,
    patch: &Value,
    schemas: &Schemas,
    writing: Writing<'_>,
) -> Result<Merged, Fault> {
    within(MAX_STEPS, target, patch, schemas, writing)
}

fn within(
    limit: usize,
    target: Value,
    patch: &Value,
    schemas: &Schemas,
    writing: Writing<'_>,
) -> Result<Merged, Fault> {
    let mut nodes = Nodes::default();
    let (target, patch) = (nodes.take(target), nodes.take(patch.clone()));
    let mut merge = Merge { nodes, schemas, writing, path: Vec::new(), left: limit, doubt: None };
    if merge.walk(Some(target), Some(patch), None)?.is_none() || merge.nodes.is_empty(target) {
        return Ok(Merged::Deleted);
    }
    if let Some(path) = merge.doubt {
        return Err(Fault::Quotes { path });
    }
    // The object that was there, not what the walk came to: so `replace` on all of it is without effect.
    let mut left = MAX_NODES;
    let merged = merge.nodes.value(target, &mut left);
    merged.map(Merged::Object).ok_or(Fault::TooMuch { path: String::new() })
}

/// A merge on its way through an object.
struct Merge<'a> {
    nodes: Nodes,
    schemas: &'a Schemas,
    writing: Writing<'a>,
    path: Vec<String>,
    /// The first field of which nobody knows whether it had quotes.
    doubt: Option<String>,
    /// How many steps it may still take.
    left: usize,
}

/// The outcome for a place.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    Is(Id),
    /// A null that the object has said itself. Nulls of patches delete.
    OwnNull,
}

impl<'a> Merge<'a> {
    /// The outcome for a place that the object, the patch or both have; none if it is to be removed.
    fn walk(
        &mut self,
        target: Option<Id>,
        patch: Option<Id>,
        schema: Option<Schema<'a>>,
    ) -> Result<Option<Outcome>, Fault> {
        self.step(1)?;
        // An object within an object is recognised wherever nothing else is known of the place.
        let schema = schema.or_else(|| self.kind(target?)).or_else(|| self.kind(patch?));
        let present = |id: &Id| !self.nodes.is_null(*id);
        let (old, new) = (target.filter(present), patch.filter(present));
        if let (Some(old), Some(new)) = (old, new)
            && self.called(old) != self.called(new)
        {
            let (target, patch) = (self.called(old), self.called(new));
            return Err(Fault::Kinds { path: self.place(), target, patch });
        }
        match old.or(new).map(|id| self.nodes.get(id)) {
            None | Some(Node::Null | Node::Map(_)) => self.map(target, patch, schema),
            Some(Node::List(_)) => match schema.filter(Schema::is_keyed_list) {
                Some(schema) => Ok(self.keyed_list(target, patch, schema)?.map(Outcome::Is)),
                None => Ok(self.taken(target, patch)),
            },
            Some(Node::Scalar(_)) => Ok(self.taken(target, patch)),
        }
    }

    /// A value that is replaced whole: the patch's, if it says anything.
    fn taken(&self, target: Option<Id>, patch: Option<Id>) -> Option<Outcome> {
        patch.or(target).filter(|id| !self.nodes.is_null(*id)).map(Outcome::Is)
    }

    fn map(
        &mut self,
        target: Option<Id>,
        patch: Option<Id>,
        schema: Option<Schema<'a>>,
    ) -> Result<Option<Outcome>, Fault> {
        let target = match target {
            Some(target) if !self.nodes.is_null(target) => {
                if patch.is_some_and(|patch| self.nodes.is_null(patch)) {
                    return Ok(None);
                }
                match self.map_directive(patch)? {
                    Directive::Delete => return Ok(None),
                    Directive::Replace => patch.unwrap_or(target),
                    Directive::Merge => target,
                }
            }
            // A directive that is not understood is kept as a field where there is nothing to merge with.
            target => match (target, patch, self.map_directive(patch)) {
                (_, _, Ok(Directive::Delete)) | (None, None, _) => return Ok(None),
                (Some(_), None, _) => return Ok(self.writing.keeps_nulls.then_some(Outcome::OwnNull)),
                (_, Some(patch), _) if self.nodes.is_null(patch) => return Ok(None),
                (_, Some(patch), _) => patch,
            },
        };
        for name in self.names(target, patch) {
            if name.is_empty() {
                return Err(Fault::EmptyName { path: self.place() });
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

    /// The names of the fields of either.
    fn names(&self, target: Id, patch: Option<Id>) -> Vec<String> {
        let names = |id: Id| match self.nodes.get(id) {
            Node::Map(fields) => fields.keys().cloned().collect(),
            Node::Null | Node::Scalar(_) | Node::List(_) => Vec::new(),
        };
        let mut all = names(target);
        if let Some(patch) = patch.filter(|patch| *patch != target) {
            all.extend(names(patch));
            all.sort();
            all.dedup();
        }
        all
    }

    fn set(&mut self, map: Id, name: String, outcome: Option<Outcome>) {
        let value = match outcome {
            Some(Outcome::Is(value)) => value,
            Some(Outcome::OwnNull) => self.nodes.add(Node::Null),
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

    /// Gives a field a value. Quotes that the field has stay, and make a text of a number.
    fn replace(&mut self, field: Id, value: Id, name: String) {
        if field == value {
            return;
        }
        if let (Node::Scalar(Value::String(was)), Node::Scalar(Value::Bool(_) | Value::Number(_))) =
            (self.nodes.get(field), self.nodes.get(value))
            && let Some(ask) = self.writing.is_quoted
        {
            let is_quoted = if needs_quotes(was) { Some(true) } else { ask(was) };
            match is_quoted {
                Some(true) => {
                    let text = self.nodes.text(value).into_owned();
                    // In the patch as well, which another item of the list may take up once more.
                    self.nodes.set(value, Node::Scalar(text.into()));
                }
                Some(false) => {}
                None => {
                    self.path.push(name);
                    self.doubt.get_or_insert(self.place());
                    self.path.pop();
                }
            }
        }
        self.nodes.copy(value, field);
    }

    /// The schema of a map that names its own kind.
    fn kind(&self, id: Id) -> Option<Schema<'a>> {
        let word = |name| {
            let field = self.nodes.field(id, name).filter(|field| !self.nodes.is_empty(*field))?;
            Some(self.nodes.text(field)).filter(|text| !text.is_empty())
        };
        self.schemas.of(&word("apiVersion")?, &word("kind")?)
    }

    fn called(&self, id: Id) -> &'static str {
        match self.nodes.get(id) {
            Node::Null => "null",
            Node::Scalar(_) => "a single value",
            Node::Map(_) => "a map",
            Node::List(_) => "a list",
        }
    }

    fn place(&self) -> String {
        self.path.join(".").replace(".[", "[")
    }

    /// The place of the list, also on the way through its items.
    fn list_place(&self) -> String {
        let items = self.path.iter().rev().take_while(|step| step.starts_with('[')).count();
        self.path[..self.path.len() - items].join(".").replace(".[", "[")
    }

    fn step(&mut self, steps: usize) -> Result<(), Fault> {
        self.left = self.left.checked_sub(steps).ok_or_else(|| Fault::TooMuch { path: self.place() })?;
        Ok(())
    }
}

/// True if a text was surely written in quotes, because without them it would not be a text.
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
