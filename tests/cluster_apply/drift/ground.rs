//! The ground on which objects of ours meet others: a namespace of the real API server.

use std::sync::atomic::{AtomicU32, Ordering};

use http::Method;
use moorline::observed::{Observed, Ownership};
use serde_json::Value;

use super::place::{Place, shown};
use moorline_test_support::control_plane::{PlaneGuard, shared};
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::until;

/// The namespace of one test on the real server.
pub(crate) struct Ground {
    pub(crate) client: kube::Client,
    pub(crate) namespace: String,
    _plane: PlaneGuard,
}

impl Ground {
    pub(crate) async fn new() -> Option<Self> {
        let plane = shared()?;
        let (client, namespace) = (plane.client(ADMIN).await, plane.namespace("drift").await);
        Some(Self { client, namespace, _plane: plane })
    }

    pub(crate) fn place(&self, what: (&str, Value)) -> Place {
        self.place_in(&self.namespace, None, what)
    }

    /// The same in a namespace, or in none, and under a name where the kind demands one.
    pub(crate) fn place_in(
        &self,
        namespace: &str,
        name: Option<&str>,
        (resource, body): (&str, Value),
    ) -> Place {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = name.map_or_else(|| format!("a{count}"), str::to_owned);
        Place::new(self.client.clone(), namespace, resource, &name, body)
    }

    /// Sends a request of somebody who is not about an object of ours.
    pub(crate) async fn ask(&self, method: Method, uri: &str, body: &Value) -> Result<Value, kube::Error> {
        let request =
            http::Request::builder().method(method).uri(uri).header("Content-Type", "application/json");
        self.client.request(request.body(body.to_string().into_bytes()).expect("a literal request")).await
    }

    /// Defines a kind, and waits until it is served.
    pub(crate) async fn define(&self, definition: &Value) {
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.ask(Method::POST, definitions, definition).await.expect("it is defined");
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
        let path = format!("/apis/{group}/{}/{plural}", text(&spec["versions"][0]["name"]));
        until("the kind is served", async || self.ask(Method::GET, &path, &Value::Null).await.ok()).await;
    }

    /// Returns the known state of an object after others did something to it, and the object after one more apply of ours.
    pub(crate) async fn healed(
        &self,
        what: (&str, Value),
        act: impl AsyncFnOnce(&Place),
        expect: &str,
    ) -> (Observed, Place) {
        let place = self.place(what);
        let applied = place.apply().await;
        assert_eq!(
            (shown(&applied.verification), applied.ownership.clone()),
            ("verified".to_owned(), Ownership::Ours)
        );
        assert_eq!(shown(&place.again(&applied).await.verification), "verified", "before anything happened");
        act(&place).await;
        let seen = place.again(&applied).await;
        let healed = place.apply().await;
        assert_eq!(shown(&place.again(&healed).await.verification), "verified", "after one more apply");
        assert_eq!(shown(&seen.verification), expect);
        (seen, place)
    }

    pub(crate) async fn check(
        &self,
        what: (&str, Value),
        act: impl AsyncFnOnce(&Place),
        expect: &str,
    ) -> Observed {
        self.healed(what, act, expect).await.0
    }
}
