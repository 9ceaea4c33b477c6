//! Import table of the architecture: every crate and every folder of the program, its kind, and the
//! modules that it may use.
//!
//! Imports go one way: a module may use only modules of earlier rows. `crates/README.md` shows the
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

/// The table. A row is a crate, a folder of a crate such as `engine/plan`, or a folder of `src`. A
/// file belongs to the longest matching name: `src/controller/schedule/backoff.rs` to
/// `controller/schedule`.
#[rustfmt::skip]
pub(crate) const TABLE: [Row; 47] = [
    row(1, "core",                   Pure,  Only(&[])),
    row(1, "yaml",                   Pure,  Only(&[])),
    row(1, "api",                    Pure,  Only(&["core", "yaml"])),
    row(1, "cel",                    Pure,  Only(&["core"])),
    row(1, "cosign",                 Pure,  Only(&[])),
    row(1, "engine/proof",           Pure,  Only(&[])),
    row(1, "identity",               Pure,  Only(&[])),
    row(1, "journal",                Shell, Only(&[])),
    row(1, "json-patch",             Pure,  Only(&[])),
    row(1, "managed-fields",         Pure,  Only(&[])),
    row(1, "runtime",                Shell, Only(&[])),
    row(1, "sandbox/table",          Pure,  Only(&[])),
    row(2, "controller/schedule",    Pure,  Only(&["api"])),
    row(2, "engine/diff",            Pure,  Only(&["yaml"])),
    row(2, "engine/observed",        Pure,  Only(&["api", "core", "engine/proof", "managed-fields"])),
    row(2, "git",                    Shell, Only(&["core", "cosign", "identity", "runtime", "yaml"])),
    row(2, "health",                 Pure,  Only(&["cel", "core"])),
    row(2, "kustomize",              Pure,  Only(&["api", "core", "json-patch", "yaml"])),
    row(2, "metrics",                Shell, Only(&["api"])),
    row(2, "notify",                 Pure,  Only(&["api", "cel", "core", "identity"])),
    row(2, "render",                 Pure,  Only(&["api", "core", "yaml", "kustomize"])),
    row(2, "sandbox/schema",         Pure,  Only(&["cel", "core"])),
    row(2, "settings",               Pure,  Only(&["core"])),
    row(2, "sops",                   Pure,  Only(&["yaml"])),
    row(2, "windows",                Pure,  Only(&["api", "core"])),
    row(3, "decryption",             Shell, Only(&["core", "yaml", "git", "sops"])),
    row(3, "engine/desired",         Pure,  Only(&["api", "core", "engine/proof", "managed-fields", "yaml", "render"])),
    row(3, "helm",                   Shell, Only(&["core", "runtime", "yaml", "render"])),
    row(3, "sandbox/cel_rules",      Pure,  Only(&["cel", "sandbox/schema"])),
    row(3, "sandbox/kinds",          Pure,  Only(&["cel", "core", "sandbox/schema"])),
    row(3, "sandbox/managed_fields", Pure,  Only(&["managed-fields", "sandbox/schema"])),
    row(3, "sandbox/patch",          Pure,  Only(&["json-patch", "sandbox/schema"])),
    row(3, "sync-set",               Pure,  Only(&["api", "cel", "core", "yaml", "render"])),
    row(4, "adopt",                  Pure,  Only(&["api", "core", "managed-fields", "yaml", "sync-set"])),
    row(4, "engine/plan",            Pure,  Only(&["api", "core", "managed-fields", "engine/diff", "engine/observed", "engine/desired"])),
    row(4, "engine/rbac",            Pure,  Only(&["core", "engine/desired"])),
    row(4, "sandbox/manifest_check", Pure,  Only(&["core", "sandbox/schema", "sandbox/cel_rules", "sandbox/kinds"])),
    row(5, "report",                 Pure,  Only(&["api", "core", "health", "engine/observed", "engine/desired", "engine/plan"])),
    row(6, "cluster",                Shell, Only(&["api", "core", "engine/proof", "managed-fields", "metrics", "runtime", "engine/observed", "health", "journal", "settings", "engine/desired", "engine/plan", "yaml"])),
    row(6, "mcp",                    Pure,  Only(&["api", "core", "report"])),
    row(6, "serve/page",             Pure,  Only(&["api", "core", "yaml", "engine/diff", "report"])),
    row(7, "sandbox",                Shell, Only(&["core", "sandbox/table", "yaml", "sandbox/schema", "sandbox/cel_rules", "sandbox/kinds", "sandbox/managed_fields", "sandbox/patch", "sandbox/manifest_check"])),
    row(7, "serve",                  Shell, Earlier),
    row(7, "settings_watch",         Shell, Earlier),
    row(8, "controller",             Shell, Earlier),
    row(9, "cli",                    Shell, Earlier),
    row(9, "main",                   Shell, Only(&["cli"])),
];

/// Names under which `src/lib.rs` re-exports the crates, and the module behind each.
const ALIASES: [(&str, &[&str]); 24] = [
    ("chance", &["runtime", "chance"]),
    ("clock", &["runtime", "clock"]),
    ("desired", &["engine", "desired"]),
    ("did_you_mean", &["core", "did_you_mean"]),
    ("diff", &["engine", "diff"]),
    ("duration", &["core", "duration"]),
    ("fair_queue", &["runtime", "fair_queue"]),
    ("fields", &["managed-fields"]),
    ("grammar", &["core", "grammar"]),
    ("lanes", &["runtime", "lanes"]),
    ("log_repeats", &["core", "log_repeats"]),
    ("name_rules", &["core", "name_rules"]),
    ("notifications", &["notify"]),
    ("object", &["core", "object"]),
    ("observed", &["engine", "observed"]),
    ("plan", &["engine", "plan"]),
    ("position", &["core", "position"]),
    ("proof", &["engine", "proof"]),
    ("rbac", &["engine", "rbac"]),
    ("sanitize", &["core", "sanitize"]),
    ("source", &["git"]),
    ("sync_set", &["sync-set"]),
    ("token_bucket", &["runtime", "token_bucket"]),
    ("tree", &["core", "tree"]),
];

/// Returns the module behind a name of `src/lib.rs`: the re-exported one, or a folder of `src`.
pub(crate) fn behind(name: &str) -> Vec<String> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or_else(
        || vec![name.to_owned()],
        |(_, module)| module.iter().map(|part| (*part).to_owned()).collect(),
    )
}

/// True if the table applies to the crate in this folder of `crates`.
pub(crate) fn is_in_table(folder: &str) -> bool {
    TABLE.iter().any(|row| row.module.split('/').next() == Some(folder))
}

/// Returns the folder of a crate by its name in code, such as `moorline_managed_fields`.
pub(crate) fn folder_of(name: &str) -> Option<String> {
    let folder = name.strip_prefix("moorline_")?.replace('_', "-");
    is_in_table(&folder).then_some(folder)
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

    /// Returns the modules that it may use, for messages and for the document.
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

/// Formats the table for crates/README.md, including the markers.
pub(crate) fn as_markdown() -> String {
    let lines = TABLE.iter().map(|row| {
        let kind = match row.kind {
            Pure => "pure",
            Shell => "shell",
        };
        format!("| {} | `{}` | {kind} | {} |\n", row.number, row.module, row.uses())
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
        Some(_) => Err(format!("the import table in crates/README.md is not this one:\n\n{block}\n")),
        None => {
            Err(format!("crates/README.md has no import table; it belongs there like this:\n\n{block}\n"))
        }
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
    check(&["engine", "plan", "explain"], Some("engine/plan"));
    check(&["controller"], Some("controller"));
    check(&["controller", "schedule", "Event"], Some("controller/schedule"));
    check(&["engine"], None);
    check(&["planner"], None);
    check(&[], None);
}

#[test]
fn another_table_in_the_document_is_found() {
    let block = as_markdown();
    assert!(block.contains("| 4 | `engine/rbac` | pure | `core`, `engine/desired` |\n"), "{block}");
    assert!(block.contains("| 9 | `cli` | shell | rows 1 to 8 |\n"), "{block}");
    assert_eq!(compare(&format!("# Map\n{block}\nmore"), &block), Ok(()));
    let other = block.replace("| 4 | `engine/plan`", "| 5 | `engine/plan`");
    assert!(compare(&other, &block).is_err_and(|message| message.contains(&block)));
    assert!(compare("# Map", &block).is_err_and(|message| message.contains(&block)));
}
