//! Checks the Syncs among rendered objects, and the folders of this repository that they follow.
//!
//! In: rendered objects, and the path that they were read from. Out: the problems that the daemon
//! would report for those Syncs and for the objects in their folders, before they are committed.
//! Syncs in such folders are checked, too. The content of other repositories is not known here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Streams;
use super::manifests::{self, Selection};
use super::remote_bases::RemoteBases;
use super::repository_root;
use super::schema_check::SchemaChecker;
use crate::api::SyncName;
use crate::controller::spec;
use crate::controller::spec::{UnknownField, ValidatedSpec, find_unknown_field};
use crate::desired::Scopes;
use crate::object::Object;
use crate::render::PackedObject;
use crate::source::{Address, remotes};

/// The most Syncs that are checked.
const MAX_SYNCS: usize = 1000;

/// Checks all Syncs among the objects and the folders that they follow here. Prints the problems;
/// returns true if there are none.
pub(super) fn check_nested_syncs(
    path: &Path,
    selection: &Selection,
    objects: &[PackedObject],
    checker: Option<&mut SchemaChecker>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<bool> {
    let mut open = syncs(objects);
    if open.is_empty() {
        return Ok(true);
    }
    let mut here = EnclosingRepository::open(
        repository_root::find_root(path, selection.root.as_deref())?,
        selection,
        checker,
    )?;
    let (mut seen, mut sound) = (BTreeSet::new(), true);
    while let Some(sync) = open.pop() {
        if seen.len() == MAX_SYNCS {
            streams.say(&format!("note: only the first {MAX_SYNCS} Syncs are checked"));
            break;
        }
        if !seen.insert(sync.id.clone()) {
            continue;
        }
        match check_sync(&sync, &mut here, streams)? {
            Some(inner) => open.extend(inner),
            None => sound = false,
        }
    }
    Ok(sound)
}

fn syncs(objects: &[PackedObject]) -> Vec<Object> {
    objects
        .iter()
        .filter(|object| object.id.is_kind("moorline.dev", "Sync"))
        .map(PackedObject::object)
        .collect()
}

/// Checks one Sync and returns the Syncs in its folder; `None` after printing a problem.
fn check_sync(
    sync: &Object,
    here: &mut EnclosingRepository<'_>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<Vec<Object>>> {
    let mut report = |what: &str| {
        streams.say(&format!("error: {}: {}: {what}", sync.origin, sync.id));
        Ok(None)
    };
    if let Some(field) = sync.body.get("spec").and_then(describe_unknown_field) {
        return report(&field);
    }
    let name = SyncName::new(sync.id.namespace().unwrap_or("default"), sync.id.name());
    let read = spec::read(Value::Object(sync.body.clone()));
    let valid_spec = match read.and_then(|read| spec::validate(&name, &read.spec)) {
        Ok(valid_spec) => valid_spec,
        Err(refusal) => return report(&refusal.to_string()),
    };
    let elsewhere = match (valid_spec.values_sources().next(), &valid_spec.chart) {
        _ if valid_spec.decryption.is_some() => Some("decrypts files with keys that are not known here"),
        _ if !valid_spec.mounts.iter().all(|mount| here.bases.mounts().has(&mount.path)) => Some(
            "has spec.source.mounts, which are not fetched here (--mount PATH=DIR puts a folder in place of one)",
        ),
        (None, None) => None,
        (None, Some(_)) => Some("renders a published chart, which is not fetched here"),
        (Some(_), _) => Some("has variables or values in ConfigMaps or Secrets, which are not known here"),
    };
    if let Some(text) = elsewhere {
        streams.say(&format!("note: {} {text}: its source is not checked", sync.id));
        return Ok(Some(Vec::new()));
    }
    let folder = here.root.join(&valid_spec.path);
    if folder.canonicalize().is_ok_and(|place| !place.starts_with(&here.root)) {
        return report(&format!("spec.path: {} is outside of the repository", valid_spec.path));
    }
    match (here.is_followed_by(&valid_spec.address), folder.exists()) {
        (Some(true) | None, true) => {}
        (Some(true), false) => {
            return report(&format!("spec.path: {} is not in this repository", valid_spec.path));
        }
        (Some(false), _) | (None, false) => {
            streams.say(&format!("note: {} follows another repository, which is not checked", sync.id));
            return Ok(Some(Vec::new()));
        }
    }
    let inner = objects_of(&folder, here, &valid_spec, streams)?;
    if inner.is_none() {
        streams.say(&format!("error: {}: {}: its source cannot be applied", sync.origin, sync.id));
    }
    Ok(inner.map(|objects| syncs(&objects)))
}

/// The objects that a Sync would apply; `None` after printing a problem.
fn objects_of(
    folder: &Path,
    here: &mut EnclosingRepository<'_>,
    valid_spec: &ValidatedSpec,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<Vec<PackedObject>>> {
    let mut options = valid_spec.options.clone();
    let shown = here.display_root.join(&valid_spec.path);
    let shown = if shown.as_os_str().is_empty() { Path::new(".") } else { &shown };
    let read = manifests::read_files_into(shown, (Some(&here.root), &[]), &mut here.bases, &mut options);
    let tree = match read {
        Ok(tree) => tree,
        Err(error) => {
            streams.say(&format!("error: {}: {error:#}", folder.display()));
            return Ok(None);
        }
    };
    let Some(complete) = manifests::render_files(&tree, &options, streams)? else { return Ok(None) };
    let mut is_sound = true;
    let mut scopes = Scopes::builtin();
    if let Some(checker) = &mut here.checker {
        checker.learn_definitions(&complete);
        is_sound = checker.check(&complete, streams).is_sound;
        scopes.clone_from(checker.scopes());
    }
    let objects = complete.objects().to_vec();
    let desired = manifests::desire(complete, &valid_spec.target_namespace, &scopes, streams);
    Ok(desired.filter(|_| is_sound).map(|_| objects))
}

/// The repository that contains the rendered path.
struct EnclosingRepository<'a> {
    checker: Option<&'a mut SchemaChecker>,
    root: PathBuf,
    display_root: PathBuf,
    /// The remotes of the repository; empty if it has none.
    remotes: Vec<Address>,
    bases: RemoteBases,
}

impl<'a> EnclosingRepository<'a> {
    fn open(
        root: PathBuf,
        selection: &Selection,
        checker: Option<&'a mut SchemaChecker>,
    ) -> anyhow::Result<Self> {
        let remotes = remotes(&root).iter().filter_map(|url| Address::local_or_remote(url).ok()).collect();
        let shown = repository_root::display_root(&root, &std::env::current_dir()?).into();
        let bases = RemoteBases::new(selection.allowed_remotes()?).with_mounts(&selection.mounts);
        Ok(Self { checker, root, display_root: shown, remotes, bases })
    }

    /// True if a Sync follows this repository; `None` if the remotes are not known.
    fn is_followed_by(&self, address: &Address) -> Option<bool> {
        let is_same = |remote: &Address| remote.is_same_repository(address);
        // An artifact is made of a repository, but of which one is not known here.
        if address.registry().is_some() {
            return Some(false);
        }
        (!self.remotes.is_empty()).then(|| self.remotes.iter().any(is_same))
    }
}

/// A sentence about the first unknown field of a spec. The API server would drop the field without
/// an error.
fn describe_unknown_field(spec: &Value) -> Option<String> {
    let UnknownField { path, meant } = find_unknown_field(spec)?;
    let meant = meant.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    Some(format!("{path} is not a field of a Sync{meant}"))
}
