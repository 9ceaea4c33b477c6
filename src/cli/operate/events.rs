//! `moorline events`: what happened to a Sync.

use clap::Args;
use k8s_openapi::api::events::v1::Event;

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

fn row(event: &Event) -> Vec<String> {
    let now = jiff::Timestamp::now();
    let age = event.event_time.as_ref().map(|time| ago(now.as_second() - time.0.as_second()));
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    vec![age.unwrap_or_default(), text(&event.type_), text(&event.reason), text(&event.note)]
}
