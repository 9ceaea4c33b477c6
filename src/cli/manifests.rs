//! Renders a path of the command line: the first step of all verbs on manifests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::bail;
use clap::{Args, ValueEnum};

use super::Streams;
use super::chart_flags::ChartFlags;
use super::kustomize_options::read_kustomize_options;
use super::local_helm::LocalHelm;
use super::mount_flags::MountFlags;
use super::own_keys::decrypt_with_own_keys;
use super::remote_bases::RemoteBases;
use super::repository_root;
use crate::desired::{DesiredSet, Scopes, build_desired_set};
use crate::render::{
    self, Complete, Glob, PlainOptions, RenderOptions, Rendered, Skipped, SourceType, Variables, Visibility,
    variable_rule,
};
use crate::source::{AllowList, directory};
use crate::tree::FileTree;

/// Which files of a folder are read.
#[derive(Debug, Args)]
pub(super) struct Selection {
    /// Read folders below PATH (default)
    #[arg(long, conflicts_with = "no_recurse")]
    recurse: bool,

    /// Read only the files that lie directly in PATH
    #[arg(long)]
    no_recurse: bool,

    /// Read only matching files, relative to PATH; repeatable ('**' crosses folders, '*' does not)
    #[arg(long, value_name = "GLOB")]
    include: Vec<Glob>,

    /// Do not read matching files, relative to PATH; repeatable
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<Glob>,

    /// Type of PATH. Auto detects a Helm chart, then a kustomization, else reads plain
    /// manifests
    #[arg(long = "type", value_enum, value_name = "TYPE", default_value_t = Type::Auto)]
    kind: Type,

    /// Root folder that kustomizations and values files must not leave [default: the Git work tree
    /// of PATH, else the current folder if it contains PATH, else PATH]
    #[arg(long, value_name = "DIR")]
    pub(super) root: Option<PathBuf>,

    /// Substitute variables such as ${NAME}; repeatable. Without it, they are left unchanged
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    var: Vec<(String, String)>,

    /// Options over the kustomization of PATH: a file with a Sync, or with its
    /// spec.render.kustomize
    #[arg(long, value_name = "FILE")]
    kustomize: Option<PathBuf>,

    /// Allow remote bases with this URL prefix, such as https://example.com/group; repeatable
    #[arg(long, value_name = "PREFIX")]
    allow_remote: Vec<String>,

    /// Decrypt files that SOPS encrypted, with your keys: identities of age in
    /// SOPS_AGE_KEY_FILE, SOPS_AGE_KEY or ~/.config/sops/age/keys.txt, the ssh key in
    /// SOPS_AGE_SSH_PRIVATE_KEY_FILE or ~/.ssh, and the keyring of gpg. Without it, they are
    /// refused
    #[arg(long)]
    pub(super) decrypt: bool,

    /// Print the type of PATH and everything that was fetched
    #[arg(long, short)]
    verbose: bool,

    #[command(flatten)]
    pub(super) mounts: MountFlags,

    #[command(flatten)]
    pub(super) chart: ChartFlags,
}

impl Selection {
    /// The variables of the command line, if there are any.
    fn variables(&self) -> Option<Arc<Variables>> {
        let given = self.var.iter().map(|(name, value)| (name, value));
        (!self.var.is_empty()).then(|| Arc::new(Variables::default().with_values(given, Visibility::Public)))
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

impl From<Type> for SourceType {
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
    pub(super) fn allowed_remotes(&self) -> anyhow::Result<AllowList> {
        Ok(AllowList::new("--allow-remote", self.allow_remote.iter().map(String::as_str))?)
    }
}

/// Reads and renders a path; prints problems and skipped files. `None` if the render is incomplete.
pub(super) fn render_path(
    path: &Path,
    selection: &Selection,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<Complete>> {
    let (tree, options) = read_files(path, selection, streams)?;
    render_files(&tree, &options, streams)
}

/// Reads the files at a path, and decides how they are rendered.
pub(super) fn read_files(
    path: &Path,
    selection: &Selection,
    streams: &mut Streams<'_>,
) -> anyhow::Result<(FileTree, RenderOptions)> {
    if path.as_os_str() == "-" {
        bail!("standard input is not read; name a file (a file called - is ./-)");
    }
    let plain = PlainOptions {
        recurse: !selection.no_recurse,
        include: selection.include.clone(),
        exclude: selection.exclude.clone(),
    };
    let kustomize = selection.kustomize.as_deref().map(read_kustomize_options).transpose()?.flatten();
    let mut options = RenderOptions {
        plain,
        kustomize,
        kind: selection.kind.into(),
        variables: selection.variables(),
        helm: selection.chart.options(),
        ..RenderOptions::default()
    };
    let mut bases = RemoteBases::new(selection.allowed_remotes()?).with_mounts(&selection.mounts);
    let around = (selection.root.as_deref(), selection.chart.values.as_slice());
    let tree = read_files_into(path, around, &mut bases, &mut options)?;
    if selection.verbose {
        let kind = match options.source_type(&tree) {
            SourceType::Kustomize => "a kustomization",
            SourceType::Helm => "a Helm chart",
            SourceType::Auto | SourceType::Plain => "plain manifests",
        };
        streams.say(&format!("{} is read as {kind}", path.display()));
        bases.fetched().iter().for_each(|base| streams.say(&format!("the remote base {base}")));
    }
    let tree = if selection.decrypt { decrypt_with_own_keys(&tree)? } else { tree };
    Ok((tree, options))
}

/// Reads the files that a render of a path needs; sets the kind and the path in the options.
pub(super) fn read_files_into(
    path: &Path,
    (root, values): (Option<&Path>, &[PathBuf]),
    bases: &mut RemoteBases,
    options: &mut RenderOptions,
) -> anyhow::Result<FileTree> {
    options.kind = match options.kind {
        kind if options.kustomize.is_some() => kind,
        SourceType::Auto if repository_root::is_chart(path) => SourceType::Helm,
        SourceType::Auto if repository_root::holds_kustomization(path) => SourceType::Kustomize,
        SourceType::Auto => SourceType::Plain,
        chosen => chosen,
    };
    if options.kind != SourceType::Helm && !values.is_empty() {
        bail!("{}: not a Helm chart, so --values does not apply", path.display());
    }
    let is_alone =
        matches!(options.kind, SourceType::Auto | SourceType::Plain) && options.kustomize.is_none();
    if !is_alone || !bases.mounts().is_empty() {
        return repository_root::read_tree(path, (root, values), options, bases);
    }
    let (tree, inside) = directory::read(path, render::is_read)?;
    options.path = inside;
    Ok(tree)
}

/// Renders files; prints problems and skipped files. `None` if the render is incomplete.
pub(super) fn render_files(
    tree: &FileTree,
    options: &RenderOptions,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Option<Complete>> {
    Ok(print_render_problems(render_quietly(tree, options)?, streams))
}

/// Renders files without printing anything.
pub(super) fn render_quietly(tree: &FileTree, options: &RenderOptions) -> anyhow::Result<Rendered> {
    Ok(match options.source_type(tree) {
        SourceType::Helm => LocalHelm::find()?.render(tree.clone(), options.clone())?,
        SourceType::Kustomize => render_with_charts(tree, options)?.1,
        SourceType::Auto | SourceType::Plain => render::render(tree, options),
    })
}

/// Renders a kustomization; also returns its files with the rendered charts. Helm is needed only if
/// there are charts.
pub(super) fn render_with_charts(
    tree: &FileTree,
    options: &RenderOptions,
) -> anyhow::Result<(FileTree, Rendered)> {
    match render::render(tree, options) {
        Rendered::Incomplete(incomplete) if !incomplete.wanted_runs.is_empty() => {
            LocalHelm::find()?.render_kustomization(tree.clone(), options.clone())
        }
        rendered => Ok((tree.clone(), rendered)),
    }
}

/// Note about a chart whose result depends on the cluster when helm installs it.
const LOOKUP_NOTE: &str = "note: a template of the chart calls lookup, which finds nothing here, also in a cluster: values that it would copy from an existing object are generated again";

/// Prints problems and skipped files. `None` if the render is incomplete.
pub(super) fn print_render_problems(rendered: Rendered, streams: &mut Streams<'_>) -> Option<Complete> {
    match rendered {
        Rendered::Complete(complete) => {
            print_skipped(complete.skipped(), streams);
            if complete.uses_lookup() {
                streams.say(LOOKUP_NOTE);
            }
            Some(complete)
        }
        Rendered::Incomplete(incomplete) => {
            print_skipped(&incomplete.skipped, streams);
            print_problems(&incomplete.problems, streams);
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
    build_desired_set(complete, namespace, scopes)
        .inspect_err(|problems| print_problems(problems, streams))
        .ok()
}

/// Prints every problem on a line of its own, and their number.
pub(super) fn print_problems(problems: &[impl std::fmt::Display], streams: &mut Streams<'_>) {
    problems.iter().for_each(|problem| streams.say(&format!("error: {problem}")));
    if problems.len() > 1 {
        streams.say(&format!("error: {} problems", problems.len()));
    }
}

/// Prints the skipped files with the reasons.
pub(super) fn print_skipped(skipped: &[Skipped], streams: &mut Streams<'_>) {
    for Skipped { file, reason } in skipped {
        streams.say(&format!("note: {file} is skipped: {reason}"));
    }
}
