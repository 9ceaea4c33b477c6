//! `moorline audit verify`: checks the chain of a journal.

use anyhow::{Context as _, bail};
use clap::Args;

use super::super::Streams;
use super::super::exit::Exit;
use super::super::operate::{namespace, on_cluster};
use super::Files;
use crate::api::JOURNAL_ANNOTATION;
use crate::journal::{Head, Verified, VerifyError, verify};

/// Check that no line of a journal is missing or was changed
///
/// The first broken line is named as FILE:LINE. Without --anchor, a journal whose last lines are
/// missing, or that was rewritten as a whole, is not recognized.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    files: Files,

    /// Compare with the last line that the Lease of the daemon names
    #[arg(long)]
    anchor: bool,

    /// The Lease of the daemon
    #[arg(long, requires = "anchor", default_value = "moorline", value_name = "NAME")]
    lease: String,

    /// The namespace of the Lease [default: that of the kubeconfig]
    #[arg(long, short, requires = "anchor", value_parser = namespace)]
    namespace: Option<String>,
}

pub(super) fn run(arguments: &VerifyArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    if !arguments.anchor {
        return report(arguments, None, streams);
    }
    on_cluster(async |connection| {
        let place = arguments.namespace.as_deref().unwrap_or(&connection.namespace);
        let lease = format!("{place}/{}", arguments.lease);
        let Some(head) = connection.lease_annotation(&lease, JOURNAL_ANNOTATION).await else {
            bail!("the Lease {lease} has no annotation {JOURNAL_ANNOTATION}, or cannot be read");
        };
        let head =
            head.parse().with_context(|| format!("the annotation of the Lease {lease} is {head:?}"))?;
        report(arguments, Some(head), streams)
    })
}

fn report(arguments: &VerifyArgs, anchor: Option<Head>, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    let found = match verify(&arguments.files.files, anchor) {
        Ok(found) => found,
        Err(error @ VerifyError::Read(_)) => return Err(error.into()),
        Err(error) => {
            streams.say(&error.to_string());
            return Ok(Exit::Failure);
        }
    };
    let Verified { lines, first, head, branches, torn, gaps } = found;
    writeln!(streams.data, "{lines} lines, {first} to {}: none is missing or was changed", head.seq)?;
    writeln!(streams.data, "last line {head}")?;
    if let Some(anchor) = anchor {
        writeln!(streams.data, "the Lease names line {}, which is among them", anchor.seq)?;
    }
    for place in branches {
        streams.say(&format!("{place}: a daemon began here after an earlier line than the one before"));
    }
    for place in torn {
        streams.say(&format!("{place}: an incomplete line, left by a daemon that was killed"));
    }
    for (place, lost) in gaps {
        streams.say(&format!("{place}: {lost} changes before it were not written down"));
    }
    Ok(Exit::Done)
}
