//! What webhooks have said while one request is answered, and what they are still to be asked.
//!
//! In: objects and the versions in which they are wanted. Out: the same as the webhooks convert them, as soon as they were
//! asked. What a request has decided stays decided, because the next attempt has to want the same conversions: the name that
//! it made up, and what it is about to store.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use super::hook::Hook;
use crate::admission::Admissions;
use crate::store::Key;

/// The conversions that one request needs; those of nobody's request ask no webhook.
#[derive(Default)]
pub(crate) struct Conversions {
    asks: bool,
    known: RefCell<HashMap<String, Result<Value, String>>>,
    missing: RefCell<Vec<Question>>,
    /// The name that the request has given to its object.
    name: Option<String>,
    draft: RefCell<Option<Draft>>,
    /// The same of webhooks that admit.
    pub(crate) admissions: Admissions,
}

struct Question {
    hook: Arc<Hook>,
    key: String,
    object: Value,
    version: String,
}

/// What is to be stored in the place of what.
struct Draft {
    key: Key,
    revision: Option<u64>,
    object: Value,
}

impl Conversions {
    /// Those of a request.
    pub(crate) fn of_request() -> Self {
        Self { asks: true, ..Self::default() }
    }

    /// True if webhooks are asked at all.
    pub(crate) fn asks(&self) -> bool {
        self.asks
    }

    /// True if something has to be asked first: nothing that was answered counts.
    pub(crate) fn awaits(&self) -> bool {
        !self.missing.borrow().is_empty() || self.admissions.awaits()
    }

    /// Asks what is missing, one object after the other, as an API server does. The first failure is the answer to all, for
    /// nobody reads further.
    pub(crate) async fn ask(&mut self) {
        let mut failure: Option<String> = None;
        for Question { hook, key, object, version } in std::mem::take(self.missing.get_mut()) {
            let answer = match &failure {
                Some(words) => Err(words.clone()),
                None => hook.convert(&object, &version).await,
            };
            if let Err(words) = &answer {
                failure = Some(words.clone());
            }
            self.known.get_mut().insert(key, answer);
        }
        self.admissions.ask().await;
    }

    /// What the webhook makes of an object in a version, if it was asked.
    pub(super) fn find(&self, hook: &Arc<Hook>, object: &Value, version: &str) -> Result<Value, String> {
        let key = format!("{version} {object}");
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let mut missing = self.missing.borrow_mut();
        if self.asks && missing.iter().all(|question| question.key != key) {
            let (object, version) = (object.clone(), version.to_owned());
            missing.push(Question { hook: hook.clone(), key, object, version });
        }
        Err("nobody has asked the conversion webhook".to_owned())
    }

    /// The name of an object that has none; the same in every attempt.
    pub(crate) fn name(&mut self, make: impl FnOnce() -> String) -> String {
        if self.asks { self.name.get_or_insert_with(make).clone() } else { make() }
    }

    /// True if the request has made up the name of its object.
    pub(crate) fn has_named(&self) -> bool {
        self.name.is_some()
    }

    /// What this request stores under a key in the place of a revision: what its first attempt wanted to. A later one would
    /// want the same, with another uid and time.
    pub(crate) fn draft(&self, key: &Key, revision: Option<u64>, object: Value) -> Value {
        // What something is missing for is no decision.
        if self.awaits() {
            return object;
        }
        let mut draft = self.draft.borrow_mut();
        match &*draft {
            Some(known) if known.key == *key && known.revision == revision => known.object.clone(),
            _ => {
                *draft = Some(Draft { key: key.clone(), revision, object: object.clone() });
                object
            }
        }
    }
}
