//! Where a field of a document stands.
//!
//! In: a file's bytes and the path of a field. Out: the line and column of its key or item. Positions are
//! not kept while reading, because only messages need them: the file is parsed again when one is written.

use super::parser::{Event, Mark, Offset, Parser};
use super::{Dialect, json, scalar, split, text};

/// A place in a file, for people: both count from 1, the column in characters.
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

/// Where the field at `path` stands in the document with this `index` (see [`super::Document`]).
///
/// What comes out of an alias or a merge stands nowhere itself: then the deepest part of the path that does
/// is named. Nothing comes out if the file cannot be read or has no such document.
pub fn locate(bytes: &[u8], dialect: Dialect, document: u32, path: &[Step<'_>]) -> Option<Position> {
    let text = text(bytes).ok()?;
    let index = usize::try_from(document).ok()?;
    let (text, origin) = match split::is_json(text, dialect) {
        true => {
            let found = json::documents(text).ok()?.into_iter().nth(index)?;
            (&text[found.start..], found.mark)
        }
        false => {
            let chunk = split::chunks(text, dialect).nth(index)?.ok()?;
            (
                chunk.text.strip_prefix('\u{feff}').unwrap_or(chunk.text),
                chunk.mark(),
            )
        }
    };
    let offset = walk(text, dialect, path)?;
    let Mark { line, column } = origin.after(text.get(..offset)?);
    Some(Position {
        line: line.saturating_add(1),
        column: column.saturating_add(1),
    })
}

/// An open map or list.
struct Level {
    /// How many steps of the path lead here, if this is on it.
    on: Option<usize>,
    content: Content,
}

enum Content {
    List { next: usize },
    Map { value: Option<Option<usize>> },
}

/// Where the deepest part of the path stands.
fn walk(text: &str, dialect: Dialect, path: &[Step<'_>]) -> Option<Offset> {
    let mut parser = Parser::new(text);
    let mut levels: Vec<Level> = Vec::new();
    let mut best: Option<(usize, Offset)> = None;
    // A text that breaks off still has places before the break.
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
        let on = enter(levels.last_mut(), &event, dialect, path);
        let (on, named) = match on {
            Entered::Key(on) => (on, true),
            Entered::Value(on) => (on, false),
            Entered::Item(on) => (on, true),
        };
        if let Some(depth) = on.filter(|depth| named && best.is_none_or(|(deepest, _)| *depth >= deepest)) {
            best = Some((depth, at));
        }
        if let Some(content) = content {
            levels.push(Level { on, content });
        }
    }
    best.map(|(_, at)| at)
}

/// What a node is to the level that it stands in, with its steps on the path.
enum Entered {
    /// A key: it names its field.
    Key(Option<usize>),
    /// A field's value, which the key before it names.
    Value(Option<usize>),
    /// An item, or the document itself.
    Item(Option<usize>),
}

fn enter(level: Option<&mut Level>, event: &Event<'_>, dialect: Dialect, path: &[Step<'_>]) -> Entered {
    let Some(Level { on, content }) = level else {
        return Entered::Item(Some(0));
    };
    match content {
        Content::List { next } => {
            let item = Step::Item(*next);
            *next += 1;
            Entered::Item(on.filter(|on| path.get(*on) == Some(&item)).map(|on| on + 1))
        }
        Content::Map { value } => match value.take() {
            Some(on) => Entered::Value(on),
            None => {
                let key = match event {
                    Event::Scalar(scalar) => scalar::key(scalar, dialect).ok(),
                    _ => None,
                };
                let here = |on: &usize| matches!((path.get(*on), &key), (Some(Step::Key(step)), Some(key)) if step == key);
                let on = on.filter(here).map(|on| on + 1);
                *value = Some(on);
                Entered::Key(on)
            }
        },
    }
}
