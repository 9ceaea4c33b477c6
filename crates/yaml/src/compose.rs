//! Builds a document's value from its events.
//!
//! In: the text of one document. Out: its JSON value and the offset of its first node. Values are
//! built in one pass and without recursion; every node, every level and every copy that an alias
//! makes is counted before memory is spent on it.

mod spelling_notes;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::budget::{Budget, Cost};
use super::error::{ErrorKind, MAX_DEPTH};
use super::parser::{Event, Offset, Parser, Scalar, Style, SyntaxError};
use super::{Dialect, KeepGoing, NODES_AT_ONCE, NullForms, OriginalTexts, scalar};

/// Returns the document in `text`: its value and the offset of its first node; none without a node.
pub(super) fn compose_document(
    text: &str,
    dialect: Dialect,
    go_on: KeepGoing<'_>,
) -> Result<Option<ComposedDocument>, OffsetError> {
    let mut parser = Parser::new(text);
    let mut composer = Composer::new(dialect);
    let mut first = None;
    for count in 1_usize.. {
        let (event, at) = parser.next()?;
        if count.is_multiple_of(NODES_AT_ONCE) && !go_on() {
            return Err(refusal(at, ErrorKind::Stopped));
        }
        match event {
            Event::StreamStart | Event::DocumentStart => continue,
            // Text after `...`, or after a JSON value, is never read: kubectl and Kustomize do the
            // same.
            Event::DocumentEnd | Event::StreamEnd => break,
            event => {
                first.get_or_insert(at);
                composer.handle_event(event, at)?;
            }
        }
    }
    let (odd, nulls, texts) = (composer.rewritten_values, composer.nulls, composer.original_texts);
    let annotations_in_braces = composer.annotations_in_braces;
    Ok(composer.root.zip(first).map(|(value, begin)| ComposedDocument {
        value,
        start: begin,
        rewritten_values: odd,
        nulls,
        original_texts: texts,
        annotations_in_braces,
    }))
}

/// A composed document.
pub(super) struct ComposedDocument {
    pub(super) value: Value,
    /// Offset of its first node.
    pub(super) start: Offset,
    /// For Kustomize: the JSON of scalars that are spelled differently in the file.
    pub(super) rewritten_values: BTreeSet<String>,
    /// For Kustomize: the spellings of null that occur.
    pub(super) nulls: NullForms,
    /// For Kustomize: the labels and annotations whose spelling differs from their value.
    pub(super) original_texts: OriginalTexts,
    /// For Kustomize: the annotations are written in braces.
    pub(super) annotations_in_braces: bool,
}

/// An error at an offset of the document's text.
#[derive(Debug)]
pub(super) struct OffsetError {
    pub(super) offset: Offset,
    pub(super) kind: ErrorKind,
}

impl From<SyntaxError> for OffsetError {
    fn from(error: SyntaxError) -> Self {
        refusal(error.offset, ErrorKind::Syntax(error.problem.into()))
    }
}

fn refusal(at: Offset, kind: ErrorKind) -> OffsetError {
    OffsetError { offset: at, kind }
}

/// An anchored value that aliases can refer to.
struct Anchor {
    value: Value,
    /// Its text as a key, if it is a scalar.
    key: Option<Result<String, ErrorKind>>,
    spent: Cost,
    height: usize,
}

/// A map or a list that is still open.
struct Frame {
    shape: Collection,
    flow: bool,
    /// The anchor's name, and the cost before its value began.
    anchor: Option<(Box<str>, Cost)>,
    /// Number of levels below this one.
    height: usize,
}

enum Collection {
    List(Vec<Value>),
    Map(Fields),
}

/// The fields of an open map.
#[derive(Default)]
struct Fields {
    entries: Vec<(String, Value)>,
    /// Offsets of the keys; recorded only for the dialect that refuses duplicates.
    key_offsets: Vec<Offset>,
    /// The key whose value comes next.
    key: PendingKey,
    /// Fields merged in by `<<` for Kustomize: explicit fields win regardless of their position.
    merged: Option<Map<String, Value>>,
}

#[derive(Default)]
enum PendingKey {
    /// A key comes next.
    #[default]
    None,
    /// The value of this key comes next.
    Text(String),
    /// The maps to merge come next.
    Merge,
    /// The next value is read and dropped.
    Dropped,
}

struct Composer {
    dialect: Dialect,
    frames: Vec<Frame>,
    anchors: BTreeMap<Box<str>, Anchor>,
    budget: Budget,
    root: Option<Value>,
    rewritten_values: BTreeSet<String>,
    nulls: NullForms,
    original_texts: OriginalTexts,
    annotations_in_braces: bool,
}

impl Composer {
    fn new(dialect: Dialect) -> Self {
        let (anchors, odd) = (BTreeMap::new(), BTreeSet::new());
        Self {
            dialect,
            frames: Vec::new(),
            anchors,
            budget: Budget::default(),
            root: None,
            rewritten_values: odd,
            nulls: NullForms::default(),
            original_texts: OriginalTexts::default(),
            annotations_in_braces: false,
        }
    }

    /// Handles one event of the document.
    fn handle_event(&mut self, event: Event<'_>, at: Offset) -> Result<(), OffsetError> {
        match event {
            Event::Scalar(scalar) => self.scalar(&scalar, at),
            Event::Alias(name) => self.alias(&name, at),
            Event::SequenceStart { flow, anchor } => {
                self.open(Collection::List(Vec::new()), flow, anchor.as_deref(), at)
            }
            Event::MappingStart { flow, anchor } => {
                self.annotations_in_braces |= flow && self.is_at_annotations();
                self.open(Collection::Map(Fields::default()), flow, anchor.as_deref(), at)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(at),
            Event::StreamStart | Event::DocumentStart | Event::DocumentEnd | Event::StreamEnd => Ok(()),
        }
    }

    fn scalar(&mut self, scalar: &Scalar<'_>, at: Offset) -> Result<(), OffsetError> {
        let fault = |kind| refusal(at, kind);
        let before = self.budget.total_cost();
        self.budget.add_node(scalar.text.len()).map_err(fault)?;
        let (flow, dialect) = (self.frames.last().is_some_and(|frame| frame.flow), self.dialect);
        let outermost = self.frames.len() == 1;
        // The Go readers end a plain scalar inside braces at a question mark, and then miss a
        // comma.
        if flow && scalar.style == Style::Plain && scalar.text.contains('?') {
            return Err(fault(ErrorKind::Syntax("did not find expected ',' before a question mark".into())));
        }
        if let Some(name) = &scalar.anchor {
            let anchor = Anchor {
                value: scalar::scalar_value(scalar, flow, dialect).map_err(fault)?,
                key: Some(scalar::scalar_key(scalar, dialect)),
                spent: self.budget.total_cost().since(before),
                height: 0,
            };
            self.define(name.as_ref().into(), anchor, at)?;
        }
        match self.fields() {
            Some(fields) if matches!(fields.key, PendingKey::None) => {
                fields.key = match () {
                    () if scalar::is_merge(scalar) => PendingKey::Merge,
                    // Kustomize loses a quoted `<<`: it clears the field by name after merging.
                    () if dialect == Dialect::Kustomize && scalar.text == "<<" => PendingKey::Dropped,
                    () if dialect == Dialect::Kustomize && outermost => {
                        PendingKey::Text(scalar::outermost_key(scalar).map_err(fault)?)
                    }
                    () => PendingKey::Text(scalar::scalar_key(scalar, dialect).map_err(fault)?),
                };
                fields.record_key_offset(at, dialect);
                Ok(())
            }
            _ => {
                let mut value = scalar::scalar_value(scalar, flow, dialect).map_err(fault)?;
                if dialect == Dialect::Kustomize {
                    self.record_spelling(scalar, flow, &mut value);
                }
                self.insert_value(value, 0, at)
            }
        }
    }

    fn alias(&mut self, name: &str, at: Offset) -> Result<(), OffsetError> {
        let fault = |kind| refusal(at, kind);
        let open = |frame: &Frame| frame.anchor.as_ref().is_some_and(|(anchor, _)| &**anchor == name);
        if self.frames.iter().any(open) {
            return Err(fault(ErrorKind::SelfAlias(name.into())));
        }
        let Some(anchor) = self.anchors.get(name) else {
            return Err(fault(ErrorKind::UnknownAnchor(name.into())));
        };
        self.budget.add_alias(anchor.spent).map_err(fault)?;
        let dialect = self.dialect;
        let fields = match self.frames.last_mut() {
            Some(Frame { shape: Collection::Map(fields), .. }) => Some(fields),
            _ => None,
        };
        match fields {
            Some(fields) if matches!(fields.key, PendingKey::None) => {
                let key = anchor.key.clone().unwrap_or(Err(ErrorKind::KeyCollection)).map_err(fault)?;
                fields.key = PendingKey::Text(key);
                fields.record_key_offset(at, dialect);
                return Ok(());
            }
            // An alias of a list does not count as a list of maps.
            Some(fields) if matches!(fields.key, PendingKey::Merge) && !anchor.value.is_object() => {
                return Err(fault(ErrorKind::Merge));
            }
            _ => {}
        }
        let (value, height) = (anchor.value.clone(), anchor.height);
        self.insert_value(value, height, at)
    }

    fn open(
        &mut self,
        shape: Collection,
        flow: bool,
        anchor: Option<&str>,
        at: Offset,
    ) -> Result<(), OffsetError> {
        if matches!(self.fields(), Some(fields) if matches!(fields.key, PendingKey::None)) {
            return Err(refusal(at, ErrorKind::KeyCollection));
        }
        if self.frames.len() >= MAX_DEPTH {
            return Err(refusal(at, ErrorKind::Depth));
        }
        let anchor = anchor.map(|name| (name.into(), self.budget.total_cost()));
        self.budget.add_node(0).map_err(|kind| refusal(at, kind))?;
        // Flow style extends to everything inside braces.
        let flow = flow || self.frames.last().is_some_and(|frame| frame.flow);
        self.frames.push(Frame { shape, flow, anchor, height: 1 });
        Ok(())
    }

    fn close(&mut self, at: Offset) -> Result<(), OffsetError> {
        let Some(Frame { shape, flow: _, anchor, height }) = self.frames.pop() else {
            return Ok(());
        };
        let value = match shape {
            Collection::List(items) => Value::Array(items),
            Collection::Map(fields) => Value::Object(fields.close()?),
        };
        if let Some((name, before)) = anchor {
            let anchor = Anchor {
                value: value.clone(),
                key: None,
                spent: self.budget.total_cost().since(before),
                height,
            };
            self.define(name, anchor, at)?;
        }
        self.insert_value(value, height, at)
    }

    fn define(&mut self, name: Box<str>, anchor: Anchor, at: Offset) -> Result<(), OffsetError> {
        self.budget.add_copy(anchor.spent).map_err(|kind| refusal(at, kind))?;
        self.anchors.insert(name, anchor);
        Ok(())
    }

    /// Inserts a finished value into its parent, or makes it the root.
    fn insert_value(&mut self, value: Value, height: usize, at: Offset) -> Result<(), OffsetError> {
        if self.frames.len() + height > MAX_DEPTH {
            return Err(refusal(at, ErrorKind::Depth));
        }
        let dialect = self.dialect;
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(value);
            return Ok(());
        };
        frame.height = frame.height.max(height + 1);
        match &mut frame.shape {
            Collection::List(items) => items.push(value),
            Collection::Map(fields) => {
                fields.insert_value(value, dialect).map_err(|kind| refusal(at, kind))?
            }
        }
        Ok(())
    }

    /// Returns the fields of the innermost open collection if it is a map.
    fn fields(&mut self) -> Option<&mut Fields> {
        match &mut self.frames.last_mut()?.shape {
            Collection::Map(fields) => Some(fields),
            Collection::List(_) => None,
        }
    }
}

impl Fields {
    /// Records the offset of the key that was just read.
    fn record_key_offset(&mut self, at: Offset, dialect: Dialect) {
        if dialect == Dialect::Kustomize && matches!(self.key, PendingKey::Text(_)) {
            self.key_offsets.push(at);
        }
    }

    fn insert_value(&mut self, value: Value, dialect: Dialect) -> Result<(), ErrorKind> {
        match std::mem::take(&mut self.key) {
            PendingKey::Text(key) => self.entries.push((key, value)),
            PendingKey::Merge => self.merge(value, dialect)?,
            PendingKey::None | PendingKey::Dropped => {}
        }
        Ok(())
    }

    /// Merges maps in. For kubectl, merged fields count as written at this place: they override
    /// fields above and are overridden by fields below. In a list of maps the first one wins.
    fn merge(&mut self, value: Value, dialect: Dialect) -> Result<(), ErrorKind> {
        let maps = match value {
            Value::Object(map) => vec![map],
            Value::Array(items) => {
                let maps = items.into_iter().map(|item| match item {
                    Value::Object(map) => Ok(map),
                    _ => Err(ErrorKind::Merge),
                });
                maps.collect::<Result<_, _>>()?
            }
            _ => return Err(ErrorKind::Merge),
        };
        match dialect {
            Dialect::Kubectl => self.entries.extend(maps.into_iter().rev().flatten()),
            Dialect::Kustomize if self.merged.is_some() => return Err(ErrorKind::DuplicateKey("<<".into())),
            Dialect::Kustomize => self.merged = Some(maps.into_iter().rev().flatten().collect()),
        }
        Ok(())
    }

    /// Returns the finished map. Of equal keys the last one wins, unless their offsets were
    /// recorded: then they are refused.
    fn close(self) -> Result<Map<String, Value>, OffsetError> {
        let Self { entries, key_offsets: places, key: _, merged } = self;
        // Keys are mostly written in order, and then no two are equal.
        let ordered = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !places.is_empty() && !ordered {
            let mut order: Vec<usize> = (0..entries.len()).collect();
            order.sort_by(|a, b| entries[*a].0.cmp(&entries[*b].0));
            let twice = order.windows(2).find(|pair| entries[pair[0]].0 == entries[pair[1]].0);
            if let Some(&[_, second]) = twice {
                let key = entries[second].0.as_str().into();
                return Err(refusal(places[second], ErrorKind::DuplicateKey(key)));
            }
        }
        Ok(match merged {
            Some(mut merged) => {
                merged.extend(entries);
                merged
            }
            None => entries.into_iter().collect(),
        })
    }
}
