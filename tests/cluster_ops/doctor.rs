//! `moorline doctor` and `moorline version` beside a daemon, and beside one that lacks something.

use serde_json::{Value, json};

use crate::chart::release::Release;
use moorline_test_support::command::{Folder, Outcome};
use moorline_test_support::credentials::{ADMIN, TENANT};
use moorline_test_support::daemon::until;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::config_map;

/// The findings of one check, as levels with their messages and remedies.
fn findings(outcome: &Outcome, check: &str) -> Vec<String> {
    let report: Value = serde_json::from_str(&outcome.data).unwrap_or_else(|_| panic!("{outcome:?}"));
    let all = report["findings"].as_array().expect("findings").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.filter(|finding| finding["check"] == check)
        .map(|finding| {
            format!(
                "{}: {}; {}",
                text(&finding["level"]),
                text(&finding["message"]),
                text(&finding["remedy"])
            )
        })
        .collect()
}

/// Checks the only finding of a check.
fn is(outcome: &Outcome, check: &str, front: &str, part: &str) {
    let found = findings(outcome, check);
    let fits = |line: &String| line.starts_with(&format!("{front}: ")) && line.contains(part);
    assert!(found.len() == 1 && fits(&found[0]), "{check} is not {front} with {part:?}: {found:?}");
}

async fn delete(release: &Release, path: &str) {
    send_request(&release.admin, "DELETE", path, Value::Null).await.expect("it goes");
}

#[tokio::test]
async fn a_daemon_that_serves_has_no_errors_and_each_lack_is_found() {
    let Some(release) = Release::new("doctor").await else { return };
    release.without_definition().await;
    let commit = release.push("app/a.json", &config_map("a", "one"));
    let url = release.url();
    let flags = ["--grant", "namespaceAdmin", "--url", &url, "--path", "app"];
    release.install_without_helm(&flags);
    let mut daemon = release.daemon().await;
    crate::chart::until_ready(&release, "default", &commit).await;
    let doctor = |user: &str| release.moorline(user, &["doctor", "-o", "json"]);

    let sound = doctor(ADMIN);
    assert_eq!(sound.code, 0, "{}{}", sound.data, sound.words);
    let namespace = &release.namespace;
    is(&sound, "cluster", "ok", "the API server is v1.");
    is(&sound, "definition", "ok", "is the one of this program");
    is(&sound, "your rights", "ok", "every command for operators");
    is(&sound, "daemon", "warning", "no Pod of the Deployment");
    is(&sound, "daemon's rights", "ok", &format!("the ServiceAccount {namespace}/moorline may serve Syncs"));
    is(&sound, "lease", "ok", concat!("version ", env!("CARGO_PKG_VERSION"), ", and was renewed "));
    is(&sound, "clock", "ok", "agree");
    is(&sound, "webhooks", "ok", "webhooks are disabled");
    is(&sound, "keys", "ok", &format!("the Secret {namespace}/moorline-key "));
    is(&sound, "repository", "ok", "is read for 1 Sync");
    let table = release.moorline(ADMIN, &["doctor"]);
    assert!(table.code == 0 && table.data.lines().count() == 10, "{}", table.data);
    assert!(
        table.data.lines().all(|line| line.starts_with("ok ") || line.starts_with("warning ")),
        "{}",
        table.data
    );

    versions(&release);
    hidden(&doctor(TENANT));

    // Each missing part is reported with its remedy.
    let away = json!({"spec": {"source": {"git": {"url": "https://127.0.0.1:1/away.git"}}}});
    let sync = release.path("moorline.dev/v1alpha1", "syncs/default");
    send_request(&release.admin, "PATCH", &sync, away).await.expect("an edit");
    until("the Sync says that its repository is away", async || {
        let live = release.get(&sync).await?;
        let reason = live["status"]["conditions"][0]["reason"].as_str()?.to_owned();
        (reason != "Applied" && reason != "Progressing").then_some(())
    })
    .await;
    daemon.terminate();
    drop(daemon);
    delete(&release, &release.path("v1", "secrets/moorline-key")).await;
    let binding = format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/{namespace}.moorline");
    delete(&release, &binding).await;
    let file = json!({"data": {"daemon.yaml": "webhookSecretFile: /etc/moorline/webhook/secret\n"}});
    send_request(&release.admin, "PATCH", &release.path("v1", "configmaps/moorline"), file)
        .await
        .expect("an edit");
    delete(&release, &release.path("coordination.k8s.io/v1", "leases/moorline")).await;
    let broken = until("the API server knows that the binding is gone", async || {
        let outcome = doctor(ADMIN);
        findings(&outcome, "daemon's rights")[0].starts_with("error: ").then_some(outcome)
    })
    .await;
    assert_eq!(broken.code, 1);
    is(&broken, "daemon's rights", "error", "update syncs/status.moorline.dev");
    is(&broken, "repository", "error", "docs/troubleshooting.md has the remedy for ");
    is(&broken, "keys", "error", "kubectl create secret generic moorline-key");
    is(&broken, "webhooks", "warning", "no Secret is mounted there");
    is(&broken, "lease", "error", "there is no Lease");
    release.uninstall_without_helm().await;
    release.end().await;
}

/// The versions of everything that there is.
fn versions(release: &Release) {
    let said = release.moorline(ADMIN, &["version", "-o", "json"]);
    let own = env!("CARGO_PKG_VERSION");
    let versions: Value = serde_json::from_str(&said.data).expect("JSON");
    let daemon = json!({
        "version": own, "lease": format!("{}/moorline", release.namespace),
        "image": format!("registry.example.com/moorline:{own}"),
    });
    assert_eq!((said.code, said.words.as_str()), (0, ""));
    assert_eq!(versions["daemons"], json!([daemon]));
    assert_eq!(
        (&versions["client"]["version"], &versions["definition"]["version"]),
        (&json!(own), &json!(own))
    );
    assert!(
        versions["server"]["version"].as_str().is_some_and(|version| version.starts_with("v1.")),
        "{versions}"
    );
    let table = release.moorline(ADMIN, &["version"]);
    assert_eq!(table.data.lines().count(), 4, "{}", table.data);
}

/// For a user without rights it is said that much is not known, and nothing is an error that may be none.
fn hidden(outcome: &Outcome) {
    is(outcome, "definition", "unknown", "get customresourcedefinitions");
    is(
        outcome,
        "your rights",
        "warning",
        "you may not list syncs.moorline.dev (for moorline status -A, doctor)",
    );
    is(outcome, "lease", "unknown", "cannot be read");
    is(outcome, "keys", "unknown", "you may not see");
    is(outcome, "repository", "unknown", "list syncs in all namespaces");
    is(outcome, "daemon's rights", "unknown", "ServiceAccount of the daemon is not known");
}

#[test]
fn without_a_cluster_there_is_the_version_of_the_program_and_an_error_of_the_doctor() {
    let folder = Folder::new("no-cluster", &[("kubeconfig", UNREACHABLE.as_bytes())]);
    let place = folder.0.join("kubeconfig");
    let moorline = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_moorline"));
        Outcome::of(&command.args(arguments).env("KUBECONFIG", &place).output().expect("it runs"))
    };
    let version = moorline(&["version"]);
    assert_eq!(version.code, 0);
    let front = concat!("client  ", env!("CARGO_PKG_VERSION"), "  ");
    assert!(version.data.starts_with(front) && version.data.lines().count() == 1, "{}", version.data);
    let why = "note: only the version of this program is known: the API server cannot be reached: ";
    assert!(version.words.starts_with(why) && version.words.lines().count() == 1, "{}", version.words);
    let doctor = moorline(&["doctor"]);
    assert_eq!(doctor.code, 1);
    assert!(doctor.data.starts_with("error  cluster  the API server cannot be reached: "), "{}", doctor.data);
}

/// A server that does not listen.
const UNREACHABLE: &str = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "a",
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}], "users": [{"name": "a", "user": {}}],
    "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}]}"#;
