//! The rights that the chart gives are enough, none of them is idle, and what they do not say is refused.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::release::Release;
use crate::chart::until_ready;
use moorline_test_support::audit::{AuditMark, Request};
use moorline_test_support::daemon::until;
use moorline_test_support::rest::{grant, rule, send_request};
use moorline_test_support::scene::config_map;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Every right is used but these, and why not.
fn excuse(verb: &str, rule: &Value) -> Option<&'static str> {
    if ["own", "sync", "suspend", "approve", "rollback"].contains(&verb) {
        return Some("the policies on field managers and on verbs ask for it");
    }
    let watches = rule["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("watch")));
    (verb == "list" && watches).then_some("a watch lists first where the server does not stream lists")
}

/// One verb on one resource of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    namespace: Option<String>,
    verb: String,
    group: String,
    resource: String,
    names: Vec<String>,
}

impl Right {
    fn all(role: &Value) -> Vec<Self> {
        let texts = |value: &Value| -> Vec<String> {
            let list = value.as_array().into_iter().flatten();
            list.filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let mut rights = Vec::new();
        for rule in role["rules"].as_array().expect("rules") {
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    let used = texts(&rule["verbs"]).into_iter().filter(|verb| excuse(verb, rule).is_none());
                    rights.extend(used.map(|verb| Self {
                        namespace: role["metadata"]["namespace"].as_str().map(str::to_owned),
                        verb,
                        group: group.clone(),
                        resource: resource.clone(),
                        names: texts(&rule["resourceNames"]),
                    }));
                }
            }
        }
        rights
    }

    fn is_used_by(&self, request: &Request) -> bool {
        let named = |name: &str| self.names.is_empty() || self.names.iter().any(|own| own == name);
        let within = |namespace: &str| self.namespace.as_deref().is_none_or(|own| own == namespace);
        if self.verb == "impersonate" {
            let account = request.impersonated.strip_prefix("system:serviceaccount:");
            return account
                .and_then(|account| account.split_once(':'))
                .is_some_and(|(namespace, name)| within(namespace) && named(name));
        }
        let resource = match request.subresource.as_str() {
            "" => request.resource.clone(),
            subresource => format!("{}/{subresource}", request.resource),
        };
        request.impersonated.is_empty()
            && (&request.verb, &request.group, &resource) == (&self.verb, &self.group, &self.resource)
            && within(&request.namespace)
            && named(&request.name)
    }
}

async fn roles(release: &Release, tenant: &str) -> Vec<Value> {
    let wide = format!("{}.moorline", release.namespace);
    let paths = [
        format!("{RBAC}/clusterroles/{wide}"),
        format!("{RBAC}/namespaces/{}/roles/moorline", release.namespace),
        format!("{RBAC}/namespaces/{tenant}/roles/{wide}"),
    ];
    let mut roles = Vec::new();
    for path in paths {
        roles.push(release.get(&path).await.expect("a role of the chart"));
    }
    roles
}

/// Grants Syncs the objects that they write here: the content of Git is not the chart's business.
async fn grant_objects(release: &Release) {
    let verbs = ["get", "list", "watch", "create", "patch", "delete"];
    let rules = json!([rule("", &["configmaps"], &verbs), rule("apps", &["deployments"], &verbs)]);
    let name = format!("{}.tests", release.namespace);
    let role = json!({"metadata": {"name": name}, "rules": rules});
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "moorline", "namespace": release.namespace}],
    });
    release.create(&format!("{RBAC}/clusterroles"), role).await.expect("a role");
    release.create(&format!("{RBAC}/clusterrolebindings"), binding).await.expect("a binding");
}

/// True if the chart's ServiceAccount may do something.
async fn may(release: &Release, verb: &str, group: &str, resource: &str, place: (&str, &str)) -> bool {
    let review = json!({"spec": {
        "user": release.user(),
        "groups": ["system:serviceaccounts", "system:authenticated"],
        "resourceAttributes": {
            "verb": verb, "group": group, "resource": resource, "namespace": place.0, "name": place.1,
        },
    }});
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    release.create(path, review).await.expect("an answer")["status"]["allowed"] == true
}

/// The tenant's namespace with an account that may write ConfigMaps, and a Secret.
async fn prepare_tenant(release: &Release) -> String {
    let tenant = release.plane.namespace("tenant").await;
    for account in ["deployer", "other"] {
        let path = format!("/api/v1/namespaces/{tenant}/serviceaccounts");
        release.create(&path, json!({"metadata": {"name": account}})).await.expect("an account");
    }
    let subject = json!({"kind": "ServiceAccount", "name": "deployer", "namespace": tenant});
    let verbs = ["get", "list", "watch", "create", "patch", "delete"];
    grant(&release.admin, &tenant, &subject, &json!([rule("", &["configmaps"], &verbs)])).await;
    for namespace in [&release.namespace, &tenant] {
        let hosts = json!({"moorline.dev/hosts": "127.0.0.1"});
        let login = json!({"metadata": {"name": "login", "annotations": hosts}, "stringData": {"username": "u", "password": "p"}});
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        release.create(&path, login).await.expect("a Secret");
    }
    tenant
}

/// Syncs that together need every right. None of the repositories with a login is there.
async fn create_syncs(release: &Release, tenant: &str) {
    let away = json!({"git": {"url": "https://127.0.0.1:1/x", "secretRef": {"name": "login"}}});
    let as_deployer = json!({"path": "clusters/tenant", "serviceAccountName": "deployer"});
    let own = release.path("moorline.dev/v1alpha1", "syncs");
    let theirs = format!("/apis/moorline.dev/v1alpha1/namespaces/{tenant}/syncs");
    let syncs = [
        (&own, release.sync("shop", json!({"path": "clusters/one", "deletionPolicy": "Delete"}))),
        (&own, release.sync("waits", json!({"path": "clusters/waits", "targetNamespace": "missing"}))),
        (&own, release.sync("login", json!({"source": away.clone()}))),
        (&theirs, release.sync("shop", as_deployer)),
        (&theirs, release.sync("login", json!({"source": away, "serviceAccountName": "deployer"}))),
    ];
    for (path, sync) in syncs {
        // The definition has just changed, and is not served for a moment.
        until("a Sync is taken", async || release.create(path, sync.clone()).await.ok()).await;
    }
    let hook = json!({"url": "https://127.0.0.1:1", "secretRef": {"name": "hook"}});
    let notifier = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "Notifier", "metadata": {"name": "chat"},
        "spec": {"slack": hook, "transitions": ["Applied"]},
    });
    let set = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet", "metadata": {"name": "apps"},
        "spec": {
            "serviceAccountName": "deployer", "onDelete": "Delete", "name": "params.name",
            "generators": [{"list": {"elements": [{"name": "a"}]}}],
            "template": {"spec": {"source": {"git": {"url": "https://127.0.0.1:1/x"}}, "serviceAccountName": "deployer"}},
        },
    });
    let sets = format!("/apis/moorline.dev/v1alpha1/namespaces/{tenant}/syncsets");
    until("a SyncSet is taken", async || release.create(&sets, set.clone()).await.ok()).await;
    let notifiers = release.path("moorline.dev/v1alpha1", "notifiers");
    until("a Notifier is taken", async || release.create(&notifiers, notifier.clone()).await.ok()).await;
    // Windows that are always open.
    let spec = json!({"effect": "Allow", "schedule": "0 * * * *", "duration": "2h"});
    let version = "moorline.dev/v1alpha1";
    let everywhere = format!("/apis/{version}/changewindows");
    let here = release.path(version, "namespacechangewindows");
    for (path, kind) in [(everywhere, "ChangeWindow"), (here, "NamespaceChangeWindow")] {
        let window = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "open"}, "spec": spec});
        until("a window is taken", async || release.create(&path, window.clone()).await.ok()).await;
    }
}

/// KEDA, as far as its objects name what they scale.
async fn prepare_keda(release: &Release) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "metadata": {"name": "scaledobjects.keda.sh"},
        "spec": {
            "group": "keda.sh", "scope": "Namespaced", "names": {"kind": "ScaledObject", "plural": "scaledobjects"},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    release.create(definitions, definition).await.expect("a definition");
    let scaled = json!({
        "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": {"name": "web"}},
    });
    let path = release.path("keda.sh/v1alpha1", "scaledobjects");
    until("a ScaledObject is taken", async || release.create(&path, scaled.clone()).await.ok()).await;
}

/// Creates the files of the repository, and the objects beside them in the cluster.
async fn prepare_objects(release: &Release) -> String {
    let pod = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    });
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": pod},
    });
    let scaler = json!({"metadata": {"name": "web"}, "spec": {
        "maxReplicas": 5, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    }});
    let path = release.path("autoscaling/v2", "horizontalpodautoscalers");
    release.create(&path, scaler).await.expect("a HorizontalPodAutoscaler");
    // An object of a Sync that is gone, so that it is asked whether that is so.
    let map = format!("{}?fieldManager=moorline/{}/gone&force=true", "configmaps/a", release.namespace);
    let request = http::Request::patch(release.path("v1", &map))
        .header("Content-Type", "application/apply-patch+yaml")
        .body(config_map("a", "zero").into_bytes())
        .expect("a literal request");
    release.admin.request_text(request).await.expect("an object");
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    release.push("clusters/waits/widget.json", &widget.to_string());
    release.push("clusters/waits/m.json", &config_map("m", "one"));
    release.push("clusters/tenant/m.json", &config_map("m", "one"));
    release.push("clusters/one/web.json", &web.to_string());
    release.push("clusters/one/a.json", &config_map("a", "one"))
}

#[tokio::test]
async fn every_right_of_the_chart_is_used_and_enough() {
    let Some(release) = Release::new("rights").await else { return };
    let tenant = prepare_tenant(&release).await;
    let tenants = json!([{"namespace": tenant, "serviceAccounts": ["deployer"], "secrets": ["login"]}]);
    let file = release.values_file(&json!({"tenants": tenants}).to_string());
    // The daemon has to bring its own definition.
    release.without_definition().await;
    let older = release.older_chart();
    release.helm(&["install", "moorline", &older, "--values", &file]).expect("it is installed");
    grant_objects(&release).await;
    prepare_keda(&release).await;
    let commit = prepare_objects(&release).await;
    let mark = AuditMark::set(&release.plane).await;
    let daemon = release.daemon().await;
    create_syncs(&release, &tenant).await;
    until_ready(&release, "shop", &commit).await;
    let theirs = format!("/apis/moorline.dev/v1alpha1/namespaces/{tenant}/syncs/shop");
    until("the tenant's Sync is ready", async || {
        let status = release.get(&theirs).await?["status"].take();
        (status["conditions"][0]["status"] == "True").then_some(())
    })
    .await;
    let own = release.path("moorline.dev/v1alpha1", "syncs/shop");
    // Somebody else writes to the Sync just when its status is to be written, sooner or later.
    let mut count = 0;
    until("every right has been used", async || {
        for _ in 0..10 {
            count += 1;
            let asks = json!({"metadata": {"annotations": {"moorline.dev/requested-at": count.to_string()}}});
            send_request(&release.admin, "PATCH", &own, asks).await.ok()?;
        }
        let asked = mark.all_requests().await.by_user(&release.user()).filter(is_allowed);
        let used = |right: &Right| asked.as_slice().iter().any(|request| right.is_used_by(request));
        let roles = roles(&release, &tenant).await;
        let idle: BTreeSet<Right> =
            roles.iter().flat_map(Right::all).filter(|right| !used(right) && !ends(right)).collect();
        assert!(count < 2000, "these rights were not used: {idle:#?}\n{:#?}", asked.tally());
        idle.is_empty().then_some(())
    })
    .await;
    let set = format!("/apis/moorline.dev/v1alpha1/namespaces/{tenant}/syncsets/apps");
    send_request(&release.admin, "DELETE", &set, Value::Null).await.expect("it is deleted");
    until("the SyncSet is gone", async || release.get(&set).await.is_none().then_some(())).await;
    // The end of a Sync asks for its namespace, and takes the finalizer away.
    send_request(&release.admin, "DELETE", &own, Value::Null).await.expect("it is deleted");
    until("the Sync is gone", async || release.get(&own).await.is_none().then_some(())).await;
    let asked = mark.all_requests().await.by_user(&release.user());
    let roles = roles(&release, &tenant).await;
    let used = |right: &Right| asked.as_slice().iter().any(|it| is_allowed(it) && right.is_used_by(it));
    let idle: Vec<Right> = roles.iter().flat_map(Right::all).filter(|right| !used(right)).collect();
    assert!(idle.is_empty(), "{idle:#?}\n{:#?}", asked.tally());
    refused(&release, &tenant).await;
    drop(daemon);
    release.end().await;
}

/// True if only the end of a Sync uses it.
fn ends(right: &Right) -> bool {
    right.verb == "get" && ["namespaces", "customresourcedefinitions"].contains(&right.resource.as_str())
}

/// A missing object may be asked for all the same.
fn is_allowed(request: &Request) -> bool {
    ![401, 403].contains(&request.code)
}

/// Checks that the rights which nobody granted are refused.
async fn refused(release: &Release, tenant: &str) {
    let own = release.namespace.as_str();
    assert!(may(release, "impersonate", "", "serviceaccounts", (tenant, "deployer")).await);
    for (verb, group, resource, place) in [
        ("impersonate", "", "serviceaccounts", (tenant, "other")),
        ("impersonate", "", "serviceaccounts", ("kube-system", "default")),
        ("impersonate", "", "users", ("", "admin")),
        ("impersonate", "", "groups", ("", "system:masters")),
        ("get", "", "secrets", (tenant, "other")),
        ("list", "", "secrets", (tenant, "")),
        ("get", "", "secrets", ("kube-system", "any")),
        ("patch", "", "secrets", (own, "login")),
        ("create", "moorline.dev", "syncs", (own, "any")),
        ("delete", "moorline.dev", "syncs", (own, "shop")),
        ("patch", "apiextensions.k8s.io", "customresourcedefinitions", ("", "widgets.example.com")),
        ("delete", "apiextensions.k8s.io", "customresourcedefinitions", ("", "syncs.moorline.dev")),
        ("update", "coordination.k8s.io", "leases", (own, "others")),
        ("update", "coordination.k8s.io", "leases", ("kube-system", "moorline")),
        ("create", "rbac.authorization.k8s.io", "clusterrolebindings", ("", "")),
        ("create", "", "pods", (own, "any")),
    ] {
        let allowed = may(release, verb, group, resource, place).await;
        assert!(!allowed, "{verb} {resource} {place:?}");
    }
}

/// With the value `identity`, the daemon's ServiceAccount requests tokens of the listed accounts, and of no others.
#[tokio::test]
async fn tokens_of_the_listed_accounts_are_requested_by_the_rights_of_the_chart() {
    let Some(release) = Release::new("identity").await else { return };
    let team = release.plane.namespace("identity-team").await;
    for account in ["puller", "other"] {
        let path = format!("/api/v1/namespaces/{team}/serviceaccounts");
        release.create(&path, json!({"metadata": {"name": account}})).await.expect("an account");
    }
    let identity = json!({"serviceAccounts": [{"namespace": team, "names": ["puller"]}]});
    let file = release.values_file(&json!({"identity": identity}).to_string());
    release.helm(&["install", "moorline", release.chart(), "--values", &file]).expect("it is installed");
    let spec = json!({"audiences": ["sts.amazonaws.com"], "expirationSeconds": 600});
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    for (account, allowed) in [("puller", true), ("other", false)] {
        let request =
            http::Request::post(format!("/api/v1/namespaces/{team}/serviceaccounts/{account}/token"))
                .header("Content-Type", "application/json")
                .header("Impersonate-User", release.user())
                .body(body.to_string().into_bytes())
                .expect("a literal request");
        let answer = release.admin.request_text(request).await;
        assert_eq!(answer.is_ok(), allowed, "{account}");
        assert_eq!(may(&release, "get", "", "serviceaccounts", (&team, account)).await, allowed, "{account}");
    }
    assert!(!may(&release, "list", "", "serviceaccounts", (&team, "")).await);
    release.end().await;
}
