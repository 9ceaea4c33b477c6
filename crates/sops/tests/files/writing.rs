//! Writes documents in each format, with metadata behind them if it is given.

use std::fmt::Write as _;

use moorline_sops::Format;

use crate::documents::{Chance, Tree};

/// Spelling of YAML, which people and formatters choose.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Blanks of a level.
    indent: usize,
    /// Lists are as far to the right as their key.
    indentless: bool,
    /// Encrypted values are quoted or in a block: 0 plain, 1 quoted, 2 a block.
    quotes: usize,
    /// Values have comments behind them.
    comments: bool,
}

impl Style {
    /// The style of SOPS.
    pub(crate) const SOPS: Self = Self { indent: 4, indentless: false, quotes: 0, comments: false };

    pub(crate) fn random(chance: &mut Chance) -> Self {
        Self {
            indent: [1, 2, 4, 8][chance.below(4)],
            indentless: chance.below(2) == 0,
            quotes: chance.below(3),
            comments: chance.below(3) == 0,
        }
    }
}

/// Writes documents in the style of SOPS.
pub(crate) fn write(documents: &[Tree], metadata: Option<&Tree>, format: Format) -> String {
    write_styled(documents, metadata, format, Style::SOPS)
}

/// Writes documents.
pub(crate) fn write_styled(
    documents: &[Tree],
    metadata: Option<&Tree>,
    format: Format,
    style: Style,
) -> String {
    let mut out = String::new();
    for (nth, document) in documents.iter().enumerate() {
        let Tree::Map(fields) = document else { panic!("{document:?} is no map") };
        let mut fields = fields.clone();
        match format {
            Format::Yaml => {
                fields.extend(metadata.map(|metadata| ("sops".to_owned(), metadata.clone())));
                out.push_str(if nth > 0 { "---\n" } else { "" });
                yaml_map(&mut out, &fields, 0, style);
            }
            Format::Json | Format::Binary => {
                fields.retain(|(_, value)| !matches!(value, Tree::Comment(_)));
                fields.extend(metadata.map(|metadata| ("sops".to_owned(), metadata.clone())));
                json(&mut out, &Tree::Map(fields), 0);
                out.push('\n');
            }
            Format::Dotenv => {
                let mut flat = Vec::new();
                metadata.iter().for_each(|metadata| flatten(metadata, "sops_", &mut flat));
                fields.extend(flat);
                lines(&mut out, &fields, "#", "=", |text| text.replace('\n', "\\n"));
            }
            Format::Ini => {
                let mut flat = Vec::new();
                metadata.iter().for_each(|metadata| flatten(metadata, "", &mut flat));
                let section = ("sops".to_owned(), Tree::Map(flat));
                fields.extend(metadata.map(|_| section));
                for (name, keys) in &fields {
                    let Tree::Map(keys) = keys else { panic!("{keys:?} is no section") };
                    let _ = writeln!(out, "[{name}]");
                    lines(&mut out, keys, "; ", " = ", |text| text.replace('\n', "\\n"));
                    out.push('\n');
                }
            }
        }
    }
    out
}

fn lines(
    out: &mut String,
    fields: &[(String, Tree)],
    sign: &str,
    equals: &str,
    form: impl Fn(&str) -> String,
) {
    for (key, value) in fields {
        let _ = match value {
            Tree::Comment(comment) => writeln!(out, "{sign}{comment}"),
            value => writeln!(out, "{key}{equals}{}", form(&scalar(value))),
        };
    }
}

/// Flattens metadata as SOPS does.
fn flatten(tree: &Tree, prefix: &str, flat: &mut Vec<(String, Tree)>) {
    match tree {
        Tree::Map(fields) => {
            for (key, value) in fields {
                let inner = match value {
                    Tree::Map(_) => format!("{prefix}{key}__map_"),
                    Tree::List(_) => format!("{prefix}{key}__list_"),
                    _ => format!("{prefix}{key}"),
                };
                flatten(value, &inner, flat);
            }
        }
        Tree::List(items) => {
            for (nth, item) in items.iter().enumerate() {
                let inner =
                    format!("{prefix}{nth}{}", if matches!(item, Tree::Map(_)) { "__map_" } else { "" });
                flatten(item, &inner, flat);
            }
        }
        leaf => flat.push((prefix.to_owned(), leaf.clone())),
    }
}

/// Returns a scalar without quotes.
fn scalar(tree: &Tree) -> String {
    match tree {
        Tree::Null | Tree::Comment(_) | Tree::List(_) | Tree::Map(_) => String::new(),
        Tree::Bool(value) => value.to_string(),
        Tree::Int(value) => value.to_string(),
        Tree::Float(value) => value.to_string(),
        Tree::Text(text) => text.clone(),
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("is a text")
}

fn json(out: &mut String, tree: &Tree, depth: usize) {
    let tabs = |depth| format!("\n{}", "\t".repeat(depth));
    match tree {
        Tree::Null | Tree::Comment(_) => out.push_str("null"),
        Tree::Float(value) => {
            let _ = write!(out, "{value:e}");
        }
        Tree::Text(text) => out.push_str(&quoted(text)),
        Tree::List(items) => {
            out.push('[');
            for (nth, item) in items.iter().enumerate() {
                out.push_str(if nth > 0 { "," } else { "" });
                out.push_str(&tabs(depth + 1));
                json(out, item, depth + 1);
            }
            out.push(']');
        }
        Tree::Map(fields) => {
            out.push('{');
            for (nth, (key, value)) in fields.iter().enumerate() {
                out.push_str(if nth > 0 { "," } else { "" });
                out.push_str(&tabs(depth + 1));
                let _ = write!(out, "{}: ", quoted(key));
                json(out, value, depth + 1);
            }
            out.push('}');
        }
        scalar_tree => out.push_str(&scalar(scalar_tree)),
    }
}

/// Returns a scalar with its comment, at the column of its parent.
fn yaml_scalar(tree: &Tree, column: usize, style: Style) -> String {
    let text = match tree {
        Tree::Null => "null".to_owned(),
        Tree::Float(value) => format!("{value:e}").replace('e', if value.abs() < 1.0 { "e" } else { "e+" }),
        Tree::Text(text) if text.starts_with("ENC[") => match style.quotes {
            0 => text.clone(),
            1 => format!("'{text}'"),
            _ => return format!(">-\n{}{text}", " ".repeat(column + style.indent)),
        },
        // Every text of JSON is one of YAML, but for characters that YAML must escape.
        Tree::Text(text) => quoted(text).replace('\u{7f}', "\\x7f"),
        Tree::List(_) => "[]".to_owned(),
        Tree::Map(_) => "{}".to_owned(),
        other => scalar(other),
    };
    if style.comments { format!("{text} # beside") } else { text }
}

fn yaml_map(out: &mut String, fields: &[(String, Tree)], column: usize, style: Style) {
    for (key, value) in fields {
        out.push_str(&" ".repeat(column));
        if let Tree::Comment(comment) = value {
            let _ = writeln!(out, "#{comment}");
            continue;
        }
        let plain = key.chars().all(|c| c.is_ascii_lowercase()) && key != "on";
        let _ = write!(out, "{}:", if plain { key.clone() } else { quoted(key) });
        match value {
            Tree::Map(inner) if !inner.is_empty() => {
                out.push('\n');
                yaml_map(out, inner, column + style.indent, style);
            }
            Tree::List(items) if has_items(items) => {
                out.push('\n');
                let indent = if style.indentless { 0 } else { style.indent };
                yaml_list(out, items, column + indent, style);
            }
            other => {
                let _ = writeln!(out, " {}", yaml_scalar(other, column, style));
            }
        }
    }
}

fn has_items(items: &[Tree]) -> bool {
    items.iter().any(|item| !matches!(item, Tree::Comment(_)))
}

fn yaml_list(out: &mut String, items: &[Tree], column: usize, style: Style) {
    for item in items {
        let indent = " ".repeat(column);
        let mut inner = String::new();
        match item {
            Tree::Comment(comment) => {
                let _ = writeln!(out, "{indent}#{comment}");
                continue;
            }
            Tree::Map(fields) if !fields.is_empty() => yaml_map(&mut inner, fields, column + 2, style),
            Tree::List(items) if has_items(items) => yaml_list(&mut inner, items, column + 2, style),
            other => inner = format!("{indent}  {}\n", yaml_scalar(other, column, style)),
        }
        // A comment before the first field of an item has a line of its own.
        match inner.trim_start().starts_with('#') {
            true => {
                let _ = write!(out, "{indent}-\n{inner}");
            }
            false => {
                let _ = write!(out, "{indent}- {}", inner.trim_start());
            }
        }
    }
}
