//! Packages that are compiled into the program.
//!
//! In: `cargo metadata` and `Cargo.lock`. Out: each package with its licence, its checksum and what
//! it depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::checkout::output;

/// Package that is compiled into the program.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Licence as an expression of SPDX.
    pub(crate) licence: String,
    /// Folder with its source.
    pub(crate) folder: PathBuf,
    /// SHA-256 of its archive; none for packages of this repository.
    pub(crate) checksum: Option<String>,
    /// Identities of the packages that it depends on.
    pub(crate) needs: BTreeSet<String>,
}

impl Package {
    /// Package URL, which SBOMs use as identity.
    pub(crate) fn url(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }

    /// True if the package is part of this repository.
    pub(crate) fn is_own(&self) -> bool {
        self.checksum.is_none()
    }
}

/// Packages of the program by package URL.
pub(crate) type Packages = BTreeMap<String, Package>;

/// Reads the packages that are compiled into the program for a target. Those that only build
/// scripts and tests use are left out.
pub(crate) fn packages(root: &Path, triple: &str) -> Result<Packages, String> {
    let text =
        output(
            Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
                .current_dir(root)
                .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", triple]),
        )?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let lock =
        std::fs::read_to_string(root.join("Cargo.lock")).map_err(|error| format!("Cargo.lock: {error}"))?;
    Ok(select(&metadata, &checksums(&lock)))
}

/// Takes the packages that the root package reaches through dependencies of the program.
fn select(metadata: &Value, checksums: &BTreeMap<(String, String), String>) -> Packages {
    let by_id: BTreeMap<&str, &Value> =
        list(&metadata["packages"]).map(|package| (text(&package["id"]), package)).collect();
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
    let (mut packages, mut seen) = (Packages::new(), BTreeSet::new());
    let mut open: Vec<&str> = metadata["resolve"]["root"].as_str().into_iter().collect();
    while let Some(id) = open.pop() {
        let (Some(package), Some(node)) = (by_id.get(id), nodes.get(id)) else { continue };
        if !seen.insert(id) {
            continue;
        }
        let needed: Vec<&str> =
            list(&node["deps"]).filter(|dep| is_compiled_in(dep)).map(|dep| text(&dep["pkg"])).collect();
        let read = read(package, checksums, needed.iter().filter_map(|id| by_id.get(id)));
        packages.insert(read.url(), read);
        open.extend(needed);
    }
    packages
}

fn read<'a>(
    package: &Value,
    checksums: &BTreeMap<(String, String), String>,
    needed: impl Iterator<Item = &'a &'a Value>,
) -> Package {
    let (name, version) = (text(&package["name"]).to_owned(), text(&package["version"]).to_owned());
    let manifest = Path::new(text(&package["manifest_path"]));
    Package {
        licence: text(&package["license"]).replace('/', " OR "),
        folder: manifest.parent().unwrap_or(manifest).to_path_buf(),
        checksum: checksums.get(&(name.clone(), version.clone())).cloned(),
        needs: needed
            .map(|other| format!("pkg:cargo/{}@{}", text(&other["name"]), text(&other["version"])))
            .collect(),
        name,
        version,
    }
}

/// True if a dependency is one of the program, and not only of its build script or its tests.
fn is_compiled_in(dependency: &Value) -> bool {
    list(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null())
}

/// Checksums of a lock file by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        line.and_then(|line| line.strip_suffix('"')).map(str::to_owned)
    };
    let blocks = lock.split("[[package]]");
    let entry = |block| Some(((value(block, "name")?, value(block, "version")?), value(block, "checksum")?));
    blocks.filter_map(entry).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn package(name: &str) -> Value {
        let manifest = format!("/{name}/Cargo.toml");
        json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "manifest_path": manifest})
    }

    #[test]
    fn only_what_is_compiled_into_the_program_counts() {
        let kind = |kind: Value| json!([{"kind": kind}]);
        let packages = ["root", "library", "builder", "tester"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": {"root": "root", "nodes": [
                {"id": "root", "deps": [
                    {"pkg": "library", "dep_kinds": kind(Value::Null)},
                    {"pkg": "builder", "dep_kinds": kind(json!("build"))},
                    {"pkg": "tester", "dep_kinds": kind(json!("dev"))},
                ]},
                {"id": "library", "deps": [{"pkg": "root", "dep_kinds": kind(json!("dev"))}]},
            ]},
        });
        let lock = "[[package]]\nname = \"library\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n";
        let packages = select(&metadata, &checksums(lock));
        let names: Vec<&str> = packages.values().map(|package| package.name.as_str()).collect();
        assert_eq!(names, ["library", "root"]);
        let library = &packages["pkg:cargo/library@1.0.0"];
        assert_eq!(
            (library.licence.as_str(), library.checksum.as_deref()),
            ("MIT OR Apache-2.0", Some("abc"))
        );
        assert!(packages["pkg:cargo/root@1.0.0"].is_own());
        assert!(packages["pkg:cargo/root@1.0.0"].needs.contains("pkg:cargo/library@1.0.0"));
    }
}
