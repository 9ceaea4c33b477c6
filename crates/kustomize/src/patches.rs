//! Applies patches: detects their type, selects the objects, and changes them.

use std::cell::RefCell;

use serde_json::{Map, Value};

use super::bounds::LOOKS_BY_NAMES;
use super::build::replace_resources;
use super::configuration::FieldSpec;
use super::error::{BuildError, ErrorClass, FieldLocation};
use super::files::{Files, Folder};
use super::json_patch::{self, Operation};
use super::json_text::is_written_as_go_does;
use super::kustomization::Patch;
use super::node::LocatedText;
use super::resource::Resource;
use super::schema::Schemas;
use super::select::Selector;
use super::strategic::{Merged, TargetStyle, merge};
use moorline_yaml as yaml;

/// A parsed patch.
#[derive(Debug)]
enum ParsedPatch {
    Merges(Vec<Resource>),
    Operations(Vec<Operation>),
    Nothing,
}

/// Context of a patch: files to read it from, and schemas to merge by.
#[derive(Debug, Clone, Copy)]
pub(super) struct PatchContext<'a> {
    pub(super) files: &'a Files<'a>,
    pub(super) folder: &'a Folder,
    pub(super) schemas: &'a Schemas,
}

/// Applies one entry of `patches`.
pub(super) fn apply(
    resources: &mut Vec<Resource>,
    patch: &Patch,
    ground: PatchContext<'_>,
) -> Result<(), BuildError> {
    let (name, bytes) = ground.source(patch)?;
    let cost = yaml::estimate_file(&bytes);
    ground.files.reserve(cost, &patch.at)?;
    let done = apply_read(resources, patch, read(&name, &bytes, &patch.at, ground.files)?, ground);
    ground.files.release(cost);
    done
}

fn apply_read(
    resources: &mut Vec<Resource>,
    patch: &Patch,
    read: ParsedPatch,
    ground: PatchContext<'_>,
) -> Result<(), BuildError> {
    match read {
        ParsedPatch::Nothing => Ok(()),
        ParsedPatch::Operations(operations) => {
            let Some(target) = &patch.target else {
                let text = "a JSON patch needs a target: it does not say itself which object it changes";
                return Err(patch.at.error(ErrorClass::Patch, text));
            };
            operate(resources, &operations, target, (&patch.at, true), ground)
        }
        ParsedPatch::Merges(mut merges) => {
            for merge in &mut merges {
                (merge.allows_name, merge.allows_kind) = (patch.allow_name_change, patch.allow_kind_change);
                // Kustomize rewrites all annotations of a patch when it records options among them,
                // and all labels when it matches the patch to a target. A null then becomes a text
                // and deletes nothing.
                if patch.target.is_some() {
                    merge.convert_to_texts("labels")?;
                }
                if patch.target.is_some() || merge.allows_name || merge.allows_kind {
                    merge.convert_to_texts("annotations")?;
                }
            }
            match (&patch.target, merges.as_slice()) {
                (Some(target), [merge]) => merge_selected(resources, merge, target, ground, &patch.at),
                (Some(_), _) => {
                    let text = "a patch of several documents cannot have a target; make an entry of each";
                    Err(patch.at.error(ErrorClass::Patch, text))
                }
                (None, _) => merge_all(resources, &merges, ground, &patch.at),
            }
        }
    }
}

/// Applies an entry of `patchesStrategicMerge`.
pub(super) fn apply_merge(
    resources: &mut Vec<Resource>,
    entry: &LocatedText,
    ground: PatchContext<'_>,
) -> Result<(), BuildError> {
    let inline = ground.files.resources(&ground.files.display_path(&entry.at.file), entry.text.as_bytes());
    let mut merges = match inline {
        Ok(merges) => merges,
        Err(_) => {
            let (path, bytes) = ground.files.file(ground.folder, &entry.text, &entry.at)?;
            ground.files.resources(&ground.files.display_path(&path), &bytes)?
        }
    };
    if merges.is_empty() {
        return Err(entry.at.error(ErrorClass::Patch, "the patch is empty"));
    }
    for merge in &mut merges {
        merge.convert_to_texts("labels")?;
        merge.convert_to_texts("annotations")?;
    }
    merge_all(resources, &merges, ground, &entry.at)
}

/// Applies an entry of `patchesJson6902`.
pub(super) fn apply_operations(
    resources: &mut [Resource],
    patch: &Patch,
    ground: PatchContext<'_>,
) -> Result<(), BuildError> {
    let target = patch.target.as_ref().filter(|target| !target.name.is_empty());
    let Some(target) = target else {
        return Err(patch.at.error(ErrorClass::Patch, "the target needs a name"));
    };
    let (name, bytes) = ground.source(patch)?;
    match operations(&name, &bytes, &patch.at, ground.files)? {
        operations if operations.is_empty() => Err(patch.at.error(ErrorClass::Patch, "the patch is empty")),
        operations => operate(resources, &operations, target, (&patch.at, false), ground),
    }
}

impl PatchContext<'_> {
    /// Returns the text of a patch, and the name of its file.
    fn source(&self, patch: &Patch) -> Result<(String, Vec<u8>), BuildError> {
        let inline = patch.patch.trim();
        match (inline.is_empty(), patch.path.is_empty()) {
            (true, true) => Err(patch.at.error(ErrorClass::Patch, "a patch needs a path or an inline patch")),
            (false, false) => Err(patch
                .at
                .error(ErrorClass::Patch, "a patch has either a path or an inline patch, not both")),
            (false, true) => Ok((self.files.display_path(&patch.at.file), inline.as_bytes().to_vec())),
            (true, false) => {
                let (path, bytes) = self.files.file(self.folder, &patch.path, &patch.at.key("path"))?;
                Ok((self.files.display_path(&path), bytes.to_vec()))
            }
        }
    }
}

fn read(name: &str, bytes: &[u8], at: &FieldLocation, files: &Files<'_>) -> Result<ParsedPatch, BuildError> {
    match files.resources(name, bytes) {
        Ok(merges) if merges.is_empty() => Ok(ParsedPatch::Nothing),
        Ok(merges) => Ok(ParsedPatch::Merges(merges)),
        Err(refusal) => match operations(name, bytes, at, files) {
            Ok(operations) => Ok(ParsedPatch::Operations(operations)),
            Err(other) if is_list(bytes, files) => Err(other),
            Err(_) => Err(refusal.with_class(ErrorClass::Patch)),
        },
    }
}

/// True if the text was meant as a JSON patch.
fn is_list(bytes: &[u8], files: &Files<'_>) -> bool {
    let read = yaml::read_as_written("", bytes, &|| files.is_awaited());
    let first = read.ok().and_then(|documents| documents.into_iter().next());
    first.is_some_and(|first| first.value.is_array())
}

fn operations(
    name: &str,
    bytes: &[u8],
    at: &FieldLocation,
    files: &Files<'_>,
) -> Result<Vec<Operation>, BuildError> {
    // Kustomize reads a patch that begins with a bracket as JSON, and any other one as YAML.
    if let (b"[", Err(error)) = (&bytes[..bytes.len().min(1)], serde_json::from_slice::<Value>(bytes)) {
        let text = format!(
            "the patch begins with [ but is not JSON; write it as JSON, or as a YAML block list: {error}"
        );
        return Err(at.error(ErrorClass::Patch, text));
    }
    let documents = yaml::read_as_written(name, bytes, &|| files.is_awaited());
    let documents = documents.map_err(|error| BuildError::invalid_yaml(ErrorClass::Patch, &error))?;
    let value = documents.into_iter().next().map_or(Value::Null, |document| document.value);
    let operations =
        json_patch::parse(&value).map_err(|fault| at.error(ErrorClass::Patch, fault.to_string()))?;
    let is_json = bytes.starts_with(b"[");
    if is_json
        && operations.iter().any(Operation::is_test)
        && !std::str::from_utf8(bytes).is_ok_and(is_written_as_go_does)
    {
        let text = "a test in a patch that is JSON compares texts and numbers as they are written; write the patch as a list in lines";
        return Err(at.error(ErrorClass::Unsupported, text));
    }
    Ok(operations)
}

fn operate(
    resources: &mut [Resource],
    operations: &[Operation],
    target: &Selector,
    (at, remembers): (&FieldLocation, bool),
    ground: PatchContext<'_>,
) -> Result<(), BuildError> {
    let selection = target.selection()?;
    if operations.iter().any(json_patch::reads_all_annotations) {
        let text = "the operation reads all annotations, and kustomize keeps internal ones among them";
        return Err(at.error(ErrorClass::Unsupported, text));
    }
    let takes_annotation = operations.iter().any(json_patch::copies_annotation);
    for resource in resources.iter_mut().filter(|resource| selection.matches(resource)) {
        ground.files.count_visits(1, operations.len(), at)?;
        if takes_annotation && resource.spelling.has_folded_texts() {
            let text = format!(
                "an annotation of {} is folded and has an indented line; write it with |",
                resource.id()
            );
            return Err(at.error(ErrorClass::Unsupported, text));
        }
        if remembers {
            resource.record_name();
            // In kustomize there always are annotations: its own.
            if let Some(metadata) = resource.metadata_mut() {
                metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
            }
        }
        let before = yaml::estimate_value(&resource.body);
        let done = json_patch::apply(&mut resource.body, operations);
        ground.files.reserve(yaml::estimate_value(&resource.body).saturating_sub(before), at)?;
        done.map_err(|fault| at.error(ErrorClass::Patch, format!("{}: {fault}", resource.first_id())))?;
        through_floats(&mut resource.body);
        resource.spelling.record_json_round_trip(&resource.body);
        resource.sharing.forget();
        // Kustomize takes a list in their place for keys and values in turn.
        if resource
            .body
            .pointer("/metadata/annotations")
            .and_then(Value::as_array)
            .is_some_and(|it| !it.is_empty())
        {
            let text = format!(
                "after the patch metadata.annotations of {} is a list, not a mapping",
                resource.first_id()
            );
            return Err(at.error(ErrorClass::Patch, text));
        }
        resource.convert_to_texts("annotations")?;
        if !resource.body.is_object() {
            return Err(at.error(ErrorClass::Patch, "after the patch the object is not a mapping"));
        }
    }
    Ok(())
}

/// Largest integer up to which floats represent every integer.
const EXACT: u64 = 1 << 53;

/// Converts integers as kustomize's JSON patches do, by way of floats.
#[expect(clippy::cast_precision_loss, reason = "it is what the tool does")]
fn through_floats(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(integer) = number.as_i64().filter(|integer| integer.unsigned_abs() > EXACT) {
                let float = integer as f64;
                // Go writes the digits needed to identify the float, followed by zeros; above 64
                // bits it stays a float.
                *value = float.to_string().parse::<i64>().map_or_else(|_| Value::from(float), Value::from);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(through_floats),
        Value::Object(map) => map.values_mut().for_each(through_floats),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Merges each patch into the object that it names.
fn merge_all(
    resources: &mut Vec<Resource>,
    merges: &[Resource],
    ground: PatchContext<'_>,
    at: &FieldLocation,
) -> Result<(), BuildError> {
    for patch in merges {
        ground.files.count_visits(resources.len(), LOOKS_BY_NAMES, at)?;
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
        if !merge_into(&mut resources[target], patch, ground, at)? {
            resources.remove(target);
        }
    }
    Ok(())
}

fn merge_selected(
    resources: &mut Vec<Resource>,
    patch: &Resource,
    target: &Selector,
    ground: PatchContext<'_>,
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
            if !merge_into(&mut resource, &patch, ground, at)? {
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
    ground: PatchContext<'_>,
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
    let in_file = |text: &str| ground.files.is_quoted(&resource.origin.file, text);
    let is_quoted = |text: &str| resource.spelling.is_quoted(text, in_file);
    let quoted = RefCell::default();
    let writing = TargetStyle { keeps_nulls, is_quoted: Some(&is_quoted), quoted_scalars: Some(&quoted) };
    let before = yaml::estimate_value(&body);
    let done = merge(body, &patch.body, ground.schemas, writing);
    ground.files.count_visits(1, 1, at)?;
    if let Ok(Merged::Object(body)) = &done {
        ground.files.reserve(yaml::estimate_value(body).saturating_sub(before), at)?;
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
