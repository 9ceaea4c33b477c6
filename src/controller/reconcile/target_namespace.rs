//! Creates the target namespace of a Sync, if its spec asks for that.

use super::ReconcileContext;
use crate::controller::memory::pending_namespaces::may_be_missing;
use crate::controller::status::log_lines::{LogSubject, Tone};
use crate::desired::DesiredSet;
use crate::plan::Plan;

impl ReconcileContext<'_> {
    /// Creates the target namespace, if the Sync asks for that and it may be missing. On a failure
    /// the objects in it report the problem. Returns the name if it was created.
    pub(super) async fn create_namespace(&self, plan: &Plan, desired: &DesiredSet) -> Option<Box<str>> {
        let name = &*self.wish.target_namespace;
        let needed = self.wish.create_namespace
            && self.cluster.read_observed(self.owner, |seen| may_be_missing(plan, desired, seen, name));
        if !needed {
            return None;
        }
        match self.cluster.create_namespace(name).await {
            Ok(created) => {
                self.context.end_condition(self.owner, LogSubject::Namespace);
                tracing::info!(sync = %self.owner, namespace = name, created, "target namespace ensured");
                created.then(|| name.into())
            }
            Err(failure) => {
                let text = format!("the namespace {name} could not be created: {failure}");
                self.context.log_condition(
                    self.owner,
                    LogSubject::Namespace,
                    Tone::Warning,
                    "NamespaceMissing",
                    &text,
                );
                None
            }
        }
    }
}
