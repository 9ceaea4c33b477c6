//! Writes the fields that differ from Git: short values side by side, long ones as a unified diff.
//!
//! In: the differences, without hidden values. Out: a table. Lines of a diff wrap, and each begins
//! with its sign, so it can be read without colour.

use super::html::Html;
use crate::diff::{Bounds, Line, brief_side, diff, truncate};
use crate::grammar;
use crate::report::board::{HIDDEN, LiveDifference};

/// The most differences that are listed.
const MAX_DIFFERENCES: usize = 200;
/// The most characters of a value that is shown beside another.
const MAX_BRIEF: usize = 80;
/// The most lines of a diff, and characters per line.
const SHOWN: Bounds = Bounds { lines: 400, width: 2000 };

pub(super) fn table(html: &mut Html, found: &[LiveDifference]) {
    html.open("table", &[("class", "cards")]);
    html.open("thead", &[]);
    html.open("tr", &[]);
    for title in ["Field", "Live", "In Git"] {
        html.element("th", &[("scope", "col")], title);
    }
    html.close();
    html.close();
    html.open("tbody", &[]);
    for one in found.iter().take(MAX_DIFFERENCES) {
        html.open("tr", &[]);
        html.open("th", &[("scope", "row")]);
        html.element("code", &[], &one.path);
        html.close();
        values(html, one);
        html.close();
    }
    html.close();
    html.close();
    if found.len() > MAX_DIFFERENCES {
        html.element("p", &[], &format!("and {} more", found.len() - MAX_DIFFERENCES));
    }
}

fn values(html: &mut Html, one: &LiveDifference) {
    let Some((live, wanted)) = &one.values else {
        html.element("td", &[("colspan", "2")], HIDDEN);
        return;
    };
    let (live, wanted) = (live.as_ref(), wanted.as_ref());
    if let (Some(live), Some(wanted)) = (brief_side(live, MAX_BRIEF), brief_side(wanted, MAX_BRIEF)) {
        html.open("td", &[("data-label", "Live")]);
        html.element("del", &[], &live);
        html.close();
        html.open("td", &[("data-label", "In Git")]);
        html.element("ins", &[], &wanted);
        html.close();
        return;
    }
    html.open("td", &[("colspan", "2")]);
    let fitted = truncate(&diff(live, wanted), SHOWN);
    let label = format!("Diff of {}", one.path);
    html.open("pre", &[("class", "diff"), ("tabindex", "0"), ("role", "region"), ("aria-label", &label)]);
    fitted.lines.iter().for_each(|shown| line(html, shown));
    html.close();
    if fitted.more > 0 {
        html.element("p", &[("class", "quiet")], &format!("and {}", grammar::more(fitted.more, "line")));
    }
    html.close();
}

fn line(html: &mut Html, line: &Line) {
    let text = line.to_string();
    match line {
        Line::Added(_) => html.element("ins", &[], &text),
        Line::Removed(_) => html.element("del", &[], &text),
        Line::Hunk(_) => html.element("span", &[("class", "hunk")], &text),
        Line::Same(_) | Line::NoBreak => html.element("span", &[], &text),
    }
}
