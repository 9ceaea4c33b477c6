//! Paginated lists, and lists of a past revision.
//!
//! In: the `resourceVersion` and `continue` token of a request.
//! Out: the objects still to be listed, as of one revision, and the token of the next page, in the
//! format of Kubernetes. All pages show the revision of the first one. If that revision has been
//! dropped, the request is refused with a token that continues the list at the newest revision.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::state::ServerState;
use super::store::{Key, StoredObject};
use crate::get_list::ListView;
use crate::request::ApiRequest;
use crate::status_error::StatusError;

/// Version of the token format.
const FORM: &str = "meta.k8s.io/v1";

/// Position in a list, encoded as the `continue` token.
struct ContinueToken {
    /// Revision of the list; negative for the newest.
    revision: i64,
    /// Key to continue after: that of the last object shown, plus a zero byte.
    start: String,
}

impl ServerState {
    /// Returns the objects that a list still has to show, and their revision.
    pub(crate) fn remaining_objects(
        &self,
        view: &ListView,
        ask: &ApiRequest,
    ) -> Result<(Vec<Arc<StoredObject>>, u64), StatusError> {
        let now = self.store.revision();
        let Some(token) = ask.query("continue") else {
            let wanted = exact(ask).filter(|wanted| *wanted < now);
            return match wanted {
                Some(revision) => {
                    let all = self.store.objects_at(
                        &view.resource.storage_key,
                        view.namespace.as_deref(),
                        revision,
                    );
                    let all = all.map_err(|_| {
                        StatusError::expired("The resourceVersion for the provided list is too old.")
                    })?;
                    Ok((self.filter_objects(view, all)?, revision))
                }
                None => Ok((self.find_objects(view)?, now)),
            };
        };
        let place = ContinueToken::read(token)?;
        let after = |all: Vec<Arc<StoredObject>>| {
            let last = key(view, place.start.trim_end_matches('\0'));
            all.into_iter().filter(|stored| stored.key > last).collect::<Vec<_>>()
        };
        let Ok(revision) = u64::try_from(place.revision) else {
            return Ok((after(self.find_objects(view)?), now));
        };
        if let Some(rest) = self.store.rest(&scope(view, ask), revision, &place.start) {
            return Ok((rest.to_vec(), revision));
        }
        match self.store.objects_at(&view.resource.storage_key, view.namespace.as_deref(), revision) {
            Ok(all) => Ok((after(self.filter_objects(view, all)?), revision)),
            Err(_) => {
                let newest = ContinueToken { revision: -1, ..place };
                Err(StatusError { next: Some(newest.written().into()), ..StatusError::expired(INCONSISTENT) })
            }
        }
    }

    /// Saves the rest of a list after `last`, and returns the token of the next page.
    pub(crate) fn token(
        &mut self,
        view: &ListView,
        ask: &ApiRequest,
        last: &StoredObject,
        rest: &[Arc<StoredObject>],
        revision: u64,
    ) -> String {
        let name = match &view.namespace {
            None if view.resource.namespaced => format!("{}/{}", last.key.namespace, last.key.name),
            _ => last.key.name.to_string(),
        };
        let start = format!("{name}\0");
        self.store.open(scope(view, ask), revision, start.clone(), rest.to_vec());
        ContinueToken { revision: i64::try_from(revision).unwrap_or(-1), start }.written()
    }
}

const INCONSISTENT: &str = "The provided continue parameter is too old to display a consistent list result. You can \
     start a new list without the continue parameter, or use the continue token in this response to retrieve the \
     remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
     created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

impl ContinueToken {
    fn read(token: &str) -> Result<Self, StatusError> {
        let refuse = |words: &str| {
            StatusError::bad_request(format!("invalid continue token: continue key is not valid{words}"))
        };
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|error| {
            let at = match error {
                base64::DecodeError::InvalidByte(at, _)
                | base64::DecodeError::InvalidLastSymbol { offset: at, .. } => at,
                base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => token.len(),
            };
            refuse(&format!(": illegal base64 data at input byte {at}"))
        })?;
        let told: Value = serde_json::from_slice(&bytes).map_err(|_| {
            let first = String::from_utf8_lossy(&bytes).chars().next();
            let first = first.map_or_else(String::new, |first| first.to_string());
            refuse(&format!(": invalid character '{first}' looking for beginning of value"))
        })?;
        let (revision, start) = (told["rv"].as_i64().unwrap_or_default(), told["start"].as_str());
        let start = start.unwrap_or_default();
        match told["v"].as_str().unwrap_or_default() {
            FORM if revision == 0 => {
                Err(refuse(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)"))
            }
            FORM if start.is_empty() => Err(refuse(": encoded start key empty (version meta.k8s.io/v1)")),
            FORM if start.split('/').any(|part| matches!(part, "" | "." | "..")) => {
                Err(refuse(&format!(": {start}")))
            }
            FORM => Ok(Self { revision, start: start.to_owned() }),
            other => Err(refuse(&format!(": server does not recognize this encoded version {other}"))),
        }
    }

    fn written(&self) -> String {
        // Go writes the keys in this order.
        let start = Value::from(self.start.as_str());
        URL_SAFE_NO_PAD.encode(format!(
            "{{\"v\":{},\"rv\":{},\"start\":{start}}}",
            json!(FORM),
            self.revision
        ))
    }
}

/// Returns the exact revision that is requested: by `resourceVersionMatch=Exact`, or by a first
/// page with a `resourceVersion`.
fn exact(ask: &ApiRequest) -> Option<u64> {
    let revision = ask.query("resourceVersion")?.parse().ok().filter(|revision| *revision > 0)?;
    let is_page = ask.query("limit").is_some_and(|limit| limit != "0");
    match ask.query("resourceVersionMatch") {
        Some(how) => (how == "Exact").then_some(revision),
        None => is_page.then_some(revision),
    }
}

/// Key that separates the pages of one list from those of other lists.
fn scope(view: &ListView, ask: &ApiRequest) -> String {
    let selectors = [ask.query("labelSelector"), ask.query("fieldSelector")].map(Option::unwrap_or_default);
    let namespace = view.namespace.as_deref().unwrap_or_default();
    format!("{} {namespace} {selectors:?}", view.resource.storage_key)
}

fn key(view: &ListView, text: &str) -> Key {
    match (&view.namespace, text.split_once('/')) {
        (Some(namespace), _) => Key::new(namespace, text),
        (None, Some((namespace, name))) => Key::new(namespace, name),
        (None, None) => Key::new("", text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_the_one_of_kubernetes() {
        let token = ContinueToken { revision: 7, start: "default/a\0".to_owned() }.written();
        assert_eq!(
            URL_SAFE_NO_PAD.decode(&token).unwrap(),
            br#"{"v":"meta.k8s.io/v1","rv":7,"start":"default/a\u0000"}"#
        );
        let place = ContinueToken::read(&token).unwrap();
        assert_eq!((place.revision, &*place.start), (7, "default/a\0"));
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let check = |text: &str, words: &str| {
            let told =
                ContinueToken::read(&URL_SAFE_NO_PAD.encode(text)).err().map(|refusal| refusal.message);
            let told = told.unwrap_or_default();
            assert_eq!(told, format!("invalid continue token: continue key is not valid{words}"), "{text}");
        };
        check("{}", ": server does not recognize this encoded version ");
        check(
            r#"{"v":"meta.k8s.io/v1","start":"a"}"#,
            ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        );
        check(r#"{"v":"meta.k8s.io/v1","rv":1}"#, ": encoded start key empty (version meta.k8s.io/v1)");
        check(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}"#, ": ../a");
        check("abc", ": invalid character 'a' looking for beginning of value");
        assert_eq!(ContinueToken::read("!").err().unwrap().code, 400);
    }
}
