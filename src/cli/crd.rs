//! `moorline crd`: the CustomResourceDefinitions of Moorline.

use clap::{Args, ValueEnum};

use super::Streams;
use super::exit::Exit;
use crate::{api, yaml};

/// Print the CustomResourceDefinitions of Sync, Notifier, SyncSet and change windows
///
/// They match this binary; config/crd/ in the repository has the same.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline crd | kubectl apply --server-side -f -
  moorline crd notifiers     one of them")]
pub(super) struct CrdArgs {
    /// The definition; without it, all of them
    #[arg(value_name = "KIND")]
    kind: Option<DefinedKind>,
}

/// A kind of Moorline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DefinedKind {
    /// That of Sync
    Syncs,
    /// That of Notifier
    Notifiers,
    /// That of SyncSet
    #[value(name = "syncsets")]
    SyncSets,
    /// That of ChangeWindow
    #[value(name = "changewindows")]
    ChangeWindows,
    /// That of NamespaceChangeWindow
    #[value(name = "namespacechangewindows")]
    NamespaceChangeWindows,
}

pub(super) fn run(CrdArgs { kind }: &CrdArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let definitions = match kind {
        None => api::definitions()?.to_vec(),
        Some(DefinedKind::Syncs) => vec![api::definition()?],
        Some(DefinedKind::Notifiers) => vec![api::notifier_definition()?],
        Some(DefinedKind::SyncSets) => vec![api::sync_set_definition()?],
        Some(DefinedKind::ChangeWindows) => vec![api::change_window_definition()?],
        Some(DefinedKind::NamespaceChangeWindows) => vec![api::namespace_change_window_definition()?],
    };
    let texts: Vec<String> = definitions.iter().map(yaml::write).collect();
    streams.data.write_all(texts.join("---\n").as_bytes())?;
    Ok(Exit::Done)
}
