//! Files by which package managers find a release: krew for kubectl, and Homebrew.
//!
//! In: the table of targets and the checksums of the tarballs. Out: a krew manifest and a formula.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::targets::{TARGETS, Target};

const SUMMARY: &str = "Keep a cluster in sync with Git";
const DESCRIPTION: &str = "Shows and controls the Syncs of Moorline, a GitOps controller: status, plan of a commit,\n\
    approval of a prune, diff between Git and the cluster.";

/// Release whose tarballs are offered.
pub(crate) struct Release<'a> {
    pub(crate) version: &'a str,
    /// Address of the folder with the tarballs.
    pub(crate) url: &'a str,
    pub(crate) homepage: &'a str,
    /// Checksums by file name.
    pub(crate) checksums: &'a BTreeMap<String, String>,
}

impl Release<'_> {
    /// Targets that were packed, with their addresses and checksums. Those of Linux must be there.
    fn tarballs(&self) -> Result<Vec<(&'static Target, String, &str)>, String> {
        let mut tarballs = Vec::new();
        for target in &TARGETS {
            let name = format!("{}.tar.gz", target.stem(self.version));
            match self.checksums.get(&name) {
                Some(checksum) => tarballs.push((target, format!("{}/{name}", self.url), checksum.as_str())),
                None if target.system == "linux" => {
                    return Err(format!("{name} is not packed: cargo xtask dist"));
                }
                None => {}
            }
        }
        Ok(tarballs)
    }

    /// Manifest of the kubectl plugin. JSON is YAML, too, and needs no quoting of ours.
    pub(crate) fn krew(&self) -> Result<String, String> {
        let platforms: Vec<Value> = self
            .tarballs()?
            .into_iter()
            .map(|(target, uri, sha256)| {
                let folder = target.stem(self.version);
                json!({
                    "selector": {"matchLabels": {"os": target.system, "arch": target.architecture}},
                    "uri": uri,
                    "sha256": sha256,
                    "bin": "moorline",
                    "files": [
                        {"from": format!("{folder}/moorline"), "to": "."},
                        {"from": format!("{folder}/LICENSE"), "to": "."},
                    ],
                })
            })
            .collect();
        let manifest = json!({
            "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
            "kind": "Plugin",
            "metadata": {"name": "moorline"},
            "spec": {
                "version": format!("v{}", self.version),
                "homepage": self.homepage,
                "shortDescription": SUMMARY,
                "description": DESCRIPTION,
                "platforms": platforms,
            },
        });
        Ok(format!("{manifest:#}\n"))
    }

    /// Formula of Homebrew.
    pub(crate) fn homebrew(&self) -> Result<String, String> {
        let mut formula = format!(
            "class Moorline < Formula\n  desc {SUMMARY:?}\n  homepage {:?}\n  version {:?}\n  license \"Apache-2.0\"\n",
            self.homepage, self.version
        );
        let tarballs = self.tarballs()?;
        for (system, word) in [("darwin", "macos"), ("linux", "linux")] {
            let of_system: Vec<_> = tarballs.iter().filter(|(target, ..)| target.system == system).collect();
            if of_system.is_empty() {
                continue;
            }
            formula += &format!("\n  on_{word} do\n");
            for (target, url, sha256) in of_system {
                let word = if target.architecture == "arm64" { "arm" } else { "intel" };
                formula +=
                    &format!("    on_{word} do\n      url {url:?}\n      sha256 {sha256:?}\n    end\n");
            }
            formula += "  end\n";
        }
        formula += "\n  def install\n    bin.install \"moorline\"\n    bash_completion.install \"completions/moorline.bash\"\n    \
            fish_completion.install \"completions/moorline.fish\"\n    zsh_completion.install \"completions/_moorline\"\n  end\n\n  \
            test do\n    assert_match version.to_s, shell_output(\"#{bin}/moorline --version\")\n  end\nend\n";
        Ok(formula)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksums(triples: &[&str]) -> BTreeMap<String, String> {
        triples.iter().map(|triple| (format!("moorline-1.2.3-{triple}.tar.gz"), "ab".repeat(32))).collect()
    }

    fn release(checksums: &BTreeMap<String, String>) -> Release<'_> {
        let url = "https://example.com/releases/v1.2.3";
        Release { version: "1.2.3", url, homepage: "https://example.com", checksums }
    }

    #[test]
    fn each_packed_target_is_offered_with_its_checksum() {
        let checksums =
            checksums(&["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl", "aarch64-apple-darwin"]);
        let release = release(&checksums);
        let krew: Value = serde_json::from_str(&release.krew().expect("a manifest")).expect("JSON");
        let platforms = krew["spec"]["platforms"].as_array().expect("platforms");
        assert_eq!(platforms.len(), 3);
        assert_eq!(platforms[1]["selector"]["matchLabels"], json!({"os": "linux", "arch": "arm64"}));
        let from = &platforms[1]["files"][0]["from"];
        assert_eq!(from, "moorline-1.2.3-aarch64-unknown-linux-musl/moorline");
        let formula = release.homebrew().expect("a formula");
        assert_eq!(formula.matches("sha256 \"abab").count(), 3, "{formula}");
        assert_eq!(formula.matches(" do\n").count() + 2, formula.matches("end\n").count(), "{formula}");
    }

    #[test]
    fn cargo_binstall_asks_for_the_tarballs_by_their_names() {
        let manifest = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"));
        let manifest = manifest.expect("the manifest of the program");
        let value = |key: &str| {
            let line = manifest.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
            line.unwrap_or_else(|| panic!("there is no {key}")).trim_matches('"').to_owned()
        };
        for target in &TARGETS {
            let filled =
                |text: String| text.replace("{ version }", "1.2.3").replace("{ target }", target.triple);
            let (url, program) = (filled(value("pkg-url")), filled(value("bin-dir")));
            let stem = target.stem("1.2.3");
            assert_eq!(url, format!("{{ repo }}/releases/download/v1.2.3/{stem}.tar.gz"));
            assert_eq!(program, format!("{stem}/{{ bin }}{{ binary-ext }}"));
        }
    }

    #[test]
    fn a_release_without_a_tarball_of_linux_is_refused() {
        let checksums = checksums(&["x86_64-unknown-linux-musl"]);
        assert!(
            release(&checksums).krew().expect_err("one is missing").contains("aarch64-unknown-linux-musl")
        );
    }
}
