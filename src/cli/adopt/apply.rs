//! `moorline adopt --apply`: stops the old tool and creates the Sync that takes over.
//!
//! In: a proposal without refusals. Out: the old resource stopped, the Sync created and
//! applied. The creation of the Sync is tried first, as a dry run. Then the old tool is stopped, by
//! one write that records its previous state on the resource; then the Sync is created; the daemon
//! adopts each object when it first applies it. After an interruption the same command continues.

use anyhow::{Context as _, bail};

use super::super::Streams;
use super::super::exit::Exit;
use super::inputs::{AdoptionInputs, kind};
use super::proposal::Proposal;
use crate::adopt::{busy_reason, is_stopped, stop_patch};
use crate::cli::operate::sync::{request_poll, wait_until_settled};
use crate::cluster::Connection;

/// Applies a proposal, and waits until the Sync has applied its revision.
///
/// # Guarantees
///
/// The old tool is stopped before the Sync exists, and no object is deleted. The dry run of the
/// creation comes before every write.
///
/// # Cancellation
///
/// Safe at any time: a later run continues from the state that it finds.
///
/// # Errors
///
/// Fails if the Sync cannot be created, the old tool cannot be stopped or was started again by
/// another writer, or the Sync does not settle in time.
pub(super) async fn apply_proposal(
    connection: &Connection,
    proposal: &Proposal<'_>,
    timeout: u64,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let (gathered, sync) = (proposal.gathered, &proposal.sync);
    let called = gathered.display_name();
    let manifest = &proposal.adoption.sync;
    if !proposal.sync_exists {
        let trial = connection.create_sync(manifest, true).await;
        trial.with_context(|| format!("the Sync {sync} could not be created, and nothing was changed"))?;
    }
    stop(connection, proposal).await?;
    streams.say(&format!("{} no longer reconciles {called}", gathered.tool.name()));
    if !proposal.sync_exists {
        let created = connection.create_sync(manifest, false).await;
        created.with_context(|| {
            format!(
                "{called} is stopped, but the Sync {sync} was not created: run this again, or with --undo"
            )
        })?;
        streams.say(&format!("the Sync {sync} is created"));
    }
    if manifest.pointer("/spec/suspend").is_some() {
        streams.say(&format!(
            "{sync} is suspended, as it was before: run moorline resume {} -n {} to apply it",
            sync.name, sync.namespace
        ));
        return Ok(Exit::Done);
    }
    let (request, before) = request_poll(connection, sync).await?;
    let settled = wait_until_settled(connection, &request, &before, timeout, streams).await;
    let exit = settled.with_context(|| {
        format!("{called} is stopped: run this again after fixing the problem, or with --undo")
    })?;
    print_result(proposal, exit, streams);
    stays_halted(connection, proposal).await?;
    print_next_steps(proposal, streams);
    Ok(exit)
}

/// Fails if the generator or another manager of the old resource has started it again meanwhile.
async fn stays_halted(connection: &Connection, proposal: &Proposal<'_>) -> anyhow::Result<()> {
    let AdoptionInputs { tool, namespace, name, .. } = proposal.gathered;
    let now = connection.third_party_object(kind(*tool), namespace, name).await?;
    if now.is_some_and(|now| !is_stopped(*tool, &now)) {
        bail!(
            "somebody has changed {} since, so that it would reconcile or delete its objects: do not delete it; find the field manager that applies it (kubectl get {} {name} -n {namespace} -o yaml --show-managed-fields), stop that, and run this with --undo",
            proposal.gathered.display_name(),
            tool.resource()
        );
    }
    Ok(())
}

async fn stop(connection: &Connection, proposal: &Proposal<'_>) -> anyhow::Result<()> {
    let AdoptionInputs { tool, namespace, name, live, record: former, .. } = proposal.gathered;
    let called = proposal.gathered.display_name();
    if former.is_some() {
        if !is_stopped(*tool, live) {
            bail!(
                "{called} was adopted before, and has been restarted since: run this with --undo, and then adopt it again"
            );
        }
        return Ok(());
    }
    if let Some(why) = busy_reason(*tool, live) {
        bail!("{called} is not adopted now, and nothing was changed: {why}");
    }
    let patch = stop_patch(*tool, live, &proposal.sync);
    let stopped = connection.patch_third_party(kind(*tool), namespace, name, &patch).await;
    stopped.with_context(|| format!("{called} could not be stopped, and nothing was changed; try again"))
}

/// Prints the result.
fn print_result(proposal: &Proposal<'_>, exit: Exit, streams: &mut Streams<'_>) {
    let steps = proposal.plan().into_iter().flat_map(|plan| plan.steps());
    let adopted = steps.filter(|step| step.action.verb() == "adopt").count();
    if exit != Exit::Done {
        streams.say("the Sync has not applied everything: see the problems above");
    }
    let objects = if adopted == 1 { "object was" } else { "objects were" };
    streams.say(&format!("{adopted} {objects} adopted; none was deleted or recreated"));
}

/// Prints how to finish the adoption, and how to undo it.
fn print_next_steps(proposal: &Proposal<'_>, streams: &mut Streams<'_>) {
    let AdoptionInputs { tool, namespace, name, .. } = proposal.gathered;
    let subject = tool.kind().to_ascii_lowercase();
    let first = match proposal.gathered.application_set_name() {
        Some(maker) => format!("remove it from the generators of the ApplicationSet {maker}, then "),
        None => String::new(),
    };
    streams.say(&format!(
        "to finish: {first}kubectl delete {} {name} -n {namespace} (no object is deleted with it)",
        tool.resource()
    ));
    if let Some((space, newest)) = &proposal.gathered.release.stored {
        let release = newest.strip_prefix("sh.helm.release.v1.").and_then(|rest| rest.rsplit_once('.'));
        let release = release.map_or("", |(release, _)| release);
        streams.say(&format!(
            "helm list still shows the release, whose Secrets are kept: do not run helm uninstall, which would delete the objects; once you do not want to go back, kubectl delete secrets -n {space} -l owner=helm,name={release} removes them"
        ));
    }
    streams.say(&format!("to go back instead: moorline adopt {subject}/{name} -n {namespace} --undo"));
}
