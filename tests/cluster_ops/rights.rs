//! A daemon with few rights, or none yet, on a real API server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use moorline_test_support::audit::AuditMark;
use moorline_test_support::control_plane::shared;
use moorline_test_support::credentials::{ADMIN, TENANT};
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::git_server::{GitServer, Work};
use moorline_test_support::rest::{grant, rule, send_request, user};
use moorline_test_support::scene::Scene;
use moorline_test_support::under_load::under_load;

fn config_map(name: &str, value: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
        .to_string()
}

/// Returns the output of `moorline rbac` for a Sync, as documents.
fn printed(scene: &Scene, sync: &str) -> Vec<Value> {
    let kubeconfig = scene.root.path().join("kubeconfig-of-a-person");
    std::fs::write(&kubeconfig, scene.plane.kubeconfig(ADMIN)).expect("a file");
    let printed = std::process::Command::new(env!("CARGO_BIN_EXE_moorline"))
        .args(["rbac", "--sync", sync, "-n", &scene.namespace])
        .env("KUBECONFIG", kubeconfig)
        .output()
        .expect("it runs");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let documents = moorline::yaml::read("printed", &printed.stdout, moorline::yaml::Dialect::Kubectl);
    documents.expect("it is sound").into_iter().map(|document| document.value).collect()
}

/// Objects of many kinds in a namespace: some are refused at once, some wait for others, and one is a Role that grants.
fn manifests(place: &str) -> Vec<(String, String)> {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "runs"},
        "rules": [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "delete"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "runs"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": place}]});
    let labels = json!({"app": "web"});
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 0, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
        "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]}}}});
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": format!("{place}-low")}, "value": 1});
    let file = |name: &str, body: &Value| (format!("{name}.json"), body.to_string());
    vec![
        file("role", &role),
        file("binding", &binding),
        file("web", &web),
        file("class", &class),
        ("a.json".to_owned(), config_map("a", "one")),
        // Nobody reaches this one before all others stand.
        file(
            "last",
            &json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata":
            {"name": "last", "annotations": {"moorline.dev/wave": "5"}}, "spec": {"podSelector": {}}}),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_printed_rights_are_enough_and_no_more() {
    let Some(scene) = Scene::new("printed").await else { return };
    let place = scene.namespace.clone();
    let commit = scene.push(&manifests(&place));
    let account = json!({"metadata": {"name": "tenant"}});
    send_request(&scene.admin, "POST", &format!("/api/v1/namespaces/{place}/serviceaccounts"), account)
        .await
        .expect("it");
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"serviceAccountName": "tenant", "deletionPolicy": "Delete"})).await;
    scene.until_reason("shop", "RightsMissing").await;
    let message = scene.status("shop", "/conditions/0/message").await;
    let command = format!("`moorline rbac --sync shop -n {place} | kubectl apply -f -`");
    let message = message.as_str().expect("a message").to_owned();
    assert!(message.contains(&command), "{message}");
    // All at once: refused requests, the requests that wait for them, and the rules of a Role among them.
    let all = "get, list, watch, create, patch and delete";
    for line in [
        format!("{all} configmaps in {place}"),
        format!("{all} deployments.apps in {place}"),
        format!("{all} networkpolicies.networking.k8s.io in {place}"),
        format!("{all} priorityclasses.scheduling.k8s.io"),
        format!("{all} roles.rbac.authorization.k8s.io in {place}"),
        format!("create and delete jobs.batch in {place}"),
    ] {
        assert!(message.contains(&line), "{line}: {message}");
    }

    let documents = printed(&scene, "shop");
    // The last two are for the daemon, which is to act as the ServiceAccount.
    assert_eq!(documents.len(), 6, "{documents:?}");
    assert_eq!(documents[4]["rules"][0]["verbs"], json!(["impersonate"]));
    assert_eq!(documents[4]["rules"][0]["resourceNames"], json!(["tenant"]));
    for document in &documents {
        let kind = document["kind"].as_str().expect("a kind").to_lowercase();
        let namespace = document["metadata"]["namespace"].as_str();
        let place = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
        let uri = format!("/apis/rbac.authorization.k8s.io/v1/{place}{kind}s");
        send_request(&scene.admin, "POST", &uri, document).await.expect("it is sound");
    }
    let granted = Instant::now();
    scene.until_ready("shop", &commit).await;
    assert!(granted.elapsed() < under_load(Duration::from_secs(10)), "{:?}", granted.elapsed());
    let may = async |verb: &str, resource: &str| {
        let attributes = json!({"namespace": place, "verb": verb, "resource": resource});
        let user = format!("system:serviceaccount:{place}:tenant");
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": attributes}});
        let uri = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        send_request(&scene.admin, "POST", uri, review).await.expect("an answer")["status"]["allowed"] == true
    };
    assert!(may("patch", "configmaps").await);
    assert!(!may("get", "secrets").await && !may("create", "pods").await);
    scene.delete_sync("shop").await;
    let gone = async || {
        send_request(
            &scene.admin,
            "GET",
            &format!("/apis/apps/v1/namespaces/{place}/deployments/web"),
            Value::Null,
        )
        .await
    };
    assert!(gone().await.is_err(), "it may delete as well");
}

#[tokio::test]
async fn rights_in_one_namespace_are_enough_and_are_seen_when_they_are_given() {
    let Some(plane) = shared() else { return };
    let namespace = plane.namespace("tenant").await;
    let admin = plane.client(ADMIN).await;
    let root = tempfile::tempdir().expect("a folder");
    let (work, server) = (Work::new(root.path()), GitServer::start(root.path()));
    let files: Vec<(String, String)> =
        (0..5).map(|at| (format!("{at}.json"), config_map(&format!("m{at}"), "one"))).collect();
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    work.push(&files);
    let url = server.url("repository.git");
    let arguments = ["--url", &url, "--namespace", &namespace, "--interval", "1", "--leader-election=false"];
    let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
    let value = async |name: &str| {
        let live = send_request(&admin, "GET", &format!("{maps}/{name}"), &Value::Null).await.ok()?;
        live["data"]["key"].as_str().map(str::to_owned)
    };

    let (mark, begun) = (AuditMark::set(&plane).await, Instant::now());
    let daemon = Daemon::start_as(&plane, TENANT, root.path(), &arguments);
    let all = format!("get, list, watch, create, patch and delete configmaps in {namespace}");
    until("all that is missing is reported", async || {
        daemon.log().lines().any(|line| line.contains(&all)).then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    let asked = mark.requests().await.by_user(TENANT).filter(|it| it.resource == "configmaps").tally();
    let count = |verb: &str| asked.get(&format!("{verb} configmaps")).copied().unwrap_or_default();
    // A busy machine takes longer until all is logged, and the pauses between the tries end at a second.
    let most = usize::try_from(begun.elapsed().as_secs()).unwrap().max(8) * 3 + 1;
    assert!(count("patch") <= most && count("watch") <= 12 && count("list") <= 2, "{most}: {asked:?}");

    let verbs = ["get", "list", "watch", "create", "patch", "delete"];
    // The keys that objects are proven with: nothing is deleted without a proof.
    let mut key = rule("", &["secrets"], &["get", "list", "watch", "patch"]);
    key["resourceNames"] = json!(["moorline-default-key"]);
    let rules = [rule("", &["configmaps"], &verbs), rule("", &["secrets"], &["create"]), key];
    grant(&admin, &namespace, &user(TENANT), &json!(rules)).await;
    let granted = Instant::now();
    for at in 0..5 {
        until("it is applied", async || value(&format!("m{at}")).await).await;
    }
    assert!(granted.elapsed() < under_load(Duration::from_secs(10)), "{:?}", granted.elapsed());

    tokio::time::sleep(Duration::from_secs(5)).await;
    let edit = json!({"data": {"key": "by hand"}});
    send_request(&admin, "PATCH", &format!("{maps}/m0?fieldManager=kubectl-edit"), &edit)
        .await
        .expect("an edit");
    until("the edit is repaired", async || value("m0").await.filter(|value| value == "one")).await;
    work.git(&["rm", "-q", "1.json"]);
    work.push(&[]);
    until("what is gone from Git is deleted", async || value("m1").await.is_none().then_some(())).await;

    tokio::time::sleep(Duration::from_secs(1)).await;
    let mark = AuditMark::set(&plane).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let asked = mark.requests().await.by_user(TENANT).tally();
    assert!(asked.keys().all(|what| what.starts_with("watch ")), "at rest nothing is asked: {asked:?}");
    drop(daemon);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_depends_on_what_it_may_read() {
    let Some(scene) = Scene::new("reads").await else { return };
    let elsewhere = scene.plane.namespace("reads-elsewhere").await;
    scene.push(&[("a.json".to_owned(), config_map("a", "one"))]);
    let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", scene.namespace);
    send_request(&scene.admin, "POST", &accounts, json!({"metadata": {"name": "tenant"}}))
        .await
        .expect("an account");
    let _daemon = scene.daemon();
    let on = json!([{"name": "base", "namespace": elsewhere}]);
    scene.sync("shop", json!({"serviceAccountName": "tenant", "dependsOn": on})).await;
    scene.until_reason("shop", "RightsMissing").await;
    let expect = format!(
        "spec.dependsOn names the Sync {elsewhere}/base, which the ServiceAccount tenant may not read: grant it get on \
         syncs.moorline.dev in {elsewhere}, or depend only on Syncs in the same namespace"
    );
    assert_eq!(scene.status("shop", "/conditions/0/message").await, expect);
    let subject = json!({"kind": "ServiceAccount", "name": "tenant", "namespace": scene.namespace});
    grant(&scene.admin, &elsewhere, &subject, &json!([rule("moorline.dev", &["syncs"], &["get"])])).await;
    let granted = Instant::now();
    // There is none of that name: that much it may know now.
    scene.until_reason("shop", "DependencyNotReady").await;
    assert!(granted.elapsed() < under_load(Duration::from_secs(10)), "{:?}", granted.elapsed());
    let told = scene.status("shop", "/conditions/0/message").await;
    assert!(told.as_str().expect("a message").contains("which does not exist"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_that_lacks_a_right_is_alone_with_that() {
    let Some(scene) = Scene::new("alone").await else { return };
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": format!("{}-slow", scene.namespace)}, "provisioner": "example.com/none"});
    let commit = scene.push(&[
        ("first/class.json".to_owned(), class.to_string()),
        ("second/a.json".to_owned(), config_map("a", "one")),
    ]);
    let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", scene.namespace);
    send_request(&scene.admin, "POST", &accounts, json!({"metadata": {"name": "tenant"}}))
        .await
        .expect("an account");
    let subject = json!({"kind": "ServiceAccount", "name": "tenant", "namespace": scene.namespace});
    let verbs = ["get", "list", "watch", "create", "patch", "delete"];
    grant(&scene.admin, &scene.namespace, &subject, &json!([rule("", &["configmaps"], &verbs)])).await;
    let _daemon = scene.daemon();
    scene.sync("first", json!({"path": "first", "serviceAccountName": "tenant"})).await;
    scene.until_reason("first", "RightsMissing").await;
    scene.sync("second", json!({"path": "second", "serviceAccountName": "tenant"})).await;
    scene.until_ready("second", &commit).await;
    let told = scene.status("first", "/conditions/0/message").await;
    assert!(told.as_str().expect("a message").contains("storageclasses.storage.k8s.io"), "{told}");
}

/// A Sync may have to write into a namespace that nobody has made yet.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_that_is_named_works_where_a_namespace_is_missing() {
    let Some(scene) = Scene::new("no-namespace").await else { return };
    let other = format!("{}-other", scene.namespace);
    let mut map: Value = serde_json::from_str(&config_map("a", "one")).expect("it is JSON");
    map["metadata"]["namespace"] = other.clone().into();
    let commit = scene.push(&[("a.json".to_owned(), map.to_string())]);
    let account = json!({"metadata": {"name": "tenant"}});
    let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", scene.namespace);
    send_request(&scene.admin, "POST", &accounts, account).await.expect("it");
    let _daemon = scene.daemon();
    scene.sync("shop", json!({"serviceAccountName": "tenant"})).await;
    scene.until_reason("shop", "RightsMissing").await;

    let documents = printed(&scene, "shop");
    assert_eq!(
        (&documents[0]["kind"], &documents[0]["metadata"]["name"]),
        (&json!("Namespace"), &json!(other))
    );
    // As kubectl does, one after the other.
    for document in &documents {
        let kind = document["kind"].as_str().expect("a kind").to_lowercase();
        let namespace = document["metadata"]["namespace"].as_str();
        let place = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
        let root = document["apiVersion"].as_str().expect("a version");
        let root = if root == "v1" { "/api/v1".to_owned() } else { format!("/apis/{root}") };
        send_request(&scene.admin, "POST", &format!("{root}/{place}{kind}s"), document)
            .await
            .expect("it is sound");
    }
    scene.until_ready("shop", &commit).await;
    let again = printed(&scene, "shop");
    assert_eq!(again.len(), documents.len() - 1, "the namespace is there: {again:?}");
    scene.delete_sync("shop").await;
    send_request(&scene.admin, "DELETE", &format!("/api/v1/namespaces/{other}"), Value::Null)
        .await
        .expect("it goes");
}
