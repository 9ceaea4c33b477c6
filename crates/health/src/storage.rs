//! Health of a PersistentVolumeClaim.
//!
//! In: a live claim, and the binding mode of its class.
//! Out: its health. A claim that waits for its first Pod by design is healthy: a Sync that waited
//! for the claim first would never apply that Pod.

use super::{Binding, Context, Health};
use crate::object_view::ObjectView;

/// Annotation that the scheduler sets once a Pod uses the claim: from then on a volume is
/// provisioned.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

pub(super) fn claim(live: ObjectView<'_>, context: &Context) -> Health {
    let resize =
        ["ControllerResizeError", "NodeResizeError"].iter().find_map(|kind| live.true_condition(kind));
    match live.text(&["status", "phase"]) {
        Some("Bound") => match resize {
            Some(failed) => {
                Health::degraded(format!("it could not be resized: {}", failed.reason_and_message()))
            }
            None => Health::Healthy,
        },
        Some("Lost") => Health::degraded("its volume is gone"),
        Some("Pending") | None => {
            let selected = live.text(&["metadata", "annotations", SELECTED_NODE]).is_some();
            match context.binding {
                Some(Binding::WaitForFirstConsumer) if !selected => Health::Healthy,
                Some(Binding::WaitForFirstConsumer) => {
                    Health::progressing("it waits for a volume on the node of its Pod")
                }
                Some(Binding::Immediate) => Health::progressing("it waits for a volume"),
                None => Health::progressing("it waits for a volume, or for the first Pod that uses it"),
            }
        }
        Some(phase) => Health::unknown(format!("its phase {:?} is not known", crate::message::quote(phase))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Binding, Context};
    use crate::test_fixtures::check_in;

    #[test]
    fn a_claim() {
        let check = |binding, json: &str, expect: &str| {
            let context = Context { binding, ..Context::default() };
            check_in(&context, "PersistentVolumeClaim", json, expect);
        };
        let (late, now) = (Some(Binding::WaitForFirstConsumer), Some(Binding::Immediate));
        let phase = |phase: &str| format!(r#"{{"status": {{"phase": "{phase}"}}}}"#);
        for binding in [None, late, now] {
            check(binding, &phase("Bound"), "Healthy");
            check(binding, &phase("Lost"), "Degraded: its volume is gone");
            check(binding, &phase("Odd"), r#"Unknown: its phase "Odd" is not known"#);
        }
        check(late, &phase("Pending"), "Healthy");
        check(late, "{}", "Healthy");
        check(now, &phase("Pending"), "Progressing: it waits for a volume");
        check(
            None,
            &phase("Pending"),
            "Progressing: it waits for a volume, or for the first Pod that uses it",
        );
        let selected = r#"{"metadata": {"annotations": {"volume.kubernetes.io/selected-node": "a"}}, "status": {"phase": "Pending"}}"#;
        check(late, selected, "Progressing: it waits for a volume on the node of its Pod");
        let resize = r#"{"status": {"phase": "Bound", "conditions": [{"type": "NodeResizeError", "status": "True", "message": "too small"}]}}"#;
        check(now, resize, "Degraded: it could not be resized: too small");
    }

    /// Claims have no generation in their status: a number there changes nothing.
    #[test]
    fn a_claim_has_no_generation_to_wait_for() {
        let json = r#"{"metadata": {"generation": 2}, "status": {"phase": "Bound"}}"#;
        check_in(&Context::default(), "PersistentVolumeClaim", json, "Healthy");
    }
}
