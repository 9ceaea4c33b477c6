//! Replacements: a value of an object, or a given one, is written into fields of other objects.
//!
//! In: entries of `replacements`, the files that they name, and the objects. Out: the changed
//! objects. `written_value.rs` writes a value into a field, `field_path.rs` finds fields.

use serde_json::Value;

use super::bounds::{LOOKS_BY_NAMES, VisitCounter};
use super::configuration::FieldSpec;
use super::error::{BuildError, Built, ErrorClass, FieldLocation};
use super::field_path::{FieldPathError, PathStep, find_field, path_parts};
use super::id::{Gvk, ResourceId};
use super::node::{Fields, LocatedText, Node};
use super::resource::Resource;
use super::select::{Selection, Selector, selector};
use super::write_budget::WriteBudget;
use super::written_value::{FieldOptions, SourceValue, write};
use moorline_yaml::{self as yaml, KeepGoing};

/// One entry of `replacements`.
#[derive(Debug)]
pub(super) enum Replacements {
    /// An inline replacement.
    Inline(Box<Replacement>),
    /// A file with one or more replacements.
    File(LocatedText),
}

/// One replacement.
#[derive(Debug)]
pub(super) struct Replacement {
    at: FieldLocation,
    source: Option<Source>,
    value: Option<String>,
    targets: Option<Vec<Target>>,
}

#[derive(Debug)]
struct Source {
    at: FieldLocation,
    gvk: Gvk,
    name: String,
    namespace: String,
    path: String,
    options: FieldOptions,
}

#[derive(Debug)]
struct Target {
    at: FieldLocation,
    select: Option<Selector>,
    reject: Vec<Selector>,
    paths: Vec<LocatedText>,
    options: FieldOptions,
}

/// Default path for reading and writing.
const NAME: &str = "metadata.name";

/// Reads one entry of `replacements`.
pub(super) fn replacements(node: &Node<'_>) -> Built<Replacements> {
    let fields = node.fields(&["path", "source", "targets", "sourceValue"])?;
    let mut replacement = of_replacement(&fields)?;
    let path = fields.get("path").map(|node| Ok(LocatedText { text: node.text()?, at: node.at }));
    match path.transpose()?.filter(|path| !path.text.is_empty()) {
        Some(path)
            if replacement.source.is_some()
                || replacement.targets.as_ref().is_some_and(|it| !it.is_empty()) =>
        {
            Err(path.at.error(ErrorClass::Field, "path and replacement are both set; remove one"))
        }
        Some(path) => Ok(Replacements::File(path)),
        None => {
            replacement.targets = replacement.targets.filter(|targets| !targets.is_empty());
            Ok(Replacements::Inline(Box::new(replacement)))
        }
    }
}

/// Reads a file with one replacement or a list of them.
pub(super) fn read(file: &str, shown: &str, bytes: &[u8], go_on: KeepGoing<'_>) -> Built<Vec<Replacement>> {
    let documents = yaml::read_as_written(shown, bytes, go_on);
    let documents = documents.map_err(|error| BuildError::invalid_yaml(ErrorClass::Field, &error))?;
    let at = FieldLocation::file(file);
    let first = documents.first();
    let one = |node: &Node<'_>| of_replacement(&node.fields(&["source", "targets", "sourceValue"])?);
    match first.map(|first| &first.value) {
        Some(value @ Value::Array(_)) => Node::new(value, at).list()?.iter().map(one).collect(),
        Some(value @ Value::Object(_)) => Ok(vec![one(&Node::new(value, at))?]),
        _ => Err(at.error(ErrorClass::Field, "found neither a replacement nor a list of them")),
    }
}

fn of_replacement(fields: &Fields<'_>) -> Built<Replacement> {
    Ok(Replacement {
        at: fields.at.clone(),
        source: fields.get("source").map(|node| source(&node)).transpose()?,
        value: fields.get("sourceValue").map(|node| node.text()).transpose()?,
        targets: fields.get("targets").map(|node| node.list()?.iter().map(target).collect()).transpose()?,
    })
}

fn source(node: &Node<'_>) -> Built<Source> {
    let fields = node.fields(&["group", "version", "kind", "name", "namespace", "fieldPath", "options"])?;
    let path = fields.text("fieldPath")?;
    Ok(Source {
        at: node.at.clone(),
        gvk: Gvk {
            group: fields.text("group")?,
            version: fields.text("version")?,
            kind: fields.text("kind")?,
        },
        name: fields.text("name")?,
        namespace: fields.text("namespace")?,
        path: if path.is_empty() { NAME.to_owned() } else { path },
        options: options(&fields)?,
    })
}

fn target(node: &Node<'_>) -> Built<Target> {
    let fields = node.fields(&["select", "reject", "fieldPaths", "options"])?;
    let mut paths = fields.texts("fieldPaths")?;
    if paths.is_empty() {
        paths.push(LocatedText { text: NAME.to_owned(), at: node.at.clone() });
    }
    let reject = |node: &Node<'_>| match node.value {
        Value::Null => Err(node.at.error(ErrorClass::Field, "found null, expected a selector")),
        _ => selector(node),
    };
    Ok(Target {
        at: node.at.clone(),
        select: fields.get("select").map(|node| selector(&node)).transpose()?,
        reject: fields.each("reject", reject)?,
        paths,
        options: options(&fields)?,
    })
}

fn options(fields: &Fields<'_>) -> Built<FieldOptions> {
    let Some(node) = fields.get("options") else { return Ok(FieldOptions::default()) };
    let fields = node.fields(&["delimiter", "index", "encoding", "create"])?;
    // Kustomize accepts `encoding` and ignores it.
    fields.text("encoding")?;
    Ok(FieldOptions {
        delimiter: Some(fields.text("delimiter")?).filter(|text| !text.is_empty()),
        index: fields.integer("index")?,
        create: fields.flag("create")?,
    })
}

/// Applies the replacements in order, within the write budget of the build.
pub(super) fn apply(
    resources: &mut [Resource],
    replacements: &[Replacement],
    budget: &mut WriteBudget,
    look: &VisitCounter<'_>,
) -> Built<()> {
    for replacement in replacements {
        look(resources.len(), LOOKS_BY_NAMES, &replacement.at)?;
        let mut value = replacement.value(resources)?;
        for target in replacement.targets.iter().flatten() {
            look(resources.len(), LOOKS_BY_NAMES * (1 + target.reject.len()), &target.at)?;
            target.write(resources, &mut value, budget, look)?;
        }
    }
    Ok(())
}

const NOTES: &str = "kustomize keeps internal values among these annotations, such as former names; select individual annotations";

/// True if a field contains annotations that kustomize uses internally.
fn has_notes_in(resource: &Resource, way: &[PathStep]) -> bool {
    let is = |step: &PathStep, name: &str| matches!(step, PathStep::Key(key) if key == name);
    let holds = match way {
        [] => true,
        [first] => is(first, "metadata"),
        [first, second] => is(first, "metadata") && is(second, "annotations"),
        _ => false,
    };
    holds && resource.has_internal_annotations()
}

fn at(at: &FieldLocation) -> impl Fn(FieldPathError) -> BuildError + '_ {
    move |miss| at.error(miss.class, miss.text)
}

impl Replacement {
    /// Returns the value, and the index of the object that it comes from.
    fn value(&self, resources: &[Resource]) -> Built<(SourceValue, Option<usize>)> {
        let refuse = |text: &str| Err(self.at.error(ErrorClass::Replacement, text));
        match (&self.source, &self.value) {
            _ if self.targets.is_none() => refuse("there are no targets"),
            (None, None) => refuse("there is neither a source nor a sourceValue"),
            (Some(_), Some(_)) => refuse("source and sourceValue are both set; remove one"),
            (None, Some(text)) => Ok((SourceValue::untyped_text(text), None)),
            (Some(source), None) => source.value(resources),
        }
    }
}

impl Source {
    fn value(&self, resources: &[Resource]) -> Built<(SourceValue, Option<usize>)> {
        let takes = |(_, resource): &(usize, &Resource)| resource.ids().any(|id| self.takes(&id));
        let mut selected = resources.iter().enumerate().filter(takes);
        let Some((position, resource)) = selected.next() else {
            return Err(self
                .at
                .error(ErrorClass::Target, "no object matches the source of this replacement"));
        };
        if let Some((_, other)) = selected.next() {
            let text =
                format!("{} and {} could both be the source; say more of it", resource.id(), other.id());
            return Err(self.at.error(ErrorClass::Target, text));
        }
        let found = path_parts(&self.path)
            .and_then(|parts| find_field(&resource.body, &parts))
            .map_err(at(&self.at))?;
        let is_empty = |value: &Value| match value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            _ => false,
        };
        let Some((way, value)) = found.filter(|(_, value)| !is_empty(value)) else {
            let text = format!("{} has no field {}, or nothing in it", resource.id(), self.path);
            return Err(self.at.error(ErrorClass::Replacement, text));
        };
        if has_notes_in(resource, &way) {
            return Err(self.at.error(ErrorClass::Unsupported, NOTES));
        }
        let written =
            SourceValue::from_field(&resource.spelling, &way, value, &self.options).map_err(at(&self.at))?;
        Ok((written, Some(position)))
    }

    fn takes(&self, id: &ResourceId) -> bool {
        // The scope of a kind does not matter here.
        let namespace = |text: &str| if text.is_empty() { "default".to_owned() } else { text.to_owned() };
        (self.name.is_empty() || self.name == id.name)
            && (self.namespace.is_empty() || namespace(&self.namespace) == namespace(&id.namespace))
            && id.gvk.is_selected(&self.gvk)
    }
}

/// Selects the objects that a target rejects.
struct Reject {
    selection: Selection,
    by_id: bool,
    by_texts: bool,
}

impl Reject {
    fn of(selector: &Selector) -> Built<Self> {
        let Selector { group, version, kind, name, namespace, annotations, labels, .. } = selector;
        let by_id = [group, version, kind, name, namespace].iter().any(|text| !text.is_empty());
        let by_texts = [annotations, labels].iter().any(|text| !text.is_empty());
        Ok(Self { selection: selector.selection()?, by_id, by_texts })
    }

    /// An object is rejected by its id, and also by its labels and annotations alone.
    fn takes(&self, resource: &Resource) -> bool {
        (self.by_id && resource.ids().any(|id| takes(&self.selection, &id)))
            || (self.by_texts && self.selection.matches_texts(resource))
    }
}

/// A single id must match as a whole, with its namespace as written.
fn takes(selection: &Selection, id: &ResourceId) -> bool {
    selection.matches_kind(&id.gvk)
        && selection.matches_name(&id.name)
        && selection.matches_namespace(&id.namespace)
}

impl Target {
    fn write(
        &self,
        resources: &mut [Resource],
        (value, source): &mut (SourceValue, Option<usize>),
        budget: &mut WriteBudget,
        look: &VisitCounter<'_>,
    ) -> Built<()> {
        let Some(select) = &self.select else {
            return Err(self.at.error(ErrorClass::Replacement, "this target selects nothing"));
        };
        let select = select.selection()?;
        let reject = self.reject.iter().map(Reject::of).collect::<Built<Vec<_>>>()?;
        for (position, resource) in resources.iter_mut().enumerate() {
            let is_source = *source == Some(position);
            let is_target = select.matches_texts(resource)
                && resource.ids().any(|id| takes(&select, &id))
                && !reject.iter().any(|reject| reject.takes(resource));
            if !is_target {
                continue;
            }
            for path in &self.paths {
                look(1, 1, &path.at)?;
                let parts = path_parts(&path.text).map_err(at(&path.at))?;
                let found = find_field(&resource.body, &parts).ok().flatten();
                if found.is_some_and(|(way, _)| has_notes_in(resource, &way)) {
                    return Err(path.at.error(ErrorClass::Unsupported, NOTES));
                }
                let shared = resource.sharing.snapshot(&mut resource.body);
                let written = write(resource, &parts, (&mut *value, is_source), &self.options, budget);
                let refuse = |miss: FieldPathError, resource: &Resource| {
                    let text = format!("{} in {}: {}", path.text, resource.id(), miss.text);
                    path.at.error(miss.class, text)
                };
                written.map_err(|miss| refuse(miss, resource))?;
                let is_entry = |key: &str| parts.last().is_some_and(|last| last == key);
                let is_new = |field: &FieldSpec| {
                    let around: Vec<&str> = field.path.split('/').take(parts.len()).collect();
                    around.len() == parts.len() && around.iter().zip(&parts).all(|(one, other)| one == other)
                };
                if resource.sharing.propagate(shared, &mut resource.body, is_new, is_entry) && is_source {
                    value
                        .reread(&mut resource.body, &resource.spelling)
                        .map_err(|miss| refuse(miss, resource))?;
                }
            }
            if resource.kind().is_empty() || resource.name().is_empty() {
                let text = "this takes the kind or the name from an object";
                return Err(self.at.error(ErrorClass::Replacement, text));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
