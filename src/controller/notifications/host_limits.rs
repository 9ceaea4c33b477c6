//! Limits of requests that hosts have named, for each Notifier.
//!
//! In: the pause that a host asks for. Out: the wait until its end, for everything that has the
//! login of the Notifier: deliveries and plans of pull requests. Nobody else waits, and nothing is
//! sent meanwhile.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::watch;

use super::KnownNotifiers;
use crate::clock;
use crate::notifications::CompiledNotifier;

/// Ends that are nearer to each other are those of one limit.
const SAME_END: Duration = Duration::from_secs(30);
/// The most seconds that chance adds to a limit, so that not everything is sent at its end.
const SPREAD: f64 = 5.0;

/// The limits, by the name of the Notifier.
#[derive(Debug, Default)]
pub(super) struct HostLimits(Mutex<BTreeMap<Box<str>, HostLimit>>);

/// A limit.
#[derive(Debug, Clone)]
struct HostLimit {
    uid: Box<str>,
    generation: Option<i64>,
    end: Instant,
    /// The same moment, for people.
    until: Box<str>,
}

impl HostLimit {
    /// True if the Notifier, and with it the login, may be another one since.
    fn is_of(&self, notifier: &CompiledNotifier) -> bool {
        (&self.uid, self.generation) == (&notifier.uid, notifier.generation)
    }
}

impl HostLimits {
    /// Notes a limit, and returns its end for people.
    pub(super) fn note(&self, notifier: &CompiledNotifier, pause: Duration) -> Box<str> {
        let (now, mut limits) = (clock::now(), self.lock());
        limits.retain(|_, limit| limit.end > now);
        let end = now + pause;
        let known = limits.get(&*notifier.key()).filter(|limit| limit.is_of(notifier));
        // Several requests were on their way.
        let is_same = |limit: &&HostLimit| end.max(limit.end) - end.min(limit.end) < SAME_END;
        if let Some(known) = known.filter(is_same) {
            return known.until.clone();
        }
        let wall = i64::try_from((clock::wall() + pause).as_secs()).unwrap_or(i64::MAX);
        let until: Box<str> = Timestamp::from_second(wall).unwrap_or_default().to_string().into();
        let limit = HostLimit {
            uid: notifier.uid.clone(),
            generation: notifier.generation,
            end,
            until: until.clone(),
        };
        limits.insert(notifier.key().into(), limit);
        until
    }

    /// Returns the time until the end of the limit; none if there is no limit.
    pub(super) fn left(&self, notifier: &CompiledNotifier) -> Option<Duration> {
        let limits = self.lock();
        let limit = limits.get(&*notifier.key()).filter(|limit| limit.is_of(notifier))?;
        Some(limit.end.saturating_duration_since(clock::now())).filter(|left| !left.is_zero())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<str>, HostLimit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until the end of a limit and some moments more, or until the Notifier is another one.
pub(super) async fn limit_ends(
    known: watch::Receiver<KnownNotifiers>,
    notifier: &CompiledNotifier,
    left: Duration,
) {
    wait_for(known, notifier, left + spread(crate::controller::chance())).await;
}

/// Returns the time that chance adds to a limit; `chance` is between 0 and 1.
fn spread(chance: f64) -> Duration {
    Duration::from_secs_f64(SPREAD * chance.clamp(0.0, 1.0))
}

async fn wait_for(mut known: watch::Receiver<KnownNotifiers>, notifier: &CompiledNotifier, pause: Duration) {
    let is_other = |known: &KnownNotifiers| {
        let now = known.sound.get(&*notifier.key());
        now.is_none_or(|now| (&now.uid, now.generation) != (&notifier.uid, notifier.generation))
    };
    tokio::select! {
        () = tokio::time::sleep(pause) => {}
        _ = known.wait_for(is_other) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn notifier(name: &str, generation: i64) -> Arc<CompiledNotifier> {
        with_uid(name, name, generation)
    }

    fn with_uid(name: &str, uid: &str, generation: i64) -> Arc<CompiledNotifier> {
        let resource = serde_json::json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Notifier",
            "metadata": {"namespace": "apps", "name": name, "uid": uid, "generation": generation},
            "spec": {"github": {"url": "https://api.github.com"}, "transitions": ["Applied"]},
        });
        CompiledNotifier::compile(&serde_json::from_value(resource).unwrap(), "moorline").unwrap().into()
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_is_of_one_notifier_until_its_end_or_another_spec() {
        let limits = HostLimits::default();
        let (own, other, newer) = (notifier("a", 1), notifier("b", 1), notifier("a", 2));
        let until = limits.note(&own, Duration::from_secs(600));
        for seconds in [571, 601, 629] {
            assert_eq!(limits.note(&own, Duration::from_secs(seconds)), until, "the same limit");
        }
        let replaced = with_uid("a", "b", 1);
        let left = [&own, &other, &newer, &replaced].map(|notifier| limits.left(notifier));
        assert_eq!(left, [Some(Duration::from_secs(600)), None, None, None]);
        tokio::time::advance(Duration::from_secs(599)).await;
        assert_eq!(limits.left(&own), Some(Duration::from_secs(1)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(limits.left(&own), None);
        assert_ne!(limits.note(&own, Duration::from_secs(600)), until, "another limit");
        limits.note(&newer, Duration::from_secs(600));
        let left = [&own, &newer].map(|notifier| limits.left(notifier));
        assert_eq!(left, [None, Some(Duration::from_secs(600))], "another spec may have another login");
        // Of several limits, the last one that was named counts.
        for seconds in [900, 300] {
            limits.note(&own, Duration::from_secs(seconds));
            assert_eq!(limits.left(&own), Some(Duration::from_secs(seconds)));
        }
        // Limits that have ended are not kept.
        tokio::time::advance(Duration::from_secs(300)).await;
        limits.note(&other, Duration::from_secs(1));
        assert_eq!(limits.lock().keys().map(|name| &**name).collect::<Vec<_>>(), ["apps/b"]);
    }

    #[tokio::test(start_paused = true)]
    async fn chance_spreads_the_requests_after_a_limit_within_its_bound() {
        let expect = [(0.0, 0), (0.5, 2500), (1.0, 5000), (-1.0, 0), (2.0, 5000)];
        for (chance, milliseconds) in expect {
            assert_eq!(spread(chance), Duration::from_millis(milliseconds), "{chance}");
        }
        let own = notifier("a", 1);
        let known = watch::Sender::new(KnownNotifiers::default());
        known.send_modify(|known| drop(known.sound.insert("apps/a".into(), own.clone())));
        let wait = async || {
            let begun = clock::now();
            limit_ends(known.subscribe(), &own, Duration::from_secs(600)).await;
            clock::since(begun)
        };
        let mut found = std::collections::BTreeSet::new();
        for _ in 0..20 {
            found.insert(wait().await);
        }
        let (first, last) = (found.first().unwrap().as_millis(), found.last().unwrap().as_millis());
        assert!(first >= 600_000 && last <= 605_001, "{found:?}");
        assert!(found.len() > 10, "each wait has a time of its own: {found:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_with_the_limit_or_with_the_notifier() {
        let own = notifier("a", 1);
        let known = watch::Sender::new(KnownNotifiers::default());
        let set = |notifier: &Arc<CompiledNotifier>| {
            known.send_modify(|known| drop(known.sound.insert("apps/a".into(), notifier.clone())));
        };
        set(&own);
        let took = async |change: Option<&Arc<CompiledNotifier>>| {
            let begun = clock::now();
            let wait = wait_for(known.subscribe(), &own, Duration::from_secs(600));
            let change = async {
                tokio::time::sleep(Duration::from_secs(10)).await;
                change.into_iter().for_each(set);
            };
            tokio::join!(wait, change);
            clock::since(begun).as_secs()
        };
        assert_eq!(took(None).await, 600);
        assert_eq!(took(Some(&own)).await, 600, "the list was read again");
        assert_eq!(took(Some(&notifier("a", 2))).await, 10);
        set(&own);
        assert_eq!(took(Some(&with_uid("a", "b", 1))).await, 10, "it was replaced");
    }
}
