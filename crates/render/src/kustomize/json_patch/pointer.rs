//! The place that a path of a JSON patch names.
//!
//! In: a path (RFC 6901) and an object. Out: the map or list that holds the place, and what can be done to it there.

use serde_json::{Map, Value};

/// A path, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer {
    text: String,
    /// The fields and indices on the way, without what stands before the first `/`.
    parts: Vec<String>,
}

impl Pointer {
    /// As it is written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// Why a path leads nowhere.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Missing {
    /// The path is empty or has no `/`.
    #[error("the path names the whole object; it must name a field, such as /spec")]
    Whole,
    /// There is nothing to look into.
    #[error("there is no map or list at {0}")]
    Parent(String),
    /// The map has no such field.
    #[error("there is no field {0}")]
    Field(String),
    /// The list has no such item.
    #[error("there is no item {index}; the list has {items}")]
    Item {
        /// The index, as written.
        index: String,
        /// How many items there are.
        items: usize,
    },
    /// Not a number, where a list needs one.
    #[error("{0:?} is no index of a list")]
    Index(String),
}

/// A place within the map or list that holds it, whether or not there is something at it.
pub(super) enum Container<'a> {
    Map(&'a mut Map<String, Value>, &'a str),
    List(&'a mut Vec<Value>, &'a str),
}

impl Pointer {
    pub(super) fn of(text: &str) -> Self {
        Self { text: text.to_owned(), parts: text.split('/').skip(1).map(unescaped).collect() }
    }

    pub(super) fn shown(&self) -> String {
        self.text.clone()
    }

    pub(super) fn is_whole(&self) -> bool {
        self.text.is_empty()
    }

    /// True for the place behind the last item of a list.
    pub(super) fn is_at_end(&self) -> bool {
        self.parts.last().is_some_and(|last| last == "-")
    }

    pub(super) fn depth(&self) -> usize {
        self.parts.len()
    }

    /// The map or list that holds the place.
    pub(super) fn container<'a>(&'a self, object: &'a mut Value) -> Result<Container<'a>, Missing> {
        let (last, parents) = self.parts.split_last().ok_or(Missing::Whole)?;
        let mut here = object;
        for (at, part) in parents.iter().enumerate() {
            let missing = || Missing::Parent(shown(&parents[..=at]));
            here = match here {
                Value::Object(fields) => fields.get_mut(part).ok_or_else(missing)?,
                Value::Array(items) => {
                    let place = place(part, items.len(), items.len())?;
                    items.get_mut(place).ok_or_else(missing)?
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Err(missing()),
            };
        }
        match here {
            Value::Object(fields) => Ok(Container::Map(fields, last)),
            Value::Array(items) => Ok(Container::List(items, last)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Err(Missing::Parent(shown(parents)))
            }
        }
    }
}

impl<'a> Container<'a> {
    /// How many items lie beside the place.
    pub(super) fn items(&self) -> usize {
        match self {
            Self::Map(..) => 0,
            Self::List(items, _) => items.len(),
        }
    }

    /// The value at the place; a map without the field has nothing there.
    pub(super) fn get(self) -> Result<Option<&'a Value>, Missing> {
        match self {
            Self::Map(fields, name) => Ok(fields.get(name)),
            Self::List(items, index) => {
                let place = place(index, items.len(), items.len())?;
                Ok(items.get(place))
            }
        }
    }

    pub(super) fn add(self, value: Value) -> Result<(), Missing> {
        match self {
            Self::Map(fields, name) => drop(fields.insert(name.to_owned(), value)),
            Self::List(items, "-") => items.push(value),
            // The place behind the last item is one of the places here, also when they are counted from the end.
            Self::List(items, index) => {
                let place = place(index, items.len() + 1, items.len())?;
                items.insert(place, value);
            }
        }
        Ok(())
    }

    pub(super) fn replace(self, value: Value) -> Result<(), Missing> {
        match self {
            Self::Map(fields, name) => drop(fields.insert(name.to_owned(), value)),
            Self::List(items, index) => {
                let place = place(index, items.len(), items.len())?;
                items[place] = value;
            }
        }
        Ok(())
    }

    pub(super) fn remove(self) -> Result<Value, Missing> {
        match self {
            Self::Map(fields, name) => fields.remove(name).ok_or_else(|| Missing::Field(name.to_owned())),
            Self::List(items, index) => {
                let place = place(index, items.len(), items.len())?;
                Ok(items.remove(place))
            }
        }
    }
}

/// The parts of a path, as it is written.
fn shown(parts: &[String]) -> String {
    parts.iter().flat_map(|part| ["/", part]).collect()
}

/// The place that an index means among so many; negative ones count from the end. It is always below `places`.
fn place(index: &str, places: usize, items: usize) -> Result<usize, Missing> {
    let number: i64 = index.parse().map_err(|_| Missing::Index(index.to_owned()))?;
    let distance = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
    let place = if number < 0 { places.checked_sub(distance) } else { Some(distance) };
    place.filter(|place| *place < places).ok_or_else(|| Missing::Item { index: index.to_owned(), items })
}

/// A part of a path without its escapes: `~1` is `/`, `~0` is `~`, each read once.
fn unescaped(part: &str) -> String {
    let mut text = String::with_capacity(part.len());
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('~') {
        text.push_str(before);
        (text, rest) = match after.as_bytes().first() {
            Some(b'1') => (text + "/", &after[1..]),
            Some(b'0') => (text + "~", &after[1..]),
            _ => (text + "~", after),
        };
    }
    text + rest
}
