//! `moorline install` without `--dry-run`: applies the objects to the cluster.
//!
//! In: the objects of the installation. Out: each object applied by server-side apply, a line for
//! each, and a sum. A cluster that a newer Moorline has been installed in is left alone: an older
//! definition would drop fields of its Syncs.

use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::Value;

use super::super::Streams;
use super::super::exit::Exit;
use super::super::operate::reading;
use crate::cluster::{
    ApiError, Cluster, Connection, CrdInstallResult, Force, ManifestChange, apply_manifest, install_crd,
};
use crate::metrics::Metrics;
use crate::object::GroupKind;

/// Field manager of the objects.
const MANAGER: &str = "moorline-cli";

/// Time for the API server to serve Syncs after their definition was created.
const SERVED_WITHIN: Duration = Duration::from_secs(30);

/// Interval at which that is asked.
const POLL: Duration = Duration::from_millis(200);

/// Applies the objects in their order.
///
/// # Guarantees
///
/// Nothing is written if the definition is of a newer Moorline. Fields that other managers own are
/// taken over only with `Force::Yes`.
///
/// # Cancellation
///
/// Safe at any time: a later run continues from the state that it finds.
///
/// # Errors
///
/// The first object that cannot be applied ends the installation; those before it stay.
pub(super) async fn apply_objects(
    connection: Connection,
    objects: &[Value],
    force: Force,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let cluster = reading(connection, &Metrics::new()?);
    cluster.discovery().ensure().await?;
    // The definition is second in the order, but nothing is written before it is compared.
    let (definitions, others): (Vec<&Value>, _) = objects.iter().partition(|object| is_definition(object));
    let mut changes = Vec::new();
    for definition in definitions {
        let change = apply_definition(&cluster, definition, streams).await?;
        changes.push(change);
        print_change(definition, change, streams)?;
    }
    for object in others {
        if object["kind"] == "Sync" {
            await_syncs(&cluster).await?;
        }
        let change = apply_manifest(&cluster, object, MANAGER, force).await;
        let change = change.map_err(|failure| explained(failure, object, changes.len()))?;
        changes.push(change);
        print_change(object, change, streams)?;
    }
    writeln!(streams.data, "{}", summarize(&changes))?;
    Ok(Exit::Done)
}

fn is_definition(object: &Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
}

async fn apply_definition(
    cluster: &Cluster,
    definition: &Value,
    streams: &mut Streams<'_>,
) -> anyhow::Result<ManifestChange> {
    match install_crd(cluster, definition).await {
        CrdInstallResult::UpToDate => Ok(ManifestChange::Unchanged),
        CrdInstallResult::Applied => Ok(ManifestChange::Changed),
        CrdInstallResult::AppliedBySync(sync) => {
            streams.say(&format!(
                "note: the CustomResourceDefinition of Sync differs, and is left to the Sync {sync}, which applies it"
            ));
            Ok(ManifestChange::Unchanged)
        }
        CrdInstallResult::Newer(version) => bail!(
            "this cluster has the definition of Moorline {version}, and this is {}: an older daemon and definition would \
             drop fields of its Syncs, so nothing was written; install with moorline {version} or newer",
            env!("CARGO_PKG_VERSION")
        ),
        CrdInstallResult::Unreadable(failure) if failure.code() == Some(404) => {
            let created = apply_manifest(cluster, definition, MANAGER, Force::No).await;
            created.map_err(|failure| explained(failure, definition, 0))
        }
        CrdInstallResult::NotUpdated(failure) | CrdInstallResult::Unreadable(failure) => {
            Err(explained(failure, definition, 0))
        }
    }
}

/// Waits until the API server serves Syncs.
async fn await_syncs(cluster: &Cluster) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        cluster.discovery().refresh().await?;
        if cluster.kinds().get(&GroupKind::new("moorline.dev", "Sync")).is_some() {
            return Ok(());
        }
        if begun.elapsed() > SERVED_WITHIN {
            bail!(
                "the API server does not serve Syncs {} s after their CustomResourceDefinition was applied: look at its \
                 conditions (kubectl describe crd syncs.moorline.dev), then run this again",
                SERVED_WITHIN.as_secs()
            );
        }
        tokio::time::sleep(POLL).await;
    }
}

fn explained(failure: ApiError, object: &Value, before: usize) -> anyhow::Error {
    let managers = match &failure {
        ApiError::Refused(status) if status.code == 409 => status.managers().join(" and "),
        _ => String::new(),
    };
    let remedy = match (failure.code(), managers.as_str()) {
        (Some(409), managers) if !managers.is_empty() => format!(
            "; {managers} owns these fields: if they are from an earlier installation, add --force-conflicts"
        ),
        (Some(403), _) => {
            "; an administrator of the cluster has to run this, or to apply what --dry-run prints".to_owned()
        }
        _ => String::new(),
    };
    let applied = match before {
        0 => "nothing was written",
        _ => "the objects before it are applied, and this can be run again",
    };
    anyhow::Error::new(failure).context(format!("{} cannot be applied{remedy} ({applied})", describe(object)))
}

fn print_change(object: &Value, change: ManifestChange, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    let word = match change {
        ManifestChange::Created => "created",
        ManifestChange::Changed => "changed",
        ManifestChange::Unchanged => "unchanged",
    };
    Ok(writeln!(streams.data, "{word:<9}  {}", describe(object))?)
}

/// Kind and name of an object, with its namespace.
fn describe(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

fn summarize(changes: &[ManifestChange]) -> String {
    let count = |wanted: ManifestChange| changes.iter().filter(|change| **change == wanted).count();
    let parts = [
        (count(ManifestChange::Created), "created"),
        (count(ManifestChange::Changed), "changed"),
        (count(ManifestChange::Unchanged), "unchanged"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    format!("{} objects: {}", changes.len(), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sum_counts_what_there_is() {
        use ManifestChange::{Changed, Created, Unchanged};
        assert_eq!(summarize(&[Created, Created, Unchanged]), "3 objects: 2 created, 1 unchanged");
        assert_eq!(summarize(&[Changed, Changed]), "2 objects: 2 changed");
    }

    #[test]
    fn an_object_is_named_with_its_namespace() {
        let object = |metadata: Value| json!({"kind": "Role", "metadata": metadata});
        assert_eq!(describe(&object(json!({"name": "a", "namespace": "b"}))), "Role b/a");
        assert_eq!(describe(&object(json!({"name": "a"}))), "Role a");
    }
}
