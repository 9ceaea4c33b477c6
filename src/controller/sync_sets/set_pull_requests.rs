//! The pull requests of a set: the list of each host.
//!
//! In: the `pullRequests` generators of a set. Out: the selected pull requests, or an error: a list
//! that is not complete is no answer. A pull request of a fork counts by a label alone, for the
//! commit to which a maintainer gave it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;

use super::super::Context;
use super::super::notifications::pull_requests::host_client::{HostClient, VisitError};
use super::super::notifications::pull_requests::open_list::OpenList;
use super::super::resource::secrets::{WatchedSecret, follow};
use super::set_repository::refused;
use crate::api::{AllowedFork, PullRequestGenerator, RepositoryHost, SyncName, SyncSet};
use crate::clock;
use crate::cluster::{Cluster, SecretData};
use crate::controller::credentials::secret_permission::{SecretPermission, may_send};
use crate::notifications::pull_requests::{LabelGate, OpenRequest};
use crate::notifications::{Service, host_of_url};
use crate::report::{ErrorCause, ReconcileError};
use crate::source::{OutboundClient, SecretText};
use crate::sync_set::PullRequest;

/// Most readings of a list of several pages, until two of them are the same.
const MAX_READINGS: usize = 4;
/// A day.
const DAY: Duration = Duration::from_secs(24 * 3600);
/// The field in messages.
const FIELD: &str = "spec.generators: pullRequests";

/// The repository of a `pullRequests` generator.
pub(super) struct SetPullRequests {
    generator: PullRequestGenerator,
    account: Option<String>,
    secret: Option<WatchedSecret>,
    permission: Option<Arc<SecretPermission>>,
    list: OpenList,
    /// The labels of pull requests of forks.
    forks: BTreeMap<u64, LabelGate>,
}

impl SetPullRequests {
    /// Creates the source of a generator, without a request. `earlier` are the forks that the
    /// status allows.
    pub(super) fn new(
        set: &SyncSet,
        generator: &PullRequestGenerator,
        earlier: &[AllowedFork],
    ) -> Result<Self, ReconcileError> {
        host_of(generator)?;
        let of_repository = earlier.iter().filter(|fork| fork.repository == generator.repository);
        let gates = of_repository.map(|fork| {
            let mut gate = LabelGate::default();
            gate.restore(&fork.commit);
            (fork.number, gate)
        });
        Ok(Self {
            generator: generator.clone(),
            account: set.spec.service_account_name.clone(),
            secret: None,
            permission: None,
            list: OpenList::default(),
            forks: gates.collect(),
        })
    }

    /// Returns the forks that are allowed, for the status.
    pub(super) fn allowed_forks(&self) -> impl Iterator<Item = AllowedFork> {
        self.forks.iter().filter_map(|(number, gate)| {
            let (repository, commit) = (self.generator.repository.clone(), gate.allowed()?.to_owned());
            Some(AllowedFork { repository, number: *number, commit })
        })
    }

    /// Lists the selected pull requests.
    pub(super) async fn list(
        &mut self,
        context: &Context,
        (cluster, name): (&Cluster, &SyncName),
        inputs_changed: &Arc<Notify>,
    ) -> Result<Vec<PullRequest>, ReconcileError> {
        let generator = self.generator.clone();
        let (service, host) = host_of(&generator)?;
        let known = self.secret.take();
        let place = (&*name.namespace, &*host.secret_ref.name);
        let followed = self.secret.insert(follow(&context.cluster, place, inputs_changed, known));
        let data = followed.read(&context.cluster, name, inputs_changed).await?;
        let server = host_of_url(&host.url);
        let asked = (&*host.secret_ref.name, data.hosts.clone(), &*server);
        let of = (name, self.account.as_deref());
        may_send(context, cluster, of, asked, &mut self.permission).await?;
        let client = OutboundClient::new(&context.sources.repositories);
        let login = login(&host.secret_ref.name, &data)?;
        let client = HostClient::reader(client, (service, &host.url, &generator.repository), login);
        read_all(&mut self.list, &client).await?;
        select(&generator, &self.list, &mut self.forks, clock::wall())
    }
}

/// Lists the pull requests of a generator once, with a Secret that the caller may read. A label
/// counts for a commit that was seen without it, so of forks only the `allowed` ones count here.
pub(in crate::controller) async fn list_once(
    client: OutboundClient,
    generator: &PullRequestGenerator,
    data: &SecretData,
    allowed: &[AllowedFork],
    set: &SyncSet,
) -> Result<Vec<PullRequest>, ReconcileError> {
    let (service, host) = host_of(generator)?;
    let login = login(&host.secret_ref.name, data)?;
    let client = HostClient::reader(client, (service, &host.url, &generator.repository), login);
    let mut source = SetPullRequests::new(set, generator, allowed)?;
    read_all(&mut source.list, &client).await?;
    select(generator, &source.list, &mut source.forks, clock::wall())
}

/// Returns the host of a generator.
pub(in crate::controller) fn host_of(
    generator: &PullRequestGenerator,
) -> Result<(Service, &RepositoryHost), ReconcileError> {
    match (&generator.github, &generator.gitlab, &generator.gitea) {
        (Some(host), None, None) => Ok((Service::Github, host)),
        (None, Some(host), None) => Ok((Service::Gitlab, host)),
        (None, None, Some(host)) => Ok((Service::Gitea, host)),
        _ => Err(refused(format!("{FIELD}: write exactly one of github, gitlab and gitea"))),
    }
}

/// Returns the token and the certificate authorities of a Secret.
fn login(secret: &str, data: &SecretData) -> Result<(SecretText, Option<Vec<u8>>), ReconcileError> {
    let wrong = |problem: &str| ReconcileError {
        cause: ErrorCause::Input("CredentialsInvalid"),
        message: format!("{FIELD}: the Secret {secret} {problem}"),
        problems: Vec::new(),
        permanent: false,
    };
    if data.holds_keys {
        return Err(wrong("has the keys of a daemon"));
    }
    let value = |key: &str| data.data.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
    let token = value("token").ok_or_else(|| wrong("has no key token"))?;
    let token = String::from_utf8(token).map_err(|_| wrong("has a token that is no text"))?;
    Ok((SecretText::new(token.trim().to_owned()), value("ca.crt")))
}

/// Reads the whole list. An entry may move between two pages while they are read, so a list of
/// several pages is read until two readings are the same.
async fn read_all(list: &mut OpenList, client: &HostClient<'_>) -> Result<(), ReconcileError> {
    for _ in 0..MAX_READINGS {
        let reading = list.refresh(client).await.map_err(|error| of_host(&error))?;
        if !reading.is_complete {
            return Err(incomplete(
                "the list of pull requests is not complete: it is too long, or has unknown entries",
            ));
        }
        if reading.is_same || !list.has_several_pages() {
            return Ok(());
        }
    }
    Err(incomplete("the list of pull requests changes while it is read"))
}

/// Selects pull requests, and notes the labels of forks.
fn select(
    generator: &PullRequestGenerator,
    list: &OpenList,
    forks: &mut BTreeMap<u64, LabelGate>,
    now: Duration,
) -> Result<Vec<PullRequest>, ReconcileError> {
    let mut open: BTreeMap<u64, &OpenRequest> = BTreeMap::new();
    for request in list.requests() {
        open.entry(request.number).or_insert(request);
    }
    forks.retain(|number, _| open.get(number).is_some_and(|request| request.is_fork));
    let mut selected = Vec::new();
    for request in open.into_values() {
        let label = generator.label.as_deref();
        let has_label = label.is_some_and(|label| request.labels.iter().any(|one| **one == *label));
        let commit = match request.is_fork {
            true => {
                let gate = forks.entry(request.number).or_default();
                // After another push, the commit that got the label still counts.
                let _ = gate.observe(&request.head, has_label);
                gate.allowed().map(str::to_owned)
            }
            false => (label.is_none() || has_label).then(|| request.head.to_string()),
        };
        let is_target =
            generator.target_branch.as_deref().is_none_or(|branch| *branch == *request.base_branch);
        let Some(commit) = commit.filter(|_| is_target) else { continue };
        if !is_recent(generator, request, now)? {
            continue;
        }
        let target_branch = request.base_branch.to_string();
        selected.push(PullRequest { number: request.number, commit, target_branch });
    }
    Ok(selected)
}

/// True if a pull request was changed within the time of the generator.
fn is_recent(
    generator: &PullRequestGenerator,
    request: &OpenRequest,
    now: Duration,
) -> Result<bool, ReconcileError> {
    let Some(days) = generator.changed_within_days else { return Ok(true) };
    let updated = request.updated.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
    let updated = updated.ok_or_else(|| {
        incomplete("the host does not say when a pull request was changed, as changedWithinDays needs it")
    })?;
    let updated = Duration::from_secs(u64::try_from(updated.as_second()).unwrap_or_default());
    Ok(now.saturating_sub(updated) <= DAY * days)
}

fn incomplete(message: &str) -> ReconcileError {
    ReconcileError {
        cause: ErrorCause::Input("RepositoryUnavailable"),
        message: format!("{FIELD}: {message}"),
        problems: Vec::new(),
        permanent: false,
    }
}

fn of_host(error: &VisitError) -> ReconcileError {
    let cause = match error.needs_a_person {
        true => ErrorCause::Input("CredentialsInvalid"),
        false => ErrorCause::Input("RepositoryUnavailable"),
    };
    ReconcileError {
        cause,
        message: format!("{FIELD}: {}", error.problem()),
        problems: Vec::new(),
        permanent: false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::notifications::pull_requests::open_requests;

    const CHANGED: &str = "2026-01-02T00:00:00Z";

    /// A pull request as GitHub lists it.
    fn request(number: u64, head: &str, labels: &[&str], fork: bool) -> Value {
        let labels: Vec<Value> = labels.iter().map(|label| json!({"name": label})).collect();
        json!({
            "number": number, "labels": labels, "updated_at": CHANGED,
            "head": {"sha": head.repeat(40), "repo": {"id": if fork { 2 } else { 1 }}},
            "base": {"ref": if number == 9 { "old" } else { "main" }, "repo": {"id": 1}},
        })
    }

    fn generator(more: &Value) -> PullRequestGenerator {
        let mut generator = json!({
            "github": {"url": "https://api.github.com", "secretRef": {"name": "token"}}, "repository": "team/shop",
        });
        generator.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(generator).unwrap()
    }

    fn selected(
        generator: &PullRequestGenerator,
        listed: Value,
        forks: &mut BTreeMap<u64, LabelGate>,
        later: Duration,
    ) -> Vec<(u64, String)> {
        let list = OpenList::of(open_requests(Service::Github, &listed));
        let now =
            Duration::from_secs(CHANGED.parse::<Timestamp>().unwrap().as_second().unsigned_abs()) + later;
        let found = select(generator, &list, forks, now).unwrap();
        found.into_iter().map(|pull| (pull.number, pull.commit[..1].to_owned())).collect()
    }

    #[test]
    fn pull_requests_are_selected_by_label_branch_and_time() {
        let listed = json!([
            request(1, "a", &[], false),
            request(2, "b", &["preview"], false),
            request(3, "c", &["preview"], true),
            request(9, "d", &["preview"], false),
            // Two pages may both have it.
            request(1, "a", &[], false),
        ]);
        for (more, later, expect) in [
            (json!({}), DAY, vec![1, 2, 9]),
            (json!({"label": "preview"}), DAY, vec![2, 9]),
            (json!({"label": "preview", "targetBranch": "main"}), DAY, vec![2]),
            (json!({"changedWithinDays": 1}), DAY, vec![1, 2, 9]),
            (json!({"changedWithinDays": 1}), DAY + Duration::from_secs(1), vec![]),
        ] {
            let found = selected(&generator(&more), listed.clone(), &mut BTreeMap::new(), later);
            assert_eq!(found.into_iter().map(|(number, _)| number).collect::<Vec<_>>(), expect, "{more}");
        }
    }

    #[test]
    fn a_fork_counts_with_the_commit_that_got_the_label() {
        let generator = generator(&json!({"label": "preview"}));
        let mut forks = BTreeMap::new();
        let fork = |head: &str, labels: &[&str]| json!([request(3, head, labels, true)]);
        for (listed, expect) in [
            // Nobody knows which commit the label was for.
            (fork("a", &["preview"]), None),
            (fork("a", &[]), None),
            (fork("a", &["preview"]), Some("a")),
            // Another commit does not become a Sync, and does not end the Sync of the first.
            (fork("b", &["preview"]), Some("a")),
            (fork("b", &["other"]), None),
            (fork("b", &["preview"]), Some("b")),
            (json!([]), None),
            (fork("b", &["preview"]), None),
        ] {
            let found = selected(&generator, listed.clone(), &mut forks, Duration::ZERO);
            let expect: Vec<_> = expect.map(|head| (3, head.to_owned())).into_iter().collect();
            assert_eq!(found, expect, "{listed}");
        }
    }
}
