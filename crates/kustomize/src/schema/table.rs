//! Reads the table of Kubernetes' own kinds.
//!
//! In: `kubernetes.txt`; its header describes the format. Out: [`Schemas`]. Malformed lines are
//! skipped, because the table is part of the source and a test reads it strictly.

use std::collections::{BTreeMap, HashMap};

use super::{Schemas, Scope, Shape, key};

/// Reads the table.
pub(super) fn read(text: &str) -> Schemas {
    let mut schemas = Schemas::default();
    let places = definitions(text).zip(0..).map(|((name, _), place)| (name, place)).collect();
    for line in text.lines() {
        match *line.split(' ').collect::<Vec<_>>() {
            ["scope", api_version, kind, scope] => {
                let scope = if scope == "c" { Scope::Cluster } else { Scope::Namespaced };
                schemas.scopes.insert(key(api_version, kind), scope);
            }
            ["kind", api_version, kind, text] => {
                schemas.kinds.extend(shape(text, &places).map(|shape| (key(api_version, kind), shape)));
            }
            _ => {}
        }
    }
    schemas.definitions = definitions(text).map(|(_, fields)| map(fields, &places)).collect();
    schemas
}

fn definitions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("definition "));
    lines.map(|line| line.split_once(' ').unwrap_or((line, "")))
}

fn map(fields: &str, places: &HashMap<&str, usize>) -> Shape {
    let fields = fields.split(' ').filter_map(|field| {
        let (name, text) = field.split_once(':')?;
        Some((name.to_owned(), shape(text, places)?))
    });
    Shape::Map { fields: fields.collect(), others: None }
}

fn shape(text: &str, places: &HashMap<&str, usize>) -> Option<Shape> {
    if text == "." {
        return Some(Shape::Leaf);
    }
    if let Some(others) = text.strip_prefix('{') {
        let others = shape(others.strip_suffix('}')?, places)?;
        return Some(Shape::Map { fields: BTreeMap::new(), others: Some(Box::new(others)) });
    }
    if let Some(list) = text.strip_prefix('[') {
        let (keys, items) = list.strip_suffix(']')?.split_once('|')?;
        let keys = keys.split(',').filter(|key| !key.is_empty()).map(str::to_owned).collect();
        return Some(Shape::List { keys, items: Some(Box::new(shape(items, places)?)) });
    }
    places.get(text).copied().map(Shape::Defined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_the_table_is_passed_over() {
        let text = include_str!("kubernetes.txt");
        let places = definitions(text).zip(0..).map(|((name, _), place)| (name, place)).collect();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ');
            let read = match words.next() {
                Some("scope") => matches!(words.clone().nth(2), Some("c" | "n")) && words.count() == 3,
                Some("kind") => words.nth(2).is_some_and(|text| shape(text, &places).is_some()),
                Some("definition") => words.skip(1).all(|field| {
                    field.split_once(':').is_some_and(|(_, text)| shape(text, &places).is_some())
                }),
                _ => false,
            };
            assert!(read, "{line}");
        }
    }
}
