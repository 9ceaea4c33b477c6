//! Finds the folder of a repository that an ExternalArtifact was copied from.
//!
//! In: the ArtifactGenerator that makes the artifact, and a path in the artifact. Out: the source
//! and the path in it, if all files around that path are where they are in the source, or the
//! reason why a Sync cannot follow it.

use serde_json::Value;

use super::sync_builder::{is_set, text};

/// A folder in a source.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SourceFolder {
    /// GitRepository or OCIRepository.
    pub(super) kind: &'static str,
    /// The path in the source.
    pub(super) path: String,
}

/// Finds the folder of a path in an artifact.
pub(super) fn find_folder(
    generator: Option<&Value>,
    artifact: &str,
    path: &str,
) -> Result<SourceFolder, String> {
    let Some(generator) = generator else {
        return Err(format!(
            "no ArtifactGenerator makes the ExternalArtifact {artifact}, so that its repository is not known: let the Kustomization name the repository"
        ));
    };
    let maker = text(generator, "/metadata/name");
    let other = |why: &str| {
        Err(format!(
            "the ArtifactGenerator {maker} {why}: let the Kustomization name the repository, with the path in it"
        ))
    };
    let list = |field: &str| generator["spec"][field].as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(made) = list("artifacts").iter().find(|it| text(it, "/name") == artifact) else {
        return other("does not make this artifact");
    };
    let copies = made["copy"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut found: Option<(&str, String)> = None;
    for copy in copies {
        if is_set(&copy["exclude"]) || !["", "Overwrite"].contains(&text(copy, "/strategy")) {
            return other("leaves out, merges or unpacks files");
        }
        let Some((alias, root)) = root_of(text(copy, "/from"), text(copy, "/to")) else {
            return other("moves files to other places");
        };
        match &found {
            Some(known) if *known != (alias, root.clone()) => {
                return other("joins files of several places");
            }
            _ => found = Some((alias, root)),
        }
    }
    let Some((alias, root)) = found else { return other("copies nothing") };
    let source = list("sources").iter().find(|source| text(source, "/alias") == alias);
    let kind = match source.map(|source| text(source, "/kind")) {
        Some("GitRepository") => "GitRepository",
        Some("OCIRepository") => "OCIRepository",
        _ => return other("copies from a source that is neither a GitRepository nor an OCIRepository"),
    };
    let path = path.trim_start_matches("./").trim_matches('/');
    let parts = [&*root, path].into_iter().filter(|part| !part.is_empty());
    Ok(SourceFolder { kind, path: format!("./{}", parts.collect::<Vec<_>>().join("/")) })
}

/// Returns the alias of a source, and the folder of it that the root of the artifact stands for:
/// `@repo/apps/base/**` to `@artifact/base/` makes the root `apps`.
fn root_of<'a>(from: &'a str, to: &str) -> Option<(&'a str, String)> {
    let (alias, from) = from.strip_prefix('@')?.split_once('/')?;
    let from = from.strip_suffix("**")?.trim_matches('/');
    let to = to.strip_prefix("@artifact")?.trim_matches('/');
    let is_plain = |path: &str| {
        !path.contains(['*', '?', '[', '{', '\\']) && !path.split('/').any(|part| [".", ".."].contains(&part))
    };
    if !is_plain(from) || !is_plain(to) {
        return None;
    }
    let root = match (from, to) {
        (from, "") => from,
        (from, to) if from == to => "",
        (from, to) => from.strip_suffix(to)?.strip_suffix('/')?,
    };
    Some((alias, root.to_owned()))
}

/// Returns the ArtifactGenerator that makes an ExternalArtifact, as namespace and name.
pub fn generator_name(artifact: &Value) -> Option<(String, String)> {
    let source = artifact.pointer("/spec/sourceRef")?;
    let own = text(artifact, "/metadata/namespace");
    let (kind, name, namespace) = (text(source, "/kind"), text(source, "/name"), text(source, "/namespace"));
    let namespace = if namespace.is_empty() { own } else { namespace };
    (kind == "ArtifactGenerator" && !name.is_empty()).then(|| (namespace.to_owned(), name.to_owned()))
}

/// Returns the source that an ArtifactGenerator copies an artifact from, as a reference with
/// `kind`, `name` and `namespace`.
pub fn generator_source<'a>(generator: &'a Value, artifact: &str) -> Option<&'a Value> {
    let made = generator.pointer("/spec/artifacts")?.as_array()?;
    let made = made.iter().find(|it| text(it, "/name") == artifact)?;
    let from = text(made, "/copy/0/from");
    let alias = from.strip_prefix('@')?.split('/').next()?;
    generator.pointer("/spec/sources")?.as_array()?.iter().find(|source| text(source, "/alias") == alias)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_root_of_an_artifact_is_a_folder_of_its_source() {
        for (from, to, expect) in [
            ("@a/infrastructure/**", "@artifact/", Some("infrastructure")),
            ("@a/apps/base/**", "@artifact/base/", Some("apps")),
            ("@a/base/**", "@artifact/base/", Some("")),
            ("@a/**", "@artifact/", Some("")),
            ("@a/deploy/apps/base/**", "@artifact/apps/base", Some("deploy")),
            ("@a/apps/base/**", "@artifact/other/", None),
            ("@a/mybase/**", "@artifact/base/", None),
            ("@a/apps/*.yaml", "@artifact/", None),
            ("@a/apps/*/b/**", "@artifact/", None),
            ("@a/../b/**", "@artifact/", None),
            ("apps/**", "@artifact/", None),
        ] {
            let expect = expect.map(|root| ("a", root.to_owned()));
            assert_eq!(root_of(from, to), expect, "{from} {to}");
        }
    }

    #[test]
    fn a_path_in_an_artifact_is_one_in_its_source() {
        let copy = |from: &str, to: &str| json!({"from": from, "to": to});
        let of = |copies: Vec<Value>, kind: &str| {
            json!({"metadata": {"name": "all"}, "spec": {
                "sources": [{"alias": "a", "kind": kind, "name": "fleet"}, {"alias": "b", "kind": kind, "name": "b"}],
                "artifacts": [{"name": "apps", "copy": copies}]}})
        };
        let both = vec![
            copy("@a/apps/base/**", "@artifact/base/"),
            copy("@a/apps/production/**", "@artifact/production/"),
        ];
        let found = find_folder(Some(&of(both.clone(), "GitRepository")), "apps", "./production");
        let expect = SourceFolder { kind: "GitRepository", path: "./apps/production".to_owned() };
        assert_eq!(found, Ok(expect));
        let found = find_folder(Some(&of(both.clone(), "OCIRepository")), "apps", "");
        assert_eq!(found.map(|it| (it.kind, it.path)), Ok(("OCIRepository", "./apps".to_owned())));
        assert_eq!(
            generator_source(&of(both.clone(), "GitRepository"), "apps").map(|it| text(it, "/name")),
            Some("fleet")
        );
        let whole = copy("@a/**", "@artifact/");
        let with = |field: &str, value: Value| {
            let mut one = whole.clone();
            one[field] = value;
            vec![one]
        };
        for (copies, kind, expect) in [
            (vec![], "GitRepository", "copies nothing"),
            (vec![whole.clone()], "Bucket", "neither a GitRepository"),
            (vec![whole.clone(), copy("@b/**", "@artifact/")], "GitRepository", "several places"),
            (vec![whole.clone(), copy("@a/a/**", "@artifact/")], "GitRepository", "several places"),
            (with("exclude", json!(["*.md"])), "GitRepository", "leaves out"),
            (with("strategy", json!("Extract")), "GitRepository", "unpacks"),
            (vec![copy("@a/a.yaml", "@artifact/")], "GitRepository", "other places"),
        ] {
            let why = find_folder(Some(&of(copies, kind)), "apps", "./x").unwrap_err();
            assert!(why.contains(expect), "{why}");
        }
        assert!(find_folder(Some(&of(both, "GitRepository")), "web", "").is_err());
        assert!(find_folder(None, "apps", "").is_err());
    }

    #[test]
    fn an_artifact_names_its_generator() {
        let artifact = |source: Value| json!({"metadata": {"name": "apps", "namespace": "fleet"}, "spec": {"sourceRef": source}});
        let found = generator_name(&artifact(json!({"kind": "ArtifactGenerator", "name": "all"})));
        assert_eq!(found, Some(("fleet".to_owned(), "all".to_owned())));
        assert_eq!(generator_name(&artifact(json!({"kind": "Other", "name": "all"}))), None);
        assert_eq!(generator_name(&json!({})), None);
    }
}
