//! Applies strategic merge patches to the objects that they name or select.
//!
//! In: parsed patches. Out: the changed resources, without those that a patch deletes.

use std::cell::RefCell;

use serde_json::{Map, Value};

use super::accumulator::replace_resources;
use super::bounds::LOOKS_BY_NAMES;
use super::configuration::FieldSpec;
use super::error::{BuildError, ErrorClass, FieldLocation};
use super::patches::PatchContext;
use super::resource::Resource;
use super::select::Selector;
use super::strategic::{Merged, TargetStyle, merge};
use moorline_yaml as yaml;

/// Merges each patch into the object that it names.
pub(super) fn merge_all(
    resources: &mut Vec<Resource>,
    merges: &[Resource],
    context: PatchContext<'_>,
    at: &FieldLocation,
) -> Result<(), BuildError> {
    for patch in merges {
        context.files.count_visits(resources.len(), LOOKS_BY_NAMES, at)?;
        let wanted = patch.first_id();
        // Kustomize compares a null as the text it is written with, which matches no object.
        if patch.body.get("apiVersion").is_some_and(|version| !version.is_string()) {
            return Err(at.error(
                ErrorClass::Target,
                format!("the patch of {wanted} has an apiVersion that is not a string"),
            ));
        }
        let mut fits = resources.iter().enumerate().filter(|(_, resource)| resource.is_or_was(&wanted));
        let target = match (fits.next(), fits.next()) {
            (Some((target, _)), None) => target,
            (found, _) => {
                let number = if found.is_some() { "more than one object is" } else { "no object is" };
                return Err(
                    at.error(ErrorClass::Target, format!("{number} {wanted}, which the patch changes"))
                );
            }
        };
        if !merge_into(&mut resources[target], patch, context, at)? {
            resources.remove(target);
        }
    }
    Ok(())
}

/// Merges a patch into every object that its target selects.
pub(super) fn merge_selected(
    resources: &mut Vec<Resource>,
    patch: &Resource,
    target: &Selector,
    context: PatchContext<'_>,
    at: &FieldLocation,
) -> Result<(), BuildError> {
    let selection = target.selection()?;
    let mut kept = Vec::with_capacity(resources.len());
    for mut resource in resources.drain(..) {
        if selection.matches(&resource) {
            let mut patch = patch.clone();
            let api_version = resource.api_version().to_owned();
            if api_version.is_empty() {
                let text = format!("{} has no apiVersion, which the patch would take", resource.id());
                return Err(at.error(ErrorClass::Unsupported, text));
            }
            patch.set("apiVersion", &api_version);
            if !merge_into(&mut resource, &patch, context, at)? {
                continue;
            }
        }
        kept.push(resource);
    }
    replace_resources(resources, kept, at)
}

/// True if a merge deletes or replaces all annotations, including those internal to kustomize.
fn takes_annotations(patch: &Value) -> bool {
    let is_taken = |value: &Value| {
        let word = value.get("$patch").and_then(Value::as_str);
        value.is_null() || word.is_some_and(|word| word != "merge")
    };
    let metadata = patch.get("metadata");
    metadata.is_some_and(is_taken) || metadata.and_then(|it| it.get("annotations")).is_some_and(is_taken)
}

/// True if a patch replaces a field or one of its parents as a whole.
fn replaces(patch: &Value, field: &FieldSpec) -> bool {
    let is_replaced = |value: &Value| value.get("$patch").is_some_and(|word| word != "merge");
    let mut here = Some(patch);
    for step in field.path.split('/') {
        if here.is_some_and(is_replaced) {
            return true;
        }
        here = here.and_then(|value| value.get(step));
    }
    here.is_some_and(is_replaced)
}

/// Merges a patch; false if the object is deleted.
fn merge_into(
    resource: &mut Resource,
    patch: &Resource,
    context: PatchContext<'_>,
    at: &FieldLocation,
) -> Result<bool, BuildError> {
    let mut unfolded = None;
    // Kustomize writes the annotations of the patch into the map of the object. If that map is in
    // braces, no text in it is folded.
    let patch = match patch.spelling.has_folded_texts() && resource.spelling.has_annotations_in_braces() {
        true => {
            let unfolded = unfolded.insert(patch.clone());
            unfolded.unfold_annotations();
            &*unfolded
        }
        false => patch,
    };
    let id = resource.id();
    if resource.has_null_namespace() {
        let text = format!("the namespace of {id} is null; leave it out");
        return Err(at.error(ErrorClass::Unsupported, text));
    }
    if patch.allows_name || patch.allows_kind {
        resource.record_name();
    }
    let keeps_nulls = resource
        .spelling
        .keeps_nulls()
        .map_err(|text| at.error(ErrorClass::Unsupported, format!("{id} {text}")))?;
    if patch.spelling.has_nulls_in_braces() {
        let text = "the patch has a field without a value inside braces; write null or ''";
        return Err(at.error(ErrorClass::Unsupported, text));
    }
    for field in ["labels", "annotations"] {
        for key in patch.texts(field).into_iter().flat_map(Map::keys) {
            resource.spelling.forget_text(&format!("{field}/{key}"));
        }
    }
    let plain_namespace = resource.plain_namespace(&patch.body);
    let Resource { body, spelling, .. } = resource;
    spelling
        .resolve_untyped(body)
        .map_err(|text| at.error(ErrorClass::Unsupported, format!("{id} {text}")))?;
    let shared = resource.sharing.snapshot(&mut resource.body);
    let body = resource.body.take();
    let in_file = |text: &str| context.files.is_quoted(&resource.origin.file, text);
    let is_quoted = |text: &str| resource.spelling.is_quoted(text, in_file);
    let quoted = RefCell::default();
    let writing = TargetStyle { keeps_nulls, is_quoted: Some(&is_quoted), quoted_scalars: Some(&quoted) };
    let before = yaml::estimate_value(&body);
    let done = merge(body, &patch.body, context.schemas, writing);
    context.files.count_visits(1, 1, at)?;
    if let Ok(Merged::Object(body)) = &done {
        context.files.reserve(yaml::estimate_value(body).saturating_sub(before), at)?;
    }
    resource.spelling.merge(&patch.spelling);
    resource.spelling.record_quoted_scalars(quoted.into_inner());
    if takes_annotations(&patch.body) {
        resource.clear_internal_annotations();
    }
    match done.map_err(|fault| at.error(ErrorClass::Patch, format!("{id}: {fault}")))? {
        Merged::Deleted => return Ok(false),
        Merged::Object(body) => resource.body = body,
    }
    let is_new = |field: &FieldSpec| replaces(&patch.body, field);
    resource.sharing.propagate(shared, &mut resource.body, is_new, |_| true);
    if resource.is_empty() {
        return Ok(false);
    }
    if !patch.allows_kind {
        resource.set("kind", &id.gvk.kind);
    }
    if !patch.allows_name {
        resource.set_name(&id.name);
    }
    resource.restore_namespace(&id.namespace, plain_namespace);
    Ok(true)
}
