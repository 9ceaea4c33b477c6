//! YAML files, of one or several documents.
//!
//! In: a file whose first document has the field `sops`. Out: its leaves, and the file with each
//! encrypted scalar replaced where it stands. All else stays as it is written: order, comments,
//! indentation. SOPS formats the whole file again, so spelling can differ, but never a value.

use std::ops::Range;

use moorline_yaml::{NodeEvent, NodeEventKind, read_events};

use super::super::error::{MAX_VALUES, Problem, Refusal};
use super::super::leaves::{Content, Leaves};
use super::super::metadata;
use super::super::node::Node;
use super::super::secret::SecretBytes;
use super::super::value::{self, Kind, Plain};
use super::yaml_text::{self, Surroundings};
use super::{Layout, Loaded};

mod comments;
mod scalars;
mod walk;

/// Indentation of SOPS.
const INDENT: usize = 4;

/// The text of a file, and the place of each leaf in it.
#[derive(Debug)]
pub(crate) struct YamlLayout<'a> {
    text: &'a str,
    places: Vec<Place>,
    /// The metadata of each document, and if nothing else is in the document.
    metadata: Vec<(Range<usize>, bool)>,
    /// Number of items of each list.
    list_items: Vec<usize>,
}

/// Place of a leaf.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    range: Range<usize>,
    role: Role,
    surroundings: Surroundings,
}

/// Role of a leaf.
#[derive(Debug, Clone, PartialEq)]
enum Role {
    /// The value of a key.
    Value,
    /// An item of a list, with the offset of its dash and the index of the list.
    Item(Option<usize>, usize),
    /// A comment behind its sign.
    Comment,
}

/// Reads a file.
pub(super) fn load(bytes: &[u8]) -> Result<Option<Loaded<'_>>, Refusal> {
    let text = super::text(bytes)?;
    let events = read_events("", bytes, MAX_VALUES)
        .map_err(|error| Refusal::new(error.line(), Problem::Syntax(error.finding().into())))?;
    let lines = LineStarts::of(text);
    let Some((metadata, metadata_line)) = walk::find_metadata(&events, &lines)? else { return Ok(None) };
    let mut walk = walk::Walk::new(text, &lines);
    walk.run(&events)?;
    let walk::Walk { mut leaves, mut places, metadata: removed, list_items, marks, .. } = walk;
    for comment in comments::encrypted(text, &events) {
        // The metadata of the documents is in order.
        let before = removed.partition_point(|(range, _)| range.start <= comment.start);
        if before.checked_sub(1).is_some_and(|at| removed[at].0.contains(&comment.start)) {
            continue;
        }
        let next = marks.partition_point(|(offset, _)| *offset < comment.start);
        let path = |at: Option<usize>| at.and_then(|at| marks.get(at)).and_then(|(_, path)| *path);
        let content = text.get(comment.clone()).unwrap_or_default().to_owned();
        let content = Content::Comment(content, path(next.checked_sub(1)));
        leaves.push(lines.line_of(comment.start), path(Some(next)), content);
        places.push(Place { range: comment, role: Role::Comment, surroundings: Surroundings::FLOW });
    }
    let layout = YamlLayout { text, places, metadata: removed, list_items };
    Ok(Some(Loaded { leaves, metadata, metadata_line, layout: Layout::Yaml(layout) }))
}

/// Offsets at which lines begin.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect())
    }

    /// Index of the line of an offset.
    fn index_of(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    fn line_of(&self, offset: usize) -> u32 {
        super::number(self.index_of(offset))
    }

    fn start_of(&self, offset: usize) -> usize {
        self.0.get(self.index_of(offset)).copied().unwrap_or_default()
    }

    fn column_of(&self, offset: usize) -> usize {
        offset.saturating_sub(self.start_of(offset))
    }

    /// Offset behind the line break of an offset's line.
    fn end_of(&self, offset: usize, length: usize) -> usize {
        self.0.get(self.index_of(offset) + 1).copied().unwrap_or(length)
    }
}

impl YamlLayout<'_> {
    /// Writes the plain file.
    pub(super) fn write(&self, leaves: &Leaves, plains: &[Option<Plain>]) -> Result<SecretBytes, Refusal> {
        let mut edits: Vec<(Range<usize>, Edit<'_>)> = self
            .metadata
            .iter()
            .map(|(range, alone)| (range.clone(), if *alone { Edit::EmptyMap } else { Edit::Remove }))
            .collect();
        let comments = self.comments_of_lists(plains);
        let mut emptied = Vec::new();
        for ((place, plain), leaf) in self.places.iter().zip(plains).zip(&leaves.list) {
            let Some(plain) = plain else { continue };
            let (range, edit) = match (&place.role, plain.kind) {
                (Role::Comment, _) => (place.range.clone(), Edit::Comment(plain)),
                (Role::Item(Some(dash), list), Kind::Comment) if place.surroundings != Surroundings::FLOW => {
                    let all = comments.get(*list) == self.list_items.get(*list);
                    let first = all && !emptied.contains(list);
                    emptied.push(*list);
                    (
                        *dash..place.range.end,
                        Edit::ItemComment { plain, column: place.surroundings.parent, first },
                    )
                }
                (Role::Value | Role::Item(..), Kind::Comment) => {
                    let why = "a comment stands where a value must stand";
                    let field = leaves.paths.shown(leaf.path);
                    return Err(Refusal::new(leaf.line, Problem::Unwritable { field, why }));
                }
                (Role::Value | Role::Item(..), _) => {
                    (place.range.clone(), Edit::Scalar(plain, place.surroundings))
                }
            };
            edits.push((range, edit));
        }
        edits.sort_by_key(|(range, _)| range.start);
        Ok(self.apply(&edits))
    }

    /// Returns the number of items of each list that are comments.
    fn comments_of_lists(&self, plains: &[Option<Plain>]) -> Vec<usize> {
        let mut counts = vec![0; self.list_items.len()];
        for (place, plain) in self.places.iter().zip(plains) {
            if let (Role::Item(_, list), Some(Plain { kind: Kind::Comment, .. })) = (&place.role, plain)
                && let Some(count) = counts.get_mut(*list)
            {
                *count += 1;
            }
        }
        counts
    }

    fn apply(&self, edits: &[(Range<usize>, Edit<'_>)]) -> SecretBytes {
        let mut out = SecretBytes::with_capacity(self.text.len());
        let mut at = 0;
        for (range, edit) in edits {
            // Edits do not overlap: a comment on the line of a removed item goes with it.
            if range.start < at {
                continue;
            }
            out.push(self.text.get(at..range.start).unwrap_or_default().as_bytes());
            edit.write(&mut out);
            let ended = self.text.get(range.clone()).is_some_and(|text| text.ends_with('\n'));
            let last = range.end == self.text.len();
            if !matches!(edit, Edit::Remove) && (ended || last) && !matches!(edit, Edit::Comment(_)) {
                out.push(b"\n");
            }
            at = range.end;
        }
        out.push(self.text.get(at..).unwrap_or_default().as_bytes());
        out
    }
}

/// Text for a range.
enum Edit<'a> {
    /// Nothing.
    Remove,
    /// A document without fields.
    EmptyMap,
    /// A value.
    Scalar(&'a Plain, Surroundings),
    /// A comment behind its sign.
    Comment(&'a Plain),
    /// An item that is a comment, at a column; the list may have no item left.
    ItemComment { plain: &'a Plain, column: usize, first: bool },
}

impl Edit<'_> {
    fn write(&self, out: &mut SecretBytes) {
        match self {
            Self::Remove => {}
            Self::EmptyMap => out.push(b"{}"),
            Self::Scalar(plain, surroundings) => yaml_text::write(out, plain, *surroundings),
            // A comment that SOPS reads has one line; another one would end it.
            Self::Comment(plain) => {
                let line = plain.text.as_bytes().split(|byte| matches!(byte, b'\n' | b'\r')).next();
                out.push(line.unwrap_or_default());
            }
            Self::ItemComment { plain, column, first } => {
                for (nth, line) in plain.text.as_bytes().split(|byte| *byte == b'\n').enumerate() {
                    if nth > 0 {
                        out.push(b"\n");
                        out.push(" ".repeat(*column).as_bytes());
                    }
                    out.push(b"#");
                    out.push(line);
                }
                if *first {
                    out.push(b"\n");
                    out.push(" ".repeat(column + 2).as_bytes());
                    out.push(b"[]");
                }
            }
        }
    }
}
