//! Import table of the architecture: every module, its kind, and the modules that it may use.
//!
//! Imports go one way: a module may use only modules of earlier rows. ARCHITECTURE.md shows the
//! same table between two markers, and a test compares the two.

use Kind::{Pure, Shell};
use May::{Earlier, Only};

/// Kind of a module: the side effects that it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No async, clock, files, network, logs or locks: a function of its arguments.
    Pure,
    /// May have side effects.
    Shell,
}

/// Modules that a module may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum May {
    Only(&'static [&'static str]),
    /// Every module of a row with a smaller number.
    Earlier,
}

/// One row of the table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) number: u8,
    pub(crate) module: &'static str,
    pub(crate) kind: Kind,
    pub(crate) may_use: May,
}

const fn row(number: u8, module: &'static str, kind: Kind, may_use: May) -> Row {
    Row { number, module, kind, may_use }
}

/// The table. A file belongs to the longest matching name: `src/sync/schedule.rs` to
/// `sync/schedule`.
#[rustfmt::skip]
pub(crate) const TABLE: [Row; 44] = [
    row(1, "api",            Pure,  Only(&[])),
    row(1, "chance",         Shell, Only(&[])),
    row(1, "clock",          Shell, Only(&[])),
    row(1, "expression/quantity", Pure, Only(&[])),
    row(1, "fair",           Shell, Only(&[])),
    row(1, "fields",         Pure,  Only(&[])),
    row(1, "grammar",        Pure,  Only(&[])),
    row(1, "harmless",       Pure,  Only(&[])),
    row(1, "nearest",        Pure,  Only(&[])),
    row(1, "object",         Pure,  Only(&[])),
    row(1, "proof",          Pure,  Only(&[])),
    row(1, "repeats",        Pure,  Only(&[])),
    row(1, "sandbox/table",  Pure,  Only(&[])),
    row(1, "settings",       Pure,  Only(&["harmless", "nearest"])),
    row(1, "tree",           Pure,  Only(&[])),
    row(1, "yaml",           Pure,  Only(&[])),
    row(2, "adopt",          Pure,  Only(&["api", "fields", "object", "yaml"])),
    row(2, "diff",           Pure,  Only(&["yaml"])),
    row(2, "expression",     Pure,  Only(&["expression/quantity"])),
    row(2, "observed",       Pure,  Only(&["api", "fields", "grammar", "object", "proof"])),
    row(2, "render",         Pure,  Only(&["api", "grammar", "nearest", "object", "tree", "yaml"])),
    row(3, "desired",        Pure,  Only(&["api", "fields", "nearest", "object", "proof", "yaml", "render"])),
    row(3, "health",         Pure,  Only(&["expression", "object"])),
    row(3, "sandbox/schema", Pure,  Only(&["expression"])),
    row(3, "sync/schedule",  Pure,  Only(&["api"])),
    row(4, "plan",           Pure,  Only(&["api", "fields", "grammar", "harmless", "object", "diff", "observed", "desired"])),
    row(4, "sandbox/kinds",  Pure,  Only(&["expression/quantity", "sandbox/schema"])),
    row(4, "sandbox/patch",  Pure,  Only(&["sandbox/schema"])),
    row(4, "sandbox/ownership", Pure, Only(&["fields", "sandbox/schema"])),
    row(4, "sandbox/rules",  Pure,  Only(&["expression", "sandbox/schema"])),
    row(4, "rights",         Pure,  Only(&["object", "desired"])),
    row(5, "sandbox/soundness", Pure, Only(&["nearest", "sandbox/schema", "sandbox/kinds", "sandbox/rules"])),
    row(5, "report",         Pure,  Only(&["api", "grammar", "object", "health", "observed", "desired", "plan"])),
    row(6, "serve/page",     Pure,  Only(&["api", "grammar", "harmless", "object", "yaml", "diff", "report"])),
    row(6, "source",         Shell, Only(&["chance", "clock", "harmless", "nearest", "tree", "yaml"])),
    row(6, "helm",           Shell, Only(&["chance", "fair", "tree", "yaml", "render"])),
    row(6, "metrics",        Shell, Only(&[])),
    row(6, "cluster",        Shell, Only(&["api", "chance", "clock", "fair", "fields", "grammar", "nearest", "object", "proof", "repeats", "settings", "tree", "yaml", "health", "observed", "desired", "plan", "metrics"])),
    row(7, "serve",          Shell, Earlier),
    row(7, "settings_watch", Shell, Earlier),
    row(7, "sandbox",        Shell, Only(&["object", "yaml", "sandbox/schema", "sandbox/ownership", "sandbox/kinds", "sandbox/patch", "sandbox/rules", "sandbox/soundness", "sandbox/table"])),
    row(8, "sync",           Shell, Earlier),
    row(9, "cli",            Shell, Earlier),
    row(9, "main",           Shell, Only(&["cli"])),
];

/// Crates of the workspace that contain rows of the table: the folder in `crates`, and the module
/// that the whole crate is; `None` if it contains several.
const CRATES: [(&str, Option<&str>); 14] = [
    ("api", Some("api")),
    ("cel", Some("expression")),
    ("cluster", Some("cluster")),
    ("core", None),
    ("engine", None),
    ("git", Some("source")),
    ("health", Some("health")),
    ("managed-fields", Some("fields")),
    ("metrics", Some("metrics")),
    ("render", Some("render")),
    ("runtime", None),
    ("sandbox", Some("sandbox")),
    ("settings", Some("settings")),
    ("yaml", Some("yaml")),
];

/// Returns the module that the crate in this folder is; `None` if it contains several modules or is
/// not in the table.
pub(crate) fn crate_module(folder: &str) -> Option<&'static str> {
    CRATES.iter().find(|(its, _)| *its == folder).and_then(|(_, module)| *module)
}

/// True if the table applies to the crate in this folder.
pub(crate) fn is_in_table(folder: &str) -> bool {
    CRATES.iter().any(|(its, _)| *its == folder)
}

/// Returns the folder of a crate by its name in code, such as `moorline_managed_fields`.
pub(crate) fn folder_of(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("moorline_")?.replace('_', "-");
    CRATES.iter().map(|(folder, _)| *folder).find(|folder| *folder == name)
}

const OPEN: &str = "<!-- import table -->";
const CLOSE: &str = "<!-- end of the import table -->";

impl Row {
    /// Returns the row of a module path; it covers all modules inside of it.
    pub(crate) fn of<T: AsRef<str>>(module: &[T]) -> Option<&'static Self> {
        let fits = |row: &&Self| {
            let names: Vec<_> = row.module.split('/').collect();
            module.len() >= names.len() && names.iter().zip(module).all(|(name, part)| *name == part.as_ref())
        };
        TABLE.iter().filter(fits).max_by_key(|row| row.module.len())
    }

    pub(crate) fn may_use(&self, other: &Self) -> bool {
        match self.may_use {
            Only(modules) => modules.contains(&other.module),
            Earlier => other.number < self.number,
        }
    }

    /// Lists the modules that it may use, for people.
    pub(crate) fn uses(&self) -> String {
        match self.may_use {
            Only([]) => "none of ours".to_owned(),
            Only(modules) => {
                modules.iter().map(|module| format!("`{module}`")).collect::<Vec<_>>().join(", ")
            }
            Earlier => format!("rows 1 to {}", self.number - 1),
        }
    }
}

/// Formats the table for ARCHITECTURE.md, including the markers; a module without a file among
/// `present` is marked as planned.
pub(crate) fn as_markdown(present: &[String]) -> String {
    let lines = TABLE.iter().map(|row| {
        let stands =
            present.iter().any(|module| Row::of(&module.split('/').collect::<Vec<_>>()) == Some(row));
        let kind = match row.kind {
            Pure => "pure",
            Shell => "shell",
        };
        let later = if stands { "" } else { " (to come)" };
        format!("| {} | `{}`{later} | {kind} | {} |\n", row.number, row.module, row.uses())
    });
    let lines: String = lines.collect();
    format!("{OPEN}\n| row | module | kind | may use |\n|---|---|---|---|\n{lines}{CLOSE}")
}

/// Checks that a document contains exactly this table.
pub(crate) fn compare(document: &str, block: &str) -> Result<(), String> {
    let start = document.find(OPEN);
    let shown = start.and_then(|start| {
        let end = document[start..].find(CLOSE)?;
        Some(&document[start..start + end + CLOSE.len()])
    });
    match shown {
        Some(shown) if shown == block => Ok(()),
        Some(_) => Err(format!("the import table in ARCHITECTURE.md is not this one:\n\n{block}\n")),
        None => Err(format!("ARCHITECTURE.md has no import table; it belongs there like this:\n\n{block}\n")),
    }
}

#[test]
fn every_import_goes_to_an_earlier_row() {
    for (place, row) in TABLE.iter().enumerate() {
        let Only(modules) = row.may_use else { continue };
        for module in modules {
            let found = TABLE[..place].iter().any(|earlier| earlier.module == *module);
            assert!(found, "{} may use {module}, which is no earlier row", row.module);
        }
    }
    assert!(TABLE.is_sorted_by_key(|row| row.number), "the rows are in order");
}

#[test]
fn pure_modules_use_only_pure_ones() {
    for row in TABLE.iter().filter(|row| row.kind == Pure) {
        let shell = TABLE.iter().find(|other| other.kind == Shell && row.may_use(other));
        assert_eq!(shell, None, "{} is pure", row.module);
    }
}

#[test]
fn a_file_belongs_to_the_longest_name() {
    let check = |module: &[&str], expect: Option<&str>| {
        assert_eq!(Row::of(module).map(|row| row.module), expect, "{module:?}");
    };
    check(&["plan", "explain"], Some("plan"));
    check(&["sync"], Some("sync"));
    check(&["sync", "schedule", "Event"], Some("sync/schedule"));
    check(&["planner"], None);
    check(&[], None);
}

#[test]
fn another_table_in_the_document_is_found() {
    let block = as_markdown(&["plan/explain".to_owned()]);
    assert!(
        block.contains(
            "| 4 | `plan` | pure | `api`, `fields`, `grammar`, `harmless`, `object`, `diff`, `observed`, `desired` |\n"
        ),
        "{block}"
    );
    assert!(block.contains("| 9 | `cli` (to come) | shell | rows 1 to 8 |\n"), "{block}");
    assert_eq!(compare(&format!("# Map\n{block}\nmore"), &block), Ok(()));
    let other = block.replace("| 4 | `plan`", "| 5 | `plan`");
    assert!(compare(&other, &block).is_err_and(|message| message.contains(&block)));
    assert!(compare("# Map", &block).is_err_and(|message| message.contains(&block)));
}
