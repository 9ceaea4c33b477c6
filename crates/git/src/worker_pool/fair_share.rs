//! Assigns free workers to waiting requests: fair shares for servers and for namespaces.
//!
//! In: namespaces and servers of requests, and the results of contacts.
//! Out: requests that may start. A worker that contacts a silent server is blocked until the
//! deadline and cannot be reclaimed. So the decision is made before the contact, and some workers
//! are always reserved: for namespaces that have fewer, and for servers that answered the last
//! time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Maximum number of servers that are remembered.
const MAX_KNOWN: usize = 4096;

/// Maximum number of workers for one server that has never answered.
const PER_UNKNOWN: usize = 4;

/// Past behaviour of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ServerState {
    /// No contact has finished yet.
    #[default]
    Unknown,
    /// It answered the last time.
    Answers,
    /// It did not answer the last time.
    Silent,
}

/// Result of a contact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in super::super) enum ContactResult {
    /// The server was not contacted.
    #[default]
    Nothing,
    /// It answered, possibly with an error.
    Answer,
    /// It did not answer.
    Silence,
}

/// A request for a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct WorkerRequest {
    /// The namespace of the Sync.
    pub(in super::super) namespace: Arc<str>,
    /// The server; none for work on the disk alone.
    pub(in super::super) server: Option<Arc<str>>,
}

/// Reason for waiting, as the rest of a sentence about the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum WaitReason {
    /// No worker is free.
    Busy,
    /// The namespace has used its share.
    Namespace,
    /// The server has used its share.
    Server,
    /// The server did not answer the last time, and is being contacted already.
    Silent,
    /// Servers without a previous answer have used their share.
    Unproven,
}

impl WaitReason {
    /// Returns the rest of a sentence that begins with the server and a colon.
    pub(in super::super) fn text(self) -> &'static str {
        match self {
            Self::Busy => "all Git workers are busy",
            Self::Namespace => "the Syncs of this namespace use their share of the Git workers",
            Self::Server => "this server uses its share of the Git workers",
            Self::Silent => {
                "it did not respond the last time; until it does, one Git worker contacts it for all waiting Syncs"
            }
            Self::Unproven => {
                "it has not responded yet, and all Git workers for servers that have not responded are busy"
            }
        }
    }
}

/// Number of workers with a common property.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    all: usize,
    /// At servers that did not answer the last time, or never yet.
    unproven: usize,
    /// At servers that did not answer the last time.
    silent: usize,
}

/// State of a server.
#[derive(Debug, Clone, Copy, Default)]
struct Server {
    standing: ServerState,
    /// Number of the last request for it.
    asked: u64,
}

/// Running and waiting requests, and the state of servers.
#[derive(Debug)]
pub(super) struct FairShare {
    /// Number of workers.
    most: usize,
    running: BTreeMap<u64, WorkerRequest>,
    /// In order of arrival.
    waiting: VecDeque<(u64, WorkerRequest)>,
    servers: BTreeMap<Arc<str>, Server>,
    next: u64,
}

impl FairShare {
    pub(super) fn new(most: usize) -> Self {
        Self { most, running: BTreeMap::new(), waiting: VecDeque::new(), servers: BTreeMap::new(), next: 0 }
    }

    /// Adds a request to the queue; returns its number.
    pub(super) fn ask(&mut self, ask: WorkerRequest) -> u64 {
        self.next += 1;
        if let Some(server) = &ask.server {
            self.servers.entry(server.clone()).or_default().asked = self.next;
            self.forget();
        }
        self.waiting.push_back((self.next, ask));
        self.next
    }

    /// Removes a running or waiting request, with the result of its contact.
    pub(super) fn leave(&mut self, who: u64, heard: ContactResult) {
        let Some(ask) = self.running.remove(&who) else {
            self.waiting.retain(|(waiting, _)| *waiting != who);
            return;
        };
        let standing = match heard {
            ContactResult::Nothing => return,
            ContactResult::Answer => ServerState::Answers,
            ContactResult::Silence => ServerState::Silent,
        };
        if let Some(known) = ask.server.and_then(|server| self.servers.get_mut(&server)) {
            known.standing = standing;
        }
    }

    /// Starts requests and returns their numbers. Among those allowed, the namespace with the
    /// fewest workers comes first, then the longest wait.
    pub(super) fn grant(&mut self) -> Vec<u64> {
        let mut granted = Vec::new();
        loop {
            let counts = self.counts();
            let may =
                self.waiting.iter().enumerate().filter(|(_, (_, ask))| self.obstacle(ask, &counts).is_none());
            let first = may.min_by_key(|(at, (_, ask))| (counts.namespace(ask).all, *at)).map(|(at, _)| at);
            let Some((who, ask)) = first.and_then(|at| self.waiting.remove(at)) else { return granted };
            self.running.insert(who, ask);
            granted.push(who);
        }
    }

    /// Returns the number of waiting requests.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the reason for which such a request would wait now.
    pub(super) fn why(&self, ask: &WorkerRequest) -> Option<WaitReason> {
        self.obstacle(ask, &self.counts())
    }

    fn counts(&self) -> Counts<'_> {
        let mut counts = Counts::default();
        for ask in self.running.values() {
            let standing = self.standing(ask);
            let server = ask.server.as_ref().map(|server| counts.servers.entry(server).or_default());
            let namespace = counts.namespaces.entry(&ask.namespace).or_default();
            for count in [Some(namespace), Some(&mut counts.whole), server].into_iter().flatten() {
                count.all += 1;
                count.unproven += usize::from(!matches!(standing, None | Some(ServerState::Answers)));
                count.silent += usize::from(standing == Some(ServerState::Silent));
            }
        }
        counts
    }

    fn standing(&self, ask: &WorkerRequest) -> Option<ServerState> {
        let server = ask.server.as_ref()?;
        Some(self.servers.get(server).map(|known| known.standing).unwrap_or_default())
    }

    /// Returns the obstacle to a request, if there is one.
    ///
    /// A namespace never gets more workers than remain free, and the last quarter is for namespaces
    /// without any, so that several greedy ones leave some for others. A server never gets more
    /// than three times as many as remain free. At most half of all workers are at servers that are
    /// not known to answer, an eighth for one namespace; and half of these at servers that are
    /// known to be silent, one at each.
    fn obstacle(&self, ask: &WorkerRequest, counts: &Counts<'_>) -> Option<WaitReason> {
        let free = self.most.saturating_sub(counts.whole.all);
        let (namespace, server) = (counts.namespace(ask), counts.server(ask));
        let part = |of: usize| (self.most / of).max(1);
        let standing = self.standing(ask);
        if standing == Some(ServerState::Silent) {
            if server.all > 0 {
                return Some(WaitReason::Silent);
            }
            if counts.whole.silent >= part(4) || namespace.silent >= part(16) {
                return Some(WaitReason::Unproven);
            }
        }
        if matches!(standing, Some(ServerState::Silent | ServerState::Unknown)) {
            let is_full = counts.whole.unproven >= part(2) || namespace.unproven >= part(8);
            if is_full || server.all >= PER_UNKNOWN {
                return Some(WaitReason::Unproven);
            }
        }
        match free {
            0 => Some(WaitReason::Busy),
            free if namespace.all >= free || namespace.all > 0 && free <= self.most / 4 => {
                Some(WaitReason::Namespace)
            }
            free if server.all >= 3 * free => Some(WaitReason::Server),
            _ => None,
        }
    }

    /// Forgets the servers with the oldest requests, if too many are known.
    fn forget(&mut self) {
        if self.servers.len() <= MAX_KNOWN {
            return;
        }
        let mut asked: Vec<u64> = self.servers.values().map(|server| server.asked).collect();
        asked.sort_unstable();
        let oldest = asked[asked.len() / 2];
        let at_work: Vec<Arc<str>> = self.running.values().filter_map(|ask| ask.server.clone()).collect();
        self.servers.retain(|name, server| server.asked >= oldest || at_work.contains(name));
    }
}

/// Numbers of workers in use.
#[derive(Debug, Default)]
struct Counts<'a> {
    whole: Count,
    namespaces: BTreeMap<&'a str, Count>,
    servers: BTreeMap<&'a str, Count>,
}

impl Counts<'_> {
    fn namespace(&self, ask: &WorkerRequest) -> Count {
        self.namespaces.get(&*ask.namespace).copied().unwrap_or_default()
    }

    fn server(&self, ask: &WorkerRequest) -> Count {
        ask.server.as_ref().and_then(|server| self.servers.get(&**server)).copied().unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
