//! `moorline doctor`: checks an installation from outside, and says what to do.
//!
//! In: the cluster of KUBECONFIG, with the rights of the user. Out: a finding for each check.
//! Nothing is written, and no content of a Secret is read. Each file of this folder has one check:
//! it turns what the API server shows into findings.

mod clock;
mod daemons;
mod definition;
mod finding;
mod repositories;
mod rights;
mod secrets;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::Streams;
use super::exit::Exit;
use super::installation::find_installation;
use super::operate::table::table;
use super::operate::{namespace, with_or_without_cluster, write};
use crate::cluster::{ConnectError, Connection, Heartbeat};
use finding::{Finding, Level};

/// Check an installation, and print what to do about each problem
///
/// Checks the CustomResourceDefinition of Sync, your permissions and those of the daemon, the
/// daemon's Deployment and Lease, the clocks, the Secrets of webhooks and of proofs, and that the
/// repositories of all Syncs can be read. Nothing is written, and no content of a Secret is read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline doctor
  moorline doctor -n platform -o json | jq '.findings[] | select(.level != \"ok\")'

Exit codes: 0 there is no error, though there may be warnings; 1 there is an error.")]
pub(super) struct DoctorArgs {
    /// The namespace of the daemon [default: where a Sync's daemon is, or else moorline]
    #[arg(long, short, value_parser = namespace)]
    namespace: Option<String>,

    /// Output format
    #[arg(long, short, value_enum)]
    output: Option<DoctorFormat>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum DoctorFormat {
    Json,
}

pub(super) fn run(arguments: &DoctorArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    with_or_without_cluster(async |connection| {
        let findings = examine(connection, arguments.namespace.as_deref()).await?;
        match arguments.output {
            Some(DoctorFormat::Json) => writeln!(streams.data, "{:#}", json!({"findings": findings}))?,
            None => write(&table(&findings.iter().map(row).collect::<Vec<_>>()), streams)?,
        }
        let failed = findings.iter().any(|finding| finding.level == Level::Error);
        Ok(if failed { Exit::Failure } else { Exit::Done })
    })
}

fn row(finding: &Finding) -> Vec<String> {
    vec![finding.level.word().to_owned(), finding.check.to_owned(), finding.text()]
}

/// Runs all checks.
async fn examine(
    connection: Result<Connection, ConnectError>,
    namespace: Option<&str>,
) -> anyhow::Result<Vec<Finding>> {
    let connection = match connection {
        Ok(connection) => connection,
        Err(error) => return Ok(vec![Finding::error("cluster", error.to_string(), "set KUBECONFIG")]),
    };
    let (server, clock) = match clock::check(&connection).await {
        Ok(found) => found,
        Err(cause) => {
            let message = format!("the API server cannot be reached: {cause}");
            let remedy = "check the kubeconfig and the network (kubectl version)";
            return Ok(vec![Finding::error("cluster", message, remedy)]);
        }
    };
    let installation = find_installation(&connection, namespace).await;
    let mut findings = vec![server, clock];
    findings.push(definition::check(&connection).await?);
    findings.push(rights::check_caller(&connection, &installation.namespace).await);
    for daemon in &installation.daemons {
        findings.push(daemons::check_deployment(daemon, &installation.namespace));
        // Without a trace of a daemon, what it lacks says nothing.
        if daemon.deployment.is_none() && daemon.lease_state.heartbeat == Heartbeat::Missing {
            continue;
        }
        findings.push(daemons::check_lease(daemon));
        findings.push(rights::check_daemon(&connection, daemon, &installation.namespace).await?);
        findings.push(secrets::check_keys(&connection, daemon).await);
        findings.push(secrets::check_webhook(&connection, daemon).await);
    }
    findings.extend(repositories::check(&installation.syncs));
    Ok(findings)
}
