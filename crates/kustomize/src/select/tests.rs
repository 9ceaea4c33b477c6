//! Tests against the selections of Kustomize 5.8.1.

use serde_json::{Map, Value};

use super::*;
use moorline_core::object::Origin;

/// Labels of the test objects.
const LABELS: &[&[(&str, &str)]] = &[
    &[("a", "b")],
    &[("a", "c"), ("n", "7")],
    &[("n", "12")],
    &[("example.com/x", "y"), ("a", "")],
    &[("in", "in"), ("notin", "x"), ("exists", "e")],
    &[],
    &[("n", "07")],
    &[("a", "B-1.x_y")],
];

/// A selector, and the indices of the matching objects; none if it is refused.
type Case = (&'static str, Option<&'static [usize]>);

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("a=b", Some(&[0])),
    ("a==b", Some(&[0])),
    ("a!=b", Some(&[1, 2, 3, 4, 5, 6, 7])),
    ("a in (b,c)", Some(&[0, 1])),
    ("a in(b,c)", Some(&[0, 1])),
    ("a in ( b , c )", Some(&[0, 1])),
    ("a notin (b)", Some(&[1, 2, 3, 4, 5, 6, 7])),
    ("!a", Some(&[2, 4, 5, 6])),
    ("! a", Some(&[2, 4, 5, 6])),
    ("a", Some(&[0, 1, 3, 7])),
    ("", Some(&[0, 1, 2, 3, 4, 5, 6, 7])),
    (" ", Some(&[0, 1, 2, 3, 4, 5, 6, 7])),
    ("a=b,n=7", Some(&[])),
    ("a=b,", None),
    (",a=b", None),
    ("a = b", Some(&[0])),
    ("a in ()", Some(&[3])),
    ("a in (b,)", Some(&[0, 3])),
    ("a in (,b)", Some(&[0, 3])),
    ("a notin ()", Some(&[0, 1, 2, 4, 5, 6, 7])),
    ("n>7", Some(&[2])),
    ("n<12", Some(&[1, 6])),
    ("n > 7", Some(&[2])),
    ("n>07", Some(&[2])),
    ("n>x", None),
    ("n>", None),
    ("n>-1", None),
    ("n>7,n<100", Some(&[2])),
    ("a=", Some(&[3])),
    ("a!=", Some(&[0, 1, 2, 4, 5, 6, 7])),
    ("a==", Some(&[3])),
    ("a= ,n=7", Some(&[])),
    ("a in b", None),
    ("a b", None),
    ("=b", None),
    ("!a=b", None),
    ("!a in (b)", None),
    ("a=b=c", None),
    ("a=b c", None),
    ("a in (b c)", None),
    ("-a=b", None),
    ("a-=b", None),
    ("a/b/c=d", None),
    ("example.com/x=y", Some(&[3])),
    ("example.com/x", Some(&[3])),
    ("Example.com/x=y", None),
    ("/x=y", None),
    ("example.com/=y", None),
    ("a=b!", None),
    ("a=-b", None),
    ("a=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", None),
    ("a=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", Some(&[])),
    ("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx=a", None),
    ("in in (in)", Some(&[4])),
    ("notin", Some(&[4])),
    ("in=in", Some(&[4])),
    ("in", Some(&[4])),
    ("notin=x", Some(&[4])),
    ("notin notin (y)", Some(&[0, 1, 2, 3, 4, 5, 6, 7])),
    ("exists", Some(&[4])),
    ("a notin (b),!n", Some(&[3, 4, 5, 7])),
    ("a in (b),a notin (c)", Some(&[0])),
    ("a in (b", None),
    ("a in b)", None),
    ("a,,n", None),
    ("a=b;n", None),
    ("a=in", Some(&[])),
    ("a=notin", Some(&[])),
    ("a in (in,notin)", Some(&[])),
    ("a=(b)", None),
    ("(a)", None),
    ("a=B-1.x_y", Some(&[7])),
    ("a===b", None),
    ("a=!b", None),
    ("a!==b", None),
    ("a!b", None),
    ("a<>b", None),
    ("n>=7", None),
    ("a\tin\t(b)", Some(&[0])),
    ("a in (b)n", None),
    ("a in (b) n", None),
    ("a in (b),n", Some(&[])),
    ("a  notin  (b , c)", Some(&[2, 3, 4, 5, 6, 7])),
    ("é=b", None),
    ("a=é", None),
    ("n=7,n=7", Some(&[1])),
    ("a in (b,b)", Some(&[0])),
    ("!", None),
    ("a!", None),
    ("a in", None),
    ("a notin", None),
    ("in (b)", None),
    ("a in (b)(c)", None),
    ("n>7 ,a", Some(&[])),
    ("n gt 7", None),
    ("a in (b=c)", None),
    ("a in (!b)", None),
    ("a in (b,c),n>5", Some(&[1])),
];

fn object(labels: &[(&str, &str)]) -> Resource {
    let labels: Map<String, Value> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    let body = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": labels}});
    Resource::new(body, Origin { file: "r.yaml".into(), document: 0, line: 1, item: None })
}

#[test]
fn labels_are_selected_as_the_tool_does() {
    let objects: Vec<Resource> = LABELS.iter().map(|labels| object(labels)).collect();
    let mut wrong = Vec::new();
    for (text, expected) in CASES {
        let selector = Selector { labels: (*text).to_owned(), ..Selector::default() };
        let found = selector.selection().ok().map(|selection| {
            let takes = |(_, object): &(usize, &Resource)| selection.matches_texts(object);
            objects.iter().enumerate().filter(takes).map(|(at, _)| at).collect::<Vec<_>>()
        });
        if found.as_deref() != *expected {
            wrong.push(format!("{text:?}: {found:?}, expected {expected:?}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn expressions_are_those_of_the_tool() {
    for (expression, text, fits) in [
        ("web", "web", true),
        ("we", "web", false),
        ("we.", "web", true),
        ("a|web", "web", true),
        ("web-\\d+", "web-12", true),
        ("\\w+-[[:digit:]]", "web-1", true),
        ("(?i)WEB", "web", true),
        ("web\\b", "web", true),
    ] {
        let found = full_match(expression).map(|expression| expression.is_match(text.as_ref()));
        assert_eq!(found, Ok(fits), "{expression}");
    }
}

#[test]
fn classes_that_are_read_in_two_ways_are_refused() {
    for (expression, is_taken) in [
        ("a--b", true),
        ("[a-z]--x", true),
        ("[[:alpha:]-]", true),
        (r"[\[a]", true),
        ("[a--b]", false),
        ("[[:alpha:]--b]", false),
        ("[a[b]]", false),
        ("[a&&b]", false),
        ("é", false),
    ] {
        assert_eq!(full_match(expression).is_ok(), is_taken, "{expression}");
    }
}
