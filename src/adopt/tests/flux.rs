//! Tables: the Sync that is made of a Kustomization.

use super::*;

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
