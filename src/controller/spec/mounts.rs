//! Validates the mounts of a source: their folders, and the source of each.
//!
//! In: `spec.source.mounts`. Out: [`ValidatedMount`]s, or an error that names the mount.

use serde_json::{Value, json};

use super::source::{ValidatedSource, source};
use super::verification::of_unsound;
use super::{SpecError, refuse};
use crate::api::{MAX_MOUNTS, SourceMount};

/// A valid mount: another source, whose files lie in a folder of the source.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidatedMount {
    /// The folder, without `./`.
    pub path: Box<str>,
    /// The source of its files.
    pub source: ValidatedSource,
}

/// Field of the mounts.
const FIELD: &str = "spec.source.mounts";

/// Validates the mounts of a source.
pub(super) fn mounts(mounts: &[SourceMount]) -> Result<Vec<ValidatedMount>, SpecError> {
    if mounts.len() > MAX_MOUNTS {
        return refuse(FIELD, format!("write at most {MAX_MOUNTS} mounts"));
    }
    let mut found: Vec<ValidatedMount> = Vec::new();
    for (at, mount) in mounts.iter().enumerate() {
        let of_mount = |error: SpecError| SpecError {
            field: error.field.replacen("spec.source", &format!("{FIELD}[{at}]"), 1).into(),
            ..error
        };
        let path = folder(&mount.path, at)?;
        if let Some((other, known)) = found.iter().enumerate().find(|(_, known)| overlap(&known.path, &path))
        {
            let message = format!(
                "{path} and {} of mounts[{other}] overlap; choose folders beside each other",
                known.path
            );
            return refuse(format!("{FIELD}[{at}].path"), message);
        }
        let source = source(mount.git.as_ref(), mount.oci.as_ref()).map_err(of_mount)?;
        found.push(ValidatedMount { path, source });
    }
    Ok(found)
}

/// Returns the folder of a mount in normal form.
fn folder(text: &str, at: usize) -> Result<Box<str>, SpecError> {
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let is_plain = |part: &&str| {
        *part != ".." && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    match text.starts_with('/') || parts.is_empty() || !parts.iter().all(is_plain) {
        true => refuse(
            format!("{FIELD}[{at}].path"),
            "write a folder inside the repository such as vendor/base: no / in front, no .. in it, and only letters, \
             digits, dots, dashes and underscores",
        ),
        false => Ok(parts.join("/").into()),
    }
}

/// True if one folder is the other one, or lies in it.
fn overlap(one: &str, other: &str) -> bool {
    is_inside(one, other) || is_inside(other, one)
}

/// True if a path is the folder, or lies in it.
pub(in crate::controller) fn is_inside(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// True if the mounts of a spec that cannot be read ask for the same signatures as these.
pub(super) fn have_same_keys(mounts: &[ValidatedMount], newer: Option<&Value>) -> bool {
    let newer = newer.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    (0..mounts.len().max(newer.len())).all(|at| {
        let before = mounts.get(at).and_then(|mount| mount.source.verify.as_ref());
        let source = newer.get(at).cloned().unwrap_or_default();
        let asked = of_unsound(&json!({"source": source}));
        asked.is_some_and(|(verify, _)| verify.as_ref() == before)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid(mounts: Value) -> Result<Vec<ValidatedMount>, SpecError> {
        super::mounts(&serde_json::from_value::<Vec<SourceMount>>(mounts).unwrap())
    }

    fn paths(paths: &[&str]) -> Result<Vec<ValidatedMount>, SpecError> {
        let mount = |path: &&str| json!({"path": path, "git": {"url": "https://host/path"}});
        valid(paths.iter().map(mount).collect())
    }

    #[test]
    fn folders_are_plain_and_beside_each_other() {
        let found = paths(&["./vendor//base/", "vendor/other", "vendors"]).unwrap();
        let found: Vec<&str> = found.iter().map(|mount| &*mount.path).collect();
        assert_eq!(found, ["vendor/base", "vendor/other", "vendors"]);
        for wrong in ["/a", "..", "a/../b", ".", "./", "a b", "a+b", "a:b", "ü"] {
            let refusal = paths(&["good", wrong]).unwrap_err();
            assert_eq!(&*refusal.field, "spec.source.mounts[1].path", "{wrong}");
        }
        for nested in [["a", "a"], ["a", "a/b"], ["a/b", "a"], ["./a", "a/"]] {
            let refusal = paths(&nested).unwrap_err().to_string();
            assert!(refusal.contains("overlap"), "{refusal}");
        }
        let many: Vec<String> = (0..=MAX_MOUNTS).map(|at| format!("m{at}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(&*paths(&many).unwrap_err().field, FIELD);
        assert!(paths(&many[1..]).is_ok());
    }

    #[test]
    fn an_error_in_a_source_names_the_mount() {
        let good = json!({"path": "a", "oci": {"url": "oci://host/shop"}});
        let check = |mount: Value, field: &str| {
            let refusal = valid(json!([good.clone(), mount])).unwrap_err();
            assert_eq!(&*refusal.field, field);
        };
        check(json!({"path": "b"}), "spec.source.mounts[1]");
        check(json!({"path": "b", "git": {"url": "file:///a"}}), "spec.source.mounts[1].git.url");
        check(json!({"path": "b", "oci": {"url": "https://a/b"}}), "spec.source.mounts[1].oci.url");
    }

    #[test]
    fn other_keys_are_noticed_in_a_spec_that_cannot_be_read() {
        let verify = |name: &str| json!({"secretRef": {"name": name}});
        let mount = |path: &str, verify: Value| json!({"path": path, "git": {"url": "https://host/path", "verify": verify}});
        let open = json!({"path": "b", "git": {"url": "https://host/path"}});
        let mounts = valid(json!([mount("a", verify("keys")), open])).unwrap();
        let same = |newer: Value| have_same_keys(&mounts, Some(&newer));
        assert!(same(json!([mount("a", verify("keys")), {"path": 7}])));
        assert!(!same(json!([mount("a", verify("others"))])));
        assert!(!same(json!([mount("a", verify("keys")), mount("b", verify("keys"))])));
        assert!(!same(json!([])) && !have_same_keys(&mounts, None) && have_same_keys(&[], None));
    }
}
