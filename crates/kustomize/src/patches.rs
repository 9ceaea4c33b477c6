//! Applies patches: reads them, detects their type, and runs JSON patches.
//!
//! In: an entry of `patches`, `patchesStrategicMerge` or `patchesJson6902`. Out: the changed
//! resources; strategic merges are in `strategic_patches.rs`.

use serde_json::{Map, Value};

use super::error::{BuildError, ErrorClass, FieldLocation};
use super::files::{Files, Folder};
use super::json_patch::{self, Operation};
use super::json_text::is_written_as_go_does;
use super::kustomization::Patch;
use super::node::LocatedText;
use super::resource::Resource;
use super::schema::Schemas;
use super::select::Selector;
use super::strategic_patches::{merge_all, merge_selected};
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
    context: PatchContext<'_>,
) -> Result<(), BuildError> {
    let (name, bytes) = context.source(patch)?;
    let cost = yaml::estimate_file(&bytes);
    context.files.reserve(cost, &patch.at)?;
    let done = apply_read(resources, patch, read(&name, &bytes, &patch.at, context.files)?, context);
    context.files.release(cost);
    done
}

fn apply_read(
    resources: &mut Vec<Resource>,
    patch: &Patch,
    read: ParsedPatch,
    context: PatchContext<'_>,
) -> Result<(), BuildError> {
    match read {
        ParsedPatch::Nothing => Ok(()),
        ParsedPatch::Operations(operations) => {
            let Some(target) = &patch.target else {
                let text = "a JSON patch needs a target: it does not say itself which object it changes";
                return Err(patch.at.error(ErrorClass::Patch, text));
            };
            operate(resources, &operations, target, (&patch.at, true), context)
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
                (Some(target), [merge]) => merge_selected(resources, merge, target, context, &patch.at),
                (Some(_), _) => {
                    let text = "a patch of several documents cannot have a target; make an entry of each";
                    Err(patch.at.error(ErrorClass::Patch, text))
                }
                (None, _) => merge_all(resources, &merges, context, &patch.at),
            }
        }
    }
}

/// Applies an entry of `patchesStrategicMerge`.
pub(super) fn apply_merge(
    resources: &mut Vec<Resource>,
    entry: &LocatedText,
    context: PatchContext<'_>,
) -> Result<(), BuildError> {
    let inline = context.files.resources(&context.files.display_path(&entry.at.file), entry.text.as_bytes());
    let mut merges = match inline {
        Ok(merges) => merges,
        Err(_) => {
            let (path, bytes) = context.files.file(context.folder, &entry.text, &entry.at)?;
            context.files.resources(&context.files.display_path(&path), &bytes)?
        }
    };
    if merges.is_empty() {
        return Err(entry.at.error(ErrorClass::Patch, "the patch is empty"));
    }
    for merge in &mut merges {
        merge.convert_to_texts("labels")?;
        merge.convert_to_texts("annotations")?;
    }
    merge_all(resources, &merges, context, &entry.at)
}

/// Applies an entry of `patchesJson6902`.
pub(super) fn apply_operations(
    resources: &mut [Resource],
    patch: &Patch,
    context: PatchContext<'_>,
) -> Result<(), BuildError> {
    let target = patch.target.as_ref().filter(|target| !target.name.is_empty());
    let Some(target) = target else {
        return Err(patch.at.error(ErrorClass::Patch, "the target needs a name"));
    };
    let (name, bytes) = context.source(patch)?;
    match operations(&name, &bytes, &patch.at, context.files)? {
        operations if operations.is_empty() => Err(patch.at.error(ErrorClass::Patch, "the patch is empty")),
        operations => operate(resources, &operations, target, (&patch.at, false), context),
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
            (false, true) => Ok((patch.at.display(self.files), inline.as_bytes().to_vec())),
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
    context: PatchContext<'_>,
) -> Result<(), BuildError> {
    let selection = target.selection()?;
    if operations.iter().any(json_patch::reads_all_annotations) {
        let text = "the operation reads all annotations, and kustomize keeps internal ones among them";
        return Err(at.error(ErrorClass::Unsupported, text));
    }
    let takes_annotation = operations.iter().any(json_patch::copies_annotation);
    for resource in resources.iter_mut().filter(|resource| selection.matches(resource)) {
        context.files.count_visits(1, operations.len(), at)?;
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
        context.files.reserve(yaml::estimate_value(&resource.body).saturating_sub(before), at)?;
        done.map_err(|fault| at.error(ErrorClass::Patch, format!("{}: {fault}", resource.first_id())))?;
        through_floats(&mut resource.body);
        resource.spelling.record_json_round_trip(&resource.body);
        resource.sharing.forget();
        // Kustomize takes a list in their place for keys and values in turn.
        for texts in ["annotations", "labels"] {
            let list = resource.body.pointer(&format!("/metadata/{texts}")).and_then(Value::as_array);
            if list.is_some_and(|list| !list.is_empty()) {
                let id = resource.first_id();
                let text = format!("after the patch metadata.{texts} of {id} is a list, not a mapping");
                return Err(at.error(ErrorClass::Patch, text));
            }
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
