//! Watches: streams of change events.
//!
//! In: a [`ListView`] and the revision to start from.
//! Out: a stream of events in the wire format. A watch reads the recorded changes at its own pace;
//! if it falls so far behind that they are dropped, it gets an `Expired` error and ends.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use super::convert::ConversionCache;
use super::faults::{EventFault, Faults};
use super::state::ServerState;
use super::store::{Change, StoredObject};
use super::write::RequestTarget;
use crate::get_list::ListView;
use crate::request::{ApiRequest, Representation};
use crate::status_error::StatusError;

/// Duration of a watch without `timeoutSeconds`.
const OPEN: Duration = Duration::from_secs(1800);
/// Interval of bookmarks.
const BOOKMARKS: Duration = Duration::from_secs(60);
/// Delay before the conversion of an object is retried.
const AGAIN: Duration = Duration::from_secs(1);
/// Maximum number of bytes before a chunk is sent.
const MAX_CHUNK: usize = 64 * 1024;

/// An open watch.
pub(crate) struct WatchStream {
    state: Arc<Mutex<ServerState>>,
    faults: Faults,
    view: ListView,
    conversions: ConversionCache,
    sign: watch::Receiver<u64>,
    cut: watch::Receiver<u64>,
    /// Revision up to which all changes were sent.
    revision: u64,
    /// Initial events that are still to be sent.
    initial_events: VecDeque<Arc<StoredObject>>,
    /// True until the bookmark is sent that ends the initial events.
    marks_beginning: bool,
    bookmarks: bool,
    next_bookmark: Instant,
    ends: Instant,
    /// Nothing is sent before this time.
    pause: Option<Instant>,
    has_ended: bool,
}

/// Reason why an event cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventError {
    /// A conversion webhook must answer first.
    Awaits,
    /// The object cannot be converted.
    Failed,
}

/// Start of a watch.
enum WatchStart {
    /// With all existing objects.
    Whole,
    /// After a revision.
    After(u64),
}

impl WatchStream {
    /// Opens a watch.
    pub(crate) fn open(
        state: &mut ServerState,
        shared: &Arc<Mutex<ServerState>>,
        faults: &Faults,
        target: &RequestTarget,
        ask: &ApiRequest,
    ) -> Result<Self, StatusError> {
        let mut view = ListView::new(target, ask)?;
        let now = state.store.revision();
        // A watch that starts at a future revision waits for it.
        let is_whole = ask.is_set("sendInitialEvents");
        state.check_not_in_future(ask, if is_whole { now } else { u64::MAX })?;
        let begin = match (ask.query("resourceVersion"), ask.is_set("sendInitialEvents")) {
            (_, true) | (None | Some("0"), _) => WatchStart::Whole,
            // Text that is no number was refused above.
            (Some(text), false) => WatchStart::After(text.parse().unwrap_or(now)),
        };
        let (first, at) = match begin {
            WatchStart::Whole => (state.find_objects(&view)?.into(), now),
            // If that revision is dropped already, the first event is the error.
            WatchStart::After(revision) => (VecDeque::new(), revision),
        };
        if view.form == Representation::Table && ask.query("includeObject").is_none() {
            view.include = super::table::RowObject::Metadata;
        }
        let open =
            ask.query("timeoutSeconds").and_then(|text| text.parse().ok()).map_or(OPEN, Duration::from_secs);
        Ok(Self {
            sign: state.subscribe(&view.resource.storage_key),
            state: shared.clone(),
            cut: faults.cuts(),
            faults: faults.clone(),
            view,
            conversions: ConversionCache::of_request(),
            revision: at,
            initial_events: first,
            marks_beginning: ask.is_set("sendInitialEvents"),
            bookmarks: ask.is_set("allowWatchBookmarks"),
            next_bookmark: Instant::now() + BOOKMARKS,
            ends: Instant::now() + open,
            pause: None,
            has_ended: false,
        })
    }

    /// Returns the next chunk; `None` at the end of the watch.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        while !self.has_ended {
            if let Some(until) = self.pause.take() {
                tokio::select! {
                    () = tokio::time::sleep_until(until) => {}
                    _ = self.cut.changed() => break,
                }
            }
            let told = self.pending_events();
            if !told.is_empty() {
                return Some(told);
            }
            if self.has_ended {
                break;
            }
            if self.conversions.has_pending() {
                tokio::select! {
                    () = self.conversions.call_pending() => continue,
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

    /// Returns all events that can be sent now.
    fn pending_events(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        let shared = self.state.clone();
        let state = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let now = state.clock.now();
        while let Some(stored) = self.initial_events.front().cloned() {
            let shown = match self.shown(&stored) {
                Ok(shown) => shown,
                Err(why) => {
                    self.stop(why);
                    return text;
                }
            };
            self.initial_events.pop_front();
            self.event("ADDED", &shown, now, &mut text);
            self.pause = self.faults.next_list_pause().map(|time| Instant::now() + time);
            if text.len() > MAX_CHUNK || self.pause.is_some() {
                return text;
            }
        }
        if std::mem::take(&mut self.marks_beginning) {
            text.extend(self.bookmark(true));
        }
        self.sign.borrow_and_update();
        let newest = state.store.revision();
        let changes = match state.store.changes(&self.view.resource.storage_key, self.revision) {
            Ok(changes) => changes.cloned().collect::<Vec<Change>>(),
            Err(forgotten) => {
                let words = format!("too old resource version: {} ({})", self.revision, forgotten.oldest);
                let event = json!({"type": "ERROR", "object": StatusError::expired(words).status()});
                text.extend(format!("{event}\n").into_bytes());
                self.has_ended = true;
                return text;
            }
        };
        for change in changes {
            let newest = state.store.get(&self.view.resource.storage_key, &change.new.key);
            let is_past = newest.is_none_or(|newest| newest.revision > change.new.revision);
            match self.change(&change, now, &mut text) {
                Ok(()) => {}
                // A later state of the same object can perhaps be converted.
                Err(EventError::Failed) if is_past => {}
                Err(why) => {
                    self.stop(why);
                    return text;
                }
            }
            self.revision = change.new.revision;
            if text.len() > MAX_CHUNK || self.pause.is_some() {
                return text;
            }
        }
        self.revision = self.revision.max(newest);
        text
    }

    /// Returns the object in the version of the watch.
    fn shown(&self, stored: &Arc<StoredObject>) -> Result<Arc<StoredObject>, EventError> {
        let shown = self.view.to_view_version(&self.conversions, stored);
        match self.conversions.has_pending() {
            true => Err(EventError::Awaits),
            false => shown.map_err(|_| EventError::Failed),
        }
    }

    /// Pauses the watch. As on a real server, a watch cannot get past an object that cannot be
    /// converted.
    fn stop(&mut self, why: EventError) {
        if why == EventError::Failed {
            self.conversions = ConversionCache::of_request();
            self.pause = Some(Instant::now() + AGAIN);
        }
    }

    /// Writes the event of a change, if the view selects the object.
    fn change(&mut self, change: &Change, now: Timestamp, text: &mut Vec<u8>) -> Result<(), EventError> {
        let (mut old, mut new) = (change.old.clone(), change.new.clone());
        if self.view.selects_shown() {
            new = self.shown(&new)?;
            old = old.map(|old| self.shown(&old)).transpose()?;
        }
        let was = old.as_ref().is_some_and(|old| self.view.selects(old));
        let is = !change.deleted && self.view.selects(&new);
        let kind = match (was, is) {
            (false, false) => return Ok(()),
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
        };
        // An object that leaves the view is shown in its last state inside the view.
        let left = (kind == "DELETED" && !change.deleted)
            .then(|| old.as_ref()?.at_revision(change.new.revision))
            .flatten();
        let shown = &self.shown(&left.map_or(new, Arc::new))?;
        match self.faults.next_event_fault() {
            None => self.event(kind, shown, now, text),
            Some(EventFault::Dropped) => {}
            Some(EventFault::Doubled) => {
                self.event(kind, shown, now, text);
                self.event(kind, shown, now, text);
            }
            Some(EventFault::Late(by)) => {
                self.event(kind, shown, now, text);
                self.pause = Some(Instant::now() + by);
            }
        }
        // The conversions of the event that was sent are not needed any more.
        self.conversions = ConversionCache::of_request();
        Ok(())
    }

    fn event(&mut self, kind: &str, stored: &StoredObject, now: Timestamp, text: &mut Vec<u8>) {
        text.extend(format!(r#"{{"type":"{kind}","object":"#).into_bytes());
        self.view.write(stored, now, text);
        text.extend(b"}\n");
    }

    /// Returns a bookmark: the revision from which a client can start its next watch.
    fn bookmark(&self, ends_beginning: bool) -> Vec<u8> {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if ends_beginning {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let (version, kind) = match self.view.form {
            Representation::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata"),
            Representation::Whole | Representation::Table => {
                (self.view.resource.api_version(self.view.version), &*self.view.resource.kind)
            }
        };
        let object = json!({"kind": kind, "apiVersion": version, "metadata": metadata});
        format!("{}\n", json!({"type": "BOOKMARK", "object": object})).into_bytes()
    }
}
