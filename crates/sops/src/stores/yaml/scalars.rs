//! Resolves scalars as SOPS' library of YAML does, as far as the MAC and the keys need it.

use moorline_yaml::{Dialect, resolve_scalar};

use super::super::super::node::Node;
use super::super::super::numbers;
use super::Content;

const STANDARD_TAGS: &str = "tag:yaml.org,2002:";

/// A scalar as written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scalar<'a> {
    pub(super) text: &'a str,
    pub(super) tag: Option<&'a str>,
    pub(super) plain: bool,
}

impl Scalar<'_> {
    /// Returns the content of a leaf: none for null; an error if a value does not fit its tag.
    pub(super) fn content(self) -> Result<Option<Content>, ()> {
        let Self { text, tag, plain } = self;
        let name = match tag.map(|tag| tag.strip_prefix(STANDARD_TAGS)) {
            None if !plain => return Ok(Some(Content::Text(text.to_owned()))),
            Some(None) => return Ok(Some(Content::Text(text.to_owned()))),
            None => None,
            Some(Some(name)) => Some(name),
        };
        if name.is_none_or(|name| name == "float")
            && let Some(odd) = not_finite(text)
        {
            return Ok(Some(Content::Other(odd.to_owned())));
        }
        let value = resolve_scalar(text, name, Dialect::Kustomize).ok_or(())?;
        Ok(Some(match value {
            serde_json::Value::Null => return Ok(None),
            serde_json::Value::Bool(value) => Content::Other(if value { "True" } else { "False" }.to_owned()),
            serde_json::Value::Number(number) => Content::Other(match (number.as_i64(), number.as_f64()) {
                (Some(0), _) if is_negative_float(text) => "-0".to_owned(),
                (Some(integer), _) => integer.to_string(),
                (None, float) => numbers::decimal(float.unwrap_or(f64::NAN)),
            }),
            serde_json::Value::String(found) if self.is_time() => Content::Other(found),
            serde_json::Value::String(found) => Content::Text(found),
            serde_json::Value::Array(_) | serde_json::Value::Object(_) => return Err(()),
        }))
    }

    /// True for a plain date or time, or one with that tag.
    fn is_time(self) -> bool {
        let tagged = self.tag.is_some_and(|tag| tag.ends_with(":timestamp"));
        let may = tagged || (self.plain && self.tag.is_none());
        may && resolve_scalar(self.text, Some("timestamp"), Dialect::Kustomize).is_some()
    }

    /// Returns the text of a key; none if the key is not text.
    pub(super) fn key(self) -> Option<String> {
        match self.content() {
            Ok(Some(Content::Text(text))) if !self.is_merge() => Some(text),
            _ => None,
        }
    }

    /// True for the key that merges other maps in.
    pub(super) fn is_merge(self) -> bool {
        self.text == "<<" && self.plain && self.tag.is_none()
    }

    /// Returns the value in the metadata.
    pub(super) fn node(self) -> Node {
        let text = || Node::Text(self.text.to_owned());
        if !self.plain {
            return text();
        }
        match resolve_scalar(self.text, None, Dialect::Kustomize) {
            Some(serde_json::Value::Null) => Node::Null,
            Some(serde_json::Value::Bool(value)) => Node::Bool(value),
            Some(serde_json::Value::Number(number)) => number.as_i64().map_or_else(text, Node::Int),
            _ => text(),
        }
    }
}

fn not_finite(text: &str) -> Option<&'static str> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some("NaN"),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some("+Inf"),
        "-.inf" | "-.Inf" | "-.INF" => Some("-Inf"),
        _ => None,
    }
}

fn is_negative_float(text: &str) -> bool {
    text.starts_with('-') && text.contains(['.', 'e', 'E']) && !text.contains(['x', 'X'])
}
