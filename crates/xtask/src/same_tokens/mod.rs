//! Proves that a change of the source changes only comments, names or positions.
//!
//! In: a Git revision to compare with, and the files of the checkout. Out: the items that differ.

mod compare;
mod items;
mod renames;
mod trees;

use compare::Comparison;
use items::{Items, Strictness};
use renames::Renames;

use crate::Failure;
use crate::arguments::Arguments;

const USAGE: &str = "cargo xtask same-tokens BASE [--renames FILE]... [--texts-only]

Compares the Rust source of the checkout with the revision BASE, item by item, wherever the items are.
Comments, imports, `mod` lines, visibility and the modules in front of a name do not count.

  --renames FILE   lines `old new`: identifiers of BASE that have another name now
  --texts-only     compares only the string literals of each side";

/// Compares the checkout with a revision, and prints how many items are the same.
pub(crate) fn run(mut arguments: Arguments) -> Result<(), Failure> {
    if arguments.asks_for_help(USAGE) {
        return Ok(());
    }
    let mut renames = Renames::default();
    for file in arguments.values("--renames")? {
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
        renames.read(&file, &text).map_err(Failure::Usage)?;
    }
    let strictness = if arguments.flag("--texts-only") { Strictness::Texts } else { Strictness::Code };
    let base = arguments.word();
    let base =
        base.ok_or_else(|| Failure::Usage(format!("the revision to compare with is missing\n\n{USAGE}")))?;
    arguments.end()?;
    let comparison = compare(&base, &renames, strictness)?;
    if !comparison.is_empty() {
        return Err(Failure::Found(comparison.to_string()));
    }
    println!("the same: {} items", comparison.same);
    Ok(())
}

fn compare(base: &str, renames: &Renames, strictness: Strictness) -> Result<Comparison, String> {
    let (mut before, mut now) = (Items::default(), Items::default());
    for (path, text) in trees::at(base)? {
        before.add(&path, &text, strictness, Some(renames))?;
    }
    for (path, text) in trees::checkout()? {
        now.add(&path, &text, strictness, None)?;
    }
    Ok(Comparison::new(before, now))
}
