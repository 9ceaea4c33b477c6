//! Converts several sources of an Application: one that is rendered, and others that it refers to.
//!
//! In: `spec.sources` of an Application. Out: the source that is rendered, whose values files name
//! files in mounts, and `spec.source.mounts` of the Sync; or the field that has no counterpart.

use serde_json::{Value, json};

use super::argocd::kind_of_revision;
use super::sync_builder::{SyncBuilder, is_set, text};

/// Folder of the mounts in the repository of the rendered source.
const FOLDER: &str = "argocd-sources";

/// Fields of a source that is only referred to.
const REFERRED: [&str; 3] = ["ref", "repoURL", "targetRevision"];

/// Several sources, converted.
pub(super) struct ConvertedSources {
    /// Place of the source that is rendered.
    pub(super) place: String,
    /// That source, with values files as a Sync names them.
    pub(super) source: Value,
    /// The repository of values files of a published chart, with its place: the Sync follows it.
    pub(super) beside: Option<(String, Value)>,
}

/// Converts sources; none if that cannot be done.
pub(super) fn convert_sources(sources: &[Value], draft: &mut SyncBuilder) -> Option<ConvertedSources> {
    let is_rendered = |source: &Value| {
        let renders = ["path", "chart"].into_iter().any(|field| is_set(&source[field]));
        renders || !is_set(&source["ref"])
    };
    let rendered: Vec<usize> = (0..sources.len()).filter(|at| is_rendered(&sources[*at])).collect();
    let [at] = rendered[..] else {
        let why = "a Sync renders one source, and others are mounted: make an Application of each source with a path, and adopt them one by one";
        draft.refuse("spec.sources", why);
        return None;
    };
    let mut source = sources[at].clone();
    let place = |at: usize| format!("spec.sources[{at}]");
    let is_published = is_set(&source["chart"]);
    let (mut mounts, mut beside) = (Vec::new(), None);
    for (other, referred) in sources.iter().enumerate().filter(|(other, _)| *other != at) {
        let name = text(referred, "/ref");
        draft.mark_unknown_lost(referred, &place(other), &REFERRED);
        let is_same = |field: &str| referred[field] == source[field];
        let is_own = is_same("repoURL") && is_same("targetRevision");
        if is_published && beside.is_none() && rename_values(&mut source, name, "") {
            beside = Some((place(other), referred.clone()));
            continue;
        }
        let folder = if is_own { String::new() } else { format!("{FOLDER}/{name}") };
        if rename_values(&mut source, name, &folder) && !is_own {
            mounts.extend(mount(referred, &place(other), &folder, draft));
        }
    }
    // A source may refer to itself.
    let own = text(&source, "/ref").to_owned();
    rename_values(&mut source, &own, "");
    if !mounts.is_empty() {
        draft.spec["source"]["mounts"] = mounts.into();
    }
    Some(ConvertedSources { place: place(at), source, beside })
}

/// Names the values files of a source by their path in a folder; true if there are any.
fn rename_values(source: &mut Value, name: &str, folder: &str) -> bool {
    let files = source.pointer_mut("/helm/valueFiles").and_then(Value::as_array_mut);
    let (front, mut found) = (format!("${name}/"), false);
    for file in files.into_iter().flatten() {
        let inside = file.as_str().and_then(|file| file.strip_prefix(&front)).map(str::to_owned);
        if let Some(inside) = inside.filter(|_| !name.is_empty()) {
            let slash = if folder.is_empty() { "" } else { "/" };
            (*file, found) = (format!("{slash}{folder}/{inside}").into(), true);
        }
    }
    found
}

/// Converts a source that is referred to.
fn mount(source: &Value, place: &str, folder: &str, draft: &mut SyncBuilder) -> Option<Value> {
    let (url, name) = (text(source, "/repoURL"), text(source, "/ref"));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !name.bytes().all(is_plain) || [".", ".."].contains(&name) {
        let why = "it becomes a folder: use letters, digits, dots, dashes and underscores";
        draft.refuse(format!("{place}.ref"), why);
        return None;
    }
    let is_open = url.starts_with("https://") && !url.contains('@');
    if !is_open {
        let why = format!(
            "its login belongs in a Secret of {}: create the Sync by hand, with the Secret in spec.source.mounts[].git.secretRef",
            draft.requested.sync.namespace
        );
        draft.refuse(format!("{place}.repoURL"), why);
        return None;
    }
    let mut git = json!({"url": url});
    if let Some(reference) = kind_of_revision(text(source, "/targetRevision")) {
        git["ref"] = reference;
    }
    draft.mark_lost(
        format!("{place}.repoURL"),
        "it is mounted without a login: if it needs one, name a Secret in spec.source.mounts[].git.secretRef",
    );
    Some(json!({"path": folder, "git": git}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adopt::RequestedSync;
    use crate::api::SyncName;

    fn converted(sources: &Value) -> (SyncBuilder, Option<ConvertedSources>) {
        let sync = SyncName::new("moorline", "shop");
        let mut draft = SyncBuilder::new(RequestedSync { sync, secret: None });
        let found = convert_sources(sources.as_array().unwrap(), &mut draft);
        (draft, found)
    }

    #[test]
    fn sources_that_are_referred_to_are_mounted() {
        let (draft, found) = converted(&json!([
            {"repoURL": "https://example.com/values.git", "targetRevision": "main", "ref": "values"},
            {"repoURL": "https://example.com/charts.git", "path": "shop", "ref": "own",
                "helm": {"valueFiles": ["$values/prod.yaml", "$own/a.yaml", "$same/b.yaml", "c.yaml", "$gone/d.yaml"]}},
            {"repoURL": "https://example.com/charts.git", "ref": "same"},
            {"repoURL": "https://example.com/unused.git", "ref": "unused"},
        ]));
        let ConvertedSources { place, source, beside } = found.unwrap();
        assert_eq!(beside, None);
        assert_eq!((&*place, draft.refused.len()), ("spec.sources[1]", 0));
        let files =
            json!(["/argocd-sources/values/prod.yaml", "/a.yaml", "/b.yaml", "c.yaml", "$gone/d.yaml"]);
        assert_eq!(source["helm"]["valueFiles"], files);
        let git = json!({"url": "https://example.com/values.git", "ref": {"branch": "main"}});
        assert_eq!(draft.spec["source"]["mounts"], json!([{"path": "argocd-sources/values", "git": git}]));
    }

    #[test]
    fn a_published_chart_is_beside_the_repository_of_its_values() {
        let values = json!({"repoURL": "https://example.com/values.git", "ref": "values"});
        let (draft, found) = converted(&json!([
            {"repoURL": "https://charts.example.com", "chart": "shop", "targetRevision": "1.x",
                "helm": {"valueFiles": ["$values/shop/prod.yaml", "$more/all.yaml"]}},
            values,
            {"repoURL": "https://example.com/more.git", "ref": "more"},
        ]));
        let found = found.unwrap();
        assert_eq!(found.beside, Some(("spec.sources[1]".to_owned(), values)));
        let files = json!(["/shop/prod.yaml", "/argocd-sources/more/all.yaml"]);
        assert_eq!((&found.source["helm"]["valueFiles"], draft.refused.len()), (&files, 0));
        let git = json!({"url": "https://example.com/more.git"});
        assert_eq!(draft.spec["source"]["mounts"], json!([{"path": "argocd-sources/more", "git": git}]));
    }

    #[test]
    fn what_cannot_be_mounted_is_refused_by_its_field() {
        let rendered =
            json!({"repoURL": "https://a.example/b", "path": "b", "helm": {"valueFiles": ["$v/a.yaml"]}});
        let check = |other: Value, field: &str| {
            let (draft, _) = converted(&json!([rendered, other]));
            assert_eq!(draft.refused.first().map(|it| &*it.field), Some(field));
            assert!(!format!("{draft:?}").contains("planted"));
        };
        check(json!({"repoURL": "https://a.example/c", "path": "c"}), "spec.sources");
        check(json!({"repoURL": "https://a.example/c"}), "spec.sources");
        check(json!({"repoURL": "git@a.example:c", "ref": "v"}), "spec.sources[1].repoURL");
        check(json!({"repoURL": "oci://a.example/c", "ref": "v"}), "spec.sources[1].repoURL");
        check(json!({"repoURL": "https://me:planted@a.example/c", "ref": "v"}), "spec.sources[1].repoURL");
    }
}
