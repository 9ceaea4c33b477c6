//! Programs that make a release, of pinned versions, in `target/dist-tools`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::checkout::{Checkout, output, run};

/// Linker and C compiler for all targets: the package of Zig for Python, with the hashes of its
/// archives.
const ZIG: &str = include_str!("zig.txt");
/// Programs of cargo that build a release.
const CARGO_TOOLS: [(&str, &str); 2] = [("cargo-zigbuild", "0.24.1"), ("cargo-auditable", "0.7.7")];
/// Maker of the site.
const MDBOOK: (&str, &str) = ("mdbook", "0.5.4");
/// Helm of the second image, and the checksum of its module as Go's checksum database has it.
pub(crate) const HELM: (&str, &str) = ("v4.1.4", "h1:zwTrNkalG4f7SYigRSdQnYrTj0QEz1qzetzAlYoDVSo=");
/// Go with which helm is built: another one would give other bytes.
const GO: &str = "go1.26.8";

/// Folder of the programs.
pub(crate) struct Tools {
    folder: PathBuf,
}

impl Tools {
    /// Fetches the programs that build for other machines, where they are not there yet.
    pub(crate) fn fetched(checkout: &Checkout) -> Result<Self, String> {
        let tools = Self::in_folder(checkout)?;
        tools.fetch_zig()?;
        for (name, version) in CARGO_TOOLS {
            tools.fetch_cargo_tool(name, version)?;
        }
        Ok(tools)
    }

    fn in_folder(checkout: &Checkout) -> Result<Self, String> {
        let tools = Self { folder: checkout.root.join("target/dist-tools") };
        fs::create_dir_all(&tools.folder).map_err(|error| format!("{}: {error}", tools.folder.display()))?;
        Ok(tools)
    }

    /// Fetches mdBook where it is not there yet, and returns its path.
    pub(crate) fn with_mdbook(checkout: &Checkout) -> Result<PathBuf, String> {
        let tools = Self::in_folder(checkout)?;
        tools.fetch_cargo_tool(MDBOOK.0, MDBOOK.1)?;
        Ok(tools.programs().join(MDBOOK.0))
    }

    /// Path of the compiler.
    pub(crate) fn zig(&self) -> PathBuf {
        self.folder.join("python/ziglang/zig")
    }

    /// Folder with the programs of cargo.
    pub(crate) fn programs(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// Fetches the compiler, and refuses an archive whose hash is not listed.
    fn fetch_zig(&self) -> Result<(), String> {
        if self.zig().is_file() {
            return Ok(());
        }
        let list = self.folder.join("zig.txt");
        fs::write(&list, ZIG).map_err(|error| format!("{}: {error}", list.display()))?;
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--require-hashes",
            "--only-binary",
            ":all:",
        ]);
        run(pip.arg("--target").arg(self.folder.join("python")).arg("--requirement").arg(list))
    }

    fn fetch_cargo_tool(&self, name: &str, version: &str) -> Result<(), String> {
        let program = self.programs().join(name);
        // The folder says by its file of crates which version is there.
        let installed = fs::read_to_string(self.folder.join(".crates.toml")).unwrap_or_default();
        if program.is_file() && installed.contains(&format!("\"{name} {version} ")) {
            return Ok(());
        }
        let mut cargo = Command::new("cargo");
        cargo.args(["install", "--quiet", "--locked", name, "--version", version, "--root"]);
        // Programs for this machine must not take flags that are meant for the release.
        cargo.env_remove("RUSTFLAGS").env_remove("CARGO_TARGET_DIR").env_remove("CARGO_BUILD_TARGET");
        run(cargo.arg(&self.folder))
    }
}

/// Builds helm for an architecture from its module, and returns its path.
pub(crate) fn helm(checkout: &Checkout, architecture: &str) -> Result<PathBuf, String> {
    let (version, sum) = HELM;
    let folder = checkout.root.join("target/dist-tools").join(format!("helm-{version}-{architecture}"));
    let program = folder.join("helm");
    if program.is_file() {
        return Ok(program);
    }
    let go = |arguments: &[&str]| {
        let mut command = Command::new("go");
        command
            .args(arguments)
            .current_dir(std::env::temp_dir())
            .env("GOTOOLCHAIN", GO)
            .env("GOFLAGS", "-mod=mod");
        command
    };
    let module = format!("helm.sh/helm/v4@{version}");
    let downloaded = output(&mut go(&["mod", "download", "-json", &module]))?;
    let downloaded: serde_json::Value =
        serde_json::from_str(&downloaded).map_err(|error| format!("go mod download: {error}"))?;
    check_sum(&module, &downloaded, sum)?;
    let flags = format!("-s -w -buildid= -X helm.sh/helm/v4/internal/version.version={version}");
    let mut build = go(&["build", "-trimpath", "-ldflags", &flags, "-o"]);
    build.arg(&program).arg("./cmd/helm").current_dir(downloaded["Dir"].as_str().unwrap_or_default());
    build
        .env("CGO_ENABLED", "0")
        .env("GOOS", "linux")
        .env("GOARCH", architecture)
        .env("GOFLAGS", "-mod=readonly -buildvcs=false");
    run(&mut build)?;
    Ok(program)
}

/// Refuses a module that does not have the pinned checksum.
fn check_sum(module: &str, downloaded: &serde_json::Value, pinned: &str) -> Result<(), String> {
    match downloaded["Sum"].as_str() {
        Some(sum) if sum == pinned => Ok(()),
        Some(sum) => Err(format!("{module}: its checksum is {sum}, not {pinned}")),
        None => Err(format!("{module}: Go names no checksum, and {pinned} is expected")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn helm_of_another_checksum_is_refused() {
        let (version, sum) = HELM;
        let module = format!("helm.sh/helm/v4@{version}");
        let check = |downloaded: serde_json::Value| check_sum(&module, &downloaded, sum);
        assert_eq!(check(json!({"Sum": sum})), Ok(()));
        let other = format!("h1:{}=", "A".repeat(43));
        let refusal = check(json!({"Sum": other})).expect_err("another module");
        assert_eq!(refusal, format!("{module}: its checksum is {other}, not {sum}"));
        assert!(check(json!({})).expect_err("no checksum").contains("Go names no checksum"));
        let hash = sum.strip_prefix("h1:").expect("a hash of Go");
        assert!(hash.len() == 44 && version.starts_with('v'), "{HELM:?}");
    }

    #[test]
    fn every_archive_of_the_compiler_is_pinned_by_its_hash() {
        let packages: Vec<&str> = ZIG.lines().filter(|line| !line.is_empty()).collect();
        assert!(!packages.is_empty());
        for package in packages {
            assert!(package.contains("==") && package.contains(" --hash=sha256:"), "{package}");
        }
    }
}
