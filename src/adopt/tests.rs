//! Tables: the Sync that is made of an Application and of a Kustomization.

use super::*;

/// An old resource with nothing beside it.
pub(super) fn old(tool: Tool, body: &Value) -> OldResource<'_> {
    OldResource {
        tool,
        body,
        repository: None,
        included: &[],
        generator: None,
        chart: None,
        chart_source: None,
        parent: None,
        application_set: None,
        adopted: BTreeMap::new(),
    }
}

pub(super) fn wanted(secret: Option<&str>) -> RequestedSync {
    RequestedSync { sync: SyncName::new("moorline", "shop"), secret: secret.map(str::to_owned) }
}

pub(super) fn fields(remarks: &[FieldRemark]) -> Vec<&str> {
    remarks.iter().map(|remark| &*remark.field).collect()
}

fn application(spec: Value) -> Value {
    json!({"metadata": {"name": "shop", "namespace": "argocd"}, "spec": spec})
}

fn argo(spec: Value) -> Adoption {
    let body = application(spec);
    let old = old(Tool::ArgoCd, &body);
    adopt(&old, &wanted(None))
}

/// An Application with a complete source, plus these fields.
fn plain(more: Value) -> Value {
    let mut spec = json!({"source": {"repoURL": "https://example.com/shop.git", "path": "prod"}});
    for (field, value) in more.as_object().into_iter().flatten() {
        match (field.as_str(), value.as_object()) {
            ("source", Some(inner)) => {
                inner.iter().for_each(|(name, value)| spec["source"][name] = value.clone());
            }
            _ => spec[field] = value.clone(),
        }
    }
    spec
}

#[test]
fn an_application_is_a_sync() {
    let found = argo(json!({
        "project": "default",
        "source": {"repoURL": "https://example.com/shop.git", "path": "clusters/prod", "targetRevision": "main",
            "directory": {"recurse": true, "exclude": "{*.md,docs/*}"}},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "shop"},
        "syncPolicy": {"automated": {"prune": true, "selfHeal": true}, "syncOptions": [
            "CreateNamespace=true", "ServerSideApply=true", "PruneLast=true", "Validate = false",
        ]},
        "ignoreDifferences": [
            {"group": "apps", "kind": "Deployment", "jsonPointers": ["/spec/replicas", "/metadata"]},
            {"group": "*", "kind": "*", "managedFieldsManagers": ["robot"], "jqPathExpressions": [".spec.paused"]},
            {"kind": "ConfigMap", "name": "a", "namespace": "shop", "jqPathExpressions": [".data[]"]},
        ],
    }));
    assert_eq!(found.refused, []);
    let expect = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync",
        "metadata": {"name": "shop", "namespace": "moorline", "annotations": {
            "moorline.dev/adopted-from": "argoproj.io/Application|argocd/shop",
        }},
        "spec": {
            "source": {"git": {"url": "https://example.com/shop.git", "ref": {"branch": "main"}}},
            "path": "./clusters/prod",
            "render": {"plain": {"recurse": true, "exclude": ["**/*.md", "docs/**/*"]}},
            "targetNamespace": "shop", "createNamespace": true,
            "prune": {"enabled": true}, "drift": {"mode": "Repair"},
            "ignoreFields": [
                {"target": {"group": "apps", "kind": "Deployment"}, "paths": ["/spec/replicas"]},
                {"target": {}, "paths": ["/spec/paused"]},
            ],
        },
    });
    assert_eq!(found.sync, expect);
    assert_eq!(
        fields(&found.lost),
        [
            "spec.syncPolicy.syncOptions: Validate=false",
            "spec.ignoreDifferences[0]",
            "spec.ignoreDifferences[1].managedFieldsManagers",
            "spec.ignoreDifferences[2].jqPathExpressions",
        ]
    );
}

#[test]
fn a_sync_policy_says_how_much_is_done() {
    let check = |policy: Value, prune: bool, mode: &str, lost: &[&str]| {
        let found = argo(plain(json!({"syncPolicy": policy})));
        let spec = &found.sync["spec"];
        assert_eq!((&spec["prune"]["enabled"], &spec["drift"]["mode"]), (&json!(prune), &json!(mode)));
        assert_eq!(fields(&found.lost), lost, "{policy}");
    };
    check(json!({"automated": {}}), false, "Report", &[]);
    check(json!({"automated": {"selfHeal": true}}), false, "Repair", &[]);
    check(json!({"automated": {"prune": true}}), true, "Report", &[]);
    let options = json!(["Prune=false", "Replace=true"]);
    let lost = ["spec.syncPolicy.syncOptions: Replace=true"];
    check(json!({"automated": {"prune": true}, "syncOptions": options}), false, "Report", &lost);
    for by_hand in
        [json!({}), json!({"automated": null}), json!({"automated": {"enabled": false, "selfHeal": true}})]
    {
        check(by_hand, false, "Report", &["spec.syncPolicy.automated"]);
    }
    let confirmed =
        argo(plain(json!({"syncPolicy": {"automated": {"prune": true}, "syncOptions": ["Prune=confirm"]}})));
    assert_eq!(confirmed.sync["spec"]["prune"], json!({"enabled": true, "budget": {"count": 0}}));
}

#[test]
fn a_revision_is_of_one_kind() {
    let commit = "1f0c".repeat(10);
    for (revision, expect) in [
        ("", Value::Null),
        ("HEAD", Value::Null),
        ("main", json!({"branch": "main"})),
        ("release/1.2", json!({"branch": "release/1.2"})),
        ("v1.2.0", json!({"tag": "v1.2.0"})),
        ("1.x", json!({"semver": "1.x"})),
        (">=1.2.0 <2.0.0", json!({"semver": ">=1.2.0 <2.0.0"})),
        (&commit, json!({"commit": commit})),
    ] {
        let found = argo(plain(json!({"source": {"targetRevision": revision}})));
        assert_eq!(found.sync["spec"]["source"]["git"]["ref"], expect, "{revision}");
    }
}

#[test]
fn a_chart_is_rendered_with_the_same() {
    let check = |helm: Value, expect: Value| {
        let found = argo(plain(json!({"source": {"helm": helm}})));
        assert_eq!(
            (&*found.refused, fields(&found.lost)),
            (&[][..], vec!["spec.syncPolicy.automated"]),
            "{helm}"
        );
        assert_eq!(found.sync["spec"]["render"]["type"], "Helm");
        assert_eq!(found.sync["spec"]["render"]["helm"], expect, "{helm}");
    };
    check(json!({"releaseName": "front"}), json!({"releaseName": "front"}));
    check(
        json!({"version": "v3", "values": "a: {b: 0644}\n"}),
        json!({"releaseName": "shop", "values": {"a": {"b": 420}}}),
    );
    check(
        json!({"valuesObject": {"a": 1}, "values": "a: 2", "valueFiles": ["prod.yaml", "/all.yaml"], "skipCrds": true,
            "namespace": "shop", "kubeVersion": "1.33", "skipTests": true}),
        json!({"releaseName": "shop", "values": {"a": 1}, "valuesFiles": ["prod.yaml", "/all.yaml"], "skipCrds": true,
            "namespace": "shop", "kubeVersion": "1.33"}),
    );
    let parameters = json!([{"name": "a.b", "value": "2"}, {"name": "c\\.d", "value": "true", "forceString": true},
        {"name": "a.b", "value": "3"}]);
    check(
        json!({"values": "a: {x: 1}", "parameters": parameters}),
        json!({"releaseName": "shop", "values": {"a": {"x": 1, "b": 3}, "c.d": "true"}}),
    );
    let none = argo(plain(json!({"source": {"helm": {"values": ""}}})));
    assert_eq!(none.sync["spec"]["render"], json!({"plain": {"recurse": false}}));
}

#[test]
fn what_would_be_other_objects_is_refused() {
    for (spec, refused) in [
        (
            json!({"source": {"helm": {"parameters": [{"name": "a[0]", "value": "planted"}]}}}),
            "spec.source.helm.parameters[0]",
        ),
        (
            json!({"source": {"helm": {"values": "a: 1", "parameters": [{"name": "a.b", "value": "planted"}]}}}),
            "spec.source.helm.parameters[0]",
        ),
        (
            json!({"source": {"helm": {"fileParameters": [{"name": "a", "path": "planted"}]}}}),
            "spec.source.helm.fileParameters",
        ),
        (json!({"source": {"helm": {"values": "[planted"}}}), "spec.source.helm.values"),
        (
            json!({"source": {"helm": {"valueFiles": ["https://example.com/planted"]}}}),
            "spec.source.helm.valueFiles",
        ),
        (json!({"source": {"helm": {"valueFiles": ["$values/a.yaml"]}}}), "spec.source.helm.valueFiles"),
        (
            json!({"source": {"kustomize": {"commonLabels": {"a": "b"}}}}),
            "spec.source.kustomize.commonLabels",
        ),
        (
            json!({"source": {"kustomize": {"commonLabels": {"a": "$ARGOCD_APP_NAME"}, "labelWithoutSelector": true}}}),
            "spec.source.kustomize.commonLabels",
        ),
        (
            json!({"source": {"kustomize": {"commonAnnotations": {"a": "${ARGOCD_APP_NAME}"}, "commonAnnotationsEnvsubst": true}}}),
            "spec.source.kustomize.commonAnnotations",
        ),
        (
            json!({"source": {"kustomize": {"labelIncludeTemplates": true}}}),
            "spec.source.kustomize.labelIncludeTemplates",
        ),
        (json!({"source": {"kustomize": {"kubeVersion": "1.33"}}}), "spec.source.kustomize.kubeVersion"),
        (json!({"source": {"kustomize": {"images": ["web=*:2"]}}}), "spec.source.kustomize.images[0]"),
        (
            json!({"source": {"kustomize": {"patches": [{"path": "a.yaml"}]}}}),
            "spec.source.kustomize.patches[0].path",
        ),
        (
            json!({"source": {"kustomize": {"patches": [{"patch": "a", "options": {"allowNameChange": true}}]}}}),
            "spec.source.kustomize.patches[0].options",
        ),
        (
            json!({"source": {"kustomize": {"replicas": [{"name": "web", "count": "many"}]}}}),
            "spec.source.kustomize.replicas[0]",
        ),
        (json!({"source": {"plugin": {"name": "a"}}}), "spec.source.plugin"),
        (
            json!({"source": {"directory": {"jsonnet": {"tlas": [{"name": "a"}]}}}}),
            "spec.source.directory.jsonnet",
        ),
        (json!({"source": {"directory": {"include": "{a,{b}}"}}}), "spec.source.directory.include"),
        (json!({"sources": [{"repoURL": "a"}, {"repoURL": "b"}]}), "spec.sources"),
        (json!({"destination": {"server": "https://example.com"}}), "spec.destination.server"),
        (json!({"destination": {"name": "other"}}), "spec.destination.name"),
        (json!({"source": {"repoURL": "git@example.com:a/b.git"}}), "spec.source.repoURL"),
        (json!({"source": {"repoURL": "https://me:planted@example.com/a"}}), "spec.source.repoURL"),
    ] {
        let found = argo(plain(spec.clone()));
        assert_eq!(found.refused.first().map(|it| &*it.field), Some(refused), "{spec}");
        let told = format!("{:?}{:?}{}", found.refused, found.lost, found.sync);
        assert!(!told.contains("planted"), "{told}");
    }
    // A field that is not set refuses nothing.
    let empty = json!({"source": {"helm": {}, "kustomize": {"images": []}, "directory": {"jsonnet": {}}}});
    assert_eq!(argo(plain(empty)).refused, []);
}

#[test]
fn who_would_set_it_going_again_is_named() {
    let mut body = application(plain(json!({})));
    body["metadata"]["ownerReferences"] = json!([{"kind": "ApplicationSet", "name": "all"}]);
    let check = |maker: Option<Value>, expect: usize| {
        let old = OldResource { application_set: maker.as_ref(), ..old(Tool::ArgoCd, &body) };
        assert_eq!(adopt(&old, &wanted(None)).refused.len(), expect, "{maker:?}");
    };
    check(None, 1);
    check(Some(json!({"spec": {}})), 1);
    check(Some(json!({"spec": {"syncPolicy": {"applicationsSync": "create-only"}}})), 0);
}

#[test]
fn who_applies_an_application_is_named_and_may_not_put_finalizers_back() {
    let mut body = application(plain(json!({})));
    let check = |body: &Value, refused: usize, by: Option<&str>| {
        let old = old(Tool::ArgoCd, body);
        let found = adopt(&old, &wanted(None));
        let lost: Vec<&FieldRemark> =
            found.lost.iter().filter(|it| &*it.field == "metadata.annotations").collect();
        assert_eq!((found.refused.len(), lost.len()), (refused, usize::from(by.is_some())), "{body}");
        assert!(by.is_none_or(|by| lost[0].why.starts_with(&format!("{by} applies this one"))), "{lost:?}");
    };
    body["metadata"]["finalizers"] = json!(["resources-finalizer.argocd.argoproj.io"]);
    check(&body, 0, None);
    let tracked = |id: &str| json!({"argocd.argoproj.io/tracking-id": id});
    // A copy carries the tracking id of the original.
    body["metadata"]["annotations"] = tracked("apps:argoproj.io/Application:argocd/original");
    check(&body, 0, None);
    body["metadata"]["annotations"] = tracked("apps:argoproj.io/Application:argocd/shop");
    check(&body, 1, Some("the Application apps"));
    body["metadata"]["finalizers"] = json!(["example.com/other"]);
    check(&body, 0, Some("the Application apps"));
    body["metadata"]["annotations"] = json!({});
    for (label, value, by) in [
        ("app.kubernetes.io/instance", "apps", Some("the Application apps")),
        ("app.kubernetes.io/instance", "shop", None),
        ("kustomize.toolkit.fluxcd.io/name", "cluster", Some("the Kustomization cluster")),
        ("moorline.dev/sync", "moorline.apps", Some("the Sync moorline.apps")),
    ] {
        body["metadata"]["labels"] = json!({label: value});
        check(&body, 0, by);
    }
}

#[test]
fn fields_that_nobody_knows_here_are_named() {
    let found = argo(plain(json!({"novel": "a", "empty": {}, "source": {"novel": true}})));
    assert_eq!(fields(&found.lost), ["spec.source.novel", "spec.syncPolicy.automated", "spec.novel"]);
    let newer = Some(repository("flux-system", json!({"novel": 1})));
    let found = flux_with(json!({"novel": ["a"]}), newer, None);
    assert_eq!(fields(&found.lost), ["GitRepository spec.novel", "spec.novel", "spec.deletionPolicy"]);
}

#[test]
fn a_kustomization_that_its_parent_runs_is_refused() {
    let check = |operation: &str, suspend: Value, refused: &[&str]| {
        let mut body = kustomization(json!({"suspend": suspend}));
        body["metadata"]["labels"] = json!({"kustomize.toolkit.fluxcd.io/name": "cluster"});
        body["metadata"]["managedFields"] = json!([{"manager": "kustomize-controller", "operation": operation,
            "fieldsV1": {"f:spec": {"f:suspend": {}}}}]);
        let repository = repository("flux-system", json!({}));
        let old = OldResource { repository: Some(&repository), ..old(Tool::Flux, &body) };
        let found = adopt(&old, &wanted(None));
        assert_eq!(fields(&found.refused), refused, "{operation} {suspend}");
        assert!(fields(&found.lost).contains(&"metadata.labels"));
    };
    check("Apply", json!(false), &["spec.suspend"]);
    check("Apply", json!(true), &[]);
    check("Update", json!(false), &[]);
}

fn repository(namespace: &str, spec: Value) -> Value {
    let mut whole = json!({"metadata": {"name": "shop", "namespace": namespace},
        "spec": {"url": "https://example.com/shop.git", "interval": "1m0s"}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        whole["spec"][field] = value.clone();
    }
    whole
}

fn kustomization(spec: Value) -> Value {
    let mut whole = json!({"metadata": {"name": "shop", "namespace": "flux-system"},
        "spec": {"sourceRef": {"kind": "GitRepository", "name": "shop"}, "prune": true, "interval": "10m"}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        whole["spec"][field] = value.clone();
    }
    whole
}

fn flux_with(spec: Value, repository: Option<Value>, secret: Option<&str>) -> Adoption {
    let body = kustomization(spec);
    let infra = ("flux-system".to_owned(), "infra".to_owned());
    let old = OldResource {
        repository: repository.as_ref(),
        adopted: BTreeMap::from([(infra, SyncName::new("moorline", "base"))]),
        ..old(Tool::Flux, &body)
    };
    adopt(&old, &wanted(secret))
}

#[test]
fn a_kustomization_is_a_sync() {
    let found = flux_with(
        json!({
            "path": "./clusters/prod", "targetNamespace": "shop", "timeout": "2m", "wait": true,
            "serviceAccountName": "deployer", "force": true, "suspend": true,
            "dependsOn": [{"name": "infra"}],
            "ignore": [{"paths": ["/spec/replicas"], "target": {"kind": "Deployment", "name": "web.*"}},
                {"paths": ["/spec/replicas"], "target": {"kind": "Deployment", "group": "apps"}}],
        }),
        Some(repository(
            "flux-system",
            json!({"ref": {"branch": "main", "tag": "v1"}, "recurseSubmodules": true,
            "secretRef": {"name": "login"}, "verify": {"mode": "Tag", "secretRef": {"name": "keys"}}}),
        )),
        Some("shop-login"),
    );
    assert_eq!(found.refused, []);
    let expect = json!({
        "source": {"git": {
            "url": "https://example.com/shop.git", "ref": {"tag": "v1"}, "submodules": true,
            "secretRef": {"name": "shop-login"}, "verify": {"mode": "Tag", "secretRef": {"name": "keys"}},
        }},
        "path": "./clusters/prod", "targetNamespace": "shop", "prune": {"enabled": true}, "suspend": true,
        "interval": "1m", "timeout": "2m", "health": {"wait": true, "timeout": "2m"},
        "serviceAccountName": "deployer", "dependsOn": [{"name": "base"}], "render": {"kustomize": {"namespace": "shop"}},
        "ignoreFields": [{"target": {"kind": "Deployment", "group": "apps"}, "paths": ["/spec/replicas"]}],
    });
    assert_eq!(found.sync["spec"], expect);
    let from = "kustomize.toolkit.fluxcd.io/Kustomization|flux-system/shop";
    assert_eq!(found.sync["metadata"]["annotations"][ADOPTED_FROM_ANNOTATION], from);
    assert_eq!(
        fields(&found.lost),
        [
            "GitRepository spec.verify",
            "spec.force",
            "spec.serviceAccountName",
            "spec.ignore[0].name",
            "spec.deletionPolicy",
        ]
    );
}

#[test]
fn a_git_repository_says_which_revision() {
    for (reference, expect) in [
        (Value::Null, json!({"branch": "master"})),
        (json!({"branch": "main"}), json!({"branch": "main"})),
        (json!({"tag": "v1", "semver": "1.x"}), json!({"semver": "1.x"})),
        (json!({"semver": "1.x", "name": "refs/tags/v2"}), json!({"tag": "v2"})),
        (json!({"name": "refs/heads/main"}), json!({"branch": "main"})),
        (json!({"name": "refs/heads/main", "commit": "1f"}), json!({"commit": "1f"})),
    ] {
        let found = flux_with(json!({}), Some(repository("flux-system", json!({"ref": reference}))), None);
        assert_eq!(found.sync["spec"]["source"]["git"]["ref"], expect, "{reference}");
    }
    let request = json!({"ref": {"name": "refs/pull/1/head"}});
    let found = flux_with(json!({}), Some(repository("flux-system", request)), None);
    assert_eq!(fields(&found.refused), ["GitRepository spec.ref.name"]);
}

#[test]
fn variables_are_carried_over_and_their_objects_named() {
    let from = json!([{"kind": "ConfigMap", "name": "settings"}, {"kind": "Secret", "name": "keys", "optional": true}]);
    let build = json!({"substitute": {"A": "b"}, "substituteFrom": from, "novel": true});
    let of = |build: Value| {
        flux_with(json!({"postBuild": build}), Some(repository("flux-system", json!({}))), None)
    };
    let found = of(build);
    assert_eq!(found.refused, []);
    let expect = json!({"kustomize": {}, "substitute": {"vars": {"A": "b"}, "from": from}});
    assert_eq!(found.sync["spec"]["render"], expect);
    let lost = ["spec.postBuild.novel", "spec.postBuild.substituteFrom", "spec.postBuild"];
    assert_eq!(fields(&found.lost)[..3], lost);
    assert!(found.lost[1].why.contains("copy ConfigMap settings, Secret keys from flux-system"));
    assert!(found.lost[2].why.contains("a variable without a value is an error here"));
    let always = of(json!({"substituteStrategy": "Always"}));
    assert_eq!(always.sync["spec"]["render"], json!({"kustomize": {}, "substitute": {}}));
    for nothing in [json!({}), json!({"substitute": {}}), json!({"substituteStrategy": "WithVariables"})] {
        assert_eq!(of(nothing).sync["spec"]["render"], json!({"kustomize": {}}));
    }
}

#[test]
fn the_secret_with_the_keys_is_carried_over() {
    let decryption = json!({"provider": "sops", "secretRef": {"name": "sops-age"}});
    let found =
        flux_with(json!({"decryption": decryption}), Some(repository("flux-system", json!({}))), None);
    assert_eq!(found.sync["spec"]["decryption"], json!({"sops": {"secretRef": {"name": "sops-age"}}}));
    let copied =
        found.lost.iter().find(|lost| &*lost.field == "spec.decryption.secretRef").expect("it is named");
    assert!(copied.why.contains("copy Secret sops-age from flux-system"), "{}", copied.why);
    let decryption = json!({"provider": "sops", "serviceAccountName": "decrypter"});
    let found =
        flux_with(json!({"decryption": decryption}), Some(repository("flux-system", json!({}))), None);
    assert_eq!(found.sync["spec"]["decryption"], json!({"sops": {"serviceAccountName": "decrypter"}}));
}

#[test]
fn what_flux_renders_otherwise_is_refused() {
    for (spec, refused) in [
        (json!({"decryption": {"provider": "sops"}}), "spec.decryption"),
        (json!({"decryption": {"provider": "other"}}), "spec.decryption.provider"),
        (json!({"kubeConfig": {"secretRef": {"name": "a"}}}), "spec.kubeConfig"),
        (json!({"images": [{"name": "a"}]}), "spec.images[0]"),
        (
            json!({"commonMetadata": {"annotations": {"a": "${B}"}}, "postBuild": {"substitute": {"B": "c"}}}),
            "spec.commonMetadata.annotations",
        ),
        (json!({"dependsOn": [{"name": "other"}]}), "spec.dependsOn[0]"),
        (json!({"sourceRef": {"kind": "Bucket", "name": "a"}}), "spec.sourceRef"),
    ] {
        let found = flux_with(spec.clone(), Some(repository("flux-system", json!({}))), None);
        assert_eq!(fields(&found.refused), [refused], "{spec}");
    }
    for (spec, refused) in [
        (json!({"include": [{"repository": {"name": "a"}}]}), "GitRepository spec.include[0]"),
        (json!({"ignore": "/docs"}), "GitRepository spec.ignore"),
        (json!({"secretRef": {"name": "a"}}), "GitRepository spec.url"),
        (json!({"provider": "github"}), "GitRepository spec.provider"),
        (json!({"provider": "gcp"}), "GitRepository spec.provider"),
    ] {
        let found = flux_with(json!({}), Some(repository("flux-system", spec.clone())), None);
        assert_eq!(fields(&found.refused), [refused], "{spec}");
    }
    assert_eq!(fields(&flux_with(json!({}), None, None).refused), ["spec.sourceRef"]);
}

#[test]
fn a_secret_that_is_near_is_read_as_it_is() {
    let near = repository("moorline", json!({"secretRef": {"name": "login"}}));
    let found = flux_with(json!({}), Some(near), None);
    assert_eq!(found.refused, []);
    assert_eq!(found.sync["spec"]["source"]["git"]["secretRef"], json!({"name": "login"}));
}

#[test]
fn options_of_flux_are_options_of_the_sync() {
    let spec = json!({
        "namePrefix": "a-", "nameSuffix": "-b", "targetNamespace": "shop",
        "patches": [{"patch": "- {op: remove, path: /a}", "target": {"kind": "Deployment", "name": "web"}}, {"patch": "kind: A"}],
        "images": [{"name": "web", "newName": "other", "newTag": "2"}, {"name": "api", "digest": "sha256:0"}],
        "components": ["../tls"], "ignoreMissingComponents": true,
        "commonMetadata": {"labels": {"team": "shop"}, "annotations": {"note": "a b"}},
    });
    let found = flux_with(spec.clone(), Some(repository("flux-system", json!({}))), None);
    assert_eq!(found.refused, []);
    let expect = json!({
        "namePrefix": "a-", "nameSuffix": "-b", "namespace": "shop", "patches": spec["patches"], "images": spec["images"],
        "components": ["../tls"], "labels": {"team": "shop"}, "annotations": {"note": "a b"},
    });
    assert_eq!(found.sync["spec"]["render"], json!({"kustomize": expect}));
    assert_eq!(fields(&found.lost), ["spec.ignoreMissingComponents", "spec.deletionPolicy"]);
}

#[test]
fn options_of_argo_cd_are_options_of_the_sync() {
    let target = json!({"kind": "Deployment"});
    let found = argo(plain(json!({"source": {"kustomize": {
        "namePrefix": "a-", "nameSuffix": "-b", "namespace": "shop", "version": "v5.3.0",
        "images": ["web:2", "registry.example.com:5000/api=other@sha256:0", "old=new", "host:5000/tool=host:5000/tool:3"],
        "commonLabels": {"team": "shop"}, "labelWithoutSelector": true, "forceCommonLabels": true,
        "patches": [{"patch": "kind: A", "target": target}], "components": ["../tls"],
        "replicas": [{"name": "web.v1", "count": 3}, {"name": "api", "count": "2"}],
    }}})));
    assert_eq!(found.refused, []);
    let scaled = |count: i64| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Any","metadata":{{"name":"any"}},"spec":{{"replicas":{count}}}}}"#
        )
    };
    let kinds = "Deployment|ReplicaSet|ReplicationController|StatefulSet";
    let expect = json!({
        "namePrefix": "a-", "nameSuffix": "-b", "namespace": "shop", "components": ["../tls"], "labels": {"team": "shop"},
        "images": [
            {"name": "web", "newTag": "2"},
            {"name": "registry.example.com:5000/api", "newName": "other", "digest": "sha256:0"},
            {"name": "old", "newName": "new"},
            {"name": "host:5000/tool", "newName": "host:5000/tool", "newTag": "3"},
        ],
        "patches": [
            {"patch": "kind: A", "target": target},
            {"patch": scaled(3), "target": {"kind": kinds, "name": "web[.]v1"}},
            {"patch": scaled(2), "target": {"kind": kinds, "name": "api"}},
        ],
    });
    assert_eq!(found.sync["spec"]["render"]["type"], "Kustomize");
    assert_eq!(found.sync["spec"]["render"]["kustomize"], expect);
    assert_eq!(fields(&found.lost), ["spec.source.kustomize.version", "spec.syncPolicy.automated"]);
}

/// Renders a folder with the options of an adopted Sync, or with those of a kustomization.
fn objects_of(files: &[(&str, &str)], sync: Option<&Value>) -> Vec<Value> {
    let spec = sync.cloned().unwrap_or_default();
    let spec: crate::api::RenderSpec =
        serde_json::from_value(spec["spec"]["render"].clone()).unwrap_or_default();
    let kustomize = crate::controller::spec::kustomize_options(&spec).unwrap();
    let options = crate::render::RenderOptions { kustomize, ..Default::default() };
    match crate::render::render(&crate::tree::FileTree::from_texts(files.iter().copied()), &options) {
        crate::render::Rendered::Complete(complete) => {
            complete.objects().iter().map(|object| Value::Object(object.object().body)).collect()
        }
        crate::render::Rendered::Incomplete(incomplete) => panic!("{:?}", incomplete.problems),
    }
}

#[test]
fn annotations_and_replicas_of_argo_cd_change_the_same_fields_as_kustomize() {
    let workloads = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {metadata: {labels: {a: b}}}}\n---\n\
         apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: night}\nspec: {jobTemplate: {spec: {template: {spec: {}}}}}\n---\n\
         apiVersion: v1\nkind: Service\nmetadata: {name: web, annotations: {note: old}}\n";
    let found = argo(plain(json!({"source": {"kustomize": {
        "commonAnnotations": {"note": "$5"}, "replicas": [{"name": "web", "count": 3}],
    }}})));
    assert_eq!(found.refused, []);
    let plain = [("all.yaml", workloads), ("kustomization.yaml", "resources: [all.yaml]\n")];
    let written = "resources: [all.yaml]\ncommonAnnotations: {note: $5}\nreplicas: [{name: web, count: 3}]\n";
    let written = [("all.yaml", workloads), ("kustomization.yaml", written)];
    assert_eq!(objects_of(&plain, Some(&found.sync)), objects_of(&written, None));
}
