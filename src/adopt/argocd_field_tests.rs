//! Tables: each field of an Application, and its effect on the adoption.
//!
//! In: the fields of the schema of Argo CD 3.6.
//! Out: none of them is unknown, and none has no effect but those that are listed so.

use super::field_tests::Effect::{Lost, Mapped, Nothing, Refused};
use super::field_tests::{Row, check, named, old, requested};
use super::*;

#[test]
fn each_field_of_an_application_has_its_effect() {
    let convert = |change: &dyn Fn(&mut Value), place: &str| {
        let source = json!({"repoURL": "https://example.com/shop.git", "path": "prod"});
        let mut application = named(json!({"source": source, "syncPolicy": {"automated": {}}}));
        if let Some(tool @ ("helm" | "kustomize")) = place.strip_prefix("spec.source.") {
            application["spec"]["source"][tool] = json!({"namespace": "shop"});
        }
        let spec = place.split('.').fold(&mut application, |at, part| &mut at[part]);
        change(spec);
        adopt(&old(Tool::ArgoCd, &application), &requested())
    };
    for (place, rows) in [
        ("spec", of_application()),
        ("spec.source", of_application_source()),
        ("spec.source.helm", of_application_chart()),
        ("spec.source.kustomize", of_application_kustomize()),
    ] {
        check(place, &rows, |change| convert(change, place));
    }
    let filters: [Row; 4] = [
        ("recurse", json!(true), Mapped),
        ("jsonnet", json!({"libs": ["a"]}), Refused),
        ("include", json!("*.yaml"), Mapped),
        ("disableExtensionFilter", json!(true), Refused),
    ];
    check("spec.source.directory", &filters, |change| convert(change, "spec.source.directory"));
    let automated: [Row; 4] = [
        ("prune", json!(true), Mapped),
        ("selfHeal", json!(true), Mapped),
        ("allowEmpty", json!(true), Lost),
        ("enabled", json!(true), Nothing),
    ];
    check("spec.syncPolicy.automated", &automated, |change| convert(change, "spec.syncPolicy.automated"));
}

fn of_application() -> Vec<Row> {
    vec![
        ("destination.server", json!("https://far.example"), Refused),
        ("destination.name", json!("far"), Refused),
        ("destination.namespace", json!("shop"), Mapped),
        ("project", json!("team"), Lost),
        ("syncPolicy.syncOptions", json!(["Prune=confirm"]), Mapped),
        ("syncPolicy.syncOptions", json!(["Replace=true"]), Lost),
        ("syncPolicy.retry", json!({"limit": 5, "refresh": true}), Lost),
        ("syncPolicy.managedNamespaceMetadata", json!({"labels": {"a": "b"}}), Lost),
        ("ignoreDifferences", json!([{"kind": "Secret", "jsonPointers": ["/data"]}]), Mapped),
        ("info", json!([{"name": "a", "value": "b"}]), Lost),
        ("revisionHistoryLimit", json!(3), Nothing),
        ("sources", json!([{"repoURL": "https://a.example/b"}, {"repoURL": "https://a.example/c"}]), Refused),
        ("sourceHydrator", json!({"syncSource": {"path": "a"}}), Refused),
    ]
}

fn of_application_source() -> Vec<Row> {
    vec![
        ("repoURL", json!("https://example.com/other.git"), Mapped),
        ("path", json!("test"), Mapped),
        ("targetRevision", json!("v1.2.3"), Mapped),
        ("plugin", json!({"name": "a"}), Refused),
        ("chart", json!("web"), Refused),
        ("ref", json!("own"), Nothing),
        ("name", json!("own"), Nothing),
        ("tagPrefix", json!("shop-"), Refused),
    ]
}

fn of_application_chart() -> Vec<Row> {
    vec![
        ("valueFiles", json!(["prod.yaml"]), Mapped),
        ("valueFiles", json!(["https://a.example/prod.yaml"]), Refused),
        ("parameters", json!([{"name": "a", "value": "b", "forceString": true}]), Mapped),
        ("releaseName", json!("front"), Mapped),
        ("values", json!("a: 1"), Mapped),
        ("valuesObject", json!({"a": 1}), Mapped),
        ("fileParameters", json!([{"name": "a", "path": "b"}]), Refused),
        ("version", json!("v3"), Nothing),
        ("skipTests", json!(true), Nothing),
        ("passCredentials", json!(true), Nothing),
        ("ignoreMissingValueFiles", json!(true), Lost),
        ("skipCrds", json!(true), Mapped),
        ("namespace", json!("other"), Mapped),
        ("kubeVersion", json!("1.33"), Mapped),
        ("apiVersions", json!(["a/v1"]), Refused),
        ("skipSchemaValidation", json!(true), Lost),
    ]
}

fn of_application_kustomize() -> Vec<Row> {
    vec![
        ("namePrefix", json!("a-"), Mapped),
        ("nameSuffix", json!("-a"), Mapped),
        ("images", json!(["a:1"]), Mapped),
        ("commonLabels", json!({"a": "b"}), Refused),
        ("labelWithoutSelector", json!(true), Nothing),
        ("forceCommonLabels", json!(true), Nothing),
        ("forceCommonAnnotations", json!(true), Nothing),
        ("commonAnnotationsEnvsubst", json!(true), Nothing),
        ("ignoreMissingComponents", json!(true), Nothing),
        ("version", json!("v5"), Lost),
        ("commonAnnotations", json!({"a": "b"}), Mapped),
        ("namespace", json!("other"), Mapped),
        ("replicas", json!([{"name": "a", "count": 2}]), Mapped),
        ("patches", json!([{"patch": "{}", "target": {"kind": "Deployment"}}]), Mapped),
        ("components", json!(["../a"]), Mapped),
        ("kubeVersion", json!("1.33"), Refused),
        ("apiVersions", json!(["a/v1"]), Refused),
        ("labelIncludeTemplates", json!(true), Refused),
    ]
}
