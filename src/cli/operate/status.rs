//! `moorline status`: how Syncs are.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;

use super::super::Streams;
use super::super::exit::Exit;
use super::heartbeats::all_served;
use super::table::{ago, table};
use super::{namespace, on_cluster, ready, short, write};
use crate::cluster::{Connection, Seen};

/// How often it is looked again with --watch.
const AGAIN: Duration = Duration::from_secs(2);

/// Show how Syncs are
///
/// One line for each Sync; with a name, all that its status says.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline status -A            all Syncs of the cluster
  moorline status shop          one, with its problems
  moorline status --watch       lines as they change

Exit codes: 0 all that is shown is ready, 1 something is not, or no daemon serves it.")]
pub(in super::super) struct Arguments {
    /// The name of a Sync
    name: Option<String>,

    /// The namespace; else the one of the kubeconfig
    #[arg(long, short, value_parser = namespace)]
    namespace: Option<String>,

    /// The Syncs of all namespaces
    #[arg(long, short = 'A', conflicts_with_all = ["namespace", "name"])]
    all_namespaces: bool,

    /// Go on, and print each line that changes
    #[arg(long, short)]
    watch: bool,
}

pub(in super::super) fn run(arguments: &Arguments, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let seen = look(arguments, &connection).await?;
        if let (Some(_), [one]) = (&arguments.name, seen.as_slice()) {
            write(&details(one), streams)?;
        } else if seen.is_empty() {
            streams.say("there are no Syncs here; -A shows those of all namespaces");
        } else {
            write(&lines(&seen), streams)?;
        }
        let served = all_served(&seen, &connection, streams).await;
        if arguments.watch {
            watch(arguments, &connection, &seen, streams).await?;
        }
        let all = seen.iter().all(|sync| ready(&sync.status).0 == "True");
        Ok(if all && served { Exit::Done } else { Exit::Failure })
    })
}

async fn look(arguments: &Arguments, connection: &Connection) -> anyhow::Result<Vec<Seen>> {
    let namespace = arguments.namespace.as_deref().unwrap_or(&connection.namespace);
    if let Some(name) = &arguments.name {
        return Ok(vec![connection.sync(&crate::api::SyncName::new(namespace, name)).await?]);
    }
    let place = (!arguments.all_namespaces).then_some(namespace);
    Ok(connection.syncs(place).await?)
}

/// Prints each line that changes, for ever.
async fn watch(
    arguments: &Arguments,
    connection: &Connection,
    first: &[Seen],
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    // Of a line that differs in nothing but the age nobody wants to hear.
    let shown = |sync: &Seen| {
        let mut line = row(sync);
        line[AGE].clear();
        line
    };
    let mut known: BTreeMap<_, _> = first.iter().map(|sync| (sync.name.clone(), shown(sync))).collect();
    loop {
        tokio::time::sleep(AGAIN).await;
        let seen = look(arguments, connection).await?;
        let changed: Vec<&Seen> =
            seen.iter().filter(|sync| known.get(&sync.name) != Some(&shown(sync))).collect();
        for sync in changed {
            let line = table(&[row(sync)]);
            write(&line, streams)?;
        }
        known = seen.iter().map(|sync| (sync.name.clone(), shown(sync))).collect();
    }
}

/// The column that changes by itself.
const AGE: usize = 6;

fn lines(all: &[Seen]) -> String {
    let head = ["NAMESPACE", "NAME", "READY", "REVISION", "OBJECTS", "DRIFT", "AGE", "REASON"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(all.iter().map(row));
    table(&rows)
}

fn row(sync: &Seen) -> Vec<String> {
    let status = &sync.status;
    let (is_ready, reason, _) = ready(status);
    let counts = status.objects.unwrap_or_default();
    let revision = status.revision.as_ref().and_then(|revision| revision.applied.as_deref());
    let age = sync
        .whole
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|time| ago(jiff::Timestamp::now().as_second() - time.0.as_second()));
    vec![
        sync.name.namespace.to_string(),
        sync.name.name.to_string(),
        is_ready.to_owned(),
        revision.map(short).unwrap_or_default(),
        format!("{}/{}", counts.applied, counts.desired),
        counts.drifted.to_string(),
        age.unwrap_or_default(),
        reason.to_owned(),
    ]
}

/// All that there is to say of one Sync.
pub(super) fn details(sync: &Seen) -> String {
    let status = &sync.status;
    let (is_ready, reason, message) = ready(status);
    let revision = status.revision.clone().unwrap_or_default();
    let counts = status.objects.unwrap_or_default();
    let mut rows = vec![
        ["Sync", &sync.name.to_string()].map(str::to_owned).to_vec(),
        ["Ready", &format!("{is_ready} ({reason})")].map(str::to_owned).to_vec(),
        ["Message", message].map(str::to_owned).to_vec(),
    ];
    for (name, value) in
        [("Seen", &revision.seen), ("Attempted", &revision.attempted), ("Applied", &revision.applied)]
    {
        rows.extend(value.as_ref().map(|value| vec![name.to_owned(), value.clone()]));
    }
    let objects = format!(
        "{} in Git, {} applied, {} held, {} failed, {} drifted",
        counts.desired, counts.applied, counts.held, counts.failed, counts.drifted
    );
    rows.push(vec!["Objects".to_owned(), objects]);
    if let Some(approval) = &status.approval {
        let waits =
            format!("{} objects wait to be deleted: moorline approve {}", approval.objects, sync.name.name);
        rows.push(vec!["Approval".to_owned(), waits]);
    }
    let mut text = table(&rows);
    for problem in &status.problems {
        let object = problem.object.as_deref().map(|it| format!("{it}: ")).unwrap_or_default();
        let file = problem.file.as_deref().map(|it| format!(" ({it})")).unwrap_or_default();
        text.push_str(&format!("  ! {object}{}: {}{file}\n", problem.reason, problem.message));
    }
    text
}
