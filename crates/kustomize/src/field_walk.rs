//! Finds every field at the path of a replacement's target: with `*`, with expressions, and with
//! fields to create.
//!
//! In: an object and the parts of a path. Out: the paths of the fields.

use serde_json::{Map, Value};

use super::field_path::{
    FieldPathError, PathStep, is_selection, parse_index, parse_selection, type_error, value_at,
};
use super::field_spec::scalar_text;
use super::scalar_style::Spelling;
use super::select::{ByteRegex, expression};
use moorline_yaml::{self as yaml, Dialect};

/// Type of the value that a created field gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldShape {
    Scalar,
    List,
    Mapping,
}

impl FieldShape {
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Array(_) => Self::List,
            Value::Object(_) => Self::Mapping,
            _ => Self::Scalar,
        }
    }

    fn empty(self) -> Value {
        match self {
            Self::Scalar => Value::Null,
            Self::List => Value::Array(Vec::new()),
            Self::Mapping => Value::Object(Map::new()),
        }
    }

    /// Returns the type that a part must have so that the next part can continue from it.
    fn before(next: Option<&String>, last: Self) -> Self {
        match next.map(String::as_str) {
            None | Some("") => last,
            Some(part) if is_selection(part) || parse_index(part).is_some() => Self::List,
            Some(_) => Self::Mapping,
        }
    }
}

/// A field that matches.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FoundField {
    /// It exists, or was created.
    Field(Vec<PathStep>),
    /// It is inside a text, and a value written to it is lost.
    InsideText(FieldShape),
}

/// Returns every field at a path; with `make`, missing fields are created and recorded.
pub(super) fn find_fields(
    value: &mut Value,
    parts: &[String],
    make: Option<FieldShape>,
    spelling: &mut Spelling,
) -> Result<Vec<FoundField>, FieldPathError> {
    let mut walk = FieldWalk { make, way: Vec::new(), found: Vec::new(), spelling };
    walk.visit(value, parts)?;
    Ok(walk.found)
}

struct FieldWalk<'s> {
    make: Option<FieldShape>,
    way: Vec<PathStep>,
    found: Vec<FoundField>,
    spelling: &'s mut Spelling,
}

impl FieldWalk<'_> {
    fn visit(&mut self, value: &mut Value, parts: &[String]) -> Result<(), FieldPathError> {
        let Some((part, rest)) = parts.split_first() else {
            self.found.push(FoundField::Field(self.way.clone()));
            return Ok(());
        };
        if value.is_null() && self.make.is_some() {
            return Err(FieldPathError::unsupported(format!(
                "{part} is to be made in a null; write {{}} or [] there"
            )));
        }
        if let Some(index) = parse_index(part) {
            return self.item(value, part, index, rest);
        }
        if is_selection(part) {
            return self.select(value, part, rest);
        }
        if part == "*" {
            return match value {
                Value::Array(items) => {
                    (0..).zip(items).try_for_each(|(at, item)| self.enter_item(item, at, rest))
                }
                Value::Null => Ok(()),
                _ => Err(type_error("list", part)),
            };
        }
        self.field(value, part, rest)
    }

    fn enter_item(&mut self, item: &mut Value, at: usize, rest: &[String]) -> Result<(), FieldPathError> {
        self.way.push(PathStep::Item(at));
        let done = self.visit(item, rest);
        self.way.pop();
        done
    }

    /// Continues in a value that was just created: at the end of the path, or on the way.
    fn enter_made(
        &mut self,
        made: &mut Value,
        step: PathStep,
        rest: &[String],
    ) -> Result<(), FieldPathError> {
        self.way.push(step);
        let done = match (rest.is_empty(), made.is_null()) {
            (true, true) => {
                self.spelling.record_untyped(&self.way, "");
                self.found.push(FoundField::Field(self.way.clone()));
                Ok(())
            }
            _ => self.visit(made, rest),
        };
        self.way.pop();
        done
    }

    fn item(
        &mut self,
        value: &mut Value,
        part: &str,
        at: usize,
        rest: &[String],
    ) -> Result<(), FieldPathError> {
        let items = match value {
            Value::Array(items) => items,
            Value::Null => return Err(FieldPathError::new(format!("there is no item {part}"))),
            _ => return Err(type_error("list", part)),
        };
        if let Some(last) = self.make.filter(|_| items.len() == at) {
            let mut made = FieldShape::before(rest.first(), last).empty();
            let done = self.enter_made(&mut made, PathStep::Item(at), rest);
            items.push(made);
            return done;
        }
        let count = items.len();
        match items.get_mut(at) {
            Some(item) => self.enter_item(item, at, rest),
            None => Err(FieldPathError::new(format!("there is no item {part}: the list has {count}"))),
        }
    }

    fn field(&mut self, value: &mut Value, name: &str, rest: &[String]) -> Result<(), FieldPathError> {
        let map = match value {
            _ if name.is_empty() => return Err(FieldPathError::new("a part of the path is empty")),
            Value::Object(map) => map,
            Value::Null => return Ok(()),
            _ => return Err(type_error("mapping", name)),
        };
        let step = || PathStep::Key(name.to_owned());
        match (map.get_mut(name), self.make) {
            (None, None) => Ok(()),
            (None, Some(last)) => {
                let made = map.entry(name).or_insert_with(|| FieldShape::before(rest.first(), last).empty());
                self.enter_made(made, step(), rest)
            }
            (Some(Value::String(text)), _) if !rest.is_empty() => self.visit_text(text, name, rest),
            (Some(Value::Number(_) | Value::Bool(_)), _) if !rest.is_empty() => {
                Err(type_error("mapping", &rest[0]))
            }
            (Some(field), _) => {
                self.way.push(step());
                let done = self.visit(field, rest);
                self.way.pop();
                done
            }
        }
    }

    /// Continues inside a text that is YAML: matching fields are found, and changes to them are
    /// lost.
    fn visit_text(&mut self, text: &str, name: &str, rest: &[String]) -> Result<(), FieldPathError> {
        let document =
            parse_document(text).ok_or_else(|| type_error("mapping", &format!("{} (in {name})", rest[0])))?;
        let mut value = document.value;
        for found in find_fields(&mut value, rest, self.make, &mut Spelling::default())? {
            self.found.push(match found {
                FoundField::Field(way) => FoundField::InsideText(
                    value_at(&mut value, &way).map_or(FieldShape::Scalar, |it| FieldShape::of(it)),
                ),
                FoundField::InsideText(shape) => FoundField::InsideText(shape),
            });
        }
        Ok(())
    }

    fn select(&mut self, value: &mut Value, part: &str, rest: &[String]) -> Result<(), FieldPathError> {
        let (field, text) = parse_selection(part)?;
        let items = match value {
            Value::Array(items) => items,
            Value::Null => return Ok(()),
            _ => return Err(type_error("list", part)),
        };
        let fits = ItemMatcher::new(text)?;
        let before = self.found.len();
        for (at, item) in items.iter_mut().enumerate() {
            if field.is_empty() {
                // Kustomize ignores the rest of the path here.
                if fits.value(item)? {
                    self.way.push(PathStep::Item(at));
                    self.found.push(FoundField::Field(self.way.clone()));
                    self.way.pop();
                }
            } else if let Some(value) = item.as_object().and_then(|map| map.get(field))
                && fits.value(value)?
            {
                self.enter_item(item, at, rest)?;
            }
        }
        if self.found.len() > before || self.make.is_none() {
            return Ok(());
        }
        let endless =
            || FieldPathError::new(format!("{part} does not fit the item that would be made for it"));
        let plain = yaml::resolve_scalar(text, None, Dialect::Kustomize)
            .filter(|_| !text.is_empty())
            .ok_or_else(endless)?;
        if !fits.value(&plain)? {
            return Err(endless());
        }
        let at = items.len();
        self.way.push(PathStep::Item(at));
        if field.is_empty() {
            items.push(plain);
            self.spelling.record_untyped(&self.way, text);
            self.found.push(FoundField::Field(self.way.clone()));
            self.way.pop();
            return Ok(());
        }
        self.way.push(PathStep::Key(field.to_owned()));
        self.spelling.record_untyped(&self.way, text);
        self.way.truncate(self.way.len() - 2);
        let mut made = Value::Object(Map::from_iter([(field.to_owned(), plain)]));
        let done = self.enter_item(&mut made, at, rest);
        items.push(made);
        done?;
        if self.found.len() == before { Err(endless()) } else { Ok(()) }
    }
}

/// Parses a text that is exactly one YAML mapping or list.
pub(super) fn parse_document(text: &str) -> Option<yaml::Document> {
    let mut documents = yaml::read("", text.as_bytes(), Dialect::Kustomize).ok()?;
    let document =
        documents.pop().filter(|it| it.index == 0 && (it.value.is_object() || it.value.is_array()))?;
    documents.is_empty().then_some(document)
}

/// A regular expression that is searched in an item's text. Kustomize searches the text with its
/// original quotes, which are unknown here: an expression whose result depends on them is refused.
struct ItemMatcher<'a> {
    text: &'a str,
    expression: Option<ByteRegex>,
}

impl<'a> ItemMatcher<'a> {
    fn new(text: &'a str) -> Result<Self, FieldPathError> {
        if !text.contains(|it: char| r"\.+*?()|[]{}^$".contains(it)) {
            return Ok(Self { text, expression: None });
        }
        let wrong =
            |()| FieldPathError::unsupported(format!("{text:?} is not a supported regular expression"));
        Ok(Self { text, expression: Some(expression(text).map_err(wrong)?) })
    }

    fn fits(&self, text: &str) -> bool {
        match &self.expression {
            Some(expression) => expression.is_match(text),
            None => text.contains(self.text),
        }
    }

    fn value(&self, value: &Value) -> Result<bool, FieldPathError> {
        let texts = match value {
            Value::Null => ["null", "~", ""].map(str::to_owned).to_vec(),
            Value::String(text) => {
                let double = text.replace('\\', "\\\\").replace('"', "\\\"");
                vec![text.clone(), format!("\"{double}\""), format!("'{}'", text.replace('\'', "''"))]
            }
            value => scalar_text(value).into_iter().collect(),
        };
        let unsure = || {
            let text = format!(
                "whether [..={}] fits an item depends on how that is written: ask for less",
                self.text
            );
            Err(FieldPathError::unsupported(text))
        };
        let is_odd = texts
            .iter()
            .any(|text| text.contains(char::is_control) || (self.expression.is_some() && !text.is_ascii()));
        match texts.split_first() {
            Some((first, others)) if !is_odd && others.iter().all(|it| self.fits(it) == self.fits(first)) => {
                Ok(self.fits(first))
            }
            _ => unsure(),
        }
    }
}
