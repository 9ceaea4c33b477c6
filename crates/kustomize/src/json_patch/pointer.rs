//! JSON pointers of a patch.
//!
//! In: a path (RFC 6901) and an object. Out: the map or list that holds the target, and the
//! operations on it.

use serde_json::{Map, Value};

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer {
    text: String,
    /// Fields and indices on the path, without the text before the first `/`.
    parts: Vec<String>,
}

impl Pointer {
    /// The path as written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// Reason why a path has no target.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PointerError {
    /// The path is empty or has no `/`.
    #[error("the path names the whole object; it must name a field, such as /spec")]
    Whole,
    /// A parent does not exist.
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
        /// Number of items.
        items: usize,
    },
    /// An index that is not a number.
    #[error("{0:?} is not a list index")]
    Index(String),
}

/// A target inside the map or list that holds it, whether or not it exists.
pub(super) enum Container<'a> {
    Map(&'a mut Map<String, Value>, &'a str),
    List(&'a mut Vec<Value>, &'a str),
}

impl Pointer {
    pub(super) fn parse(text: &str) -> Self {
        Self { text: text.to_owned(), parts: text.split('/').skip(1).map(unescaped).collect() }
    }

    pub(super) fn shown(&self) -> String {
        self.text.clone()
    }

    pub(super) fn is_whole(&self) -> bool {
        self.text.is_empty()
    }

    /// True for the position after the last item of a list.
    pub(super) fn is_at_end(&self) -> bool {
        self.parts.last().is_some_and(|last| last == "-")
    }

    pub(super) fn depth(&self) -> usize {
        self.parts.len()
    }

    /// Returns the map or list that holds the target.
    pub(super) fn container<'a>(&'a self, object: &'a mut Value) -> Result<Container<'a>, PointerError> {
        let (last, parents) = self.parts.split_last().ok_or(PointerError::Whole)?;
        let mut here = object;
        for (at, part) in parents.iter().enumerate() {
            let missing = || PointerError::Parent(shown(&parents[..=at]));
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
                Err(PointerError::Parent(shown(parents)))
            }
        }
    }
}

impl<'a> Container<'a> {
    /// Number of items in the list that holds the target.
    pub(super) fn items(&self) -> usize {
        match self {
            Self::Map(..) => 0,
            Self::List(items, _) => items.len(),
        }
    }

    /// Returns the value at the target; none for a missing field of a map.
    pub(super) fn get(self) -> Result<Option<&'a Value>, PointerError> {
        match self {
            Self::Map(fields, name) => Ok(fields.get(name)),
            Self::List(items, index) => {
                let place = place(index, items.len(), items.len())?;
                Ok(items.get(place))
            }
        }
    }

    pub(super) fn add(self, value: Value) -> Result<(), PointerError> {
        match self {
            Self::Map(fields, name) => drop(fields.insert(name.to_owned(), value)),
            Self::List(items, "-") => items.push(value),
            // The position after the last item is valid here, also for negative indices.
            Self::List(items, index) => {
                let place = place(index, items.len() + 1, items.len())?;
                items.insert(place, value);
            }
        }
        Ok(())
    }

    pub(super) fn replace(self, value: Value) -> Result<(), PointerError> {
        match self {
            Self::Map(fields, name) => drop(fields.insert(name.to_owned(), value)),
            Self::List(items, index) => {
                let place = place(index, items.len(), items.len())?;
                items[place] = value;
            }
        }
        Ok(())
    }

    pub(super) fn remove(self) -> Result<Value, PointerError> {
        match self {
            Self::Map(fields, name) => {
                fields.remove(name).ok_or_else(|| PointerError::Field(name.to_owned()))
            }
            Self::List(items, index) => {
                let place = place(index, items.len(), items.len())?;
                Ok(items.remove(place))
            }
        }
    }
}

/// Formats the parts of a path.
fn shown(parts: &[String]) -> String {
    parts.iter().flat_map(|part| ["/", part]).collect()
}

/// Resolves an index among `places` positions; negative ones count from the end. The result is
/// below `places`.
fn place(index: &str, places: usize, items: usize) -> Result<usize, PointerError> {
    let number: i64 = index.parse().map_err(|_| PointerError::Index(index.to_owned()))?;
    let distance = usize::try_from(number.unsigned_abs()).unwrap_or(usize::MAX);
    let place = if number < 0 { places.checked_sub(distance) } else { Some(distance) };
    place.filter(|place| *place < places).ok_or_else(|| PointerError::Item { index: index.to_owned(), items })
}

/// Removes the escapes of a part: `~1` is `/`, `~0` is `~`, each read once.
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
