//! Fields of a Sync, a Notifier and a SyncSet that name an address, a Secret or an account, and the part that judges each of them.
//!
//! In: the definitions that the program prints, the tables in docs/security.md, the chart's admission policy.
//! Out: nothing, or the fields that are in neither list.

use std::collections::BTreeSet;

use serde_json::Value;

/// Fields that name nothing outside the Sync's own files and objects.
const OTHERS: &[&str] = &[
    "approval.revisions",
    "conflicts",
    "createNamespace",
    "deletionPolicy",
    "dependsOn[].healthyFor",
    "dependsOn[].namespace",
    "drift.extraFields",
    "drift.mode",
    "health.rules[].degraded",
    "health.rules[].group",
    "health.rules[].healthy",
    "health.rules[].kind",
    "health.rules[].progressing",
    "health.timeout",
    "health.wait",
    "ignoreFields[].paths[]",
    "ignoreFields[].target.group",
    "ignoreFields[].target.kind",
    "ignoreFields[].target.name",
    "ignoreFields[].target.namespace",
    "interval",
    "prune.budget.count",
    "prune.budget.percent",
    "prune.enabled",
    "prune.protect[]",
    "render.helm.chart.digest",
    "render.helm.chart.name",
    "render.helm.chart.provider",
    "render.helm.chart.verify.keyless[].issuer",
    "render.helm.chart.verify.keyless[].subject",
    "render.helm.chart.version",
    "render.helm.isUpgrade",
    "render.helm.kubeVersion",
    "render.helm.namespace",
    "render.helm.releaseName",
    "render.helm.skipCrds",
    "render.helm.testHooks",
    "render.helm.values",
    "render.helm.valuesFiles[]",
    "render.helm.valuesFrom[].key",
    "render.helm.valuesFrom[].kind",
    "render.helm.valuesFrom[].literal",
    "render.helm.valuesFrom[].optional",
    "render.helm.valuesFrom[].targetPath",
    "render.kustomize.annotations{}",
    "render.kustomize.images[].digest",
    "render.kustomize.images[].name",
    "render.kustomize.images[].newName",
    "render.kustomize.images[].newTag",
    "render.kustomize.labels{}",
    "render.kustomize.namePrefix",
    "render.kustomize.nameSuffix",
    "render.kustomize.namespace",
    "render.kustomize.patches[].patch",
    "render.kustomize.patches[].target.annotationSelector",
    "render.kustomize.patches[].target.group",
    "render.kustomize.patches[].target.kind",
    "render.kustomize.patches[].target.labelSelector",
    "render.kustomize.patches[].target.name",
    "render.kustomize.patches[].target.namespace",
    "render.kustomize.patches[].target.version",
    "render.plain.exclude[]",
    "render.plain.include[]",
    "render.plain.recurse",
    "render.substitute.from[].kind",
    "render.substitute.from[].optional",
    "render.substitute.vars{}",
    "render.type",
    "rollback.onFailure",
    "source.git.provider",
    "source.git.ref.branch",
    "source.git.ref.commit",
    "source.git.ref.semver",
    "source.git.ref.tag",
    "source.git.verify.mode",
    "source.mounts[].git.provider",
    "source.mounts[].git.ref.branch",
    "source.mounts[].git.ref.commit",
    "source.mounts[].git.ref.semver",
    "source.mounts[].git.ref.tag",
    "source.mounts[].git.verify.mode",
    "source.mounts[].oci.layer.mediaType",
    "source.mounts[].oci.layer.operation",
    "source.mounts[].oci.provider",
    "source.mounts[].oci.ref.digest",
    "source.mounts[].oci.ref.filter",
    "source.mounts[].oci.ref.semver",
    "source.mounts[].oci.ref.tag",
    "source.mounts[].oci.verify.keyless[].issuer",
    "source.mounts[].oci.verify.keyless[].subject",
    "source.mounts[].path",
    "source.oci.layer.mediaType",
    "source.oci.layer.operation",
    "source.oci.provider",
    "source.oci.ref.digest",
    "source.oci.ref.filter",
    "source.oci.ref.semver",
    "source.oci.ref.tag",
    "source.oci.verify.keyless[].issuer",
    "source.oci.verify.keyless[].subject",
    "suspend",
    "targetNamespace",
    "timeout",
];

/// Fields of a Notifier that name nothing outside of it.
const OTHERS_OF_NOTIFIER: &[&str] = &[
    "filter",
    "message",
    "pullRequests.check",
    "pullRequests.comment",
    "pullRequests.label",
    "transitions[]",
    "suspend",
    "syncs.matchLabels{}",
    "syncs.names[]",
    "throttle",
];

/// Fields of a SyncSet that name nothing outside of it. The template has the fields of a Sync.
const OTHERS_OF_SYNC_SET: &[&str] = &[
    "interval",
    "name",
    "onDelete",
    "prune.budget.count",
    "prune.budget.percent",
    "prune.enabled",
    "rollout.onFailure",
    "rollout.stages[].healthyFor",
    "rollout.stages[].matchExpressions[].key",
    "rollout.stages[].matchExpressions[].operator",
    "rollout.stages[].matchExpressions[].values[]",
    "rollout.stages[].matchLabels{}",
    "rollout.stages[].maxUnavailable",
    "set[].value",
    "suspend",
];

/// Fields of each generator of a SyncSet that name nothing outside of it.
const OTHERS_OF_GENERATOR: &[&str] = &[
    "clusters.key",
    "clusters.selector.matchExpressions[].operator",
    "clusters.selector.matchExpressions[].values[]",
    "git.files.exclude[]",
    "git.files.include[]",
    "git.folders.exclude[]",
    "git.folders.include[]",
    "git.ref.branch",
    "git.ref.commit",
    "git.ref.semver",
    "git.ref.tag",
    "list.elements[]",
    "ociTags.filter",
    "ociTags.newest",
    "ociTags.semver",
    "pullRequests.changedWithinDays",
    "pullRequests.label",
    "pullRequests.repository",
    "pullRequests.targetBranch",
];

/// The sections of docs/security.md with the tables.
const SYNC: &str = "### Fields that name";
const NOTIFIER: &str = "### Fields of a Notifier that name";
const SYNC_SET: &str = "### Fields of a SyncSet that name";

/// A row of the table: a field, and what judges it.
struct JudgedField {
    field: String,
    judges: String,
}

#[test]
fn each_field_that_names_an_address_a_secret_or_an_account_is_judged() {
    let [syncs, notifiers, mut sync_sets, ..] =
        moorline::api::definitions().expect("the definitions are JSON");
    for (definition, section, others) in [(syncs, SYNC, OTHERS), (notifiers, NOTIFIER, OTHERS_OF_NOTIFIER)] {
        check_definition(&definition, section, others.iter().map(|&field| field.to_owned()));
    }
    // The Sync in the template is the one of the first table.
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let spec = sync_sets.pointer_mut(spec).and_then(Value::as_object_mut).expect("the fields of the spec");
    spec.remove("template").expect("a template");
    let places = ["", "matrix[].", "merge.generators[]."];
    let of_generators = places.into_iter().flat_map(|place| {
        OTHERS_OF_GENERATOR.iter().map(move |field| format!("generators[].{place}{field}"))
    });
    let own = OTHERS_OF_SYNC_SET.iter().map(|&field| field.to_owned());
    let others = own.chain(of_generators).chain(["generators[].merge.keys[]".to_owned()]);
    check_definition(&sync_sets, SYNC_SET, others);
}

fn check_definition(definition: &Value, section: &str, others: impl Iterator<Item = String>) {
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut fields = BTreeSet::new();
    collect_leaves("", schema, &mut fields);
    let judged: BTreeSet<String> = table(section).into_iter().map(|row| row.field).collect();
    let others: BTreeSet<String> = others.collect();
    let both: Vec<_> = judged.intersection(&others).collect();
    assert!(both.is_empty(), "fields in both lists: {both:?}");
    let known: BTreeSet<String> = judged.union(&others).cloned().collect();
    let new: Vec<_> = fields.difference(&known).collect();
    assert!(
        new.is_empty(),
        "{new:?}: a field that names an address, a Secret or an account needs a row in docs/security.md; \
         any other field belongs to the list of this test"
    );
    let gone: Vec<_> = known.difference(&fields).collect();
    assert!(gone.is_empty(), "no fields of the definition: {gone:?}");
}

#[test]
fn the_admission_policy_of_the_chart_reads_the_fields_that_it_judges() {
    let policy = read("charts/moorline/templates/admission.yaml");
    let rows = [SYNC, NOTIFIER].into_iter().flat_map(table);
    let judged: Vec<_> = rows.filter(|row| row.judges.contains("`admission`")).collect();
    assert!(judged.len() >= 12, "{} fields", judged.len());
    for row in table(SYNC_SET).iter().filter(|row| row.field.ends_with(".url")) {
        let place = row.field.trim_start_matches("generators[].").replace("[]", "[0]");
        assert!(policy.contains(&format!("one.{place}")), "admission.yaml does not read {}", row.field);
    }
    // A generator may find any cluster, so a rule with clusters lets no SyncSet take them.
    assert!(policy.contains("!variables.setsCluster && variables.cluster in rule.clusters"));
    for row in judged {
        // Of a list, the policy reads the list, and the field of each entry.
        let (list, inner) = row.field.split_once("[].").unwrap_or((row.field.trim_end_matches("[]"), ""));
        let path = format!("object.spec.{list}");
        let entry = inner.is_empty() || policy.contains(&format!("mount.{inner}"));
        assert!(
            policy.contains(&path) && entry,
            "admission.yaml does not read {}, as docs/security.md says",
            row.field
        );
    }
}

/// Reads the rows of the table in docs/security.md.
fn table(section: &str) -> Vec<JudgedField> {
    let page = read("docs/security.md");
    let (_, section) = page.split_once(section).expect("the section of judged fields");
    let section = section.split("\n## ").next().and_then(|text| text.split("\n### ").next());
    let section = section.expect("the text of the section");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [field, _, judges] = cells[..] else { panic!("a row without three cells: {row}") };
        JudgedField { field: field.trim_end_matches('`').to_owned(), judges: judges.to_owned() }
    })
    .collect()
}

/// Collects the paths of all fields without fields of their own.
fn collect_leaves(path: &str, schema: &Value, leaves: &mut BTreeSet<String>) {
    if let Some(properties) = schema["properties"].as_object() {
        for (name, field) in properties {
            let dot = if path.is_empty() { "" } else { "." };
            collect_leaves(&format!("{path}{dot}{name}"), field, leaves);
        }
    } else if schema["items"].is_object() {
        collect_leaves(&format!("{path}[]"), &schema["items"], leaves);
    } else if schema["additionalProperties"].is_object() {
        collect_leaves(&format!("{path}{{}}"), &schema["additionalProperties"], leaves);
    } else {
        leaves.insert(path.to_owned());
    }
}

fn read(path: &str) -> String {
    let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(place).expect("a file of the repository")
}
