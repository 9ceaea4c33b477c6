//! Dependencies of a chart that are not in its folder `charts`.
//!
//! In: `Chart.yaml` and `Chart.lock`.
//! Out: the exact version and the place of each, by the lock; or an error. A lock that does not fit
//! `Chart.yaml` is refused, as helm refuses it.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::ChartFiles;
use super::error::HelmChartError;
use crate::documents::DIALECT;
use crate::problem::Problem;
use moorline_yaml as yaml;

/// File with the exact versions of the dependencies.
const LOCK: &str = "Chart.lock";

/// Most dependencies of a chart.
const MAX_DEPENDENCIES: usize = 128;

/// Prefix of a repository that is a folder.
const FOLDER: &str = "file://";

/// A dependency at the version of the lock.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LockedDependency {
    /// Name of the chart.
    pub name: String,
    /// Exact version.
    pub version: String,
    /// URL of the repository or of the folder of a registry.
    pub repository: String,
}

/// A dependency that was fetched.
#[derive(Debug, Clone)]
pub struct FetchedDependency {
    /// The dependency that it was fetched for.
    pub locked: LockedDependency,
    /// The archive, as published.
    pub archive: Arc<[u8]>,
}

impl PartialEq for FetchedDependency {
    fn eq(&self, other: &Self) -> bool {
        self.locked == other.locked
    }
}

impl Eq for FetchedDependency {}

/// Place of a dependency.
pub(super) enum DependencyPlace<'a> {
    /// A folder, relative to that of the chart.
    Folder(&'a str),
    /// A repository or a registry.
    Server,
}

impl LockedDependency {
    /// Returns the place that the repository names.
    pub(super) fn place(&self, file: &str) -> Result<DependencyPlace<'_>, HelmChartError> {
        if let Some(folder) = self.repository.strip_prefix(FOLDER) {
            return Ok(DependencyPlace::Folder(folder));
        }
        let schemes = ["https://", "http://", "oci://"];
        match schemes.iter().any(|scheme| self.repository.starts_with(scheme)) {
            true => Ok(DependencyPlace::Server),
            false => Err(HelmChartError::UnknownRepository {
                file: file.to_owned(),
                name: self.name.clone(),
                repository: self.repository.clone(),
            }),
        }
    }

    /// Returns the name of its archive in the folder `charts`.
    pub(super) fn file_name(&self) -> String {
        format!("{}-{}.tgz", self.name, self.version)
    }
}

/// Returns the folders that `Chart.yaml` names as dependencies, relative to that of the chart.
pub(super) fn folders(chart: &[u8]) -> Vec<String> {
    let documents = yaml::read("Chart.yaml", chart, DIALECT).unwrap_or_default();
    let says = documents.into_iter().next().map(|document| document.value).unwrap_or_default();
    let named = says.get("dependencies").and_then(Value::as_array).into_iter().flatten();
    let repositories = named.filter_map(|dependency| dependency.get("repository")?.as_str());
    repositories
        .filter_map(|url| url.strip_prefix(FOLDER))
        .take(MAX_DEPENDENCIES)
        .map(str::to_owned)
        .collect()
}

/// Returns the dependencies of the lock with one of these names. `shown` is the path of the chart's
/// file in messages, and `folder` that of the chart.
pub(super) fn locked(
    files: &ChartFiles,
    says: &Value,
    names: &[&str],
    (shown, folder): (&str, &str),
) -> Result<Vec<LockedDependency>, Problem> {
    let lock_file = shown.replace("Chart.yaml", LOCK);
    let chart = || if folder.is_empty() { ".".to_owned() } else { folder.to_owned() };
    let Some(bytes) = files.get(LOCK) else {
        let name = names.first().copied().unwrap_or_default().to_owned();
        return Err(HelmChartError::NoLock { file: shown.to_owned(), name, folder: chart() }.into());
    };
    let lock = yaml::read(&lock_file, bytes, DIALECT)?.into_iter().next().map(|document| document.value);
    let lock = lock.unwrap_or_default();
    let list = |of: &Value| of.get("dependencies").and_then(Value::as_array).cloned().unwrap_or_default();
    let (asked, locked) = (list(says), list(&lock));
    let digest = lock.get("digest").and_then(Value::as_str).unwrap_or_default();
    let stale = || HelmChartError::StaleLock { file: lock_file.clone(), folder: chart() };
    if asked.len().max(locked.len()) > MAX_DEPENDENCIES || digest != digest_of(&asked, &locked) {
        return Err(stale().into());
    }
    let text = |of: &Value, field: &str| of.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut found: Vec<LockedDependency> = Vec::new();
    for entry in locked.iter().filter(|entry| names.contains(&&*text(entry, "name"))) {
        let dependency = LockedDependency {
            name: text(entry, "name"),
            version: text(entry, "version"),
            repository: text(entry, "repository"),
        };
        if !is_name(&dependency.name) || !is_name(&dependency.version) {
            return Err(stale().into());
        }
        if !found.contains(&dependency) {
            found.push(dependency);
        }
    }
    match names.iter().find(|name| !found.iter().any(|locked| locked.name == **name)) {
        Some(_) => Err(stale().into()),
        None => Ok(found),
    }
}

/// True for a name or a version that can be a part of a file name.
fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
    !text.is_empty()
        && text.bytes().all(plain)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
}

/// Returns the digest that helm writes into a lock: of both lists, as Go prints them as JSON.
fn digest_of(asked: &[Value], locked: &[Value]) -> String {
    let list = |all: &[Value]| all.iter().map(printed).collect::<Vec<_>>().join(",");
    let text = format!("[[{}],[{}]]", list(asked), list(locked));
    let digits = Sha256::digest(text).iter().fold(String::new(), |mut digits, byte| {
        _ = write!(digits, "{byte:02x}");
        digits
    });
    format!("sha256:{digits}")
}

/// Fields of a dependency in helm's order, and whether an empty one is printed.
const FIELDS: [(&str, bool); 8] = [
    ("name", true),
    ("version", false),
    ("repository", true),
    ("condition", false),
    ("tags", false),
    ("enabled", false),
    ("import-values", false),
    ("alias", false),
];

/// Prints a dependency as Go does.
fn printed(dependency: &Value) -> String {
    let is_empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Object(_) => false,
    };
    let empty = Value::String(String::new());
    let one = |(field, is_always): &(&str, bool)| {
        let value = dependency.get(*field).filter(|value| !value.is_null()).unwrap_or(&empty);
        (*is_always || !is_empty(value)).then(|| format!("\"{field}\":{}", escaped(&value.to_string())))
    };
    format!("{{{}}}", FIELDS.iter().filter_map(one).collect::<Vec<_>>().join(","))
}

/// Replaces the characters that Go escapes in JSON, and other writers do not.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for char in json.chars() {
        match char {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => _ = write!(text, "\\u{:04x}", u32::from(char)),
            char => text.push(char),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn files(lock: &str) -> ChartFiles {
        ChartFiles::from([(LOCK.to_owned(), lock.as_bytes().into())])
    }

    #[test]
    fn a_lock_gives_the_exact_version_of_what_is_missing() {
        let says = json!({"dependencies": [{"name": "db", "version": ">=1.0.0 <2", "repository": "https://host/charts"}]});
        let locked_ones = json!([{"name": "db", "version": "1.2.3", "repository": "https://host/charts"}]);
        let digest = digest_of(says["dependencies"].as_array().unwrap(), locked_ones.as_array().unwrap());
        let lock = json!({"dependencies": locked_ones, "digest": digest}).to_string();
        let found = locked(&files(&lock), &says, &["db"], ("web/Chart.yaml", "web")).unwrap();
        let expect = LockedDependency {
            name: "db".into(),
            version: "1.2.3".into(),
            repository: "https://host/charts".into(),
        };
        assert_eq!(found, std::slice::from_ref(&expect));
        assert_eq!(expect.file_name(), "db-1.2.3.tgz");
        let refused = |lock: &str, says: &Value| {
            locked(&files(lock), says, &["db"], ("web/Chart.yaml", "web")).unwrap_err().to_string()
        };
        let other =
            json!({"dependencies": [{"name": "db", "version": "2.x", "repository": "https://host/charts"}]});
        let stale = "web/Chart.lock: it does not fit Chart.yaml";
        assert!(refused(&lock, &other).contains(stale));
        assert!(refused("{}", &says).contains(stale));
        assert!(refused(&lock.replace("1.2.3", "../1"), &says).contains(stale));
        let none = locked(&ChartFiles::new(), &says, &["db"], ("web/Chart.yaml", "web")).unwrap_err();
        assert!(none.to_string().contains("`helm dependency update web`"), "{none}");
    }

    #[test]
    fn a_dependency_is_printed_as_helm_prints_it() {
        let dependency = json!({
            "name": "db", "version": ">1 & <2", "repository": "", "condition": "db.enabled", "tags": ["a"],
            "enabled": false, "import-values": [{"child": "b", "parent": "a"}, "data"], "alias": "",
        });
        assert_eq!(
            printed(&dependency),
            r#"{"name":"db","version":"\u003e1 \u0026 \u003c2","repository":"","condition":"db.enabled","tags":["a"],"import-values":[{"child":"b","parent":"a"},"data"]}"#
        );
    }
}
