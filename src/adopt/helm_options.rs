//! Converts the Helm options of an Application to `spec.render.helm` of a Sync.
//!
//! In: `source.helm` of an Application. Out: the same for the Sync, or a reason why its objects
//! would differ.

use serde_json::{Value, json};

use super::helm_parameters::set_parameters;
use super::sync_builder::{SyncBuilder, is_set, text};
use crate::yaml::{self, Dialect};

/// Options that affect rendering and that a Sync does not have.
const REFUSED_FIELDS: [(&str, &str); 2] = [
    ("apiVersions", "templates see what the server serves: leave them out, and look at the plan"),
    (
        "fileParameters",
        "values are not read from single files: write them into valuesObject or a values file, or into a ConfigMap or Secret that valuesFrom of the Sync names with targetPath and literal: true",
    ),
];

/// Options without which a chart that renders has the same objects.
const LOST_FIELDS: [(&str, &str); 2] = [
    ("ignoreMissingValueFiles", "a values file that is not there is an error: name those that are there"),
    ("skipSchemaValidation", "values are held to the chart's schema: let them fit it"),
];

/// Known fields: they are converted, or a Sync does not need them, because one version of helm
/// renders all charts and nothing is fetched.
const FIELDS: [&str; 14] = [
    "apiVersions",
    "fileParameters",
    "ignoreMissingValueFiles",
    "kubeVersion",
    "namespace",
    "parameters",
    "passCredentials",
    "releaseName",
    "skipCrds",
    "skipSchemaValidation",
    "skipTests",
    "valueFiles",
    "values",
    "valuesObject",
];

pub(super) fn chart(source: &Value, place: &str, application: &str, draft: &mut SyncBuilder) {
    let helm = &source["helm"];
    if !is_set(helm) && !is_set(&source["chart"]) {
        return;
    }
    let place = format!("{place}.helm");
    draft.refuse_each(helm, &place, &REFUSED_FIELDS);
    draft.mark_each_lost(helm, &place, &LOST_FIELDS);
    draft.mark_unknown_lost(helm, &place, &[&FIELDS[..], &["version"]].concat());
    let release = Some(text(helm, "/releaseName")).filter(|name| !name.is_empty()).unwrap_or(application);
    let mut options = json!({"releaseName": release});
    for field in ["namespace", "kubeVersion", "skipCrds"] {
        if is_set(&helm[field]) {
            options[field] = helm[field].clone();
        }
    }
    let files: Vec<&str> =
        helm["valueFiles"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if files.iter().any(|file| file.contains(['$', '*', '?', '[', '{']) || file.contains("://")) {
        let why = "files of values are paths in the repository of the chart: write them without variables, stars and URLs";
        draft.refuse(format!("{place}.valueFiles"), why);
    } else if !files.is_empty() {
        options["valuesFiles"] = json!(files);
    }
    // Argo CD prefers the object if both are set.
    let values = match is_set(&helm["valuesObject"]) {
        true => Some(helm["valuesObject"].clone()),
        false => written(text(helm, "/values")),
    };
    match values {
        Some(Value::Object(mut values)) => {
            set_parameters(&mut values, &helm["parameters"], &place, draft);
            if !values.is_empty() {
                options["values"] = values.into();
            }
        }
        Some(_) | None => {
            draft.refuse(format!("{place}.values"), "these are no values: write a mapping in YAML")
        }
    }
    draft.spec["render"]["type"] = "Helm".into();
    draft.spec["render"]["helm"] = options;
}

/// Parses values that are written as text; an empty text has no values.
fn written(values: &str) -> Option<Value> {
    let mut documents = yaml::read("values", values.as_bytes(), Dialect::Kubectl).ok()?.into_iter();
    let first = documents.next().map_or_else(|| json!({}), |document| document.value);
    documents.next().is_none().then_some(first)
}
