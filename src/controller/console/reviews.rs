//! Answers questions about rights by reviews of the API server.
//!
//! In: a person and a question. Out: the decision. A decision is used for five seconds, a question
//! that is asked already is not asked again, and no more than a few are asked at the same time. A
//! failure is no decision, and is not kept.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

use super::decision_cache::DecisionCache;
use crate::clock;
use crate::cluster::Cluster;
use crate::object::GroupKind;
use crate::serve::viewer::{AccessQuestion, AccessRequest, Person};

/// Reviews at the same time.
const SIDE_BY_SIDE: usize = 16;
/// Questions that wait for a decision; beyond this number they are refused.
const MAX_WAITING: usize = 10_000;

/// A person and a question.
pub type Asked = (Arc<Person>, AccessQuestion);
type Decision = Result<bool, String>;

/// Answers questions until the channel is closed and the last one is answered.
pub async fn answer_questions<A, F>(ask: A, mut questions: mpsc::Receiver<AccessRequest>)
where
    A: Fn(Asked) -> F + Clone + Send + 'static,
    F: Future<Output = Decision> + Send + 'static,
{
    let mut known = DecisionCache::default();
    let mut waiting: BTreeMap<Asked, Vec<oneshot::Sender<Decision>>> = BTreeMap::new();
    let (mut running, turns) = (JoinSet::new(), Arc::new(Semaphore::new(SIDE_BY_SIDE)));
    loop {
        tokio::select! {
            Some(done) = running.join_next() => {
                let Ok((asked, begun, decision)) = done else { continue };
                for answer in waiting.remove(&asked).into_iter().flatten() {
                    // The viewer may have gone.
                    let _ = answer.send(Decision::clone(&decision));
                }
                if let Ok(decision) = decision {
                    known.put(asked, begun, decision);
                }
            }
            request = questions.recv() => {
                let Some(AccessRequest { person, question, answer }) = request else { break };
                let asked = (person, question);
                if let Some(decision) = known.get(&asked, clock::now()) {
                    let _ = answer.send(Ok(decision));
                } else if let Some(others) = waiting.get_mut(&asked) {
                    others.push(answer);
                } else if waiting.len() >= MAX_WAITING {
                    let _ = answer.send(Err("too many questions about rights: try again".to_owned()));
                } else {
                    waiting.insert(asked.clone(), vec![answer]);
                    running.spawn(decide(ask.clone(), asked, turns.clone()));
                }
            }
        }
    }
    running.shutdown().await;
}

/// Asks once there is a turn; the decision is as old as the question.
async fn decide<A, F>(ask: A, asked: Asked, turns: Arc<Semaphore>) -> (Asked, Instant, Decision)
where
    A: Fn(Asked) -> F,
    F: Future<Output = Decision>,
{
    let turn = turns.acquire_owned().await;
    let begun = clock::now();
    let decision = ask(asked.clone()).await;
    drop(turn);
    (asked, begun, decision)
}

/// Asks the API server by a SubjectAccessReview.
pub async fn review(cluster: &Cluster, (person, question): &Asked) -> Decision {
    let Some(attributes) = attributes(cluster, question).await? else { return Ok(false) };
    let spec = json!({
        "user": person.user, "uid": person.uid, "groups": person.groups, "extra": person.extra,
        "resourceAttributes": attributes,
    });
    cluster.access_reviews().may_subject(spec).await.map_err(|failure| failure.to_string())
}

/// The attributes of a review; `None` if the server does not serve the kind.
async fn attributes(cluster: &Cluster, question: &AccessQuestion) -> Result<Option<Value>, String> {
    let resource = match question.kind() {
        None => question.resource.clone(),
        Some(kind) => {
            cluster.discovery().ensure().await.map_err(|failure| failure.to_string())?;
            match cluster.kinds().get(&GroupKind::new(&question.group, kind)) {
                Some(served) => served.plural.to_string(),
                None => return Ok(None),
            }
        }
    };
    let (group, verb) = (&question.group, &question.verb);
    Ok(Some(json!({
        "verb": verb, "group": group, "resource": resource, "subresource": question.subresource,
        "namespace": question.namespace.as_deref().unwrap_or_default(),
    })))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::serve::viewer::{AccessReviews, Viewer};

    #[tokio::test(start_paused = true)]
    async fn a_question_is_asked_once_in_ten_seconds_and_a_failure_is_forgotten() {
        let (asked, fails) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (send, questions) = mpsc::channel(8);
        let (count, failing) = (asked.clone(), fails.clone());
        let ask = move |(person, question): Asked| {
            count.fetch_add(1, Ordering::Relaxed);
            let fails = failing.load(Ordering::Relaxed) > 0;
            async move {
                tokio::time::sleep(Duration::from_millis(10)).await;
                if fails { Err("no answer".to_owned()) } else { Ok(question.verb == person.user) }
            }
        };
        tokio::spawn(answer_questions(ask, questions));
        let reviews = AccessReviews::new(send);
        let person = |user: &str| {
            let (user, groups, extra) = (user.to_owned(), Vec::new(), BTreeMap::new());
            Viewer::Person(Arc::new(Person { user, uid: None, groups, extra }))
        };
        let may =
            async |user: &str| reviews.is_allowed(&person(user), AccessQuestion::sync("sync", "shop")).await;
        // Many at the same time are one question.
        let all = futures::future::join_all((0..5).map(|_| may("sync"))).await;
        assert_eq!((all, asked.load(Ordering::Relaxed)), (vec![Ok(true); 5], 1));
        assert_eq!((may("eve").await, may("sync").await), (Ok(false), Ok(true)));
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        tokio::time::advance(Duration::from_secs(5)).await;
        fails.store(1, Ordering::Relaxed);
        assert_eq!(
            (may("sync").await, may("sync").await),
            (Err("no answer".into()), Err("no answer".into()))
        );
        fails.store(0, Ordering::Relaxed);
        assert_eq!((may("sync").await, asked.load(Ordering::Relaxed)), (Ok(true), 5));
    }
}
