//! `moorline version`: prints the versions of the program and of what it works with.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::Streams;
use super::exit::Exit;
use super::installation::{Installation, find_installation};
use super::operate::table::table;
use super::operate::{namespace, with_or_without_cluster, write};
use crate::api::VERSION_ANNOTATION;
use crate::cluster::{ConnectError, Connection};

/// Path of the CustomResourceDefinition of Sync.
pub(super) const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/syncs.moorline.dev";

/// The commit that the program was built from, if the build names it.
const COMMIT: Option<&str> = option_env!("MOORLINE_COMMIT");

/// Print the versions of this program, the daemon and the API server
///
/// Also that of the CustomResourceDefinition of Sync. Without a cluster, only the version of this
/// program. The version of a daemon is the one that it writes into its Lease, or else that of its
/// Deployment.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  moorline version
  moorline version -o json | jq -r .client.version

Exit codes: 0 also without a cluster.")]
pub(super) struct VersionArgs {
    /// The namespace of the daemon [default: where a Sync's daemon is, or else moorline]
    #[arg(long, short, value_parser = namespace)]
    namespace: Option<String>,

    /// Output format
    #[arg(long, short, value_enum)]
    output: Option<VersionFormat>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum VersionFormat {
    Json,
}

pub(super) fn run(arguments: &VersionArgs, streams: &mut Streams<'_>) -> anyhow::Result<Exit> {
    with_or_without_cluster(async |connection| {
        let versions = match cluster_versions(connection, arguments).await {
            Ok(of_cluster) => of_cluster,
            Err(why) => {
                streams.say(&format!("note: only the version of this program is known: {why}"));
                json!({})
            }
        };
        let versions = with_client(versions);
        match arguments.output {
            Some(VersionFormat::Json) => writeln!(streams.data, "{versions:#}")?,
            None => write(&table(&rows(&versions)), streams)?,
        }
        Ok(Exit::Done)
    })
}

async fn cluster_versions(
    connection: Result<Connection, ConnectError>,
    arguments: &VersionArgs,
) -> Result<Value, String> {
    let connection = connection.map_err(|error| error.to_string())?;
    let server = connection.server_info().await;
    let server = server.map_err(|cause| format!("the API server cannot be reached: {cause}"))?;
    let definition = connection.look_up(DEFINITION).await;
    let definition =
        definition.found().map(|live| live["metadata"]["annotations"][VERSION_ANNOTATION].clone());
    let installation = find_installation(&connection, arguments.namespace.as_deref()).await;
    Ok(json!({
        "daemons": daemons(&installation),
        "server": {"version": server.version},
        "definition": {"version": definition},
    }))
}

/// The daemons whose version is known.
fn daemons(installation: &Installation) -> Vec<Value> {
    let known = installation.daemons.iter().filter_map(|daemon| {
        let version = daemon.version()?;
        Some(json!({"version": version, "lease": daemon.lease, "image": daemon.image()}))
    });
    known.collect()
}

fn with_client(mut versions: Value) -> Value {
    versions["client"] = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": COMMIT.filter(|commit| !commit.is_empty()),
        "target": env!("MOORLINE_TARGET"),
    });
    versions
}

/// The versions as lines of a table.
fn rows(versions: &Value) -> Vec<Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let row = |name: &str, version: &Value, about: String| vec![name.to_owned(), text(version), about];
    let client = &versions["client"];
    let commit = client["commit"].as_str().map(|commit| format!("commit {commit}, ")).unwrap_or_default();
    let mut rows = vec![row("client", &client["version"], format!("{commit}{}", text(&client["target"])))];
    let Some(daemons) = versions["daemons"].as_array() else { return rows };
    for daemon in daemons {
        let image = daemon["image"].as_str().map(|image| format!(", image {image}")).unwrap_or_default();
        rows.push(row("daemon", &daemon["version"], format!("Lease {}{image}", text(&daemon["lease"]))));
    }
    if daemons.is_empty() {
        rows.push(row("daemon", &Value::Null, "no Lease and no Deployment shows it".to_owned()));
    }
    rows.push(row("server", &versions["server"]["version"], String::new()));
    rows.push(row("definition", &versions["definition"]["version"], String::new()));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_shown_as_far_as_they_are_known() {
        let client = json!({"version": "1.2.0", "commit": "1f0c", "target": "a-b-c"});
        let alone = json!({"client": client});
        assert_eq!(table(&rows(&alone)), "client  1.2.0  commit 1f0c, a-b-c\n");
        let daemon = json!({"version": "1.1.0", "lease": "moorline/moorline", "image": "a/moorline:1.1.0"});
        let whole = json!({
            "client": {"version": "1.2.0", "commit": null, "target": "a-b-c"}, "daemons": [daemon],
            "server": {"version": "v1.33.4"}, "definition": {"version": null},
        });
        let expect = "client      1.2.0    a-b-c\n\
                      daemon      1.1.0    Lease moorline/moorline, image a/moorline:1.1.0\n\
                      server      v1.33.4\n\
                      definition  unknown\n";
        assert_eq!(table(&rows(&whole)), expect);
    }
}
