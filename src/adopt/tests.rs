//! Tables: the Sync that is made of an Application and of a Kustomization.

mod flux;
mod kustomize;

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
