//! Converts the repository of an Application: Git, a repository of charts, or a registry.
//!
//! In: a source of an Application, after its options. Out: the source and the path of a Sync. A
//! chart of a registry is followed itself; one of a chart repository is rendered beside the
//! repository of the Application that applies this one.

use serde_json::{Value, json};

use super::OldResource;
use super::argocd::reference;
use super::flux_sources::{chart_reference, follow_chart, is_registry};
use super::sync_builder::{SyncBuilder, is_set, text};

/// Converts the repository, the path and the revision.
pub(super) fn convert_repository(
    old: &OldResource<'_>,
    (source, beside): (&Value, Option<&(String, Value)>),
    place: &str,
    draft: &mut SyncBuilder,
) {
    let (url, chart) = (text(source, "/repoURL"), text(source, "/chart"));
    if let Some((beside, values)) = beside.filter(|_| !chart.is_empty()) {
        return chart_beside(source, place, (values, beside), draft);
    }
    match (is_registry(url), chart.is_empty()) {
        (true, false) => registry_chart(source, place, draft),
        (_, true) if url.starts_with("oci://") => artifact(source, place, draft),
        (_, true) => {
            draft.url(&format!("{place}.repoURL"), url, "");
            draft.path(text(source, "/path"));
            reference(text(source, "/targetRevision"), draft);
        }
        (false, false) => repository_chart(old, source, place, draft),
    }
}

/// Converts a published chart whose values files are in a repository: the Sync follows the
/// repository, and the chart beside it.
fn chart_beside(source: &Value, place: &str, (values, beside): (&Value, &str), draft: &mut SyncBuilder) {
    let files = draft.spec["render"]["helm"]["valuesFiles"].clone();
    let files: Vec<&str> = files.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if files.iter().any(|file| !file.starts_with('/')) {
        let why = "values files of a published chart are in the chart, and a Sync reads those of Git: commit them, and name them in valuesFiles";
        draft.refuse(format!("{place}.helm.valueFiles"), why);
    }
    // Relative to the root, so that the folder of the first one may be the path.
    let first = files.first().and_then(|file| file.rsplit_once('/')).map_or("", |(folder, _)| folder);
    let path = match first.trim_start_matches('/') {
        "" => ".".to_owned(),
        folder => folder.to_owned(),
    };
    published_chart(source, place, draft);
    draft.url(&format!("{beside}.repoURL"), text(values, "/repoURL"), "");
    draft.path(&path);
    reference(text(values, "/targetRevision"), draft);
}

/// Sets the chart that is rendered beside the files of the source.
fn published_chart(source: &Value, place: &str, draft: &mut SyncBuilder) {
    let (url, name) = (text(source, "/repoURL").trim_end_matches('/'), text(source, "/chart"));
    let version = Some(text(source, "/targetRevision")).filter(|it| !it.is_empty()).unwrap_or("*");
    let (plain, _) = super::sync_builder::without_login(url);
    if plain != url {
        let why = "the URL has credentials in it, which belong in a Secret: remove them, and write render.helm.chart.secretRef of the Sync by hand";
        draft.refuse(format!("{place}.repoURL"), why);
    }
    draft.spec["render"]["helm"]["chart"] = match is_registry(url) {
        true => {
            let host = plain.trim_start_matches("oci://");
            json!({"url": format!("oci://{host}/{name}"), "version": version})
        }
        false => json!({"url": plain, "name": name, "version": version}),
    };
}

/// Converts a chart of a registry, whose URL Argo CD writes without a scheme.
fn registry_chart(source: &Value, place: &str, draft: &mut SyncBuilder) {
    let host = text(source, "/repoURL").trim_start_matches("oci://").trim_end_matches('/');
    let url = format!("oci://{host}/{}", text(source, "/chart"));
    let secret = draft.requested.secret.clone();
    follow_chart(&url, chart_reference(text(source, "/targetRevision")), secret.as_deref(), draft);
    refuse_files(place, draft);
}

/// Refuses values files, which Argo CD reads in the chart, where the path of the Sync is another
/// repository.
fn refuse_files(place: &str, draft: &mut SyncBuilder) {
    let files = &draft.spec["render"]["helm"]["valuesFiles"];
    if files.as_array().into_iter().flatten().filter_map(Value::as_str).any(|file| file.starts_with('/')) {
        let why = "a path from the root has another root here: write it relative to the chart";
        draft.refuse(format!("{place}.helm.valueFiles"), why);
    }
}

/// Converts a chart of a chart repository.
fn repository_chart(old: &OldResource<'_>, source: &Value, place: &str, draft: &mut SyncBuilder) {
    let parent = old.parent.map(|parent| &parent["spec"]["source"]);
    let Some(parent) = parent.filter(|it| is_set(&it["repoURL"]) && !is_set(&it["chart"])) else {
        let why = "a Sync follows a Git repository or a registry, also with a chart of a chart repository, and no Application with one applies this one: commit the Application, and let another one apply it, or take the chart from a registry (oci://)";
        return draft.refuse(format!("{place}.chart"), why);
    };
    if is_set(&draft.spec["render"]["helm"]["valuesFiles"]) {
        let why = "values files of a published chart are in the chart, and a Sync reads those of Git: commit them, and name them in valuesFiles";
        draft.refuse(format!("{place}.helm.valueFiles"), why);
    }
    published_chart(source, place, draft);
    draft.url("the repository of the Application that applies this one", text(parent, "/repoURL"), "");
    draft.path(text(parent, "/path"));
    reference(text(parent, "/targetRevision"), draft);
}

/// Converts an artifact of a registry with manifests or a chart.
fn artifact(source: &Value, place: &str, draft: &mut SyncBuilder) {
    let url = text(source, "/repoURL").trim_end_matches('/');
    let revision = text(source, "/targetRevision");
    let reference = match revision {
        "" => json!({"tag": "latest"}),
        digest if digest.starts_with("sha256:") => json!({"digest": digest}),
        revision => chart_reference(revision),
    };
    let secret = draft.requested.secret.clone();
    if is_set(&source["helm"]) {
        let inside = text(source, "/path").trim_start_matches("./").trim_matches('/');
        if !["", "."].contains(&inside) {
            let why = "a chart of a registry is the whole artifact: set the path to .";
            draft.refuse(format!("{place}.path"), why);
        }
        follow_chart(url, reference, secret.as_deref(), draft);
        return refuse_files(place, draft);
    }
    let mut oci = json!({"url": url, "ref": reference});
    if let Some(secret) = secret {
        oci["secretRef"] = json!({"name": secret});
    }
    draft.spec["source"]["oci"] = oci;
    draft.path(text(source, "/path"));
}
