//! Objects that move between the repositories of two Syncs: what is kept when the old one names the new one, and what is not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::{Value, json};

use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::git_server::{GitServer, Reply, Work};
use moorline_test_support::scene::{Scene, file};

/// Longer than a Sync of the same repository would be waited for.
const LONG: Duration = Duration::from_secs(12);

/// A scene with a second repository, on a server of its own.
struct Two {
    scene: Scene,
    git: GitServer,
    work: Work,
    /// The server of the second repository has said nothing until this is true.
    speaks: Mutex<Arc<AtomicBool>>,
}

impl Two {
    async fn new(purpose: &str) -> Option<Self> {
        let scene = Scene::new(purpose).await?;
        let root = scene.root.path().join("second");
        std::fs::create_dir_all(&root).unwrap();
        let speaks = Mutex::default();
        Some(Self { git: GitServer::start(&root), work: Work::new(&root), scene, speaks })
    }

    /// Pushes to the second repository.
    fn push(&self, files: &[(String, String)]) -> String {
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        self.work.push(&files)
    }

    /// A Sync of the folder of its name in the second repository, which looks by itself only once an hour.
    async fn second(&self, name: &str) {
        let source = json!({"git": {"url": self.git.url("repository.git")}});
        self.scene.sync(name, json!({"source": source, "path": name, "interval": "1h"})).await;
    }

    /// A Sync `old` of the first repository with `stays`, `moved` and `goes`, and `new` of the second one with `own`.
    async fn begun(&self, claim_timeout: &str, spec: Value) -> Daemon {
        let arguments = ["--leader-election=false", "--claim-timeout", claim_timeout];
        let daemon = self.scene.daemon_with(&arguments);
        let commit = self.scene.push(&["stays", "moved", "goes"].map(|name| file(name, "one")));
        self.scene.sync("old", spec).await;
        self.scene.until_ready("old", &commit).await;
        let commit = self.push(&[file("new/own", "one")]);
        self.second("new").await;
        self.scene.until_ready("new", &commit).await;
        daemon
    }

    /// Names the Sync to which `old` moves.
    async fn moves_to(&self, value: Option<&str>) {
        let patch = json!({"metadata": {"annotations": {"moorline.dev/moves-to": value}}});
        self.scene.patch_sync("old", patch).await;
    }

    /// From now on the server of the second repository says nothing.
    fn falls_silent(&self) {
        let speaks = Arc::<AtomicBool>::default();
        *self.speaks.lock().unwrap() = speaks.clone();
        self.git.rule(move |_| Reply::SilenceUntil(speaks.clone()));
        self.git.requests();
    }

    /// It answers again.
    fn speaks(&self) {
        self.git.rule(|_| Reply::Git);
        self.speaks.lock().unwrap().store(true, Ordering::Relaxed);
    }

    async fn uid(&self, name: &str) -> Option<String> {
        self.scene.maps().get_opt(name).await.unwrap().and_then(|map| map.metadata.uid)
    }

    async fn until_gone(&self, name: &str) {
        until(&format!("{name} is gone"), async || self.uid(name).await.is_none().then_some(())).await;
    }

    /// The message of a hold of an object of `old`.
    async fn until_held(&self, name: &str, reason: &str) -> String {
        let path = format!("/{name}");
        until(&format!("{name} is held: {reason}"), async || {
            let problems = self.scene.status("old", "/problems").await;
            let told = problems.as_array()?.iter().find(|one| {
                one["reason"] == reason && one["object"].as_str().is_some_and(|id| id.ends_with(&path))
            })?;
            Some(told["message"].as_str().unwrap_or_default().to_owned())
        })
        .await
    }

    async fn approve(&self) {
        let hash = until("an approval is asked for", async || {
            self.scene.status("old", "/approval/hash").await.as_str().map(ToOwned::to_owned)
        })
        .await;
        let patch = json!({"metadata": {"annotations": {"moorline.dev/approve": hash}}});
        self.scene.patch_sync("old", patch).await;
    }

    /// The writes on ConfigMaps since the last call, as a verb and a name.
    fn writes(&self) -> Vec<String> {
        let is_write = |one: &RecordedRequest| one.writes_object() && one.path.contains("/configmaps/");
        let asked = self.scene.proxy.take_requests().into_iter().filter(is_write);
        asked
            .map(|one| format!("{} {}", one.method, one.path.rsplit('/').next().unwrap_or_default()))
            .collect()
    }

    /// The names of those that were deleted since the last call.
    fn deleted(&self) -> Vec<String> {
        let writes = self.writes().into_iter();
        writes.filter_map(|write| Some(write.strip_prefix("DELETE ")?.to_owned())).collect()
    }

    /// Returns the number of requests that the second server got since the last call.
    fn looks(&self) -> usize {
        self.git.requests().len()
    }

    /// Returns the Events of objects that stay.
    async fn orphaned(&self) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.scene.admin.clone(), &self.scene.namespace);
        let all = events.list(&ListParams::default()).await.unwrap().items.into_iter();
        all.filter(|event| event.reason.as_deref() == Some("ObjectsOrphaned"))
            .filter_map(|event| event.note)
            .collect()
    }
}

#[tokio::test]
async fn what_leaves_before_the_named_sync_could_look_is_handed_over_as_it_is() {
    let Some(two) = Two::new("across-named").await else { return };
    let _daemon = two.begun("60s", json!({})).await;
    let before = two.uid("moved").await;
    two.moves_to(Some("new")).await;
    two.falls_silent();
    let second = two.push(&[file("new/moved", "one")]);
    two.scene.proxy.take_requests();
    let first = two.scene.remove(&["moved.json", "goes.json"]);
    two.scene.nudge("old", "left").await;
    for name in ["moved", "goes"] {
        let message = two.until_held(name, "PossiblyClaimed").await;
        let named = format!("moorline.dev/moves-to names {}/new", two.scene.namespace);
        assert!(message.contains(&named), "{message}");
    }
    until("the new one is asked to look, long before its hour is over", async || {
        (two.looks() > 0).then_some(())
    })
    .await;
    tokio::time::sleep(LONG).await;
    assert_eq!(two.uid("moved").await, before);
    assert_eq!(two.writes(), Vec::<String>::new());

    // Nobody tells the old one of it but the daemon itself.
    two.speaks();
    two.scene.until_ready("new", &second).await;
    two.scene.until_ready("old", &first).await;
    two.until_gone("goes").await;
    assert_eq!(two.uid("moved").await, before, "it was handed over as it is");
    let (deletes, applies): (Vec<_>, Vec<_>) =
        two.writes().into_iter().partition(|write| write.starts_with("DELETE"));
    assert_eq!(deletes, ["DELETE goes"]);
    // The old one hands it over: an apply and a release. If the new one takes it at the same time,
    // its apply is refused and forced, and it releases the fields of the old one after the apply and
    // after the conflict. At last the new one looks once more.
    let (handed_over, taken, looked) = (2, 4, 1);
    let most = handed_over + taken + looked;
    assert!(applies.iter().all(|write| write == "PATCH moved") && applies.len() <= most, "{applies:?}");
    two.scene.assert_calm("after the move").await;
    two.looks();
    // The annotation costs nothing while nothing leaves.
    two.scene.nudge("old", "again").await;
    two.scene.assert_calm_but_for_looks("nothing leaves").await;
    assert_eq!(two.looks(), 0);
}

#[tokio::test]
async fn what_leaves_before_another_sync_could_look_is_deleted_where_none_is_named() {
    let Some(two) = Two::new("across-unnamed").await else { return };
    let _daemon = two.begun("60s", json!({})).await;
    let before = two.uid("moved").await;
    two.falls_silent();
    let second = two.push(&[file("new/moved", "one")]);
    two.scene.proxy.take_requests();
    let first = two.scene.remove(&["moved.json"]);
    two.scene.nudge("old", "left").await;
    two.until_gone("moved").await;
    two.scene.until_ready("old", &first).await;
    assert_eq!(two.deleted(), ["moved"]);
    assert_eq!(two.looks(), 0, "nobody was waited for");
    two.speaks();
    two.scene.nudge("new", "look").await;
    two.scene.until_ready("new", &second).await;
    let after = two.uid("moved").await;
    assert!(after.is_some() && after != before, "it is another object");
}

#[tokio::test]
async fn what_the_new_repository_has_already_is_handed_over_also_where_none_is_named() {
    let Some(two) = Two::new("across-first").await else { return };
    let _daemon = two.begun("60s", json!({})).await;
    let before = two.uid("moved").await;
    let second = two.push(&[file("new/moved", "one")]);
    two.scene.nudge("new", "look").await;
    two.scene.until_reason("new", "ObjectsHeld").await;
    two.scene.proxy.take_requests();
    let first = two.scene.remove(&["moved.json"]);
    two.scene.nudge("old", "left").await;
    two.scene.until_ready("old", &first).await;
    two.scene.until_ready("new", &second).await;
    assert_eq!(two.uid("moved").await, before);
    assert_eq!(two.deleted(), Vec::<String>::new());
}

#[tokio::test]
async fn a_named_sync_that_is_not_there_is_waited_for_and_then_a_person_decides() {
    let Some(two) = Two::new("across-absent").await else { return };
    let _daemon = two.begun("3s", json!({})).await;
    let before = two.uid("moved").await;
    two.moves_to(Some("later")).await;
    let first = two.scene.remove(&["moved.json"]);
    two.scene.nudge("old", "left").await;
    two.until_held("moved", "PossiblyClaimed").await;
    let message = two.until_held("moved", "ClaimOverdue").await;
    assert!(message.contains(&format!("the Sync {}/later", two.scene.namespace)), "{message}");
    assert_eq!(two.scene.status("old", "/approval/objects").await, 1);
    two.scene.assert_calm("a claim that stands costs nothing").await;
    // It comes after all.
    let second = two.push(&[file("later/moved", "one")]);
    two.second("later").await;
    two.scene.until_ready("later", &second).await;
    two.scene.until_ready("old", &first).await;
    assert_eq!(two.uid("moved").await, before, "it was handed over as it is");

    // A value that names no Sync is no permission to delete either.
    two.moves_to(Some("Some other")).await;
    two.scene.remove(&["goes.json"]);
    two.scene.nudge("old", "goes").await;
    let message = two.until_held("goes", "PossiblyClaimed").await;
    let says = "moorline.dev/moves-to is \"Some other\", which does not name another Sync";
    assert!(message.contains(says), "{message}");
    let message = two.until_held("goes", "ClaimOverdue").await;
    assert!(message.contains(says), "{message}");
    two.scene.proxy.take_requests();
    two.approve().await;
    two.until_gone("goes").await;
    assert_eq!(two.deleted(), ["goes"]);
}

#[tokio::test]
async fn a_named_sync_that_is_suspended_counts_by_what_it_renders_when_it_is_asked() {
    let Some(two) = Two::new("across-suspended").await else { return };
    let _daemon = two.begun("60s", json!({})).await;
    let before = two.uid("moved").await;
    two.scene.patch_sync("new", json!({"spec": {"suspend": true}})).await;
    two.scene.until_reason("new", "Suspended").await;
    two.moves_to(Some(&format!("{}/new", two.scene.namespace))).await;
    let second = two.push(&[file("new/moved", "one")]);
    two.scene.remove(&["moved.json", "goes.json"]);
    two.scene.nudge("old", "left").await;
    two.until_gone("goes").await;
    two.until_held("moved", "ClaimedBy").await;
    two.scene.patch_sync("new", json!({"spec": {"suspend": false}})).await;
    two.scene.until_ready("new", &second).await;
    assert_eq!(two.uid("moved").await, before);
}

#[tokio::test]
async fn a_sync_that_is_no_more_named_holds_nothing() {
    let Some(two) = Two::new("across-done").await else { return };
    let _daemon = two.begun("60s", json!({})).await;
    two.moves_to(Some("new")).await;
    two.falls_silent();
    two.scene.remove(&["moved.json"]);
    two.scene.nudge("old", "left").await;
    two.until_held("moved", "PossiblyClaimed").await;
    two.moves_to(None).await;
    two.until_gone("moved").await;
}

#[tokio::test]
async fn who_has_just_named_a_sync_loses_nothing_by_a_watch_that_is_late() {
    let Some(two) = Two::new("across-unheard").await else { return };
    let _daemon = two.begun("60s", json!({})).await;
    let before = two.uid("moved").await;
    let tells = |one: &RecordedRequest| one.method == "GET" && one.path.ends_with("/syncs");
    two.scene.proxy.rule(move |one| if tells(one) { Fate::Answer(500, None) } else { Fate::Pass });
    two.scene.proxy.cut_watches();
    two.falls_silent();
    two.moves_to(Some("new")).await;
    two.scene.proxy.take_requests();
    // It looks by itself.
    two.scene.remove(&["moved.json"]);
    two.until_held("moved", "SyncChanged").await;
    assert_eq!(two.uid("moved").await, before);
    two.scene.proxy.heal();
    two.until_held("moved", "PossiblyClaimed").await;
    assert_eq!(two.deleted(), Vec::<String>::new());
}

#[tokio::test]
async fn a_sync_that_is_deleted_during_the_move_hands_over_what_is_wanted_and_deletes_the_rest() {
    let Some(two) = Two::new("across-deleted").await else { return };
    let _daemon = two.begun("60s", json!({"deletionPolicy": "Delete"})).await;
    let before = two.uid("moved").await;
    two.moves_to(Some("new")).await;
    two.falls_silent();
    let second = two.push(&[file("new/moved", "one")]);
    two.scene.proxy.take_requests();
    two.scene.syncs().delete("old", &DeleteParams::default()).await.unwrap();
    two.scene.until_reason("old", "Deleting").await;
    tokio::time::sleep(LONG).await;
    assert_eq!(two.deleted(), Vec::<String>::new(), "nothing before it has looked");
    two.speaks();
    until("the old one is gone", async || {
        two.scene.syncs().get_opt("old").await.unwrap().is_none().then_some(())
    })
    .await;
    two.scene.until_ready("new", &second).await;
    assert_eq!(two.uid("moved").await, before);
    let mut deleted = two.deleted();
    deleted.sort();
    assert_eq!(deleted, ["goes", "stays"]);
    assert_eq!(two.orphaned().await, Vec::<String>::new());
}

#[tokio::test]
async fn syncs_that_are_deleted_and_move_to_each_other_end_and_name_what_stays() {
    let Some(two) = Two::new("across-cycle").await else { return };
    let _daemon = two.begun("3s", json!({"deletionPolicy": "Delete"})).await;
    two.scene.patch_sync("new", json!({"spec": {"deletionPolicy": "Delete"}})).await;
    let back = json!({"metadata": {"annotations": {"moorline.dev/moves-to": "old"}}});
    two.scene.patch_sync("new", back).await;
    two.moves_to(Some("new")).await;
    let finalizer = "moorline.dev/delete".to_owned();
    until("both are kept until their objects are gone", async || {
        let new = two.scene.syncs().get("new").await.unwrap();
        new.metadata.finalizers.is_some_and(|all| all.contains(&finalizer)).then_some(())
    })
    .await;
    two.scene.proxy.take_requests();
    for name in ["old", "new"] {
        two.scene.syncs().delete(name, &DeleteParams::default()).await.unwrap();
    }
    until("both are gone", async || {
        let left = two.scene.syncs().list(&ListParams::default()).await.unwrap().items;
        left.is_empty().then_some(())
    })
    .await;
    assert_eq!(two.deleted(), Vec::<String>::new());
    for name in ["stays", "moved", "goes", "own"] {
        assert!(two.uid(name).await.is_some(), "{name} stays");
    }
    let notes = until("both tell of it", async || {
        let notes = two.orphaned().await;
        (notes.len() >= 2).then_some(notes)
    })
    .await;
    assert!(notes.iter().all(|note| note.contains("ClaimOverdue")), "{notes:?}");
}
