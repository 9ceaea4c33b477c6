//! `moorline suspend` and `moorline resume`.

use clap::Args;
use serde_json::json;

use super::super::Streams;
use super::super::exit::Exit;
use super::{Target, on_cluster};

/// Have a Sync write nothing until it is resumed
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline suspend shop")]
pub(in super::super) struct Suspend {
    #[command(flatten)]
    target: Target,
}

/// Have a suspended Sync go on
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline resume shop")]
pub(in super::super) struct Resume {
    #[command(flatten)]
    target: Target,
}

pub(in super::super) fn suspend(arguments: &Suspend, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    set(&arguments.target, true, streams)
}

pub(in super::super) fn resume(arguments: &Resume, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    set(&arguments.target, false, streams)
}

fn set(target: &Target, suspend: bool, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let name = target.of(&connection);
        connection.change_sync(&name, json!({"spec": {"suspend": suspend}})).await?;
        let resume = format!("moorline resume {} -n {}", name.name, name.namespace);
        match suspend {
            true => streams.say(&format!("{name} is suspended: nothing is written until {resume}")),
            false => streams.say(&format!("{name} goes on")),
        }
        Ok(Exit::Done)
    })
}
