//! The standard library of Rust for the target of a release.
//!
//! In: a target. Out: its library beside the compiler, which rustup adds where it is missing.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use super::checkout::{Checkout, output};
use super::targets::Target;

/// Adds the library of a target where it is missing.
pub(crate) fn add_standard_library(checkout: &Checkout, target: &Target) -> Result<(), String> {
    let triple = target.triple;
    if has_library(checkout, triple)? {
        return Ok(());
    }
    let remedy = format!("rustup target add {triple}");
    let mut rustup = Command::new("rustup");
    match rustup.args(["target", "add", triple]).current_dir(&checkout.root).status() {
        Ok(status) if !status.success() => Err(format!("{remedy}: {status}")),
        Ok(_) if has_library(checkout, triple)? => Ok(()),
        Ok(_) => Err(format!(
            "`{remedy}` succeeded, and the compiler still has no library for {triple}: rustc on PATH is not the one of rustup"
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(format!(
            "the compiler has no library for {triple}, and rustup is not on PATH: install rustup and run `{remedy}`, or \
             install the library from where the compiler comes from"
        )),
        Err(error) => Err(format!("{remedy}: {error}")),
    }
}

/// Asks the compiler of the checkout for its library.
fn has_library(checkout: &Checkout, triple: &str) -> Result<bool, String> {
    let mut compiler = Command::new("rustc");
    compiler.args(["--print", "target-libdir", "--target", triple]).current_dir(&checkout.root);
    Ok(Path::new(&output(&mut compiler)?).is_dir())
}
