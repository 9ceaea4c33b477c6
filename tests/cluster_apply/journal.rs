//! The journal of a daemon: a line for each write that changed an object, and none that the cluster does not confirm.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use moorline::journal::{Change, Entry, Head, Line, Reason, read_files, replay, verify};
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::{DEADLINE, until};
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::places::moorline;
use moorline_test_support::scene::{Scene, file, text};

/// A value that must be nowhere in a journal.
const PASSWORD: &str = "correct-horse";

fn journal(scene: &Scene) -> PathBuf {
    scene.root.path().join("journal")
}

fn lines(file: &Path) -> Vec<Line> {
    let mut lines = Vec::new();
    if file.exists() {
        read_files(&[file], |_, line| lines.push(line)).unwrap();
    }
    lines
}

fn changes(file: &Path) -> Vec<Entry> {
    lines(file).into_iter().map(|line| line.entry).filter(|entry| !entry.reason.is_about_journal()).collect()
}

fn secret() -> (String, String) {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
        "stringData": {"password": PASSWORD}});
    text("login.json", &secret.to_string())
}

/// Spec hashes of the live objects, by id.
async fn live(scene: &Scene) -> BTreeMap<String, Option<String>> {
    let hash = |annotations: Option<BTreeMap<String, String>>| annotations?.remove("moorline.dev/spec-hash");
    let mut found = BTreeMap::new();
    for map in scene.maps().list(&ListParams::default()).await.unwrap() {
        let name = map.metadata.name.unwrap();
        if let Some(hash) = hash(map.metadata.annotations) {
            found.insert(format!("/ConfigMap|{}/{name}", scene.namespace), Some(hash));
        }
    }
    let secrets: Api<Secret> = Api::namespaced(scene.admin.clone(), &scene.namespace);
    for secret in secrets.list(&ListParams::default()).await.unwrap() {
        let name = secret.metadata.name.unwrap();
        if let Some(hash) = hash(secret.metadata.annotations) {
            found.insert(format!("/Secret|{}/{name}", scene.namespace), Some(hash));
        }
    }
    found
}

/// Waits until the journal leaves what the cluster has.
async fn until_replayed(scene: &Scene, what: &str) {
    let began = Instant::now();
    loop {
        let (replayed, live) = (replay(&changes(&journal(scene))), live(scene).await);
        if replayed == live {
            return;
        }
        if began.elapsed() > DEADLINE {
            assert_eq!(replayed, live, "{what}: {:#?}", changes(&journal(scene)));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn audit(scene: &Scene, arguments: &[&str]) -> (bool, String) {
    let kubeconfig = scene.root.path().join("admin");
    std::fs::write(&kubeconfig, scene.proxy.kubeconfig(&scene.plane, ADMIN)).unwrap();
    let done =
        Command::new(moorline()).arg("audit").args(arguments).env("KUBECONFIG", kubeconfig).output().unwrap();
    (done.status.success(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
}

#[tokio::test]
async fn each_write_is_one_line_and_a_replay_gives_what_lives() {
    let Some(scene) = Scene::new("journal").await else { return };
    let place = journal(&scene);
    let at = place.to_str().unwrap();
    let commit = scene.push(&[file("a", "1"), file("b", "1"), file("c", "1"), secret()]);
    let mut daemon = scene.daemon_with(&["--journal", at]);
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;

    scene.edit("a", "by hand").await;
    scene.until_values(&[file("a", "1"), file("b", "1"), file("c", "1")], "the edit is repaired").await;
    scene.maps().delete("b", &DeleteParams::default()).await.unwrap();
    scene.until_values(&[file("a", "1"), file("b", "1"), file("c", "1")], "it is created again").await;
    let second = scene.push(&[file("a", "2")]);
    scene.nudge("shop", "1").await;
    scene.until_ready("shop", &second).await;
    let third = scene.remove(&["c.json"]);
    scene.nudge("shop", "2").await;
    scene.until_ready("shop", &third).await;
    until_replayed(&scene, "the journal leaves what lives").await;

    let written = scene.proxy.take_requests();
    let written: Vec<_> =
        written.iter().filter(|one| one.writes_object() && !one.query.contains("dryRun")).collect();
    let found = changes(&place);
    let shown = |one: &&RecordedRequest| format!("{} {}", one.method, one.path);
    assert_eq!(found.len(), written.len(), "{found:#?} {:#?}", written.iter().map(shown).collect::<Vec<_>>());
    let told = |entry: &Entry| {
        let object = entry.object.clone().unwrap_or_default();
        (object.rsplit('/').next().unwrap_or_default().to_owned(), entry.reason, entry.change)
    };
    let mut told: Vec<_> = found.iter().map(told).collect();
    told[..4].sort_by(|one, other| one.0.cmp(&other.0));
    let row = |name: &str, reason, change| (name.to_owned(), reason, Some(change));
    assert_eq!(
        told,
        [
            row("a", Reason::Commit, Change::Created),
            row("b", Reason::Commit, Change::Created),
            row("c", Reason::Commit, Change::Created),
            row("login", Reason::Commit, Change::Created),
            row("a", Reason::DriftRepaired, Change::Updated),
            row("b", Reason::DriftRepaired, Change::Created),
            row("a", Reason::Commit, Change::Updated),
            row("c", Reason::Pruned, Change::Deleted),
        ]
    );
    let edit = found[4].drift.clone().unwrap_or_default();
    assert_eq!(
        (edit.manager.as_deref(), &edit.fields[..]),
        (Some("kubectl-edit"), &["data.key".to_owned()][..])
    );
    let of =
        |entry: &Entry| (entry.commit.clone().unwrap_or_default(), entry.sync.clone().unwrap_or_default());
    assert_eq!(of(&found[6]), (second, format!("{}/shop", scene.namespace)));
    assert!(found[6].before.is_some() && found[6].before != found[6].after && found[6].tree.is_some());
    let raw = std::fs::read_to_string(&place).unwrap();
    assert!(!raw.contains(PASSWORD) && raw.contains("\"after\":\"k1:"), "hashes of Secrets are keyed");

    // The Lease names the last line, without a request of its own.
    assert!(daemon.terminate().as_secs() < 10);
    let head = lines(&place).last().map(|line| Head { seq: line.seq, hash: line.hash }).unwrap();
    let (fine, said) = audit(&scene, &["verify", "--anchor", "-n", &scene.namespace, at]);
    assert!(fine && said.contains(&format!("the Lease names line {}", head.seq)), "{said}");
    let (fine, said) = audit(&scene, &["--since", "1h", "--sync", &format!("{}/shop", scene.namespace), at]);
    assert!(
        fine && said.lines().count() == found.len() && said.contains("undoes data.key of kubectl-edit"),
        "{said}"
    );

    // A restart continues the chain, and verifies without a line.
    let daemon = scene.daemon_with(&["--journal", at]);
    scene.settle().await;
    assert_eq!(changes(&place).len(), found.len());
    assert_eq!(verify(&[&place], None).unwrap().head.seq, head.seq + 1);
    drop(daemon);
    let cut: String = raw.lines().take(6).map(|line| format!("{line}\n")).collect();
    std::fs::write(&place, cut).unwrap();
    let (fine, said) = audit(&scene, &["verify", "--anchor", "-n", &scene.namespace, at]);
    assert!(!fine && said.contains("the anchor names line"), "{said}");
}

#[tokio::test]
async fn a_kill_loses_at_most_the_line_of_the_write_in_flight() {
    let Some(scene) = Scene::new("journal-kill").await else { return };
    let place = journal(&scene);
    let at = place.to_str().unwrap().to_owned();
    let start = || scene.daemon_with(&["--leader-election=false", "--journal", &at]);
    let commit = scene.push(&[file("a", "1")]);
    let mut daemon = start();
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    // Killed after the server answered, before the answer came: nobody can write that line.
    scene.proxy.rule(|one| match one.method == "PATCH" && one.path.contains("/configmaps/b") {
        true => Fate::KillAfter,
        false => Fate::Pass,
    });
    let commit = scene.push(&[file("b", "1")]);
    scene.nudge("shop", "1").await;
    until("it is killed", async || daemon.running.child.try_wait().unwrap().map(drop)).await;
    scene.proxy.heal();
    let daemon = start();
    scene.until_ready("shop", &commit).await;
    scene.settle().await;
    let of_b = |entry: &Entry| entry.object.as_ref().is_some_and(|object| object.ends_with("/b"));
    assert_eq!(changes(&place).iter().filter(|entry| of_b(entry)).count(), 0, "and no line is made up");
    // The next change of the object has a line again.
    let commit = scene.push(&[file("b", "2")]);
    scene.nudge("shop", "2").await;
    scene.until_ready("shop", &commit).await;
    until_replayed(&scene, "the journal has caught up").await;
    assert!(verify(&[&place], None).unwrap().torn.is_empty());
    drop(daemon);
}

#[tokio::test]
async fn a_lost_answer_is_a_line_and_the_next_answer_another() {
    let Some(scene) = Scene::new("journal-lost").await else { return };
    let place = journal(&scene);
    let commit = scene.push(&[file("a", "1")]);
    let daemon = scene.daemon_with(&["--leader-election=false", "--journal", place.to_str().unwrap()]);
    let mut left = 1;
    scene.proxy.rule(move |one| {
        match one.method == "PATCH" && one.path.contains("/configmaps/a") && left > 0 {
            true => {
                left -= 1;
                Fate::LoseReply
            }
            false => Fate::Pass,
        }
    });
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    until_replayed(&scene, "the journal knows the object").await;
    let told: Vec<_> = changes(&place).iter().map(|entry| (entry.unanswered, entry.change)).collect();
    assert_eq!(told, [(Some(true), Some(Change::Updated)), (None, Some(Change::Updated))]);
    drop(daemon);
}

/// Random numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[tokio::test]
async fn a_replay_gives_what_lives_after_commits_edits_prunes_and_faults() {
    const STEPS: u64 = 40;
    let Some(scene) = Scene::new("journal-random").await else { return };
    let place = journal(&scene);
    let names = ["a", "b", "c", "d", "e"];
    let mut commit = scene.push(&names.map(|name| file(name, "0")));
    let start = || scene.daemon_with(&["--leader-election=false", "--journal", place.to_str().unwrap()]);
    let mut daemon = start();
    scene.sync("shop", json!({"prune": {"budget": {"count": 100}}})).await;
    scene.until_ready("shop", &commit).await;
    let (mut dice, mut faults) = (Dice(7), Dice(11));
    let mut in_git = BTreeSet::from(names);
    scene.proxy.rule(move |one| match one.writes_object().then(|| faults.below(8)) {
        Some(0) => Fate::LoseReply,
        Some(1) => Fate::Drop,
        Some(2) => Fate::Answer(500, None),
        _ => Fate::Pass,
    });
    for step in 0..STEPS {
        let name = names[dice.below(5) as usize];
        match dice.below(6) {
            0 => {
                let patch = Patch::Merge(json!({"data": {"key": format!("by hand {step}")}}));
                let parameters =
                    PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..Default::default() };
                drop(scene.maps().patch(name, &parameters, &patch).await);
            }
            // A deletion by others is no change of the daemon, so it has to be repaired before Git removes the object.
            1 if in_git.contains(name) => {
                drop(scene.maps().delete(name, &DeleteParams::default()).await);
                until("it is there", async || scene.maps().get_opt(name).await.unwrap().map(drop)).await;
            }
            2 if in_git.len() > 2 && in_git.remove(name) => commit = scene.remove(&[&format!("{name}.json")]),
            3 if step % 10 == 0 => {
                // A write without an answer is remembered in memory alone.
                until_replayed(&scene, "before a restart").await;
                assert!(daemon.terminate().as_secs() < 10);
                daemon = start();
            }
            _ => {
                in_git.insert(name);
                commit = scene.push(&[file(name, &step.to_string())]);
            }
        }
        scene.nudge("shop", &step.to_string()).await;
        tokio::time::sleep(Duration::from_millis(100 * dice.below(4))).await;
    }
    scene.proxy.heal();
    scene.nudge("shop", "last").await;
    scene.until_ready("shop", &commit).await;
    until_replayed(&scene, "the journal leaves what lives").await;
    scene.settle().await;
    until_replayed(&scene, "and it stays so").await;
    verify(&[&place], None).unwrap();
    drop(daemon);
}

#[tokio::test]
async fn a_journal_that_cannot_be_written_delays_no_sync() {
    let Some(scene) = Scene::new("journal-full").await else { return };
    let place = scene.root.path().join("missing/journal");
    let commit = scene.push(&[file("a", "1"), file("b", "1")]);
    let daemon = scene.daemon_with(&["--leader-election=false", "--journal", place.to_str().unwrap()]);
    scene.sync("shop", json!({"deletionPolicy": "Delete"})).await;
    scene.until_ready("shop", &commit).await;
    let ready: Value = scene.status("shop", "/conditions/0/status").await;
    assert_eq!(ready, "True");
    std::fs::create_dir(place.parent().unwrap()).unwrap();
    until("what queued is written", async || (changes(&place).len() == 2).then_some(())).await;
    // The objects of a deleted Sync leave the journal with it.
    scene.delete_sync("shop").await;
    until("the deletions are written", async || (changes(&place).len() == 4).then_some(())).await;
    let found = changes(&place);
    assert!(
        found[2..]
            .iter()
            .all(|entry| (entry.reason, entry.change) == (Reason::Deleted, Some(Change::Deleted)))
    );
    assert!(replay(&found).is_empty());
    verify(&[&place], None).unwrap();
    drop(daemon);
}
