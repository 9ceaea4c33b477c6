//! Proves that a change of the source changes only comments, names or positions.
//!
//! In: a Git revision to compare with, and the files of the checkout.
//! Out: the items that differ, and exit code 1 if there are any.

mod compare;
mod items;
mod renames;
mod trees;

use std::process::ExitCode;

use compare::Comparison;
use items::{Items, Strictness};
use renames::Renames;

const USAGE: &str = "cargo xtask same-tokens BASE [--renames FILE]... [--texts-only]

Compares the Rust source of the checkout with the revision BASE, item by item, wherever the items are.
Comments, imports, `mod` lines, visibility and the modules in front of a name do not count.

  --renames FILE   lines `old new`: identifiers of BASE that have another name now
  --texts-only     compares only the string literals of each side";

/// Options of the command line.
struct Asked {
    base: String,
    renames: Renames,
    strictness: Strictness,
}

fn main() -> ExitCode {
    let asked = match asked(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(wrong) => return fail(&format!("{wrong}\n\n{USAGE}"), 64),
    };
    match compare(&asked) {
        Ok(comparison) if comparison.is_empty() => {
            println!("the same: {} items", comparison.same);
            ExitCode::SUCCESS
        }
        Ok(comparison) => fail(&comparison.to_string(), 1),
        Err(wrong) => fail(&wrong, 2),
    }
}

fn fail(words: &str, code: u8) -> ExitCode {
    eprintln!("{words}");
    ExitCode::from(code)
}

fn asked(mut arguments: impl Iterator<Item = String>) -> Result<Asked, String> {
    if arguments.next().as_deref() != Some("same-tokens") {
        return Err("the only task is same-tokens".into());
    }
    let base = arguments.next().ok_or("the revision to compare with is missing")?;
    let (mut renames, mut strictness) = (Renames::default(), Strictness::Code);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--texts-only" => strictness = Strictness::Texts,
            "--renames" => {
                let file = arguments.next().ok_or("--renames needs a file")?;
                let text = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
                renames.read(&file, &text)?;
            }
            other => return Err(format!("{other} is no option")),
        }
    }
    Ok(Asked { base, renames, strictness })
}

fn compare(asked: &Asked) -> Result<Comparison, String> {
    let (mut before, mut now) = (Items::default(), Items::default());
    for (path, text) in trees::at(&asked.base)? {
        before.add(&path, &text, asked.strictness, Some(&asked.renames))?;
    }
    for (path, text) in trees::checkout()? {
        now.add(&path, &text, asked.strictness, None)?;
    }
    Ok(Comparison::new(before, now))
}
