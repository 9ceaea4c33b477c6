//! The verbs for who runs a cluster, from outside, against a daemon that serves.

mod moves;
mod shown;

use std::path::Path;
use std::process::Command;

use moorline_test_support::audit::AuditMark;
use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::until;
use moorline_test_support::person::{moorline, on_terminal};
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map, many};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_is_asked_watched_approved_suspended_and_resumed() {
    let Some(scene) = Scene::new("operate").await else { return };
    let first = scene.push(&many(16, "one"));
    let none = moorline(&scene, &["status"]);
    assert_eq!((none.code, none.words.trim()), (0, "no Syncs found; use -A for all namespaces"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"interval": "1h"})).await;
    scene.until_ready("shop", &first).await;

    let status = moorline(&scene, &["status"]);
    let line = status.data.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let front = format!("{} shop True Applied main@{} 16/16 0 ", scene.namespace, &first[..8]);
    assert!(status.code == 0 && line.starts_with(&front), "{}", status.data);

    let second = scene.push(&many(16, "two"));
    let synced = moorline(&scene, &["sync", "shop"]);
    assert_eq!(synced.code, 0, "{}{}", synced.data, synced.words);
    assert!(
        synced.data.starts_with(&format!("main@{} -> main@{}\n", &first[..8], &second[..8])),
        "{}",
        synced.data
    );
    assert!(synced.words.contains("/16 objects, "), "{}", synced.words);
    let again = moorline(&scene, &["sync", "shop"]);
    let expect = format!("main@{} is already applied\nno changes in the cluster\n", &second[..8]);
    assert!(again.code == 0 && again.data.starts_with(&expect), "{}", again.data);

    assert_eq!(
        moorline(&scene, &["approve", "shop"]).words.trim(),
        format!("{}/shop waits for no approval", scene.namespace)
    );
    let files: Vec<String> = (4..16).map(|at| format!("a-{at}.json")).collect();
    scene.remove(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let held = moorline(&scene, &["sync", "shop"]);
    let waits = format!("12 objects wait to be deleted: moorline approve shop -n {}", scene.namespace);
    assert!(held.code == 1 && held.data.contains(&waits), "{}", held.data);
    let told = "12 objects fewer in Git, 12 fewer applied, 12 more held\n";
    assert!(held.data.starts_with(told), "{}", held.data);
    let approved = moorline(&scene, &["approve", "shop"]);
    assert_eq!(approved.words.trim(), format!("approved: {}/shop deletes 12 objects", scene.namespace));
    until("they are gone", async || (scene.values().await.len() == 4).then_some(())).await;

    let suspended = moorline(&scene, &["suspend", "shop"]);
    let place = &scene.namespace;
    let expect =
        format!("{place}/shop is suspended: nothing is applied until moorline resume shop -n {place}");
    assert_eq!(suspended.words.trim(), expect);
    scene.until_reason("shop", "Suspended").await;
    assert_eq!(moorline(&scene, &["status", "shop"]).code, 1);
    moorline(&scene, &["resume", "shop"]);
    scene.until_reason("shop", "Applied").await;

    let events = moorline(&scene, &["events", "shop"]);
    assert!(events.data.contains("Normal") && events.data.contains("PruneHeld"), "{}", events.data);
    let missing = moorline(&scene, &["status", "shopp"]);
    let expect =
        format!("error: there is no Sync shopp in the namespace {}; did you mean shop?", scene.namespace);
    assert_eq!((missing.code, missing.words.trim()), (1, expect.as_str()));
    scene.delete_sync("shop").await;
}

#[test]
fn kubectl_runs_it_as_a_verb_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("kubectl-moorline");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_moorline"), &link).unwrap();
    let output = Command::new(link).args(["sync", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("Usage: kubectl moorline sync"), "{help}");
}

#[test]
fn without_a_cluster_it_is_said_what_to_set() {
    let output = Command::new(env!("CARGO_BIN_EXE_moorline"))
        .arg("status")
        .env_clear()
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("set KUBECONFIG"), "{words}");
    assert_eq!(output.status.code(), Some(1));
}

const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/syncs.moorline.dev";

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_gets_a_bar_and_all_else_lines() {
    let Some(scene) = Scene::new("terminal").await else { return };
    let commit = scene.push(&many(16, "one"));
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    let lines = moorline(&scene, &["sync", "shop"]);
    assert!(!lines.words.contains('\u{1b}') && lines.words.contains("16/16 objects, "), "{}", lines.words);
    let Some(shown) = on_terminal(&scene, &["sync", "shop"]) else { return };
    let (bar, wiped) = ("\r\u{1b}[K[####################] 16/16 objects, ", "\r\u{1b}[Kmain@");
    let places = (shown.data.find(bar), shown.data.find(wiped));
    assert!(shown.code == 0 && places.0.is_some() && places.0 < places.1, "{:?}", shown.data);
}

#[tokio::test]
async fn an_older_definition_is_brought_up_to_date_and_a_newer_one_stays() {
    let Some(scene) = Scene::new("definition").await else { return };
    let columns = async || {
        let live = send_request(&scene.admin, "GET", DEFINITION, Value::Null).await.unwrap();
        live["spec"]["versions"][0]["additionalPrinterColumns"].as_array().map(Vec::len).unwrap_or_default()
    };
    let change = async |version: &str| {
        let mut live = send_request(&scene.admin, "GET", DEFINITION, Value::Null).await.unwrap();
        live["metadata"]["annotations"]["moorline.dev/version"] = version.into();
        live["spec"]["versions"][0]["additionalPrinterColumns"] = json!([]);
        send_request(&scene.admin, "PUT", DEFINITION, live).await.unwrap();
    };
    let writes = async |mark: &AuditMark| {
        let requests = mark.requests().await.by_user(MOORLINE);
        requests
            .filter(|it| it.verb == "patch" && it.resource == "customresourcedefinitions")
            .as_slice()
            .len()
    };
    let all = columns().await;
    change("0.0.1").await;
    let mark = AuditMark::set(&scene.plane).await;
    let mut daemon = scene.daemon();
    until("it is brought up to date", async || (columns().await == all).then_some(())).await;
    daemon.terminate();
    assert_eq!(writes(&mark).await, 1);

    let mark = AuditMark::set(&scene.plane).await;
    let mut daemon = scene.daemon();
    until("it serves", async || daemon.log().contains("listening").then_some(())).await;
    tokio::time::sleep(QUIET_TIME).await;
    daemon.terminate();
    assert_eq!(writes(&mark).await, 0, "it is the same, {}", daemon.log());

    change("99.0.0").await;
    let daemon = scene.daemon();
    until("it is left alone", async || daemon.log().contains("from a newer Moorline").then_some(())).await;
    assert_eq!(columns().await, 0);
    drop(daemon);
    change("0.0.1").await;
    let _daemon = scene.daemon();
    until("it is as it was", async || (columns().await == all).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_a_live_sync_is_what_the_daemon_does() {
    let Some(scene) = Scene::new("plan").await else { return };
    let first = scene.push(&many(4, "one"));
    let mut daemon = scene.daemon();
    scene.sync("shop", json!({"interval": "1h"})).await;
    scene.until_ready("shop", &first).await;
    let quiet = moorline(&scene, &["plan", "--sync", "shop"]);
    assert_eq!(
        (quiet.code, quiet.data.as_str()),
        (0, "Nothing to do: 4 objects are as in Git.\n"),
        "{}",
        quiet.words
    );

    // One is changed in Git, one is new there and stands in the cluster already, one is gone, one is edited by hand.
    daemon.terminate();
    let files =
        [("a-0.json".to_owned(), config_map("a-0", "two")), ("b.json".to_owned(), config_map("b", "one"))];
    let second = scene.push(&files);
    scene.remove(&["a-1.json"]);
    let edit = json!({"data": {"key": "by hand"}});
    let maps = format!("/api/v1/namespaces/{}/configmaps", scene.namespace);
    send_request(&scene.admin, "PATCH", &format!("{maps}/a-2?fieldManager=kubectl-edit"), &edit)
        .await
        .unwrap();
    let there: Value = serde_json::from_str(&config_map("b", "before")).unwrap();
    send_request(&scene.admin, "POST", &maps, &there).await.unwrap();
    let plan = moorline(&scene, &["plan", "--sync", "shop", "--output", "json"]);
    assert_eq!(plan.code, 2, "{}{}", plan.data, plan.words);
    let plan: Value = serde_json::from_str(&plan.data).unwrap();
    let steps =
        plan["stages"].as_array().unwrap().iter().flat_map(|stage| stage["steps"].as_array().unwrap());
    let mut planned: Vec<String> = steps
        .map(|step| format!("{} {}", step["action"].as_str().unwrap(), step["name"].as_str().unwrap()))
        .collect();
    planned.sort();
    assert_eq!(planned, ["adopt b", "prune a-1", "update a-0", "update a-2"], "{plan:#}");

    // The commit before last still has a-1.
    let earlier = moorline(&scene, &["plan", "--sync", "shop", "--revision", &second]);
    assert!(earlier.code == 2 && !earlier.data.contains("a-1"), "{}", earlier.data);
    let missing = moorline(&scene, &["plan", "--sync", "shop", "--revision", "none"]);
    assert!(missing.code == 1 && missing.words.contains("none"), "{}", missing.words);
}

#[tokio::test]
async fn a_setting_comes_from_the_environment_and_a_name_that_is_wrong_is_refused() {
    let Some(scene) = Scene::new("environment").await else { return };
    let place = ["--namespace", &scene.namespace, "--leader-election=false"];
    let daemon =
        |name: &str, variables: &[(&str, &Path)]| scene.daemon_in(&scene.proxy, name, &place, variables);
    let chatty = daemon("chatty", &[("MOORLINE_LOG_LEVEL", Path::new("debug"))]);
    let first = scene.push(&many(1, "one"));
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &first).await;
    let says_debug = |log: &str| log.lines().any(|line| line.contains(" DEBUG "));
    assert!(says_debug(&chatty.log()), "{}", chatty.log());
    drop(chatty);

    let quiet = daemon("quiet", &[]);
    let second = scene.push(&many(1, "two"));
    scene.until_ready("shop", &second).await;
    assert!(!says_debug(&quiet.log()), "{}", quiet.log());
    scene.delete_sync("shop").await;
    drop(quiet);

    let mut refused = daemon("refused", &[("MOORLINE_LOG_LEVL", Path::new("debug"))]);
    let ended = until("it ends", async || refused.running.child.try_wait().unwrap()).await;
    let expect = "error: there is no setting `MOORLINE_LOG_LEVL` (from the environment variable \
        MOORLINE_LOG_LEVL); did you mean MOORLINE_LOG_LEVEL?";
    assert_eq!((ended.code(), refused.log().trim()), (Some(1), expect));
}

#[tokio::test]
async fn settings_that_change_take_effect_and_a_file_that_is_wrong_does_not() {
    let Some(scene) = Scene::new("settings").await else { return };
    let elsewhere = scene.plane.namespace("settings-team").await;
    let commit = scene.push(&many(2, "one"));
    // As a kubelet mounts it: the file is a link into a folder that is a link, and that is swapped.
    let mount = scene.root.path().join("mount");
    let write = |number: u8, text: &str| {
        let folder = mount.join(format!("..{number}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("daemon.yaml"), text).unwrap();
        std::os::unix::fs::symlink(&folder, mount.join("..new")).unwrap();
        std::fs::rename(mount.join("..new"), mount.join("..data")).unwrap();
    };
    write(1, "verifyRate: 100\n");
    std::os::unix::fs::symlink("..data/daemon.yaml", mount.join("daemon.yaml")).unwrap();
    let file = mount.join("daemon.yaml").display().to_string();
    let daemon = scene.daemon_with(&["--leader-election=false", "--config", &file]);
    let said = async |words: &str| {
        until(words, async || daemon.log().contains(words).then_some(())).await;
    };
    let sync = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "shop"},
        "spec": {"source": {"git": {"url": scene.git.url("repository.git")}}, "interval": "1h"},
    });
    let syncs = format!("/apis/moorline.dev/v1alpha1/namespaces/{elsewhere}/syncs");
    send_request(&scene.admin, "POST", &syncs, sync).await.unwrap();
    let ready = async || {
        let sync = send_request(&scene.admin, "GET", &format!("{syncs}/shop"), Value::Null).await.unwrap();
        let ready = &sync["status"]["conditions"][0];
        (
            ready["reason"].as_str().unwrap_or_default().to_owned(),
            sync["status"]["revision"]["applied"].clone(),
        )
    };
    until("it may not", async || (ready().await.0 == "ServiceAccountRequired").then_some(())).await;

    write(2, "verifyRate: 100\nlogLevl: debug\nqps: -1\n");
    said("the settings file has errors, and the previous settings stay in effect: ").await;
    said("there is no setting `logLevl` (from the settings file); did you mean logLevel?").await;
    assert_eq!(ready().await.0, "ServiceAccountRequired");

    write(
        3,
        &format!(
            "verifyRate: 50\nconcurrency: 4\nlogLevel: debug\ndaemonIdentityNamespaces: [{elsewhere}]\n"
        ),
    );
    said("verifyRate is now 50").await;
    said("concurrency is 4 only after the next start").await;
    said("DEBUG").await;
    until("it may now", async || ready().await.1.as_str().filter(|it| it.ends_with(&commit)).map(drop)).await;

    // Gone for a moment, and there again.
    std::fs::remove_file(mount.join("..data")).unwrap();
    said("cannot read").await;
    write(4, "verifyRate: 60\n");
    said("verifyRate is now 60").await;
    send_request(&scene.admin, "DELETE", &format!("{syncs}/shop"), Value::Null).await.unwrap();
}
