//! `moorline status`: prints the status of Syncs.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::super::exit::Exit;
use super::super::plan::Colour;
use super::super::{Streams, sanitize};
use super::approve::describe;
use super::fleet::{FleetArgs, FleetFormat, show_fleet};
use super::heartbeats::are_all_served;
use super::moves::display_move_target;
use super::overrides::describe_windows;
use super::rollback::describe_hold;
use super::table::{format_age, table};
use super::{counted, history, namespace, on_cluster, on_runtime, ready, write};
use crate::api::{ApprovalSubject, ConditionType, MOVES_TO_ANNOTATION, short_revision as short};
use crate::cluster::{Connection, SyncResource};
use crate::plan::ColourMode;
use crate::report::{count_unlisted, waiting};
use crate::yaml;

/// Interval at which --watch reads the Syncs again.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// Show the status of Syncs
///
/// One line for each Sync; with a name, its full status.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline status -A            all Syncs of the cluster
  moorline status shop          one, with its problems
  moorline status --watch       lines as they change
  moorline status -A -o wide    with health, suspension and message
  moorline status shop -o json | jq '.items[0].status.conditions'
  moorline status --fleet                     the clusters of one daemon, with their Syncs
  moorline status --fleet --context a,b       the Syncs of two contexts side by side
  moorline status --fleet --contexts all      of all contexts of the kubeconfig

Exit codes: 0 all listed Syncs are ready, 1 one is not, no daemon serves it, or a context failed.")]
pub(in super::super) struct StatusArgs {
    /// The name of a Sync
    name: Option<String>,

    /// The namespace [default: that of the kubeconfig; with --fleet all of them]
    #[arg(long, short, value_parser = namespace)]
    namespace: Option<String>,

    /// The Syncs of all namespaces
    #[arg(long, short = 'A', conflicts_with_all = ["namespace", "name"])]
    all_namespaces: bool,

    /// Watch, and print each line that changes
    #[arg(long, short)]
    watch: bool,

    /// Output format; wide has more columns, name prints resource names for kubectl
    #[arg(long, short, value_enum)]
    output: Option<StatusFormat>,

    #[command(flatten)]
    fleet: FleetArgs,

    /// Use of colours
    #[arg(long, value_enum, default_value_t = Colour::Auto)]
    color: Colour,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StatusFormat {
    Wide,
    Json,
    Yaml,
    Name,
}

pub(in super::super) fn run(arguments: &StatusArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    if arguments.fleet.fleet {
        let format = match arguments.output {
            None => FleetFormat::Text,
            Some(StatusFormat::Json) => FleetFormat::Json,
            Some(StatusFormat::Yaml) => FleetFormat::Yaml,
            Some(StatusFormat::Wide | StatusFormat::Name) => bail!("--fleet prints tables, json or yaml"),
        };
        let namespace = arguments.namespace.as_deref();
        return on_runtime(show_fleet(&arguments.fleet, namespace, format, streams));
    }
    on_cluster(async |connection| {
        let wide = arguments.output == Some(StatusFormat::Wide);
        if arguments.watch && arguments.output.is_some() && !wide {
            bail!("--watch prints lines; leave it out, or take -o wide");
        }
        let seen = look(arguments, &connection).await?;
        match (arguments.output, &arguments.name, seen.as_slice()) {
            (Some(StatusFormat::Json), _, all) => writeln!(streams.data, "{:#}", list(all)?)?,
            (Some(StatusFormat::Yaml), _, all) => {
                streams.data.write_all(yaml::write(&list(all)?).as_bytes())?
            }
            (Some(StatusFormat::Name), _, all) => {
                write(
                    &all.iter().map(|sync| format!("{KIND}/{}\n", sync.name.name)).collect::<String>(),
                    streams,
                )?;
            }
            (None, Some(_), [one]) => {
                write(&(describe_sync(one) + &history::lines(&one.status.history)), streams)?;
            }
            (_, _, []) => streams.say("no Syncs found; use -A for all namespaces"),
            (_, _, all) => print_table(&lines(all, wide), arguments.color.paint(), streams)?,
        }
        let served = are_all_served(&seen, &connection, streams).await;
        if arguments.watch {
            watch(arguments, &connection, &seen, streams).await?;
        }
        let all = seen.iter().all(|sync| ready(&sync.status).0 == "True");
        Ok(if all && served { Exit::Done } else { Exit::Failure })
    })
}

/// The resource name that `kubectl get -o name` prints.
const KIND: &str = "sync.moorline.dev";

/// The Syncs as a Kubernetes List.
fn list(all: &[SyncResource]) -> anyhow::Result<Value> {
    let items = all.iter().map(|sync| serde_json::to_value(&sync.resource)).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}))
}

/// Prints a table; the column READY is coloured if `paint` says so.
fn print_table(table: &str, paint: ColourMode, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    let column = table.lines().next().and_then(|head| head.find("READY"));
    for line in table.lines().map(sanitize) {
        let painted =
            column.filter(|_| paint == ColourMode::Colours).and_then(|column| painted(&line, column));
        writeln!(streams.data, "{}", painted.as_deref().unwrap_or(&line))?;
    }
    Ok(streams.data.flush()?)
}

/// Colours the READY value of a line; `None` for a value without a colour.
fn painted(line: &str, column: usize) -> Option<String> {
    let (before, rest) = line.split_at_checked(column)?;
    let word = rest.split(' ').next()?;
    let colour = match word {
        "True" => 32,
        "False" => 31,
        "Unknown" => 33,
        _ => return None,
    };
    Some(format!("{before}\u{1b}[{colour}m{word}\u{1b}[0m{}", &rest[word.len()..]))
}

async fn look(arguments: &StatusArgs, connection: &Connection) -> anyhow::Result<Vec<SyncResource>> {
    let namespace = arguments.namespace.as_deref().unwrap_or(&connection.namespace);
    if let Some(name) = &arguments.name {
        return Ok(vec![connection.sync(&crate::api::SyncName::new(namespace, name)).await?]);
    }
    let place = (!arguments.all_namespaces).then_some(namespace);
    Ok(connection.syncs(place).await?)
}

/// Prints each line that changes; never returns.
async fn watch(
    arguments: &StatusArgs,
    connection: &Connection,
    first: &[SyncResource],
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    // The age always changes: comparing it would print every line again and again.
    let wide = arguments.output == Some(StatusFormat::Wide);
    let shown = |sync: &SyncResource| {
        let mut line = row(sync, wide);
        line[AGE].clear();
        line
    };
    let mut known: BTreeMap<_, _> = first.iter().map(|sync| (sync.name.clone(), shown(sync))).collect();
    loop {
        tokio::time::sleep(WATCH_INTERVAL).await;
        let seen = look(arguments, connection).await?;
        let changed: Vec<&SyncResource> =
            seen.iter().filter(|sync| known.get(&sync.name) != Some(&shown(sync))).collect();
        for sync in changed {
            let line = table(&[row(sync, wide)]);
            write(&line, streams)?;
        }
        known = seen.iter().map(|sync| (sync.name.clone(), shown(sync))).collect();
    }
}

/// The column that changes with time alone.
const AGE: usize = 7;

fn lines(all: &[SyncResource], wide: bool) -> String {
    let head = ["NAMESPACE", "NAME", "READY", "REASON", "REVISION", "OBJECTS", "DRIFT", "AGE"];
    let more = ["HEALTHY", "SUSPENDED", "MESSAGE"];
    let head = head.into_iter().chain(more.into_iter().filter(|_| wide));
    let mut rows = vec![head.map(str::to_owned).collect()];
    rows.extend(all.iter().map(|sync| row(sync, wide)));
    table(&rows)
}

fn row(sync: &SyncResource, wide: bool) -> Vec<String> {
    let status = &sync.status;
    let (is_ready, reason, message) = ready(status);
    let counts = status.objects.unwrap_or_default();
    let revision = status.revision.as_ref().and_then(|revision| revision.applied.as_deref());
    let age = sync
        .resource
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|time| format_age(jiff::Timestamp::now().as_second() - time.0.as_second()));
    let mut cells = vec![
        sync.name.namespace.to_string(),
        sync.name.name.to_string(),
        is_ready.to_owned(),
        reason.to_owned(),
        revision.map(short).unwrap_or_default(),
        format!("{}/{}", counts.applied, counts.desired),
        counts.drifted.to_string(),
        age.unwrap_or_default(),
    ];
    if wide {
        let healthy = status.conditions.iter().find(|it| it.type_ == ConditionType::Healthy.to_string());
        cells.push(healthy.map(|it| it.status.clone()).unwrap_or_default());
        cells.push(sync.resource.data["spec"]["suspend"].as_bool().unwrap_or_default().to_string());
        cells.push(message.to_owned());
    }
    cells
}

/// The full status of one Sync.
pub(super) fn describe_sync(sync: &SyncResource) -> String {
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
    rows.extend(revision.chosen.as_ref().map(|chosen| vec!["Held at".to_owned(), describe_hold(chosen)]));
    let objects = format!(
        "{} in Git, {} applied, {} held, {} failed, {} drifted",
        counts.desired, counts.applied, counts.held, counts.failed, counts.drifted
    );
    rows.push(vec!["Objects".to_owned(), objects]);
    let annotations = sync.resource.metadata.annotations.as_ref();
    let to = annotations.and_then(|all| all.get(MOVES_TO_ANNOTATION));
    rows.extend(to.map(|to| vec!["Moves to".to_owned(), display_move_target(to, &sync.name)]));
    let (held, planned) = describe_windows(status);
    rows.extend(held);
    let waiting = waiting(status);
    for asked in &waiting {
        let of = match (waiting.len(), asked.of) {
            (1, _) => "",
            (_, ApprovalSubject::Prune) => " --of prune",
            (_, ApprovalSubject::Revision) => " --of revision",
        };
        let does = match asked.of {
            ApprovalSubject::Prune if asked.pruned == 1 => "1 object waits to be deleted".to_owned(),
            ApprovalSubject::Prune => format!("{} wait to be deleted", counted(asked.pruned)),
            ApprovalSubject::Revision => describe(asked),
        };
        let name = &sync.name;
        let waits = format!("{does}: moorline approve {} -n {}{of}", name.name, name.namespace);
        rows.push(vec!["Approval".to_owned(), waits]);
    }
    let mut text = table(&rows);
    for line in waiting.iter().flat_map(|asked| &asked.plan).chain(planned) {
        text.push_str(&format!("  ? {line}\n"));
    }
    for problem in &status.problems {
        let object = problem.object.as_deref().map(|it| format!("{it}: ")).unwrap_or_default();
        let file = problem.file.as_deref().map(|it| format!(" ({it})")).unwrap_or_default();
        text.push_str(&format!("  ! {object}{}: {}{file}\n", problem.reason, problem.message));
    }
    let more = count_unlisted(status);
    if more > 0 {
        text.push_str(&format!("  and {more} more\n"));
    }
    text
}
