//! `moorline events`: what happened to a Sync.

use clap::Args;
use serde_json::Value;

use super::super::Streams;
use super::super::exit::Exit;
use super::table::{ago, table};
use super::{Target, on_cluster, write};

/// Show the Events of a Sync, the oldest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline events shop")]
pub(in super::super) struct Arguments {
    #[command(flatten)]
    target: Target,
}

pub(in super::super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let sync = connection.sync(&arguments.target.of(&connection)).await?;
        let events = connection.sync_events(&sync).await?;
        if events.is_empty() {
            streams
                .say(&format!("there are no Events of {}; a cluster forgets them after an hour", sync.name));
            return Ok(Exit::Done);
        }
        let rows: Vec<Vec<String>> = events.iter().map(row).collect();
        write(&table(&rows), streams)?;
        Ok(Exit::Done)
    })
}

fn row(event: &Value) -> Vec<String> {
    let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let at = text("eventTime").parse::<jiff::Timestamp>().ok();
    let age = at.map(|at| ago(jiff::Timestamp::now().as_second() - at.as_second()));
    vec![age.unwrap_or_default(), text("type"), text("reason"), text("note")]
}
