//! The viewer of the console, and questions about rights that Kubernetes answers.
//!
//! In: a [`Viewer`] from the sign-in and an [`AccessQuestion`] from a view or an action. Out: a
//! decision of the API server. The console has no permission system of its own: a person may do
//! here what `kubectl auth can-i` grants to that person.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::object::ObjectId;
use crate::report::board::ObjectPlace;

/// The longest wait for a decision.
pub const REVIEW_TIMEOUT: Duration = Duration::from_secs(5);

/// A person as Kubernetes knows them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Person {
    /// User name, with the prefix of the sign-in.
    pub user: String,
    /// Unique id, if the API server or the proxy gave one.
    pub uid: Option<String>,
    /// Groups, with the prefix of the sign-in.
    pub groups: Vec<String>,
    /// Further attributes that authorizers may read.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The viewer of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Viewer {
    /// Anyone who reaches the page while no sign-in is set up, on the loopback interface unless the
    /// operator exposes it: reads, and never acts.
    Loopback,
    /// A person who signed in.
    Person(Arc<Person>),
}

/// A question about one right. Questions name a namespace and a kind, and never an object, so that
/// a page of a thousand objects asks a few of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccessQuestion {
    /// Verb, for example `get` or `approve`.
    pub verb: String,
    /// API group; empty for the core group.
    pub group: String,
    /// Resource in the plural, for example `syncs`; or a kind, for example `Deployment`.
    pub resource: String,
    /// Subresource, for example `log`; empty for the resource itself.
    pub subresource: String,
    /// Namespace; `None` for cluster-scoped kinds and for all namespaces.
    pub namespace: Option<String>,
}

impl AccessQuestion {
    /// A question about a verb on the Syncs of a namespace.
    pub fn sync(verb: &str, namespace: &str) -> Self {
        Self {
            verb: verb.to_owned(),
            group: "moorline.dev".to_owned(),
            resource: "syncs".to_owned(),
            subresource: String::new(),
            namespace: Some(namespace.to_owned()),
        }
    }

    /// A question about a verb on the kind of an object, in its namespace. The task that asks finds
    /// the resource of the kind.
    pub fn of_kind(verb: &str, id: &ObjectId) -> Self {
        Self::of_place(verb, &(id.group_kind(), id.namespace().map(Into::into)))
    }

    /// A question about a verb on a kind in a namespace.
    pub fn of_place(verb: &str, (kind, namespace): &ObjectPlace) -> Self {
        Self {
            verb: verb.to_owned(),
            group: kind.group.to_string(),
            resource: kind.kind.to_string(),
            subresource: String::new(),
            namespace: namespace.as_deref().map(str::to_owned),
        }
    }

    /// The kind that it names instead of a resource: resources are in lower case.
    pub fn kind(&self) -> Option<&str> {
        Some(&*self.resource).filter(|name| name.starts_with(|first: char| first.is_ascii_uppercase()))
    }
}

/// A question on its way to the task that asks the API server.
#[derive(Debug)]
pub struct AccessRequest {
    /// The person.
    pub person: Arc<Person>,
    /// The right.
    pub question: AccessQuestion,
    /// Receives the decision, or the reason why there is none.
    pub answer: oneshot::Sender<Result<bool, String>>,
}

/// Asks for rights; cheap to clone.
#[derive(Debug, Clone)]
pub struct AccessReviews(mpsc::Sender<AccessRequest>);

impl AccessReviews {
    /// Creates it over the channel of the task that asks.
    pub const fn new(requests: mpsc::Sender<AccessRequest>) -> Self {
        Self(requests)
    }

    /// True if the API server grants the right. A viewer on the loopback interface has none beyond
    /// the read-only page.
    ///
    /// # Errors
    /// No decision was reached in time. The caller refuses then.
    pub async fn is_allowed(&self, viewer: &Viewer, question: AccessQuestion) -> Result<bool, String> {
        let Viewer::Person(person) = viewer else { return Ok(false) };
        let (answer, decision) = oneshot::channel();
        let request = AccessRequest { person: Arc::clone(person), question, answer };
        let asked = async {
            self.0.send(request).await.ok()?;
            decision.await.ok()
        };
        timeout(REVIEW_TIMEOUT, asked)
            .await
            .ok()
            .flatten()
            .unwrap_or_else(|| Err("the API server did not decide in time: try again".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_viewer_on_loopback_has_no_rights_and_a_lost_reviewer_decides_nothing() {
        let (requests, receiver) = mpsc::channel(1);
        let reviews = AccessReviews::new(requests);
        let question = AccessQuestion::sync("approve", "shop");
        assert_eq!(reviews.is_allowed(&Viewer::Loopback, question.clone()).await, Ok(false));
        drop(receiver);
        let person = Person { user: "ada".to_owned(), uid: None, groups: Vec::new(), extra: BTreeMap::new() };
        assert!(reviews.is_allowed(&Viewer::Person(Arc::new(person)), question).await.is_err());
    }
}
