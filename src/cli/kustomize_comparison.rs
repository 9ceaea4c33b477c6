//! `moorline render --check-against`: compares our build of kustomizations with the real tool's.
//!
//! In: a folder and a program (`kubectl` or `kustomize`). Out: a line for every kustomization that
//! differs or is refused, and the number of equal ones. The tool runs with the rights and
//! environment of the user.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde_json::{Map, Value};

use super::Streams;
use super::exit::Exit;
use super::remote_bases::RemoteBases;
use super::repository_root;
use crate::render::{RenderOptions, SourceType, build_kustomization, is_kustomization};
use crate::source::AllowList;
use crate::yaml::{self, Dialect};

/// The most folders that are compared.
const MAX_FOLDERS: usize = 10_000;

/// Result of one comparison.
enum ComparisonResult {
    Equal,
    /// The tool builds it, and we refuse it for this reason.
    Refused(String),
    /// The first difference.
    Different(String),
    /// Neither the tool nor we can build it.
    Neither,
}

/// Compares every kustomization below a path.
pub(super) fn compare_all(
    path: &Path,
    root: Option<&Path>,
    program: &Path,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let mut folders = Vec::new();
    collect(path, &mut folders)?;
    let (mut equal, mut refused, mut different, mut neither) = (0_usize, 0_usize, 0_usize, 0_usize);
    for folder in &folders {
        match compare(folder, root, program)? {
            ComparisonResult::Equal => equal += 1,
            ComparisonResult::Neither => neither += 1,
            ComparisonResult::Refused(why) => {
                refused += 1;
                streams.say(&format!("refused: {}: {why}", folder.display()));
            }
            ComparisonResult::Different(what) => {
                different += 1;
                streams.say(&format!("different: {}: {what}", folder.display()));
            }
        }
    }
    writeln!(
        streams.data,
        "equal {equal}, refused {refused}, different {different}, built by neither {neither}"
    )?;
    Ok(if different == 0 { Exit::Done } else { Exit::Failure })
}

/// Collects the folders below a path that hold a kustomization.
fn collect(path: &Path, folders: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let unreadable = || format!("{}: cannot be read", path.display());
    let mut inner = Vec::new();
    let mut is_one = false;
    for entry in std::fs::read_dir(path).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name();
        let name = name.to_string_lossy();
        is_one |= !is_folder && is_kustomization(&name);
        if is_folder && name != ".git" {
            inner.push(entry.path());
        }
    }
    if is_one && folders.len() < MAX_FOLDERS {
        folders.push(path.to_owned());
    }
    inner.sort();
    inner.iter().try_for_each(|folder| collect(folder, folders))
}

fn compare(folder: &Path, root: Option<&Path>, program: &Path) -> anyhow::Result<ComparisonResult> {
    let mut options = RenderOptions { kind: SourceType::Kustomize, ..RenderOptions::default() };
    let tree = repository_root::read_tree(
        folder,
        (root, &[]),
        &mut options,
        &mut RemoteBases::new(AllowList::default()),
    )?;
    let ours = build_kustomization(&tree, &options.path);
    let theirs = build_with_tool(folder, program)?;
    Ok(match (ours, theirs) {
        (Err(_), None) => ComparisonResult::Neither,
        (Err(fault), Some(_)) => ComparisonResult::Refused(fault.to_string()),
        (Ok(objects), None) => {
            ComparisonResult::Different(format!("{} objects here, but the tool fails", objects.len()))
        }
        (Ok(ours), Some(theirs)) => match difference(&ours, &theirs) {
            None => ComparisonResult::Equal,
            Some(what) => ComparisonResult::Different(what),
        },
    })
}

/// Builds a folder with the tool; `None` if the tool refuses it.
fn build_with_tool(folder: &Path, program: &Path) -> anyhow::Result<Option<Vec<Value>>> {
    let is_kubectl = program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("kubectl"));
    let verb = if is_kubectl { "kustomize" } else { "build" };
    let output = Command::new(program).arg(verb).arg(folder).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{} cannot be run", program.display()))?;
    if !output.status.success() {
        return Ok(None);
    }
    let documents = yaml::read("the tool's output", &output.stdout, Dialect::Kubectl)?;
    Ok(Some(documents.into_iter().map(|document| document.value).collect()))
}

/// Describes the first object that differs, with its field and both values.
pub(super) fn difference(ours: &[Map<String, Value>], theirs: &[Value]) -> Option<String> {
    let id = |object: &dyn Fn(&str) -> String| {
        ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"].map(object).join(" ")
    };
    let text = |value: &Value, pointer: &str| {
        value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let by_id = |object: Value| (id(&|pointer| text(&object, pointer)), object);
    let ours: BTreeMap<String, Value> = ours.iter().map(|map| by_id(Value::Object(map.clone()))).collect();
    let theirs: BTreeMap<String, Value> = theirs.iter().cloned().map(by_id).collect();
    let missing = theirs.keys().find(|id| !ours.contains_key(*id)).map(|id| format!("{id} is missing"));
    let extra = ours
        .keys()
        .find(|id| !theirs.contains_key(*id))
        .map(|id| format!("{id} is not in the tool's output"));
    let other = || {
        theirs.iter().find_map(|(id, theirs)| Some(format!("{id}: {}", unlike_field(ours.get(id)?, theirs)?)))
    };
    missing.or(extra).or_else(other)
}

/// Describes the first field in which two objects differ; values of a Secret are not shown.
fn unlike_field(ours: &Value, theirs: &Value) -> Option<String> {
    let (field, ours, theirs) =
        find_mismatch(String::new(), Some(ours), Some(theirs), &kind_of(ours, theirs))?;
    Some(format!("{field} is {ours} here and {theirs} in the tool's output"))
}

/// `Secret` if one of the two objects is a Secret, else the kind of the second.
fn kind_of(ours: &Value, theirs: &Value) -> String {
    let kind = |object: &Value| object.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind(ours) == "Secret" { kind(ours) } else { kind(theirs) }
}

type FieldMismatch = (String, String, String);

fn find_mismatch(
    field: String,
    ours: Option<&Value>,
    theirs: Option<&Value>,
    kind: &str,
) -> Option<FieldMismatch> {
    match (ours, theirs) {
        (ours, theirs) if ours == theirs => None,
        (Some(Value::Object(ours)), Some(Value::Object(theirs))) => {
            let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
            let inner = |key: &String| match (field.as_str(), key.contains('.')) {
                (outer, true) => format!("{outer}[{key}]"),
                ("", false) => key.clone(),
                (outer, false) => format!("{outer}.{key}"),
            };
            keys.into_iter().find_map(|key| find_mismatch(inner(key), ours.get(key), theirs.get(key), kind))
        }
        (Some(Value::Array(ours)), Some(Value::Array(theirs))) => (0..ours.len().max(theirs.len()))
            .find_map(|at| find_mismatch(format!("{field}[{at}]"), ours.get(at), theirs.get(at), kind)),
        (ours, theirs) => {
            let is_shown =
                kind != "Secret" || !(field.starts_with("data") || field.starts_with("stringData"));
            Some((field, shown(ours, is_shown), shown(theirs, is_shown)))
        }
    }
}

/// The most characters of a value that are shown.
const MAX_SHOWN: usize = 200;

fn shown(value: Option<&Value>, is_shown: bool) -> String {
    let text = match value {
        None => return "missing".to_owned(),
        Some(_) if !is_shown => return "another value that is not shown".to_owned(),
        Some(value) => value.to_string(),
    };
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
