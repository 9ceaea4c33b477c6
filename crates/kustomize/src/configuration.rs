//! Tables of the fields that transformers change: built-in ones, and additions of `configurations`
//! and `crds`.
//!
//! In: files that a kustomization names. Out: [`Configuration`], the tables of
//! `builtin_field_specs.rs` with the additions.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::builtin_field_specs;
use super::error::{BuildError, FieldLocation};
use super::id::Gvk;
use super::node::{Fields, Node};

/// A field of some kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldSpec {
    /// The kinds; an empty part matches everything.
    pub(super) gvk: Gvk,
    /// Path of the field, with slashes.
    pub(super) path: String,
    /// True if a missing field is created.
    pub(super) create: bool,
}

/// Transformer that changes a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FieldUse {
    NamePrefix,
    NameSuffix,
    Namespace,
    CommonLabels,
    Labels,
    TemplateLabels,
    CommonAnnotations,
    Variables,
    Images,
    Replicas,
}

/// Fields that refer to objects of a kind by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct References {
    pub(super) target: Gvk,
    pub(super) fields: Vec<FieldSpec>,
}

/// Contents of files of `configurations` or `crds`.
#[derive(Debug, Clone, Default)]
pub(super) struct Additions {
    fields: BTreeMap<FieldUse, Vec<FieldSpec>>,
    references: Vec<References>,
}

/// Tables of a kustomization and of everything below it.
#[derive(Debug, Clone, Default)]
pub(super) struct Configuration {
    /// False until a table is merged in; until then all tables are empty.
    is_begun: bool,
    /// Tables that differ from the built-in ones.
    fields: BTreeMap<FieldUse, Vec<FieldSpec>>,
    references: Option<Vec<References>>,
}

type Merged<T> = Result<T, String>;

/// Most fields in one table, and most kinds with references.
const MAX_FIELDS: usize = 2_000;

const FIELDS: [&str; 11] = [
    "namePrefix",
    "nameSuffix",
    "namespace",
    "commonLabels",
    "labels",
    "templateLabels",
    "commonAnnotations",
    "nameReference",
    "varReference",
    "images",
    "replicas",
];

const USES: [(&str, FieldUse); 10] = [
    ("namePrefix", FieldUse::NamePrefix),
    ("nameSuffix", FieldUse::NameSuffix),
    ("namespace", FieldUse::Namespace),
    ("commonLabels", FieldUse::CommonLabels),
    ("labels", FieldUse::Labels),
    ("templateLabels", FieldUse::TemplateLabels),
    ("commonAnnotations", FieldUse::CommonAnnotations),
    ("varReference", FieldUse::Variables),
    ("images", FieldUse::Images),
    ("replicas", FieldUse::Replicas),
];

impl Additions {
    /// Reads a file of `configurations`.
    pub(super) fn read(value: &Value, at: &FieldLocation) -> Result<Self, BuildError> {
        let fields = Node::new(value, at.clone()).fields(&FIELDS)?;
        let mut read = Self::default();
        for (name, what) in USES {
            if let Some(node) = fields.get(name) {
                read.fields.insert(what, sorted(field_specs(&node)?));
            }
        }
        for node in fields.list("nameReference")? {
            let fields = node.fields(&["group", "version", "kind", "fieldSpecs"])?;
            let specs = fields.get("fieldSpecs").map_or(Ok(Vec::new()), |node| field_specs(&node))?;
            read.references.push(References { target: gvk(&fields)?, fields: specs });
        }
        read.references = sorted_references(read.references);
        Ok(read)
    }

    /// Adds the contents of another file.
    pub(super) fn merge(&mut self, other: &Self) -> Merged<()> {
        for (what, more) in &other.fields {
            let fields = self.fields.remove(what).unwrap_or_default();
            self.fields.insert(*what, sorted(merge_fields(fields, more)?));
        }
        let references = merge_references(std::mem::take(&mut self.references), &other.references)?;
        self.references = sorted_references(references);
        Ok(())
    }

    fn add(&mut self, what: FieldUse, spec: FieldSpec) -> Merged<()> {
        let fields = self.fields.remove(&what).unwrap_or_default();
        self.fields.insert(what, merge_fields(fields, &[spec])?);
        Ok(())
    }

    fn refer(&mut self, other: References) -> Merged<()> {
        self.references = merge_references(std::mem::take(&mut self.references), &[other])?;
        Ok(())
    }
}

impl Configuration {
    /// Returns the built-in tables with the additions of one kustomization.
    pub(super) fn standard_with(additions: &Additions) -> Merged<Self> {
        let mut all = Self { is_begun: true, ..Self::default() };
        all.add(additions)?;
        Ok(all)
    }

    /// Adds the contents of files to the tables.
    pub(super) fn add(&mut self, additions: &Additions) -> Merged<()> {
        for (what, more) in &additions.fields {
            let fields = merge_fields(self.fields(*what).into_owned(), more)?;
            self.fields.insert(*what, sorted(fields));
        }
        if !additions.references.is_empty() {
            let references = merge_references(self.references().into_owned(), &additions.references)?;
            self.references = Some(sorted_references(references));
        }
        Ok(())
    }

    /// Merges the tables of a kustomization into the existing ones. As in kustomize, an entry for
    /// one kind replaces an entry for all kinds if that one follows it in the order of kinds.
    pub(super) fn merge(&mut self, other: &Self) -> Merged<()> {
        let uses: BTreeSet<FieldUse> = self.fields.keys().chain(other.fields.keys()).copied().collect();
        for what in uses {
            let fields = merge_fields(self.fields(what).into_owned(), &other.fields(what))?;
            self.fields.insert(what, sorted(fields));
        }
        if self.references.is_some() || other.references.is_some() {
            let references = merge_references(self.references().into_owned(), &other.references())?;
            self.references = Some(sorted_references(references));
        }
        self.is_begun |= other.is_begun;
        Ok(())
    }

    /// Returns the fields that this transformer changes.
    pub(super) fn fields(&self, what: FieldUse) -> Cow<'static, [FieldSpec]> {
        match self.fields.get(&what) {
            Some(fields) => Cow::Owned(fields.clone()),
            None if self.is_begun => Cow::Borrowed(builtin_field_specs::fields(what)),
            None => Cow::Borrowed(&[]),
        }
    }

    /// Returns the fields that refer to objects by name.
    pub(super) fn references(&self) -> Cow<'static, [References]> {
        match &self.references {
            Some(references) => Cow::Owned(references.clone()),
            None if self.is_begun => Cow::Borrowed(builtin_field_specs::references()),
            None => Cow::Borrowed(&[]),
        }
    }
}

fn merge_references(mut all: Vec<References>, more: &[References]) -> Merged<Vec<References>> {
    if all.len().max(more.len()) > MAX_FIELDS {
        return Err(format!("there are more than {MAX_FIELDS} kinds in one table of references"));
    }
    for other in more {
        match all.iter_mut().find(|known| known.target == other.target) {
            Some(known) => known.fields = merge_fields(std::mem::take(&mut known.fields), &other.fields)?,
            None => all.push(other.clone()),
        }
    }
    Ok(all)
}

fn sorted_references(mut all: Vec<References>) -> Vec<References> {
    all.sort_by_cached_key(|references| sort_key(&references.target));
    all
}

/// Adds the fields that are not in the list yet, also for `labels` with their own fields.
pub(super) fn merge_fields(mut specs: Vec<FieldSpec>, more: &[FieldSpec]) -> Merged<Vec<FieldSpec>> {
    // Each field is compared with all others, so the length is bounded.
    if specs.len().max(more.len()) > MAX_FIELDS {
        return Err(format!("there are more than {MAX_FIELDS} fields in one table"));
    }
    for spec in more {
        if !is_known(specs.iter(), spec)? {
            specs.push(spec.clone());
        }
    }
    Ok(specs)
}

fn is_known<'a>(mut known: impl Iterator<Item = &'a FieldSpec>, spec: &FieldSpec) -> Merged<bool> {
    match known.find(|known| known.gvk.is_selected(&spec.gvk) && known.path == spec.path) {
        Some(known) if known.create != spec.create => {
            Err(format!("the field {} has create: true in one entry and not in another", spec.path))
        }
        found => Ok(found.is_some()),
    }
}

/// Reads a list of fields.
pub(super) fn field_specs(node: &Node<'_>) -> Result<Vec<FieldSpec>, BuildError> {
    let spec = |node: &Node<'_>| {
        let fields = node.fields(&["group", "version", "kind", "path", "create"])?;
        Ok(FieldSpec { gvk: gvk(&fields)?, path: fields.text("path")?, create: fields.flag("create")? })
    };
    node.list()?.iter().map(spec).collect()
}

fn gvk(fields: &Fields<'_>) -> Result<Gvk, BuildError> {
    let (group, version, kind) = (fields.text("group")?, fields.text("version")?, fields.text("kind")?);
    Ok(Gvk { group, version, kind })
}

pub(super) fn sorted(mut specs: Vec<FieldSpec>) -> Vec<FieldSpec> {
    specs.sort_by_cached_key(|spec| sort_key(&spec.gvk));
    specs
}

/// Returns the sort key of a kind.
pub(super) fn sort_key(gvk: &Gvk) -> (i32, String) {
    (super::sort::rank(&gvk.kind, &super::sort::FIRST, &super::sort::LAST), gvk.sort_text())
}

/// Reads the field annotations of definitions in a file of `crds`.
pub(super) fn read_definitions(value: &Value) -> Merged<Additions> {
    let mut read = Additions::default();
    let Some(definitions) = value.as_object().filter(|all| all.values().all(Value::is_object)) else {
        return Err("the file does not hold definitions by their names".to_owned());
    };
    for (name, definition) in definitions {
        let properties = properties(definition);
        if ["kind", "apiVersion", "metadata"]
            .iter()
            .all(|field| properties.is_some_and(|all| all.contains_key(*field)))
        {
            let kind = name.rsplit('.').next().unwrap_or(name).to_owned();
            let gvk = Gvk { kind, ..Gvk::default() };
            let mut path = Vec::new();
            add_definition(&mut read, &gvk, definitions, name, &mut path)?;
        }
    }
    Ok(read)
}

/// Deepest nesting of references between definitions.
const MAX_DEPTH: usize = 64;

fn add_definition(
    read: &mut Additions,
    gvk: &Gvk,
    definitions: &serde_json::Map<String, Value>,
    name: &str,
    path: &mut Vec<String>,
) -> Merged<()> {
    if path.len() >= MAX_DEPTH {
        return Err(format!("the definition {name} is nested deeper than {MAX_DEPTH}"));
    }
    let Some(properties) = definitions.get(name).and_then(properties) else { return Ok(()) };
    for (field, property) in properties {
        path.push(field.clone());
        let spec = |path: &[String]| FieldSpec { gvk: gvk.clone(), path: path.join("/"), create: false };
        let hint = |name: &str| property.get(name).and_then(Value::as_str);
        for (name, what) in [
            ("x-kubernetes-annotation", FieldUse::CommonAnnotations),
            ("x-kubernetes-label-selector", FieldUse::CommonLabels),
            ("x-kubernetes-identity", FieldUse::NamePrefix),
        ] {
            if hint(name).is_some() {
                read.add(what, spec(path))?;
            }
        }
        let version = hint("x-kubernetes-object-ref-api-version");
        if let (Some(version), Some(kind)) = (version, hint("x-kubernetes-object-ref-kind")) {
            let target = Gvk { group: String::new(), version: version.to_owned(), kind: kind.to_owned() };
            path.push(hint("x-kubernetes-object-ref-name-key").unwrap_or("name").to_owned());
            read.refer(References { target, fields: vec![spec(path)] })?;
            path.pop();
        }
        if let Some(other) = property.get("$ref").and_then(Value::as_str) {
            add_definition(read, gvk, definitions, other, path)?;
        }
        path.pop();
    }
    Ok(())
}

fn properties(definition: &Value) -> Option<&serde_json::Map<String, Value>> {
    let schema = definition.get("Schema").or_else(|| definition.get("schema"))?;
    schema.get("properties")?.as_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Tables without additions are not merged, so merging them must not change them.
    #[test]
    fn the_standard_tables_merge_to_themselves() {
        for (_, what) in USES {
            let standard = builtin_field_specs::fields(what);
            assert_eq!(merge_fields(Vec::new(), standard).unwrap(), standard, "{what:?}");
        }
        assert_eq!(
            merge_references(Vec::new(), builtin_field_specs::references()).unwrap(),
            builtin_field_specs::references()
        );
    }
}
