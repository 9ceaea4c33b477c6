//! Keeps the Notifiers of the cluster compiled.
//!
//! In: the watch. Out: the sound ones, and a status for each whose spec has changed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::super::Context;
use super::super::definition_update::update_definition;
use super::notifier_status::{NotifierState, report_state};
use super::{FirstList, KnownNotifiers};
use crate::api::{Notifier, notifier_definition};
use crate::clock;
use crate::cluster::{KindWatchEvent, NotifierRequests};
use crate::notifications::CompiledNotifier;

/// A refusal that comes again after this time is not that of a server that starts.
const CERTAIN: Duration = Duration::from_secs(60);

/// Follows the Notifiers without end.
pub(super) async fn keep_notifiers(context: &Arc<Context>) {
    let (send, mut events) = mpsc::unbounded_channel();
    let _watching = NotifierRequests::new(&context.cluster).watch(move |event| {
        // The receiver is dropped only with this function.
        let _ = send.send(event);
    });
    let known = &context.reporting.notifications.known;
    let (mut is_defined, mut is_refused, mut refused_at) = (false, false, None);
    // The keys of the current list; none outside of a list.
    let mut listing: Option<BTreeSet<Box<str>>> = Some(BTreeSet::new());
    while let Some(event) = events.recv().await {
        match event {
            KindWatchEvent::Begins => listing = Some(BTreeSet::new()),
            KindWatchEvent::Seen(object) => {
                let key = key(&object);
                if let Some(listing) = &mut listing {
                    listing.insert(key.clone());
                }
                take_up(context, &key, *object).await;
            }
            KindWatchEvent::Gone(object) => {
                known.send_modify(|known| drop(known.sound.remove(&key(&object))));
            }
            KindWatchEvent::Listed => {
                is_refused = false;
                let there = listing.take();
                known.send_modify(|known| {
                    let is_there = |key: &str| there.as_ref().is_none_or(|there| there.contains(key));
                    known.sound.retain(|key, _| is_there(key));
                    known.list = FirstList::Complete;
                });
                if !std::mem::replace(&mut is_defined, true) {
                    update_definition(&context.cluster, notifier_definition()).await;
                }
            }
            KindWatchEvent::Broken(failure) => {
                tracing::debug!(%failure, "Notifiers cannot be watched");
                known.send_if_modified(|known| {
                    let before = known.list;
                    known.list = refuse(before, failure.code(), &mut refused_at, clock::now());
                    known.list != before
                });
                if is_newly_refused(failure.code(), &mut is_refused) {
                    tracing::warn!(
                        %failure,
                        "list and watch on notifiers.moorline.dev is missing: no notifications are sent"
                    );
                }
            }
        }
    }
}

/// Returns the state of the first list after the watch failed. Without the kind or the right there
/// is nothing to judge later, but a server that has just started refuses for a moment, too.
fn refuse(list: FirstList, code: Option<u16>, refused_at: &mut Option<Instant>, now: Instant) -> FirstList {
    if list != FirstList::Awaited || !matches!(code, Some(403 | 404)) {
        return list;
    }
    let lasts = now.saturating_duration_since(*refused_at.get_or_insert(now));
    if lasts < CERTAIN { FirstList::Awaited } else { FirstList::Missing }
}

/// True for the first answer that the right to watch is missing, until a list is complete.
fn is_newly_refused(code: Option<u16>, is_refused: &mut bool) -> bool {
    code == Some(403) && !std::mem::replace(is_refused, true)
}

async fn take_up(context: &Arc<Context>, key: &str, object: Map<String, Value>) {
    let Ok(notifier) = serde_json::from_value::<Notifier>(Value::Object(object)) else {
        tracing::warn!(notifier = key, "the Notifier cannot be read");
        return;
    };
    let known = &context.reporting.notifications.known;
    match CompiledNotifier::compile(&notifier, &context.process.namespace) {
        Ok(compiled) => {
            known.send_modify(|known| drop(known.sound.insert(key.into(), Arc::new(compiled))));
            if is_observed(&notifier) {
                // An earlier daemon may have reported it.
                if reports_trouble(&notifier) {
                    context.reporting.notifications.note_earlier_trouble(key);
                }
                return;
            }
            context.reporting.notifications.note_trouble(key, None);
            report_state(
                context,
                &notifier_id(&notifier),
                notifier.metadata.generation,
                NotifierState::Ready,
            )
            .await;
        }
        Err(errors) => {
            known.send_modify(|known: &mut KnownNotifiers| drop(known.sound.remove(key)));
            let state = NotifierState::SpecInvalid(errors.join("; "));
            if !is_observed(&notifier) {
                tracing::warn!(notifier = key, "{}", errors.join("; "));
                report_state(context, &notifier_id(&notifier), notifier.metadata.generation, state).await;
            }
        }
    }
}

/// True if the status describes this generation.
fn is_observed(notifier: &Notifier) -> bool {
    let observed = notifier.status.as_ref().and_then(|status| status.observed_generation);
    observed.is_some() && observed == notifier.metadata.generation
}

/// True if the status reports that the service does not take notifications.
fn reports_trouble(notifier: &Notifier) -> bool {
    let conditions = notifier.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions.iter().any(|condition| condition.status == "False")
}

/// Returns namespace, name and uid.
fn notifier_id(notifier: &Notifier) -> [Box<str>; 3] {
    let metadata = &notifier.metadata;
    [&metadata.namespace, &metadata.name, &metadata.uid].map(|text| text.clone().unwrap_or_default().into())
}

fn key(object: &Map<String, Value>) -> Box<str> {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_starts_is_not_without_notifiers() {
        use FirstList::{Awaited, Complete, Missing};
        let begin = clock::now();
        for (name, list, answers) in [
            ("no definition", Awaited, &[(0, Some(404), Awaited), (300, Some(404), Missing)][..]),
            (
                "no right",
                Awaited,
                &[(5, Some(403), Awaited), (64, Some(403), Awaited), (65, Some(403), Missing)],
            ),
            ("a server that is away", Awaited, &[(0, None, Awaited), (900, Some(500), Awaited)]),
            (
                "it starts",
                Awaited,
                &[(900, None, Awaited), (901, Some(403), Awaited), (930, Some(404), Awaited)],
            ),
            ("after the list", Complete, &[(0, Some(404), Complete), (900, Some(404), Complete)]),
        ] {
            let (mut list, mut refused_at) = (list, None);
            for (second, code, expect) in answers {
                let now = begin + Duration::from_secs(*second);
                list = refuse(list, *code, &mut refused_at, now);
                assert_eq!(list, *expect, "{name}, second {second}");
            }
        }
    }

    #[test]
    fn a_missing_right_is_logged_once() {
        let mut is_refused = false;
        for (code, expect) in [(Some(404), false), (Some(403), true), (None, false), (Some(403), false)] {
            assert_eq!(is_newly_refused(code, &mut is_refused), expect, "{code:?}");
        }
    }
}
