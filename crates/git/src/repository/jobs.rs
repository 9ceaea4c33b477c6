//! Runs jobs on a repository: takes its lock first, then a worker.
//!
//! In: a job, and its need for the server.
//! Out: the result of the job, or a timeout. Objects that are on disk are read without using the
//! server's share of the workers, so a silent server never delays reads.

use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio::sync::OwnedMutexGuard;

use super::super::error::Error;
use super::super::revision::ObjectHash;
use super::waiter_count::WaiterCount;
use super::{FileStore, Repository, RepositoryState};
use crate::worker_pool::{ContactResult, WorkerRequest, WorkerSlot};
use moorline_runtime::chance;

/// Needs of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JobNeed {
    /// A response of the server.
    Server,
    /// These objects: a response of the server, unless all of them are on disk.
    Objects(Vec<ObjectHash>),
    /// Only the disk.
    Disk,
}

impl JobNeed {
    /// The files of a commit.
    pub(super) fn commit(commit: ObjectHash) -> Self {
        Self::Objects(vec![commit])
    }

    /// True if the server is not needed.
    fn is_here(&self, state: &RepositoryState) -> bool {
        match (&state.place, self) {
            (FileStore::Local(_), _) | (_, Self::Disk) => true,
            (FileStore::Mirrored(mirror), Self::Objects(wanted)) => wanted.iter().all(|one| mirror.has(*one)),
            (FileStore::Artifacts(mirror), Self::Objects(wanted)) => {
                wanted.iter().all(|one| mirror.has(*one))
            }
            (FileStore::Unopened(_), Self::Objects(_)) | (_, Self::Server) => false,
        }
    }
}

/// Result of a thread: that of the job, or the job itself if it needs the server.
enum Worked<T, J> {
    Done(Result<T, Error>),
    Undone(OwnedMutexGuard<RepositoryState>, J),
}

impl Repository {
    /// Runs `job` on a blocking thread. Lock and worker belong to the job, not to the caller.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        need: JobNeed,
        by: Instant,
        job: impl FnOnce(&mut RepositoryState) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let waiting = WaiterCount::of(&self.shared);
        let locked = self.shared.state.clone().lock_owned();
        let state = tokio::time::timeout_at(by.into(), locked).await.map_err(|_| self.late())?;
        drop(waiting);
        let (state, job) = match need {
            JobNeed::Server if !self.shared.address.is_local() => (state, job),
            need => {
                let turn = self.turn(false, by).await?;
                match self.aside(turn, state, job, Some(need), by).await? {
                    Worked::Done(done) => return done,
                    Worked::Undone(state, job) => (state, job),
                }
            }
        };
        let turn = self.turn(true, by).await?;
        match self.aside(turn, state, job, None, by).await? {
            Worked::Done(done) => done,
            Worked::Undone(..) => Err(Error::Stopped),
        }
    }

    /// Returns the reason for which the server was not contacted yet, while a job waits for a
    /// worker.
    pub fn waiting_reason(&self) -> Option<Error> {
        let why =
            self.mirrors.turns.why(&self.ask(true)).filter(|_| self.shared.queued.load(Ordering::Relaxed))?;
        Some(Error::Waiting { server: (&*self.shared.server).into(), why: why.text() })
    }

    pub(super) fn ask(&self, server: bool) -> WorkerRequest {
        WorkerRequest { namespace: self.asker.clone(), server: server.then(|| self.shared.server.clone()) }
    }

    /// Waits for a worker.
    async fn turn(&self, server: bool, by: Instant) -> Result<WorkerSlot, Error> {
        let queued = &self.shared.queued;
        queued.store(true, Ordering::Relaxed);
        let took = tokio::time::timeout_at(by.into(), self.mirrors.turns.take(self.ask(server))).await;
        let late = took.map_err(|_| self.late());
        queued.store(false, Ordering::Relaxed);
        late
    }

    /// Returns the timeout error, with its reason.
    pub(super) fn late(&self) -> Error {
        let silent = || Error::Timeout { server: (&*self.shared.server).into(), what: "answer" };
        self.waiting_reason().unwrap_or_else(silent)
    }

    async fn aside<
        T: Send + 'static,
        J: FnOnce(&mut RepositoryState) -> Result<T, Error> + Send + 'static,
    >(
        &self,
        mut turn: WorkerSlot,
        mut state: OwnedMutexGuard<RepositoryState>,
        job: J,
        need: Option<JobNeed>,
        by: Instant,
    ) -> Result<Worked<T, J>, Error> {
        let (shared, mirrors) = (self.shared.clone(), self.mirrors.clone());
        let work = chance::spawn_blocking_deterministic(move || {
            let prepared = state.prepare(&shared);
            if prepared.is_ok() && need.is_some_and(|need| !need.is_here(&state)) {
                return Worked::Undone(state, job);
            }
            let done = prepared.and_then(|()| job(&mut state));
            turn.heard(state.heard());
            if shared.waiting.load(Ordering::Relaxed) == 0 {
                state.rest();
            }
            let has_grown = state.has_grown();
            drop(state);
            if has_grown {
                super::quota::keep_quota(&mirrors);
            }
            Worked::Done(done)
        });
        match tokio::time::timeout_at(by.into(), work).await {
            Ok(worked) => worked.map_err(|_| Error::Stopped),
            Err(_) => Err(self.late()),
        }
    }
}

impl RepositoryState {
    /// Takes the result of the last contact with the server.
    fn heard(&mut self) -> ContactResult {
        match &mut self.place {
            FileStore::Mirrored(mirror) => mirror.heard(),
            FileStore::Artifacts(mirror) => mirror.heard(),
            FileStore::Unopened(_) | FileStore::Local(_) => ContactResult::Nothing,
        }
    }
}
