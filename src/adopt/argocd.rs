//! Converts an Argo CD Application to a Sync.
//!
//! In: the Application, and the ApplicationSet that generates it, if one does. Out: the spec of a
//! Sync, field by field. Fields that would render other objects are refused; fields that only
//! change the operation are listed as lost.

use serde_json::{Value, json};

use super::OldResource;
use super::adoption_record::deletes_its_objects;
use super::argocd_sources::convert_repository;
use super::helm_options::chart;
use super::kustomize_options::convert_argocd_options;
use super::source_refs::convert_sources;
use super::sync_builder::{SyncBuilder, is_set, text};
use super::{ignore_fields, sync_policy};

/// Names that Argo CD has for the cluster in which it runs.
const OWN_CLUSTER: [&str; 2] = ["https://kubernetes.default.svc", "in-cluster"];

/// Fields that affect rendering and that a Sync does not have.
const REFUSED_FIELDS: [(&str, &str); 1] =
    [("plugin", "plugins are not supported: commit the output of the plugin")];

/// Fields that a Sync does not have, with advice.
const LOST_FIELDS: [(&str, &str); 1] = [("info", "a Sync has no info links: use annotations instead")];

/// Known fields of an Application, of its source and of its policy: they are converted, or a Sync
/// does not need them.
const SPEC: [&str; 9] = [
    "destination",
    "ignoreDifferences",
    "info",
    "project",
    "revisionHistoryLimit",
    "source",
    "sourceHydrator",
    "sources",
    "syncPolicy",
];
const SOURCE: [&str; 11] = [
    "chart",
    "directory",
    "helm",
    "kustomize",
    "name",
    "path",
    "plugin",
    "ref",
    "repoURL",
    "tagPrefix",
    "targetRevision",
];
const POLICY: [&str; 4] = ["automated", "managedNamespaceMetadata", "retry", "syncOptions"];
const AUTOMATED: [&str; 4] = ["allowEmpty", "enabled", "prune", "selfHeal"];
const DESTINATION: [&str; 3] = ["name", "namespace", "server"];
const DIRECTORY: [&str; 5] = ["disableExtensionFilter", "exclude", "include", "jsonnet", "recurse"];

pub(super) fn convert_application(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let spec = &old.body["spec"];
    source(old, draft);
    destination(spec, draft);
    sync_policy::convert_sync_policy(spec, draft);
    ignore_fields::convert_ignore_differences(spec, draft);
    draft.mark_each_lost(spec, "spec", &LOST_FIELDS);
    draft.mark_unknown_lost(spec, "spec", &SPEC);
    for (field, known) in [
        ("syncPolicy", POLICY.as_slice()),
        ("syncPolicy/automated", &AUTOMATED),
        ("destination", &DESTINATION),
    ] {
        let fields = spec.pointer(&format!("/{field}")).unwrap_or(&Value::Null);
        draft.mark_unknown_lost(fields, &format!("spec.{}", field.replace('/', ".")), known);
    }
    let project = text(spec, "/project");
    if !["", "default"].contains(&project) {
        let why = format!(
            "the rules, roles and windows of the project {project} hold for Argo CD only: give the Sync a serviceAccountName with the rights that are meant"
        );
        draft.mark_lost("spec.project", why);
    }
    let annotations = old.body.pointer("/metadata/annotations").and_then(Value::as_object);
    if annotations.into_iter().flatten().any(|(key, _)| key.starts_with("notifications.argoproj.io/")) {
        draft.mark_lost(
            "metadata.annotations",
            "Argo CD sends no more notifications: use the Events and metrics of the Sync",
        );
    }
    check_application_set(old, draft);
}

fn source(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let spec = &old.body["spec"];
    let several;
    let mut beside = None;
    let (place, source) = match spec["sources"].as_array().map(Vec::as_slice) {
        Some([only]) => ("spec.sources[0]", only),
        Some(all @ [_, ..]) => match convert_sources(all, draft) {
            Some(found) => {
                several = found;
                beside = several.beside.as_ref();
                (&*several.place, &several.source)
            }
            None => return,
        },
        Some([]) | None => ("spec.source", &spec["source"]),
    };
    if is_set(&spec["sourceHydrator"]) {
        draft.refuse(
            "spec.sourceHydrator",
            "let the Application name the branch of the rendered manifests as its source",
        );
        return;
    }
    draft.refuse_each(source, place, &REFUSED_FIELDS);
    draft.mark_unknown_lost(source, place, &SOURCE);
    directory(&source["directory"], &format!("{place}.directory"), draft);
    convert_argocd_options(&source["kustomize"], place, draft);
    chart(source, place, text(old.body, "/metadata/name"), draft);
    convert_repository(old, (source, beside), place, draft);
    if is_set(&source["tagPrefix"]) {
        draft.refuse(
            format!("{place}.tagPrefix"),
            "versions are taken from whole tags: name the tag in targetRevision",
        );
    }
}

/// Converts a revision. It may be a branch, a tag, a commit or a range of versions, and does not
/// say which, so this is a guess.
pub(super) fn reference(revision: &str, draft: &mut SyncBuilder) {
    if let Some(reference) = kind_of_revision(revision) {
        draft.spec["source"]["git"]["ref"] = reference;
    }
}

/// Returns the reference that a revision most likely means; none for the default branch.
pub(super) fn kind_of_revision(revision: &str) -> Option<Value> {
    let is_commit = revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digits = revision.trim_start_matches('v');
    let is_version = digits.starts_with(|first: char| first.is_ascii_digit());
    let is_range = revision.contains(['*', '<', '>', '=', '^', '~', '|'])
        || (is_version && digits.split('.').any(|part| ["x", "X"].contains(&part)));
    let kind = match revision {
        "" | "HEAD" => return None,
        _ if is_commit => "commit",
        _ if is_range => "semver",
        _ if is_version && digits.contains('.') => "tag",
        _ => "branch",
    };
    Some(json!({kind: revision.trim_start_matches("refs/heads/")}))
}

fn directory(directory: &Value, place: &str, draft: &mut SyncBuilder) {
    let jsonnet = &directory["jsonnet"];
    if is_set(jsonnet) {
        draft.refuse(format!("{place}.jsonnet"), "Jsonnet is not rendered: commit what it renders");
    }
    if is_set(&directory["disableExtensionFilter"]) {
        let why = "manifests are the files that end with .yaml, .yml or .json: rename those that do not";
        draft.refuse(format!("{place}.disableExtensionFilter"), why);
    }
    draft.mark_unknown_lost(directory, place, &DIRECTORY);
    let recurse = directory["recurse"].as_bool().unwrap_or_default();
    draft.spec["render"] = json!({"plain": {"recurse": recurse}});
    for field in ["include", "exclude"] {
        let glob = text(directory, &format!("/{field}"));
        if glob.is_empty() {
            continue;
        }
        match globs(glob, recurse) {
            Some(globs) => draft.spec["render"]["plain"][field] = json!(globs),
            None => draft.refuse(
                format!("{place}.{field}"),
                "this glob has another meaning in a Sync: use one such as *.yaml or {a,b}/*",
            ),
        }
    }
}

/// Converts a glob of Argo CD, whose stars cross folders, to globs whose stars do not.
fn globs(glob: &str, recurse: bool) -> Option<Vec<String>> {
    let inner = glob.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let parts: Vec<&str> =
        inner.map_or_else(|| vec![glob], |inner| inner.split(',').map(str::trim).collect());
    let one = |part: &&str| {
        let stars = part.matches('*').count();
        let sound = !part.is_empty() && !part.contains(['{', '}', '[', '\\', '!']) && !part.starts_with('/');
        match (sound, stars) {
            (false, _) => None,
            _ if !recurse || stars == 0 => Some((*part).to_owned()),
            // Only at an end of the glob is it clear which folders a star matches.
            (true, 1) if part.starts_with('*') => Some(format!("**/{part}")),
            (true, 1) if part.ends_with("/*") => Some(format!("{part}*/*")),
            (true, _) if stars == 2 && part.starts_with("**/") => Some((*part).to_owned()),
            _ => None,
        }
    };
    parts.iter().map(one).collect()
}

fn destination(spec: &Value, draft: &mut SyncBuilder) {
    let destination = &spec["destination"];
    for field in ["server", "name"] {
        let cluster = text(destination, &format!("/{field}"));
        if !cluster.is_empty() && !OWN_CLUSTER.contains(&cluster) {
            let why = "a Sync applies to its own cluster only: install Moorline in the target cluster, and adopt there";
            draft.refuse(format!("spec.destination.{field}"), why);
        }
    }
    let namespace = text(destination, "/namespace");
    if !namespace.is_empty() {
        draft.spec["targetNamespace"] = namespace.into();
    }
}

/// Refuses an Application whose ApplicationSet would overwrite it, and so restart Argo CD.
fn check_application_set(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let owners = old.body.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let maker = owners.into_iter().flatten().find(|owner| owner["kind"] == "ApplicationSet");
    let Some(maker) = maker else {
        check_parent(old, draft);
        return;
    };
    let name = text(maker, "/name");
    let leaves = old.application_set.map(|maker| text(maker, "/spec/syncPolicy/applicationsSync"));
    if !matches!(leaves, Some("create-only" | "create-delete")) {
        let why = format!(
            "the ApplicationSet {name} would restart it: set spec.syncPolicy.applicationsSync: create-only there first"
        );
        draft.refuse("metadata.ownerReferences", why);
    }
    let why = format!(
        "the ApplicationSet {name} recreates it when it is deleted: remove it from the generators first"
    );
    draft.mark_lost("metadata.ownerReferences", why);
}

/// Refuses an Application whose parent applies it: the parent would restore its finalizers, and
/// delete it with its objects once it leaves the parent's repository.
fn check_parent(old: &OldResource<'_>, draft: &mut SyncBuilder) {
    let Some(parent) = parent(old) else { return };
    if deletes_its_objects(old.tool, old.body) {
        let why = format!(
            "{parent} applies this one, would restore its finalizers, and delete its objects with it: remove metadata.finalizers from its manifest in that repository first, and sync it"
        );
        draft.refuse("metadata.finalizers", why);
    }
    let why =
        format!("{parent} applies this one: remove it from that repository to make the adoption permanent");
    draft.mark_lost("metadata.annotations", why);
}

/// The Application that applies this one, by the marks on it.
pub fn parent_application(body: &Value) -> Option<String> {
    let mark = |place: &str| text(body, &format!("/metadata/{place}"));
    let own = |field: &str| mark(field).to_owned();
    let place = format!(":argoproj.io/Application:{}/{}", own("namespace"), own("name"));
    // A copy carries the tracking id of the original, which says nothing about the copy.
    let by_id = mark("annotations/argocd.argoproj.io~1tracking-id").strip_suffix(&place);
    let by_label = Some(mark("labels/app.kubernetes.io~1instance")).filter(|name| *name != own("name"));
    by_id.or(by_label).filter(|name| !name.is_empty()).map(str::to_owned)
}

/// The resource that applies this one, by the marks on it.
fn parent(old: &OldResource<'_>) -> Option<String> {
    let mark = |place: &str| text(old.body, &format!("/metadata/{place}"));
    let by_flux = mark("labels/kustomize.toolkit.fluxcd.io~1name");
    let sync = mark("labels/moorline.dev~1sync");
    match parent_application(old.body) {
        Some(name) => Some(format!("the Application {name}")),
        None if !by_flux.is_empty() => Some(format!("the Kustomization {by_flux}")),
        None if !sync.is_empty() => Some(format!("the Sync {sync}")),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_mean_the_same_or_are_refused() {
        for (glob, recurse, expect) in [
            ("*.yaml", false, Some(vec!["*.yaml"])),
            ("*.yaml", true, Some(vec!["**/*.yaml"])),
            ("{*.yml,*.yaml}", true, Some(vec!["**/*.yml", "**/*.yaml"])),
            ("some/*", true, Some(vec!["some/**/*"])),
            ("a.yaml", true, Some(vec!["a.yaml"])),
            ("a*b*c", true, None),
            ("a*b*c", false, Some(vec!["a*b*c"])),
            ("**/a*.yaml", true, None),
            ("{a,{b}}", true, None),
            ("[ab].yaml", false, None),
        ] {
            let expect = expect.map(|all| all.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(globs(glob, recurse), expect, "{glob} {recurse}");
        }
    }
}
