//! Reconciles the cluster to a revision: applies the newest one, or keeps the held one.
//!
//! In: the request, the memory of the Sync, and a target. Out: a result, and the
//! revision that is held from now on. The claims of a commit that cannot be rendered are published
//! to the other Syncs of the repository.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::super::chance;
use super::super::memory::SyncMemory;
use super::held_revision::{HeldRender, record_of};
use crate::api::HeldByWindow;
use crate::clock;
use crate::controller::reconcile::mounts;
use crate::controller::reconcile::refused_commit::{record_interruption, waits_to_try};
use crate::controller::reconcile::request::ReconcileRequest;
use crate::controller::reconcile::unrendered_commit::UnrenderedCommit;
use crate::controller::reconcile::{Aim, ReconcileContext};
use crate::controller::reconcile_errors::{of_chart, source_error};
use crate::controller::status::reconcile_result::{ReconcileResult, RefusedUpdate};
use crate::plan::RevisionRequest;
use crate::report::ReconcileError;
use crate::source::{ChartError, Error, Repository, Revision, SignatureError, SignatureProblem};

/// Longest wait for the author and subject of a refused commit.
const DESCRIBE: Duration = Duration::from_secs(2);

impl ReconcileContext {
    /// Returns the inputs of a reconcile that brings the cluster to another revision, the newest
    /// one.
    fn with_target(&self, rendered_order: Arc<ReconcileRequest>, revision: &Revision, aim: Aim) -> Self {
        Self {
            aim,
            revision: revision.clone(),
            newest: revision.clone(),
            record: record_of(&rendered_order, revision),
            rendered_order,
            bytes: OnceLock::new(),
            digest: OnceLock::new(),
            has_new_values: false,
            yield_flag: None,
            ..self.clone()
        }
    }

    /// Applies a revision; if it cannot be rendered, keeps the held one.
    pub(super) async fn apply(
        &self,
        memory: &mut SyncMemory,
        (revision, rejected): (Revision, Option<Revision>),
        held: Option<HeldRender>,
    ) -> (ReconcileResult, Option<HeldRender>) {
        let (order, now) = (&self.order, self.context.now());
        memory.refused_commit =
            memory.refused_commit.take().filter(|it| it.is_of(&revision, order.spec_revision));
        let is_refused = held.is_some() && waits_to_try(memory, &revision, order.spec_revision, now);
        let mut was_tried = !is_refused;
        if !is_refused {
            if rejected.is_some()
                && let Some(report) = self.distrusts(memory, &revision, order).await
            {
                return (report, None);
            }
            let newest = rejected.unwrap_or_else(|| revision.clone());
            // Another revision is held until this one is rendered.
            let is_other = held.as_ref().is_some_and(|held| held.revision != revision);
            let yield_flag = self.yield_flag.clone().filter(|_| is_other);
            let inputs = self.with_target(order.clone(), &revision, Aim::Apply);
            let report = Self { newest, yield_flag, ..inputs }.reconcile(memory).await;
            if report.deferred {
                let moment = (self.context.now(), chance());
                record_interruption(memory, (&revision, order.spec_revision), moment, self.context.pauses());
                was_tried = false;
            } else if report.reconcile_error.is_none() || memory.refused_commit.is_none() || report.stopped {
                let rendered = report.held.is_some() && report.reconcile_error.is_none();
                let order = order.clone();
                return (report, rendered.then_some(HeldRender { revision, order }));
            }
            if held.is_none() && !report.deferred {
                let mut report = report;
                (report.request_of_approval, report.held_by_window) = (request_of(memory), window_of(memory));
                self.describe(&revision, false, &mut report).await;
                return (report, None);
            }
        }
        let (request, window) = (request_of(memory), window_of(memory));
        let reconcile_error = memory.refused_commit.as_ref().map(|refusal| refusal.reconcile_error.clone());
        let newer = Some(revision.to_string().into());
        let refused = RefusedUpdate { revision: Some(revision.clone()), newer, was_tried, reconcile_error };
        let Some(held) = held else { return (ReconcileResult::default(), None) };
        let (mut report, held) = self.keep(memory, held, refused).await;
        // The files of the held revision are known now, and so is the difference of the newest one.
        if self.order.hold.is_none() {
            let unrendered = UnrenderedCommit {
                context: &self.context,
                owner: &self.owner,
                order: &self.order,
                revision: &revision,
            };
            unrendered.tell(memory.prepared.as_ref()).await;
        }
        (report.request_of_approval, report.held_by_window) = (request, window);
        self.describe(&revision, is_refused, &mut report).await;
        (report, held)
    }

    /// Reads author and subject of a commit that was not rendered, unless they are known.
    async fn describe(&self, revision: &Revision, is_known: bool, report: &mut ReconcileResult) {
        if is_known {
            return;
        }
        let by = clock::now() + DESCRIBE;
        if let Some(words) = self.order.repository.commit_summary(revision, by).await {
            report.names(revision, words);
        }
    }

    /// Keeps a revision that has rendered before.
    pub(super) async fn keep(
        &self,
        memory: &mut SyncMemory,
        held: HeldRender,
        refused: RefusedUpdate,
    ) -> (ReconcileResult, Option<HeldRender>) {
        if let Some(report) = self.distrusts(memory, &held.revision, &held.order).await {
            return (not_kept(report, &held, &refused), None);
        }
        let aim = Aim::Keep { refused: refused.newer.clone() };
        // Other values are a question to a person of their own, with the newest revision.
        if held.has_older_values(&self.order) && !self.order.valid_spec.asks_first {
            // New values count if the revision renders completely with them.
            let revision = &held.revision;
            let inputs = self.with_target(self.order.clone(), revision, aim.clone());
            let report = Self { has_new_values: true, ..inputs }.reconcile(memory).await;
            if report.reconcile_error.is_none() {
                // A reconcile that was stopped may not have rendered it.
                let order = self.order.clone();
                let held = report.held.is_some().then(|| HeldRender { revision: revision.clone(), order });
                return (ReconcileResult { refused: Some(refused), ..report }, held);
            }
        }
        let order = Arc::new(held.order_now(&self.order));
        let report = self.with_target(order, &held.revision, aim).reconcile(memory).await;
        match report.reconcile_error {
            None => (ReconcileResult { refused: Some(refused), ..report }, Some(held)),
            Some(_) => (not_kept(report, &held, &refused), None),
        }
    }

    /// Returns a failed result if no key that is trusted now has signed the held revision: the keys
    /// may have changed. A signature that these keys have proven before stays trusted while it
    /// cannot be read.
    async fn distrusts(
        &self,
        memory: &mut SyncMemory,
        revision: &Revision,
        from: &ReconcileRequest,
    ) -> Option<ReconcileResult> {
        let reconcile_error = match self.distrusted_source(memory, revision, &from.repository).await {
            Some(error) => source_error(error),
            None => match self.distrusted_chart(memory, revision, from).await {
                Some(error) => of_chart(&error),
                None => {
                    let by = clock::now() + self.order.valid_spec.timeout;
                    let trusted = &mut memory.trusted_mounts;
                    mounts::find_distrusted(&self.order.mounts, &from.mounts, revision, trusted, by).await?
                }
            },
        };
        Some(ReconcileResult {
            spec_revision: self.order.spec_revision,
            reconcile_error: Some(reconcile_error),
            ..ReconcileResult::default()
        })
    }

    async fn distrusted_source(
        &self,
        memory: &mut SyncMemory,
        revision: &Revision,
        repository: &Repository,
    ) -> Option<Error> {
        let order = &self.order;
        let signed = order.valid_spec.verify.as_ref().map(|verification| verification.signed);
        let (signed, keys) = signed.zip(order.keys.clone())?;
        let by = clock::now() + order.valid_spec.timeout;
        let proven = Some((revision.clone(), signed, keys.clone()));
        match repository.verify(revision, signed, &keys, by).await {
            Ok(()) => {
                memory.trusted = proven;
                None
            }
            Err(error) if !error.is_distrust() && memory.trusted == proven => None,
            Err(error) => Some(error),
        }
    }

    /// Returns the error if the chart of the held revision is not signed by one who is trusted now.
    async fn distrusted_chart(
        &self,
        memory: &mut SyncMemory,
        revision: &Revision,
        from: &ReconcileRequest,
    ) -> Option<ChartError> {
        let keys = self.order.chart_keys.as_ref()?;
        let request = from.valid_spec.chart.as_ref()?;
        let Some(version) = &revision.chart else {
            // It was named by its digest, for which no signature was asked for.
            let (what, problem) = (request.place().into(), SignatureProblem::Missing);
            return Some(ChartError::Server(Error::Unsigned(SignatureError { what, problem })));
        };
        let (login, by) = (&from.chart_login, clock::now() + self.order.valid_spec.timeout);
        let asked = (&*login.owner, &*self.owner.namespace);
        let repositories = &self.context.sources.repositories;
        let proven = Some((version.clone(), keys.clone()));
        match repositories.verify_chart((request, version), asked, &login.credentials, keys, by).await {
            Ok(()) => {
                memory.trusted_chart = proven;
                None
            }
            Err(error) if !error.is_answer() && memory.trusted_chart == proven => None,
            Err(error) => Some(error),
        }
    }
}

/// Returns the question about the refused revision, if it waits for approval.
fn request_of(memory: &SyncMemory) -> Option<Arc<RevisionRequest>> {
    memory.refused_commit.as_ref()?.request.clone()
}

/// Returns the closed window that holds the refused revision.
fn window_of(memory: &SyncMemory) -> Option<Arc<HeldByWindow>> {
    memory.refused_commit.as_ref()?.window.clone()
}

/// Returns the result where a revision should have been kept and could not be: the reason of the
/// newest revision comes first.
fn not_kept(report: ReconcileResult, held: &HeldRender, refused: &RefusedUpdate) -> ReconcileResult {
    let Some(mut why) = report.reconcile_error else { return report };
    let not_kept = format!("{} is not held: {}", held.revision, why.message);
    if let Some(newest) = &refused.reconcile_error {
        why = ReconcileError { permanent: newest.permanent && why.permanent, ..newest.clone() };
        why.message = format!("{}; {not_kept}", newest.message);
    } else {
        why.message = not_kept;
    }
    ReconcileResult { reconcile_error: Some(why), ..report }
}
