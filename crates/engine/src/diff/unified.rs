//! Unified diff of two texts.
//!
//! In: two texts.
//! Out: hunks with three lines of context, each line with its sign, as `diff -u` prints them.
//! Applying them to the old text yields the new one.

use std::fmt;

use super::lines::{Edit, Script, edits};

/// Number of unchanged lines shown around a change.
const CONTEXT: usize = 3;

/// One line of a unified diff, without its line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// The start of a hunk, such as `@@ -1,3 +1,4 @@`.
    Hunk(String),
    /// A line of both texts.
    Same(String),
    /// A line of the old text only.
    Removed(String),
    /// A line of the new text only.
    Added(String),
    /// The previous line ends without a line break.
    NoBreak,
}

impl Line {
    /// Returns the sign at the start of the line.
    pub const fn sign(&self) -> &'static str {
        match self {
            Self::Hunk(_) => "",
            Self::Same(_) => " ",
            Self::Removed(_) => "-",
            Self::Added(_) => "+",
            Self::NoBreak => "\\",
        }
    }

    /// Returns the text after the sign.
    pub fn text(&self) -> &str {
        match self {
            Self::Hunk(text) | Self::Same(text) | Self::Removed(text) | Self::Added(text) => text,
            Self::NoBreak => " No newline at end of file",
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sign())?;
        f.write_str(self.text())
    }
}

/// Returns the unified diff of two texts; empty if they are equal.
pub fn unified(old: &str, new: &str) -> Vec<Line> {
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let script = edits(&old, &new);
    let (mut x, mut y, mut out) = (0, 0, Vec::new());
    for hunk in hunks(&script) {
        (x, y) = (x + hunk.skipped, y + hunk.skipped);
        let length = |without: Edit| -> usize {
            hunk.runs.iter().filter(|(edit, _)| *edit != without).map(|(_, count)| count).sum()
        };
        let (from, to) = (range(x, length(Edit::Add)), range(y, length(Edit::Remove)));
        out.push(Line::Hunk(format!("@@ -{from} +{to} @@")));
        for (edit, count) in hunk.runs {
            let (lines, line): (&[&str], fn(String) -> Line) = match edit {
                Edit::Keep => (&old[x..x + count], Line::Same),
                Edit::Remove => (&old[x..x + count], Line::Removed),
                Edit::Add => (&new[y..y + count], Line::Added),
            };
            lines.iter().for_each(|text| push(&mut out, text, line));
            x += if edit == Edit::Add { 0 } else { count };
            y += if edit == Edit::Remove { 0 } else { count };
        }
    }
    out
}

fn push(out: &mut Vec<Line>, text: &str, line: fn(String) -> Line) {
    match text.strip_suffix('\n') {
        Some(text) => out.push(line(text.to_owned())),
        None => out.extend([line(text.to_owned()), Line::NoBreak]),
    }
}

/// Formats a range of lines for a hunk header; an empty one is given by the line before it.
fn range(start: usize, count: usize) -> String {
    match count {
        0 => format!("{start},0"),
        1 => (start + 1).to_string(),
        count => format!("{},{count}", start + 1),
    }
}

/// A part of a script that is shown.
struct Hunk {
    /// Equal lines before it that are not shown.
    skipped: usize,
    runs: Script,
}

fn hunks(script: &Script) -> Vec<Hunk> {
    let (mut hunks, mut skipped): (Vec<Hunk>, usize) = (Vec::new(), 0);
    let last = script.len().saturating_sub(1);
    for (at, &(edit, count)) in script.iter().enumerate() {
        let inside = at > 0 && at < last;
        match edit {
            Edit::Keep if inside && count <= 2 * CONTEXT => {
                if let Some(hunk) = hunks.last_mut() {
                    hunk.runs.push((edit, count));
                }
            }
            Edit::Keep => {
                let after = if at == 0 { 0 } else { count.min(CONTEXT) };
                if let Some(hunk) = hunks.last_mut().filter(|_| after > 0) {
                    hunk.runs.push((edit, after));
                }
                if at < last {
                    let before = count.min(CONTEXT);
                    skipped = count - after - before;
                    let runs = if before > 0 { vec![(edit, before)] } else { Vec::new() };
                    hunks.push(Hunk { skipped, runs });
                }
            }
            Edit::Remove | Edit::Add => {
                if hunks.is_empty() {
                    hunks.push(Hunk { skipped, runs: Vec::new() });
                }
                if let Some(hunk) = hunks.last_mut() {
                    hunk.runs.push((edit, count));
                }
            }
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(old: &str, new: &str, expect: &[&str]) {
        let lines: Vec<String> = unified(old, new).iter().map(ToString::to_string).collect();
        assert_eq!(lines, expect);
        assert_eq!(applied(old, &lines), new);
    }

    /// Applies the diff to the old text, reading only the printed lines.
    fn applied(old: &str, lines: &[String]) -> String {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let (mut at, mut out) = (0, String::new());
        for (index, line) in lines.iter().enumerate() {
            let ends =
                if lines.get(index + 1).is_some_and(|next| next.starts_with('\\')) { "" } else { "\n" };
            if let Some(head) = line.strip_prefix("@@ -") {
                let range = head.split_once(' ').unwrap().0;
                let (start, count) = range.split_once(',').unwrap_or((range, "1"));
                let start: usize = start.parse().unwrap();
                let begins = if count == "0" { start } else { start - 1 };
                old[at..begins].iter().for_each(|line| out.push_str(line));
                at = begins;
            } else if let Some(text) = line.strip_prefix('+') {
                out.push_str(text);
                out.push_str(ends);
            } else if let Some(text) = line.strip_prefix([' ', '-']) {
                assert_eq!(old[at], format!("{text}{ends}"));
                if line.starts_with(' ') {
                    out.push_str(old[at]);
                }
                at += 1;
            }
        }
        old[at..].iter().for_each(|line| out.push_str(line));
        out
    }

    #[test]
    fn changes_are_shown_with_three_lines_of_context() {
        let lines = |range: std::ops::Range<usize>| range.map(|at| format!("{at}\n")).collect::<String>();
        check("", "", &[]);
        check("a\n", "a\n", &[]);
        check("a", "a\n", &["@@ -1 +1 @@", "-a", "\\ No newline at end of file", "+a"]);
        check("", "a\nb\n", &["@@ -0,0 +1,2 @@", "+a", "+b"]);
        let old = lines(0..63);
        check(
            &old,
            &old.replace("30\n", "thirty\n"),
            &["@@ -28,7 +28,7 @@", " 27", " 28", " 29", "-30", "+thirty", " 31", " 32", " 33"],
        );
        check(
            &lines(0..20),
            &(lines(1..10) + "x\n" + &lines(10..20)),
            &[
                "@@ -1,4 +1,3 @@",
                "-0",
                " 1",
                " 2",
                " 3",
                "@@ -8,6 +7,7 @@",
                " 7",
                " 8",
                " 9",
                "+x",
                " 10",
                " 11",
                " 12",
            ],
        );
        // Two changes share a hunk if at most six equal lines are between them.
        check(
            &lines(0..8),
            &lines(1..7),
            &["@@ -1,8 +1,6 @@", "-0", " 1", " 2", " 3", " 4", " 5", " 6", "-7"],
        );
    }

    proptest! {
        #[test]
        fn the_diff_applied_to_the_old_text_gives_the_new_one(old in "([ab -]?\n){0,30}[a]?", new in "([ab +]?\n){0,30}[a]?") {
            let lines: Vec<String> = unified(&old, &new).iter().map(ToString::to_string).collect();
            prop_assert_eq!(applied(&old, &lines), new);
        }
    }
}
