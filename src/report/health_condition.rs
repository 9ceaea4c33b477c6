//! Builds the Healthy condition.
//!
//! In: a summary of the objects' health, and the previous status. Out: the condition, and the
//! reason why the Sync is not ready. While objects are still being read, the earlier condition of
//! the same revision is kept.

use super::StatusInputs;
use crate::api::{ConditionType, Reason, SyncStatus};
use crate::grammar;
use crate::health::{Health, HealthSummary};

/// The Healthy condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HealthCondition {
    pub(super) status: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
}

impl HealthCondition {
    /// Builds the condition; `None` if nothing is known yet.
    pub(super) fn build(before: &SyncStatus, facts: &StatusInputs<'_>) -> Option<Self> {
        let (summary, pass) = (facts.health?, facts.reconcile.as_ref()?);
        if summary.is_known() || summary.degraded > 0 {
            return Some(Self::from_summary(summary));
        }
        let attempted = before.revision.as_ref().and_then(|revision| revision.attempted.as_ref());
        let same = attempted == Some(&pass.revision) && before.observed_generation == facts.generation;
        let previous = Self::previous(before).filter(|_| same);
        previous.or_else(|| Some(Self::from_summary(summary)))
    }

    /// The condition of the previous status.
    pub(super) fn previous(before: &SyncStatus) -> Option<Self> {
        let type_ = ConditionType::Healthy.to_string();
        let known = before.conditions.iter().find(|condition| condition.type_ == type_)?;
        let status = ["True", "False"].into_iter().find(|status| **status == *known.status);
        Some(Self {
            status: status.unwrap_or("Unknown"),
            reason: known.reason.clone(),
            message: known.message.clone(),
        })
    }

    fn from_summary(summary: &HealthSummary) -> Self {
        let waiting = summary.unread + summary.progressing;
        let (status, reason) = match (summary.degraded, summary.unknown, waiting) {
            (1.., _, _) => ("False", Reason::Degraded),
            (0, 1.., _) => ("Unknown", Reason::HealthUnknown),
            (0, 0, 1..) => ("Unknown", Reason::Progressing),
            (0, 0, 0) => ("True", Reason::Healthy),
        };
        let message = match summary.worst.first() {
            Some((id, health)) => {
                let all = summary.degraded + summary.unknown + waiting;
                let more = if all > 1 { format!(" (and {} more)", all - 1) } else { String::new() };
                format!("{id}: {}{more}", health.message().unwrap_or_default())
            }
            None if summary.unread > 0 => {
                let objects = grammar::counted(summary.objects, "object");
                let (status, is) = if summary.unread == 1 { ("status", "is") } else { ("statuses", "are") };
                format!("the {status} of {} of {objects} {is} being read", summary.unread)
            }
            // No number: completed Jobs that are removed would change it, and each change is a
            // write.
            None => "all objects that report health are healthy".to_owned(),
        };
        Self { status, reason: reason.to_string(), message }
    }

    pub(super) fn is_healthy(&self) -> bool {
        self.status == "True"
    }

    /// True if the state is expected to improve without a person.
    pub(super) fn is_progressing(&self) -> bool {
        Reason::parse(&self.reason) == Some(Reason::Progressing)
    }
}

/// The objects that are unhealthy and will not recover alone, each with its message.
pub(super) fn unhealthy_objects(
    summary: &HealthSummary,
) -> impl Iterator<Item = (&crate::object::ObjectId, &'static str, &str)> {
    summary.worst.iter().filter_map(|(id, health)| match health {
        Health::Degraded { why } => Some((id, "Degraded", why.as_str())),
        Health::Unknown { why } => Some((id, "HealthUnknown", why.as_str())),
        Health::Progressing { .. } | Health::Healthy | Health::Suspended => None,
    })
}
