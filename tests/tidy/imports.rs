//! Checks every path inside the crate against the import table.

use super::paths::{Kind, Path, paths};
use super::source::Source;
use super::table::{self, Row};

/// Finds paths to modules that the table does not allow, and modules without a row.
pub(crate) fn outside_the_table(source: &Source) -> Vec<(usize, String)> {
    if !source.is_program() {
        return Vec::new();
    }
    let module = source.module();
    let folder = source.crate_folder();
    if module.is_empty() {
        return crate_root(source);
    }
    let Some(own) = Row::of(&module) else {
        return vec![(1, format!("the module `{}` has no row: add it to the table", module[0]))];
    };
    let allowed = |path: &Path| judge(own, (folder, &module), path).map(|what| (path.line, what));
    paths(source).iter().filter_map(allowed).collect()
}

/// Finds imports in `lib.rs`, which only lists the modules: a second name there could bypass the
/// table.
fn crate_root(source: &Source) -> Vec<(usize, String)> {
    // Each crate of the workspace has the name of a module.
    let is_crate = |path: &Path| path.segments[0].starts_with("moorline_");
    let uses = paths(source).into_iter().filter(|path| matches!(path.kind, Kind::Use | Kind::PubUse));
    let uses = uses.filter(|path| !is_crate(path));
    uses.map(|path| (path.line, "lib.rs only declares modules".to_owned())).collect()
}

/// Returns the violation of a path; `None` if it is allowed.
fn judge(own: &Row, at: (Option<&str>, &[&str]), path: &Path) -> Option<String> {
    let target = inside_the_program(at, path)?;
    let written = path.segments.join("::");
    if target.is_empty() || target[0] == "*" {
        return Some(format!("`{written}` names the crate's root: name the module"));
    }
    let Some(row) = Row::of(&target) else {
        return Some(format!("`{written}`: the module `{}` has no row: add it to the table", target[0]));
    };
    let fine = row == own || own.may_use(row);
    (!fine).then(|| format!("`{written}`: {} may use {}, not `{}`", own.module, own.uses(), row.module))
}

/// Resolves a path from the root of the program; `None` for a path into a third-party crate and for
/// a lone keyword.
fn inside_the_program((folder, module): (Option<&str>, &[&str]), path: &Path) -> Option<Vec<String>> {
    let words: Vec<&str> = path.segments.iter().map(String::as_str).collect();
    let alone = words.len() == 1 && path.kind == Kind::Plain;
    let whole =
        |folder: Option<&str>| folder.and_then(table::crate_module).map(str::to_owned).into_iter().collect();
    let mut place: Vec<String> = match words[0] {
        _ if alone => return None,
        "crate" => whole(folder),
        "moorline" if module == ["main"] => Vec::new(),
        "self" | "super" => {
            module.iter().map(|part| (*part).to_owned()).chain(path.inside.iter().cloned()).collect()
        }
        name => whole(Some(table::folder_of(name)?)),
    };
    let named = usize::from(words[0].starts_with("moorline_"));
    let words = words.into_iter().skip(named);
    for word in words {
        match word {
            "crate" | "moorline" | "self" => {}
            "super" => {
                place.pop();
            }
            word => place.push(word.to_owned()),
        }
    }
    Some(place)
}

fn check(path: &str, text: &str, expect: &[&str]) {
    let found = outside_the_table(&Source::new(path, text));
    let found: Vec<_> = found.iter().map(|(line, what)| format!("{line}: {what}")).collect();
    assert_eq!(found, expect, "{path}: {text}");
}

#[test]
fn allowed_imports_pass() {
    check("src/plan/mod.rs", "use crate::desired::DesiredSet;\nfn f() { crate::api::name() }", &[]);
    check("src/plan/explain.rs", "use super::{Plan, difference::Difference};\nuse self::x::Y;", &[]);
    check("src/plan/explain.rs", "pub(crate) fn f() {}\npub(in crate::plan) struct A;", &[]);
    check("src/plan/explain.rs", "mod inner { use super::super::order; }", &[]);
    check("src/api.rs", "#[cfg(test)]\nmod tests {\n use crate::plan::Plan;\n}", &[]);
    check("src/api.rs", "//! See [`crate::plan`].\nconst A: &str = \"crate::plan\";", &[]);
    check(
        "src/sync/mod.rs",
        "use schedule::step;\nuse crate::sync::schedule::State;\nuse crate::metrics;",
        &[],
    );
    check("src/cli/run.rs", "use crate::{sync, settings::Settings, serve::page};", &[]);
    check("src/main.rs", "fn main() { moorline::cli::run() }", &[]);
    check("tests/a.rs", "use crate::nowhere::x;", &[]);
}

#[test]
fn imports_past_the_table_are_found() {
    let refused = "`crate::plan::Plan`: render may use `api`, `grammar`, `nearest`, `object`, `tree`, `yaml`, not `plan`";
    check("src/render/plain.rs", "use crate::plan::Plan;", &[&format!("1: {refused}")]);
    check("src/render/mod.rs", "use crate::{tree,\n plan::{Plan}};", &[&format!("2: {refused}")]);
    check("src/render/mod.rs", "fn f(_: &crate::plan::Plan) {}", &[&format!("1: {refused}")]);
    check("src/tree.rs", "use super::api;", &["1: `super::api`: tree may use none of ours, not `api`"]);
    let leap = "`super::super::source::A`: plan may use `api`, `fields`, `grammar`, `harmless`, `object`, `diff`, `observed`, `desired`, not `source`";
    check("src/plan/explain.rs", "use super::super::source::A;", &[&format!("1: {leap}")]);
    let up = "`super::State`: sync/schedule may use `api`, not `sync`";
    check("src/sync/schedule.rs", "use super::State;", &[&format!("1: {up}")]);
    check(
        "src/serve/mod.rs",
        "use crate::sync::A;",
        &["1: `crate::sync::A`: serve may use rows 1 to 6, not `sync`"],
    );
    check(
        "src/main.rs",
        "fn main() { moorline::sync::run() }",
        &["1: `moorline::sync::run`: main may use `cli`, not `sync`"],
    );
}

#[test]
fn modules_without_a_row_are_found() {
    let unknown = "1: the module `drawer` has no row: add it to the table";
    check("src/drawer.rs", "use crate::api;", &[unknown]);
    check("src/drawer/deep.rs", "", &[unknown]);
    check(
        "src/cli/run.rs",
        "use crate::drawer::A;",
        &["1: `crate::drawer::A`: the module `drawer` has no row: add it to the table"],
    );
}

#[test]
fn ways_around_the_table_are_found() {
    let root = |path: &str| format!("1: `{path}` names the crate's root: name the module");
    check("src/tree.rs", "use crate::*;", &[&root("crate::*")]);
    check("src/tree.rs", "use crate as root;", &[&root("crate")]);
    check("src/plan/order.rs", "use super::super as root;", &[&root("super::super")]);
    check("src/plan/order.rs", "use super::super::*;", &[&root("super::super::*")]);
    check("src/lib.rs", "pub mod plan;\npub use plan::Plan;", &["2: lib.rs only declares modules"]);
}
