//! The ground on which objects of ours meet others: a namespace of the real API server.

use std::sync::atomic::{AtomicU32, Ordering};

use moorline::observed::{Mark, Observed};
use serde_json::Value;

use super::place::{Place, shown};
use crate::support::control_plane::shared;
use crate::support::credentials::ADMIN;

/// The namespace of one test on the real server.
pub(crate) struct Ground {
    client: kube::Client,
    namespace: String,
}

impl Ground {
    pub(crate) async fn new() -> Option<Self> {
        let plane = shared()?;
        Some(Self { client: plane.client(ADMIN).await, namespace: plane.namespace("drift").await })
    }

    pub(crate) fn place(&self, (resource, body): (&str, Value)) -> Place {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let name = format!("a{}", COUNT.fetch_add(1, Ordering::Relaxed));
        Place::new(self.client.clone(), &self.namespace, resource, &name, body)
    }

    /// What is known of an object after others did something to it.
    pub(crate) async fn after(&self, what: (&str, Value), act: impl AsyncFnOnce(&Place)) -> Observed {
        let place = self.place(what);
        let applied = place.apply().await;
        assert_eq!((shown(&applied.standing), applied.mark.clone()), ("verified".to_owned(), Mark::Ours));
        assert_eq!(shown(&place.again(&applied).await.standing), "verified", "before anything happened");
        act(&place).await;
        let seen = place.again(&applied).await;
        let healed = place.apply().await;
        assert_eq!(shown(&place.again(&healed).await.standing), "verified", "after one more apply");
        seen
    }

    pub(crate) async fn check(
        &self,
        what: (&str, Value),
        act: impl AsyncFnOnce(&Place),
        expect: &str,
    ) -> Observed {
        let seen = self.after(what, act).await;
        assert_eq!(shown(&seen.standing), expect);
        seen
    }
}
