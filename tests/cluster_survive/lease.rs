//! Leader election against a real API server: who holds a Lease, when the next one may, and what it costs.
//!
//! Times are short here, and what must hold is compared with times that were measured, so that a slow machine makes
//! the tests slow but not wrong.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::client::Body;
use moorline::cluster::lease::{LeaseClaim, LeaseError, LeaseLoss, LeaseTimings, WritePermit, acquire};
use moorline::metrics::Metrics;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use moorline_test_support::audit::AuditMark;
use moorline_test_support::control_plane::shared;
use moorline_test_support::credentials::{ADMIN, MOORLINE};
use moorline_test_support::under_load::under_load;

const NAME: &str = "moorline-default";
const SOURCE: &str = "moorline.dev/source";
const TIMINGS: LeaseTimings = LeaseTimings {
    duration: Duration::from_secs(6),
    renew_deadline: Duration::from_secs(4),
    retry: Duration::from_millis(500),
    request: Duration::from_millis(1500),
};
/// For what happens within some periods on an idle machine.
const DEADLINE: Duration = Duration::from_secs(60);
/// Between two looks at a permit.
const LOOK: Duration = Duration::from_millis(2);

fn metrics() -> Metrics {
    Metrics::new().expect("metrics")
}

fn claim(namespace: &str, identity: &str, source: &str) -> LeaseClaim {
    LeaseClaim {
        namespace: namespace.to_owned(),
        name: NAME.to_owned(),
        identity: identity.to_owned(),
        record: BTreeMap::from([(SOURCE.to_owned(), source.to_owned())]),
        take_over: false,
    }
}

async fn spec(admin: &Api<Lease>) -> LeaseSpec {
    admin.get(NAME).await.expect("the Lease").spec.expect("a spec")
}

async fn patch(admin: &Api<Lease>, patch: Value) {
    admin.patch(NAME, &PatchParams::default(), &Patch::Merge(patch)).await.expect("a patch of the Lease");
}

/// When a permit ends.
async fn end(permit: &WritePermit) -> Instant {
    while permit.may_write() {
        sleep(LOOK).await;
    }
    Instant::now()
}

#[tokio::test]
async fn of_two_candidates_one_holds_until_it_releases() {
    let Some(plane) = shared() else { return };
    let namespace = plane.namespace("lease").await;
    let client = plane.client(MOORLINE).await;
    let admin = Api::<Lease>::namespaced(plane.client(ADMIN).await, &namespace);
    let mut candidates = ["a", "b"].map(|who| {
        let campaign = acquire(client.clone(), metrics(), claim(&namespace, who, "git"), TIMINGS);
        tokio::spawn(campaign)
    });
    let [a, b] = &mut candidates;
    let (winner, other, next) = tokio::select! {
        won = &mut *a => (won, b, "b"),
        won = &mut *b => (won, a, "a"),
    };
    let winner = winner.unwrap().expect("a leadership");
    let permit = winner.permit();
    // Longer than a term: renewals keep the other out.
    let waited = timeout(TIMINGS.duration + TIMINGS.retry, &mut *other);
    assert!(waited.await.is_err(), "both hold the Lease");
    assert!(permit.may_write());
    assert_eq!(spec(&admin).await.lease_transitions, Some(0));

    let begun = Instant::now();
    winner.release().await.expect("a release");
    assert!(!permit.may_write());
    let second = timeout(DEADLINE, other).await.expect("the other follows").unwrap().expect("a leadership");
    let took = begun.elapsed();
    assert!(took < TIMINGS.duration, "it waited for the end of a term that was given back: {took:?}");
    println!("followed {took:?} after the release; the retry period is {:?}", TIMINGS.retry);
    assert!(second.permit().may_write());
    let spec = spec(&admin).await;
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some(next), Some(1)));
    assert_eq!(spec.lease_duration_seconds, Some(6));
    assert!(spec.acquire_time <= spec.renew_time);
}

#[tokio::test]
async fn a_holder_that_stands_still_may_not_write_when_the_next_one_may() {
    let Some(plane) = shared() else { return };
    let namespace = plane.namespace("lease").await;
    let (tell, told) = oneshot::channel();
    let held = claim(&namespace, "still", "git");
    let everywhere = plane.plane();
    // Its whole runtime stands still, as that of a process that is stopped: no task of it can notice anything.
    let holder = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = everywhere.client(MOORLINE).await;
            let leadership = acquire(client, metrics(), held, TIMINGS).await.expect("a leadership");
            let permit = leadership.permit();
            assert!(permit.may_write());
            tell.send(permit.clone()).expect("the test waits");
            std::thread::sleep(TIMINGS.duration * 2);
            let at_once = permit.may_write();
            (at_once, timeout(DEADLINE, leadership.wait_until_lost()).await)
        })
    });
    let permit = told.await.expect("the holder");
    let client = plane.client(MOORLINE).await;
    let next = tokio::spawn({
        let campaign = acquire(client, metrics(), claim(&namespace, "next", "git"), TIMINGS);
        async move { (campaign.await, Instant::now()) }
    });
    let ended = end(&permit).await;
    let (next, taken) = timeout(DEADLINE, next).await.expect("the next one follows").unwrap();
    assert!(next.expect("a leadership").permit().may_write());
    assert!(ended < taken, "two permits at once");
    println!("the permit ended {:?} before the next began", taken - ended);
    let (at_once, loss) = holder.join().expect("the holder's thread");
    assert!(!at_once, "it may write after standing still");
    assert!(matches!(loss, Ok(LeaseLoss::NotRenewed { .. } | LeaseLoss::Taken { .. })), "{loss:?}");
}

#[tokio::test]
async fn a_holder_that_vanished_is_followed_after_its_term() {
    let Some(plane) = shared() else { return };
    let namespace = plane.namespace("lease").await;
    let client = plane.client(MOORLINE).await;
    let first = acquire(client.clone(), metrics(), claim(&namespace, "first", "git"), TIMINGS).await.unwrap();
    let permit = first.permit();
    let before = Instant::now();
    drop(first);
    assert!(!permit.may_write(), "nobody renews it any more");
    let second =
        timeout(DEADLINE, acquire(client, metrics(), claim(&namespace, "second", "git"), TIMINGS)).await;
    assert!(second.expect("it follows").unwrap().permit().may_write());
    assert!(before.elapsed() >= TIMINGS.duration, "the term was not over: {:?}", before.elapsed());
}

#[tokio::test]
async fn a_deleted_lease_is_made_again_by_its_holder() {
    let Some(plane) = shared() else { return };
    let namespace = plane.namespace("lease").await;
    let client = plane.client(MOORLINE).await;
    let admin = Api::<Lease>::namespaced(plane.client(ADMIN).await, &namespace);
    let holder =
        acquire(client.clone(), metrics(), claim(&namespace, "holder", "git"), TIMINGS).await.unwrap();
    let other = tokio::spawn(acquire(client, metrics(), claim(&namespace, "other", "git"), TIMINGS));
    sleep(TIMINGS.retry * 3).await;
    let old = admin.get(NAME).await.unwrap().metadata.uid;
    admin.delete(NAME, &DeleteParams::default()).await.expect("it is deleted");
    let new = timeout(DEADLINE, async {
        loop {
            match admin.get_opt(NAME).await.unwrap() {
                Some(lease) => break lease,
                None => sleep(LOOK).await,
            }
        }
    });
    let new = new.await.expect("it is made again");
    assert_ne!(new.metadata.uid, old);
    assert_eq!(new.metadata.annotations.unwrap()[SOURCE], "git");
    assert_eq!(new.spec.unwrap().holder_identity.as_deref(), Some("holder"));
    sleep(TIMINGS.retry * 3).await;
    assert!(holder.permit().may_write());
    assert!(!other.is_finished());
    other.abort();
}

#[tokio::test]
async fn another_source_is_refused_until_it_is_taken_over() {
    let Some(plane) = shared() else { return };
    let namespace = plane.namespace("lease").await;
    let client = plane.client(MOORLINE).await;
    let admin = Api::<Lease>::namespaced(plane.client(ADMIN).await, &namespace);
    let first =
        acquire(client.clone(), metrics(), claim(&namespace, "first", "git-a"), TIMINGS).await.unwrap();
    let scope = BTreeMap::from([("moorline.dev/scope".to_owned(), "apps/Deployment".to_owned())]);
    first.write_annotations(scope).await.expect("a note");
    let refused = async || {
        let other = acquire(client.clone(), metrics(), claim(&namespace, "other", "git-b"), TIMINGS).await;
        match other {
            Err(LeaseError::OtherSource { key, recorded, ours, .. }) => {
                assert_eq!((&*key, &*recorded, &*ours), (SOURCE, "git-a", "git-b"));
            }
            other => panic!("{other:?}"),
        }
    };
    refused().await;
    first.release().await.expect("a release");
    refused().await;

    let over = LeaseClaim { take_over: true, ..claim(&namespace, "other", "git-b") };
    let other = timeout(DEADLINE, acquire(client.clone(), metrics(), over, TIMINGS)).await.unwrap().unwrap();
    assert_eq!(other.previous_annotations()["moorline.dev/scope"], "apps/Deployment");
    let annotations = admin.get(NAME).await.unwrap().metadata.annotations.unwrap();
    assert_eq!((&*annotations[SOURCE], &*annotations["moorline.dev/scope"]), ("git-b", "apps/Deployment"));
    let back = acquire(client, metrics(), claim(&namespace, "first", "git-a"), TIMINGS).await;
    assert_eq!(back.map(drop).map_err(|error| error.reason()), Err("LeaseOfOtherSource"));
}

#[tokio::test]
async fn edits_by_others_are_kept_and_a_holder_that_is_replaced_goes() {
    let Some(plane) = shared() else { return };
    let namespace = plane.namespace("lease").await;
    let client = plane.client(MOORLINE).await;
    let admin = Api::<Lease>::namespaced(plane.client(ADMIN).await, &namespace);
    let holder =
        acquire(client.clone(), metrics(), claim(&namespace, "holder", "git"), TIMINGS).await.unwrap();
    patch(&admin, json!({"metadata": {"labels": {"team": "a"}, "annotations": {SOURCE: "elsewhere"}}})).await;
    sleep(TIMINGS.retry * 3).await;
    assert!(holder.permit().may_write());
    let metadata = admin.get(NAME).await.unwrap().metadata;
    assert_eq!((&*metadata.labels.unwrap()["team"], &*metadata.annotations.unwrap()[SOURCE]), ("a", "git"));

    patch(&admin, json!({"spec": {"holderIdentity": "thief"}})).await;
    let loss = timeout(DEADLINE, holder.wait_until_lost()).await.expect("it is noticed");
    assert_eq!(loss, LeaseLoss::Taken { holder: "thief".into() });
    assert!(!holder.permit().may_write());
    assert_eq!(holder.write_annotations(BTreeMap::new()).await, Err(loss));
    holder.release().await.expect("there is nothing to release");
    assert_eq!(spec(&admin).await.holder_identity.as_deref(), Some("thief"));

    // The same process stands again, and so does it after its name was removed.
    let holder =
        timeout(DEADLINE, acquire(client, metrics(), claim(&namespace, "holder", "git"), TIMINGS)).await;
    let holder = holder.expect("the thief's term ends").unwrap();
    patch(&admin, json!({"spec": {"holderIdentity": null}})).await;
    assert_eq!(timeout(DEADLINE, holder.wait_until_lost()).await.expect("it is noticed"), LeaseLoss::Cleared);
}

#[tokio::test]
async fn a_held_lease_costs_one_request_a_period() {
    let Some(plane) = shared() else { return };
    let namespace = plane.namespace("lease").await;
    let client = plane.client(MOORLINE).await;
    let _holder = acquire(client, metrics(), claim(&namespace, "holder", "git"), TIMINGS).await.unwrap();
    let mark = AuditMark::set(&plane).await;
    let begun = Instant::now();
    sleep(TIMINGS.retry * 8).await;
    let requests = mark.requests().await.by_user(MOORLINE).in_namespace(&namespace);
    let periods = begun.elapsed().as_secs_f64() / TIMINGS.retry.as_secs_f64();
    let tally = requests.tally();
    let updates = tally.get("update leases.coordination.k8s.io").copied().unwrap_or_default();
    println!("{updates} updates in {periods:.1} periods");
    assert_eq!(tally.len(), 1, "{tally:?}");
    assert!(updates >= 2 && updates as f64 <= periods + 1.0, "{tally:?} in {periods} periods");
}

/// State of the connection to the API server.
const OPEN: u8 = 0;
const REFUSING: u8 = 1;
const SILENT: u8 = 2;

/// A client whose way to the API server can be cut.
fn by_way_of(client: Client, way: &Arc<AtomicU8>) -> Client {
    let way = Arc::clone(way);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (client, way) = (client.clone(), Arc::clone(&way));
        async move {
            match way.load(Ordering::SeqCst) {
                OPEN => client.send(request).await.map_err(tower::BoxError::from),
                REFUSING => Err("connection refused".into()),
                _ => std::future::pending().await,
            }
        }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn a_server_that_is_away_is_survived_up_to_the_deadline() {
    let Some(plane) = shared() else { return };
    let namespace = plane.namespace("lease").await;
    let way = Arc::new(AtomicU8::new(OPEN));
    let client = by_way_of(plane.client(MOORLINE).await, &way);
    let holder =
        acquire(client.clone(), metrics(), claim(&namespace, "holder", "git"), TIMINGS).await.unwrap();
    let permit = holder.permit();

    // A third of the deadline, of which a late renewal before may have used some.
    way.store(REFUSING, Ordering::SeqCst);
    sleep(TIMINGS.renew_deadline / 3).await;
    assert!(permit.may_write());
    way.store(OPEN, Ordering::SeqCst);
    sleep(TIMINGS.renew_deadline).await;
    assert!(permit.may_write(), "it was not renewed again");

    way.store(SILENT, Ordering::SeqCst);
    let cut = Instant::now();
    let ended = end(&permit).await;
    println!("the permit ended {:?} after the way was cut", ended - cut);
    // The last renewal began before the cut, and others may begin when its term has passed.
    assert!(ended - cut < TIMINGS.duration);
    let loss = timeout(DEADLINE, holder.wait_until_lost()).await.expect("it is noticed");
    assert!(matches!(&loss, LeaseLoss::NotRenewed { cause } if cause.contains("no answer")), "{loss:?}");
    way.store(OPEN, Ordering::SeqCst);
    assert!(!permit.may_write(), "an end is final");

    // The Lease names it still, so that it need not wait for itself.
    let again = acquire(client, metrics(), claim(&namespace, "holder", "git"), TIMINGS);
    let again = timeout(DEADLINE, again).await.expect("it stands again").unwrap();
    assert!(again.permit().may_write());
    way.store(SILENT, Ordering::SeqCst);
    let begun = Instant::now();
    let error = again.release().await.expect_err("nobody answers");
    assert_eq!(error.reason(), "LeaseNotReleased");
    assert!(begun.elapsed() < under_load(DEADLINE));
}

#[tokio::test]
async fn a_candidate_waits_for_its_namespace_and_gives_up_on_a_bad_name() {
    let Some(plane) = shared() else { return };
    let namespace = plane.namespace("lease").await;
    let client = plane.client(MOORLINE).await;
    let nowhere = acquire(client.clone(), metrics(), claim("lease-nowhere", "a", "git"), TIMINGS);
    assert!(timeout(TIMINGS.retry * 3, nowhere).await.is_err(), "it waits");
    let bad = LeaseClaim { name: "Not_A_Name".to_owned(), ..claim(&namespace, "a", "git") };
    let error = timeout(DEADLINE, acquire(client.clone(), metrics(), bad, TIMINGS)).await.expect("an answer");
    assert_eq!(error.map(drop).map_err(|error| error.reason()), Err("LeaseRejected"));
    let nobody = acquire(client, metrics(), claim(&namespace, "", "git"), TIMINGS).await;
    assert_eq!(nobody.map(drop), Err(LeaseError::NoIdentity));
}
