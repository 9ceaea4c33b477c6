//! YAML as Kubernetes reads it.
use serde_json::Value;
/// a
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// a
    Kubectl,
    /// a
    Kustomize,
}
/// a
#[derive(Debug)]
pub struct Document {
    /// a
    pub value: Value,
    /// a
    pub line: u32,
    /// a
    pub index: u32,
}
/// a
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// a
    pub line: u32,
    /// a
    pub column: u32,
}
/// a
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// a
    Key(&'a str),
    /// a
    Item(usize),
}
/// a
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct Error;
/// a
pub fn read(_file: &str, bytes: &[u8], _dialect: Dialect) -> Result<Vec<Document>, Error> {
    let value = serde_json::from_slice(bytes).map_err(|_| Error)?;
    Ok(vec![Document { value, line: 1, index: 0 }])
}
/// a
pub fn locate(_bytes: &[u8], _dialect: Dialect, _document: u32, _path: &[Step<'_>]) -> Option<Position> {
    None
}
/// a
pub fn write(_value: &Value) -> String {
    String::new()
}
