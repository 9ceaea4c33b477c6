//! `moorline events`: prints the Events of a Sync.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::super::Streams;
use super::super::exit::Exit;
use super::table::{format_age, table};
use super::{SyncTarget, on_cluster, write};
use crate::yaml;

/// Show the Events of a Sync, the oldest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline events shop
  moorline events shop -n team -o json | jq '.items[].note'")]
pub(in super::super) struct EventsArgs {
    #[command(flatten)]
    target: SyncTarget,

    /// Output format
    #[arg(long, short, value_enum, default_value_t = EventsFormat::Text)]
    output: EventsFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EventsFormat {
    Text,
    Json,
    Yaml,
}

pub(in super::super) fn run(arguments: &EventsArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let sync = connection.sync(&arguments.target.of(&connection)).await?;
        let events = connection.sync_events(&sync).await?;
        if arguments.output != EventsFormat::Text {
            let list = list(events);
            match arguments.output {
                EventsFormat::Yaml => streams.data.write_all(yaml::write(&list).as_bytes())?,
                EventsFormat::Text | EventsFormat::Json => writeln!(streams.data, "{list:#}")?,
            }
            return Ok(Exit::Done);
        }
        if events.is_empty() {
            streams.say(&format!("no Events for {}; a cluster keeps them for an hour", sync.name));
            return Ok(Exit::Done);
        }
        let rows: Vec<Vec<String>> = events.iter().map(row).collect();
        write(&table(&rows), streams)?;
        Ok(Exit::Done)
    })
}

/// The Events as a Kubernetes List.
fn list(events: Vec<Value>) -> Value {
    let whole = |mut event: Value| {
        event["apiVersion"] = "events.k8s.io/v1".into();
        event["kind"] = "Event".into();
        event
    };
    json!({"apiVersion": "v1", "kind": "List", "items": events.into_iter().map(whole).collect::<Vec<_>>()})
}

fn row(event: &Value) -> Vec<String> {
    let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
    let at = text("eventTime").parse::<jiff::Timestamp>().ok();
    let age = at.map(|at| format_age(jiff::Timestamp::now().as_second() - at.as_second()));
    vec![age.unwrap_or_default(), text("type"), text("reason"), text("note")]
}
