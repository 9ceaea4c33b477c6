//! Compilation of the static binary of a target, with bytes that depend on the commit alone.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use super::checkout::{Checkout, run};
use super::targets::Target;
use super::tools::Tools;

/// Compiles the program, and returns its path.
pub(crate) fn compile(checkout: &Checkout, tools: &Tools, target: &Target) -> Result<PathBuf, String> {
    let output = checkout.root.join("target");
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&checkout.root).args([
        "auditable",
        "zigbuild",
        "--locked",
        "--profile",
        "dist",
        "--bin",
        "moorline",
    ]);
    cargo.args(["--target", target.triple]).arg("--target-dir").arg(&output);
    cargo.env("PATH", path_with(tools)?).env("CARGO_ZIGBUILD_ZIG_PATH", tools.zig());
    cargo.env("SOURCE_DATE_EPOCH", checkout.time.to_string()).env("MOORLINE_COMMIT", &checkout.revision);
    let paths = hidden_paths(checkout);
    let rust: Vec<String> =
        paths.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")).collect();
    // Words of these flags are separated by a character that no path has.
    cargo.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"));
    let c: Vec<String> = paths.iter().map(|(from, to)| format!("-ffile-prefix-map={from}={to}")).collect();
    cargo.env(format!("CFLAGS_{}", target.triple.replace('-', "_")), c.join(" "));
    run(&mut cargo)?;
    Ok(output.join(target.triple).join("dist/moorline"))
}

/// Compiles the program for this machine, without optimisation, and returns its path.
pub(crate) fn compile_for_here(checkout: &Checkout) -> Result<PathBuf, String> {
    let output = checkout.root.join("target");
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&checkout.root).args(["build", "--locked", "--bin", "moorline"]);
    run(cargo.arg("--target-dir").arg(&output).env_remove("CARGO_BUILD_TARGET"))?;
    Ok(output.join("debug/moorline"))
}

/// Paths of this machine that must not be in the program, with the names that they get.
fn hidden_paths(checkout: &Checkout) -> Vec<(String, &'static str)> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    // The last one that fits counts: the registry is below the home of the user, as the repository
    // may be.
    vec![
        (home.display().to_string(), "/home"),
        (cargo.display().to_string(), "/cargo"),
        (checkout.root.display().to_string(), "/moorline"),
    ]
}

fn path_with(tools: &Tools) -> Result<OsString, String> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(tools.programs()).chain(std::env::split_paths(&paths));
    std::env::join_paths(paths).map_err(|error| format!("PATH: {error}"))
}
