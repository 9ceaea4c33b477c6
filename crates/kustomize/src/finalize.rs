//! Final steps of a build, run once and not for each folder: hashes, references, variables, order.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::BuiltObject;
use super::accumulator::Accumulator;
use super::build_trace::Tracer;
use super::charts::HELM_MARK;
use super::configuration::{FieldSpec, FieldUse};
use super::error::{BuildError, ErrorClass};
use super::field_spec::scalar_text;
use super::files::Files;
use super::id::Gvk;
use super::kustomization::Kustomization;
use super::labels_images_replicas::set_texts;
use super::name_hash::add_hashes;
use super::name_references::update_references;
use super::provenance::{CHANGES, ORIGIN};
use super::resource::Resource;
use super::resource_files;
use super::sort::sort;
use super::transformers::FIELDS_OF_A_LOOK;
use super::variables;

/// Annotation of an object that is used only during the build.
const LOCAL: &str = "config.kubernetes.io/local-config";

/// Runs the final steps and returns the objects.
pub(super) fn finalize(
    accumulator: Accumulator,
    outer: &Kustomization,
    tracer: &Tracer,
    files: &Files<'_>,
) -> Result<Vec<BuiltObject>, BuildError> {
    let Accumulator { mut resources, configuration, variables } = accumulator;
    let (at, fields) = (&outer.at, configuration.fields(FieldUse::Variables));
    tracer.step(("hash of the content", ""), at, &mut resources, |it| {
        add_hashes(it);
        Ok(())
    })?;
    let references = configuration.references();
    let look = |objects: usize, things: usize| files.count_visits(objects, things, at);
    tracer
        .step(("names of others", ""), at, &mut resources, |it| update_references(it, &references, &look))?;
    if !variables.is_empty() {
        look(resources.len(), fields.len() / FIELDS_OF_A_LOOK)?;
    }
    tracer.step(("vars", ""), at, &mut resources, |it| variables::resolve(it, &variables, &fields))?;
    check_ids(&resources)?;
    resources.retain(|resource| !resource.is_empty() && !is_local(resource));
    sort(&mut resources, outer.sorting.as_ref())?;
    tracer.step(("buildMetadata", ""), at, &mut resources, |it| describe(it, outer))?;
    let is_asked = |name: &str| outer.build_metadata.iter().any(|option| option.text == name);
    let kept: Vec<&str> = [("originAnnotations", ORIGIN), ("transformerAnnotations", CHANGES)]
        .into_iter()
        .filter_map(|(name, key)| is_asked(name).then_some(key))
        .collect();
    let each = |resource| {
        files.reserve(0, at)?;
        finished_object(resource, &kept)
    };
    resources.into_iter().filter_map(|resource| each(resource).transpose()).collect()
}

/// Checks that ids are unique: a replacement or JSON patch may make two equal, and kustomize panics
/// then.
fn check_ids(resources: &[Resource]) -> Result<(), BuildError> {
    let mut known = HashSet::with_capacity(resources.len());
    match resources.iter().find(|resource| !known.insert(resource.id().key())) {
        None => Ok(()),
        Some(resource) => {
            let text = format!("a transformation gave two objects the same id {}", resource.id());
            Err(resource_files::resource_error(&resource.origin, text).with_class(ErrorClass::Duplicate))
        }
    }
}

fn is_local(resource: &Resource) -> bool {
    let said =
        resource.texts("annotations").and_then(|annotations| annotations.get(LOCAL)).and_then(scalar_text);
    said.is_some_and(|said| said != "false")
}

/// Adds kustomize's label about itself, if it is requested.
fn describe(resources: &mut [Resource], outer: &Kustomization) -> Result<(), BuildError> {
    // Origins and transformations were recorded during the build; kustomize ignores unknown
    // options.
    for option in outer.build_metadata.iter().filter(|option| option.text == "managedByLabel") {
        let texts = BTreeMap::from([(MANAGED_BY.to_owned(), KUSTOMIZE_VERSION.to_owned())]);
        let field = FieldSpec { gvk: Gvk::default(), path: "metadata/labels".to_owned(), create: true };
        set_texts(resources, &texts, &[field], &option.at)?;
    }
    Ok(())
}

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Version of kustomize that these builds reproduce.
const KUSTOMIZE_VERSION: &str = "kustomize-v5.8.1";

/// Annotations of kustomize itself, removed unless they are requested.
const INTERNAL_ANNOTATIONS: [&str; 6] = [
    ORIGIN,
    CHANGES,
    "config.kubernetes.io/path",
    "config.kubernetes.io/index",
    "config.k8s.io/id",
    HELM_MARK,
];

/// Line separators of YAML that JSON does not have: kustomize writes objects as YAML, and the text
/// it reads back depends on its depth.
const SEPARATORS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// Returns the final object, without annotations for internal use.
fn finished_object(mut resource: Resource, kept: &[&str]) -> Result<Option<BuiltObject>, BuildError> {
    let origin = resource.origin.clone();
    if let Some(key) = resource.sharing.differing_key(&mut resource.body) {
        let text = format!(
            "{key} was set in several fields of {} at once, and then changed in only one of them; set it again by labels",
            resource.id()
        );
        return Err(resource_files::resource_error(&origin, text).with_class(ErrorClass::Unsupported));
    }
    resource.convert_to_texts("annotations")?;
    if let Some(metadata) = resource.metadata_mut() {
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.retain(|key, _| {
                kept.contains(&key.as_str()) || !INTERNAL_ANNOTATIONS.contains(&key.as_str())
            });
        }
        // Empty annotations are left out.
        if metadata
            .get("annotations")
            .is_some_and(|it| it.is_null() || it.as_object().is_some_and(Map::is_empty))
        {
            metadata.remove("annotations");
        }
    }
    if has_separators(&resource.body) {
        let text =
            format!("a text in {} has a line separator of Unicode (U+0085, U+2028 or U+2029)", resource.id());
        return Err(resource_files::resource_error(&origin, text).with_class(ErrorClass::Unsupported));
    }
    let Value::Object(body) = resource.body else { return Ok(None) };
    let contains_secret = resource.contains_secret;
    Ok(Some(BuiltObject { body, origin, contains_secret, notes: resource.trail.notes }))
}

fn has_separators(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_ascii() && text.contains(SEPARATORS),
        Value::Array(items) => items.iter().any(has_separators),
        Value::Object(map) => map.values().any(has_separators),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
