//! One unified diff of a whole object: Git against live, by line.
//!
//! In: both bodies, redacted, and the fields that differ. Out: lines, each of which is in both, in
//! one of them, or set by the server alone; and their HTML, in which parts without a change fold.
//! The given fields decide what differs: other spellings of a value are shown as equal.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::html::Html;
use crate::diff::{Bounds, Edit, Line, edits, truncate};
use crate::grammar::{counted, more};
use crate::report::board::{HIDDEN, LiveDifference, LiveObject, RedactedBody};
use crate::yaml;

/// The most lines of a diff, and characters per line.
const SHOWN: Bounds = Bounds { lines: 3000, width: 2000 };
/// Lines that stay visible beside a change.
const CONTEXT: usize = 3;
/// The fewest lines that are folded.
const MIN_FOLD: usize = 4;
/// The most paths that are listed below a diff.
const MAX_PATHS: usize = 50;
/// Key fields of list items, the most specific first.
const ITEM_KEYS: [&str; 8] =
    ["name", "mountPath", "devicePath", "containerPort", "port", "ip", "topologyKey", "uid"];

/// Origin of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineOrigin {
    /// Git and the live object have it.
    Both,
    /// The live object has it, and Git another value or none.
    Live,
    /// Git has it, and the live object another value or none.
    Git,
    /// The live object has it, and Git does not set the field.
    Server,
    /// The values differ, and must not be shown.
    Hidden,
}

/// The diff of one object.
#[derive(Debug, Default)]
pub(super) struct ObjectDiff {
    pub(super) lines: Vec<(LineOrigin, String)>,
    /// Differing fields without a line, because the bodies are redacted.
    pub(super) unplaced: Vec<String>,
}

/// Compares a desired body with a live object. `None` if the object does not exist.
pub(super) fn object_diff(wanted: &RedactedBody, seen: &LiveObject) -> Option<ObjectDiff> {
    let live = seen.live.as_ref()?;
    let mut walk = Walk::new(&seen.differences);
    if let (Value::Object(wanted), Value::Object(live)) = (&wanted.body, &live.body) {
        walk.maps(wanted, live, At { indent: 0, dash: None });
    }
    let unplaced = seen.differences.iter().map(|it| it.path.as_str());
    let unplaced = unplaced.filter(|path| !walk.placed.contains(path)).map(str::to_owned).collect();
    Some(ObjectDiff { lines: walk.lines, unplaced })
}

/// Position of the next line: its column, and the column of a dash that stands before it.
#[derive(Debug, Clone, Copy)]
struct At {
    indent: usize,
    dash: Option<usize>,
}

struct Walk<'a> {
    differences: &'a [LiveDifference],
    path: String,
    lines: Vec<(LineOrigin, String)>,
    placed: BTreeSet<&'a str>,
}

impl<'a> Walk<'a> {
    fn new(differences: &'a [LiveDifference]) -> Self {
        Self { differences, path: String::new(), lines: Vec::new(), placed: BTreeSet::new() }
    }

    fn maps(&mut self, wanted: &Map<String, Value>, live: &Map<String, Value>, mut at: At) {
        let keys: BTreeSet<&String> = wanted.keys().chain(live.keys()).collect();
        for key in keys {
            let before = self.path.len();
            push_key(&mut self.path, key);
            self.field(key, wanted.get(key), live.get(key), at);
            self.path.truncate(before);
            at.dash = None;
        }
    }

    fn field(&mut self, key: &str, wanted: Option<&Value>, live: Option<&Value>, at: At) {
        if let Some(difference) = self.here() {
            self.placed.insert(&difference.path);
            if difference.values.is_none() {
                let line = format!("{}{}: {HIDDEN}", lead(at), yaml::write(&Value::from(key)).trim_end());
                return self.lines.push((LineOrigin::Hidden, line));
            }
            return self.changed(Some(key), wanted, live, at);
        }
        match (wanted, live) {
            (Some(Value::Object(wanted)), Some(Value::Object(live)))
                if !wanted.is_empty() && !live.is_empty() =>
            {
                self.line(LineOrigin::Both, &key_line(key), at);
                self.maps(wanted, live, At { indent: at.indent + 2, dash: None });
            }
            (Some(Value::Array(wanted)), Some(Value::Array(live)))
                if !wanted.is_empty() && !live.is_empty() =>
            {
                self.line(LineOrigin::Both, &key_line(key), at);
                self.lists(wanted, live, at.indent);
            }
            // The API server may spell an equal value in another way.
            (Some(_), Some(live)) => self.whole(LineOrigin::Both, Some(key), live, at),
            (Some(wanted), None) => self.whole(LineOrigin::Both, Some(key), wanted, at),
            (None, Some(live)) => self.whole(LineOrigin::Server, Some(key), live, at),
            (None, None) => {}
        }
    }

    fn lists(&mut self, wanted: &[Value], live: &[Value], indent: usize) {
        let key = ITEM_KEYS.into_iter().find(|key| names_each(wanted, key) && names_each(live, key));
        let at = At { indent: indent + 2, dash: Some(indent) };
        let Some(key) = key else { return self.unnamed(wanted, live, at) };
        let partner = |item: &Value, of: &[Value]| of.iter().position(|other| other[key] == item[key]);
        for item in live {
            self.item(key, partner(item, wanted).map(|found| &wanted[found]), Some(item), at);
        }
        for item in wanted.iter().filter(|item| partner(item, live).is_none()) {
            self.item(key, Some(item), None, at);
        }
    }

    /// Compares the items of a list that have no names, by their places.
    fn unnamed(&mut self, wanted: &[Value], live: &[Value], at: At) {
        for (place, item) in live.iter().enumerate() {
            let before = self.path.len();
            self.path.push_str(&format!("[{place}]"));
            match wanted.get(place).filter(|_| wanted.len() == live.len()) {
                Some(wanted) => self.pair(Some(wanted), Some(item), at),
                None => self.whole(LineOrigin::Both, None, item, at),
            }
            self.path.truncate(before);
        }
    }

    fn item(&mut self, key: &str, wanted: Option<&Value>, live: Option<&Value>, at: At) {
        let before = self.path.len();
        let name = wanted.or(live).map(|item| &item[key]).unwrap_or(&Value::Null);
        let name = name.as_str().map_or_else(|| name.to_string(), str::to_owned);
        self.path.push_str(&format!("[{key}={name}]"));
        self.pair(wanted, live, at);
        self.path.truncate(before);
    }

    fn pair(&mut self, wanted: Option<&Value>, live: Option<&Value>, at: At) {
        if let Some(difference) = self.here() {
            self.placed.insert(&difference.path);
            return match difference.values {
                None => self.line(LineOrigin::Hidden, HIDDEN, at),
                Some(_) => self.changed(None, wanted, live, at),
            };
        }
        match (wanted, live) {
            (Some(Value::Object(wanted)), Some(Value::Object(live))) if !wanted.is_empty() => {
                self.maps(wanted, live, at);
            }
            (Some(_), Some(live)) => self.whole(LineOrigin::Both, None, live, at),
            (Some(wanted), None) => self.whole(LineOrigin::Both, None, wanted, at),
            (None, Some(live)) => self.whole(LineOrigin::Server, None, live, at),
            (None, None) => {}
        }
    }

    /// The difference of the current field itself.
    fn here(&self) -> Option<&'a LiveDifference> {
        self.differences.iter().find(|difference| difference.path == self.path)
    }

    /// Writes a field or item that differs, line by line.
    fn changed(&mut self, key: Option<&str>, wanted: Option<&Value>, live: Option<&Value>, at: At) {
        let text = |value: Option<&Value>| value.map(|value| lines_of(key, value, at)).unwrap_or_default();
        let (old, new) = (text(live), text(wanted));
        let (old_lines, new_lines): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let (mut x, mut y) = (0, 0);
        for (edit, count) in edits(&old_lines, &new_lines) {
            let (origin, part) = match edit {
                Edit::Keep => (LineOrigin::Both, &old_lines[x..x + count]),
                Edit::Remove => (LineOrigin::Live, &old_lines[x..x + count]),
                Edit::Add => (LineOrigin::Git, &new_lines[y..y + count]),
            };
            self.lines.extend(part.iter().map(|line| (origin, (*line).to_owned())));
            x += if edit == Edit::Add { 0 } else { count };
            y += if edit == Edit::Remove { 0 } else { count };
        }
    }

    /// Writes a field or item as a whole.
    fn whole(&mut self, origin: LineOrigin, key: Option<&str>, value: &Value, at: At) {
        self.lines.extend(block(key, value, at).lines().map(|line| (origin, line.to_owned())));
    }

    fn line(&mut self, origin: LineOrigin, text: &str, at: At) {
        self.lines.push((origin, lead(at) + text));
    }
}

/// A field or an item that is compared by line. A text of several lines is written as it is, even
/// if YAML needs quotes for it.
fn lines_of(key: Option<&str>, value: &Value, at: At) -> String {
    let Some(text) = value.as_str().filter(|text| text.contains('\n')) else { return block(key, value, at) };
    let end = if text.ends_with('\n') { "|" } else { "|-" };
    let head = key.map_or_else(|| end.to_owned(), |key| format!("{} {end}", key_line(key)));
    let mut out = format!("{}{head}\n", lead(at));
    for line in text.lines() {
        out += &format!("{}{line}\n", " ".repeat(if line.is_empty() { 0 } else { at.indent + 2 }));
    }
    out
}

/// A field or an item of a list as YAML lines at a column.
fn block(key: Option<&str>, value: &Value, at: At) -> String {
    let text = match key {
        Some(key) => yaml::write(&Value::Object(Map::from_iter([(key.to_owned(), value.clone())]))),
        None => yaml::write(value),
    };
    let mut out = String::with_capacity(text.len() + at.indent);
    for (number, line) in text.lines().enumerate() {
        let lead = if number == 0 { lead(at) } else { " ".repeat(at.indent) };
        out += if line.is_empty() { "" } else { &lead };
        out += line;
        out.push('\n');
    }
    out
}

fn lead(at: At) -> String {
    match at.dash {
        Some(dash) => format!("{}- ", " ".repeat(dash)),
        None => " ".repeat(at.indent),
    }
}

fn key_line(key: &str) -> String {
    format!("{}:", yaml::write(&Value::from(key)).trim_end())
}

/// Appends `.key`, quoted as in the paths of differences.
fn push_key(path: &mut String, key: &str) {
    match key.contains(['.', '/', '[']) {
        true => path.push_str(&format!("[{key:?}]")),
        false => {
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(key);
        }
    }
}

/// True if every item has the key, and all values differ.
fn names_each(items: &[Value], key: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut is_new =
        |value: &Value| (value.is_string() || value.is_number()) && seen.insert(value.to_string());
    items.iter().all(|item| item.get(key).is_some_and(&mut is_new))
}

impl ObjectDiff {
    /// True if nothing differs.
    pub(super) fn is_equal(&self) -> bool {
        self.unplaced.is_empty() && !self.lines.iter().any(|(origin, _)| is_change(*origin))
    }

    /// Writes the diff; `label` names it for screen readers.
    pub(super) fn write(&self, html: &mut Html, id: &str, label: &str) {
        let lines: Vec<Line> = self.lines.iter().map(|(origin, text)| signed(*origin, text)).collect();
        let fitted = truncate(&lines, SHOWN);
        html.open("div", &[("class", "diff"), ("tabindex", "0"), ("role", "region"), ("aria-label", label)]);
        let origins: Vec<LineOrigin> =
            self.lines.iter().map(|(origin, _)| *origin).take(fitted.lines.len()).collect();
        let mut at = 0;
        while at < origins.len() {
            let end = end_of_fold(&origins, at);
            if end - at >= MIN_FOLD {
                html.open("details", &[("id", &format!("{id}-{at}"))]);
                let count = counted(end - at, "line");
                html.element("summary", &[], &format!("{count} {}", fold_words(&origins[at..end])));
                (at..end).for_each(|at| write_line(html, origins[at], &fitted.lines[at]));
                html.close();
                at = end;
            } else {
                write_line(html, origins[at], &fitted.lines[at]);
                at += 1;
            }
        }
        html.close();
        if fitted.more > 0 {
            html.element("p", &[("class", "quiet")], &format!("and {}", more(fitted.more, "line")));
        }
        self.write_unplaced(html);
    }

    /// Writes the differing fields that have no line.
    fn write_unplaced(&self, html: &mut Html) {
        if self.unplaced.is_empty() {
            return;
        }
        html.element(
            "p",
            &[],
            "These fields differ as well. Their values are not shown: they may come from Secrets.",
        );
        html.open("ul", &[("class", "named")]);
        for path in self.unplaced.iter().take(MAX_PATHS) {
            html.open("li", &[]);
            html.element("code", &[], path);
            html.close();
        }
        html.close();
        if self.unplaced.len() > MAX_PATHS {
            html.element("p", &[], &format!("and {} more", self.unplaced.len() - MAX_PATHS));
        }
    }
}

fn is_change(origin: LineOrigin) -> bool {
    matches!(origin, LineOrigin::Live | LineOrigin::Git | LineOrigin::Hidden)
}

/// The end of the lines without a change from here on, without those beside a change.
fn end_of_fold(origins: &[LineOrigin], start: usize) -> usize {
    let near = |at: usize| {
        let (from, to) = (at.saturating_sub(CONTEXT), origins.len().min(at + CONTEXT + 1));
        origins[from..to].iter().any(|origin| is_change(*origin))
    };
    (start..origins.len()).find(|at| near(*at)).unwrap_or(origins.len())
}

fn fold_words(origins: &[LineOrigin]) -> &'static str {
    match origins.iter().all(|origin| *origin == LineOrigin::Server) {
        true => "that Git does not set",
        false => "without a change",
    }
}

fn signed(origin: LineOrigin, text: &str) -> Line {
    match origin {
        LineOrigin::Live => Line::Removed(text.to_owned()),
        LineOrigin::Git => Line::Added(text.to_owned()),
        LineOrigin::Both | LineOrigin::Server | LineOrigin::Hidden => Line::Same(text.to_owned()),
    }
}

fn write_line(html: &mut Html, origin: LineOrigin, line: &Line) {
    match origin {
        LineOrigin::Live => html.element("del", &[], &line.to_string()),
        LineOrigin::Git => html.element("ins", &[], &line.to_string()),
        LineOrigin::Both => html.element("span", &[], &line.to_string()),
        LineOrigin::Server => html.element("span", &[("class", "server")], &line.to_string()),
        LineOrigin::Hidden => html.element("span", &[("class", "veiled")], &format!("≠{}", line.text())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    type Values = Option<(Option<Value>, Option<Value>)>;

    fn lines(wanted: Value, live: Value, differences: &[(&str, Values)]) -> Vec<String> {
        let differences = differences
            .iter()
            .map(|(path, values)| LiveDifference { path: (*path).to_owned(), values: values.clone() });
        let shown = |body| RedactedBody { body, omission: "" };
        let seen =
            LiveObject { live: Some(shown(live)), differences: differences.collect(), writers: Vec::new() };
        let diff = object_diff(&shown(wanted), &seen).unwrap();
        let sign = |origin: LineOrigin| match origin {
            LineOrigin::Both => " ",
            LineOrigin::Live => "-",
            LineOrigin::Git => "+",
            LineOrigin::Server => "~",
            LineOrigin::Hidden => "!",
        };
        let unplaced = diff.unplaced.iter().map(|path| format!("? {path}"));
        diff.lines.iter().map(|(origin, text)| format!("{}{text}", sign(*origin))).chain(unplaced).collect()
    }

    fn both(live: Value, wanted: Value) -> Values {
        Some((Some(live), Some(wanted)))
    }

    #[test]
    fn each_line_says_where_it_comes_from() {
        let wanted = json!({
            "kind": "D", "spec": {"replicas": 2, "limits": {"cpu": "500m"}, "containers": [
                {"name": "web", "image": "a:1", "args": ["x", "y"]}, {"name": "new"},
            ]},
        });
        let live = json!({
            "kind": "D", "spec": {"replicas": 5, "limits": {"cpu": "0.5"}, "containers": [
                {"name": "side", "image": "s"}, {"name": "web", "image": "a:1", "args": ["x", "z"], "tty": false},
            ], "old": 1},
            "status": {"replicas": 5},
        });
        let differences = [
            ("spec.containers[name=web].args[1]", both(json!("z"), json!("y"))),
            ("spec.containers[name=new]", Some((None, Some(json!({"name": "new"}))))),
            ("spec.old", Some((Some(json!(1)), None))),
            ("spec.replicas", both(json!(5), json!(2))),
        ];
        assert_eq!(
            lines(wanted, live, &differences),
            [
                " kind: D",
                " spec:",
                "   containers:",
                "~  - image: s",
                "~    name: side",
                "   - args:",
                "     - x",
                "-    - z",
                "+    - \"y\"",
                "     image: a:1",
                "     name: web",
                "~    tty: false",
                "+  - name: new",
                "   limits:",
                "     cpu: \"0.5\"",
                "-  old: 1",
                "-  replicas: 5",
                "+  replicas: 2",
                "~status:",
                "~  replicas: 5",
            ]
        );
    }

    #[test]
    fn texts_are_compared_by_line_and_hidden_values_stay_hidden() {
        let text = |middle: &str| json!(format!("a\n{middle}\nc\n"));
        let found = lines(
            json!({"data": {"f": text("b"), "s": "(not shown)"}}),
            json!({"data": {"f": text("x"), "s": "(not shown)"}}),
            &[("data.f", both(text("x"), text("b"))), ("data.s", None), ("data[\"a.b\"]", None)],
        );
        assert_eq!(
            found,
            [
                " data:",
                "   f: |",
                "     a",
                "-    x",
                "+    b",
                "     c",
                "!  s: hidden: may contain Secret values",
                "? data[\"a.b\"]",
            ]
        );
        // A text that YAML would quote is compared by line as well.
        let (old, new) = (json!(" a\n\tb\n"), json!(" a\n\tc"));
        let found = lines(json!({"f": new}), json!({"f": old}), &[("f", both(old, new))]);
        assert_eq!(found, ["-f: |", "+f: |-", "    a", "-  \tb", "+  \tc"]);
        // The hidden value is not written even if a body has it.
        let found = lines(json!({"a": 1}), json!({"a": "hunter2"}), &[("a", None)]);
        assert_eq!(found, ["!a: hidden: may contain Secret values"]);
    }

    #[test]
    fn parts_without_a_change_are_folded() {
        let many = |value: i64| {
            Value::Object(
                (0..20).map(|at| (format!("k{at:02}"), json!(if at == 9 { value } else { 0 }))).collect(),
            )
        };
        let seen = LiveObject {
            live: Some(RedactedBody { body: many(1), omission: "" }),
            differences: vec![LiveDifference { path: "k09".into(), values: both(json!(1), json!(2)) }],
            writers: Vec::new(),
        };
        let diff = object_diff(&RedactedBody { body: many(2), omission: "" }, &seen).unwrap();
        let mut html = Html::default();
        diff.write(&mut html, "d", "Diff");
        let html = html.finish();
        assert!(html.contains("<summary>6 lines without a change</summary><span> k00: 0</span>"), "{html}");
        assert!(html.contains("<summary>7 lines without a change</summary><span> k13: 0</span>"), "{html}");
        assert!(html.contains("</details><span> k06: 0</span><span> k07: 0</span><span> k08: 0</span><del>-k09: 1</del><ins>+k09: 2</ins>"), "{html}");
    }
}
