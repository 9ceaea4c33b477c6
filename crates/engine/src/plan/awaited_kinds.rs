//! Ordering of webhook configurations and APIServices after the custom resources of their set.
//!
//! In: the outcomes of objects while a plan is executed.
//! Out: the resource that a webhook configuration or an APIService waits for: one whose kind is not
//! served yet, although the set contains its definition. Applied earlier, the webhook would be
//! called for that resource before anything serves it. A kind without a definition in the set
//! blocks nothing.

use std::collections::BTreeSet;

use serde_json::Value;

use super::order::Rank;
use super::{Action, Change, Hold, Outcome, Step};
use crate::desired::{DesiredSet, PhaseWave};
use moorline_core::object::{GroupKind, ObjectId};

/// The resources whose kinds are awaited.
#[derive(Debug)]
pub struct AwaitedKinds<'a> {
    desired: &'a DesiredSet,
    /// Resources whose wait has timed out.
    late: BTreeSet<ObjectId>,
    /// The kinds that the set defines, computed on first use.
    defined: Option<BTreeSet<GroupKind>>,
    resources: BTreeSet<(PhaseWave, ObjectId)>,
}

impl<'a> AwaitedKinds<'a> {
    /// Creates it without awaited resources; `late` are resources that no longer block anything.
    pub fn new(desired: &'a DesiredSet, late: BTreeSet<ObjectId>) -> Self {
        Self { desired, late, defined: None, resources: BTreeSet::new() }
    }

    /// Records the outcome of an object; `is_served` returns true if the server serves its kind.
    pub fn record_outcome(&mut self, id: &ObjectId, outcome: &Outcome, is_served: impl FnOnce() -> bool) {
        let is_awaited = match outcome {
            Outcome::Held(Hold::UnknownKind) => true,
            Outcome::Held(Hold::WaitsFor(_)) => !is_served(),
            Outcome::Failed(why) => why.is_kind_missing() || !is_served(),
            _ => false,
        };
        let Some(wanted) = self.desired.get(id).filter(|_| is_awaited) else { return };
        let desired = self.desired;
        if self.defined.get_or_insert_with(|| defined(desired)).contains(&id.group_kind()) {
            self.resources.insert((wanted.annotations.phase_wave(), id.clone()));
        }
    }

    /// Returns the resource that a step waits for. A resource of a later phase or wave blocks no
    /// step: it waits for the step itself.
    pub fn find_blocker(&self, step: &Step) -> Option<ObjectId> {
        let waits = matches!(
            step.action,
            Action::Create
                | Action::ReplaceHookRuns { .. }
                | Action::Adopt { .. }
                | Action::Update(Change::Committed | Change::RerunHook)
        );
        if self.resources.is_empty() || !waits || Rank::of(&step.id) != Rank::Interception {
            return None;
        }
        let turn = self.desired.get(&step.id)?.annotations.phase_wave();
        let mut earlier = self.resources.iter().take_while(|(first, _)| *first <= turn);
        earlier.find(|(_, id)| !self.late.contains(id)).map(|(_, id)| id.clone())
    }

    /// Returns every awaited resource, including those that no longer block anything.
    pub fn resources(self) -> impl Iterator<Item = ObjectId> {
        self.resources.into_iter().map(|(_, id)| id)
    }
}

/// Returns the kinds that a set defines.
fn defined(desired: &DesiredSet) -> BTreeSet<GroupKind> {
    let definitions = desired
        .objects()
        .iter()
        .filter(|it| it.id.is_kind("apiextensions.k8s.io", "CustomResourceDefinition"));
    let kind = |body: &Value| {
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str);
        Some(GroupKind::new(text("/spec/group")?, text("/spec/names/kind")?))
    };
    definitions.filter_map(|it| kind(&Value::Object(it.body()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observed::Drift;
    use crate::plan::test_fixtures::{id, manifest, wanted};
    use crate::plan::{Failure, FailureReason};

    const WIDGET: &str = "example.com/Widget|a/x";
    const FLOW: &str = "argoproj.io/Workflow|a/x";
    const CONFIGURATION: &str = "admissionregistration.k8s.io/ValidatingWebhookConfiguration|/check";
    const SERVED_APART: &str = "apiregistration.k8s.io/APIService|/v1.metrics.example.com";

    /// The resource that a step waits for after the outcome of another.
    fn waits(resource: (&str, i32, Outcome), is_served: bool, step: (&str, Action)) -> Option<String> {
        let (text, wave, outcome) = resource;
        let mut definition =
            manifest("apiextensions.k8s.io/CustomResourceDefinition|/widgets.example.com", 0);
        definition["spec"] =
            serde_json::json!({"group": "example.com", "names": {"kind": "Widget", "plural": "widgets"}});
        let set = wanted(&[
            definition,
            manifest(text, wave),
            manifest(CONFIGURATION, 5),
            manifest(SERVED_APART, 5),
            manifest("/ConfigMap|a/x", 5),
        ]);
        let mut kinds = AwaitedKinds::new(&set, BTreeSet::new());
        kinds.record_outcome(&id(text), &outcome, || is_served);
        let step = Step { id: id(step.0), action: step.1 };
        let found = kinds.find_blocker(&step);
        let mut late = AwaitedKinds::new(&set, kinds.resources().collect());
        late.record_outcome(&id(text), &outcome, || is_served);
        assert_eq!(late.find_blocker(&step), None, "it was awaited for long enough");
        found.map(|id| id.to_string())
    }

    fn unknown(text: &str, wave: i32) -> (&str, i32, Outcome) {
        (text, wave, Outcome::Held(Hold::UnknownKind))
    }

    #[test]
    fn webhooks_wait_for_a_kind_that_the_set_defines() {
        let create = |text| (text, Action::Create);
        let expect = Some("Widget.example.com a/x".to_owned());
        for text in [CONFIGURATION, SERVED_APART] {
            assert_eq!(waits(unknown(WIDGET, 5), false, create(text)), expect);
            assert_eq!(waits(unknown(WIDGET, 0), false, create(text)), expect);
            assert_eq!(waits(unknown(WIDGET, 6), false, create(text)), None, "it comes later itself");
            assert_eq!(waits(unknown(FLOW, 5), false, create(text)), None, "nobody defines it");
        }
        assert_eq!(waits(unknown(WIDGET, 5), false, create("/ConfigMap|a/x")), None, "only webhooks wait");
        let committed = Action::Update(Change::Committed);
        assert_eq!(waits(unknown(WIDGET, 5), false, (CONFIGURATION, committed)), expect);
        let drifted = Action::Update(Change::Drifted(Box::<Drift>::default()));
        assert_eq!(
            waits(unknown(WIDGET, 5), false, (CONFIGURATION, drifted)),
            None,
            "a repair does not wait"
        );
    }

    #[test]
    fn a_resource_is_awaited_only_while_its_kind_is_not_served() {
        let failed = |reason| Outcome::Failed(Failure { reason, message: String::new(), manifest: false });
        let step = || (CONFIGURATION, Action::Create);
        let behind = || Outcome::Held(Hold::WaitsFor(id("/Namespace|/a")));
        assert!(waits((WIDGET, 5, failed(FailureReason::KindMissing)), true, step()).is_some());
        assert!(waits((WIDGET, 5, failed(FailureReason::WebhookDenied)), true, step()).is_none());
        assert!(waits((WIDGET, 5, behind()), false, step()).is_some());
        assert!(waits((WIDGET, 5, behind()), true, step()).is_none());
        assert!(waits((WIDGET, 5, Outcome::Created), true, step()).is_none());
    }
}
