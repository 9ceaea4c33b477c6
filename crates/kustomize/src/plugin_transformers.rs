//! Runs the built-in transformers that a kustomization configures by objects.
//!
//! In: the object that configures a transformer. Out: the changed resources.

use std::collections::BTreeMap;

use serde_json::Value;

use super::build::Build;
use super::builtin_plugins::{loose, unknown};
use super::configuration::{FieldSpec, field_specs};
use super::error::{BuildError, Built, ErrorClass, FieldLocation};
use super::files::Folder;
use super::kustomization::{self, Patch};
use super::labels_images_replicas::{set_image, set_replicas, set_texts};
use super::name_hash;
use super::namespaces_and_affixes::{Affix, NamespaceOptions, Subjects, add_affix, set_namespace};
use super::node::{Fields, LocatedText, Node};
use super::patches::{self, PatchContext};
use super::replacement::replacements;
use super::resource::Resource;
use super::select::selector;
use super::transformers::{FIELDS_OF_A_LOOK, replace};

/// Reads texts of a plugin's object, which may be written as booleans and numbers.
fn texts(fields: &Fields<'_>, name: &'static str) -> Result<BTreeMap<String, String>, BuildError> {
    let Some(node) = fields.get(name) else { return Ok(BTreeMap::new()) };
    let Value::Object(map) = node.value else { return node.text_map() };
    let text = |(key, value): (&String, &Value)| {
        let text = match value {
            Value::Bool(flag) => flag.to_string(),
            Value::Number(number) if !number.is_f64() || number.as_f64().is_some_and(is_plain) => {
                number.to_string()
            }
            value => Node::new(value, node.at.key(key)).text()?,
        };
        Ok((key.clone(), text))
    };
    map.iter().map(text).collect()
}

/// True if kustomize formats a float without an exponent.
fn is_plain(float: f64) -> bool {
    float == 0.0 || (1e-4..1e21).contains(&float.abs())
}

fn specs(fields: &Fields<'_>) -> Result<Vec<FieldSpec>, BuildError> {
    fields.get("fieldSpecs").map_or(Ok(Vec::new()), |node| field_specs(&node))
}

/// Runs a built-in transformer.
pub(super) fn run(
    build: &Build<'_>,
    folder: &Folder,
    plugin: &Resource,
    at: &FieldLocation,
    resources: &mut Vec<Resource>,
) -> Built<()> {
    let context = PatchContext { files: build.files, folder, schemas: build.schemas() };
    let read = |known: &[&str]| loose(&plugin.body, at, known);
    let set = |texts: &BTreeMap<String, String>, specs: &[FieldSpec], resources: &mut Vec<Resource>| {
        build.files.count_visits(resources.len(), texts.len().saturating_mul(specs.len()), at)?;
        set_texts(resources, texts, specs, at)
    };
    // Every transformer does its work for each of its fields.
    let specs_count = plugin.body.get("fieldSpecs").and_then(Value::as_array).map_or(0, Vec::len);
    build.files.count_visits(resources.len(), specs_count / FIELDS_OF_A_LOOK, at)?;
    match plugin.kind() {
        "LabelTransformer" => {
            let (read, known) = (read(&["labels", "fieldSpecs"]), ["labels", "fieldSpecs"]);
            let fields = read.node().fields(&known)?;
            set(&texts(&fields, "labels")?, &specs(&fields)?, resources)
        }
        "AnnotationsTransformer" => {
            let (read, known) = (read(&["annotations", "fieldSpecs"]), ["annotations", "fieldSpecs"]);
            let fields = read.node().fields(&known)?;
            set(&texts(&fields, "annotations")?, &specs(&fields)?, resources)
        }
        "ImageTagTransformer" => {
            let (read, known) = (read(&["imageTag", "fieldSpecs"]), ["imageTag", "fieldSpecs"]);
            let fields = read.node().fields(&known)?;
            let image = fields.get("imageTag").map(|node| kustomization::image(&node)).transpose()?;
            set_image(resources, &image.unwrap_or_default(), &specs(&fields)?)
        }
        "ReplicaCountTransformer" => {
            let (read, known) = (read(&["replica", "fieldSpecs"]), ["replica", "fieldSpecs"]);
            let fields = read.node().fields(&known)?;
            let Some(replica) = fields.get("replica") else {
                return Err(at.error(ErrorClass::Field, "replica is missing"));
            };
            set_replicas(resources, &kustomization::replicas(&replica)?, &specs(&fields)?)
        }
        "PrefixTransformer" | "SuffixTransformer" | "PrefixSuffixTransformer" => {
            run_affix(plugin, at, resources)
        }
        "NamespaceTransformer" => run_namespace(plugin, at, resources),
        "PatchTransformer" | "PatchJson6902Transformer" | "PatchStrategicMergeTransformer" => {
            run_patch(plugin, at, context, resources)
        }
        "ReplacementTransformer" => {
            let read = read(&["replacements"]);
            let entries = read.node().fields(&["replacements"])?.each("replacements", replacements)?;
            replace(build, folder, (&entries, at), resources)
        }
        "HashTransformer" => {
            name_hash::add_hashes(resources);
            Ok(())
        }
        _ => Err(unknown(plugin, "transformer", at)),
    }
}

fn run_affix(plugin: &Resource, at: &FieldLocation, resources: &mut [Resource]) -> Built<()> {
    let read = loose(&plugin.body, at, &["prefix", "suffix", "fieldSpecs"]);
    let fields = read.node().fields(&["prefix", "suffix", "fieldSpecs"])?;
    if fields.get("fieldSpecs").is_none() {
        return Err(at.error(ErrorClass::Field, "fieldSpecs are missing"));
    }
    let (prefix, suffix) = (fields.text("prefix")?, fields.text("suffix")?);
    let specs = specs(&fields)?;
    if plugin.kind() != "SuffixTransformer" {
        add_affix(resources, Affix::Prefix(&prefix), &specs, at)?;
    }
    if plugin.kind() != "PrefixTransformer" {
        add_affix(resources, Affix::Suffix(&suffix), &specs, at)?;
    }
    Ok(())
}

fn run_namespace(plugin: &Resource, at: &FieldLocation, resources: &mut [Resource]) -> Built<()> {
    let read = loose(&plugin.body, at, &["fieldSpecs", "unsetOnly", "setRoleBindingSubjects"]);
    let fields = read.node().fields(&["fieldSpecs", "unsetOnly", "setRoleBindingSubjects"])?;
    let subjects = match fields.text("setRoleBindingSubjects")?.as_str() {
        "" | "defaultOnly" => Subjects::Default,
        "allServiceAccounts" => Subjects::ServiceAccounts,
        "none" => Subjects::None,
        _ => {
            let text = "setRoleBindingSubjects must be defaultOnly, allServiceAccounts or none";
            return Err(at.error(ErrorClass::Field, text));
        }
    };
    let namespacing = NamespaceOptions {
        namespace: &plugin.namespace(),
        fields: &specs(&fields)?,
        subjects,
        only_unset: fields.flag("unsetOnly")?,
    };
    set_namespace(resources, &namespacing, at)
}

fn run_patch(
    plugin: &Resource,
    at: &FieldLocation,
    context: PatchContext<'_>,
    resources: &mut Vec<Resource>,
) -> Built<()> {
    match plugin.kind() {
        "PatchTransformer" => {
            let read = loose(&plugin.body, at, &["path", "patch", "target", "options"]);
            patches::apply(resources, &kustomization::patch(&read.node())?, context)
        }
        "PatchJson6902Transformer" => {
            let read = loose(&plugin.body, at, &["path", "jsonOp", "target"]);
            let fields = read.node().fields(&["path", "jsonOp", "target"])?;
            let patch = Patch {
                at: at.clone(),
                path: fields.text("path")?,
                patch: fields.text("jsonOp")?,
                target: fields.get("target").map(|node| selector(&node)).transpose()?,
                allow_name_change: false,
                allow_kind_change: false,
            };
            patches::apply_operations(resources, &patch, context)
        }
        _ => {
            let read = loose(&plugin.body, at, &["paths", "patches"]);
            let fields = read.node().fields(&["paths", "patches"])?;
            let mut entries = fields.texts("paths")?;
            if let Some(patches) = fields.get("patches") {
                entries.push(LocatedText { text: patches.text()?, at: patches.at });
            }
            if entries.is_empty() {
                return Err(at.error(ErrorClass::Patch, "neither paths nor patches are given"));
            }
            entries.iter().try_for_each(|entry| patches::apply_merge(resources, entry, context))
        }
    }
}
