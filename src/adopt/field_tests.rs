//! Tables: each field of the resources of Flux, and its effect on the adoption.
//!
//! In: the fields of the schemas of helm-controller 1.7, kustomize-controller 1.10 and
//! source-controller 1.10. Out: none of them is unknown, and none has no effect but those that are
//! listed so.

use super::*;
use Effect::{Lost, Mapped, Nothing, Refused};

/// Effect of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Effect {
    /// It changes the Sync.
    Mapped,
    /// It is refused by its name.
    Refused,
    /// It is reported as not carried over.
    Lost,
    /// A Sync does not need it.
    Nothing,
}

/// A field below the spec, a value, and the effect.
pub(super) type Row = (&'static str, Value, Effect);

/// Sets a field, whose parts are separated by dots.
fn set(spec: &mut Value, field: &str, value: Value) {
    let target = field.split('.').fold(spec, |at, part| &mut at[part]);
    *target = value;
}

/// True if one of the remarks is about a field, or about a part of it.
fn names(remarks: &[FieldRemark], field: &str) -> bool {
    let is_about = |remark: &FieldRemark| {
        let rest = remark.field.strip_prefix(field);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[', ':']))
    };
    remarks.iter().any(|remark| is_about(remark) && !remark.why.contains("does not know this field"))
}

/// Compares the effect of each field; `convert` gets a change of the spec at `place`.
pub(super) fn check(place: &str, rows: &[Row], convert: impl Fn(&dyn Fn(&mut Value)) -> Adoption) {
    let before = convert(&|_| ());
    for (field, value, expect) in rows {
        let after = convert(&|spec| set(spec, field, value.clone()));
        let whole = format!("{place}.{field}");
        let found = match () {
            () if names(&after.refused, &whole) => Refused,
            () if after.sync != before.sync => Mapped,
            () if names(&after.lost, &whole) => Lost,
            () => Nothing,
        };
        assert_eq!(found, *expect, "{whole}: {after:?}");
        let unknown = after.lost.iter().find(|remark| remark.why.contains("does not know this field"));
        assert_eq!(unknown, None, "{whole}");
        if found == Refused {
            assert!(!names(&before.refused, &whole), "{whole} is refused without being set");
        }
    }
    let after = convert(&|spec| spec["neverHeardOf"] = 1.into());
    let unknown = format!("{place}.neverHeardOf");
    assert!(after.lost.iter().any(|remark| *remark.field == *unknown), "{unknown}: {:?}", after.lost);
}

pub(super) fn old(tool: Tool, body: &Value) -> OldResource<'_> {
    OldResource {
        adopted: BTreeMap::from([(("team".to_owned(), "infra".to_owned()), SyncName::new("team", "base"))]),
        ..tests::old(tool, body)
    }
}

pub(super) fn named(spec: Value) -> Value {
    json!({"metadata": {"name": "shop", "namespace": "team"}, "spec": spec})
}

pub(super) fn requested() -> RequestedSync {
    RequestedSync { sync: SyncName::new("team", "shop"), secret: None }
}

#[test]
fn each_field_of_a_helm_release_has_its_effect() {
    let by_name = || json!({"provider": "cosign", "secretRef": {"name": "signers"}});
    let source_ref = json!({"kind": "HelmRepository", "name": "charts"});
    let chart = json!({"chart": "web", "version": "1.x", "sourceRef": source_ref});
    let parent = named(json!({"sourceRef": {"kind": "GitRepository", "name": "fleet"}, "path": "./apps"}));
    let fleet = named(json!({"url": "https://example.com/fleet.git"}));
    let convert = |release: &Value, repository: &Value, chart: Option<&Value>| {
        let old = old(Tool::FluxHelm, release);
        let (parent, chart_source) = (Some(&parent), Some(repository));
        adopt(&OldResource { parent, chart_source, chart, repository: Some(&fleet), ..old }, &requested())
    };
    let of_chart = |is_alone: bool| -> Vec<Row> {
        let suspended = is_alone.then_some(("suspend", json!(true), Nothing));
        let mut rows: Vec<Row> = vec![
            ("chart", json!("api"), Mapped),
            ("version", json!("2.x"), Mapped),
            ("sourceRef", json!({"kind": "Bucket", "name": "charts"}), Refused),
            ("interval", json!("1m"), Nothing),
            ("reconcileStrategy", json!("Revision"), Nothing),
            ("valuesFiles", json!(["prod.yaml"]), Refused),
            ("ignoreMissingValuesFiles", json!(true), Lost),
            ("verify", by_name(), Mapped),
        ];
        rows.extend(suspended);
        rows
    };
    let release = || named(json!({"chart": {"spec": chart}}));
    let base = named(json!({"url": "oci://example.com/charts"}));
    check("spec.chart.spec", &of_chart(false), |change| {
        let mut release = release();
        change(&mut release["spec"]["chart"]["spec"]);
        convert(&release, &base, None)
    });
    check("HelmChart spec", &of_chart(true), |change| {
        let release = named(json!({"chartRef": {"kind": "HelmChart", "name": "web"}}));
        let mut chart = named(chart.clone());
        change(&mut chart["spec"]);
        convert(&release, &base, Some(&chart))
    });
    check("HelmRepository spec", &of_helm_repository(), |change| {
        let mut repository = base.clone();
        change(&mut repository["spec"]);
        convert(&release(), &repository, None)
    });
    check("spec", &of_release(), |change| {
        let mut release = release();
        change(&mut release["spec"]);
        if release["spec"]["chartRef"].is_object() {
            release["spec"]["chart"] = Value::Null;
        }
        convert(&release, &base, None)
    });
}

fn of_helm_repository() -> Vec<Row> {
    vec![
        ("url", json!("oci://example.com/others"), Mapped),
        ("secretRef", json!({"name": "login"}), Mapped),
        ("certSecretRef", json!({"name": "login"}), Mapped),
        ("passCredentials", json!(true), Lost),
        ("interval", json!("1m"), Nothing),
        ("insecure", json!(true), Refused),
        ("timeout", json!("1m"), Nothing),
        ("suspend", json!(true), Lost),
        ("accessFrom", json!({"namespaceSelectors": [{}]}), Lost),
        ("type", json!("oci"), Nothing),
        ("provider", json!("aws"), Mapped),
    ]
}

fn of_release() -> Vec<Row> {
    let strategy = || json!({"name": "RetryOnFailure", "retryInterval": "1m"});
    vec![
        ("chart.metadata", json!({"labels": {"a": "b"}}), Nothing),
        ("chartRef", json!({"kind": "ExternalArtifact", "name": "web"}), Refused),
        ("interval", json!("1m"), Nothing),
        ("kubeConfig", json!({"secretRef": {"name": "far"}}), Refused),
        ("suspend", json!(true), Mapped),
        ("releaseName", json!("front"), Mapped),
        ("targetNamespace", json!("other"), Mapped),
        ("storageNamespace", json!("other"), Lost),
        ("dependsOn", json!([{"name": "infra"}]), Mapped),
        ("dependsOn", json!([{"name": "unknown"}]), Refused),
        ("timeout", json!("1m"), Mapped),
        ("maxHistory", json!(3), Lost),
        ("serviceAccountName", json!("deployer"), Mapped),
        ("persistentClient", json!(true), Lost),
        ("driftDetection.mode", json!("enabled"), Mapped),
        (
            "driftDetection.ignore",
            json!([{"paths": ["/spec/replicas"], "target": {"kind": "Deployment"}}]),
            Mapped,
        ),
        ("test", json!({"enable": true}), Mapped),
        ("test", json!({"enable": true, "filters": [{"name": "a"}]}), Lost),
        ("rollback", json!({"recreate": true}), Lost),
        ("uninstall", json!({"keepHistory": true}), Lost),
        ("valuesFrom", json!([{"kind": "ConfigMap", "name": "all"}]), Mapped),
        ("values", json!({"a": 1}), Mapped),
        ("commonMetadata", json!({"labels": {"a": "b"}}), Refused),
        ("postRenderers", json!([{"kustomize": {"images": [{"name": "a", "newTag": "1"}]}}]), Refused),
        ("postRenderStrategy", json!("combined"), Lost),
        ("waitStrategy", json!({"name": "legacy"}), Lost),
        (
            "healthCheckExprs",
            json!([{"apiVersion": "a.b/v1", "kind": "C", "current": "status.ready"}]),
            Mapped,
        ),
        ("install.timeout", json!("1m"), Lost),
        ("install.strategy", strategy(), Lost),
        ("install.remediation", json!({"retries": 3}), Lost),
        ("install.disableTakeOwnership", json!(true), Nothing),
        ("install.disableWait", json!(true), Nothing),
        ("install.disableWaitForJobs", json!(true), Nothing),
        ("install.disableHooks", json!(true), Refused),
        ("install.disableOpenAPIValidation", json!(true), Lost),
        ("install.disableSchemaValidation", json!(true), Lost),
        ("install.replace", json!(true), Refused),
        ("install.skipCRDs", json!(true), Mapped),
        ("install.crds", json!("Skip"), Mapped),
        ("install.createNamespace", json!(true), Mapped),
        ("install.serverSideApply", json!(true), Nothing),
        ("upgrade.timeout", json!("1m"), Lost),
        ("upgrade.strategy", strategy(), Lost),
        ("upgrade.remediation", json!({"retries": 3}), Mapped),
        ("upgrade.disableTakeOwnership", json!(true), Nothing),
        ("upgrade.disableWait", json!(true), Mapped),
        ("upgrade.disableWaitForJobs", json!(true), Nothing),
        ("upgrade.disableHooks", json!(true), Refused),
        ("upgrade.disableOpenAPIValidation", json!(true), Lost),
        ("upgrade.disableSchemaValidation", json!(true), Lost),
        ("upgrade.force", json!(true), Lost),
        ("upgrade.preserveValues", json!(true), Refused),
        ("upgrade.cleanupOnFail", json!(true), Lost),
        ("upgrade.crds", json!("Create"), Lost),
        ("upgrade.serverSideApply", json!("enabled"), Nothing),
        ("upgrade.chartNameChangeStrategy", json!("InPlace"), Lost),
    ]
}

#[test]
fn each_field_of_a_kustomization_and_its_source_has_its_effect() {
    let convert = |kustomization: &Value, source: &Value| {
        let old = OldResource { repository: Some(source), ..old(Tool::Flux, kustomization) };
        adopt(&old, &requested())
    };
    let of = |kind: &str| named(json!({"sourceRef": {"kind": kind, "name": "shop"}, "prune": true}));
    let (git, oci) = (of("GitRepository"), of("OCIRepository"));
    let repository = named(json!({"url": "https://example.com/shop.git"}));
    check("spec", &of_kustomization(), |change| {
        let mut kustomization = git.clone();
        change(&mut kustomization["spec"]);
        convert(&kustomization, &repository)
    });
    check("GitRepository spec", &of_git_repository(), |change| {
        let mut repository = repository.clone();
        change(&mut repository["spec"]);
        convert(&git, &repository)
    });
    check("OCIRepository spec", &of_oci_repository(), |change| {
        let mut repository = named(json!({"url": "oci://example.com/shop"}));
        change(&mut repository["spec"]);
        convert(&oci, &repository)
    });
}

fn of_kustomization() -> Vec<Row> {
    vec![
        ("commonMetadata", json!({"labels": {"a": "b"}}), Mapped),
        ("dependsOn", json!([{"name": "infra"}]), Mapped),
        ("decryption", json!({"provider": "sops", "secretRef": {"name": "keys"}}), Mapped),
        ("decryption", json!({"provider": "other"}), Refused),
        ("interval", json!("1m"), Nothing),
        ("retryInterval", json!("1m"), Nothing),
        ("kubeConfig", json!({"secretRef": {"name": "far"}}), Refused),
        ("path", json!("./prod"), Mapped),
        ("postBuild", json!({"substitute": {"a": "b"}}), Mapped),
        ("prune", json!(false), Mapped),
        ("deletionPolicy", json!("Delete"), Lost),
        ("healthChecks", json!([{"kind": "Deployment", "name": "a"}]), Mapped),
        ("namePrefix", json!("a-"), Mapped),
        ("nameSuffix", json!("-a"), Mapped),
        ("patches", json!([{"patch": "{}", "target": {"kind": "Deployment"}}]), Mapped),
        ("images", json!([{"name": "a", "newTag": "1"}]), Mapped),
        ("serviceAccountName", json!("deployer"), Mapped),
        ("sourceRef", json!({"kind": "Bucket", "name": "shop"}), Refused),
        ("sourceRef", json!({"kind": "ExternalArtifact", "name": "shop"}), Refused),
        ("suspend", json!(true), Mapped),
        ("targetNamespace", json!("other"), Mapped),
        ("timeout", json!("1m"), Mapped),
        ("force", json!(true), Lost),
        ("wait", json!(true), Mapped),
        ("buildMetadata", json!(["originAnnotations"]), Lost),
        ("components", json!(["../a"]), Mapped),
        ("ignoreMissingComponents", json!(true), Nothing),
        (
            "healthCheckExprs",
            json!([{"apiVersion": "a.b/v1", "kind": "C", "current": "status.ready"}]),
            Mapped,
        ),
        ("ignore", json!([{"paths": ["/spec/replicas"], "target": {"kind": "Deployment"}}]), Mapped),
    ]
}

fn of_git_repository() -> Vec<Row> {
    vec![
        ("url", json!("https://example.com/other.git"), Mapped),
        ("secretRef", json!({"name": "login"}), Mapped),
        ("provider", json!("azure"), Mapped),
        ("provider", json!("other"), Refused),
        ("serviceAccountName", json!("puller"), Lost),
        ("interval", json!("7m"), Mapped),
        ("timeout", json!("1m"), Nothing),
        ("ref", json!({"tag": "v1"}), Mapped),
        ("ref", json!({"name": "refs/pull/1/head"}), Refused),
        ("verify", json!({"mode": "HEAD", "secretRef": {"name": "keys"}}), Mapped),
        ("proxySecretRef", json!({"name": "proxy"}), Lost),
        ("ignore", json!("*.md"), Refused),
        ("suspend", json!(true), Mapped),
        ("recurseSubmodules", json!(true), Mapped),
        ("include", json!([{"repository": {"name": "a"}, "fromPath": "b"}]), Refused),
        ("sparseCheckout", json!(["a"]), Lost),
    ]
}

fn of_oci_repository() -> Vec<Row> {
    vec![
        ("url", json!("oci://example.com/other"), Mapped),
        ("ref", json!({"semver": "1.x"}), Mapped),
        ("layerSelector", json!({"mediaType": "application/x"}), Mapped),
        ("layerSelector", json!({"operation": "copy"}), Nothing),
        ("provider", json!("aws"), Mapped),
        ("provider", json!("other"), Refused),
        ("secretRef", json!({"name": "login"}), Mapped),
        ("verify", json!({"provider": "cosign", "secretRef": {"name": "keys"}}), Mapped),
        ("verify", json!({"provider": "notation", "secretRef": {"name": "keys"}}), Refused),
        ("serviceAccountName", json!("puller"), Lost),
        ("certSecretRef", json!({"name": "login"}), Mapped),
        ("proxySecretRef", json!({"name": "proxy"}), Lost),
        ("interval", json!("7m"), Mapped),
        ("timeout", json!("1m"), Nothing),
        ("ignore", json!("*.md"), Refused),
        ("insecure", json!(true), Refused),
        ("suspend", json!(true), Mapped),
    ]
}
