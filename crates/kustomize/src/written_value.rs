//! Writes a value into a field and converts it to the field's type: a number stays a number.
//!
//! In: a value, a path and an object. Out: the changed object. The rules are those of YAML nodes,
//! which have a text and a tag: an existing scalar keeps its tag and gets the text; anything else
//! is replaced as a whole.

use serde_json::Value;

use super::error::ErrorClass;
use super::field_path::{FieldPathError, PathStep, find_field, value_at};
use super::field_spec::scalar_text;
use super::field_walk::{FieldShape, FoundField, find_fields, parse_document};
use super::json_text::json_text;
use super::resource::Resource;
use super::scalar_style::Spelling;
use super::write_budget::WriteBudget;
use moorline_yaml::{self as yaml, Dialect};

/// Options for reading or writing a value.
#[derive(Debug, Default)]
pub(super) struct FieldOptions {
    pub(super) delimiter: Option<String>,
    pub(super) index: i64,
    pub(super) create: bool,
}

/// A value to be written.
#[derive(Debug)]
pub(super) struct SourceValue {
    /// Text for an existing scalar.
    text: String,
    /// Replacement for anything else; none if there is no such value.
    value: Option<Value>,
    shape: FieldShape,
    /// True for a text that has no type yet.
    is_untyped: bool,
    /// Field that it was read from, if later changes of that field affect it.
    source: Option<Vec<PathStep>>,
}

/// Overhead of a value beside its text.
const NODE_BYTES: usize = 32;

type Done<T> = Result<T, FieldPathError>;

impl SourceValue {
    /// Creates a text without a type.
    pub(super) fn untyped_text(text: &str) -> Self {
        let value = untyped(text).ok();
        Self { text: text.to_owned(), value, shape: FieldShape::Scalar, is_untyped: true, source: None }
    }

    /// Creates the value of an object's field, or a part of it.
    pub(super) fn from_field(
        spelling: &Spelling,
        way: &[PathStep],
        value: &Value,
        options: &FieldOptions,
    ) -> Done<Self> {
        let shape = FieldShape::of(value);
        let (text, is_untyped) = match spelling.untyped(way, value) {
            Some(text) => (text.to_owned(), true),
            None if FieldShape::of(value) != FieldShape::Scalar => (String::new(), false),
            None => (spelling.scalar(value).ok_or_else(|| spelling_error(value))?, false),
        };
        let Some(delimiter) = &options.delimiter else {
            let source = Some(way.to_vec());
            return Ok(Self { text, value: Some(value.clone()), shape, is_untyped, source });
        };
        if shape != FieldShape::Scalar {
            return Err(scalars_only());
        }
        let index = usize::try_from(options.index).ok();
        let part = index.and_then(|index| text.split(delimiter.as_str()).nth(index)).ok_or_else(|| {
            let text = format!("there is no part {} between {delimiter:?}", options.index);
            FieldPathError::with_class(ErrorClass::Replacement, text)
        })?;
        if is_untyped {
            return Ok(Self::untyped_text(part));
        }
        Ok(Self { value: typed(part, value).ok(), text: part.to_owned(), shape, is_untyped, source: None })
    }

    /// Refuses a mapping or a list as an annotation, and a text as all annotations. Kustomize makes
    /// of them something else before and after each of its steps, and keeps notes of its own there.
    fn check_place(&self, found: &FoundField) -> Done<()> {
        let FoundField::Field(way) = found else { return Ok(()) };
        let is = |step: &PathStep, name: &str| matches!(step, PathStep::Key(key) if key == name);
        let refuse = |text: &str| Err(FieldPathError::with_class(ErrorClass::Unsupported, text));
        match (&way[..], self.shape) {
            ([one, two], FieldShape::Scalar) if is(one, "metadata") && is(two, "annotations") => {
                refuse("annotations are a mapping, and the source is a text; select individual annotations")
            }
            ([_, _, _], FieldShape::Scalar) => Ok(()),
            ([one, two, _], _) if is(one, "metadata") && is(two, "annotations") => {
                refuse("an annotation is a text, and the source is a mapping or a list")
            }
            _ => Ok(()),
        }
    }

    /// Reads the value again after a write to its source: kustomize holds the node itself, not a
    /// copy.
    fn refresh(&mut self, body: &mut Value, spelling: &Spelling, written: &[PathStep]) -> Done<()> {
        let Some(source) = self.source.take() else { return Ok(()) };
        if written.starts_with(&source) {
            if let Some(value) = value_at(body, &source) {
                *self = Self::from_field(spelling, &source, value, &FieldOptions::default())?;
            }
        } else if !source.starts_with(written) {
            self.source = Some(source);
        }
        // If a parent of the source was replaced, kustomize keeps the old node, which is no longer
        // part of the object.
        Ok(())
    }

    /// Reads the value again after a change of shared fields.
    pub(super) fn reread(&mut self, body: &mut Value, spelling: &Spelling) -> Done<()> {
        let source = self.source.clone().unwrap_or_default();
        self.refresh(body, spelling, &source)
    }

    fn bytes(&self) -> usize {
        self.text.len() + self.value.as_ref().map_or(0, size)
    }
}

fn size(value: &Value) -> usize {
    NODE_BYTES
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(size).sum(),
            Value::Object(map) => map.iter().map(|(key, field)| key.len() + size(field)).sum(),
            _ => 0,
        }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn spelling_error(value: &Value) -> FieldPathError {
    let text = scalar_text(value).unwrap_or_default();
    FieldPathError::unsupported(format!(
        "{text} is perhaps written in another way, as 1.5 is in 1.50; put it in quotes"
    ))
}

fn scalars_only() -> FieldPathError {
    FieldPathError::with_class(
        ErrorClass::Replacement,
        "a delimiter parts text, and a mapping or a list is there",
    )
}

/// Writes a value into every field at the path.
pub(super) fn write(
    resource: &mut Resource,
    parts: &[String],
    (value, is_source): (&mut SourceValue, bool),
    options: &FieldOptions,
    budget: &mut WriteBudget,
) -> Done<()> {
    let make = options.create.then_some(value.shape);
    let Resource { body, spelling, .. } = resource;
    if let Some(way) = write_inside(body, parts, value, make, budget)? {
        return if is_source { value.refresh(body, spelling, &way) } else { Ok(()) };
    }
    let found = find_fields(body, parts, make, spelling)?;
    if found.is_empty() {
        return Err(FieldPathError::with_class(
            ErrorClass::Replacement,
            "the field does not exist; options.create: true creates it",
        ));
    }
    for found in found {
        value.check_place(&found)?;
        // A field that is created inside its own source is part of what is copied.
        if let (true, Some(_), FoundField::Field(way)) = (is_source, make, &found) {
            value.refresh(body, spelling, way)?;
        }
        write_value((&mut *body, &mut *spelling), &found, value, options, budget)?;
        if let (true, FoundField::Field(way)) = (is_source, &found) {
            value.refresh(body, spelling, way)?;
        }
    }
    Ok(())
}

type FieldSlot<'t> = (&'t mut Value, &'t mut Spelling);

fn write_value(
    target: FieldSlot<'_>,
    found: &FoundField,
    value: &SourceValue,
    options: &FieldOptions,
    budget: &mut WriteBudget,
) -> Done<()> {
    let (body, spelling) = target;
    let way = match found {
        FoundField::Field(way) => way,
        FoundField::InsideText(FieldShape::Scalar) => return Ok(()),
        FoundField::InsideText(_) if options.delimiter.is_some() => return Err(scalars_only()),
        FoundField::InsideText(_) => return Ok(()),
    };
    let Some(field) = value_at(body, way) else { return Ok(()) };
    let untyped_text = spelling.untyped(way, field);
    let is_untyped = untyped_text.is_some();
    let known = if is_untyped { untyped_text.map(str::to_owned) } else { spelling.scalar(field) };
    let is_unknown =
        !is_untyped && (field.is_null() || (known.is_none() && FieldShape::of(field) == FieldShape::Scalar));
    let old = known.or_else(|| scalar_text(field));
    let text = match (&options.delimiter, old) {
        (None, _) => value.text.clone(),
        (Some(_), None) => return Err(scalars_only()),
        (Some(_), Some(_)) if is_unknown => return Err(spelling_error(field)),
        (Some(delimiter), Some(old)) => joined(&old, &value.text, delimiter, options.index),
    };
    budget.spend(text.len() + value.bytes())?;
    let is_scalar = FieldShape::of(field) == FieldShape::Scalar;
    let stays_untyped = if is_scalar { is_untyped } else { value.is_untyped };
    let new = match is_scalar {
        true if is_untyped => untyped(&text),
        // A date is a text here, and was not one in the file.
        true if field.is_string() && is_unknown => Err(spelling_error(field)),
        true if field.as_str().is_some_and(|text| spelling.may_be_quoted_scalar(text)) => {
            quoted_scalar(&text, field)
        }
        true if field.as_str().is_some_and(is_time) && !is_time(&text) && !is_annotation(way) => {
            Err(FieldPathError::unsupported(format!(
                "{} is a time unless it is written in quotes, and {text} is none",
                field.as_str().unwrap_or_default()
            )))
        }
        true => typed(&text, field),
        false => whole(value, way.len()),
    };
    // Annotations become texts at the end of the build in any case; a mapping has no text.
    if is_annotation(way)
        && (stays_untyped || new.as_ref().is_ok_and(|new| FieldShape::of(new) != FieldShape::Scalar))
    {
        *field = Value::String(text);
        return Ok(());
    }
    *field = new?;
    if stays_untyped {
        spelling.record_untyped(way, &text);
    }
    Ok(())
}

fn is_annotation(way: &[PathStep]) -> bool {
    let is = |step: &PathStep, name: &str| matches!(step, PathStep::Key(key) if key == name);
    matches!(way, [first, second, PathStep::Key(_)] if is(first, "metadata") && is(second, "annotations"))
}

fn whole(value: &SourceValue, depth_of_field: usize) -> Done<Value> {
    let value = match &value.value {
        Some(value) => value.clone(),
        None if value.is_untyped => untyped(&value.text)?,
        None => return Err(not_of_type(&value.text)),
    };
    match depth(&value) + depth_of_field > yaml::MAX_DEPTH {
        true => Err(FieldPathError::with_class(
            ErrorClass::Bound,
            format!("values are nested deeper than {}", yaml::MAX_DEPTH),
        )),
        false => Ok(value),
    }
}

/// Joins the old text with the new one: in place of one part, before all parts or after them.
fn joined(old: &str, new: &str, delimiter: &str, index: i64) -> String {
    let mut parts: Vec<&str> = old.split(delimiter).collect();
    match usize::try_from(index) {
        Err(_) => parts.insert(0, new),
        Ok(index) => match parts.get_mut(index) {
            Some(part) => *part = new,
            None => parts.push(new),
        },
    }
    parts.join(delimiter)
}

/// Returns the new text of a field whose text may be a number or truth value to kustomize: a new
/// one of another type is an error there.
fn quoted_scalar(text: &str, field: &Value) -> Done<Value> {
    let type_of = |text: &str| plain(text).map(|value| std::mem::discriminant(&value));
    match field.as_str().is_some_and(|old| type_of(old) == type_of(text)) {
        true => Ok(text.into()),
        false => Err(FieldPathError::unsupported(
            "a patch wrote a number over a quoted text, which keeps the type of the number; quote it in the patch",
        )),
    }
}

/// True if a text is a time to YAML where it is written without quotes.
fn is_time(text: &str) -> bool {
    yaml::resolve_scalar(text, Some("timestamp"), Dialect::Kustomize).is_some()
}

fn plain(text: &str) -> Option<Value> {
    yaml::resolve_scalar(text, None, Dialect::Kustomize)
}

fn untyped(text: &str) -> Done<Value> {
    match text {
        // In block style it would be null, in braces an empty text.
        "" => Err(FieldPathError::unsupported("an empty text without a type is not supported")),
        text => plain(text).ok_or_else(|| not_of_type(text)),
    }
}

fn not_of_type(text: &str) -> FieldPathError {
    FieldPathError::with_class(
        ErrorClass::Replacement,
        format!("{text:?} is not of the type of the value that is there"),
    )
}

/// Parses a text as the type of an existing value.
fn typed(text: &str, old: &Value) -> Done<Value> {
    let tagged = |tag: &str| yaml::resolve_scalar(text, Some(tag), Dialect::Kustomize);
    let found = match old {
        Value::String(_) => Some(Value::String(text.to_owned())),
        Value::Bool(_) => tagged("bool"),
        Value::Null => tagged("null"),
        Value::Number(number) if number.is_f64() => tagged("float"),
        Value::Number(_) => match (tagged("int"), tagged("float")) {
            (None, Some(_)) => {
                let text = format!("{text} replaces a number that could be written as an integer or not");
                return Err(FieldPathError::unsupported(text));
            }
            (found, _) => found,
        },
        Value::Array(_) | Value::Object(_) => None,
    };
    found.ok_or_else(|| not_of_type(text))
}

/// Writes into a text that holds JSON, if the path continues into it. As in kustomize, a write that
/// fails leaves the text unchanged.
fn write_inside(
    body: &mut Value,
    parts: &[String],
    value: &SourceValue,
    make: Option<FieldShape>,
    budget: &mut WriteBudget,
) -> Done<Option<Vec<PathStep>>> {
    let Some((way, rest, text)) = text_on_the_way(body, parts) else { return Ok(None) };
    let Some(yaml::Document { value: mut inner, rewritten_values: odd, .. }) = parse_document(&text) else {
        return Ok(None);
    };
    let (options, mut spelling) = (FieldOptions::default(), Spelling::new(odd, yaml::NullForms::default()));
    let found = match find_fields(&mut inner, rest, make, &mut spelling) {
        Ok(found) if !found.is_empty() => found,
        Err(miss) if miss.class != ErrorClass::Replacement => return Err(miss),
        Ok(_) | Err(_) => return Ok(None),
    };
    if !text.trim_start().starts_with(['{', '[']) {
        let text = "the path leads into a text that is YAML; only JSON is supported there";
        return Err(FieldPathError::unsupported(text));
    }
    for found in found {
        match write_value((&mut inner, &mut spelling), &found, value, &options, budget) {
            Ok(()) => {}
            Err(miss) if miss.class == ErrorClass::Replacement => return Ok(None),
            Err(miss) => return Err(miss),
        }
    }
    let is_indented = text.contains('\n') && text.contains("  ");
    let text = json_text(&inner, is_indented)
        .ok_or_else(|| FieldPathError::unsupported("a number in the JSON there is too large"))?;
    budget.spend(text.len())?;
    if let Some(field) = value_at(body, &way) {
        *field = Value::String(text);
    }
    Ok(Some(way))
}

type Inside<'p> = (Vec<PathStep>, &'p [String], String);

/// Returns the text on the path, and the rest of the path.
fn text_on_the_way<'p>(body: &Value, parts: &'p [String]) -> Option<Inside<'p>> {
    (1..parts.len()).find_map(|end| match find_field(body, &parts[..end]) {
        Ok(Some((way, Value::String(text)))) => Some((way, &parts[end..], text.clone())),
        _ => None,
    })
}
