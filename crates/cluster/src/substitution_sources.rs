//! Reads and watches ConfigMaps and Secrets with substitution values.
//!
//! In: a kind, a namespace and a name.
//! Out: [`SubstitutionValues`], and a notification whenever the object has changed. Objects are
//! watched by name, and only their metadata.

use serde_json::{Map, Value};
use tokio::task::AbortHandle;

use super::shared_watches::{SharedWatch, WatchedObject};
use super::watch::{WatchEvent, WatchTarget, follow};
use super::{ApiError, Inner, kinds};
use crate::api_client::ApiRequest;
use moorline_api::{KEYS_LABEL, ValuesKind};
use moorline_metrics::RequestClass;

/// Values in a ConfigMap or Secret. They are never formatted.
#[derive(Clone, PartialEq, Eq)]
pub struct SubstitutionValues {
    /// resourceVersion of the object.
    pub version: Box<str>,
    /// Keys and values; binary values are left out.
    pub values: Vec<(String, String)>,
    /// True for a Secret whose label says that it holds the keys of a daemon.
    pub holds_keys: bool,
}

/// ConfigMaps and Secrets with substitution values.
#[derive(Clone, Copy)]
pub struct SubstitutionSources<'a>(pub(super) &'a Inner);

impl SubstitutionSources<'_> {
    /// Reads the values of a ConfigMap or Secret; none if it does not exist.
    pub async fn read(
        &self,
        kind: ValuesKind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<SubstitutionValues>, ApiError> {
        let uri = format!("{}/{}", collection(kind, namespace), kinds::escape(name));
        match self.0.wire.send(ApiRequest::new(RequestClass::Verify, "get", uri)).await {
            Ok(reply) => parse(kind, &reply.body).map(Some),
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Reports the resourceVersion of a ConfigMap or Secret on every change, and none while it does
    /// not exist, until the share is dropped. It is watched by name, and only its metadata; all who
    /// follow it share one request. `tell` must not call the cluster.
    pub fn watch(
        &self,
        kind: ValuesKind,
        namespace: &str,
        name: &str,
        tell: impl FnMut(ValuesWatchEvent<'_>) + Send + 'static,
    ) -> SharedWatch {
        let object: WatchedObject = (kind, namespace.into(), name.into());
        let watches = &self.0.shared_watches;
        watches.follow(object.clone(), Box::new(tell), |watch| {
            let all = watches.clone();
            self.start(kind, (namespace, name), move |event| match event {
                Some(event) => all.tell(&object, watch, event),
                None => all.note_broken(&object, watch),
            })
        })
    }

    /// Begins a watch, which tells nothing each time that it breaks.
    fn start(
        &self,
        kind: ValuesKind,
        (namespace, name): (&str, &str),
        mut tell: impl FnMut(Option<ValuesWatchEvent<'_>>) + Send + 'static,
    ) -> AbortHandle {
        let target = WatchTarget::one(kind.as_str(), Some(namespace), collection(kind, namespace), name);
        let (mut listing, mut seen) = (true, None);
        let sink = move |event| match event {
            WatchEvent::Begins => (listing, seen) = (true, None),
            WatchEvent::Seen(object) => {
                seen = version(&object);
                if !listing {
                    tell(Some(ValuesWatchEvent::Version(seen.as_deref())));
                }
            }
            WatchEvent::Gone(_) => tell(Some(ValuesWatchEvent::Version(None))),
            WatchEvent::Listed(_) => {
                listing = false;
                tell(Some(ValuesWatchEvent::Version(seen.take().as_deref())));
            }
            WatchEvent::Broken(failure) if failure.code() == Some(403) => {
                tell(Some(ValuesWatchEvent::Forbidden));
            }
            WatchEvent::Broken(_) => tell(None),
            WatchEvent::Rewound | WatchEvent::Upgraded => {}
        };
        tokio::spawn(follow(self.0.wire.clone(), target, sink)).abort_handle()
    }
}

/// Event of a watch on one object.
#[derive(Debug, Clone, Copy)]
pub enum ValuesWatchEvent<'a> {
    /// Its resourceVersion; none if it does not exist.
    Version(Option<&'a str>),
    /// It may not be watched.
    Forbidden,
}

fn collection(kind: ValuesKind, namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{}", kind.plural())
}

fn version(object: &Map<String, Value>) -> Option<Box<str>> {
    Some(object.get("metadata")?.get("resourceVersion")?.as_str()?.into())
}

fn parse(kind: ValuesKind, body: &[u8]) -> Result<SubstitutionValues, ApiError> {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    // Unreadable content is not quoted: it may be a secret value.
    let bad = || ApiError::InvalidResponse(format!("a {} that cannot be parsed", kind.as_str()).into());
    let body: Map<String, Value> = serde_json::from_slice(body).map_err(|_| bad())?;
    let version = version(&body).ok_or_else(bad)?;
    let data = body.get("data").and_then(Value::as_object);
    let text = |value: &Value| match kind {
        ValuesKind::ConfigMap => value.as_str().map(str::to_owned),
        ValuesKind::Secret => String::from_utf8(STANDARD.decode(value.as_str()?).ok()?).ok(),
    };
    let entries = data.into_iter().flatten();
    let texts = entries.filter_map(|(key, value)| Some((key.clone(), text(value)?))).collect();
    let labels = body.get("metadata").and_then(|metadata| metadata.get("labels"));
    let holds_keys = kind == ValuesKind::Secret && labels.is_some_and(|all| all.get(KEYS_LABEL).is_some());
    Ok(SubstitutionValues { version, values: texts, holds_keys })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use moorline_runtime::clock;
    use serde_json::json;

    use super::*;
    use crate::SecretData;
    use crate::scripted_server::scripted_cluster;

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_fails_vouches_for_no_content() {
        let event = |kind: &str, more: &Value| {
            let mut metadata = json!({"name": "east", "namespace": "shop", "resourceVersion": "1"});
            metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"type": kind, "object": {"metadata": metadata}}).to_string()
        };
        let end = json!({"annotations": {"k8s.io/initial-events-end": "true"}});
        let first = format!("{}\n{}\n", event("ADDED", &json!({})), event("BOOKMARK", &end));
        let asked = Arc::new(AtomicUsize::new(0));
        // The first watch ends at once, and all later ones fail.
        let cluster = scripted_cluster(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
            0 => (200, first.clone()),
            _ => (500, "{}".to_owned()),
        });
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let listed = heard.clone();
        let tell = move |event: ValuesWatchEvent<'_>| listed.lock().unwrap().push(format!("{event:?}"));
        let share = cluster.substitution_sources().watch(ValuesKind::Secret, "shop", "east", tell);
        let version = "1".into();
        let kept = Arc::new(SecretData { data: Vec::new(), hosts: None, version, holds_keys: false });
        share.offer(&kept, clock::now());
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(*heard.lock().unwrap(), ["Version(Some(\"1\"))"]);
        assert!(share.secret(clock::now()).is_some());
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(share.secret(clock::now()).is_none(), "it may have changed unseen");
        assert_eq!(heard.lock().unwrap().len(), 1, "that is no change");
    }

    #[test]
    fn what_is_no_text_is_left_out() {
        let body = |data: Value| json!({"metadata": {"resourceVersion": "7"}, "data": data}).to_string();
        let texts = |kind, data: Value| parse(kind, body(data).as_bytes()).map(|found| found.values).ok();
        let pair = |key: &str, text: &str| (key.to_owned(), text.to_owned());
        assert_eq!(texts(ValuesKind::ConfigMap, json!({"A": "b"})), Some(vec![pair("A", "b")]));
        let found = texts(ValuesKind::Secret, json!({"A": "aGk=", "B": "/w==", "C": "no base64"}));
        assert_eq!(found, Some(vec![pair("A", "hi")]));
        assert_eq!(texts(ValuesKind::Secret, Value::Null), Some(Vec::new()));
        let told = parse(ValuesKind::Secret, b"hunter2").map(drop).unwrap_err().to_string();
        assert!(!told.contains("hunter2"), "{told}");
    }
}
