//! Tests of what Syncs know of each other.

use futures::FutureExt as _;

use super::sources::UNTRIED;
use super::*;
use crate::controller::peers::claim_evidence::Evidence;
use crate::controller::peers::render_attempts::FilesHash;
use crate::object::ObjectId;
use crate::render::{FolderContents, RenderOptions};
use crate::tree::FileTree;

fn sync(name: &str) -> SyncName {
    SyncName::new("ops", name)
}

fn address(repository: &str) -> Address {
    Address::remote(&format!("https://host/{repository}")).unwrap()
}

fn commit(digit: &str) -> ObjectHash {
    ObjectHash::parse(&digit.repeat(40)).unwrap()
}

/// Returns two Syncs of one repository, of which the first has rendered a commit.
fn two() -> Peers {
    let all = Peers::default();
    for name in ["a", "b"] {
        all.add(&sync(name));
        all.set_source(&sync(name), &address("one"), &Reference::Head, false);
    }
    all.set_rendered_commit(&sync("a"), commit("1"));
    all
}

/// Returns the first Sync that lags behind.
fn behind(all: &Peers, own: &str) -> Option<SyncName> {
    all.lagging_peers(&sync(own), None, None).first().map(|behind| behind.sync().clone())
}

fn rings(bell: &Notify) -> bool {
    bell.notified().now_or_never().is_some()
}

#[test]
fn who_has_not_rendered_the_same_commit_is_behind_and_is_asked_to_look() {
    let all = two();
    assert_eq!(behind(&all, "b"), None, "who has rendered nothing prunes nothing");
    let bell = all.wakeups(&sync("b"));
    assert!(!rings(&bell.look));
    assert_eq!(behind(&all, "a"), Some(sync("b")));
    assert!(rings(&bell.look));
    all.set_rendered_commit(&sync("b"), commit("2"));
    assert_eq!(behind(&all, "a"), Some(sync("b")), "another commit is not this one");
    all.set_rendered_commit(&sync("b"), commit("1"));
    assert_eq!(behind(&all, "a"), None);
}

#[test]
fn a_sync_of_another_cluster_is_not_waited_for() {
    for (mark, expect) in [(None, true), (Some("m"), false)] {
        let (all, own) = (Peers::default(), sync("a"));
        let other = mark.map_or(sync("b"), |mark| sync("b").in_target(mark));
        for name in [&own, &other] {
            all.add(name);
            all.set_source(name, &address("one"), &Reference::Head, false);
        }
        all.set_rendered_commit(&own, commit("1"));
        assert_eq!(behind(&all, "a").is_some(), expect, "{mark:?}");
    }
}

#[test]
fn a_call_about_a_mounted_repository_asks_the_sync_to_look() {
    let all = two();
    all.set_mounts(&sync("b"), vec![address("base"), address("other")]);
    let called = |url: &str| {
        let body = format!(r#"{{"repository": {{"clone_url": "{url}"}}}}"#);
        all.request_polls(&crate::source::webhook_call::parse_call(body.as_bytes()).unwrap())
    };
    assert_eq!(called("https://host/other.git"), 1);
    let bells = ["a", "b"].map(|name| rings(&all.wakeups(&sync(name)).called));
    assert_eq!((bells, called("https://host/gone")), ([false, true], 0));
    all.set_mounts(&sync("b"), Vec::new());
    assert_eq!(called("https://host/other.git"), 0);
}

#[test]
fn who_waits_is_woken_by_every_change_and_only_once() {
    let all = two();
    let bell = all.wakeups(&sync("a"));
    all.set_rendered_commit(&sync("b"), commit("2"));
    assert!(!rings(&bell.again), "nobody waits yet");
    behind(&all, "a");
    all.set_rendered_commit(&sync("b"), commit("2"));
    assert!(!rings(&bell.again), "nothing has changed");
    all.set_rendered_commit(&sync("b"), commit("1"));
    assert!(rings(&bell.again));
    all.invalidate(&sync("b"));
    assert!(!rings(&bell.again), "nobody waits any more");
    all.set_source(&sync("b"), &address("one"), &Reference::Head, false);
    behind(&all, "a");
    all.remove(&sync("b"));
    assert!(rings(&bell.again), "who is gone is waited for no more");
    assert_eq!(behind(&all, "a"), None);
}

#[test]
fn only_who_goes_by_the_same_is_waited_for() {
    let all = two();
    all.set_source(&sync("b"), &address("two"), &Reference::Head, false);
    assert_eq!(behind(&all, "a"), None);
    all.set_source(&sync("b"), &address("one"), &Reference::branch("main").unwrap(), false);
    assert_eq!(behind(&all, "a"), None);
    all.mark_deleting(&sync("b"));
    assert_eq!(behind(&all, "a"), None);
    all.add(&sync("c"));
    assert_eq!(behind(&all, "a"), Some(sync("c")), "nothing is known of it yet");
    all.set_source(&sync("c"), &address("two"), &Reference::Head, false);
    assert_eq!(behind(&all, "a"), None, "it follows another ref, even if that is never resolved");
}

#[test]
fn who_follows_something_else_for_a_while_has_rendered_nothing_of_this() {
    let all = two();
    all.set_rendered_commit(&sync("b"), commit("1"));
    all.set_source(&sync("b"), &address("one"), &Reference::Head, false);
    assert_eq!(behind(&all, "a"), None, "the same repository is as far as it was");
    all.set_source(&sync("b"), &address("two"), &Reference::Head, false);
    all.set_source(&sync("b"), &address("one"), &Reference::Head, false);
    assert_eq!(behind(&all, "a"), Some(sync("b")));
}

#[test]
fn who_is_suspended_is_behind_until_it_has_rendered_and_wakes_when_it_goes_on() {
    let all = two();
    let one = address("one");
    let is = |suspended| all.set_source(&sync("b"), &one, &Reference::Head, suspended);
    all.set_rendered_commit(&sync("b"), commit("2"));
    is(true);
    let (own, other) = (all.wakeups(&sync("a")), all.wakeups(&sync("b")));
    assert_eq!(behind(&all, "a"), Some(sync("b")));
    assert!(rings(&other.look), "it is asked all the same");
    all.set_rendered_commit(&sync("b"), commit("1"));
    assert!(rings(&own.again));
    assert_eq!(behind(&all, "a"), None, "what it wants is known");
    is(true);
    assert!(!rings(&own.again), "nothing has changed");
    is(false);
    assert!(rings(&own.again), "it goes on");
    assert_eq!(behind(&all, "a"), Some(sync("b")), "and does not take anything yet");
    all.set_rendered_commit(&sync("b"), commit("1"));
    assert!(rings(&own.again));
    assert_eq!(behind(&all, "a"), None);
    all.set_source(&sync("b"), &one, &Reference::branch("main").unwrap(), true);
    assert_eq!(behind(&all, "a"), None, "it follows something else");
}

#[test]
fn who_is_refused_is_behind_whatever_it_rendered_before() {
    let all = two();
    let bell = all.wakeups(&sync("a"));
    all.set_rendered_commit(&sync("b"), commit("1"));
    all.invalidate(&sync("b"));
    assert_eq!(behind(&all, "a"), Some(sync("b")));
    all.mark_unreadable(&sync("b"));
    assert_eq!(behind(&all, "a"), Some(sync("b")), "it may want what it followed last");
    all.mark_deleting(&sync("b"));
    assert!(rings(&bell.again));
    assert_eq!(behind(&all, "a"), None, "it is being deleted");
    all.add(&sync("c"));
    all.mark_unreadable(&sync("c"));
    assert_eq!(behind(&all, "a"), None, "it names no repository");
}

#[test]
fn who_is_gone_does_not_come_back_by_what_it_still_does() {
    let all = two();
    all.remove(&sync("b"));
    let bell = all.wakeups(&sync("b"));
    all.set_source(&sync("b"), &address("one"), &Reference::Head, false);
    all.invalidate(&sync("b"));
    assert_eq!(behind(&all, "a"), None);
    assert!(!rings(&bell.look));
    all.add(&sync("b"));
    assert_eq!(behind(&all, "a"), Some(sync("b")), "it was created again");
}

#[test]
fn what_was_rendered_as_it_is_asked_for_no_more_does_not_count() {
    let all = two();
    all.set_request(&sync("b"), 1);
    all.set_rendered(&sync("b"), 1, commit("1"), commit("1"));
    assert_eq!(behind(&all, "a"), None);
    all.set_request(&sync("b"), 2);
    assert_eq!(behind(&all, "a"), Some(sync("b")));
    all.set_rendered(&sync("b"), 1, commit("1"), commit("1"));
    assert_eq!(behind(&all, "a"), Some(sync("b")));
    all.set_rendered(&sync("b"), 2, commit("1"), commit("1"));
    assert_eq!(behind(&all, "a"), None);
}

#[test]
fn who_has_gone_back_waits_neither_for_who_goes_on_nor_for_who_stays() {
    let all = two();
    let behind = |name: &str| behind(&all, name);
    // The first has rolled back the second commit.
    all.set_rendered(&sync("a"), 0, commit("1"), commit("2"));
    all.set_rendered_commit(&sync("b"), commit("1"));
    assert_eq!((behind("a"), behind("b")), (None, None), "the other one waits for it");
    all.set_rendered_commit(&sync("b"), commit("2"));
    assert_eq!((behind("a"), behind("b")), (None, None), "the other one has taken it up");
    all.set_rendered_commit(&sync("b"), commit("3"));
    assert_eq!((behind("a"), behind("b")), (Some(sync("b")), Some(sync("a"))));
}

/// Records a failed attempt at a commit that may contain any object.
fn tried(all: &Peers, digit: &str, files: Option<FilesHash>) {
    tried_with(all, digit, files, Evidence::Anything(FolderContents::default()));
}

fn tried_with(all: &Peers, digit: &str, files: Option<FilesHash>, evidence: Evidence) {
    let (commit, evidence) = (commit(digit), Arc::new(evidence));
    let tried = FailedAttempt {
        commit,
        evidence,
        memory: None,
        files,
        same_in: Vec::new(),
        is_final: true,
        cluster: None,
    };
    all.record_failed_attempt(&sync("b"), 0, tried.after(all.last_failed_attempt(&sync("b")).as_ref()));
}

#[tokio::test(start_paused = true)]
async fn a_sync_that_has_not_tried_is_waited_for_but_not_for_long() {
    let all = two();
    assert!(matches!(all.lagging_peers(&sync("a"), None, None).as_slice(), [LaggingPeer::Untried(..)]));
    tokio::time::advance(UNTRIED).await;
    assert_eq!(behind(&all, "a"), None);
    // It has a new request, and gets its time again.
    all.set_request(&sync("b"), 1);
    assert_eq!(behind(&all, "a"), Some(sync("b")));
    tokio::time::advance(UNTRIED).await;
    assert_eq!(behind(&all, "a"), None);
    all.set_rendered_commit(&sync("a"), commit("2"));
    assert_eq!(behind(&all, "a"), Some(sync("b")), "another commit is another question");
}

#[tokio::test(start_paused = true)]
async fn a_sync_of_another_namespace_that_changes_all_the_time_holds_up_nobody() {
    let all = two();
    let stranger = SyncName::new("other", "c");
    all.add(&stranger);
    all.set_source(&stranger, &address("one"), &Reference::Head, false);
    all.set_rendered_commit(&sync("b"), commit("1"));
    assert_eq!(behind(&all, "a"), Some(stranger.clone()));
    let mut held = 0;
    for asked in 1..60 {
        tokio::time::advance(Duration::from_secs(5)).await;
        all.set_request(&stranger, asked);
        held += usize::from(behind(&all, "a").is_some());
    }
    assert!((5..=15).contains(&held), "for 10 s of each minute: {held} of 59 times");
    // In its own namespace it gets its time again each time.
    tokio::time::advance(UNTRIED).await;
    all.set_request(&sync("b"), 1);
    tokio::time::advance(UNTRIED).await;
    all.set_request(&sync("b"), 2);
    assert_eq!(behind(&all, "a"), Some(sync("b")));
}

#[test]
fn a_sync_that_is_refused_or_shut_out_holds_nothing() {
    let all = two();
    let own = all.wakeups(&sync("a"));
    assert_eq!(behind(&all, "a"), Some(sync("b")));
    all.set_refused(&sync("b"), true);
    assert!(rings(&own.again));
    assert_eq!(behind(&all, "a"), None);
    all.set_refused(&sync("b"), false);
    assert_eq!(behind(&all, "a"), Some(sync("b")));
    all.set_shut_out(&sync("b"), true);
    assert!(rings(&own.again));
    assert_eq!(behind(&all, "a"), None);
    // Another repository may grant access.
    all.set_source(&sync("b"), &address("two"), &Reference::Head, false);
    all.set_source(&sync("b"), &address("one"), &Reference::Head, false);
    assert_eq!(behind(&all, "a"), Some(sync("b")));
}

#[test]
fn a_failed_try_counts_until_the_commit_is_rendered_also_of_a_suspended_sync() {
    let all = two();
    let (own, other) = (all.wakeups(&sync("a")), all.wakeups(&sync("b")));
    assert_eq!(behind(&all, "a"), Some(sync("b")));
    assert!(rings(&other.look));
    tried(&all, "1", None);
    assert!(rings(&own.again));
    assert!(matches!(all.lagging_peers(&sync("a"), None, None).as_slice(), [LaggingPeer::Failed(..)]));
    assert!(!rings(&other.look), "it has looked");
    all.set_source(&sync("b"), &address("one"), &Reference::Head, true);
    tried(&all, "1", None);
    assert_eq!(behind(&all, "a"), Some(sync("b")), "it may take the object when it goes on");
    all.set_source(&sync("b"), &address("one"), &Reference::Head, false);
    all.set_rendered_commit(&sync("b"), commit("1"));
    assert_eq!(behind(&all, "a"), None);
}

#[test]
fn an_object_has_not_moved_to_files_that_stay_the_same() {
    let all = two();
    let id = ObjectId::parse("/ConfigMap|shop/a").unwrap();
    let may_hold =
        |left: &str| all.last_failed_attempt(&sync("b")).unwrap().may_hold(&id, Some(&commit(left)));
    tried(&all, "1", Some([1; 32]));
    tried(&all, "2", Some([1; 32]));
    assert!(!may_hold("1") && may_hold("7"));
    assert!(all.last_failed_attempt(&sync("b")).unwrap().may_hold(&id, None), "nobody knows since when");
    tried(&all, "3", Some([1; 32]));
    assert!(!may_hold("1") && !may_hold("2"));
    tried(&all, "4", Some([2; 32]));
    assert!(may_hold("1") && may_hold("3"), "other files may hold it");
    tried(&all, "5", None);
    tried(&all, "6", None);
    assert!(may_hold("5"), "unknown files are not the same");
}

#[test]
fn files_that_stay_the_same_hold_what_they_name() {
    let all = two();
    let text = "kind: ConfigMap\napiVersion: v1\nmetadata: {namespace: shop, name: a}\n---\nkind: [\n";
    for evidence in [Evidence::Files, Evidence::Anything] {
        for digit in ["1", "2"] {
            let tree = FileTree::from_texts([("bad.yaml", text)]);
            let contents = FolderContents::from_tree(&tree, &RenderOptions::default());
            tried_with(&all, digit, Some([1; 32]), evidence(contents));
        }
        let may_hold = |id: &str| {
            let id = ObjectId::parse(id).unwrap();
            all.last_failed_attempt(&sync("b")).unwrap().may_hold(&id, Some(&commit("1")))
        };
        assert!(may_hold("/ConfigMap|shop/a"), "it was copied there in an earlier commit");
        assert!(!may_hold("/ConfigMap|shop/b"));
    }
}
