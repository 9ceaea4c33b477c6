//! Reads live objects from the output of `kubectl get -o yaml`.
//!
//! They are read without checks: the API server has already accepted them. They never become
//! desired.

use std::collections::HashMap;

use serde_json::Value;

use super::documents::{Manifest, position_in};
use super::problem::Problem;
use super::rendered::refuse_duplicates;
use super::{RenderOptions, Skipped};
use crate::plain_directory;
use moorline_core::object::{Object, ObjectId};
use moorline_core::tree::{FileTree, MemoryLimit};

/// Live objects below a path.
#[derive(Debug)]
pub struct Dump {
    /// Live objects, each once; none means an empty cluster.
    pub objects: Vec<Object>,
    /// Files that hold no objects.
    pub skipped: Vec<Skipped>,
}

/// Returns the live objects below a path. Duplicates, as in overlapping dumps, count once if their
/// uid is equal.
pub fn dump(tree: &FileTree, path: &str) -> Result<Dump, Vec<Problem>> {
    let options = RenderOptions { path: path.to_owned(), ..RenderOptions::default() };
    let mut found = plain_directory::collect(tree, &options, &object);
    let mut uids: HashMap<ObjectId, Value> = HashMap::new();
    found.objects.retain(|object| {
        let uid = object.metadata("uid").cloned().unwrap_or_default();
        let seen_before = !uid.is_null() && uids.get(&object.id) == Some(&uid);
        uids.insert(object.id.clone(), uid);
        !seen_before
    });
    refuse_duplicates(&mut found, |object| (&object.id, &object.origin));
    match found.problems.is_empty() {
        true => Ok(Dump { objects: found.objects, skipped: found.skipped }),
        false => Err(found.problems),
    }
}

fn object(manifest: Manifest, bytes: &[u8]) -> Result<Object, Vec<Problem>> {
    let Manifest { body, origin } = manifest;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let metadata = |field| text(body.get("metadata").and_then(|metadata| metadata.get(field)));
    let (api_version, kind) = (text(body.get("apiVersion")), text(body.get("kind")));
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    match ObjectId::new(group, &kind, &metadata("namespace"), &metadata("name")) {
        Ok(id) => Ok(Object { id, version: version.into(), body, origin }),
        Err(error) => {
            let place = position_in((bytes, &MemoryLimit::default()), &origin, &[]);
            let (field, rule) = (error.part.to_owned(), error.problem);
            Err(vec![Problem::BadText { place, field, text: error.text, rule }])
        }
    }
}
