//! `moorline status --fleet`: clusters and Syncs of one or several contexts, side by side.
//!
//! In: contexts of the kubeconfig. Out: a table of clusters, then the Syncs with revision and state
//! in each cluster. A context that cannot be read is a row with its reason.

mod contexts;
mod view;

use clap::{Args, ValueEnum};

use super::super::Streams;
use super::super::exit::Exit;
use super::write;
use crate::cluster::{KubeconfigContexts, connect};
use crate::yaml;
use contexts::{ContextView, look_at, look_at_all};
use view::Fleet;

/// Flags of the fleet.
#[derive(Debug, Args)]
pub(super) struct FleetArgs {
    /// Clusters and their Syncs side by side; without a context, the clusters of one daemon
    #[arg(long, conflicts_with_all = ["name", "watch", "all_namespaces"])]
    pub(super) fleet: bool,

    /// Contexts of the kubeconfig to ask, with commas between them
    #[arg(long, value_delimiter = ',', requires = "fleet", value_name = "CONTEXTS")]
    context: Vec<String>,

    /// Ask all contexts of the kubeconfig
    #[arg(long, value_enum, requires = "fleet", conflicts_with = "context", value_name = "WHICH")]
    contexts: Option<ContextSelection>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ContextSelection {
    All,
}

/// Format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FleetFormat {
    Text,
    Json,
    Yaml,
}

pub(super) async fn show_fleet(
    arguments: &FleetArgs,
    namespace: Option<&str>,
    format: FleetFormat,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let views = match (&arguments.context[..], arguments.contexts) {
        ([], None) => vec![look_at(None, connect(None, false).await, namespace).await],
        (named, _) => {
            let known = KubeconfigContexts::read()?;
            let names = if named.is_empty() { known.names() } else { distinct(named) };
            look_at_all(&known, names, namespace).await
        }
    };
    for line in views.iter().flat_map(|view| &view.notes) {
        streams.say(line);
    }
    let is_well = views.iter().all(ContextView::is_well);
    let fleet = Fleet::new(&views);
    match format {
        FleetFormat::Json => writeln!(streams.data, "{:#}", fleet.data())?,
        FleetFormat::Yaml => streams.data.write_all(yaml::write(&fleet.data()).as_bytes())?,
        FleetFormat::Text => write(&fleet.text(), streams)?,
    }
    Ok(if is_well { Exit::Done } else { Exit::Failure })
}

/// Names in their order, each once.
fn distinct(names: &[String]) -> Vec<String> {
    let mut seen = Vec::<String>::new();
    for name in names {
        if !seen.contains(name) {
            seen.push(name.clone());
        }
    }
    seen
}
