//! Repositories that change while they are applied, and repositories that cannot be read.

use std::time::Duration;

use serde_json::json;

use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::fault_proxy::{Fate, RecordedRequest};
use moorline_test_support::git_server::{Reply, Work};
use moorline_test_support::scene::{Scene, config_map, many};

#[tokio::test]
async fn a_newer_commit_supersedes_one_that_is_being_applied() {
    let Some(scene) = Scene::new("supersedes").await else { return };
    let of = |value: &'static str| {
        move |asked: &RecordedRequest| {
            asked.writes_object() && asked.text().contains(&format!("\"key\":\"{value}\""))
        }
    };
    let delay = Duration::from_millis(500);
    scene.proxy.rule(move |asked| if of("old")(asked) { Fate::Delay(delay) } else { Fate::Pass });
    scene.push(&many(30, "old"));
    let _daemon = scene.daemon_with(&["--leader-election=false", "--concurrency", "2"]);
    scene.sync("shop", json!({})).await;
    let mut asked = Vec::new();
    until("some are being applied", async || {
        asked.extend(scene.proxy.take_requests());
        (asked.iter().filter(|one| of("old")(one)).count() >= 3).then_some(())
    })
    .await;
    let commit = scene.push(&many(30, "new"));
    scene.nudge("shop", "newer").await;
    scene.until_ready("shop", &commit).await;
    scene.until_values(&many(30, "new"), "the newer commit is applied").await;
    asked.extend(scene.proxy.take_requests());
    let count = |value| asked.iter().filter(|one| of(value)(one)).count();
    assert_eq!(count("new"), 30);
    assert!(count("old") < 15, "{} of 30 objects were still given the old value", count("old"));
    println!("{} of 30 objects were given the old value", count("old"));
    scene.proxy.heal();
    scene.assert_calm("after it").await;
    scene.delete_sync("shop").await;
}

/// Causes of an unreadable repository.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trouble {
    Missing,
    Page,
    Branch,
    Path,
}

/// Begins the trouble.
fn begin(scene: &Scene, trouble: Trouble) {
    let html = b"<html><body>Please sign in</body></html>".to_vec();
    match trouble {
        Trouble::Missing => scene.git.rule(|_| Reply::Raw(404, "", Vec::new())),
        Trouble::Page => {
            scene.git.rule(move |_| Reply::Raw(200, "Content-Type: text/html\r\n", html.clone()));
        }
        Trouble::Branch => {
            Work::git_in(&scene.work.bare, &["branch", "-q", "other", "main"]);
            Work::git_in(&scene.work.bare, &["update-ref", "-d", "refs/heads/main"]);
        }
        Trouble::Path => {
            scene.work.git(&["mv", "app", "elsewhere"]);
            scene.push(&[]);
        }
    }
}

/// Ends it, with a commit that changes one object.
fn end(scene: &Scene, trouble: Trouble, value: &str) -> String {
    scene.git.rule(|_| Reply::Git);
    if trouble == Trouble::Path {
        scene.work.git(&["mv", "elsewhere", "app"]);
    }
    scene.push(&[("app/a-0.json".to_owned(), config_map("a-0", value))])
}

#[tokio::test]
async fn a_repository_that_cannot_be_read_changes_nothing_and_says_why() {
    let Some(scene) = Scene::new("unreadable").await else { return };
    let files = many(3, "one").into_iter().map(|(path, text)| (format!("app/{path}"), text));
    let mut commit = scene.push(&files.collect::<Vec<_>>());
    let _daemon = scene.daemon();
    let source = json!({"git": {"url": scene.git.url("repository.git"), "ref": {"branch": "main"}}});
    scene.sync("shop", json!({"path": "app", "source": source})).await;
    scene.until_ready("shop", &commit).await;
    let (mark, mut reasons) = (AuditMark::set(&scene.plane).await, Vec::new());
    for trouble in [Trouble::Missing, Trouble::Page, Trouble::Branch, Trouble::Path] {
        let before = scene.versions().await;
        begin(&scene, trouble);
        scene.nudge("shop", &format!("{trouble:?}")).await;
        let reason = until(&format!("{trouble:?} is reported"), async || {
            let status = scene.status("shop", "").await;
            let (ready, reason) = (&status["conditions"][0]["status"], &status["conditions"][0]["reason"]);
            (ready == "False" && reason != "Progressing").then(|| reason.as_str().unwrap().to_owned())
        })
        .await;
        // Also while it is asked again, which changes nothing that could be said.
        scene.assert_calm(&format!("{trouble:?}")).await;
        assert_eq!(scene.versions().await, before, "{trouble:?}");
        let applied = scene.status("shop", "/revision/applied").await;
        assert!(applied.as_str().is_some_and(|it| it.ends_with(&commit)), "{trouble:?}: {applied}");
        reasons.push(reason);

        commit = end(&scene, trouble, &format!("after {trouble:?}"));
        scene.nudge("shop", &format!("after {trouble:?}")).await;
        scene.until_ready("shop", &commit).await;
        assert_eq!(scene.values().await["a-0"], format!("after {trouble:?}"));
    }
    assert_eq!(
        reasons,
        ["RepositoryNotFound", "RepositoryInvalidResponse", "ReferenceNotFound", "PathNotFound"]
    );
    let writes = mark.requests().await.by_user(MOORLINE).filter(|it| it.resource == "configmaps");
    let writes = writes.filter(|it| !["get", "list", "watch"].contains(&&*it.verb)).tally();
    let expect = [("patch configmaps".to_owned(), reasons.len())];
    assert_eq!(
        writes.into_iter().collect::<Vec<_>>(),
        expect,
        "only what ends each trouble changes something"
    );
    scene.delete_sync("shop").await;
}
