//! From a path on the command line to a render of it: the way that all verbs on manifests begin.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::{Args, ValueEnum};
use glob::Pattern;

use super::chart_flags::ChartFlags;
use super::local_helm::LocalHelm;
use super::{Streams, wall};
use crate::desired::{DesiredSet, Scopes, desired};
use crate::render::{self, Complete, Kind, Options, PlainOptions, Rendered, Skipped};
use crate::source::directory;

/// Which files of a folder are read.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// Read the folders below PATH, too (this is the default)
    #[arg(long, conflicts_with = "no_recurse")]
    recurse: bool,

    /// Read only the files that lie directly in PATH
    #[arg(long)]
    no_recurse: bool,

    /// Read only files that match, relative to PATH; may be given several times ('*' stays in a folder, '**' does not)
    #[arg(long, value_name = "GLOB")]
    include: Vec<Pattern>,

    /// Do not read files that match, relative to PATH; may be given several times
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<Pattern>,

    /// How PATH is read: as a Helm chart if it is one, else as a kustomization if it holds one and else as plain manifests, or always in
    /// one of these ways
    #[arg(long = "type", value_enum, value_name = "TYPE", default_value_t = Type::Auto)]
    kind: Type,

    /// The folder out of which a kustomization or a file of values must not lead [default: the work tree of Git around PATH; without one,
    /// the current folder if PATH lies in it, else PATH]
    #[arg(long, value_name = "DIR")]
    pub(super) root: Option<PathBuf>,

    /// Say how PATH is read
    #[arg(long, short)]
    verbose: bool,

    #[command(flatten)]
    pub(super) chart: ChartFlags,
}

/// How a folder is read.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Type {
    Auto,
    Plain,
    Kustomize,
    Helm,
}

impl From<Type> for Kind {
    fn from(kind: Type) -> Self {
        match kind {
            Type::Auto => Self::Auto,
            Type::Plain => Self::Plain,
            Type::Kustomize => Self::Kustomize,
            Type::Helm => Self::Helm,
        }
    }
}

/// Reads and renders a path; problems and skipped files are told. None if the render is not complete.
pub(super) fn read(
    path: &Path,
    selection: &Selection,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<Complete>> {
    if path.as_os_str() == "-" {
        bail!("standard input is not read; name a file (a file called - is ./-)");
    }
    let plain = PlainOptions {
        recurse: !selection.no_recurse,
        include: selection.include.clone(),
        exclude: selection.exclude.clone(),
    };
    let helm = selection.chart.options();
    let mut options = Options { path: String::new(), plain, kind: selection.kind.into(), helm };
    options.kind = match options.kind {
        Kind::Auto if wall::is_chart(path) => Kind::Helm,
        Kind::Auto if wall::holds_kustomization(path) => Kind::Kustomize,
        Kind::Auto => Kind::Plain,
        chosen => chosen,
    };
    if options.kind != Kind::Helm && !selection.chart.values.is_empty() {
        bail!("{}: this is no Helm chart, and takes no --values", path.display());
    }
    let tree = match options.kind {
        Kind::Kustomize | Kind::Helm => {
            wall::read(path, selection.root.as_deref(), &mut options, &selection.chart.values)?
        }
        Kind::Auto | Kind::Plain => {
            let (tree, inside) = directory::read(path, render::is_read)?;
            options.path = inside;
            tree
        }
    };
    if selection.verbose {
        let kind = match options.kind {
            Kind::Kustomize => "a kustomization",
            Kind::Helm => "a Helm chart",
            Kind::Auto | Kind::Plain => "plain manifests",
        };
        streams.say(&format!("{} is read as {kind}", path.display()));
    }
    let rendered = match options.kind {
        Kind::Helm => LocalHelm::find()?.rendered(tree, options)?,
        Kind::Auto | Kind::Plain | Kind::Kustomize => render::render(&tree, &options),
    };
    match rendered {
        Rendered::Complete(complete) => {
            tell_skipped(complete.skipped(), streams);
            Ok(Some(complete))
        }
        Rendered::Incomplete(incomplete) => {
            tell_skipped(&incomplete.skipped, streams);
            tell(&incomplete.problems, streams);
            Ok(None)
        }
    }
}

/// What the objects come to in a cluster; problems are told. None if there are any.
pub(super) fn desire(
    complete: Complete,
    namespace: &str,
    scopes: &Scopes,
    streams: &mut Streams<'_>,
) -> Option<DesiredSet> {
    desired(complete, namespace, scopes).inspect_err(|problems| tell(problems, streams)).ok()
}

/// Says every problem, a line each, and how many there are.
pub(super) fn tell(problems: &[impl std::fmt::Display], streams: &mut Streams<'_>) {
    problems.iter().for_each(|problem| streams.say(&format!("error: {problem}")));
    if problems.len() > 1 {
        streams.say(&format!("error: {} problems", problems.len()));
    }
}

/// Says which files were passed over, and why.
pub(super) fn tell_skipped(skipped: &[Skipped], streams: &mut Streams<'_>) {
    for Skipped { file, reason } in skipped {
        streams.say(&format!("note: {file} is skipped: {reason}"));
    }
}
