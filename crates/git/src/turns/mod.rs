//! The workers that talk to servers and read objects: whoever needs one waits here for a turn.
//!
//! In: who asks, and for which server. Out: [`Turn`], which is given back when it is dropped. Who gets the next free worker is
//! decided in `share.rs`.

mod share;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use share::Share;
pub(super) use share::{Ask, Heard, Why};

/// All workers, and who waits for one.
#[derive(Debug, Clone)]
pub(super) struct Turns(Arc<Mutex<Line>>);

#[derive(Debug)]
struct Line {
    share: Share,
    /// How those who wait are told.
    tell: BTreeMap<u64, oneshot::Sender<()>>,
    /// Who is told how many wait.
    counter: Option<Counter>,
}

/// What is called with the number of those who wait, whenever that is another.
pub(super) struct Counter(pub(super) Box<dyn Fn(usize) + Send>);

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counter")
    }
}

/// A place in the line, and then a worker, until it is dropped.
#[derive(Debug)]
#[must_use]
pub(super) struct Turn {
    turns: Turns,
    who: u64,
    heard: Heard,
}

impl Turns {
    pub(super) fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(Line { share: Share::new(most), tell: BTreeMap::new(), counter: None })))
    }

    /// Waits for a worker. Given up, the place in the line goes to the next.
    pub(super) async fn take(&self, ask: Ask) -> Turn {
        let (turn, told) = {
            let mut line = self.lock();
            let who = line.share.ask(ask);
            let (tell, told) = oneshot::channel();
            line.tell.insert(who, tell);
            line.grant();
            (Turn { turns: self.clone(), who, heard: Heard::Nothing }, told)
        };
        // The other end goes only when it has told.
        let _ = told.await;
        turn
    }

    /// Why one who asks so would wait now.
    pub(super) fn why(&self, ask: &Ask) -> Option<Why> {
        self.lock().share.why(ask)
    }

    /// Tells how many wait, from now on.
    pub(super) fn count(&self, counter: Counter) {
        self.lock().counter = Some(counter);
    }

    fn lock(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn grant(&mut self) {
        for who in self.share.grant() {
            // Who has gone meanwhile gives it back at once.
            let _ = self.tell.remove(&who).map(|tell| tell.send(()));
        }
        self.counter.iter().for_each(|counter| counter.0(self.share.waiting()));
    }
}

impl Turn {
    /// What was heard of the server.
    pub(super) fn heard(&mut self, heard: Heard) {
        self.heard = heard;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut line = self.turns.lock();
        line.tell.remove(&self.who);
        line.share.leave(self.who, self.heard);
        line.grant();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(namespace: &str, server: &str) -> Ask {
        Ask { namespace: namespace.into(), server: Some(server.into()) }
    }

    #[tokio::test]
    async fn who_gives_up_leaves_the_line_and_who_panics_gives_back() {
        let turns = Turns::new(1);
        let first = turns.take(ask("a", "x")).await;
        let second = tokio::spawn({
            let turns = turns.clone();
            async move { turns.take(ask("b", "x")).await }
        });
        let waiting = || turns.lock().share.waiting();
        while waiting() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(turns.why(&ask("c", "y")), Some(Why::Unproven));
        second.abort();
        assert!(second.await.is_err());
        assert_eq!(waiting(), 0);
        let broken = tokio::spawn(async move {
            let _held = first;
            panic!("planted");
        });
        assert!(broken.await.is_err());
        let mut turn = turns.take(ask("b", "x")).await;
        turn.heard(Heard::Silence);
        drop(turn);
        drop(turns.take(ask("b", "x")).await);
    }
}
