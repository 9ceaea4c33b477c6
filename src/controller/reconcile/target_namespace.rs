//! Creates the target namespace of a Sync, if its spec asks for that.

use super::ReconcileContext;
use crate::controller::memory::pending_namespaces::may_be_missing;
use crate::controller::status::log_lines::{LogSubject, Tone};
use crate::desired::DesiredSet;
use crate::plan::Plan;

/// Creates the target namespace, if the Sync asks for that and it may be missing. On a failure
/// the objects in it report the problem. Returns the name if it was created.
pub(super) async fn create_namespace(
    inputs: &ReconcileContext<'_>,
    plan: &Plan,
    desired: &DesiredSet,
) -> Option<Box<str>> {
    let name = &*inputs.wish.target_namespace;
    let needed = inputs.wish.create_namespace
        && inputs.cluster.read_observed(inputs.owner, |seen| may_be_missing(plan, desired, seen, name));
    if !needed {
        return None;
    }
    match inputs.cluster.create_namespace(name).await {
        Ok(created) => {
            inputs.context.reporting.lines.end_condition(inputs.owner, LogSubject::Namespace);
            tracing::info!(sync = %inputs.owner, namespace = name, created, "target namespace ensured");
            created.then(|| name.into())
        }
        Err(failure) => {
            let text = format!("the namespace {name} could not be created: {failure}");
            inputs.context.reporting.lines.log_condition(
                inputs.owner,
                LogSubject::Namespace,
                Tone::Warning,
                "NamespaceMissing",
                &text,
            );
            None
        }
    }
}
