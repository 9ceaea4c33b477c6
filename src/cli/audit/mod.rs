//! `moorline audit`: reads and verifies files of the journal.

mod listing;
mod verification;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Streams;
use super::exit::Exit;
use listing::ListArgs;
use verification::VerifyArgs;

/// List the changes that a journal has, or verify its chain
///
/// Give all files that rotation has left, in any order.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:
  moorline audit journal.jsonl                              all changes, the oldest first
  moorline audit --since 1h --sync shop/web journal.jsonl*  those of one Sync in the last hour
  moorline audit -o json journal.jsonl | jq -r .object      as lines of JSON, each with its hash
  moorline audit verify journal.jsonl*                      no line is missing or was changed
  moorline audit verify --anchor journal.jsonl              and the Lease of the daemon agrees")]
pub(super) struct AuditArgs {
    #[command(subcommand)]
    verb: Option<AuditVerb>,

    #[command(flatten)]
    list: ListArgs,
}

#[derive(Debug, Subcommand)]
enum AuditVerb {
    Verify(VerifyArgs),
}

/// Files of a journal.
#[derive(Debug, Args)]
struct Files {
    /// Files of the journal
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn run(arguments: &AuditArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    match &arguments.verb {
        Some(AuditVerb::Verify(arguments)) => verification::run(arguments, streams),
        None => listing::run(&arguments.list, streams),
    }
}
