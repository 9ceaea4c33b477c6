//! Converts a Flux HelmRelease, with the source of its chart, to a Sync.
//!
//! In: both resources, and the repository that applies the HelmRelease. Out: the spec of a Sync,
//! field by field. Fields that would render other objects are refused; fields that only change the
//! operation are listed as lost.

use serde_json::{Value, json};

use super::OldResource;
use super::chart_sources;
use super::flux;
use super::flux_sources::{self, convert_source};
use super::health_rules::convert_health_expressions;
use super::ignore_fields;
use super::sync_builder::{SyncBuilder, is_set, text};

/// Fields of a HelmRelease that affect rendering and that a Sync does not have.
const REFUSED_FIELDS: [(&str, &str); 3] = [
    (
        "postRenderers",
        "objects are not changed after helm: let the values or the chart do it, or commit a kustomization with helmCharts and these patches and images, and adopt that",
    ),
    (
        "commonMetadata",
        "common metadata of the HelmRelease is not applied: let the chart set the labels and annotations",
    ),
    (
        "kubeConfig",
        "a Sync applies to its own cluster only: install Moorline in the target cluster, and adopt there",
    ),
];

/// Fields of a HelmRelease for which a Sync has another way.
const LOST_FIELDS: [(&str, &str); 7] = [
    ("postRenderStrategy", "nothing is changed after helm, neither objects nor hooks"),
    ("rollback", "a rollback applies the last healthy revision like any other"),
    ("uninstall", "deleting the Sync keeps its objects, unless deletionPolicy is Delete"),
    ("maxHistory", "the status keeps the last 10 revisions, and Git all of them"),
    ("persistentClient", "helm has no access to the cluster"),
    ("storageNamespace", "a Sync keeps no release of helm: what is there stays until you delete it"),
    ("waitStrategy", "health.wait waits for all objects of a Sync"),
];

/// Other known fields of a HelmRelease: they are converted, or a Sync does not need them.
const SPEC: [&str; 17] = [
    "chart",
    "chartRef",
    "dependsOn",
    "driftDetection",
    "healthCheckExprs",
    "install",
    "interval",
    "releaseName",
    "serviceAccountName",
    "suspend",
    "targetNamespace",
    "test",
    "timeout",
    "upgrade",
    "values",
    "valuesFrom",
    "strategy",
];

/// Known fields of the part that names a chart.
const CHART: [&str; 9] = [
    "chart",
    "ignoreMissingValuesFiles",
    "interval",
    "reconcileStrategy",
    "sourceRef",
    "suspend",
    "valuesFiles",
    "verify",
    "version",
];

/// Most characters of the name of a release.
const MAX_RELEASE: usize = 53;

pub(super) fn convert_release(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let spec = &old.body["spec"];
    draft.spec["render"] = json!({"type": "Helm", "helm": {}});
    chart(old, draft);
    draft.refuse_each(spec, "spec", &REFUSED_FIELDS);
    draft.mark_each_lost(spec, "spec", &LOST_FIELDS);
    let known: Vec<&str> =
        REFUSED_FIELDS.iter().chain(&LOST_FIELDS).map(|(field, _)| *field).chain(SPEC).collect();
    draft.mark_unknown_lost(spec, "spec", &known);
    release(old, draft);
    values(old, draft);
    actions(spec, draft);
    convert_health_expressions(spec, draft);
    if let Some(timeout) = flux::span("timeout", "spec", spec, draft) {
        draft.spec["timeout"] = timeout.into();
    }
    tests(&spec["test"], draft);
    if spec["suspend"] == json!(true) {
        draft.spec["suspend"] = true.into();
    }
    drift(spec, draft);
    flux::identity(old, draft);
    flux::dependencies(old, draft);
    flux::parent(old, draft);
    let why = "deleting the HelmRelease uninstalled its objects, deleting the Sync keeps them: set deletionPolicy: Delete on the Sync for the old behaviour";
    draft.mark_lost("metadata.finalizers", why);
}

/// The part of a HelmRelease, or of a HelmChart, that names a chart.
struct ChartPart<'a> {
    spec: &'a Value,
    place: &'static str,
}

/// Converts the chart and the repository that the Sync follows.
fn chart(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let spec = &old.body["spec"];
    let part = match (is_set(&spec["chart"]), text(spec, "/chartRef/kind")) {
        (true, _) => ChartPart { spec: &spec["chart"]["spec"], place: "spec.chart.spec" },
        (false, "OCIRepository") => {
            chart_sources::oci_repository(old, draft);
            return own_repository(old, draft);
        }
        (false, "HelmChart") => match old.chart {
            Some(chart) => ChartPart { spec: &chart["spec"], place: "HelmChart spec" },
            None => return draft.refuse("spec.chartRef", "there is no such HelmChart"),
        },
        (false, kind) => {
            let why = format!(
                "charts come from Git, from repositories of charts and from registries, and this is of the kind {kind}"
            );
            return draft.refuse("spec.chartRef", why);
        }
    };
    let ChartPart { spec: chart, place } = part;
    draft.mark_unknown_lost(chart, place, &CHART);
    if is_set(&chart["ignoreMissingValuesFiles"]) {
        let why = "a values file that is not there is an error: name those that are there";
        draft.mark_lost(format!("{place}.ignoreMissingValuesFiles"), why);
    }
    match text(chart, "/sourceRef/kind") {
        "GitRepository" => {
            chart_sources::signatures(&chart["verify"], place, "", draft);
            flux::repository(old, draft);
            draft.path(text(chart, "/chart"));
            let files = chart["valuesFiles"].as_array().into_iter().flatten().filter_map(Value::as_str);
            // Flux reads them from the root of the repository.
            let files: Vec<String> =
                files.map(|file| format!("/{}", file.trim_start_matches("./"))).collect();
            if !files.is_empty() {
                draft.spec["render"]["helm"]["valuesFiles"] = json!(files);
            }
        }
        "HelmRepository" => {
            if is_set(&chart["valuesFiles"]) {
                let why = "values files of a published chart are in the chart, and a Sync reads those of Git: commit them, and name them in valuesFiles";
                draft.refuse(format!("{place}.valuesFiles"), why);
            }
            chart_sources::helm_repository(old, chart, draft);
            let namespace = old.chart_source.map_or("", |source| text(source, "/metadata/namespace"));
            chart_sources::signatures(&chart["verify"], place, namespace, draft);
            own_repository(old, draft);
        }
        kind => {
            let why = format!(
                "charts come from Git, from repositories of charts and from registries, and this is of the kind {kind}"
            );
            draft.refuse(format!("{place}.sourceRef"), why);
        }
    }
}

/// Converts the repository that applies the HelmRelease: a Sync with a published chart follows it.
/// Without one, it follows the chart in its registry.
fn own_repository(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    if let Some(parent) = old.parent {
        return convert_source(old, parent, "Kustomization spec", draft);
    }
    let chart = draft.spec["render"]["helm"]["chart"].take();
    let url = text(&chart, "/url").to_owned();
    if url.starts_with("oci://") {
        // Nothing else names a repository, so the Sync follows the chart itself.
        let named = old.chart_source.and_then(|source| flux_sources::reference(&source["spec"]["ref"]));
        let reference = named.unwrap_or_else(|| flux_sources::chart_reference(text(&chart, "/version")));
        let secret = chart.pointer("/secretRef/name").and_then(Value::as_str);
        flux_sources::follow_chart(&url, reference, secret, draft);
        for field in ["verify", "provider", "serviceAccountName"] {
            if is_set(&chart[field]) {
                draft.spec["source"]["oci"][field] = chart[field].clone();
            }
        }
        if let Some(helm) = draft.spec["render"]["helm"].as_object_mut() {
            helm.remove("chart");
        }
        return;
    }
    draft.spec["render"]["helm"]["chart"] = chart;
    let why = "a Sync follows a Git repository or a registry, also with a chart of a chart repository, and no Kustomization applies this HelmRelease: commit it, and let a Kustomization of Flux apply it first";
    draft.refuse("metadata.labels", why);
}

/// Converts the names of the release.
fn release(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let (spec, own) = (&old.body["spec"], text(old.body, "/metadata/namespace"));
    let (name, target) = (text(old.body, "/metadata/name"), text(spec, "/targetNamespace"));
    let known = [text(spec, "/releaseName"), text(old.body, "/status/history/0/name")];
    let release = match known.into_iter().find(|name| !name.is_empty()) {
        Some(release) => release.to_owned(),
        None if target.is_empty() => name.to_owned(),
        None => format!("{target}-{name}"),
    };
    if release.len() > MAX_RELEASE {
        draft.refuse(
            "spec.releaseName",
            "the name of the release is not known: write it into spec.releaseName",
        );
    }
    let namespace = if target.is_empty() { own } else { target };
    draft.spec["targetNamespace"] = namespace.into();
    draft.spec["render"]["helm"]["releaseName"] = release.into();
    let revision = old.body.pointer("/status/history/0/version").and_then(Value::as_i64);
    if revision.is_some_and(|revision| revision > 1) {
        draft.spec["render"]["helm"]["isUpgrade"] = true.into();
    }
}

fn values(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let spec = &old.body["spec"];
    if let Some(values) = spec["values"].as_object().filter(|values| !values.is_empty()) {
        draft.spec["render"]["helm"]["values"] = values.clone().into();
    }
    let from = spec["valuesFrom"].as_array().into_iter().flatten();
    let from: Vec<Value> = from.map(values_source).collect();
    if from.is_empty() {
        return;
    }
    let (own, namespace) = (text(old.body, "/metadata/namespace"), draft.requested.sync.namespace.clone());
    if own != &*namespace {
        let names = from.iter().map(|one| format!("{} {}", text(one, "/kind"), text(one, "/name")));
        let names = names.collect::<Vec<_>>().join(", ");
        let why = format!("these are read in {namespace}, where the Sync is: copy {names} from {own}");
        draft.mark_lost("spec.valuesFrom", why);
    }
    draft.spec["render"]["helm"]["valuesFrom"] = from.into();
}

fn values_source(from: &Value) -> Value {
    let mut source = json!({"kind": from["kind"], "name": from["name"]});
    for (theirs, ours) in
        [("valuesKey", "key"), ("targetPath", "targetPath"), ("literal", "literal"), ("optional", "optional")]
    {
        if is_set(&from[theirs]) {
            source[ours] = from[theirs].clone();
        }
    }
    source
}

/// Options of installations and upgrades that change the objects.
const REFUSED_ACTIONS: [(&str, &str); 3] = [
    ("disableHooks", "hooks of the chart run: leave them out of the chart, or let them run"),
    ("preserveValues", "values of earlier releases are not kept: write them into spec.values"),
    (
        "replace",
        "objects are applied, not replaced: annotate those that have to be recreated with moorline.dev/recreate: enabled",
    ),
];

/// Options of installations and upgrades for which a Sync has another way.
const LOST_ACTIONS: [(&str, &str); 7] = [
    ("chartNameChangeStrategy", "a chart of another name is an upgrade: what it no longer has is pruned"),
    ("cleanupOnFail", "objects of a commit that fails stay until the next one"),
    ("disableOpenAPIValidation", "fields that the API server does not know are refused"),
    ("disableSchemaValidation", "values are held to the chart's schema"),
    ("force", "annotate objects that have to be recreated with moorline.dev/recreate: enabled"),
    ("timeout", "spec.timeout counts for all steps"),
    ("strategy", "failures are retried without limit, after 1 second to a minute"),
];

/// Other known options: they are converted, or a Sync does not need them.
const ACTIONS: [&str; 9] = [
    "crds",
    "createNamespace",
    "disableTakeOwnership",
    "disableWait",
    "disableWaitForJobs",
    "remediation",
    "serverSideApply",
    "skipCRDs",
    "takeOwnership",
];

/// Converts the options of installations and upgrades.
fn actions(spec: &Value, draft: &mut SyncBuilder) {
    for action in ["install", "upgrade"] {
        let (options, place) = (&spec[action], format!("spec.{action}"));
        draft.refuse_each(options, &place, &REFUSED_ACTIONS);
        draft.mark_each_lost(options, &place, &LOST_ACTIONS);
        let known = REFUSED_ACTIONS.iter().chain(&LOST_ACTIONS).map(|(field, _)| *field);
        let known: Vec<&str> = known.chain(ACTIONS).collect();
        draft.mark_unknown_lost(options, &place, &known);
    }
    if spec["install"]["createNamespace"] == json!(true) {
        draft.spec["createNamespace"] = true.into();
    }
    let crds = |action: &str, default: &'static str| {
        let policy = text(spec, &format!("/{action}/crds")).to_owned();
        if policy.is_empty() { default.to_owned() } else { policy }
    };
    let is_skipped = spec["install"]["skipCRDs"] == json!(true);
    match (crds("install", "Create").as_str(), crds("upgrade", "Skip").as_str()) {
        _ if is_skipped => draft.spec["render"]["helm"]["skipCrds"] = true.into(),
        ("Skip", "Skip") => draft.spec["render"]["helm"]["skipCrds"] = true.into(),
        (_, "CreateReplace") => {}
        (_, upgrade) => {
            let why = format!(
                "definitions in the folder crds of the chart are updated with it, and Flux did not ({upgrade}): look for them in the plan, or set skipCrds"
            );
            draft.mark_lost("spec.upgrade.crds", why);
        }
    }
    let waits = spec["upgrade"]["disableWait"] != json!(true);
    draft.spec["health"] = json!({"wait": waits});
    let remediation = &spec["upgrade"]["remediation"];
    let is_rollback = ["", "rollback"].contains(&text(remediation, "/strategy"));
    if is_set(remediation) && is_rollback {
        draft.spec["rollback"] = json!({"onFailure": true});
    }
    if is_set(&spec["install"]["remediation"]) || is_set(remediation) && !is_rollback {
        let why = "nothing is uninstalled after a failure: failures are retried without limit, after 1 second to a minute";
        draft.mark_lost("spec.install.remediation", why);
    }
}

/// Converts the tests of the chart. Without a test that is left out, all of them run.
fn tests(test: &Value, draft: &mut SyncBuilder) {
    draft.mark_unknown_lost(test, "spec.test", &["enable", "filters", "ignoreFailures", "timeout"]);
    if test["enable"] != json!(true) {
        return;
    }
    if is_set(&test["filters"]) {
        let why = "all tests run, or none, and these run none: write testHooks: true into render.helm of the Sync to run all";
        return draft.mark_lost("spec.test.filters", why);
    }
    draft.spec["render"]["helm"]["testHooks"] = true.into();
    if is_set(&test["ignoreFailures"]) {
        draft.mark_lost("spec.test.ignoreFailures", "a sync whose test fails has failed");
    }
    if is_set(&test["timeout"]) {
        draft.mark_lost("spec.test.timeout", "spec.timeout counts for all steps");
    }
}

/// Converts drift detection. Without it Flux leaves drift alone, and a Sync reports it.
fn drift(spec: &Value, draft: &mut SyncBuilder) {
    let detection = &spec["driftDetection"];
    let mode = if text(detection, "/mode") == "enabled" { "Repair" } else { "Report" };
    draft.spec["drift"] = json!({"mode": mode});
    ignore_fields::convert_ignore(detection, "spec.driftDetection.ignore", draft);
}
