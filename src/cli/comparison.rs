//! `moorline render --check-against`: whether kustomizations come to the same here and by the real tool.
//!
//! In: a folder and a program (`kubectl` or `kustomize`). Out: a line for every kustomization that differs or is refused, and how many are
//! equal. The tool runs as the person who asks would run it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde_json::{Map, Value};

use super::exit::Exit;
use super::remote_bases::RemoteBases;
use super::{Streams, wall};
use crate::render::{Kind, Options, is_kustomization, kustomization};
use crate::source::AllowList;
use crate::yaml::{self, Dialect};

/// The most folders that are compared.
const MAX_FOLDERS: usize = 10_000;

/// What a comparison came to.
enum Verdict {
    Equal,
    /// The tool builds it; why it is refused here.
    Refused(String),
    /// What differs first.
    Different(String),
    /// The tool does not build it either.
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
            Verdict::Equal => equal += 1,
            Verdict::Neither => neither += 1,
            Verdict::Refused(why) => {
                refused += 1;
                streams.say(&format!("refused: {}: {why}", folder.display()));
            }
            Verdict::Different(what) => {
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

/// The folders below a path that hold a kustomization.
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

fn compare(folder: &Path, root: Option<&Path>, program: &Path) -> anyhow::Result<Verdict> {
    let mut options = Options { kind: Kind::Kustomize, ..Options::default() };
    let tree = wall::read(folder, (root, &[]), &mut options, &mut RemoteBases::new(AllowList::default()))?;
    let ours = kustomization(&tree, &options.path);
    let theirs = asked(folder, program)?;
    Ok(match (ours, theirs) {
        (Err(_), None) => Verdict::Neither,
        (Err(fault), Some(_)) => Verdict::Refused(fault.to_string()),
        (Ok(objects), None) => {
            Verdict::Different(format!("{} objects here, and the tool refuses", objects.len()))
        }
        (Ok(ours), Some(theirs)) => match difference(&ours, &theirs) {
            None => Verdict::Equal,
            Some(what) => Verdict::Different(what),
        },
    })
}

/// What the tool makes of a folder; none if it refuses.
fn asked(folder: &Path, program: &Path) -> anyhow::Result<Option<Vec<Value>>> {
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

/// The first object that is not the same.
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
    let extra =
        ours.keys().find(|id| !theirs.contains_key(*id)).map(|id| format!("{id} should not be there"));
    let other = theirs.iter().find(|(id, object)| ours.get(*id).is_some_and(|ours| ours != *object));
    missing.or(extra).or_else(|| other.map(|(id, _)| format!("{id} is another")))
}
