//! `moorline plan --sync-set`: each Sync of a SyncSet, and what the daemon would do with it.
//!
//! In: the name of a SyncSet in the cluster of KUBECONFIG. Out: a line for each Sync; in full also
//! the plan of each Sync that would be created or changed.

use anyhow::{anyhow, bail};
use serde_json::Value;

use super::Streams;
use super::exit::Exit;
use super::operate::{inspect_manifest, on_cluster, reading};
use super::plan::{decide, read_live_objects};
use super::temporary_folder::TemporaryFolder;
use crate::api::{APPROVE_ANNOTATION, SyncName, SyncStatus};
use crate::cluster::{Cluster, Connection, Lookup};
use crate::controller::inspect::sync_set::plan_sync_set;
use crate::controller::sync_sets::set_rollout::describe_rollout;
use crate::metrics::Metrics;
use crate::plan::{ColourMode, DetailLevel, Style, format_plan};
use crate::sanitize::sanitize;
use crate::source::{AllowList, HostPolicy, Repositories};
use crate::sync_set::{PlannedRemoval, SetChild, SetPlan, SetStep};

/// Plans a SyncSet; with `in_full` also its Syncs.
pub(super) fn run(
    set: &str,
    (namespace, in_full): (Option<&str>, bool),
    allowed: &AllowList,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    on_cluster(async |connection| {
        let name = SyncName::new(namespace.unwrap_or(&connection.namespace), set);
        let (raw, syncs) = look_up(&connection, &name).await?;
        let folder = TemporaryFolder::new()?;
        let repositories = Repositories::new(folder.path(), None, HostPolicy::allow_all())?;
        let metrics = Metrics::new()?;
        let cluster = reading(connection, &metrics);
        let planned = plan_sync_set((&cluster, &repositories), &name, &raw, &syncs).await;
        let plan = planned.map_err(|error| anyhow!("{}", error.message))?;
        print(&plan, &name, streams)?;
        if in_full {
            cluster.discovery().ensure().await?;
            for child in written(&plan) {
                print_child((&cluster, &metrics), &name.namespace, child, allowed, streams).await?;
            }
        }
        Ok(exit(&plan))
    })
}

/// Reads a SyncSet.
pub(super) async fn look_up_set(connection: &Connection, name: &SyncName) -> anyhow::Result<Value> {
    let SyncName { namespace, name: set, .. } = name;
    let path = format!("/apis/moorline.dev/v1alpha1/namespaces/{namespace}/syncsets/{set}");
    found(connection.look_up(&path).await, &format!("the SyncSet {name}"))
}

fn found(lookup: Lookup, what: &str) -> anyhow::Result<Value> {
    match lookup {
        Lookup::Found(found) => Ok(found),
        Lookup::Missing => bail!("{what} does not exist"),
        Lookup::Forbidden => bail!("you may not read {what}"),
        Lookup::Failed(cause) => bail!("{what} cannot be read: {cause}"),
    }
}

/// Reads the SyncSet and the Syncs of its namespace.
async fn look_up(connection: &Connection, name: &SyncName) -> anyhow::Result<(Value, Vec<Value>)> {
    let set = look_up_set(connection, name).await?;
    let path = format!("/apis/moorline.dev/v1alpha1/namespaces/{}/syncs", name.namespace);
    let syncs = connection.look_up(&path).await;
    let mut syncs = found(syncs, &format!("the list of Syncs in {}", name.namespace))?;
    match syncs["items"].take() {
        Value::Array(items) => Ok((set, items)),
        _ => bail!("the list of Syncs in {} cannot be read", name.namespace),
    }
}

/// Returns the Syncs that would be created or changed.
fn written(plan: &SetPlan) -> impl Iterator<Item = &SetChild> {
    plan.steps.iter().filter_map(|step| match step {
        SetStep::Create(child) | SetStep::Update { child, .. } => Some(child),
        SetStep::Keep(_) | SetStep::Await(_) | SetStep::Conflict(_) | SetStep::Hold(_) => None,
    })
}

fn print(plan: &SetPlan, name: &SyncName, streams: &mut Streams<'_>) -> anyhow::Result<()> {
    for step in &plan.steps {
        let (word, child) = match step {
            SetStep::Create(child) => ("create", &child.name),
            SetStep::Update { child, .. } => ("change", &child.name),
            SetStep::Keep(child) => ("keep", child),
            SetStep::Await(child) => ("create when its deletion ends", child),
            SetStep::Conflict(child) => ("conflict: a Sync that is not of this SyncSet has the name", child),
            SetStep::Hold(child) => ("change when its stage begins", child),
        };
        let stage = plan.rollout.as_ref().and_then(|rollout| rollout.stages.get(child));
        let stage = stage.map(|stage| format!(" (stage {stage})")).unwrap_or_default();
        writeln!(streams.data, "{}: {word}{stage}", sanitize(child))?;
    }
    let open = plan.rollout.as_ref().and_then(|rollout| rollout.state.as_ref());
    let (word, syncs) = match &plan.removal {
        PlannedRemoval::Remove(gone) => ("remove", gone.iter().map(|(name, _, _)| name.clone()).collect()),
        PlannedRemoval::Hold { syncs, .. } => ("hold: the removal needs approval", syncs.clone()),
        PlannedRemoval::Wait { syncs, .. } if open.is_some() => {
            ("remove after the last stage", syncs.clone())
        }
        PlannedRemoval::Wait { syncs, .. } => ("remove when the other Syncs have rendered", syncs.clone()),
        PlannedRemoval::Keep(left) => ("keep: spec.prune.enabled is false", left.clone()),
    };
    for sync in &syncs {
        writeln!(streams.data, "{}: {word}", sanitize(sync))?;
    }
    if let Some(open) = open {
        streams.say(&format!("note: {}", sanitize(&describe_rollout(open))));
    }
    if let PlannedRemoval::Hold { hash, .. } = &plan.removal {
        let SyncName { namespace, name, .. } = name;
        streams.say(&format!(
            "note: kubectl annotate syncset {name} -n {namespace} --overwrite {APPROVE_ANNOTATION}={hash} approves the removal"
        ));
    }
    Ok(())
}

/// Prints the plan of a Sync.
async fn print_child(
    (cluster, metrics): (&Cluster, &Metrics),
    namespace: &str,
    child: &SetChild,
    allowed: &AllowList,
    streams: &mut Streams<'_>,
) -> anyhow::Result<()> {
    let owner = SyncName::new(namespace, &child.name);
    writeln!(streams.data, "\n{}:", sanitize(&child.name))?;
    match inspect_manifest(cluster, metrics, &owner, child.manifest.clone(), None, allowed).await? {
        Err(error) => writeln!(streams.data, "{}", sanitize(&error.message))?,
        Ok(inspected) => {
            let live = read_live_objects(cluster, &owner, &inspected.desired, &[]).await?;
            let policy = inspected.policy(None, &SyncStatus::default());
            let (plan, preview) = decide(&inspected.desired, &live, &owner, policy, &[]);
            let style = Style { paint: ColourMode::Plain, extent: DetailLevel::Brief };
            streams.data.write_all(format_plan(&plan, &preview.differences, style).as_bytes())?;
        }
    }
    Ok(())
}

fn exit(plan: &SetPlan) -> Exit {
    let is_held = matches!(&plan.removal, PlannedRemoval::Hold { .. } | PlannedRemoval::Wait { .. })
        || plan.steps.iter().any(|step| matches!(step, SetStep::Conflict(_) | SetStep::Hold(_)));
    let removes = matches!(&plan.removal, PlannedRemoval::Remove(gone) if !gone.is_empty());
    match (written(plan).next().is_some() || removes, is_held) {
        (true, _) => Exit::Changes,
        (false, true) => Exit::Held,
        (false, false) => Exit::Done,
    }
}
