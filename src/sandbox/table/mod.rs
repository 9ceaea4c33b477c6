//! stub
use serde_json::Value;
#[derive(Debug, Clone, Copy)]
pub(crate) enum Include {
    None,
    Metadata,
    Object,
}
pub(crate) fn table(
    _kind: &str,
    _columns: Option<&Value>,
    _objects: &[&Value],
    _include: Include,
    _now: &str,
) -> Value {
    Value::Null
}
