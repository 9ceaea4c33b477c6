//! The right to write in the name of a Sync: the chart's policy on field managers, beside a real controller manager.

use serde_json::{Value, json};

use super::programs::{command, find, run};
use super::release::Release;
use crate::chart::until_ready;
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::until;
use moorline_test_support::rest::{grant, rule, send_request, tenant, user};
use moorline_test_support::scene::config_map;

const BOB: &str = "bob";

/// A request as Bob, who may read and write ConfigMaps and Deployments of the namespace.
async fn bob(release: &Release, method: &str, path: &str, content: &str, body: &Value) -> Result<(), String> {
    request_as(BOB, release, (method, path, content), body).await
}

async fn request_as(
    user: &str,
    release: &Release,
    (method, path, content): (&str, &str, &str),
    body: &Value,
) -> Result<(), String> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("Content-Type", content)
        .header("Impersonate-User", user)
        .body(body.to_string().into_bytes())
        .expect("a literal request");
    match release.admin.request_text(request).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(error) => panic!("{error}"),
    }
}

/// Waits until this user may not write as the Sync `shop`: a policy is in force some time after it was made.
async fn until_in_force(release: &Release, user: &str) {
    let manager = format!("moorline/{}/shop", release.namespace);
    let path = release.path("v1", &format!("configmaps/probe?fieldManager={manager}&force=true"));
    until("the policy is in force", async || {
        request_as(user, release, ("PATCH", &path, APPLY), &map("probe", "forged")).await.err()
    })
    .await;
}

const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";

fn map(name: &str, value: &str) -> Value {
    serde_json::from_str(&config_map(name, value)).expect("JSON")
}

/// An entry as an apply by the Sync `shop` leaves it.
fn entry(release: &Release) -> Value {
    json!({
        "manager": format!("moorline/{}/shop", release.namespace), "operation": "Apply", "apiVersion": "v1",
        "time": "2026-01-01T10:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:key": {}}},
    })
}

#[tokio::test]
async fn nobody_writes_in_the_name_of_a_sync_that_he_may_not_own() {
    let Some(release) = Release::new("managers").await else { return };
    let verbs = ["get", "create", "update", "patch"];
    let rules = json!([rule("", &["configmaps"], &verbs), rule("apps", &["deployments"], &verbs)]);
    grant(&release.admin, &release.namespace, &user(BOB), &rules).await;
    release.helm(&["install", "moorline", release.chart()]).expect("it is installed");
    let maps = release.path("v1", "configmaps");
    let manager = format!("moorline/{}/shop", release.namespace);
    let as_sync = format!("fieldManager={manager}&force=true");
    until_in_force(&release, BOB).await;

    // By the field manager of an apply, of a patch, of a creation, and of a Sync that nobody has.
    let merge = "application/merge-patch+json";
    bob(&release, "POST", &maps, JSON, &map("b", "own")).await.expect("his own writes go on");
    for (method, path, content) in [
        ("PATCH", format!("{maps}/a?{as_sync}"), APPLY),
        ("PATCH", format!("{maps}/b?fieldManager={manager}"), merge),
        ("POST", format!("{maps}?fieldManager={manager}"), JSON),
        ("PATCH", format!("{maps}/b?fieldManager=moorline/x&force=true"), APPLY),
        ("PATCH", format!("{maps}/b?fieldManager=moorline/a/b/c&force=true"), APPLY),
    ] {
        let name = if path.contains("/b?") { "b" } else { "a" };
        let refused = bob(&release, method, &path, content, &map(name, "forged")).await.expect_err(&path);
        assert!(
            refused.contains("is for whoever may own that Sync, and bob may not: moorline rbac --sync"),
            "{refused}"
        );
    }
    // By an entry that the object brings along: the API server takes none from a creation.
    let mut forged = map("c", "forged");
    forged["metadata"]["managedFields"] = json!([entry(&release)]);
    bob(&release, "POST", &maps, JSON, &forged).await.expect("a creation");
    let made = release.get(&format!("{maps}/c")).await.expect("it is there");
    assert!(!made["metadata"]["managedFields"].to_string().contains("moorline/"), "{made:#}");
    let mut live = release.get(&format!("{maps}/b")).await.expect("it is there");
    live["metadata"]["managedFields"].as_array_mut().expect("entries").push(entry(&release));
    let refused = bob(&release, "PUT", &format!("{maps}/b"), JSON, &live).await.expect_err("an update");
    assert!(refused.contains(&format!("the field manager {manager} is for whoever may own")), "{refused}");
    // A request that writes nothing is allowed, and so is a change of what the Sync wrote: the daemon repairs that.
    let dry = format!("{maps}/b?{as_sync}&dryRun=All");
    bob(&release, "PATCH", &dry, APPLY, &map("b", "forged")).await.expect("a dry run");
    send_request(
        &release.admin,
        "POST",
        &format!("{maps}?fieldManager={manager}"),
        map("d", "by the administrator"),
    )
    .await
    .expect("whoever may do everything may own");
    let edit = json!({"data": {"key": "by hand"}});
    bob(&release, "PATCH", &format!("{maps}/d"), merge, &edit).await.expect("an edit");
    release.end().await;
}

/// The API server gives up a rule that asks for many rights, and then nothing is refused.
#[tokio::test]
async fn who_may_own_some_syncs_brings_in_no_other_one_beside_them() {
    let Some(release) = Release::new("many-managers").await else { return };
    let mut own = rule("moorline.dev", &["syncs"], &["own"]);
    let his: Vec<String> = (0..40).map(|at| format!("his-{at}")).collect();
    own["resourceNames"] = json!(his);
    let maps = rule("", &["configmaps"], &["get", "create", "update", "patch"]);
    grant(&release.admin, &release.namespace, &user(BOB), &json!([maps, own])).await;
    release.helm(&["install", "moorline", release.chart()]).expect("it is installed");
    until_in_force(&release, BOB).await;
    let maps = release.path("v1", "configmaps");
    bob(&release, "POST", &maps, JSON, &map("b", "own")).await.expect("a creation");
    let with = async |names: &[&str]| {
        let mut live = release.get(&format!("{maps}/b")).await.expect("it is there");
        for name in names {
            let mut one = entry(&release);
            one["manager"] = format!("moorline/{}/{name}", release.namespace).into();
            // They are judged in the order of their times.
            one["time"] =
                if *name == "shop" { "2026-02-01T10:00:00Z" } else { "2026-01-01T10:00:00Z" }.into();
            live["metadata"]["managedFields"].as_array_mut().expect("entries").push(one);
        }
        bob(&release, "PUT", &format!("{maps}/b"), JSON, &live).await
    };
    with(&["his-0"]).await.expect("a Sync of his");
    let refused = with(&["his-1", "his-2", "his-3", "shop"]).await.expect_err("a Sync of somebody else");
    assert!(refused.contains("one write may bring in two field managers of Syncs"), "{refused}");
    let refused = with(&["his-1", "shop"]).await.expect_err("a Sync of somebody else");
    assert!(refused.contains("is for whoever may own that Sync"), "{refused}");
    // So many managers of his own that no other could be distinguished from them.
    let mut last = Ok(());
    for name in &his[1..] {
        last = with(&[name]).await;
    }
    assert!(last.is_err_and(|refused| refused.contains("an object may have 32 of them")));
    let live = release.get(&format!("{maps}/b")).await.expect("it is there");
    assert_eq!(live["metadata"]["managedFields"].to_string().matches("moorline/").count(), 32);
    release.end().await;
}

#[tokio::test]
async fn controllers_work_on_what_a_sync_applies() {
    let Some(release) = Release::new("controllers").await else { return };
    let labels = json!({"app": "web"});
    let template =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}});
    let workload = |kind: &str| {
        let mut spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": template});
        if kind == "StatefulSet" {
            spec["serviceName"] = json!("web");
        }
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec}).to_string()
    };
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": labels, "ports": [{"port": 80}]}});
    let files = [
        ("a.json", workload("Deployment")),
        ("b.json", workload("StatefulSet")),
        ("c.json", service.to_string()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let commit = release.push_all(&files);
    release
        .helm(&["install", "moorline", release.chart(), "--set", "rbac.grant=namespaceAdmin"])
        .expect("it is installed");
    let daemon = release.daemon().await;
    release
        .create(&release.path("moorline.dev/v1alpha1", "syncs"), release.sync("shop", json!({})))
        .await
        .expect("a Sync");
    until_ready(&release, "shop", &commit).await;
    for (version, resource) in [
        ("apps/v1", "replicasets"),
        ("apps/v1", "controllerrevisions"),
        ("discovery.k8s.io/v1", "endpointslices"),
    ] {
        until(&format!("a controller makes {resource}"), async || {
            let list = release.get(&release.path(version, resource)).await?;
            list["items"].as_array().is_some_and(|items| !items.is_empty()).then_some(())
        })
        .await;
    }
    until("the status of the Deployment is written", async || {
        let live = release.get(&release.path("apps/v1", "deployments/web")).await?;
        (live["status"]["observedGeneration"] == live["metadata"]["generation"]).then_some(())
    })
    .await;
    drop(daemon);
    release.end().await;
}

#[tokio::test]
async fn an_account_that_may_not_own_the_sync_sees_the_command_that_grants_it() {
    let Some(kubectl) = find("kubectl") else { return };
    let Some(release) = Release::new("owners").await else { return };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
        "stringData": {"password": "hunter2"}});
    let commit = release
        .push_all(&[("maps/a.json", &config_map("a", "one")), ("secrets/a.json", &secret.to_string())]);
    tenant(&release.admin, &release.namespace, &["get", "list", "watch", "create", "patch", "delete"]).await;
    release.helm(&["install", "moorline", release.chart()]).expect("it is installed");
    let account =
        |name: &str| json!({"kind": "ServiceAccount", "name": name, "namespace": release.namespace});
    bind(&release, "act", &account("moorline"), rule("", &["serviceaccounts"], &["impersonate"])).await;
    let all = ["get", "list", "watch", "create", "patch", "delete"];
    bind(&release, "secrets", &account("tenant"), rule("", &["secrets"], &all)).await;
    until_in_force(&release, &format!("system:serviceaccount:{}:tenant", release.namespace)).await;
    let daemon = release.daemon().await;
    let syncs = release.path("moorline.dev/v1alpha1", "syncs");
    let kubeconfig = release.plane.kubeconfig_file(ADMIN);
    for (name, folder) in [("shop", "maps"), ("vault", "secrets")] {
        let sync = release.sync(name, json!({"serviceAccountName": "tenant", "path": folder}));
        release.create(&syncs, sync).await.expect("a Sync");
        let path = format!("{syncs}/{name}");
        until("what is missing is told, and the command that grants it", async || {
            let sync = release.get(&path).await?;
            let condition = sync.pointer("/status/conditions/0")?;
            let message = condition["message"].as_str().unwrap_or_default();
            let lacks = message.contains("own this Sync (the verb own on syncs.moorline.dev)");
            let others = message.contains("get, create, patch and delete");
            let grants = message.contains(&format!("moorline rbac --sync {name}"));
            (condition["reason"] == "RightsMissing" && lacks && !others && grants).then_some(())
        })
        .await;
        let mut moorline = command(std::path::Path::new(env!("CARGO_BIN_EXE_moorline")));
        let arguments = ["rbac", "--sync", name, "-n", &release.namespace];
        let rights = run(moorline.args(arguments).env("KUBECONFIG", &kubeconfig)).expect("the rights");
        let file = release.values_file(&rights);
        run(command(&kubectl).args(["apply", "-f", &file]).env("KUBECONFIG", &kubeconfig))
            .expect("they are granted");
        until_ready(&release, name, &commit).await;
    }
    drop(daemon);
    release.end().await;
}

/// Gives an account a right in the namespace.
async fn bind(release: &Release, name: &str, subject: &Value, rule: Value) {
    let root = release.path("rbac.authorization.k8s.io/v1", "");
    let role = json!({"metadata": {"name": name}, "rules": [rule]});
    release.create(&format!("{root}roles"), role).await.expect("a role");
    let binding = json!({"metadata": {"name": name}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}});
    release.create(&format!("{root}rolebindings"), binding).await.expect("a binding");
}
