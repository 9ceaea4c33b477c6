//! Recognizes another cluster by its id, the uid of its namespace `kube-system`.
//!
//! In: the id that the status of a Sync names, and the one that the cluster has now.
//! Out: a refusal if they differ: a Secret may be replaced by that of another cluster, and another
//! cluster may be made behind the same address. A restored backup has the same id.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::time::timeout;

use crate::clock;
use crate::cluster::identity_checks::{begin_identity_check, end_identity_check};
use crate::cluster::{ApiError, Cluster};
use crate::controller::reconcile_errors::cluster_error;
use crate::controller::status::StatusRecorder;
use crate::object::ObjectId;
use crate::report::{ErrorCause, ReconcileError};

/// Namespace whose uid is the id of a cluster, also after a restored backup.
pub(super) const IDENTITY_NAMESPACE: &str = "kube-system";
/// Maximum number of bytes of an id, which is kept in the status and shown: a uid has 36.
const MAX_ID: usize = 128;
/// Time limit of the read of a cluster's id.
pub(super) const IDENTIFY: Duration = Duration::from_secs(5);
/// Time limit of the record of an id in the status.
const RECORD: Duration = Duration::from_secs(10);
/// Time for which writes continue without another read of the id.
const CONFIRMED: Duration = Duration::from_secs(2);

/// Cause of another cluster than before.
const OTHER: ErrorCause = ErrorCause::Input("OtherCluster");

/// Reads the id of a cluster.
pub(super) async fn read_id(cluster: &Cluster) -> Result<Box<str>, ApiError> {
    let invalid = |why: &str| ApiError::InvalidResponse(why.into());
    let read = async {
        cluster.discovery().ensure().await?;
        let id = ObjectId::new("", "Namespace", "", IDENTITY_NAMESPACE);
        let id = id.map_err(|_| invalid("it has no name"))?;
        let live = cluster.objects().read_metadata(&id, "v1").await?;
        let uid = live.as_ref().and_then(|live| live.metadata("uid")).and_then(Value::as_str);
        uid.filter(|uid| is_id(uid)).map(Box::from).ok_or_else(|| invalid("no namespace kube-system"))
    };
    timeout(IDENTIFY, read).await.unwrap_or(Err(ApiError::Timeout(IDENTIFY)))
}

/// True for a text that can be an id: the server may send anything.
fn is_id(text: &str) -> bool {
    (1..=MAX_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns the error of an id that could not be read.
pub(super) fn unread(secret: &str, failure: &ApiError) -> ReconcileError {
    let error = cluster_error(failure);
    let hint = match failure.code() {
        Some(403) => {
            "; its user must be allowed to get the namespace kube-system, by which the cluster is recognized"
        }
        _ => "",
    };
    let message = format!("spec.cluster: the cluster of the Secret {secret}: {}{hint}", error.message);
    ReconcileError { message, ..error }
}

/// Checks that a Sync has its objects in the cluster with this id, and records the id before the
/// first of them is written.
pub(super) async fn check_id(
    recorder: &StatusRecorder,
    secret: &str,
    id: &str,
) -> Result<(), ReconcileError> {
    let error =
        |cause, message| Err(ReconcileError { cause, message, problems: Vec::new(), permanent: false });
    match recorder.target_uid() {
        Some(known) if known == id => Ok(()),
        Some(known) if recorder.has_scope() => error(OTHER, other_cluster(secret, &known, id)),
        Some(_) | None if recorder.record_target(id, RECORD).await => Ok(()),
        Some(_) | None => {
            let message = "the id of the cluster of its objects could not be recorded in the status";
            error(ErrorCause::StatusUnwritable, message.to_owned())
        }
    }
}

fn other_cluster(secret: &str, known: &str, now: &str) -> String {
    format!(
        "spec.cluster: the Secret {secret} leads to another cluster than before, so nothing is written or deleted there: the \
         uid of its namespace kube-system is {now} and was {known}; give the Secret access to the former cluster, or, if that \
         is gone for ever, delete this Sync with `moorline delete --abandon-cluster` and create it again"
    )
}

/// The last read of the id of a cluster: its time, and why the cluster may not be written.
#[derive(Default)]
pub(super) struct Confirmation {
    last: tokio::sync::Mutex<Option<(Instant, Option<Box<str>>)>>,
    /// Something has shown that another cluster may answer.
    is_doubted: AtomicBool,
}

impl Confirmation {
    /// Checks before a write that the cluster still has this id. Many writes share one look.
    pub(super) async fn check(&self, cluster: &Cluster, id: &str) -> Result<(), ApiError> {
        let mut last = self.last.lock().await;
        let is_open = last
            .as_ref()
            .is_none_or(|(at, why)| clock::since(*at) > CONFIRMED || why.is_none() && self.is_doubted());
        if is_open {
            self.is_doubted.store(false, Ordering::SeqCst);
            let number = begin_identity_check(cluster);
            let why = match read_id(cluster).await {
                Ok(now) if *now == *id => None,
                Ok(now) => Some(format!(
                    "its cluster is another one than before: the uid of kube-system is {now} and was {id}"
                )),
                Err(failure) => Some(format!("the id of its cluster cannot be read: {failure}")),
            };
            match why.is_none() {
                true => end_identity_check(cluster, number),
                false => self.doubt(),
            }
            *last = Some((clock::now(), why.map(String::into_boxed_str)));
        }
        match last.as_ref().and_then(|(_, why)| why.clone()) {
            None => Ok(()),
            Some(why) => Err(ApiError::Unreachable(why)),
        }
    }

    /// Notes that another cluster may answer: it is asked before the next write.
    pub(super) fn doubt(&self) {
        self.is_doubted.store(true, Ordering::SeqCst);
    }

    /// True until a check after the doubt.
    pub(super) fn is_doubted(&self) -> bool {
        self.is_doubted.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_short_plain_text() {
        for (text, expect) in [
            ("8a1e9f2c-6f0b-4c59-9d0e-1f2a3b4c5d6e", true),
            (&*"a".repeat(MAX_ID), true),
            (&*"a".repeat(MAX_ID + 1), false),
            ("", false),
            ("a b", false),
            ("a\u{1b}[2J", false),
        ] {
            assert_eq!(is_id(text), expect, "{text:?}");
        }
    }
}
