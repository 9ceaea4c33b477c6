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
        return vec![(1, without_row(&module))];
    };
    let allowed = |path: &Path| judge(own, (folder, &module), path).map(|what| (path.line, what));
    paths(source).iter().filter_map(allowed).collect()
}

/// Finds imports in `lib.rs`, which only lists the modules: a second name there could bypass the
/// table.
fn crate_root(source: &Source) -> Vec<(usize, String)> {
    // The root package re-exports the crates of the workspace.
    let is_crate = |path: &Path| path.segments[0].starts_with("moorline_");
    let uses = paths(source).into_iter().filter(|path| matches!(path.kind, Kind::Use | Kind::PubUse));
    let uses = uses.filter(|path| !is_crate(path));
    uses.map(|path| (path.line, "lib.rs only declares modules".to_owned())).collect()
}

/// Says that a module is missing in the table: by its folder of `src`, or by crate and folder.
fn without_row<T: AsRef<str>>(module: &[T]) -> String {
    let parts = if table::is_in_table(module[0].as_ref()) { 2 } else { 1 };
    let name: Vec<&str> = module.iter().take(parts).map(AsRef::as_ref).collect();
    format!("the module `{}` has no row: add it to the table", name.join("/"))
}

/// Returns the violation of a path; `None` if it is allowed.
fn judge(own: &Row, at: (Option<&str>, &[&str]), path: &Path) -> Option<String> {
    let target = inside_the_program(at, path)?;
    let written = path.segments.join("::");
    let row = Row::of(&target);
    let inside =
        target.iter().skip(usize::from(target.first().is_some_and(|first| table::is_in_table(first))));
    if row.is_none() && inside.clone().next().is_none_or(|word| word == "*") {
        return Some(format!("`{written}` names the crate's root: name the module"));
    }
    let Some(row) = row else { return Some(format!("`{written}`: {}", without_row(&target))) };
    let fine = row == own || own.may_use(row);
    (!fine).then(|| format!("`{written}`: {} may use {}, not `{}`", own.module, own.uses(), row.module))
}

/// Resolves a path to a module of the table; `None` for a path into a third-party crate and for a
/// lone keyword.
fn inside_the_program((folder, module): (Option<&str>, &[&str]), path: &Path) -> Option<Vec<String>> {
    let words: Vec<&str> = path.segments.iter().map(String::as_str).collect();
    let alone = words.len() == 1 && path.kind == Kind::Plain;
    let mut place: Vec<String> = match words[0] {
        _ if alone => return None,
        "crate" => folder.into_iter().map(str::to_owned).collect(),
        "moorline" if module == ["main"] => Vec::new(),
        "self" | "super" => {
            module.iter().map(|part| (*part).to_owned()).chain(path.inside.iter().cloned()).collect()
        }
        name => vec![table::folder_of(name)?],
    };
    let named = usize::from(words[0].starts_with("moorline_"));
    for word in words.into_iter().skip(named) {
        match word {
            "crate" | "moorline" | "self" => {}
            "super" => {
                place.pop();
            }
            word if folder.is_none() && place.is_empty() => place = table::behind(word),
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
    let explain = "crates/engine/src/plan/explain.rs";
    check(explain, "use crate::desired::DesiredSet;\nfn f() { moorline_api::name() }", &[]);
    check(explain, "use super::{Plan, difference::Difference};\nuse self::x::Y;", &[]);
    check(explain, "pub(crate) fn f() {}\npub(in crate::plan) struct A;", &[]);
    check(explain, "mod inner { use super::super::order; }", &[]);
    check("crates/api/src/sync.rs", "#[cfg(test)]\nmod tests {\n use moorline_engine::plan::Plan;\n}", &[]);
    check("crates/api/src/sync.rs", "//! See [`crate::plan`].\nconst A: &str = \"crate::plan\";", &[]);
    check(
        "src/controller/mod.rs",
        "use schedule::step;\nuse crate::controller::schedule::State;\nuse crate::metrics;",
        &[],
    );
    check("src/report/mod.rs", "use crate::{object, grammar::Counted, plan::Plan};", &[]);
    check("src/cli/run.rs", "use crate::{controller, settings::Settings, serve::page};", &[]);
    check("src/main.rs", "fn main() { moorline::cli::run() }", &[]);
    check("tests/a.rs", "use crate::nowhere::x;", &[]);
}

#[test]
fn imports_past_the_table_are_found() {
    let refused =
        "`moorline_engine::plan::Plan`: render may use `api`, `core`, `yaml`, `kustomize`, not `engine/plan`";
    let render = "crates/render/src/lib.rs";
    check(render, "use moorline_engine::plan::Plan;", &[&format!("1: {refused}")]);
    check(render, "use moorline_engine::{\n plan::{Plan}};", &[&format!("2: {refused}")]);
    check(render, "fn f(_: &moorline_engine::plan::Plan) {}", &[&format!("1: {refused}")]);
    let tree = "`moorline_api::A`: core may use none of ours, not `api`";
    check("crates/core/src/tree.rs", "use moorline_api::A;", &[&format!("1: {tree}")]);
    let leap = "`super::super::plan::A`: engine/rbac may use `core`, `engine/desired`, not `engine/plan`";
    check("crates/engine/src/rbac/missing.rs", "use super::super::plan::A;", &[&format!("1: {leap}")]);
    let alias = "`crate::source::A`: report may use `api`, `core`, `health`, `engine/observed`, `engine/desired`, `engine/plan`, not `git`";
    check("src/report/mod.rs", "use crate::source::A;", &[&format!("1: {alias}")]);
    let up = "`super::State`: controller/schedule may use `api`, not `controller`";
    check("src/controller/schedule.rs", "use super::State;", &[&format!("1: {up}")]);
    check(
        "src/serve/mod.rs",
        "use crate::controller::A;",
        &["1: `crate::controller::A`: serve may use rows 1 to 6, not `controller`"],
    );
    check(
        "src/main.rs",
        "fn main() { moorline::controller::run() }",
        &["1: `moorline::controller::run`: main may use `cli`, not `controller`"],
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
    let engine = "1: the module `engine/drawer` has no row: add it to the table";
    check("crates/engine/src/drawer.rs", "", &[engine]);
}

#[test]
fn ways_around_the_table_are_found() {
    let root = |path: &str| format!("1: `{path}` names the crate's root: name the module");
    check("src/settings_watch.rs", "use crate::*;", &[&root("crate::*")]);
    check("src/settings_watch.rs", "use crate as root;", &[&root("crate")]);
    check("crates/engine/src/plan/order.rs", "use super::super as root;", &[&root("super::super")]);
    check("crates/engine/src/plan/order.rs", "use super::super::*;", &[&root("super::super::*")]);
    check("src/lib.rs", "pub mod cli;\npub use cli::Run;", &["2: lib.rs only declares modules"]);
}
