//! A watch: what changes, told line by line.
//!
//! In: a view, and where to begin. Out: a stream of events as they are written on the wire. A watch reads the changes
//! that are remembered, at its own pace; one that has fallen so far behind that they are forgotten is told so, and ends.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use super::ask::{Ask, Form};
use super::convert::Conversions;
use super::faults::{Faults, Mishap};
use super::look::View;
use super::refusal::Refusal;
use super::state::State;
use super::store::{Change, Stored};
use super::write::Target;

/// A watch that does not say how long it wants to be open is, this long.
const OPEN: Duration = Duration::from_secs(1800);
/// How often a watch is told where it stands.
const BOOKMARKS: Duration = Duration::from_secs(60);
/// When it is tried again to convert what cannot be.
const AGAIN: Duration = Duration::from_secs(1);
/// So much is said at a time.
const MAX_CHUNK: usize = 64 * 1024;

/// An open watch.
pub(crate) struct Follow {
    state: Arc<Mutex<State>>,
    faults: Faults,
    view: View,
    conversions: Conversions,
    sign: watch::Receiver<u64>,
    cut: watch::Receiver<u64>,
    /// The revision up to which everything was told.
    at: u64,
    /// What is told before what changes.
    first: VecDeque<Arc<Stored>>,
    /// The mark that ends the beginning is still to be told.
    marks_beginning: bool,
    bookmarks: bool,
    next_bookmark: Instant,
    ends: Instant,
    /// Nothing is told before this.
    pause: Option<Instant>,
    over: bool,
}

/// Why something is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Untold {
    /// A webhook has to be asked first.
    Awaits,
    /// It cannot be converted.
    Failed,
}

/// Where a watch begins.
enum Begin {
    /// With all that is there.
    Whole,
    /// After a revision.
    After(u64),
}

impl Follow {
    /// Opens a watch.
    pub(crate) fn open(
        state: &mut State,
        shared: &Arc<Mutex<State>>,
        faults: &Faults,
        target: &Target,
        ask: &Ask,
    ) -> Result<Self, Refusal> {
        let mut view = View::new(target, ask)?;
        let now = state.store.revision();
        // Whoever begins after what is yet to come waits for it.
        let is_whole = ask.is_set("sendInitialEvents");
        state.not_ahead(ask, if is_whole { now } else { u64::MAX })?;
        let begin = match (ask.query("resourceVersion"), ask.is_set("sendInitialEvents")) {
            (_, true) | (None | Some("0"), _) => Begin::Whole,
            // What is no number was refused above.
            (Some(text), false) => Begin::After(text.parse().unwrap_or(now)),
        };
        let (first, at) = match begin {
            Begin::Whole => (state.found(&view)?.into(), now),
            // Where that is forgotten, the first event says so.
            Begin::After(revision) => (VecDeque::new(), revision),
        };
        if view.form == Form::Table && ask.query("includeObject").is_none() {
            view.include = super::table::Include::Metadata;
        }
        let open =
            ask.query("timeoutSeconds").and_then(|text| text.parse().ok()).map_or(OPEN, Duration::from_secs);
        Ok(Self {
            sign: state.sign(&view.resource.home),
            state: shared.clone(),
            cut: faults.cuts(),
            faults: faults.clone(),
            view,
            conversions: Conversions::of_request(),
            at,
            first,
            marks_beginning: ask.is_set("sendInitialEvents"),
            bookmarks: ask.is_set("allowWatchBookmarks"),
            next_bookmark: Instant::now() + BOOKMARKS,
            ends: Instant::now() + open,
            pause: None,
            over: false,
        })
    }

    /// What is to be told next; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        while !self.over {
            if let Some(until) = self.pause.take() {
                tokio::select! {
                    () = tokio::time::sleep_until(until) => {}
                    _ = self.cut.changed() => break,
                }
            }
            let told = self.told();
            if !told.is_empty() {
                return Some(told);
            }
            if self.over {
                break;
            }
            if self.conversions.awaits() {
                tokio::select! {
                    () = self.conversions.ask() => continue,
                    _ = self.cut.changed() => break,
                    () = tokio::time::sleep_until(self.ends) => break,
                }
            }
            tokio::select! {
                changed = self.sign.changed() => {
                    if changed.is_err() {
                        break;
                    }
                }
                _ = self.cut.changed() => break,
                () = tokio::time::sleep_until(self.ends) => break,
                () = tokio::time::sleep_until(self.next_bookmark), if self.bookmarks => {
                    self.next_bookmark = Instant::now() + BOOKMARKS;
                    return Some(self.bookmark(false));
                }
            }
        }
        None
    }

    /// All that can be told now.
    fn told(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        let shared = self.state.clone();
        let state = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let now = state.clock.now();
        while let Some(stored) = self.first.front().cloned() {
            let shown = match self.shown(&stored) {
                Ok(shown) => shown,
                Err(why) => {
                    self.stop(why);
                    return text;
                }
            };
            self.first.pop_front();
            self.event("ADDED", &shown, now, &mut text);
            self.pause = self.faults.halt().map(|time| Instant::now() + time);
            if text.len() > MAX_CHUNK || self.pause.is_some() {
                return text;
            }
        }
        if std::mem::take(&mut self.marks_beginning) {
            text.extend(self.bookmark(true));
        }
        self.sign.borrow_and_update();
        let newest = state.store.revision();
        let changes = match state.store.changes(&self.view.resource.home, self.at) {
            Ok(changes) => changes.cloned().collect::<Vec<Change>>(),
            Err(forgotten) => {
                let words = format!("too old resource version: {} ({})", self.at, forgotten.oldest);
                let event = json!({"type": "ERROR", "object": Refusal::expired(words).status()});
                text.extend(format!("{event}\n").into_bytes());
                self.over = true;
                return text;
            }
        };
        for change in changes {
            let newest = state.store.get(&self.view.resource.home, &change.new.key);
            let is_past = newest.is_none_or(|newest| newest.revision > change.new.revision);
            match self.change(&change, now, &mut text) {
                Ok(()) => {}
                // What came after it can be told, perhaps.
                Err(Untold::Failed) if is_past => {}
                Err(why) => {
                    self.stop(why);
                    return text;
                }
            }
            self.at = change.new.revision;
            if text.len() > MAX_CHUNK || self.pause.is_some() {
                return text;
            }
        }
        self.at = self.at.max(newest);
        text
    }

    /// An object in the version of the watch.
    fn shown(&self, stored: &Arc<Stored>) -> Result<Arc<Stored>, Untold> {
        let shown = self.view.shown(&self.conversions, stored);
        match self.conversions.awaits() {
            true => Err(Untold::Awaits),
            false => shown.map_err(|_| Untold::Failed),
        }
    }

    /// Nothing more is told now. As on a real server, a watch comes no further than to what cannot be converted.
    fn stop(&mut self, why: Untold) {
        if why == Untold::Failed {
            self.conversions = Conversions::of_request();
            self.pause = Some(Instant::now() + AGAIN);
        }
    }

    /// Tells a change.
    fn change(&mut self, change: &Change, now: Timestamp, text: &mut Vec<u8>) -> Result<(), Untold> {
        let (mut old, mut new) = (change.old.clone(), change.new.clone());
        if self.view.selects_shown() {
            new = self.shown(&new)?;
            old = old.map(|old| self.shown(&old)).transpose()?;
        }
        let was = old.as_ref().is_some_and(|old| self.view.fits(old));
        let is = !change.gone && self.view.fits(&new);
        let kind = match (was, is) {
            (false, false) => return Ok(()),
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
        };
        // What leaves the view is shown as it was when it was in it.
        let left = (kind == "DELETED" && !change.gone)
            .then(|| old.as_ref()?.at_revision(change.new.revision))
            .flatten();
        let shown = &self.shown(&left.map_or(new, Arc::new))?;
        match self.faults.mishap() {
            None => self.event(kind, shown, now, text),
            Some(Mishap::Dropped) => {}
            Some(Mishap::Doubled) => {
                self.event(kind, shown, now, text);
                self.event(kind, shown, now, text);
            }
            Some(Mishap::Late(by)) => {
                self.event(kind, shown, now, text);
                self.pause = Some(Instant::now() + by);
            }
        }
        // What was told is not needed any more.
        self.conversions = Conversions::of_request();
        Ok(())
    }

    fn event(&mut self, kind: &str, stored: &Stored, now: Timestamp, text: &mut Vec<u8>) {
        text.extend(format!(r#"{{"type":"{kind}","object":"#).into_bytes());
        self.view.write(stored, now, text);
        text.extend(b"}\n");
    }

    /// Where the watch stands, for whoever opens the next one.
    fn bookmark(&self, ends_beginning: bool) -> Vec<u8> {
        let mut metadata = json!({"resourceVersion": self.at.to_string()});
        if ends_beginning {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let (version, kind) = match self.view.form {
            Form::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata"),
            Form::Whole | Form::Table => {
                (self.view.resource.api_version(self.view.version), &*self.view.resource.kind)
            }
        };
        let object = json!({"kind": kind, "apiVersion": version, "metadata": metadata});
        format!("{}\n", json!({"type": "BOOKMARK", "object": object})).into_bytes()
    }
}
