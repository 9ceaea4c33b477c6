//! Truncates a diff to a readable size.
//!
//! In: the lines of a diff, and bounds.
//! Out: a limited number of lines of limited width. A long line is cut around its first difference
//! from its counterpart, so that two different lines never look equal.

use super::unified::Line;

/// Mark at a cut.
const CUT: &str = "…";

/// Maximum size of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of lines.
    pub lines: usize,
    /// Maximum number of characters of a line.
    pub width: usize,
}

/// The truncated diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruncatedDiff {
    /// The lines, cut to the width.
    pub lines: Vec<Line>,
    /// Number of lines left out.
    pub more: usize,
}

/// Truncates a diff.
pub fn truncate(lines: &[Line], bounds: Bounds) -> TruncatedDiff {
    let end = bounds.lines.min(lines.len());
    let mut fitted = Vec::with_capacity(end);
    let mut at = 0;
    while at < end {
        let removed = count(&lines[at..end], |line| matches!(line, Line::Removed(_)));
        let added = count(&lines[at + removed..end], |line| matches!(line, Line::Added(_)));
        for index in at..at + removed {
            let other = lines.get(index + removed).filter(|_| index - at < added);
            fitted.push(cut(&lines[index], other, bounds.width));
        }
        for index in at + removed..at + removed + added {
            let other = lines.get(index - removed).filter(|_| index - removed < at + removed);
            fitted.push(cut(&lines[index], other, bounds.width));
        }
        at += removed + added;
        if removed + added == 0 {
            fitted.push(cut(&lines[at], None, bounds.width));
            at += 1;
        }
    }
    TruncatedDiff { lines: fitted, more: lines.len() - end }
}

fn count(lines: &[Line], fits: impl Fn(&Line) -> bool) -> usize {
    lines.iter().take_while(|line| fits(line)).count()
}

fn cut(line: &Line, other: Option<&Line>, width: usize) -> Line {
    let text = line.text();
    // The length in bytes is never less than the number of characters.
    if text.len() <= width || text.chars().nth(width).is_none() {
        return line.clone();
    }
    let same = other.map_or(0, |other| {
        text.chars().zip(other.text().chars()).take_while(|(one, other)| one == other).count()
    });
    // A third of the width shows the text before the difference.
    let skipped = if same < width / 2 { 0 } else { same - width / 3 };
    let mut rest = text.chars().skip(skipped);
    let mut shown = String::new();
    if skipped > 0 {
        shown.push_str(CUT);
    }
    shown.extend(rest.by_ref().take(width));
    if rest.next().is_some() {
        shown.push_str(CUT);
    }
    match line {
        Line::Hunk(_) => Line::Hunk(shown),
        Line::Same(_) => Line::Same(shown),
        Line::Removed(_) => Line::Removed(shown),
        Line::Added(_) => Line::Added(shown),
        Line::NoBreak => Line::NoBreak,
    }
}

#[cfg(test)]
mod tests {
    use super::super::unified::unified;
    use super::*;

    fn check(old: &str, new: &str, bounds: (usize, usize), expect: &[&str], more: usize) {
        let fitted = truncate(&unified(old, new), Bounds { lines: bounds.0, width: bounds.1 });
        let lines: Vec<String> = fitted.lines.iter().map(ToString::to_string).collect();
        assert_eq!(
            (lines.iter().map(String::as_str).collect::<Vec<_>>(), fitted.more),
            (expect.to_vec(), more)
        );
    }

    #[test]
    fn long_lines_are_cut_around_their_difference() {
        let (old, new) =
            (format!("{}a{}\n", "é".repeat(50), "x".repeat(50)), format!("{}b\n", "é".repeat(50)));
        check(&old, &new, (9, 9), &["@@ -1 +1 …", "-…éééaxxxxx…", "+…éééb"], 0);
        check("aaaaaaaaaaaa\n", "", (9, 9), &["@@ -1 +0,…", "-aaaaaaaaa…"], 0);
        check("", "aaaaaaaaaaaa\n", (9, 99), &["@@ -0,0 +1 @@", "+aaaaaaaaaaaa"], 0);
    }

    #[test]
    fn many_lines_are_counted() {
        check("a\nb\nc\n", "d\ne\n", (4, 99), &["@@ -1,3 +1,2 @@", "-a", "-b", "-c"], 2);
        check("a\nb\nc\n", "d\ne\n", (5, 99), &["@@ -1,3 +1,2 @@", "-a", "-b", "-c", "+d"], 1);
        check("a\nb\n", "d\ne\nf\n", (9, 99), &["@@ -1,2 +1,3 @@", "-a", "-b", "+d", "+e", "+f"], 0);
        check(
            "a",
            "b",
            (9, 99),
            &["@@ -1 +1 @@", "-a", "\\ No newline at end of file", "+b", "\\ No newline at end of file"],
            0,
        );
    }
}
