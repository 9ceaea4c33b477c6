//! The right to create a Sync: the chart's policy on the real API server.

use serde_json::{Value, json};

use super::release::Release;
use moorline_test_support::daemon::until;

/// Creates a Sync as somebody who may create any, as far as RBAC goes: the refusal, if it is refused.
async fn create(release: &Release, who: (&str, &str), name: &str, spec: Value) -> Result<(), String> {
    let sync = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": name}, "spec": spec,
    });
    let request = http::Request::post(release.path("moorline.dev/v1alpha1", "syncs?dryRun=All"))
        .header("Content-Type", "application/json")
        .header("Impersonate-User", who.0)
        .header("Impersonate-Group", who.1)
        .header("Impersonate-Group", "system:masters")
        .body(sync.to_string().into_bytes())
        .expect("a literal request");
    match release.admin.request_text(request).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(error) => panic!("{error}"),
    }
}

fn spec(url: &str, path: &str, account: &str) -> Value {
    let mut spec = json!({"source": {"git": {"url": url}}});
    for (field, value) in [("path", path), ("serviceAccountName", account)] {
        if !value.is_empty() {
            spec[field] = json!(value);
        }
    }
    spec
}

/// Changes of a Sync that change nothing of what it asks for are RBAC's business.
async fn others_may_only_label(release: &Release) {
    let sync = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "one"},
        "spec": spec("https://host/one.git", "", ""),
    });
    let syncs = release.path("moorline.dev/v1alpha1", "syncs");
    let refused = release.create(&syncs, sync.clone()).await;
    assert!(refused.is_err(), "the administrator is named by no rule");
    let by = async |user: &str, method: &str, path: &str, body: &Value| {
        let content = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", content)
            .header("Impersonate-User", user)
            .header("Impersonate-Group", "system:masters")
            .body(body.to_string().into_bytes())
            .expect("a literal request");
        release.admin.request_text(request).await.is_ok()
    };
    let one = format!("{syncs}/one");
    assert!(by("alice", "POST", &syncs, &sync).await);
    assert!(by("carol", "PATCH", &one, &json!({"metadata": {"finalizers": ["example.com/x"]}})).await);
    assert!(!by("carol", "PATCH", &one, &json!({"spec": {"suspend": true}})).await);
    assert!(by("alice", "PATCH", &one, &json!({"spec": {"suspend": true}})).await);
}

/// The URL of an artifact counts as that of a repository does.
async fn artifacts_are_judged_as_repositories(release: &Release, who: (&str, &str)) {
    for (url, allowed) in [
        ("oci://registry/shop/app", true),
        ("oci://registry/shopping/app", false),
        ("oci://elsewhere/shop/app", false),
        ("oci://registry:5000/shop/app", false),
    ] {
        let mut spec = spec("", "clusters/shop", "deployer");
        spec["source"] = json!({"oci": {"url": url}});
        let answer = create(release, who, "a", spec).await;
        assert_eq!(answer.is_ok(), allowed, "{url}: {answer:?}");
    }
}

/// The URL of each mount counts as that of the repository does.
async fn mounts_are_judged_as_repositories(release: &Release, who: (&str, &str)) {
    let git = |url: &str| json!({"path": "a", "git": {"url": url}});
    let oci = |url: &str| json!({"path": "b", "oci": {"url": url}});
    for (mounts, allowed) in [
        ([git("https://host/shop/base.git"), oci("oci://registry/shop/app")], true),
        ([git("https://elsewhere/base.git"), oci("oci://registry/shop/app")], false),
        ([git("https://host/shop/base.git"), oci("oci://elsewhere/app")], false),
    ] {
        let mut spec = spec("https://host/shop/a.git", "clusters/shop", "deployer");
        spec["source"]["mounts"] = json!(mounts);
        let answer = create(release, who, "a", spec).await;
        assert_eq!(answer.is_ok(), allowed, "{mounts:?}: {answer:?}");
    }
}

/// The URL of a chart counts as that of the repository does.
async fn charts_are_judged_as_repositories(release: &Release, who: (&str, &str)) {
    for (chart, allowed) in [
        ("https://host/shop/charts", true),
        ("https://evil.example/charts", false),
        ("http://169.254.169.254/latest", false),
        ("oci://host/shop/chart", false),
        ("https://host/shop/../evil", false),
        ("https://host/shop/%2e%2e/evil", false),
    ] {
        let mut spec = spec("https://host/shop/a.git", "clusters/shop", "deployer");
        let name = if chart.starts_with("oci:") { Value::Null } else { json!("web") };
        let digest = format!("sha256:{}", "0".repeat(64));
        spec["render"]["helm"]["chart"] =
            json!({"url": chart, "name": name, "version": "1.0.0", "digest": digest});
        if name.is_null() {
            spec["render"]["helm"]["chart"].as_object_mut().expect("a map").remove("name");
        }
        let answer = create(release, who, "a", spec).await;
        assert_eq!(answer.is_ok(), allowed, "{chart}: {answer:?}");
    }
}

/// A ServiceAccount for a cloud counts as the one that acts for the Sync.
async fn identities_are_judged_as_accounts(release: &Release, who: (&str, &str)) {
    let oci = |account: &str| json!({"source": {"oci": {"url": "oci://registry/shop/app", "provider": "AWS", "serviceAccountName": account}}});
    let git = |account: &str| json!({"source": {"git": {"url": "https://host/shop/a.git", "provider": "Azure", "serviceAccountName": account}}});
    let sops = |account: &str| json!({"decryption": {"sops": {"serviceAccountName": account}}});
    for (account, allowed) in [("deployer", true), ("admin", false)] {
        let mount = |of: &Value, kind: &str| json!({"source": {"git": {"url": "https://host/shop/a.git"}, "mounts": [{"path": "a", kind: of["source"][kind]}]}});
        let mounts = [mount(&oci(account), "oci"), mount(&git(account), "git")];
        for more in [oci(account), git(account), sops(account)].into_iter().chain(mounts) {
            let mut spec = spec("https://host/shop/a.git", "clusters/shop", "deployer");
            more.as_object().expect("fields").iter().for_each(|(field, value)| spec[field] = value.clone());
            let answer = create(release, who, "a", spec).await;
            assert_eq!(answer.is_ok(), allowed, "{more}: {answer:?}");
        }
    }
}

/// A Sync of a set is a Sync: whatever found its cluster, the Secret is judged.
async fn clusters_are_judged_by_their_secrets(release: &Release, who: (&str, &str)) {
    for (cluster, allowed) in [("east", true), ("far", false)] {
        let mut spec = spec("https://host/shop/a.git", "clusters/shop", "deployer");
        spec["cluster"] = json!({"secretRef": {"name": cluster}});
        let answer = create(release, who, "a", spec).await;
        assert_eq!(answer.is_ok(), allowed, "{cluster}: {answer:?}");
    }
}

/// The URL of a Notifier's service counts as that of a repository does.
async fn notifiers_are_judged_by_their_service(release: &Release, who: (&str, &str)) {
    for (url, allowed) in [("https://host/shop/hook", true), ("https://evil.example/hook", false)] {
        let notifier = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Notifier", "metadata": {"name": "a"},
            "spec": {"slack": {"url": url}, "transitions": ["Applied"]},
        });
        let request = http::Request::post(release.path("moorline.dev/v1alpha1", "notifiers?dryRun=All"))
            .header("Content-Type", "application/json")
            .header("Impersonate-User", who.0)
            .header("Impersonate-Group", who.1)
            .header("Impersonate-Group", "system:masters")
            .body(notifier.to_string().into_bytes())
            .expect("a literal request");
        let answer = release.admin.request_text(request).await;
        assert_eq!(answer.is_ok(), allowed, "{url}: {answer:?}");
    }
}

/// Every address of a SyncSet counts, wherever a generator has it; a path of an expression is any path, and a
/// cluster of a generator any cluster.
async fn sync_sets_are_judged_by_all_that_they_name(release: &Release, who: (&str, &str)) {
    let (good, evil) = ("https://host/shop/a.git", "https://evil.example/a.git");
    let git = |url: &str| json!({"git": {"url": url, "folders": {"include": ["*"]}}});
    let list = json!({"list": {"elements": [{"name": "a"}]}});
    let merge =
        |last: Value| json!({"merge": {"keys": ["name"], "generators": [list.clone(), list.clone(), last]}});
    let path = json!([{"field": "/spec/path", "value": "params.name"}]);
    let clusters = json!({"clusters": {"selector": {"matchLabels": {"env": "prod"}}}});
    let cluster = |value: &str| json!([{"field": "/spec/cluster/secretRef/name", "value": value}]);
    for (generator, url, account, set, allowed) in [
        (list.clone(), good, "deployer", json!([]), true),
        (list.clone(), evil, "deployer", json!([]), false),
        (list.clone(), good, "admin", json!([]), false),
        (list.clone(), good, "deployer", path, false),
        (git(good), good, "deployer", json!([]), true),
        (git(evil), good, "deployer", json!([]), false),
        (json!({"matrix": [list.clone(), git(good)]}), good, "deployer", json!([]), true),
        (json!({"matrix": [list.clone(), git(evil)]}), good, "deployer", json!([]), false),
        (merge(git(good)), good, "deployer", json!([]), true),
        (merge(git(evil)), good, "deployer", json!([]), false),
        (clusters.clone(), good, "deployer", json!([]), true),
        (clusters.clone(), good, "deployer", cluster("params.cluster.name"), false),
    ] {
        let sync_set = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet", "metadata": {"name": "a"},
            "spec": {
                "generators": [list, generator], "name": "params.name", "set": set, "serviceAccountName": account,
                "template": {"spec": {
                    "source": {"git": {"url": url}}, "path": "clusters/shop", "serviceAccountName": "deployer",
                }},
            },
        });
        let request = http::Request::post(release.path("moorline.dev/v1alpha1", "syncsets?dryRun=All"))
            .header("Content-Type", "application/json")
            .header("Impersonate-User", who.0)
            .header("Impersonate-Group", who.1)
            .header("Impersonate-Group", "system:masters")
            .body(sync_set.to_string().into_bytes())
            .expect("a literal request");
        let answer = release.admin.request_text(request).await;
        assert_eq!(answer.is_ok(), allowed, "{generator} {url} {account}: {answer:?}");
    }
}

/// Components that the Sync itself names must not lead out of its path, if paths are limited.
async fn components_stay_below_the_path(release: &Release, bob: (&str, &str), alice: (&str, &str)) {
    for (who, url, path, account, component, allowed) in [
        (bob, "https://host/shop/a.git", "clusters/shop", "deployer", "tls", true),
        (bob, "https://host/shop/a.git", "clusters/shop", "deployer", "./a..b", true),
        (bob, "https://host/shop/a.git", "clusters/shop", "deployer", "../other", false),
        (bob, "https://host/shop/a.git", "clusters/shop", "deployer", "tls/../../other", false),
        (alice, "https://host/one.git", "any", "", "../other", true),
    ] {
        let mut spec = spec(url, path, account);
        spec["render"]["kustomize"]["components"] = json!(["extra", component]);
        let answer = create(release, who, "a", spec).await;
        assert_eq!(answer.is_ok(), allowed, "{component}: {answer:?}");
        if let Err(refused) = answer {
            let expect = format!("the components \"extra\" and \"{component}\" and the ServiceAccount");
            assert!(refused.contains(&expect), "{refused}");
        }
    }
}

#[tokio::test]
async fn a_sync_that_no_rule_allows_is_refused() {
    let Some(release) = Release::new("admission").await else { return };
    let rules = json!([
        {"namespaces": [release.namespace], "groups": ["shop-team"], "urls": ["https://host/shop/", "oci://registry/shop/"],
         "paths": ["./clusters/shop/"], "serviceAccounts": ["deployer"], "clusters": ["", "east"]},
        {"users": ["alice"], "urls": ["https://host/one.git"], "serviceAccounts": [""]},
    ]);
    let values = json!({"admission": {"enabled": true, "rules": rules}}).to_string();
    let file = release.values_file(&values);
    release.helm(&["install", "moorline", release.chart(), "--values", &file]).expect("it is installed");
    let (bob, alice) = (("bob", "shop-team"), ("alice", "other-team"));
    let evil = spec("https://elsewhere/evil.git", "clusters/shop", "deployer");
    until("the policy is in force", async || {
        create(&release, bob, "probe", evil.clone()).await.is_err().then_some(())
    })
    .await;

    let refused = create(&release, bob, "a", evil).await.expect_err("it is refused");
    let expect = format!(
        "no rule of the chart value admission.rules lets bob have a Sync of https://elsewhere/evil.git with the path \
         \"clusters/shop\" and the ServiceAccount \"deployer\" in {}",
        release.namespace
    );
    assert!(refused.ends_with(&expect), "{refused}");
    for (who, url, path, account, allowed) in [
        (bob, "https://host/shop/a.git", "clusters/shop", "deployer", true),
        (bob, "https://host/shop/a.git", "./clusters/shop/web", "deployer", true),
        (bob, "https://host/shop/a.git", "./clusters/shopping", "deployer", false),
        (bob, "https://host/shop/a.git", "", "deployer", false),
        (bob, "https://host/shop/a.git", "clusters/shop", "", false),
        (bob, "https://host/shop/a.git", "clusters/shop", "admin", false),
        (bob, "https://host/shopping/a.git", "clusters/shop", "deployer", false),
        (bob, "https://host/shop/../evil.git", "clusters/shop", "deployer", false),
        (bob, "https://host/shop/.%2e/evil.git", "clusters/shop", "deployer", false),
        (bob, "https://host/shop/..%2Fevil.git", "clusters/shop", "deployer", false),
        (bob, "https://host/one.git", "", "", false),
        (alice, "https://host/one.git", "", "", true),
        (alice, "https://host/one.git", "any", "", true),
        (alice, "https://host/one.git", "", "deployer", false),
        (alice, "https://host/one.git/more", "", "", false),
        (alice, "https://host/shop/a.git", "clusters/shop", "deployer", false),
    ] {
        let answer = create(&release, who, "a", spec(url, path, account)).await;
        assert_eq!(answer.is_ok(), allowed, "{who:?} {url} {path} {account}: {answer:?}");
    }
    charts_are_judged_as_repositories(&release, bob).await;
    artifacts_are_judged_as_repositories(&release, bob).await;
    mounts_are_judged_as_repositories(&release, bob).await;
    identities_are_judged_as_accounts(&release, bob).await;
    components_stay_below_the_path(&release, bob, alice).await;
    clusters_are_judged_by_their_secrets(&release, bob).await;
    notifiers_are_judged_by_their_service(&release, bob).await;
    sync_sets_are_judged_by_all_that_they_name(&release, bob).await;
    others_may_only_label(&release).await;
    release.helm(&["uninstall", "moorline"]).expect("it is uninstalled");
    until("the policy is in force no more", async || {
        create(&release, bob, "probe", spec("https://elsewhere/evil.git", "", "")).await.ok()
    })
    .await;
    release.end().await;
}

/// The fields of a Sync's spec that hold an address, by what they are called and what is said of them.
fn addresses(schema: &Value, path: &str, found: &mut Vec<String>) {
    let name = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_called = ["url", "uri", "host", "endpoint", "registry", "server", "address", "repository"]
        .iter()
        .any(|word| name.contains(word));
    let says = schema["x-kubernetes-validations"].to_string() + &schema["pattern"].to_string();
    let description = schema["description"].as_str().unwrap_or_default();
    let is_text = schema["type"] == "string";
    // A rule may be there to refuse addresses, and a word of them is none.
    if is_text && (is_called || says.contains("://host") || description.contains("`https://")) {
        found.push(path.to_owned());
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        addresses(inner, &format!("{path}.{name}"), found);
    }
    for part in ["items", "additionalProperties"] {
        if schema[part].is_object() {
            addresses(&schema[part], path, found);
        }
    }
}

#[test]
fn every_address_in_a_sync_is_judged() {
    let definition = moorline::api::definition().expect("the definition");
    let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut found = Vec::new();
    addresses(spec, "object.spec", &mut found);
    // An issuer is compared with a certificate; nobody contacts it.
    found.retain(|field| !field.ends_with(".keyless.issuer"));
    found.sort();
    let expect = [
        "object.spec.render.helm.chart.url",
        "object.spec.source.git.url",
        "object.spec.source.mounts.git.url",
        "object.spec.source.mounts.oci.url",
        "object.spec.source.oci.url",
    ];
    assert_eq!(found, expect);
    let policy = super::programs::text("charts/moorline/templates/admission.yaml");
    let definition = moorline::api::notifier_definition().expect("the definition");
    let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let before = found.len();
    addresses(spec, "object.spec", &mut found);
    assert_eq!(found.len() - before, 8, "{found:?}");
    for field in found {
        let read = match field.strip_prefix("object.spec.source.mounts.") {
            Some(inner) => format!("mount.{inner}"),
            None => format!("[{field}]"),
        };
        assert!(policy.contains(&read), "the policy does not judge {field}");
    }
}
