//! One value as written by a user, and its validation.
//!
//! In: JSON from the file, or text from a variable or a flag.
//! Out: a validated value, or [`ValueError`] with the allowed values. A value in the file has its
//! JSON type; a text is parsed as the setting needs it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::Value;

use moorline_core::duration;
use moorline_core::sanitize::sanitize;

/// Maximum number of characters of a value that a message repeats.
const MAX_SHOWN: usize = 60;
/// Maximum number of entries of a list.
const MAX_ENTRIES: usize = 1000;

/// A value as it was written.
#[derive(Debug, Clone, Copy)]
pub(super) enum RawValue<'a> {
    /// From the file.
    Json(&'a Value),
    /// From a variable or a flag.
    Text(&'a str),
}

/// A rejected value. Holds the description of the allowed ones.
#[derive(Debug)]
pub(super) struct ValueError(pub(super) String);

type Checked<T> = Result<T, ValueError>;

impl<'a> RawValue<'a> {
    /// Formats the value for a message: one line, shortened.
    pub(super) fn display(self) -> String {
        let text = match self {
            Self::Json(value) => value.to_string(),
            Self::Text(text) => text.to_owned(),
        };
        let text = sanitize(&text);
        match text.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => format!("`{}…`", &text[..end]),
            None => format!("`{text}`"),
        }
    }

    pub(super) fn number(self, range: RangeInclusive<u32>) -> Checked<u32> {
        let number = match self {
            Self::Json(value) => value.as_u64(),
            Self::Text(text) => text.parse().ok(),
        };
        let number = number.and_then(|number| u32::try_from(number).ok());
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| ValueError(format!("a whole number from {} to {}", range.start(), range.end())))
    }

    pub(super) fn boolean(self) -> Checked<bool> {
        let found = match self {
            Self::Json(value) => value.as_bool(),
            Self::Text(text) => text.parse().ok(),
        };
        found.ok_or_else(|| ValueError("true or false".to_owned()))
    }

    pub(super) fn duration(self, range: RangeInclusive<Duration>) -> Checked<Duration> {
        let allowed = || {
            let [least, most] = [range.start(), range.end()].map(|end| duration::format(*end));
            ValueError(format!("a duration from {least} to {most}, such as 1m30s"))
        };
        let found = self.string().and_then(duration::parse);
        found.filter(|found| range.contains(found)).ok_or_else(allowed)
    }

    /// Accepts one of several keywords.
    pub(super) fn one_of<T: Copy>(self, words: &[(&str, T)]) -> Checked<T> {
        let found = self.string().and_then(|text| words.iter().find(|(word, _)| *word == text));
        let names = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        found.map(|(_, value)| *value).ok_or_else(|| ValueError(format!("one of {}", names())))
    }

    /// Accepts a text for which `is_sound` is true; `what` describes such texts.
    pub(super) fn text(self, what: &str, is_sound: impl Fn(&str) -> bool) -> Checked<Box<str>> {
        let found = self.string().filter(|text| is_sound(text));
        found.map(Into::into).ok_or_else(|| ValueError(what.to_owned()))
    }

    /// Like [`RawValue::text`], and an empty text means none.
    pub(super) fn optional(self, what: &str, is_sound: impl Fn(&str) -> bool) -> Checked<Option<Box<str>>> {
        if self.string() == Some("") { Ok(None) } else { self.text(what, is_sound).map(Some) }
    }

    /// Accepts a list of texts that are all sound; in a variable or a flag they are separated by
    /// commas.
    pub(super) fn list(self, what: &str, is_sound: impl Fn(&str) -> bool) -> Checked<Vec<Box<str>>> {
        let entries: Option<Vec<&str>> = match self {
            Self::Json(value) => value.as_array().and_then(|list| list.iter().map(Value::as_str).collect()),
            Self::Text(text) => {
                Some(text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).collect())
            }
        };
        let sound =
            |entries: &Vec<&str>| entries.len() <= MAX_ENTRIES && entries.iter().all(|entry| is_sound(entry));
        match entries.filter(sound) {
            Some(entries) => Ok(entries.into_iter().map(Into::into).collect()),
            None => Err(ValueError(format!("a list of at most {MAX_ENTRIES} entries, each {what}"))),
        }
    }

    /// Accepts lists of texts by name, all sound; in a variable or a flag they are `name=text`,
    /// separated by commas.
    pub(super) fn lists(
        self,
        what: &str,
        is_sound: impl Fn(&str, &str) -> bool,
    ) -> Checked<BTreeMap<Box<str>, Vec<Box<str>>>> {
        let pairs: Option<Vec<(&str, &str)>> = match self {
            Self::Json(value) => value.as_object().and_then(|all| {
                let entries = |(name, list): (&'a String, &'a Value)| {
                    let list: Option<Vec<_>> = list.as_array()?.iter().map(Value::as_str).collect();
                    list.map(|list| list.into_iter().map(|text| (name.as_str(), text)).collect::<Vec<_>>())
                };
                Some(all.iter().map(entries).collect::<Option<Vec<_>>>()?.concat())
            }),
            Self::Text(text) => {
                let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
                entries.map(|entry| entry.split_once('=')).collect()
            }
        };
        let sound = |pairs: &Vec<(&str, &str)>| {
            pairs.len() <= MAX_ENTRIES && pairs.iter().all(|(name, text)| is_sound(name, text))
        };
        let pairs =
            pairs.filter(sound).ok_or_else(|| ValueError(format!("{what}; at most {MAX_ENTRIES}")))?;
        let mut all: BTreeMap<Box<str>, Vec<Box<str>>> = BTreeMap::new();
        pairs.into_iter().for_each(|(name, text)| all.entry(name.into()).or_default().push(text.into()));
        Ok(all)
    }

    /// Accepts texts by name; in a variable or a flag they are `name=text`, separated by commas.
    pub(super) fn texts(self) -> Checked<BTreeMap<Box<str>, Box<str>>> {
        let all: Option<BTreeMap<Box<str>, Box<str>>> = match self {
            Self::Json(value) => value.as_object().and_then(|all| {
                let entry = |(name, text): (&'a String, &'a Value)| {
                    Some((name.as_str().into(), text.as_str()?.into()))
                };
                all.iter().map(entry).collect()
            }),
            Self::Text(text) => {
                let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
                let entry =
                    |entry: &str| entry.split_once('=').map(|(name, text)| (name.into(), text.into()));
                entries.map(entry).collect()
            }
        };
        all.filter(|all| all.len() <= MAX_ENTRIES)
            .ok_or_else(|| ValueError("a map of names and texts".to_owned()))
    }

    fn string(self) -> Option<&'a str> {
        match self {
            Self::Json(value) => value.as_str(),
            Self::Text(text) => Some(text),
        }
    }
}
