//! `moorline crd`: the CustomResourceDefinition of `Sync`.

use clap::Args;

use super::Streams;
use super::exit::Exit;
use crate::{api, yaml};

/// Print the CustomResourceDefinition of Sync
///
/// It matches this binary; config/crd/ in the repository has the same.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline crd | kubectl apply --server-side -f -")]
pub(super) struct CrdArgs {}

pub(super) fn run(CrdArgs {}: &CrdArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    streams.data.write_all(yaml::write(&api::definition()?).as_bytes())?;
    Ok(Exit::Done)
}
