//! Tables: the source of a Sync that is made of an artifact, a generated artifact, or a chart.

use super::tests::{fields, old, wanted};
use super::*;

/// A Kustomization of an artifact with these fields.
fn of_artifact(spec: Value, secret: Option<&str>) -> Adoption {
    let body = json!({"metadata": {"name": "shop", "namespace": "flux-system"},
        "spec": {"sourceRef": {"kind": "OCIRepository", "name": "shop"}, "path": "./prod", "deletionPolicy": "Orphan"}});
    let mut repository = json!({"metadata": {"name": "shop", "namespace": "flux-system"},
        "spec": {"url": "oci://example.com/shop", "interval": "1m0s"}});
    repository["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    adopt(&OldResource { repository: Some(&repository), ..old(Tool::Flux, &body) }, &wanted(secret))
}

#[test]
fn an_artifact_is_a_source() {
    let layer = json!({"mediaType": "application/x", "operation": "copy"});
    let found = of_artifact(
        json!({"ref": {"semver": "1.x", "semverFilter": "^1"}, "layerSelector": layer, "provider": "generic",
            "suspend": true, "timeout": "1m"}),
        None,
    );
    assert_eq!(found.refused, []);
    let spec = &found.sync["spec"];
    let source = json!({"oci": {"url": "oci://example.com/shop", "ref": {"semver": "1.x", "filter": "^1"},
        "layer": {"mediaType": "application/x"}}});
    assert_eq!(
        (&spec["source"], &spec["path"], &spec["interval"]),
        (&source, &json!("./prod"), &json!("1m"))
    );
    assert_eq!(spec["suspend"], true);
    assert_eq!(fields(&found.lost), ["OCIRepository spec.suspend"]);
    let verify = json!({"verify": {"provider": "cosign", "secretRef": {"name": "signers"}}});
    let found = of_artifact(verify, None);
    let keys = json!({"keys": {"secretRef": {"name": "signers"}}});
    assert_eq!((&found.refused[..], &found.sync["spec"]["source"]["oci"]["verify"]), (&[][..], &keys));
    let found = of_artifact(json!({"secretRef": {"name": "a"}}), Some("login"));
    assert_eq!(found.refused, []);
    assert_eq!(found.sync["spec"]["source"]["oci"]["secretRef"], json!({"name": "login"}));
}

#[test]
fn an_artifact_that_would_be_another_one_is_refused() {
    for (spec, expect) in [
        (json!({"insecure": true}), "OCIRepository spec.insecure"),
        (json!({"verify": {"provider": "cosign"}}), "OCIRepository spec.verify"),
        (json!({"ignore": "*.md"}), "OCIRepository spec.ignore"),
        (json!({"provider": "other"}), "OCIRepository spec.provider"),
        (json!({"secretRef": {"name": "a"}}), "OCIRepository spec.secretRef"),
        (json!({"certSecretRef": {"name": "a"}}), "OCIRepository spec.certSecretRef"),
        (
            json!({"secretRef": {"name": "a"}, "certSecretRef": {"name": "b"}}),
            "OCIRepository spec.certSecretRef",
        ),
    ] {
        assert_eq!(fields(&of_artifact(spec.clone(), None).refused), [expect], "{spec}");
    }
}

#[test]
fn a_generated_artifact_is_a_folder_of_its_repository() {
    let body = json!({"metadata": {"name": "shop", "namespace": "flux-system"},
        "spec": {"sourceRef": {"kind": "ExternalArtifact", "name": "apps"}, "path": "./production", "deletionPolicy": "Orphan"}});
    let repository = json!({"metadata": {"name": "fleet", "namespace": "flux-system"},
        "spec": {"url": "https://example.com/fleet.git", "ref": {"branch": "main"}}});
    let generator = |to: &str| {
        json!({"metadata": {"name": "all"}, "spec": {
            "sources": [{"alias": "a", "kind": "GitRepository", "name": "fleet"}],
            "artifacts": [{"name": "apps", "copy": [{"from": "@a/apps/production/**", "to": to}]}]}})
    };
    let of = |generator: Option<&Value>| {
        adopt(
            &OldResource { repository: Some(&repository), generator, ..old(Tool::Flux, &body) },
            &wanted(None),
        )
    };
    let found = of(Some(&generator("@artifact/production/")));
    assert_eq!(found.refused, []);
    let git = json!({"url": "https://example.com/fleet.git", "ref": {"branch": "main"}});
    assert_eq!(found.sync["spec"]["source"]["git"], git);
    assert_eq!(found.sync["spec"]["path"], "./apps/production");
    assert_eq!(fields(&of(Some(&generator("@artifact/moved/"))).refused), ["spec.sourceRef"]);
    assert_eq!(fields(&of(None).refused), ["spec.sourceRef"]);
}

#[test]
fn a_release_that_nothing_applies_follows_the_chart_in_its_registry() {
    let of = |spec: Value, kind: &str, source: Value| {
        let body = json!({"metadata": {"name": "shop", "namespace": "team"}, "spec": spec});
        let source =
            json!({"kind": kind, "metadata": {"name": "charts", "namespace": "moorline"}, "spec": source});
        let found =
            adopt(&OldResource { chart_source: Some(&source), ..old(Tool::FluxHelm, &body) }, &wanted(None));
        assert_eq!(found.refused, [], "{spec}");
        found.sync["spec"].clone()
    };
    let layer = json!({"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip"});
    let spec = of(
        json!({"chartRef": {"kind": "OCIRepository", "name": "charts"}, "values": {"a": 1}}),
        "OCIRepository",
        json!({"url": "oci://example.com/charts/web", "ref": {"tag": "latest"}, "secretRef": {"name": "login"}}),
    );
    let oci = json!({"url": "oci://example.com/charts/web", "ref": {"tag": "latest"}, "layer": layer,
        "secretRef": {"name": "login"}});
    assert_eq!((&spec["source"], &spec["path"]), (&json!({"oci": oci}), &json!("./web")));
    let helm = json!({"releaseName": "shop", "values": {"a": 1}});
    assert_eq!(spec["render"], json!({"type": "Helm", "helm": helm}));
    // Its signatures are asked for in any case.
    let verify = json!({"provider": "cosign", "secretRef": {"name": "signers"}});
    let keys = json!({"keys": {"secretRef": {"name": "signers"}}});
    let spec = of(
        json!({"chartRef": {"kind": "OCIRepository", "name": "charts"}}),
        "OCIRepository",
        json!({"url": "oci://example.com/charts/web", "ref": {"semver": "1.x"}, "verify": verify}),
    );
    assert_eq!(spec["source"]["oci"]["verify"], keys);
    let chart = json!({"spec": {"chart": "web", "version": "1.x", "sourceRef": {"kind": "HelmRepository"}, "verify": verify}});
    let spec = of(json!({"chart": chart}), "HelmRepository", json!({"url": "oci://example.com/charts/"}));
    assert_eq!(spec["source"]["oci"]["verify"], keys);
    for (version, reference) in [("1.2.3", json!({"tag": "1.2.3"})), ("1.x", json!({"semver": "1.x"}))] {
        let chart =
            json!({"spec": {"chart": "web", "version": version, "sourceRef": {"kind": "HelmRepository"}}});
        let spec = of(json!({"chart": chart}), "HelmRepository", json!({"url": "oci://example.com/charts/"}));
        let oci = json!({"url": "oci://example.com/charts/web", "ref": reference, "layer": layer});
        assert_eq!(spec["source"], json!({"oci": oci}));
    }
}

/// An Application with this source.
fn of_application(source: Value, parent: Option<&Value>) -> Adoption {
    let automated = json!({"automated": {"selfHeal": true}});
    let body = json!({"metadata": {"name": "shop", "namespace": "argocd"}, "spec": {"source": source, "syncPolicy": automated}});
    adopt(&OldResource { parent, ..old(Tool::ArgoCd, &body) }, &wanted(None))
}

#[test]
fn a_published_chart_with_values_in_git_follows_the_repository_of_the_values() {
    let chart = |url: &str| json!({"repoURL": url, "chart": "web", "targetRevision": "1.x", "helm": {"valueFiles": ["$values/web/prod.yaml"]}});
    let values =
        json!({"repoURL": "https://example.com/values.git", "targetRevision": "main", "ref": "values"});
    for (url, expect) in [
        (
            "https://charts.example.com/",
            json!({"url": "https://charts.example.com", "name": "web", "version": "1.x"}),
        ),
        ("example.com/charts", json!({"url": "oci://example.com/charts/web", "version": "1.x"})),
    ] {
        let automated = json!({"automated": {"selfHeal": true}});
        let spec = json!({"sources": [chart(url), values], "syncPolicy": automated});
        let body = json!({"metadata": {"name": "shop", "namespace": "argocd"}, "spec": spec});
        let found = adopt(&old(Tool::ArgoCd, &body), &wanted(None));
        assert_eq!(found.refused, []);
        let spec = &found.sync["spec"];
        let git = json!({"url": "https://example.com/values.git", "ref": {"branch": "main"}});
        assert_eq!((&spec["source"], &spec["path"]), (&json!({"git": git}), &json!("./web")));
        let helm = &spec["render"]["helm"];
        assert_eq!((&helm["chart"], &helm["valuesFiles"]), (&expect, &json!(["/web/prod.yaml"])));
    }
    // Files of the chart itself cannot be named.
    let mut own = chart("https://charts.example.com");
    own["helm"]["valueFiles"] = json!(["$values/web/prod.yaml", "own.yaml"]);
    let body =
        json!({"metadata": {"name": "shop", "namespace": "argocd"}, "spec": {"sources": [own, values]}});
    let found = adopt(&old(Tool::ArgoCd, &body), &wanted(None));
    assert_eq!(found.refused.first().map(|it| &*it.field), Some("spec.sources[0].helm.valueFiles"));
}

#[test]
fn an_application_of_a_registry_follows_its_artifact() {
    let chart = json!({"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip"});
    for (source, oci, path) in [
        (
            json!({"repoURL": "example.com/charts", "chart": "web", "targetRevision": "1.2.3"}),
            json!({"url": "oci://example.com/charts/web", "ref": {"tag": "1.2.3"}, "layer": chart}),
            "./web",
        ),
        (
            json!({"repoURL": "oci://example.com/charts/web", "path": ".", "targetRevision": "1.x", "helm": {"releaseName": "a"}}),
            json!({"url": "oci://example.com/charts/web", "ref": {"semver": "1.x"}, "layer": chart}),
            "./web",
        ),
        (
            json!({"repoURL": "oci://example.com/shop", "path": "prod", "targetRevision": "sha256:0"}),
            json!({"url": "oci://example.com/shop", "ref": {"digest": "sha256:0"}}),
            "./prod",
        ),
        (
            json!({"repoURL": "oci://example.com/shop", "path": "prod"}),
            json!({"url": "oci://example.com/shop", "ref": {"tag": "latest"}}),
            "./prod",
        ),
    ] {
        let found = of_application(source.clone(), None);
        assert_eq!((&*found.refused, &*found.lost), (&[][..], &[][..]), "{source}");
        let spec = &found.sync["spec"];
        assert_eq!((&spec["source"], &spec["path"]), (&json!({"oci": oci}), &json!(path)), "{source}");
    }
}

#[test]
fn a_chart_of_a_chart_repository_is_rendered_beside_the_repository_that_names_it() {
    let parent = json!({"spec": {"source": {"repoURL": "https://example.com/fleet.git", "path": "apps", "targetRevision": "main"}}});
    let source = json!({"repoURL": "https://charts.example.com/", "chart": "web", "targetRevision": "1.x",
        "helm": {"valuesObject": {"a": 1}}});
    let found = of_application(source.clone(), Some(&parent));
    assert_eq!(found.refused, []);
    let spec = &found.sync["spec"];
    let git = json!({"git": {"url": "https://example.com/fleet.git", "ref": {"branch": "main"}}});
    assert_eq!((&spec["source"], &spec["path"]), (&git, &json!("./apps")));
    let chart = json!({"url": "https://charts.example.com", "name": "web", "version": "1.x"});
    assert_eq!(spec["render"]["helm"], json!({"releaseName": "shop", "values": {"a": 1}, "chart": chart}));
    let with = |field: &str, value: Value| {
        let mut source = source.clone();
        source[field] = value;
        source
    };
    for (source, parent, expect) in [
        (source.clone(), None, "spec.source.chart"),
        (source.clone(), Some(&source), "spec.source.chart"),
        (with("helm", json!({"valueFiles": ["a.yaml"]})), Some(&parent), "spec.source.helm.valueFiles"),
        (with("repoURL", "https://me:planted@example.com".into()), Some(&parent), "spec.source.repoURL"),
        (
            json!({"repoURL": "oci://example.com/charts/web", "path": "a", "helm": {"releaseName": "a"}}),
            None,
            "spec.source.path",
        ),
        (
            json!({"repoURL": "example.com/charts", "chart": "web", "helm": {"valueFiles": ["/a.yaml"]}}),
            None,
            "spec.source.helm.valueFiles",
        ),
    ] {
        let found = of_application(source.clone(), parent);
        assert_eq!(fields(&found.refused), [expect], "{source}");
        assert!(!format!("{:?}{}", found.refused, found.sync).contains("planted"), "{source}");
    }
}

#[test]
fn the_cloud_that_gives_the_login_is_carried_over() {
    for (spec, expect, lost) in [
        (json!({"provider": "aws"}), json!({"provider": "AWS"}), &["OCIRepository spec.provider"][..]),
        (
            json!({"provider": "gcp", "serviceAccountName": "puller"}),
            json!({"provider": "GCP", "serviceAccountName": "puller"}),
            &["OCIRepository spec.serviceAccountName"],
        ),
        (json!({"provider": "generic"}), json!({}), &[]),
        (
            json!({"provider": "generic", "serviceAccountName": "puller"}),
            json!({}),
            &["OCIRepository spec.serviceAccountName"],
        ),
    ] {
        let found = of_artifact(spec.clone(), None);
        let mut source = json!({"url": "oci://example.com/shop"});
        source.as_object_mut().unwrap().extend(expect.as_object().unwrap().clone());
        assert_eq!((&found.refused[..], &found.sync["spec"]["source"]["oci"]), (&[][..], &source), "{spec}");
        assert_eq!(fields(&found.lost), lost, "{spec}");
    }
    let both = of_artifact(json!({"provider": "aws", "certSecretRef": {"name": "a"}}), None);
    assert_eq!(fields(&both.refused), ["OCIRepository spec.provider", "OCIRepository spec.certSecretRef"]);
    // A Secret that is named for the Sync is its login.
    let named = of_artifact(json!({"provider": "aws"}), Some("login"));
    assert_eq!(named.sync["spec"]["source"]["oci"].get("provider"), None);

    let body = json!({"metadata": {"name": "shop", "namespace": "moorline"}, "spec": {"sourceRef": {"kind": "GitRepository"}}});
    let repository = json!({"metadata": {"namespace": "moorline"}, "spec": {"url": "https://dev.azure.com/a/b/_git/c",
        "provider": "azure", "serviceAccountName": "puller"}});
    let found =
        adopt(&OldResource { repository: Some(&repository), ..old(Tool::Flux, &body) }, &wanted(None));
    let git = json!({"url": "https://dev.azure.com/a/b/_git/c", "ref": {"branch": "master"}, "provider": "Azure",
        "serviceAccountName": "puller"});
    assert_eq!((&found.refused[..], &found.sync["spec"]["source"]["git"]), (&[][..], &git));

    // Both for a chart beside a repository, and for one that is the source itself.
    let source = json!({"kind": "OCIRepository", "metadata": {"namespace": "moorline"},
        "spec": {"url": "oci://example.com/web", "ref": {"tag": "1.0.0"}, "provider": "azure"}});
    let body = json!({"metadata": {"name": "shop", "namespace": "moorline"}, "spec": {"chartRef": {"kind": "OCIRepository"}}});
    let itself = OldResource { chart_source: Some(&source), ..old(Tool::FluxHelm, &body) };
    assert_eq!(adopt(&itself, &wanted(None)).sync["spec"]["source"]["oci"]["provider"], "Azure");
    let parent = json!({"spec": {"sourceRef": {"kind": "GitRepository"}}});
    let beside = OldResource { parent: Some(&parent), repository: Some(&repository), ..itself };
    let spec = adopt(&beside, &wanted(None)).sync["spec"].clone();
    assert_eq!(spec["render"]["helm"]["chart"]["provider"], "Azure");
}
