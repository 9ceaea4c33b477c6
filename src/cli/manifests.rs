//! Renders a path of the command line: the first step of all verbs on manifests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use clap::{Args, ValueEnum};

use super::chart_flags::ChartFlags;
use super::local_helm::LocalHelm;
use super::remote_bases::RemoteBases;
use super::{Streams, wall};
use crate::desired::{DesiredSet, Scopes, desired};
use crate::render::{
    self, Complete, Glob, Kind, Options, PlainOptions, Rendered, Seen, Skipped, Variables, variable_rule,
};
use crate::source::{AllowList, directory};
use crate::tree::FileTree;

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
    include: Vec<Glob>,

    /// Do not read files that match, relative to PATH; may be given several times
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<Glob>,

    /// How PATH is read: as a Helm chart if it is one, else as a kustomization if it holds one and else as plain manifests, or always in
    /// one of these ways
    #[arg(long = "type", value_enum, value_name = "TYPE", default_value_t = Type::Auto)]
    kind: Type,

    /// The folder out of which a kustomization or a file of values must not lead [default: the work tree of Git around PATH; without one,
    /// the current folder if PATH lies in it, else PATH]
    #[arg(long, value_name = "DIR")]
    pub(super) root: Option<PathBuf>,

    /// Replace variables in the manifests, such as ${NAME}; may be given several times. Without it, they stay as they are
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    var: Vec<(String, String)>,

    /// Fetch remote bases whose URLs begin with this, such as https://example.com/group; may be given several times
    #[arg(long, value_name = "PREFIX")]
    allow_remote: Vec<String>,

    /// Say how PATH is read, and what was fetched
    #[arg(long, short)]
    verbose: bool,

    #[command(flatten)]
    pub(super) chart: ChartFlags,
}

impl Selection {
    /// The variables of the command line, if there are any.
    fn variables(&self) -> Option<Arc<Variables>> {
        let given = self.var.iter().map(|(name, value)| (name, value));
        (!self.var.is_empty()).then(|| Arc::new(Variables::default().with(given, Seen::ByAll)))
    }
}

/// Parses a variable of the command line.
fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, such as CLUSTER_NAME=shop-1")?;
    match variable_rule(name) {
        Some(rule) => Err(format!("the name of a variable {rule}")),
        None => Ok((name.to_owned(), value.to_owned())),
    }
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

impl Selection {
    /// Returns the repositories that kustomizations may fetch from.
    pub(super) fn allowed(&self) -> anyhow::Result<AllowList> {
        Ok(AllowList::new("--allow-remote", self.allow_remote.iter().map(String::as_str))?)
    }
}

/// Reads and renders a path; prints problems and skipped files. `None` if the render is incomplete.
pub(super) fn read(
    path: &Path,
    selection: &Selection,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<Complete>> {
    let (tree, options) = files(path, selection, streams)?;
    rendered(&tree, &options, streams)
}

/// Reads the files at a path, and decides how they are rendered.
pub(super) fn files(
    path: &Path,
    selection: &Selection,
    streams: &mut Streams<'_>,
) -> anyhow::Result<(FileTree, Options)> {
    if path.as_os_str() == "-" {
        bail!("standard input is not read; name a file (a file called - is ./-)");
    }
    let plain = PlainOptions {
        recurse: !selection.no_recurse,
        include: selection.include.clone(),
        exclude: selection.exclude.clone(),
    };
    let mut options = Options {
        plain,
        kind: selection.kind.into(),
        variables: selection.variables(),
        helm: selection.chart.options(),
        ..Options::default()
    };
    let mut bases = RemoteBases::new(selection.allowed()?);
    let around = (selection.root.as_deref(), selection.chart.values.as_slice());
    let tree = files_for(path, around, &mut bases, &mut options)?;
    if selection.verbose {
        let kind = match options.kind {
            Kind::Kustomize => "a kustomization",
            Kind::Helm => "a Helm chart",
            Kind::Auto | Kind::Plain => "plain manifests",
        };
        streams.say(&format!("{} is read as {kind}", path.display()));
        bases.told().iter().for_each(|base| streams.say(&format!("the remote base {base}")));
    }
    Ok((tree, options))
}

/// Reads the files that a render of a path needs; sets the kind and the path in the options.
pub(super) fn files_for(
    path: &Path,
    (root, values): (Option<&Path>, &[PathBuf]),
    bases: &mut RemoteBases,
    options: &mut Options,
) -> anyhow::Result<FileTree> {
    options.kind = match options.kind {
        Kind::Auto if wall::is_chart(path) => Kind::Helm,
        Kind::Auto if wall::holds_kustomization(path) => Kind::Kustomize,
        Kind::Auto => Kind::Plain,
        chosen => chosen,
    };
    if options.kind != Kind::Helm && !values.is_empty() {
        bail!("{}: this is no Helm chart, and takes no --values", path.display());
    }
    match options.kind {
        Kind::Kustomize | Kind::Helm => wall::read(path, (root, values), options, bases),
        Kind::Auto | Kind::Plain => {
            let (tree, inside) = directory::read(path, render::is_read)?;
            options.path = inside;
            Ok(tree)
        }
    }
}

/// Renders files; prints problems and skipped files. `None` if the render is incomplete.
pub(super) fn rendered(
    tree: &FileTree,
    options: &Options,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<Complete>> {
    Ok(told(outcome(tree, options)?, streams))
}

/// Renders files without printing anything.
pub(super) fn outcome(tree: &FileTree, options: &Options) -> anyhow::Result<Rendered> {
    Ok(match options.kind {
        Kind::Helm => LocalHelm::find()?.rendered(tree.clone(), options.clone())?,
        Kind::Kustomize => printed(tree, options)?.1,
        Kind::Auto | Kind::Plain => render::render(tree, options),
    })
}

/// Renders a kustomization; also returns its files with the rendered charts. Helm is needed only if
/// there are charts.
pub(super) fn printed(tree: &FileTree, options: &Options) -> anyhow::Result<(FileTree, Rendered)> {
    match render::render(tree, options) {
        Rendered::Incomplete(incomplete) if !incomplete.wanted.is_empty() => {
            LocalHelm::find()?.printed(tree.clone(), options.clone())
        }
        rendered => Ok((tree.clone(), rendered)),
    }
}

/// Prints problems and skipped files. `None` if the render is incomplete.
pub(super) fn told(rendered: Rendered, streams: &mut Streams<'_>) -> Option<Complete> {
    match rendered {
        Rendered::Complete(complete) => {
            tell_skipped(complete.skipped(), streams);
            Some(complete)
        }
        Rendered::Incomplete(incomplete) => {
            tell_skipped(&incomplete.skipped, streams);
            tell(&incomplete.problems, streams);
            None
        }
    }
}

/// Builds the desired set; `None` after printing the problems.
pub(super) fn desire(
    complete: Complete,
    namespace: &str,
    scopes: &Scopes,
    streams: &mut Streams<'_>,
) -> Option<DesiredSet> {
    desired(complete, namespace, scopes).inspect_err(|problems| tell(problems, streams)).ok()
}

/// Prints every problem on a line of its own, and their number.
pub(super) fn tell(problems: &[impl std::fmt::Display], streams: &mut Streams<'_>) {
    problems.iter().for_each(|problem| streams.say(&format!("error: {problem}")));
    if problems.len() > 1 {
        streams.say(&format!("error: {} problems", problems.len()));
    }
}

/// Prints the skipped files with the reasons.
pub(super) fn tell_skipped(skipped: &[Skipped], streams: &mut Streams<'_>) {
    for Skipped { file, reason } in skipped {
        streams.say(&format!("note: {file} is skipped: {reason}"));
    }
}
