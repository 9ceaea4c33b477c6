//! Plans the pull requests of one Sync.
//!
//! In: a Sync, and the open pull requests of its repository.
//! Out: the plan of each one that touches what the Sync reads, as a section of its comment. Both
//! commits are rendered as the text of a stranger; nothing is sent to the API server but reads of
//! the Sync's own objects.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::SemaphorePermit;

use super::super::super::Context;
use super::super::super::reconcile::inventory_scope::watches_of_scope;
use super::super::super::reconcile::prepare::PreparedRevision;
use super::Turns;
use super::host_client::{ErrorReach, HostClient, VisitError};
use super::plan_target::PlanTarget;
use super::plan_writer::find_comment;
use super::repository_state::{
    ChangedFiles, DrawnPlan, KnownReads, OpenState, PlanCheck, PlanInputs, RepositoryState, Retry,
};
use super::visit_budget::VisitBudget;
use crate::api::{Scope, SyncName};
use crate::clock;
use crate::controller::inspect::pull_request::{
    StrangerRender, has_hidden_values, read_live_view, resolve_head, spec_for_strangers,
};
use crate::controller::spec::ValidatedSpec;
use crate::desired::DesiredSet;
use crate::notifications::Service;
use crate::notifications::pull_requests::{CheckState, PullRequestHost, changed_files, touches};
use crate::report::ReconcileError;
use crate::report::pull_request::{GroupSubject, LiveView, PlanSection, compare, group_marker, plan_summary};
use crate::source::Revision;

/// Most pull requests of a Sync that have plans: those that changed last.
const MAX_PLANS: usize = 20;
/// Most pages of changed files that are read; a longer list touches every Sync.
const MAX_FILE_PAGES: usize = 6;
/// Longest time for a fetch or a render.
const RENDER_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time for one plan, without the wait for its turn.
const PLAN_TIMEOUT: Duration = Duration::from_secs(240);
/// Attempts at a commit that the host lists before its repository has it, and the pause.
const HEAD_ATTEMPTS: (u32, Duration) = (3, Duration::from_millis(500));

/// Reason why a plan is not made now.
enum PlanError {
    /// The host refuses.
    Host(VisitError),
    /// This one is tried again later.
    Later(String),
}

impl From<VisitError> for PlanError {
    fn from(error: VisitError) -> Self {
        Self::Host(error)
    }
}

impl From<ReconcileError> for PlanError {
    fn from(error: ReconcileError) -> Self {
        Self::Later(error.message)
    }
}

/// A Sync whose pull requests are planned.
struct SyncPlanner<'a> {
    context: &'a Context,
    client: &'a HostClient<'a>,
    turns: &'a Turns,
    service: Service,
    /// The comment.
    subject: GroupSubject<'a>,
    name: &'a SyncName,
    target: &'a PlanTarget,
    /// The number of Syncs that may have a section in it.
    syncs: usize,
    /// The spec, narrowed for strangers.
    valid_spec: ValidatedSpec,
    /// The applied revision.
    base: Revision,
    /// The base, rendered for the first pull request that needs it.
    rendered_base: Option<PreparedRevision>,
}

/// Plans what is new for a Sync. A Sync without an applied revision has no plans yet.
pub(super) async fn plan_sync<'a>(
    (context, client, turns): (&'a Context, &'a HostClient<'a>, &'a Turns),
    service: Service,
    (subject, (name, target, syncs)): (GroupSubject<'a>, (&'a SyncName, &'a PlanTarget, usize)),
    (state, budget, is_retry): (&mut RepositoryState, &mut VisitBudget, bool),
) -> Result<(), VisitError> {
    let sync = target.sync.read();
    let text = |pointer: &str| sync.pointer(pointer).and_then(Value::as_str);
    let Ok(valid_spec) = spec_for_strangers(name, &sync) else { return Ok(()) };
    let Some(applied) = text("/status/revision/applied") else { return Ok(()) };
    let Some(base) = Revision::parse(applied, None, &valid_spec.reference) else { return Ok(()) };
    let base_key: Box<str> = text("/status/renderDigest").unwrap_or(applied).into();
    let timeout = valid_spec.timeout.min(RENDER_TIMEOUT);
    let mut planner = SyncPlanner {
        context,
        client,
        turns,
        service,
        subject,
        name,
        target,
        syncs,
        valid_spec: ValidatedSpec { timeout, ..valid_spec },
        base: base.of_repository(),
        rendered_base: None,
    };
    let RepositoryState { open, reads, user, .. } = state;
    let branch =
        |open: &&mut OpenState| *planner.base.name == *format!("refs/heads/{}", open.request.base_branch);
    let concerned: Vec<&mut OpenState> = open.iter_mut().filter(branch).take(MAX_PLANS).collect();
    for open in concerned {
        if budget.is_over(clock::now()) {
            break;
        }
        let head = open.request.head.clone();
        let inputs = PlanInputs { head, base: base_key.clone(), is_allowed: open.is_allowed };
        let plan = open.plans.entry(name.clone()).or_default();
        if plan.retry.is_retry() != is_retry || !plan.is_due(&inputs, clock::now()) {
            continue;
        }
        let result = planner.plan_one(open, (reads, user), &base_key, budget).await;
        let is_allowed = open.is_allowed;
        let Some(plan) = open.plans.get_mut(name) else { continue };
        match result {
            Ok(drawn) => {
                open.comment.is_dirty |= drawn.is_some();
                plan.drawn = drawn.or_else(|| plan.drawn.take());
                plan.is_done(PlanInputs { is_allowed, ..inputs });
            }
            Err(PlanError::Later(problem)) => {
                let number = open.request.number;
                tracing::debug!(sync = %name, number, problem, "a pull request could not be planned");
                plan.retry.has_failed(None);
                open.comment.is_dirty |= plan.is_touched;
            }
            Err(PlanError::Host(error)) => {
                plan.retry.has_failed(Some(error.clone()));
                budget.refuse(error)?;
            }
        }
    }
    Ok(())
}

impl<'a> SyncPlanner<'a> {
    /// Plans one pull request, if it touches the Sync and may be planned.
    async fn plan_one(
        &mut self,
        open: &mut OpenState,
        (reads, user): (&mut KnownReads, &mut Option<Box<str>>),
        base_key: &str,
        budget: &mut VisitBudget,
    ) -> Result<Option<DrawnPlan>, PlanError> {
        if !open.is_allowed && !self.was_allowed(open, user).await? {
            return Ok(None);
        }
        let was_drawn = open.plans.get(self.name).is_some_and(|plan| plan.drawn.is_some());
        if !was_drawn && !self.is_touched(open, reads, base_key, budget).await? {
            return Ok(None);
        }
        if let Some(plan) = open.plans.get_mut(self.name) {
            plan.is_touched = true;
        }
        let _turn = self.turn(budget).await;
        within(self.draw(open)).await.map(Some)
    }

    /// Waits for the turn to render.
    async fn turn(&self, budget: &mut VisitBudget) -> Option<SemaphorePermit<'a>> {
        let begun = clock::now();
        let turn = self.turns.render.acquire().await.ok();
        budget.waited(clock::now().saturating_duration_since(begun));
        turn
    }

    /// True if a label of a fork counts because an earlier daemon has planned this commit.
    async fn was_allowed(
        &self,
        open: &mut OpenState,
        user: &mut Option<Box<str>>,
    ) -> Result<bool, PlanError> {
        let (number, head) = (open.request.number, open.request.head.clone());
        if !open.has_label || open.comment.is_searched {
            return Ok(false);
        }
        if !open.comment.retry.is_due(clock::now()) {
            return Err(PlanError::Later("the comments cannot be read yet".to_owned()));
        }
        let marker = group_marker(&self.subject);
        let found =
            find_comment(self.client, self.service, (number, &marker), (&mut open.comment, user)).await;
        found.inspect_err(|error| open.comment.retry.has_failed(Some(error.clone())))?;
        open.comment.retry = Retry::default();
        let was_allowed = open.comment.written.as_ref().is_some_and(|written| written.head == head);
        if was_allowed {
            open.gate.restore(&head);
            open.is_allowed = true;
        }
        Ok(was_allowed)
    }

    /// True if the changed files are among those that the Sync reads.
    async fn is_touched(
        &mut self,
        open: &mut OpenState,
        reads: &mut KnownReads,
        base_key: &str,
        budget: &mut VisitBudget,
    ) -> Result<bool, PlanError> {
        let head = open.request.head.clone();
        if open.files.as_ref().is_none_or(|(of, _)| *of != head) {
            // All Syncs need them, and one refusal is enough.
            if !open.files_retry.is_due(clock::now()) {
                return Err(PlanError::Later("the changed files cannot be read yet".to_owned()));
            }
            let read = self.changed_files(open.request.number).await;
            let read = read.inspect_err(|error| open.files_retry.has_failed(Some(error.clone())))?;
            (open.files, open.files_retry) = (Some((head, read)), Retry::default());
        }
        let Some((_, Some(changed))) = &open.files else { return Ok(true) };
        let own: [Box<str>; 1] = [self.valid_spec.path.as_str().into()];
        if touches(changed, &own) {
            return Ok(true);
        }
        if reads.get(self.name).is_none_or(|(of, _)| **of != *base_key) {
            let read: Vec<Box<str>> = {
                let _turn = self.turn(budget).await;
                within(self.base()).await?.ids.keys().cloned().collect()
            };
            // Those below the path are known by it.
            let read = read.into_iter().filter(|read| !touches(std::slice::from_ref(read), &own)).collect();
            reads.insert(self.name.clone(), (base_key.into(), read));
        }
        Ok(reads.get(self.name).is_some_and(|(_, read)| touches(changed, read)))
    }

    async fn changed_files(&self, number: u64) -> Result<ChangedFiles, VisitError> {
        let mut changed = Vec::new();
        for page in 1..=MAX_FILE_PAGES {
            let request = self.client.host().list_files(number, page);
            let answer = match self.client.read("the changed files", request).await {
                Err(error) if error.reach == ErrorReach::Length => return Ok(None),
                answer => answer?,
            };
            changed.extend(changed_files(self.service, &answer));
            if answer.as_array().is_none_or(|items| items.len() < PullRequestHost::PAGE) {
                return Ok(Some(changed));
            }
        }
        Ok(None)
    }

    /// Makes the plan.
    async fn draw(&mut self, open: &OpenState) -> Result<DrawnPlan, PlanError> {
        let (number, head) = (open.request.number, &*open.request.head);
        let revision = self.fetched_head(number, head).await?;
        let base_set = self.base().await?.rendered.clone();
        let renderer = self.renderer("pull requests, proposed");
        let rendered = renderer.render(&self.target.repository, &revision, &self.valid_spec).await;
        let base = self.base.to_string();
        let (sync, link) = (self.name.to_string(), self.target.link.as_deref());
        let subject = (&*sync, &*base, link);
        let (section, state, description) = match rendered {
            Ok(done) => {
                let live = self.live_view(&base_set, &done.rendered).await?;
                let plan = compare(&base_set, &done.rendered, &live);
                let section = PlanSection::planned(subject, &plan, self.syncs);
                (section, CheckState::Success, plan_summary(&plan))
            }
            Err(error) if error.permanent => {
                let problems = match error.problems.is_empty() {
                    true => vec![error.message],
                    false => error.problems,
                };
                let section = PlanSection::refused(subject, &problems);
                (section, CheckState::Failure, "this commit cannot be planned".to_owned())
            }
            Err(error) => return Err(error.into()),
        };
        let check = PlanCheck { head: head.into(), state, description, link: link.map(Box::from) };
        Ok(DrawnPlan { section, check })
    }

    /// Returns the proposed commit, which has to be the one that the host lists: a label may have
    /// been given to it alone.
    async fn fetched_head(&self, number: u64, head: &str) -> Result<Revision, PlanError> {
        for _ in 0..HEAD_ATTEMPTS.0 {
            let by = clock::now() + self.valid_spec.timeout;
            let found = resolve_head(&self.target.repository, number, by).await?;
            if found.commit.to_string() == head {
                return Ok(found);
            }
            tokio::time::sleep(HEAD_ATTEMPTS.1).await;
        }
        Err(PlanError::Later("the repository has another commit than the host lists".to_owned()))
    }

    /// Returns the base, rendered.
    async fn base(&mut self) -> Result<&PreparedRevision, PlanError> {
        let rendered = match self.rendered_base.take() {
            Some(rendered) => rendered,
            None => {
                let ensured = self.target.cluster.discovery().ensure().await;
                ensured.map_err(|failure| PlanError::Later(failure.to_string()))?;
                let renderer = self.renderer("pull requests, base");
                renderer.render(&self.target.repository, &self.base, &self.valid_spec).await?
            }
        };
        Ok(self.rendered_base.insert(rendered))
    }

    /// Reads the part of the cluster that a plan may show.
    async fn live_view(&self, base: &DesiredSet, head: &DesiredSet) -> Result<LiveView, PlanError> {
        let sync = self.target.sync.read();
        let scope = sync.pointer("/status/scope").cloned().unwrap_or_default();
        let scope: Scope = serde_json::from_value(scope).unwrap_or_default();
        let kinds: BTreeSet<_> = watches_of_scope(&scope).kinds.into_iter().collect();
        let of = (&self.target.cluster, self.name);
        let live = read_live_view(of, (base, Some(head)), (&self.valid_spec, &scope), kinds).await;
        let live = live.map_err(|failure| PlanError::Later(failure.to_string()))?;
        Ok(LiveView { hides_values: has_hidden_values(&sync), ..live })
    }

    fn renderer<'b>(&'b self, holder: &'b str) -> StrangerRender<'b> {
        StrangerRender {
            cluster: &self.target.cluster,
            helm: &self.context.sources.helm,
            metrics: &self.context.reporting.metrics,
            repositories: &self.context.sources.repositories,
            holder,
            asker: &self.name.namespace,
        }
    }
}

/// Ends work that takes too long.
async fn within<T>(work: impl Future<Output = Result<T, PlanError>>) -> Result<T, PlanError> {
    let late = || Err(PlanError::Later("the plan takes too long".to_owned()));
    tokio::time::timeout(PLAN_TIMEOUT, work).await.unwrap_or_else(|_| late())
}
