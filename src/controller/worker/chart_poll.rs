//! Looks up the version of the published chart of a Sync, with each poll.
//!
//! In: the request for the chart, the version that was taken up before, and the login. Out: the
//! revision of the repository with the version that the request means now, or the reason why there
//! is none. While the server does not answer, a new commit is taken up with the previous version.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Reconciler;
use super::signature_check::source_id;
use crate::api::SyncName;
use crate::cluster::Cluster;
use crate::controller::Context;
use crate::controller::credentials::ChartLogin;
use crate::controller::credentials::secret_permission::SecretPermission;
use crate::controller::reconcile_errors::{of_chart, source_error};
use crate::controller::spec::ValidatedSpec;
use crate::report::ReconcileError;
use crate::source::{ChartError, ChartRequest, ChartVersion, Error, Revision, TrustedKeys};

/// Lookup of the version of a chart.
pub(super) struct ChartPoll {
    request: ChartRequest,
    login: ChartLogin,
    permission: Option<Arc<SecretPermission>>,
    /// Those who may sign the chart, where its signatures are verified.
    keys: Option<Arc<TrustedKeys>>,
    /// The version that was taken up before.
    known: Option<ChartVersion>,
    /// The version that these keys were found to have signed.
    good: Option<ChartVersion>,
}

impl ChartPoll {
    /// Returns the lookup that the spec asks for; none if it names no chart, or its digest.
    pub(super) fn of(worker: &Reconciler) -> Option<Self> {
        let valid_spec = &worker.order.valid_spec;
        let request = valid_spec.chart.clone().filter(|chart| chart.pinned().is_none())?;
        let recorded = || worker.recorder.last_seen(&source_id(valid_spec), &valid_spec.reference);
        let before = worker.revision.clone().or_else(|| worker.last_accepted.clone()).or_else(recorded);
        Some(Self {
            request,
            login: worker.order.chart_login.clone(),
            permission: worker.order.chart_permission.clone(),
            keys: worker.order.chart_keys.clone(),
            known: before.and_then(|before| before.chart),
            good: worker.revision.as_ref().and_then(|revision| revision.chart.clone()),
        })
    }

    /// Returns the revision with the version of the chart. `is_new` is true if the commit was not
    /// taken up before.
    pub(super) async fn add_to(
        self,
        revision: &Revision,
        is_new: bool,
        (context, cluster, sync): (&Context, &Cluster, &SyncName),
        fresh: Duration,
        by: Instant,
    ) -> Result<Revision, ReconcileError> {
        if let Some(permission) = &self.permission {
            permission.holds(cluster, sync).await?;
        }
        let with = |chart| Ok(Revision { chart: Some(chart), ..revision.clone() });
        let (login, known) = (&self.login, self.known.as_ref());
        let asked = (&*login.owner, &*sync.namespace);
        let repositories = &context.sources.repositories;
        let mut found =
            repositories.chart_version(&self.request, asked, &login.credentials, (known, fresh), by).await;
        if let (Ok(version), Some(keys)) = (&found, &self.keys)
            && self.good.as_ref() != Some(version)
        {
            let chart = (&self.request, version);
            let verified = repositories.verify_chart(chart, asked, &login.credentials, keys, by).await;
            found = verified.and(found);
        }
        if let (Ok(version), Some(before)) = (&found, self.lowered_from(&found)) {
            let (before, now) = (before.to_string().into(), version.to_string().into());
            return Err(source_error(Error::Lowered { before, now }));
        }
        // A version whose signature was not verified with these keys is no answer.
        let known = self.known.filter(|_| self.keys.is_none() || self.good.is_some());
        match (found, known) {
            (Ok(found), _) => with(found),
            // The previous version still is the newest that is known.
            (Err(error), Some(known))
                if is_new && !error.is_answer() && self.request.at(&known).is_some() =>
            {
                with(known)
            }
            (Err(error), _) => Err(of_chart(&error)),
        }
    }
}

impl ChartPoll {
    /// Returns the previous version if a signed version is lower: a server that hides newer
    /// versions must not bring back an old one.
    fn lowered_from(&self, found: &Result<ChartVersion, ChartError>) -> Option<&ChartVersion> {
        let (found, known) = (found.as_ref().ok()?, self.known.as_ref()?);
        let is_lower = self.request.at(known).is_some() && found.compare(known) == Some(Ordering::Less);
        Some(known).filter(|_| is_lower && self.keys.is_some())
    }
}

/// Returns a revision that was accepted before, unless nobody who is trusted now has signed its
/// chart.
pub(super) async fn still_trusted(
    held: Option<Revision>,
    chart: Option<&ChartPoll>,
    (context, sync): (&Context, &SyncName),
    by: Instant,
) -> Option<Revision> {
    let held = held?;
    let Some((chart, keys)) = chart.and_then(|chart| Some((chart, chart.keys.as_ref()?))) else {
        return Some(held);
    };
    let Some(version) = &held.chart else { return Some(held) };
    let (named, asked) = ((&chart.request, version), (&*chart.login.owner, &*sync.namespace));
    let repositories = &context.sources.repositories;
    let verified = repositories.verify_chart(named, asked, &chart.login.credentials, keys, by).await;
    verified.is_ok().then_some(held)
}

/// Returns true if the newer spec asks for another chart, or with another login. The version of
/// another chart is no measure for this one, so it is removed from the revision.
pub(super) fn forget_other(
    revision: &mut Option<Revision>,
    old: &ValidatedSpec,
    new: &ValidatedSpec,
) -> bool {
    let place = |spec: &ValidatedSpec| spec.chart.as_ref().map(ChartRequest::place);
    if place(old) != place(new) {
        *revision = revision.as_ref().map(Revision::of_repository);
    }
    (&old.chart, &old.chart_secret, &old.chart_identity)
        != (&new.chart, &new.chart_secret, &new.chart_identity)
}
