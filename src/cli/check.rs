//! `moorline check`: are these files sound?

use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::Exit;
use super::manifests::{self, Selection};
use super::{Streams, followed};
use crate::desired::{Scopes, desired};

/// Check manifests without a cluster
///
/// Reads files and folders as `render` does and checks what can be known without a cluster: syntax, names,
/// labels, scopes, Moorline's annotations, duplicates within each argument. Syncs are checked with the folders of this
/// repository that they follow.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline check deploy/web.yaml deploy/api.yaml
  moorline check clusters/prod")]
pub(super) struct Arguments {
    /// Files or folders of manifests
    #[arg(required = true, value_name = "FILE")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    selection: Selection,
}

pub(super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let mut exit = Exit::Done;
    for path in &arguments.paths {
        // One path that cannot be read keeps no other from being checked.
        let checked = objects_of(path, &arguments.selection, streams).or_else(|error| {
            streams.say(&format!("error: {error:#}"));
            anyhow::Ok(None)
        });
        match checked? {
            Some(1) => writeln!(streams.data, "{}: 1 object is sound", path.display())?,
            Some(count) => writeln!(streams.data, "{}: {count} objects are sound", path.display())?,
            None => exit = Exit::Failure,
        }
    }
    Ok(exit)
}

/// How many objects lie at a path; none if something is wrong, which is told.
fn objects_of(
    path: &Path,
    selection: &Selection,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<usize>> {
    let Some(complete) = manifests::read(path, selection, streams)? else {
        return Ok(None);
    };
    if !followed::are_sound(path, selection, complete.objects(), streams)? {
        return Ok(None);
    }
    // The namespace is only for objects that name none, and where they go changes nothing about soundness.
    match desired(complete, "default", &Scopes::builtin()) {
        Ok(desired) => Ok(Some(desired.len())),
        Err(problems) => {
            manifests::tell(&problems, streams);
            Ok(None)
        }
    }
}
