//! Objects as a cluster gave them, from files of `kubectl get -o yaml`.
//!
//! They are read, not judged: what the API server holds it has taken. They are never desired.

use serde_json::Value;

use super::documents::{Manifest, place_in};
use super::plain;
use super::problem::Problem;
use super::{Options, refuse_duplicates};
use crate::object::{Object, ObjectId};
use crate::tree::FileTree;

/// The live objects below a path; a folder without any is an empty cluster.
pub fn dump(tree: &FileTree, path: &str) -> Result<Vec<Object>, Vec<Problem>> {
    let options = Options { path: path.to_owned(), ..Options::default() };
    let mut found = plain::collect(tree, &options, object);
    refuse_duplicates(&mut found);
    match found.problems.is_empty() {
        true => Ok(found.objects),
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
            let place = place_in(bytes, &origin, &[]);
            let (field, rule) = (error.part.to_owned(), error.problem);
            Err(vec![Problem::BadText { place, field, text: error.text, rule }])
        }
    }
}
