//! `moorline crd`: the CustomResourceDefinitions of `Sync`, `Notifier` and `SyncSet`.

use clap::{Args, ValueEnum};

use super::Streams;
use super::exit::Exit;
use crate::{api, yaml};

/// Print the CustomResourceDefinitions of Sync, Notifier and SyncSet
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
}

pub(super) fn run(CrdArgs { kind }: &CrdArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let definitions = match kind {
        None => api::definitions()?.to_vec(),
        Some(DefinedKind::Syncs) => vec![api::definition()?],
        Some(DefinedKind::Notifiers) => vec![api::notifier_definition()?],
        Some(DefinedKind::SyncSets) => vec![api::sync_set_definition()?],
    };
    let texts: Vec<String> = definitions.iter().map(yaml::write).collect();
    streams.data.write_all(texts.join("---\n").as_bytes())?;
    Ok(Exit::Done)
}
