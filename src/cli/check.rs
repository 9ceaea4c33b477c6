//! `moorline check`: validates manifests without a cluster.

use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::Exit;
use super::manifests::{self, Selection};
use super::nested_syncs;
use super::operate::namespace;
use super::schema_check::SchemaChecker;
use super::{Streams, server_check};
use crate::render::Complete;

/// Check manifests without a cluster
///
/// Reads files and folders like `render`. Checks syntax, names, labels, scopes, Moorline's
/// annotations and duplicates; also types, unknown and required fields, and selectors of built-in
/// kinds and of kinds whose CustomResourceDefinitions are in the files or --crds. Objects of other
/// kinds are counted as not checked. Syncs among the files are checked together with their
/// folders in this repository.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline check deploy/web.yaml deploy/api.yaml
  moorline check clusters/prod
  moorline check clusters/prod --crds crds/
  moorline check clusters/prod --server        also ask the API server of KUBECONFIG, which writes nothing

Exit codes: 0 no problems, 1 problems. Objects that are not checked are not problems.")]
pub(super) struct CheckArgs {
    /// Files or folders of manifests
    #[arg(required = true, value_name = "FILE")]
    paths: Vec<PathBuf>,

    /// A folder or file of CustomResourceDefinitions; repeatable
    #[arg(long, value_name = "DIR")]
    crds: Vec<PathBuf>,

    /// Also dry-run every apply on the API server of KUBECONFIG, with your permissions
    #[arg(long)]
    server: bool,

    /// With --server, the namespace of objects without one [default: that of the kubeconfig]
    #[arg(long, short, value_name = "NAMESPACE", requires = "server", value_parser = namespace)]
    namespace: Option<String>,

    #[command(flatten)]
    selection: Selection,
}

pub(super) fn run(arguments: &CheckArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let mut exit = Exit::Done;
    let mut checker = SchemaChecker::new();
    for folder in &arguments.crds {
        if !checker.learn_folder(folder, streams)? {
            exit = Exit::Failure;
        }
    }
    let mut rendered = Vec::new();
    for path in &arguments.paths {
        // Other paths are checked even if one cannot be read.
        match or_print_error(manifests::render_path(path, &arguments.selection, streams), streams) {
            Some(complete) => rendered.push((path, complete)),
            None => exit = Exit::Failure,
        }
    }
    rendered.iter().for_each(|(_, complete)| checker.learn_definitions(complete));
    let mut sound = Vec::new();
    for (path, complete) in rendered {
        let again = arguments.server.then(|| complete.clone());
        let is_sound =
            is_sound(path, complete, &mut checker, arguments, streams).map(|sound| sound.then_some(()));
        match or_print_error(is_sound, streams) {
            Some(()) => sound.extend(again.map(|complete| (path.clone(), complete))),
            None => exit = Exit::Failure,
        }
    }
    if arguments.server {
        let server = server_check::run(sound, arguments.namespace.as_deref(), streams)?;
        exit = if server == Exit::Done { exit } else { server };
    }
    Ok(exit)
}

/// Prints an error, and treats it like a problem that was printed already.
fn or_print_error<T>(result: anyhow::Result<Option<T>>, streams: &mut Streams<'_>) -> Option<T> {
    result.unwrap_or_else(|error| {
        streams.say(&format!("error: {error:#}"));
        None
    })
}

/// Checks a rendered set without a server and prints the problems.
fn is_sound(
    path: &Path,
    complete: Complete,
    checker: &mut SchemaChecker,
    arguments: &CheckArgs,
    streams: &mut Streams<'_>,
) -> anyhow::Result<bool> {
    let found = checker.check(&complete, streams);
    let syncs = nested_syncs::check_nested_syncs(
        path,
        &arguments.selection,
        complete.objects(),
        Some(checker),
        streams,
    )?;
    // The namespace only fills in for objects that name none, and does not affect validity.
    let Some(desired) = manifests::desire(complete, "default", checker.scopes(), streams) else {
        return Ok(false);
    };
    let is_sound = found.is_sound && syncs;
    if is_sound {
        let count = desired.len() - found.unchecked;
        let are = if count == 1 { "object is" } else { "objects are" };
        writeln!(streams.data, "{}: {count} {are} valid{}", path.display(), not_checked(found.unchecked))?;
    }
    Ok(is_sound)
}

/// The end of a line that counts objects.
pub(super) fn not_checked(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => ", 1 is not checked".to_owned(),
        count => format!(", {count} are not checked"),
    }
}
