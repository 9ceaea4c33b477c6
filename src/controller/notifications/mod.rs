//! Sends notifications about transitions of Syncs to services.
//!
//! In: Notifiers, from a watch (`notifier_watch.rs`), and records in the status of a Sync
//! (`status/notifications.rs` offers them).
//! Out: requests to services (`delivery.rs`), and their results, for the next status; plans of pull
//! requests (`pull_requests/`). The decisions are in `moorline-notify`. An offer never waits: a
//! record that finds no room stays in the status, and is offered again.

mod delivery;
mod host_limits;
mod notifier_status;
mod notifier_watch;
pub(crate) mod pull_requests;
mod service_secret;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, watch};

use super::Context;
use super::status::StatusRecorder;
use crate::api::NotificationRecord;
use crate::notifications::{CompiledNotifier, Subject};
use delivery::run_deliveries;
use host_limits::HostLimits;
use notifier_watch::keep_notifiers;
use pull_requests::{PullRequestCenter, keep_pull_requests};

/// Most records that are offered and not taken up yet.
const MAX_OFFERED: usize = 1024;
/// Name of a cluster without a name.
const UNNAMED: &str = "default";

/// The Notifiers of a daemon, and the way to them.
pub(crate) struct NotificationCenter {
    /// The name of the cluster.
    pub(crate) cluster_name: Box<str>,
    /// Plans of pull requests.
    pub(crate) pull_requests: PullRequestCenter,
    known: watch::Sender<KnownNotifiers>,
    offered: Mutex<Option<mpsc::Sender<Delivery>>>,
    /// Limits of requests that hosts have named.
    limits: HostLimits,
    /// Notifiers whose status reports a problem of the service, with the end of a limit.
    troubled: Mutex<BTreeMap<Box<str>, Trouble>>,
}

/// A problem of a service, as far as another one is reported again.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Trouble {
    /// Deliveries fail.
    Fails,
    /// Its limit of requests is used up until this time.
    Limited(Box<str>),
}

/// State of the first list of Notifiers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FirstList {
    /// It is there.
    #[default]
    Complete,
    /// It is on its way, or the server fails. Transitions are judged once it is there.
    Awaited,
    /// It is certain that there is no such kind, or no right to list it.
    Missing,
}

/// The Notifiers, by namespace and name.
#[derive(Default)]
struct KnownNotifiers {
    list: FirstList,
    sound: BTreeMap<Box<str>, Arc<CompiledNotifier>>,
}

/// A record that is to be sent.
pub(crate) struct Delivery {
    /// The Notifier, as namespace/name.
    pub(crate) notifier: Box<str>,
    pub(crate) subject: Arc<Subject>,
    pub(crate) record: NotificationRecord,
    /// Receives the result.
    pub(crate) recorder: StatusRecorder,
}

impl NotificationCenter {
    /// Creates a center without Notifiers.
    pub(crate) fn new(cluster_name: Option<&str>) -> Self {
        let cluster_name = cluster_name.unwrap_or(UNNAMED).into();
        Self {
            cluster_name,
            pull_requests: PullRequestCenter::default(),
            known: watch::Sender::new(KnownNotifiers::default()),
            offered: Mutex::default(),
            limits: HostLimits::default(),
            troubled: Mutex::default(),
        }
    }

    /// Returns the state of the first list.
    pub(crate) fn first_list(&self) -> FirstList {
        self.known.borrow().list
    }

    /// Waits for the end of the first list.
    pub(crate) async fn list_arrives(&self) {
        let mut known = self.known.subscribe();
        // The sender lives as long as this.
        let _ = known.wait_for(|known| known.list != FirstList::Awaited).await;
    }

    /// Returns the Notifiers; none while they are not known.
    pub(crate) fn notifiers(&self) -> Option<Vec<Arc<CompiledNotifier>>> {
        let known = self.known.borrow();
        (known.list == FirstList::Complete).then(|| known.sound.values().cloned().collect())
    }

    /// Returns a Notifier as it is now; none if it is suspended.
    fn current(&self, key: &str) -> Option<Arc<CompiledNotifier>> {
        self.known.borrow().sound.get(key).filter(|notifier| !notifier.is_suspended()).cloned()
    }

    /// Offers a record; false if there is no room.
    pub(crate) fn offer(&self, delivery: Delivery) -> bool {
        self.lock().as_ref().is_some_and(|offered| offered.try_send(delivery).is_ok())
    }

    /// Notes the problem that the status of a Notifier reports, or none; true if that is new.
    fn note_trouble(&self, key: &str, trouble: Option<Trouble>) -> bool {
        let mut troubled = self.troubled.lock().unwrap_or_else(PoisonError::into_inner);
        match trouble {
            Some(trouble) => troubled.insert(key.into(), trouble.clone()) != Some(trouble),
            None => troubled.remove(key).is_some(),
        }
    }

    /// Notes that the status of a Notifier reports a problem, of this daemon or of an earlier one.
    fn note_earlier_trouble(&self, key: &str) {
        let mut troubled = self.troubled.lock().unwrap_or_else(PoisonError::into_inner);
        troubled.entry(key.into()).or_insert(Trouble::Fails);
    }

    fn lock(&self) -> MutexGuard<'_, Option<mpsc::Sender<Delivery>>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves the Notifiers until `serving` ends. No status waits for their first list: what happens
/// before it is judged afterwards.
pub(crate) async fn run_beside(context: Arc<Context>, serving: impl Future) {
    let center = &context.reporting.notifications;
    let (send, offered) = mpsc::channel(MAX_OFFERED);
    *center.lock() = Some(send);
    center.known.send_modify(|known| known.list = FirstList::Awaited);
    let telling = async {
        tokio::join!(
            keep_notifiers(&context),
            run_deliveries(&context, offered),
            keep_pull_requests(&context)
        );
        // None ends by itself, and the daemon does not end with them.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = serving => {}
        () = telling => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspended_notifier_sends_nothing_more() {
        let center = NotificationCenter::new(None);
        for (suspend, expect) in [(false, true), (true, false)] {
            let resource = serde_json::json!({
                "apiVersion": "moorline.dev/v1alpha1", "kind": "Notifier",
                "metadata": {"namespace": "apps", "name": "a"},
                "spec": {
                    "slack": {"url": "https://chat.example.com"}, "transitions": ["Applied"], "suspend": suspend,
                },
            });
            let compiled = CompiledNotifier::compile(&serde_json::from_value(resource).unwrap(), "moorline");
            let compiled = Arc::new(compiled.unwrap());
            center.known.send_modify(|known| drop(known.sound.insert("apps/a".into(), compiled)));
            assert_eq!(center.current("apps/a").is_some(), expect, "suspend: {suspend}");
        }
    }
}
