//! Sets one value by its path, by the rules of `helm --set`.
//!
//! In: a path such as `db.password` or `hosts[0].name`, and a text.
//! Out: the values with it. Errors name the path, never the text, which may be secret.

use serde_json::{Map, Value};

/// Most steps of a path.
const MAX_STEPS: usize = 30;

/// Largest index of a list.
const MAX_INDEX: usize = 65_536;

/// A path of one value, and how its text is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValuesPath {
    text: Box<str>,
    steps: Vec<PathStep>,
    is_literal: bool,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Field(String),
    Item(usize),
}

impl ValuesPath {
    /// Parses a path. With `is_literal`, the text for it is taken as it is.
    pub fn parse(text: &str, is_literal: bool) -> Result<Self, &'static str> {
        let mut steps = Vec::new();
        let mut rest = text.chars().peekable();
        loop {
            let mut field = String::new();
            while let Some(char) = rest.next_if(|char| !['.', '[', '=', ','].contains(char)) {
                // A backslash makes a dot a part of the name.
                field.push(if char == '\\' { rest.next().unwrap_or('\\') } else { char });
            }
            if field.is_empty() {
                return Err("write the path of one value, such as db.password: a name in it is empty");
            }
            steps.push(PathStep::Field(field));
            while rest.next_if_eq(&'[').is_some() {
                let digits: String = std::iter::from_fn(|| rest.next_if(char::is_ascii_digit)).collect();
                let index =
                    digits.parse().ok().filter(|index| *index <= MAX_INDEX && rest.next() == Some(']'));
                steps.push(PathStep::Item(index.ok_or("write a number in brackets, such as hosts[0]")?));
            }
            match rest.next() {
                _ if steps.len() > MAX_STEPS => return Err("write a path of at most 30 steps"),
                None => return Ok(Self { text: text.into(), steps, is_literal }),
                Some('.') => {}
                Some(_) => {
                    return Err("write the path of one value, such as hosts[0].name, without = and commas");
                }
            }
        }
    }

    /// Sets the value of the path. The error is the rest of a sentence.
    pub(super) fn set(&self, values: &mut Map<String, Value>, text: &str) -> Result<(), String> {
        let value = self.value(text)?;
        let mut root = Value::Object(std::mem::take(values));
        let done = set(&mut root, &self.steps, value);
        if let Value::Object(root) = root {
            *values = root;
        }
        done.map_err(|problem| format!("cannot set {}: {problem}", self.text))
    }

    /// Reads the text as a value.
    fn value(&self, text: &str) -> Result<Value, String> {
        if self.is_literal {
            return Ok(Value::String(text.to_owned()));
        }
        let is_quoted = |quote: char| text.starts_with(quote) && text.ends_with(quote);
        if is_quoted('\'') || is_quoted('"') {
            let inner = text.trim_matches(['\'', '"']);
            return Ok(Value::String(self.element(inner)?));
        }
        match text.strip_prefix('{') {
            None => self.element(text).map(|text| typed(&text)),
            Some(list) => self.list(list),
        }
    }

    /// Reads one text up to its end. A comma would begin another value, as with `helm --set`.
    fn element(&self, text: &str) -> Result<String, String> {
        let (element, rest) = until(text, &[',']);
        match rest {
            None => Ok(element),
            Some(_) => Err(self.says("has a comma, which would begin another value: set literal: true")),
        }
    }

    /// Reads `a,b}`.
    fn list(&self, mut text: &str) -> Result<Value, String> {
        let mut items = Vec::new();
        loop {
            let (item, rest) = until(text, &[',', '}']);
            match rest {
                None => return Err(self.says("begins a list with { that no } ends: set literal: true")),
                Some(('}', "" | ",")) => {
                    items.push(typed(&item));
                    return Ok(Value::Array(items));
                }
                Some(('}', _)) => return Err(self.says("goes on after the } of its list: set literal: true")),
                Some((_, rest)) => {
                    items.push(typed(&item));
                    text = rest;
                }
            }
        }
    }

    fn says(&self, problem: &str) -> String {
        format!("cannot set {}: its text {problem}", self.text)
    }
}

/// Reads up to one of these characters; a backslash makes the next one ordinary.
fn until<'a>(text: &'a str, stop: &[char]) -> (String, Option<(char, &'a str)>) {
    let (mut read, mut rest) = (String::new(), text.char_indices());
    while let Some((at, char)) = rest.next() {
        match char {
            '\\' => read.extend(rest.next().map(|(_, char)| char)),
            char if stop.contains(&char) => return (read, Some((char, &text[at + char.len_utf8()..]))),
            char => read.push(char),
        }
    }
    (read, None)
}

/// Reads a text as `helm --set` does: a truth value, null, an integer without leading zeros, or
/// text.
fn typed(text: &str) -> Value {
    match text.to_ascii_lowercase().as_str() {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        "null" => return Value::Null,
        "0" => return Value::from(0),
        _ => {}
    }
    let number = Some(text).filter(|text| !text.starts_with('0')).and_then(|text| text.parse::<i64>().ok());
    number.map_or_else(|| Value::String(text.to_owned()), Value::from)
}

/// Sets a value below another one, whose fields and items are made where they are missing.
fn set(at: &mut Value, steps: &[PathStep], value: Value) -> Result<(), &'static str> {
    let Some((step, rest)) = steps.split_first() else {
        *at = value;
        return Ok(());
    };
    match step {
        PathStep::Field(name) => {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            let fields = at.as_object_mut().ok_or("it leads through a value that is no mapping")?;
            set(fields.entry(name.as_str()).or_insert(Value::Null), rest, value)
        }
        PathStep::Item(index) => {
            if at.is_null() {
                *at = Value::Array(Vec::new());
            }
            let items = at.as_array_mut().ok_or("it leads through a value that is no list")?;
            if items.len() <= *index {
                items.resize(index + 1, Value::Null);
            }
            set(&mut items[*index], rest, value)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(path: &str, literal: bool, text: &str, expect: Result<Value, &str>) {
        let mut values = Map::from_iter([("a".to_owned(), json!({"b": 1, "c": [1]}))]);
        let path = ValuesPath::parse(path, literal).unwrap();
        match (path.set(&mut values, text), expect) {
            (Ok(()), Ok(expect)) => assert_eq!(Value::Object(values), expect, "{path:?} {text}"),
            (Err(problem), Err(part)) => {
                assert!(problem.contains(part) && !problem.contains("planted"), "{problem}");
            }
            (found, _) => panic!("{path:?} {text}: {found:?} {values:?}"),
        }
    }

    #[test]
    fn a_value_is_set_as_helm_sets_it() {
        let with = |fields: Value| {
            let mut all = json!({"a": {"b": 1, "c": [1]}});
            all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            Ok(all)
        };
        check("d", false, "x", with(json!({"d": "x"})));
        check("a.b", false, "12", Ok(json!({"a": {"b": 12, "c": [1]}})));
        check("a.c[2].d", false, "TRUE", Ok(json!({"a": {"b": 1, "c": [1, null, {"d": true}]}})));
        check("d[0][1]", false, "null", with(json!({"d": [[null, null]]})));
        check("d\\.e", false, "007", with(json!({"d.e": "007"})));
        check("d", false, "0", with(json!({"d": 0})));
        check("d", false, "", with(json!({"d": ""})));
        check("d", false, "\"12\"", with(json!({"d": "12"})));
        check("d", false, "{a,1,true}", with(json!({"d": ["a", 1, true]})));
        check("d", false, "{}", with(json!({"d": [""]})));
        check("d", false, "a\\,b=c", with(json!({"d": "a,b=c"})));
        check("d", true, "a,b\\ {12", with(json!({"d": "a,b\\ {12"})));
        check("d", true, "12", with(json!({"d": "12"})));
        check("d", false, "planted,planted", Err("cannot set d: its text has a comma"));
        check("d", false, "{planted", Err("no } ends"));
        check(
            "a.b.c",
            false,
            "planted",
            Err("cannot set a.b.c: it leads through a value that is no mapping"),
        );
        check("a.b[0]", false, "planted", Err("no list"));
    }

    #[test]
    fn a_path_names_one_value() {
        for wrong in ["", ".a", "a..b", "a[", "a[x]", "a[1]b", "a[99999999]", "a=b", "a,b", &"a.".repeat(40)]
        {
            assert!(ValuesPath::parse(wrong, false).is_err(), "{wrong}");
        }
    }
}
