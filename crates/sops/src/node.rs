//! Values of a file in file order, as far as they are needed as a tree: the metadata, and JSON.

/// A value with the order of its fields.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    /// No value.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Item>),
    /// A map; a key may occur twice.
    Map(Vec<Field>),
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    pub(crate) line: u32,
    pub(crate) value: Node,
}

/// A field of a map.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) key: String,
    pub(crate) line: u32,
    pub(crate) value: Node,
}

/// Separates a key from the key of a map in it, in flat metadata.
const MAP: &str = "__map_";
/// Separates a key from the index of an item in it.
const LIST: &str = "__list_";
/// Most items of a list in flat metadata.
const MAX_ITEMS: usize = super::error::MAX_KEYS;

/// One step of a flat key.
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// Builds the tree of flat metadata: `age__list_0__map_enc` is the field `enc` of the first item of
/// `age`. None if a key does not fit the others.
pub(crate) fn unflatten(flat: Vec<Field>) -> Option<Node> {
    let mut root = Node::Map(Vec::new());
    for Field { key, line, value } in flat {
        let steps = steps(&key)?;
        *place(&mut root, &steps, line)? = value;
    }
    Some(root)
}

/// Splits a flat key.
fn steps(key: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    let (mut rest, mut indexed) = (key, false);
    loop {
        let end = [rest.find(MAP), rest.find(LIST)].into_iter().flatten().min().unwrap_or(rest.len());
        let (part, next) = rest.split_at_checked(end)?;
        steps.push(match indexed {
            true => Step::Index(part.parse().ok()?),
            false => Step::Key(part),
        });
        if next.is_empty() {
            return Some(steps);
        }
        indexed = next.starts_with(LIST);
        rest = next.strip_prefix(if indexed { LIST } else { MAP })?;
    }
}

/// Returns the place of a flat key, created if it is missing.
fn place<'n>(root: &'n mut Node, steps: &[Step<'_>], line: u32) -> Option<&'n mut Node> {
    let mut node = root;
    for (nth, step) in steps.iter().enumerate() {
        let empty = match steps.get(nth + 1) {
            Some(Step::Key(_)) => Node::Map(Vec::new()),
            Some(Step::Index(_)) => Node::List(Vec::new()),
            None => Node::Null,
        };
        node = match (step, node) {
            (Step::Key(key), Node::Map(fields)) => {
                let at = fields.iter().position(|field| field.key == *key).unwrap_or_else(|| {
                    fields.push(Field { key: (*key).to_owned(), line, value: empty });
                    fields.len() - 1
                });
                &mut fields.get_mut(at)?.value
            }
            (Step::Index(index), Node::List(items)) if *index < MAX_ITEMS => {
                while items.len() <= *index {
                    items.push(Item { line, value: Node::Null });
                }
                let item = items.get_mut(*index)?;
                if item.value == Node::Null {
                    item.value = empty;
                }
                &mut item.value
            }
            (_, _) => return None,
        };
    }
    (*node == Node::Null).then_some(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(fields: &[(&str, &str)]) -> Option<Node> {
        let field = |(key, text): &(&str, &str)| Field {
            key: (*key).into(),
            line: 1,
            value: Node::Text((*text).into()),
        };
        unflatten(fields.iter().map(field).collect())
    }

    #[test]
    fn flat_keys_become_a_tree() {
        let found = flat(&[
            ("age__list_0__map_enc", "x"),
            ("mac", "m"),
            ("age__list_0__map_recipient", "r"),
            ("age__list_1__map_enc", "y"),
        ]);
        let text = |key: &str, text: &str| Field { key: key.into(), line: 1, value: Node::Text(text.into()) };
        let item = |fields: Vec<Field>| Item { line: 1, value: Node::Map(fields) };
        let age = Node::List(vec![
            item(vec![text("enc", "x"), text("recipient", "r")]),
            item(vec![text("enc", "y")]),
        ]);
        let age = Field { key: "age".into(), line: 1, value: age };
        assert_eq!(found, Some(Node::Map(vec![age, text("mac", "m")])));
    }

    #[test]
    fn keys_that_do_not_fit_are_refused() {
        assert_eq!(flat(&[("a", "1"), ("a", "2")]), None);
        assert_eq!(flat(&[("a__map_b", "1"), ("a__list_0", "2")]), None);
        assert_eq!(flat(&[("a__list_x", "1")]), None);
        assert_eq!(flat(&[("a__list_99999999", "1")]), None);
    }
}
