//! The last complete answer of the generators of a set.
//!
//! In: the set, its repositories, the Secrets of its clusters, the tags of its registries, and the
//! pull requests of its hosts.
//! Out: [`SetAnswer`]s. An answer of a failed poll, read or list does not exist: the previous one
//! of the same spec stays.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::super::Context;
use super::set_clusters::list_clusters;
use super::set_pull_requests::SetPullRequests;
use super::set_sources::SetSource;
use super::set_tags::SetTags;
use crate::api::{AllowedFork, SetRevision, SyncName, SyncSet};
use crate::clock;
use crate::cluster::Cluster;
use crate::report::{ErrorCause, ReconcileError};
use crate::source::Revision;
use crate::source::webhook_call::{RepositoryNames, repository_name};
use crate::sync_set::{
    ParameterSets, PullRequest, SourceAnswers, cluster_generators, generate, git_generators,
    pull_request_generators, repository_addresses, tag_generators,
};

/// Longest time of the polls and reads of one set.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of polls of all repositories, until those of one branch agree.
const POLLS: usize = 3;
/// Shortest time between two polls that webhooks ask for.
const CALL_PAUSE: Duration = Duration::from_secs(2);
/// Interval of polls if the spec has none.
const INTERVAL: Duration = Duration::from_secs(60);

/// Complete parameters, and where they come from.
pub(super) struct SetAnswer {
    pub(super) parameters: ParameterSets,
    /// Counts the answers of a worker.
    pub(super) number: u64,
    revisions: Vec<Revision>,
    /// The answers of all sources but repositories, whose files are those of the revisions.
    listed: SourceAnswers,
}

/// The generators of a set, and their last complete answer.
#[derive(Default)]
pub(super) struct SetGenerators {
    /// The generation of the spec that the sources are of.
    generation: Option<i64>,
    sources: Vec<SetSource>,
    registries: Vec<SetTags>,
    hosts: Vec<SetPullRequests>,
    /// The names that calls of webhooks have for the repositories.
    repositories: RepositoryNames,
    answer: Option<SetAnswer>,
    answers: u64,
    /// Reason for which there is no newer answer.
    failure: Option<ReconcileError>,
    next_poll: Option<Instant>,
    last_poll: Option<Instant>,
    /// The last request for a poll.
    request: Option<String>,
}

impl SetGenerators {
    /// Returns the last complete answer of this spec.
    pub(super) fn answer(&self) -> Option<&SetAnswer> {
        self.answer.as_ref()
    }

    /// Returns the time of the next poll; none for lists alone.
    pub(super) fn next_poll(&self) -> Option<Instant> {
        self.next_poll
    }

    /// Asks again after this time, where there is no answer yet.
    pub(super) fn retry_in(&mut self, pause: Duration) {
        if self.answer.is_none() {
            self.next_poll = Some(clock::now() + pause);
        }
    }

    /// Reads the Secrets again.
    pub(super) fn close(&mut self) {
        self.sources.iter_mut().for_each(SetSource::close);
        self.registries.iter_mut().for_each(SetTags::close);
        self.next_poll = Some(clock::now());
    }

    /// Polls now, or a moment after the last poll.
    pub(super) fn poll_soon(&mut self) {
        let earliest = self.last_poll.map(|last| last + CALL_PAUSE);
        self.next_poll = Some(earliest.map_or_else(clock::now, |earliest| earliest.max(clock::now())));
    }

    /// Returns the names that calls of webhooks have for the repositories.
    pub(super) fn repository_names(&self) -> RepositoryNames {
        self.repositories.clone()
    }

    /// Returns the URLs and revisions of the answer.
    pub(super) fn revisions(&self) -> Vec<SetRevision> {
        let revisions = self.answer.iter().flat_map(|answer| &answer.revisions);
        let revision = |(source, revision): (&SetSource, &Revision)| SetRevision {
            url: source.url().to_owned(),
            revision: revision.to_string(),
        };
        self.sources.iter().zip(revisions).map(revision).collect()
    }

    /// Returns the pull requests of forks that count, for the status; none if no spec was read yet.
    pub(super) fn allowed_forks(&self) -> Option<Vec<AllowedFork>> {
        self.generation?;
        Some(self.hosts.iter().flat_map(SetPullRequests::allowed_forks).collect())
    }

    /// Asks the generators again where that is due; `request` is any text of a person who asks.
    pub(super) async fn refresh(
        &mut self,
        context: &Context,
        (cluster, name): (&Cluster, &SyncName),
        set: &SyncSet,
        inputs_changed: &Arc<Notify>,
        request: Option<&str>,
    ) -> Result<(), ReconcileError> {
        let generation = set.metadata.generation;
        if self.generation != generation || self.generation.is_none() {
            let forks = self.allowed_forks().unwrap_or_default();
            // Another spec: what is known of the last one says nothing about it.
            *self = Self { request: self.request.take(), answers: self.answers, ..Self::default() };
            let new = |generator| SetSource::new(context, name, set, generator);
            self.sources = git_generators(&set.spec).into_iter().map(new).collect::<Result<_, _>>()?;
            let new = |generator| SetTags::new(context, name, set, generator);
            self.registries = tag_generators(&set.spec).into_iter().map(new).collect::<Result<_, _>>()?;
            let status = set.status.as_ref().map(|status| status.allowed_forks.as_slice());
            let earlier = [&forks, status.unwrap_or_default()].concat();
            let new = |generator| SetPullRequests::new(set, generator, &earlier);
            self.hosts = pull_request_generators(&set.spec).into_iter().map(new).collect::<Result<_, _>>()?;
            let addresses = repository_addresses(&set.spec);
            self.repositories = addresses.iter().filter_map(|url| repository_name(url)).collect();
            self.generation = generation;
        }
        let is_asked = self.request.as_deref() != request;
        self.request = request.map(str::to_owned);
        let is_due = self.next_poll.is_some_and(|next| next <= clock::now());
        let is_first = self.answer.is_none() && self.failure.is_none();
        if is_first || is_due || is_asked {
            let interval = set.spec.interval.as_ref().and_then(|interval| interval.duration());
            let is_polled = !self.sources.is_empty()
                || !self.registries.is_empty()
                || !self.hosts.is_empty()
                || !cluster_generators(&set.spec).is_empty();
            self.last_poll = Some(clock::now());
            self.next_poll = is_polled.then(|| clock::now() + interval.unwrap_or(INTERVAL));
            self.failure = self.ask(context, (cluster, name), set, inputs_changed).await.err();
        }
        self.failure.clone().map_or(Ok(()), Err)
    }

    async fn ask(
        &mut self,
        context: &Context,
        who: (&Cluster, &SyncName),
        set: &SyncSet,
        inputs_changed: &Arc<Notify>,
    ) -> Result<(), ReconcileError> {
        let by = clock::now() + TIMEOUT;
        let revisions = self.poll_all(context, who, inputs_changed, by).await?;
        let secrets = list_clusters(who.0, who.1, &cluster_generators(&set.spec)).await?;
        let (tags, pull_requests) = self.list_all(context, who, inputs_changed, by).await?;
        let mut answers = SourceAnswers { files: Vec::new(), secrets, tags, pull_requests };
        let is_same =
            |answer: &SetAnswer| answer.revisions == revisions && answer.listed.lists_the_same(&answers);
        if self.answer.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        for (source, revision) in self.sources.iter().zip(&revisions) {
            answers.files.push(source.read(revision, by).await?);
        }
        let parameters = generate(&set.spec, &answers).map_err(|message| ReconcileError {
            cause: ErrorCause::RenderFailed,
            message,
            problems: Vec::new(),
            permanent: true,
        })?;
        self.answers += 1;
        let listed = SourceAnswers { files: Vec::new(), ..answers };
        self.answer = Some(SetAnswer { parameters, number: self.answers, revisions, listed });
        Ok(())
    }

    /// Finds the newest revision of each repository. Two generators of one branch read one commit:
    /// a folder that moves from one to the other must not be missing in both.
    async fn poll_all(
        &mut self,
        context: &Context,
        who: (&Cluster, &SyncName),
        inputs_changed: &Arc<Notify>,
        by: Instant,
    ) -> Result<Vec<Revision>, ReconcileError> {
        for _ in 0..POLLS {
            let mut revisions = Vec::new();
            for source in &mut self.sources {
                revisions.push(source.poll(context, who, inputs_changed, by).await?);
            }
            let found = self.sources.iter().map(SetSource::place).zip(&revisions);
            if are_of_one_time(&found.collect::<Vec<_>>()) {
                return Ok(revisions);
            }
        }
        Err(changes("a repository of several generators changes while it is polled"))
    }

    /// Lists all tags and pull requests. Several lists are read until two rounds are the same: what
    /// moves from one to another, such as a pull request with another label, must not be missing in
    /// both.
    async fn list_all(
        &mut self,
        context: &Context,
        who: (&Cluster, &SyncName),
        inputs_changed: &Arc<Notify>,
        by: Instant,
    ) -> Result<(Vec<Vec<String>>, Vec<Vec<PullRequest>>), ReconcileError> {
        let mut last = None;
        for _ in 0..POLLS {
            let (mut tags, mut pull_requests) = (Vec::new(), Vec::new());
            for registry in &mut self.registries {
                tags.push(registry.list(context, who, inputs_changed, by).await?);
            }
            for host in &mut self.hosts {
                pull_requests.push(host.list(context, who, inputs_changed).await?);
            }
            let found = (tags, pull_requests);
            if self.registries.len() + self.hosts.len() < 2 || last.as_ref() == Some(&found) {
                return Ok(found);
            }
            last = Some(found);
        }
        Err(changes("tags or pull requests of several generators change while they are listed"))
    }
}

/// Sources that change while they are read: nothing is known of one time.
fn changes(message: &str) -> ReconcileError {
    let message = message.to_owned();
    ReconcileError { cause: ErrorCause::Progressing, message, problems: Vec::new(), permanent: false }
}

/// True if nothing is found twice with different revisions.
fn are_of_one_time<P: PartialEq, R: PartialEq>(found: &[(P, R)]) -> bool {
    let differs = |(at, (place, revision)): (usize, &(P, R))| {
        found.iter().skip(at + 1).any(|(other, newer)| other == place && newer != revision)
    };
    !found.iter().enumerate().any(differs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_branch_has_one_commit_in_all_generators() {
        for (found, expect) in [
            (&[("a", 1)][..], true),
            (&[], true),
            (&[("a", 1), ("a", 1), ("b", 2)], true),
            (&[("a", 1), ("b", 2), ("a", 3)], false),
            (&[("b", 2), ("a", 1), ("a", 3)], false),
        ] {
            assert_eq!(are_of_one_time(found), expect, "{found:?}");
        }
    }
}
