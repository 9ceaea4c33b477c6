//! Tables: the Sync that is made of a HelmRelease.

use super::tests::old;
use super::*;

fn source(kind: &str, spec: Value) -> Value {
    json!({"kind": kind, "metadata": {"name": "charts", "namespace": "flux-system"}, "spec": spec})
}

/// A HelmRelease with these fields beside its chart.
fn release(spec: Value) -> Value {
    let mut whole = json!({
        "metadata": {"name": "shop", "namespace": "team"},
        "spec": {"interval": "10m", "chart": {"spec": {"chart": "web", "version": "1.x",
            "sourceRef": {"kind": "HelmRepository", "name": "charts", "namespace": "flux-system"}}}},
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        whole["spec"][field] = value.clone();
    }
    whole
}

fn converted(body: &Value, chart_source: &Value, has_parent: bool) -> Adoption {
    let repository = json!({"metadata": {"name": "fleet", "namespace": "flux-system"},
        "spec": {"url": "https://example.com/fleet.git", "ref": {"branch": "main"}, "interval": "1m0s"}});
    let parent = json!({"metadata": {"name": "apps", "namespace": "flux-system"},
        "spec": {"path": "./apps", "sourceRef": {"kind": "GitRepository", "name": "fleet"}}});
    let infra = ("team".to_owned(), "infra".to_owned());
    let old = OldResource {
        repository: Some(&repository),
        chart_source: Some(chart_source),
        parent: has_parent.then_some(&parent),
        adopted: BTreeMap::from([(infra, SyncName::new("team", "base"))]),
        ..old(Tool::FluxHelm, body)
    };
    adopt(&old, &RequestedSync { sync: SyncName::new("team", "shop"), secret: None })
}

fn fields(remarks: &[FieldRemark]) -> Vec<&str> {
    remarks.iter().map(|remark| &*remark.field).collect()
}

#[test]
fn a_release_of_a_published_chart_is_a_sync() {
    let mut body = release(json!({
        "releaseName": "front", "targetNamespace": "shop", "timeout": "2m", "serviceAccountName": "deployer",
        "dependsOn": [{"name": "infra"}],
        "values": {"replicas": 2},
        "valuesFrom": [
            {"kind": "ConfigMap", "name": "all"},
            {"kind": "Secret", "name": "db", "valuesKey": "password", "targetPath": "db.password", "optional": true},
        ],
        "install": {"createNamespace": true, "crds": "CreateReplace"},
        "upgrade": {"crds": "CreateReplace", "remediation": {"retries": 3}},
        "driftDetection": {"mode": "enabled", "ignore": [{"paths": ["/spec/replicas"], "target": {"kind": "Deployment"}}]},
    }));
    body["status"] = json!({"history": [{"name": "front", "version": 7}]});
    let source = source(
        "HelmRepository",
        json!({"url": "https://charts.example.com/", "interval": "5m",
        "secretRef": {"name": "login"}}),
    );
    let found = converted(&body, &source, true);
    assert_eq!(found.refused, []);
    assert_eq!(
        found.sync["spec"],
        json!({
            "source": {"git": {"url": "https://example.com/fleet.git", "ref": {"branch": "main"}}},
            "path": "./apps", "interval": "1m", "timeout": "2m", "targetNamespace": "shop", "createNamespace": true,
            "serviceAccountName": "deployer", "dependsOn": [{"name": "base"}],
            "render": {"type": "Helm", "helm": {
                "chart": {"url": "https://charts.example.com", "name": "web", "version": "1.x", "secretRef": {"name": "login"}},
                "releaseName": "front", "isUpgrade": true, "values": {"replicas": 2},
                "valuesFrom": [{"kind": "ConfigMap", "name": "all"},
                    {"kind": "Secret", "name": "db", "key": "password", "targetPath": "db.password", "optional": true}],
            }},
            "health": {"wait": true}, "rollback": {"onFailure": true}, "drift": {"mode": "Repair"},
            "ignoreFields": [{"target": {"kind": "Deployment"}, "paths": ["/spec/replicas"]}],
        })
    );
    assert_eq!(
        found.sync["metadata"]["annotations"][ADOPTED_FROM_ANNOTATION],
        "helm.toolkit.fluxcd.io/HelmRelease|team/shop"
    );
    // The login is in another namespace, and an uninstall was the old way of a deletion.
    assert_eq!(fields(&found.lost), ["HelmRepository spec.secretRef", "metadata.finalizers"]);
}

#[test]
fn charts_of_registries_and_of_git_are_carried_over() {
    let of =
        |body: &Value, source: &Value| converted(body, source, true).sync["spec"]["render"]["helm"].clone();
    let registry = source("HelmRepository", json!({"url": "oci://ghcr.io/charts", "type": "oci"}));
    let chart = json!({"url": "oci://ghcr.io/charts/web", "version": "1.x"});
    assert_eq!(of(&release(json!({})), &registry)["chart"], chart);

    let mut body = release(json!({"chartRef": {"kind": "OCIRepository", "name": "charts"}}));
    body["spec"].as_object_mut().unwrap().remove("chart");
    for (reference, expect) in [
        (json!({"tag": "1.2.3"}), json!({"version": "1.2.3"})),
        (json!({"semver": "~1.2"}), json!({"version": "~1.2"})),
        (json!({"tag": "1.2.3", "digest": "sha256:12"}), json!({"version": "1.2.3", "digest": "sha256:12"})),
        (json!({}), json!({"version": "latest"})),
    ] {
        let source = source(
            "OCIRepository",
            json!({"url": "oci://ghcr.io/charts/web", "ref": reference,
            "layerSelector": {"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip", "operation": "copy"}}),
        );
        let mut whole = json!({"url": "oci://ghcr.io/charts/web"});
        whole.as_object_mut().unwrap().extend(expect.as_object().unwrap().clone());
        assert_eq!(of(&body, &source)["chart"], whole);
    }

    let mut body = release(json!({}));
    body["spec"]["chart"]["spec"] = json!({"chart": "./charts/web", "valuesFiles": ["./charts/web/values.yaml", "prod.yaml"],
        "sourceRef": {"kind": "GitRepository", "name": "fleet"}});
    let found = converted(&body, &Value::Null, false);
    assert_eq!((found.refused.len(), &found.sync["spec"]["path"]), (0, &json!("./charts/web")));
    let helm = &found.sync["spec"]["render"]["helm"];
    assert_eq!(helm["valuesFiles"], json!(["/charts/web/values.yaml", "/prod.yaml"]));
    assert_eq!((&helm["chart"], &helm["releaseName"]), (&Value::Null, &json!("shop")));
    assert_eq!(found.sync["spec"]["targetNamespace"], "team");
    // Without drift detection Flux repairs nothing, and a Sync reports.
    assert_eq!(found.sync["spec"]["drift"], json!({"mode": "Report"}));
}

#[test]
fn what_would_come_to_other_objects_is_refused_by_its_field() {
    let repository = source("HelmRepository", json!({"url": "https://charts.example.com"}));
    let check = |spec: Value, source: &Value, expect: &str| {
        let found = converted(&release(spec.clone()), source, true);
        assert_eq!(fields(&found.refused), [expect], "{spec}");
    };
    for (spec, expect) in [
        (json!({"postRenderers": [{"kustomize": {}, "a": 1}]}), "spec.postRenderers"),
        (json!({"commonMetadata": {"labels": {"a": "b"}}}), "spec.commonMetadata"),
        (json!({"kubeConfig": {"secretRef": {"name": "a"}}}), "spec.kubeConfig"),
        (json!({"upgrade": {"preserveValues": true}}), "spec.upgrade.preserveValues"),
        (json!({"install": {"disableHooks": true}}), "spec.install.disableHooks"),
        (json!({"install": {"replace": true}}), "spec.install.replace"),
        (json!({"dependsOn": [{"name": "other"}]}), "spec.dependsOn[0]"),
        (json!({"releaseName": "a".repeat(54)}), "spec.releaseName"),
    ] {
        check(spec, &repository, expect);
    }
    for (spec, expect) in [
        (json!({"url": "oci://a/b", "insecure": true}), "HelmRepository spec.insecure"),
        (json!({"url": "oci://a/b", "provider": "other"}), "HelmRepository spec.provider"),
        (
            json!({"url": "https://a", "secretRef": {"name": "a"}, "certSecretRef": {"name": "b"}}),
            "HelmRepository spec.certSecretRef",
        ),
    ] {
        check(json!({}), &source("HelmRepository", spec), expect);
    }
    let mut body = release(json!({}));
    body["spec"]["chart"]["spec"]["verify"] = json!({"provider": "cosign"});
    assert_eq!(fields(&converted(&body, &repository, true).refused), ["spec.chart.spec.verify"]);
    let registry = source("HelmRepository", json!({"url": "oci://ghcr.io/charts", "type": "oci"}));
    assert_eq!(fields(&converted(&body, &registry, true).refused), ["spec.chart.spec.verify"]);
    body["spec"]["chart"]["spec"]["verify"]["secretRef"] = json!({"name": "signers"});
    let signed = converted(&body, &registry, true);
    let chart = &signed.sync["spec"]["render"]["helm"]["chart"];
    assert_eq!(
        (signed.refused.len(), &chart["verify"]),
        (0, &json!({"keys": {"secretRef": {"name": "signers"}}}))
    );
    body = release(json!({}));
    body["spec"]["chart"]["spec"]["valuesFiles"] = json!(["values-prod.yaml"]);
    assert_eq!(fields(&converted(&body, &repository, true).refused), ["spec.chart.spec.valuesFiles"]);
    body["spec"]["chart"]["spec"] = json!({"sourceRef": {"kind": "Bucket"}});
    assert_eq!(fields(&converted(&body, &repository, true).refused), ["spec.chart.spec.sourceRef"]);
    body = release(json!({"chartRef": {"kind": "ExternalArtifact"}}));
    body["spec"].as_object_mut().unwrap().remove("chart");
    assert_eq!(fields(&converted(&body, &repository, true).refused), ["spec.chartRef"]);
    // Nobody applies the HelmRelease, so that there is no repository to follow.
    let found = converted(&release(json!({})), &repository, false);
    assert_eq!(fields(&found.refused), ["metadata.labels"]);
    // A parent that sets suspend: false again.
    let mut body = release(json!({"suspend": false}));
    body["metadata"]["labels"] = json!({"kustomize.toolkit.fluxcd.io/name": "shop"});
    body["metadata"]["managedFields"] = json!([{"manager": "kustomize-controller", "operation": "Apply",
        "fieldsV1": {"f:spec": {"f:suspend": {}}}}]);
    assert_eq!(fields(&converted(&body, &repository, true).refused), ["spec.suspend"]);
}

#[test]
fn options_that_only_change_the_operation_are_named() {
    let repository =
        source("HelmRepository", json!({"url": "https://charts.example.com", "passCredentials": true}));
    let found = converted(
        &release(json!({
            "test": {"enable": true}, "uninstall": {"keepHistory": true}, "maxHistory": 3, "storageNamespace": "ops",
            "install": {"crds": "Skip", "remediation": {"retries": 1}, "timeout": "1m"},
            "upgrade": {"force": true, "disableWait": true, "novel": true}, "novel": 1,
        })),
        &repository,
        true,
    );
    assert_eq!(found.refused, []);
    assert_eq!(found.sync["spec"]["render"]["helm"]["skipCrds"], true);
    assert_eq!(found.sync["spec"]["render"]["helm"]["testHooks"], true);
    assert_eq!(found.sync["spec"]["health"], json!({"wait": false}));
    assert_eq!(
        fields(&found.lost),
        [
            "HelmRepository spec.passCredentials",
            "spec.uninstall",
            "spec.maxHistory",
            "spec.storageNamespace",
            "spec.novel",
            "spec.install.timeout",
            "spec.upgrade.force",
            "spec.upgrade.novel",
            "spec.install.remediation",
            "metadata.finalizers",
        ]
    );
}

#[test]
fn tests_of_a_chart_are_hooks_of_the_sync() {
    let repository = source("HelmRepository", json!({"url": "https://charts.example.com"}));
    for (test, expect, lost) in [
        (json!({"enable": true}), json!(true), &[][..]),
        (
            json!({"enable": true, "ignoreFailures": true, "timeout": "1m"}),
            json!(true),
            &["spec.test.ignoreFailures", "spec.test.timeout"],
        ),
        (json!({"enable": true, "filters": [{"name": "a"}]}), Value::Null, &["spec.test.filters"]),
        (json!({"enable": false, "timeout": "1m"}), Value::Null, &[]),
    ] {
        let found = converted(&release(json!({"test": test})), &repository, true);
        assert_eq!(found.sync["spec"]["render"]["helm"]["testHooks"], expect, "{test}");
        let tests = found.lost.iter().map(|lost| &*lost.field).filter(|it| it.starts_with("spec.test"));
        assert_eq!(tests.collect::<Vec<_>>(), lost, "{test}");
    }
}
