//! Checks the Syncs among rendered objects, and the folders of this repository that they follow.
//!
//! In: rendered objects, and the path that they were read from. Out: the problems that the daemon
//! would report for those Syncs and for the objects in their folders, before they are committed.
//! Syncs in such folders are checked, too. The content of other repositories is not known here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::manifests::{self, Selection};
use super::remote_bases::RemoteBases;
use super::schema_check::Checker;
use super::{Streams, wall};
use crate::api::{SyncName, definition};
use crate::desired::Scopes;
use crate::nearest::nearest;
use crate::object::Object;
use crate::render::Packed;
use crate::source::{Address, remotes};
use crate::sync::wish::{self, Wish};

/// The most Syncs that are checked.
const MAX_SYNCS: usize = 1000;

/// JSON pointer to the schema of `spec` in the definition of Syncs.
const FIELDS: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";

/// Checks all Syncs among the objects and the folders that they follow here. Prints the problems;
/// returns true if there are none.
pub(super) fn are_sound(
    path: &Path,
    selection: &Selection,
    objects: &[Packed],
    checker: Option<&mut Checker>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<bool> {
    let mut open = syncs(objects);
    if open.is_empty() {
        return Ok(true);
    }
    let mut here = Here::at(wall::folder(path, selection.root.as_deref())?, selection, checker)?;
    let (mut seen, mut sound) = (BTreeSet::new(), true);
    while let Some(sync) = open.pop() {
        if seen.len() == MAX_SYNCS {
            streams.say(&format!("note: more than {MAX_SYNCS} Syncs are not looked at"));
            break;
        }
        if !seen.insert(sync.id.clone()) {
            continue;
        }
        match looked_at(&sync, &mut here, streams)? {
            Some(inner) => open.extend(inner),
            None => sound = false,
        }
    }
    Ok(sound)
}

fn syncs(objects: &[Packed]) -> Vec<Object> {
    objects.iter().filter(|object| object.id.is("moorline.dev", "Sync")).map(Packed::object).collect()
}

/// Checks one Sync and returns the Syncs in its folder; `None` after printing a problem.
fn looked_at(
    sync: &Object,
    here: &mut Here<'_>,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<Vec<Object>>> {
    let mut told = |what: &str| {
        streams.say(&format!("error: {}: {}: {what}", sync.origin, sync.id));
        Ok(None)
    };
    if let Some(field) = unknown_field(&sync.body)? {
        return told(&field);
    }
    let name = SyncName::new(sync.id.namespace().unwrap_or("default"), sync.id.name());
    let read = wish::read(Value::Object(sync.body.clone()));
    let wish = match read.and_then(|read| wish::wish(&name, &read.spec)) {
        Ok(wish) => wish,
        Err(refusal) => return told(&refusal.to_string()),
    };
    let elsewhere = match (wish.values.as_slice(), &wish.chart) {
        ([], None) => None,
        ([], Some(_)) => Some("renders a chart that is published elsewhere, which is not fetched here"),
        _ => Some("has variables in ConfigMaps or Secrets, which are not known here"),
    };
    if let Some(text) = elsewhere {
        streams.say(&format!("note: {} {text}: what it follows is not looked at", sync.id));
        return Ok(Some(Vec::new()));
    }
    let folder = here.root.join(&wish.path);
    if folder.canonicalize().is_ok_and(|place| !place.starts_with(&here.root)) {
        return told(&format!("spec.path: {} leads out of the repository", wish.path));
    }
    match (here.is_followed_by(&wish.address), folder.exists()) {
        (Some(true) | None, true) => {}
        (Some(true), false) => {
            return told(&format!("spec.path: {} is not in this repository", wish.path));
        }
        (Some(false), _) | (None, false) => {
            streams.say(&format!("note: {} follows another repository, which is not looked at", sync.id));
            return Ok(Some(Vec::new()));
        }
    }
    let inner = objects_of(&folder, here, &wish, streams)?;
    if inner.is_none() {
        streams.say(&format!("error: {}: {}: what it follows cannot be applied", sync.origin, sync.id));
    }
    Ok(inner.map(|objects| syncs(&objects)))
}

/// The objects that a Sync would apply; `None` after printing a problem.
fn objects_of(
    folder: &Path,
    here: &mut Here<'_>,
    wish: &Wish,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<Vec<Packed>>> {
    let mut options = wish.options.clone();
    let shown = here.shown.join(&wish.path);
    let shown = if shown.as_os_str().is_empty() { Path::new(".") } else { &shown };
    let read = manifests::files_for(shown, (Some(&here.root), &[]), &mut here.bases, &mut options);
    let tree = match read {
        Ok(tree) => tree,
        Err(error) => {
            streams.say(&format!("error: {}: {error:#}", folder.display()));
            return Ok(None);
        }
    };
    let Some(complete) = manifests::rendered(&tree, &options, streams)? else { return Ok(None) };
    let mut is_sound = true;
    let mut scopes = Scopes::builtin();
    if let Some(checker) = &mut here.checker {
        checker.learn(&complete);
        is_sound = checker.check(&complete, streams).is_sound;
        scopes.clone_from(checker.scopes());
    }
    let objects = complete.objects().to_vec();
    let desired = manifests::desire(complete, &wish.target_namespace, &scopes, streams);
    Ok(desired.filter(|_| is_sound).map(|_| objects))
}

/// The repository that contains the rendered path.
struct Here<'a> {
    checker: Option<&'a mut Checker>,
    root: PathBuf,
    shown: PathBuf,
    /// The remotes of the repository; empty if it has none.
    remotes: Vec<Address>,
    bases: RemoteBases,
}

impl<'a> Here<'a> {
    fn at(root: PathBuf, selection: &Selection, checker: Option<&'a mut Checker>) -> anyhow::Result<Self> {
        let remotes = remotes(&root).iter().filter_map(|url| Address::any(url).ok()).collect();
        let shown = wall::shown(&root, &std::env::current_dir()?).into();
        let bases = RemoteBases::new(selection.allowed()?);
        Ok(Self { checker, root, shown, remotes, bases })
    }

    /// True if a Sync follows this repository; `None` if the remotes are not known.
    fn is_followed_by(&self, address: &Address) -> Option<bool> {
        let is_same = |remote: &Address| remote.is_same_place(address);
        (!self.remotes.is_empty()).then(|| self.remotes.iter().any(is_same))
    }
}

/// The first unknown field of a spec. The API server would drop it without an error.
fn unknown_field(body: &Map<String, Value>) -> anyhow::Result<Option<String>> {
    let definition = definition()?;
    let (Some(schema), Some(spec)) = (definition.pointer(FIELDS), body.get("spec")) else { return Ok(None) };
    Ok(unknown_below("spec", spec, schema))
}

fn unknown_below(path: &str, value: &Value, schema: &Value) -> Option<String> {
    match value {
        Value::Array(items) => {
            let below = |(at, item)| unknown_below(&format!("{path}[{at}]"), item, schema.get("items")?);
            items.iter().enumerate().find_map(below)
        }
        Value::Object(fields) => {
            let known = schema.get("properties")?.as_object()?;
            fields.iter().find_map(|(key, value)| match known.get(key) {
                Some(schema) => unknown_below(&format!("{path}.{key}"), value, schema),
                None => {
                    let meant = nearest(key, known.keys().map(String::as_str));
                    let meant = meant.map(|it| format!("; did you mean {it}?")).unwrap_or_default();
                    Some(format!("{path}.{key} is no field of a Sync{meant}"))
                }
            })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}
