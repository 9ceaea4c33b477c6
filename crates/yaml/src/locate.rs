//! Finds the position of a field in a file.
//!
//! In: a file's bytes and the path of a field. Out: the line and column of its key or item.
//! Positions are not kept while reading, because only messages need them: the file is parsed again
//! for a message.

use std::borrow::Cow;

use super::parser::{Event, Mark, Offset, Parser};
use super::{Dialect, json, scalar, split, text};

/// A position in a file as editors show it: both count from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// One step from a value to a value inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// Into the field of a map.
    Key(&'a str),
    /// Into the item of a list, counted from 0.
    Item(usize),
}

/// Returns the position of the field at `path` in the document with this `index` (see
/// [`super::Document`]).
///
/// A value that comes from an alias or a merge has no position of its own: then the deepest part of
/// the path that has one is returned. None if the file cannot be read or has no such document.
pub fn locate(bytes: &[u8], dialect: Dialect, document: u32, path: &[Step<'_>]) -> Option<Position> {
    let text = text(bytes).ok()?;
    let index = usize::try_from(document).ok()?;
    let is_json = split::is_json(text, dialect);
    let (text, origin) = match is_json {
        true => {
            let found = json::read_documents(text, &|| true).ok()?.into_iter().nth(index)?;
            // Without the values behind it: the parser looks ahead, and they need not be YAML.
            (readable(text.get(found.start..found.end)?), found.mark)
        }
        false => {
            let chunk = split::chunks(text, dialect).nth(index)?.ok()?;
            (Cow::Borrowed(chunk.text.strip_prefix('\u{feff}').unwrap_or(chunk.text)), chunk.mark())
        }
    };
    // JSON that the parser of YAML does not read has the position of its first character.
    let offset = walk(&text, dialect, path).or_else(|| is_json.then(Offset::default))?;
    let Mark { line, column } = origin.after(text.get(..offset)?);
    Some(Position { line: line.saturating_add(1), column: column.saturating_add(1) })
}

/// Replaces the characters that JSON may hold and YAML may not; the other positions stay the same.
fn readable(text: &str) -> Cow<'_, str> {
    let stands_for = |character: char| match character {
        '\u{7f}' => Some('?'),
        '\u{80}'..='\u{84}' | '\u{86}'..='\u{9f}' => Some('\u{a0}'),
        '\u{fffe}' | '\u{ffff}' | '\u{feff}' => Some('\u{fffd}'),
        _ => None,
    };
    match text.contains(|character| stands_for(character).is_some()) {
        false => Cow::Borrowed(text),
        true => text.chars().map(|character| stands_for(character).unwrap_or(character)).collect(),
    }
}

/// An open map or list.
struct Level {
    /// Number of steps of the path that lead here, if this level is on it.
    matched_steps: Option<usize>,
    content: Content,
}

enum Content {
    List { next: usize },
    Map { value: Option<Option<usize>> },
}

/// Returns the offset of the deepest part of the path.
fn walk(text: &str, dialect: Dialect, path: &[Step<'_>]) -> Option<Offset> {
    let mut parser = Parser::new(text);
    let mut levels: Vec<Level> = Vec::new();
    let mut best: Option<(usize, Offset)> = None;
    // A text that is cut off still has positions before the cut.
    while let Ok((event, at)) = parser.next() {
        let content = match &event {
            Event::StreamStart | Event::DocumentStart => continue,
            Event::DocumentEnd | Event::StreamEnd => break,
            Event::SequenceEnd | Event::MappingEnd => {
                levels.pop();
                continue;
            }
            Event::SequenceStart { .. } => Some(Content::List { next: 0 }),
            Event::MappingStart { .. } => Some(Content::Map { value: None }),
            Event::Scalar(_) | Event::Alias(_) => None,
        };
        let entered = match levels.last_mut() {
            Some(level) => level.enter(&event, dialect, path),
            None => NodeRole::Item(Some(0)),
        };
        let (on, named) = match entered {
            NodeRole::Key(on) | NodeRole::Item(on) => (on, true),
            NodeRole::Value(on) => (on, false),
        };
        if let Some(depth) = on.filter(|depth| named && best.is_none_or(|(deepest, _)| *depth >= deepest)) {
            best = Some((depth, at));
        }
        if let Some(content) = content {
            levels.push(Level { matched_steps: on, content });
        }
    }
    best.map(|(_, at)| at)
}

/// Role of a node in its level, with the number of steps if it is on the path.
enum NodeRole {
    /// A key, which names its field.
    Key(Option<usize>),
    /// A field's value, named by the key before it.
    Value(Option<usize>),
    /// An item, or the document itself.
    Item(Option<usize>),
}

impl Level {
    /// Records the next node of this level.
    fn enter(&mut self, event: &Event<'_>, dialect: Dialect, path: &[Step<'_>]) -> NodeRole {
        let step = self.matched_steps.and_then(|on| path.get(on));
        let deeper = self.matched_steps.map(|on| on + 1);
        match &mut self.content {
            Content::List { next } => {
                let item = Step::Item(*next);
                *next += 1;
                NodeRole::Item(deeper.filter(|_| step == Some(&item)))
            }
            Content::Map { value } => match value.take() {
                Some(on) => NodeRole::Value(on),
                None => {
                    let key = match event {
                        // Kustomize takes any scalar as a key of the outermost map.
                        Event::Scalar(scalar) => Some(
                            scalar::scalar_key(scalar, dialect).unwrap_or_else(|_| scalar.text.to_owned()),
                        ),
                        _ => None,
                    };
                    let here = key.is_some_and(|key| step == Some(&Step::Key(&key)));
                    let on = deeper.filter(|_| here);
                    *value = Some(on);
                    NodeRole::Key(on)
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, document: u32, path: &[Step<'_>], expect: (u32, u32)) {
        let found = locate(text.as_bytes(), Dialect::Kubectl, document, path).expect("a place");
        assert_eq!((found.line, found.column), expect, "{path:?} in {text:?}");
    }

    #[test]
    fn fields_and_items_are_found_where_they_stand() {
        let text =
            "# c\na: 1\n---\nspec:\n  ports:\n  - name: x\n    port: 1\n  - {name: y, port: 2}\n  on: 3\n";
        let port = |item| [Step::Key("spec"), Step::Key("ports"), Step::Item(item), Step::Key("port")];
        check(text, 0, &[Step::Key("a")], (2, 1));
        check(text, 1, &[], (4, 1));
        check(text, 1, &port(0), (7, 5));
        check(text, 1, &port(1), (8, 15));
        check(text, 1, &port(1)[..3], (8, 5));
        // Keys are compared by their resolved text.
        check(text, 1, &[Step::Key("spec"), Step::Key("true")], (9, 3));
    }

    #[test]
    fn json_may_hold_characters_that_yaml_may_not() {
        let text = "{\"\u{7f}\": \"\u{9b}\u{ffff}\",\n \"a\": [1, 2]}";
        check(text, 0, &[Step::Key("a"), Step::Item(1)], (2, 11));
        check(text, 0, &[Step::Key("\u{7f}")], (1, 1));
    }

    #[test]
    fn what_stands_nowhere_is_its_deepest_part() {
        let text = "a: &a {b: {c: 1}}\nd: *a\ne:\n  <<: *a\n";
        check(text, 0, &[Step::Key("a"), Step::Key("b"), Step::Key("x")], (1, 8));
        check(text, 0, &[Step::Key("d"), Step::Key("b")], (2, 1));
        check(text, 0, &[Step::Key("e"), Step::Key("b")], (3, 1));
        check(text, 0, &[Step::Key("x")], (1, 1));
        check(text, 0, &[Step::Item(0)], (1, 1));
    }

    #[test]
    fn the_last_of_equal_keys_is_the_one_that_counts() {
        check("a: 1\nb: 2\na: 3\n", 0, &[Step::Key("a")], (3, 1));
    }

    #[test]
    fn fields_of_json_before_a_tab_are_found() {
        check("{}\n\t", 0, &[Step::Key("a")], (1, 1));
        check("{\"a\": 1}\n\t\n", 0, &[Step::Key("a")], (1, 2));
        check("{} [\"b\", 1]\n\t3", 1, &[Step::Item(1)], (1, 10));
    }

    #[test]
    fn values_of_json_files_are_found() {
        check("{\"a\": 1}\n  {\"b\": [1,\n 2]}", 1, &[Step::Key("b"), Step::Item(1)], (3, 2));
        check("{\"a\": 1}\n  {\"b\": [1,\n 2]}", 1, &[Step::Key("b")], (2, 4));
        assert_eq!(locate(b"{\"a\": 1}", Dialect::Kubectl, 1, &[]), None);
    }
}
