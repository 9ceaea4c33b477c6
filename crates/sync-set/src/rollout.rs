//! Holds back the steps of a plan that belong to later stages of a roll-out.
//!
//! In: a plan, all children with their stages, the live Syncs of a set, and the age of a time.
//! Out: the plan with [`SetStep::Hold`] for children that have to wait, and a [`RolloutState`] with
//! what they wait for. All follows from what is in the cluster, so a restart decides the same.
//!
//! A stage is over when each of its Syncs is as wanted, ready and healthy, and has been so for the
//! time of the stage. Repairs of Syncs that have their newest form wait for no stage. Once every
//! new spec is written, a later change of a condition begins no time again.

use std::collections::BTreeMap;
use std::time::Duration;

use moorline_api::{LabelOperator, RolloutStage, SetRollout, WindowRequirement};
use serde_json::Value;

use crate::child_condition::{ChildCondition, SettledTimes};
use crate::children::{SetChild, SetChildren};
use crate::existing::ExistingSync;
use crate::plan::{SetPlan, SetStep};
use crate::unavailable::UnavailableLimit;

/// The stages of a set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RolloutPolicy {
    stages: Vec<StagePolicy>,
}

#[derive(Debug, Clone, PartialEq)]
struct StagePolicy {
    labels: BTreeMap<String, String>,
    expressions: Vec<WindowRequirement>,
    limit: UnavailableLimit,
    healthy_for: Duration,
}

/// The stages of a planned set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRollout {
    /// The stage of each child, from 1.
    pub stages: BTreeMap<String, usize>,
    /// The stage that is not over; none if all are.
    pub state: Option<RolloutState>,
}

/// A stage that is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutState {
    /// Its number, from 1.
    pub stage: usize,
    /// The number of stages; Syncs that none selects are one more.
    pub of: usize,
    /// The Syncs that have to be ready and healthy.
    pub waiting_for: Vec<String>,
    /// The reason why the first of them is not.
    pub why: String,
    /// The end of the time for which its Syncs have to be healthy, as time since 1970.
    pub until: Option<Duration>,
    /// The rest of that time.
    pub left: Option<Duration>,
    /// True if a Sync is degraded, so that nothing further is written.
    pub is_stopped: bool,
    /// The number of Syncs whose new specs are held back.
    pub held: usize,
}

/// A child in its stage.
struct Member<'a> {
    /// Its place in the plan.
    at: usize,
    name: &'a str,
    /// A new form of it waits to be written.
    is_pending: bool,
    /// None if it does not exist.
    condition: Option<ChildCondition>,
}

impl RolloutPolicy {
    /// Reads the roll-out of a spec, or returns every error in it.
    pub(crate) fn of(rollout: &SetRollout) -> Result<Self, Vec<String>> {
        let mut errors = Vec::new();
        if let Some(other) = rollout.on_failure.as_deref().filter(|action| *action != "Stop") {
            errors.push(format!(
                "spec.rollout.onFailure: {other} is not supported, only Stop: to return a stage, take the change of the template back"
            ));
        }
        let mut stages = Vec::new();
        for (at, stage) in rollout.stages.iter().enumerate() {
            match StagePolicy::of(stage) {
                Ok(stage) => stages.push(stage),
                Err((field, error)) => errors.push(format!("spec.rollout.stages[{at}].{field}: {error}")),
            }
        }
        if errors.is_empty() { Ok(Self { stages }) } else { Err(errors) }
    }

    /// Returns the stage of a child, from 0; the number of stages if none selects it.
    fn stage_of(&self, child: &SetChild) -> usize {
        let labels = child.manifest.pointer("/metadata/labels").and_then(Value::as_object);
        let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
        let labels: BTreeMap<String, String> = labels.into_iter().flatten().filter_map(text).collect();
        self.stages.iter().position(|stage| stage.selects(&labels)).unwrap_or(self.stages.len())
    }
}

impl StagePolicy {
    fn of(stage: &RolloutStage) -> Result<Self, (&'static str, &'static str)> {
        let limit = UnavailableLimit::of(stage.max_unavailable.as_ref())
            .ok_or(("maxUnavailable", "write a number from 1, or a share from 1% to 100%"))?;
        let healthy_for = match &stage.healthy_for {
            Some(text) => text.duration().ok_or(("healthyFor", "write a duration from 5s to 24h"))?,
            None => Duration::ZERO,
        };
        if stage.match_labels.is_none() && stage.match_expressions.is_none() {
            return Err(("matchLabels", "select the Syncs of the stage"));
        }
        let labels = stage.match_labels.clone().unwrap_or_default();
        let expressions = stage.match_expressions.clone().unwrap_or_default();
        let compares =
            |it: &WindowRequirement| matches!(it.operator, LabelOperator::In | LabelOperator::NotIn);
        if expressions.iter().any(|it| compares(it) && it.values.is_empty()) {
            return Err(("matchExpressions", "In and NotIn need values"));
        }
        Ok(Self { labels, expressions, limit, healthy_for })
    }

    fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let has_all = self.labels.iter().all(|(key, value)| labels.get(key) == Some(value));
        has_all && self.expressions.iter().all(|requirement| requirement.fits(labels))
    }
}

impl Member<'_> {
    fn is_suspended(&self) -> bool {
        self.condition == Some(ChildCondition::Suspended)
    }

    fn is_settled(&self) -> bool {
        matches!(self.condition, Some(ChildCondition::Settled(_)))
    }

    /// True if it has its newest form and is not ready or not healthy with it.
    fn is_awaited(&self) -> bool {
        !self.is_pending && !self.is_settled() && !self.is_suspended()
    }

    /// Returns the reason why it is degraded with its newest form.
    fn failure(&self) -> Option<&String> {
        match &self.condition {
            Some(ChildCondition::Degraded(why)) if !self.is_pending => Some(why),
            _ => None,
        }
    }

    fn why(&self) -> String {
        match &self.condition {
            Some(ChildCondition::Unsettled(why) | ChildCondition::Degraded(why)) if !self.is_pending => {
                why.clone()
            }
            Some(ChildCondition::Suspended) => "it is suspended".to_owned(),
            Some(_) | None => "it is being written".to_owned(),
        }
    }
}

/// Holds the steps of a plan that have to wait, if the set has stages. `age` returns the time that
/// has passed since a time since 1970.
pub fn hold_stages(
    mut plan: SetPlan,
    (children, existing): (&SetChildren, &[ExistingSync]),
    age: &mut dyn FnMut(Duration) -> Duration,
) -> SetPlan {
    let Some(policy) = children.rollout() else { return plan };
    let live: BTreeMap<&str, &ExistingSync> = existing.iter().map(|live| (&*live.name, live)).collect();
    let mut stages: Vec<Vec<Member<'_>>> = (0..=policy.stages.len()).map(|_| Vec::new()).collect();
    let mut numbers = BTreeMap::new();
    for (child, (at, step)) in children.iter().zip(plan.steps.iter().enumerate()) {
        let stage = policy.stage_of(child);
        numbers.insert(child.name.clone(), stage + 1);
        if let Some(members) = stages.get_mut(stage) {
            members.push(member(child, (at, step), live.get(&*child.name).copied()));
        }
    }
    let is_all_written = stages.iter().flatten().all(|member| !member.is_pending);
    let has_rest = stages.last().is_some_and(|rest| !rest.is_empty());
    let count = policy.stages.len() + usize::from(has_rest);
    let (mut state, mut held) = (None::<RolloutState>, Vec::new());
    for (at, members) in stages.iter().enumerate() {
        if state.is_some() {
            held.extend(members.iter().filter(|member| member.is_pending).map(|member| member.at));
        } else if let Some(open) = open_stage(members, policy.stages.get(at), is_all_written, age) {
            held.extend(open.held);
            state = Some(RolloutState { stage: at + 1, of: count, ..open.state });
        }
    }
    for at in &held {
        if let Some(step) = plan.steps.get_mut(*at) {
            *step = SetStep::Hold(step.name().to_owned());
        }
    }
    if let Some(state) = &mut state {
        state.held = held.len();
        plan.removal = plan.removal.put_off(state.waiting_for.clone());
    }
    plan.rollout = Some(PlannedRollout { stages: numbers, state });
    plan
}

fn member<'a>(child: &'a SetChild, (at, step): (usize, &SetStep), live: Option<&ExistingSync>) -> Member<'a> {
    let condition = live.map(|live| live.condition.clone());
    let unsettled = |why: &str| Some(ChildCondition::Unsettled(why.to_owned()));
    let (is_pending, condition) = match step {
        SetStep::Create(_) => (true, None),
        // It has its newest form already, and only an edit of others is undone.
        SetStep::Update { .. } if live.is_some_and(|live| live.hash.as_ref() == Some(&child.hash)) => {
            let is_settled = matches!(condition, Some(ChildCondition::Settled(_)));
            (false, if is_settled { unsettled("an edit of others is being undone") } else { condition })
        }
        SetStep::Update { .. } => {
            let stays = |live: &ExistingSync| !live.is_suspended_by_set || is_suspended_in(child);
            let is_resumed = condition == Some(ChildCondition::Suspended) && !live.is_some_and(stays);
            (true, if is_resumed { unsettled("it is being resumed") } else { condition })
        }
        SetStep::Keep(_) | SetStep::Hold(_) => (false, condition),
        SetStep::Await(_) => (false, unsettled("it is being deleted")),
        SetStep::Conflict(_) => (false, unsettled("a Sync of this name exists that is not of this SyncSet")),
    };
    Member { at, name: &child.name, is_pending, condition }
}

/// True if the set suspends the Sync.
fn is_suspended_in(child: &SetChild) -> bool {
    child.manifest.pointer("/spec/suspend") == Some(&Value::Bool(true))
}

/// A stage that is not over, and the places in the plan of those that it holds.
struct OpenStage {
    state: RolloutState,
    held: Vec<usize>,
}

/// Decides a stage; none if it is over. Syncs that no stage selects have no policy.
fn open_stage(
    members: &[Member<'_>],
    policy: Option<&StagePolicy>,
    is_all_written: bool,
    age: &mut dyn FnMut(Duration) -> Duration,
) -> Option<OpenStage> {
    let failed = members.iter().find(|member| member.failure().is_some());
    let allowed = match failed {
        Some(_) => Vec::new(),
        None => allowed_writes(members, policy.map_or(members.len(), |it| it.limit.of_all(members.len()))),
    };
    let held = members.iter().filter(|it| it.is_pending && !allowed.contains(&it.at)).map(|it| it.at);
    let held: Vec<usize> = held.collect();
    let is_idle = members.iter().all(Member::is_suspended);
    let is_awaited =
        |it: &&Member<'_>| it.is_awaited() || is_idle || allowed.contains(&it.at) && !it.is_suspended();
    let awaited: Vec<&Member<'_>> = failed
        .into_iter()
        .chain(members.iter().filter(|it| failed.is_none_or(|failed| failed.at != it.at)).filter(is_awaited))
        .collect();
    let soak = policy.and_then(|policy| soak_of(members, policy.healthy_for, is_all_written, age));
    let is_over = awaited.is_empty() && held.is_empty() && soak.is_none();
    if is_over {
        return None;
    }
    let soak = soak.filter(|_| awaited.is_empty());
    let state = RolloutState {
        stage: 0,
        of: 0,
        why: awaited.first().map(|member| member.why()).unwrap_or_default(),
        until: soak.map(|soak| soak.0),
        left: soak.map(|soak| soak.1),
        waiting_for: awaited.iter().map(|member| member.name.to_owned()).collect(),
        is_stopped: failed.is_some(),
        held: 0,
    };
    Some(OpenStage { state, held })
}

/// Returns the end and the rest of the time for which the members have to be healthy; none if it is
/// over.
fn soak_of(
    members: &[Member<'_>],
    healthy_for: Duration,
    is_all_written: bool,
    age: &mut dyn FnMut(Duration) -> Duration,
) -> Option<(Duration, Duration)> {
    let begin = |times: &SettledTimes| if is_all_written { times.written } else { times.since };
    let settled = members.iter().filter_map(|member| match &member.condition {
        Some(ChildCondition::Settled(times)) => Some(begin(times)),
        _ => None,
    });
    let since = Duration::from_secs(settled.max().and_then(|since| u64::try_from(since).ok())?);
    let left = healthy_for.checked_sub(age(since)).filter(|left| !left.is_zero())?;
    Some((since + healthy_for, left))
}

/// Returns the places of the pending members that may be written now: never more than `most` are
/// not ready with their newest form, and none that is ready is written while as many are not.
fn allowed_writes(members: &[Member<'_>], most: usize) -> Vec<usize> {
    let pending = || members.iter().filter(|member| member.is_pending);
    let mut written = members.iter().filter(|member| member.is_awaited()).count();
    let mut down = written
        + pending().filter(|it| it.condition.is_some() && !it.is_settled() && !it.is_suspended()).count();
    // A suspended Sync applies nothing, so that its new spec harms nothing.
    let mut allowed: Vec<usize> = pending().filter(|it| it.is_suspended()).map(|it| it.at).collect();
    for member in pending().filter(|it| !it.is_settled() && !it.is_suspended()) {
        if written < most {
            allowed.push(member.at);
            (written, down) = (written + 1, down + usize::from(member.condition.is_none()));
        }
    }
    for member in pending().filter(|it| it.is_settled()) {
        if written < most && down < most {
            allowed.push(member.at);
            (written, down) = (written + 1, down + 1);
        }
    }
    allowed
}

#[cfg(test)]
mod tests;
