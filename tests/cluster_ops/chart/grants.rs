//! The value `rbac.grant`: without it a Sync says what it lacks, and with it the Sync is ready soon, without a restart.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::programs::{command, find, run};
use super::release::Release;
use crate::chart::until_ready;
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::until;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::config_map;
use moorline_test_support::under_load::under_load;

/// From the grant to a ready Sync.
const SOON: Duration = Duration::from_secs(10);

/// The chart with a Sync and no rights on objects, its notes, and the commit that the Sync is to come to.
fn install(release: &Release) -> (String, String) {
    let commit = release.push("clusters/one/a.json", &config_map("a", "one"));
    let url = format!("sync.url={}", release.url());
    let values = ["--set", &url, "--set", "sync.path=clusters/one"];
    let notes = release.helm(&[&["install", "moorline", release.chart()], &values[..]].concat());
    (notes.unwrap_or_else(|error| panic!("{error}")), commit)
}

async fn until_it_lacks(release: &Release) {
    let path = release.path("moorline.dev/v1alpha1", "syncs/default");
    until("the Sync says what it lacks", async || {
        let status = release.get(&path).await?["status"].take();
        let condition = &status["conditions"][0];
        let message = condition["message"].as_str().unwrap_or_default();
        (condition["reason"] == "RightsMissing" && message.contains("configmaps")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_sync_says_what_it_lacks_and_is_ready_when_it_is_granted() {
    let Some(release) = Release::new("grants").await else { return };
    let (notes, commit) = install(&release);
    assert!(notes.contains("has no permissions on objects yet"), "{notes}");
    let daemon = release.installed().await.start(&[]);
    until_it_lacks(&release).await;
    let granted =
        ["upgrade", "moorline", release.chart(), "--reuse-values", "--set", "rbac.grant=namespaceAdmin"];
    release.helm(&granted).expect("it is granted");
    let granted = Instant::now();
    until_ready(&release, "default", &commit).await;
    assert!(granted.elapsed() < under_load(SOON), "{:?}", granted.elapsed());
    drop(daemon);
    release.end().await;
}

#[tokio::test]
async fn the_command_of_the_notes_grants_what_the_sync_lacks() {
    let Some(kubectl) = find("kubectl") else { return };
    let Some(release) = Release::new("notes").await else { return };
    let (notes, commit) = install(&release);
    let next = format!("moorline rbac --sync default -n {} | kubectl apply -f -", release.namespace);
    assert!(notes.contains(&next), "{notes}");
    let daemon = release.installed().await.start(&[]);
    until_it_lacks(&release).await;
    grant_what_is_printed(&release, &kubectl, &["--sync", "default", "-n", &release.namespace]);
    let granted = Instant::now();
    until_ready(&release, "default", &commit).await;
    assert!(granted.elapsed() < under_load(SOON), "{:?}", granted.elapsed());
    drop(daemon);
    // A person who opens the page to the pod network reads what that means.
    let warning = "WARNING: the status page is bound to the pod network";
    assert!(!notes.contains(warning), "{notes}");
    let open = ["upgrade", "moorline", release.chart(), "--reuse-values", "--set", "page.expose=true"];
    let notes = release.helm(&open).expect("the page is opened");
    assert!(notes.contains(warning), "{notes}");
    release.end().await;
}

/// `moorline rbac ... | kubectl apply -f -`
fn grant_what_is_printed(release: &Release, kubectl: &Path, arguments: &[&str]) {
    let kubeconfig = release.plane.kubeconfig_file(ADMIN);
    let mut moorline = command(Path::new(env!("CARGO_BIN_EXE_moorline")));
    let rights = run(moorline.arg("rbac").args(arguments).env("KUBECONFIG", &kubeconfig));
    let file = release.values_file(&rights.unwrap_or_else(|error| panic!("{error}")));
    run(command(kubectl).args(["apply", "-f", &file]).env("KUBECONFIG", &kubeconfig))
        .unwrap_or_else(|error| panic!("{error}"));
}

/// Syncs of a team, in a namespace of its own, as its own ServiceAccount.
#[tokio::test]
async fn the_daemon_may_act_for_a_team_once_what_is_printed_is_granted() {
    let Some(kubectl) = find("kubectl") else { return };
    let Some(release) = Release::new("team").await else { return };
    let team = release.plane.namespace("team-of-its-own").await;
    install(&release);
    release.push("one/a.json", &config_map("a", "one"));
    release.push("two/b.json", &config_map("b", "two"));
    let second = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "of-git"}});
    let commit = release.push("two/c.json", &second.to_string());
    let accounts = format!("/api/v1/namespaces/{team}/serviceaccounts");
    release.create(&accounts, json!({"metadata": {"name": "deployer"}})).await.expect("an account");
    let syncs = format!("/apis/moorline.dev/v1alpha1/namespaces/{team}/syncs");
    for name in ["one", "two"] {
        let sync = release.sync(name, json!({"path": name, "serviceAccountName": "deployer"}));
        release.create(&syncs, sync).await.expect("a Sync");
    }
    let daemon = release.installed().await.start(&[]);
    let ready = async |name: &str| {
        let sync = release.get(&format!("{syncs}/{name}")).await.unwrap_or_default();
        sync["status"]["conditions"][0].clone()
    };
    until("what is missing is reported", async || {
        let told = ready("one").await;
        let message = told["message"].as_str().unwrap_or_default();
        (told["reason"] == "RightsMissing" && message.contains("impersonate")).then_some(())
    })
    .await;
    // One after the other: what the second grants takes nothing from the first.
    for name in ["one", "two"] {
        let own = format!("{}/moorline", release.namespace);
        grant_what_is_printed(&release, &kubectl, &["--sync", name, "-n", &team, "--daemon", &own]);
    }
    let granted = Instant::now();
    for name in ["one", "two"] {
        until("both are ready", async || {
            let sync = release.get(&format!("{syncs}/{name}")).await?;
            let applied = sync["status"]["revision"]["applied"].as_str()?.ends_with(&commit);
            (applied && ready(name).await["status"] == "True").then_some(())
        })
        .await;
    }
    assert!(granted.elapsed() < under_load(SOON), "{:?}", granted.elapsed());
    drop(daemon);
    // No later daemon is to serve them.
    for name in ["one", "two"] {
        send_request(&release.admin, "DELETE", &format!("{syncs}/{name}"), json!(null))
            .await
            .expect("it is deleted");
    }
    release.end().await;
}
