//! Placeholders of an ApplicationSet to expressions of a SyncSet.
//!
//! In: a text with placeholders such as `{{path.basename}}` or `{{ .path.basename }}`, and the
//! meaning of each name. Out: an expression in CEL, or the reason why there is none. Functions and
//! pipelines of Go templates have no counterpart.

use std::collections::{BTreeMap, BTreeSet};

/// Words that CEL reserves, which no field is called by with a dot.
const RESERVED: [&str; 14] = [
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "in", "let", "null",
    "true", "void",
];

/// Meaning of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meaning {
    /// An expression.
    pub(super) cel: String,
    /// True if its value is known to be a text.
    pub(super) is_text: bool,
}

impl Meaning {
    pub(super) fn text(cel: impl Into<String>) -> Self {
        Self { cel: cel.into(), is_text: true }
    }

    /// The expression as a text.
    fn as_text(&self) -> String {
        if self.is_text { self.cel.clone() } else { format!("string({})", self.cel) }
    }
}

/// The names that the generators give.
#[derive(Debug, Default)]
pub(super) struct ParameterNames {
    pub(super) is_go: bool,
    names: BTreeMap<String, Meaning>,
    /// Lists whose items are named by their numbers.
    lists: BTreeMap<String, String>,
    /// Mappings whose keys are named behind a prefix.
    maps: BTreeMap<String, String>,
    /// Names with two meanings.
    ambiguous: BTreeSet<String>,
    /// True if files give any names.
    pub(super) is_open: bool,
}

impl ParameterNames {
    pub(super) fn add(&mut self, name: impl Into<String>, meaning: Meaning) {
        let name = name.into();
        match self.names.get_mut(&name) {
            Some(known) if known.cel != meaning.cel => drop(self.ambiguous.insert(name)),
            Some(known) => known.is_text &= meaning.is_text,
            None => drop(self.names.insert(name, meaning)),
        }
    }

    pub(super) fn add_list(&mut self, name: impl Into<String>, cel: &str) {
        let name = name.into();
        if self.lists.insert(name.clone(), cel.to_owned()).is_some_and(|known| known != cel) {
            self.ambiguous.insert(name);
        }
    }

    pub(super) fn add_map(&mut self, prefix: &str, cel: &str) {
        self.maps.insert(prefix.to_owned(), cel.to_owned());
    }

    /// Returns the meaning of a placeholder.
    fn find(&self, placeholder: &Placeholder) -> Result<Meaning, String> {
        let name = &placeholder.name;
        if self.ambiguous.contains(name) {
            return Err(format!("several generators give {name}: write a SyncSet for each of them"));
        }
        if let Some(at) = placeholder.item {
            let list = self.lists.get(name).map(|list| Meaning::text(format!("{list}[{at}]")));
            return list.ok_or_else(|| format!("no generator gives the items of {name}"));
        }
        let of_map = || {
            let found = self.maps.iter().find_map(|(prefix, cel)| Some((cel, name.strip_prefix(prefix)?)));
            found.map(|(cel, key)| Meaning::text(format!("{cel}[{}]", quote(key))))
        };
        let of_files = || self.is_open.then(|| Meaning { cel: parameter(name), is_text: false });
        let found = self.names.get(name).cloned().or_else(of_map).or_else(of_files);
        found.ok_or_else(|| format!("no generator gives {name} in a SyncSet"))
    }

    /// Returns the pieces of a text.
    pub(super) fn read(&self, text: &str) -> Result<Vec<Piece>, String> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some((before, behind)) = rest.split_once("{{") {
            let (inner, after) = behind.split_once("}}").ok_or("a placeholder has no end")?;
            let placeholder = Placeholder::parse(inner.trim(), self.is_go).ok_or_else(|| {
                format!("{{{{{inner}}}}} is more than a name: functions are not carried over")
            })?;
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(Piece::Value(self.find(&placeholder)?));
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(pieces)
    }
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Characters as they are.
    Text(String),
    /// A value of a parameter.
    Value(Meaning),
}

/// Returns the expression of a whole text.
pub(super) fn expression(pieces: &[Piece]) -> String {
    let parts: Vec<String> = pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => quote(text),
            Piece::Value(meaning) => meaning.as_text(),
        })
        .collect();
    if parts.is_empty() { "''".to_owned() } else { parts.join(" + ") }
}

/// A name between braces.
struct Placeholder {
    name: String,
    /// The number of an item, if the name is a list.
    item: Option<usize>,
}

impl Placeholder {
    fn parse(inner: &str, is_go: bool) -> Option<Self> {
        let is_name = |name: &str| {
            !name.is_empty()
                && !name.split('.').any(str::is_empty)
                && name.chars().all(|char| char.is_ascii_alphanumeric() || "_-./".contains(char))
        };
        let whole = |name: &str| is_name(name).then(|| Self { name: name.to_owned(), item: None });
        let words: Vec<&str> = inner.split_whitespace().collect();
        match (is_go, words.as_slice()) {
            (false, [word]) => match word.strip_suffix(']').and_then(|word| word.split_once('[')) {
                Some((name, item)) if is_name(name) => {
                    Some(Self { name: name.to_owned(), item: Some(item.parse().ok()?) })
                }
                Some(_) => None,
                None => whole(word),
            },
            (true, [word]) => whole(word.strip_prefix('.')?),
            (true, ["index", list, item]) => {
                let list = list.strip_prefix('.').filter(|list| is_name(list))?;
                match item.strip_prefix('"').and_then(|item| item.strip_suffix('"')) {
                    Some(key) => whole(&format!("{list}.{key}")),
                    None => Some(Self { name: list.to_owned(), item: Some(item.parse().ok()?) }),
                }
            }
            _ => None,
        }
    }
}

/// Returns a text as a literal of CEL.
pub(super) fn quote(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n").replace('\r', "\\r");
    format!("'{escaped}'")
}

/// Returns the expression of a parameter by its path.
pub(super) fn parameter(path: &str) -> String {
    path.split('.').fold("params".to_owned(), |cel, part| {
        let is_plain = part.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
            && !part.starts_with(|first: char| first.is_ascii_digit())
            && !RESERVED.contains(&part);
        if is_plain { format!("{cel}.{part}") } else { format!("{cel}[{}]", quote(part)) }
    })
}
