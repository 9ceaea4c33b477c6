//! From a document's events to its value.
//!
//! In: one document's text. Out: its JSON value and the mark of its first node. Values are built in one pass
//! and without recursion; every node, every level and every copy that an alias makes is counted before
//! memory is spent on it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::budget::{Budget, Spent};
use super::error::{Fault, Kind, MAX_DEPTH};
use super::parser::{Event, Mark, Parser, Scalar, Style};
use super::{Dialect, scalar};

/// The document in `text`: its value and where its first node stands. Nothing if it holds no node.
pub(super) fn document(text: &str, dialect: Dialect) -> Result<Option<(Value, Mark)>, Fault> {
    let mut parser = Parser::new(text);
    let mut composer = Composer::new(dialect);
    let mut first = None;
    loop {
        let (event, mark) = parser.next()?;
        match event {
            Event::StreamStart | Event::DocumentStart => continue,
            // What follows `...`, or follows a JSON value, is never read: kubectl and Kustomize do the same.
            Event::DocumentEnd | Event::StreamEnd => break,
            event => {
                first.get_or_insert(mark);
                composer.take(event, mark)?;
            }
        }
    }
    Ok(composer.root.zip(first))
}

/// A value that an alias can stand for.
struct Anchor {
    value: Value,
    /// The text it has as a key, if it is a scalar.
    key: Option<Result<String, Kind>>,
    spent: Spent,
    height: usize,
}

/// A map or a list that is not closed yet.
struct Frame {
    shape: Shape,
    flow: bool,
    /// The anchor's name, with what was spent before its value began.
    anchor: Option<(Box<str>, Spent)>,
    /// Levels below this one.
    height: usize,
}

enum Shape {
    List(Vec<Value>),
    Map(Fields),
}

/// The fields of an open map.
#[derive(Default)]
struct Fields {
    entries: Vec<(String, Value)>,
    /// Where the keys stand; only kept where duplicates are refused.
    marks: Vec<Mark>,
    /// The key whose value comes next.
    key: Key,
    /// What Kustomize merges in: explicit fields win wherever they stand.
    merged: Option<Map<String, Value>>,
}

#[derive(Default)]
enum Key {
    /// A key comes next.
    #[default]
    None,
    /// The value of this key comes next.
    Text(String),
    /// The maps to merge come next.
    Merge,
    /// A value that is read and dropped.
    Dropped,
}

struct Composer {
    dialect: Dialect,
    frames: Vec<Frame>,
    anchors: BTreeMap<Box<str>, Anchor>,
    budget: Budget,
    root: Option<Value>,
}

impl Composer {
    fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            frames: Vec::new(),
            anchors: BTreeMap::new(),
            budget: Budget::default(),
            root: None,
        }
    }

    /// Takes one event of the document.
    fn take(&mut self, event: Event<'_>, mark: Mark) -> Result<(), Fault> {
        match event {
            Event::Scalar(scalar) => self.scalar(&scalar, mark),
            Event::Alias(name) => self.alias(&name, mark),
            Event::SequenceStart { flow, anchor } => {
                self.open(Shape::List(Vec::new()), flow, anchor.as_deref(), mark)
            }
            Event::MappingStart { flow, anchor } => {
                self.open(Shape::Map(Fields::default()), flow, anchor.as_deref(), mark)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(mark),
            Event::StreamStart | Event::DocumentStart | Event::DocumentEnd | Event::StreamEnd => Ok(()),
        }
    }

    fn scalar(&mut self, scalar: &Scalar<'_>, mark: Mark) -> Result<(), Fault> {
        let fault = |kind| Fault::new(mark, kind);
        let before = self.budget.spent();
        self.budget.node(scalar.text.len()).map_err(fault)?;
        let (flow, dialect) = (self.frames.last().is_some_and(|frame| frame.flow), self.dialect);
        let outermost = self.frames.len() == 1;
        // The Go readers end a plain scalar inside braces at a question mark, and then find no comma.
        if flow && scalar.style == Style::Plain && scalar.text.contains('?') {
            return Err(fault(Kind::Syntax(
                "did not find expected ',' before a question mark".into(),
            )));
        }
        if let Some(name) = &scalar.anchor {
            let anchor = Anchor {
                value: scalar::value(scalar, flow, dialect).map_err(fault)?,
                key: Some(scalar::key(scalar, dialect)),
                spent: self.budget.spent().since(before),
                height: 0,
            };
            self.define(name.as_ref().into(), anchor, mark)?;
        }
        match self.fields() {
            Some(fields) if matches!(fields.key, Key::None) => {
                fields.key = match () {
                    () if scalar::is_merge(scalar) => Key::Merge,
                    // Kustomize loses a quoted `<<`: it clears the field by name after it merged.
                    () if dialect == Dialect::Kustomize && scalar.text == "<<" => Key::Dropped,
                    // Kustomize asks for text as keys everywhere but in the outermost map.
                    () if dialect == Dialect::Kustomize && outermost => Key::Text(scalar.text.to_owned()),
                    () => Key::Text(scalar::key(scalar, dialect).map_err(fault)?),
                };
                fields.mark(mark, dialect);
                Ok(())
            }
            _ => {
                let value = scalar::value(scalar, flow, dialect).map_err(fault)?;
                self.put(value, 0, mark)
            }
        }
    }

    fn alias(&mut self, name: &str, mark: Mark) -> Result<(), Fault> {
        let fault = |kind| Fault::new(mark, kind);
        let open = |frame: &Frame| frame.anchor.as_ref().is_some_and(|(anchor, _)| &**anchor == name);
        if self.frames.iter().any(open) {
            return Err(fault(Kind::SelfAlias(name.into())));
        }
        let Some(anchor) = self.anchors.get(name) else {
            return Err(fault(Kind::UnknownAnchor(name.into())));
        };
        self.budget.alias(anchor.spent).map_err(fault)?;
        let dialect = self.dialect;
        let fields = match self.frames.last_mut() {
            Some(Frame {
                shape: Shape::Map(fields),
                ..
            }) => Some(fields),
            _ => None,
        };
        match fields {
            Some(fields) if matches!(fields.key, Key::None) => {
                let key = anchor
                    .key
                    .clone()
                    .unwrap_or(Err(Kind::KeyCollection))
                    .map_err(fault)?;
                fields.key = Key::Text(key);
                fields.mark(mark, dialect);
                return Ok(());
            }
            // An alias of a list is no list of maps.
            Some(fields) if matches!(fields.key, Key::Merge) && !anchor.value.is_object() => {
                return Err(fault(Kind::Merge));
            }
            _ => {}
        }
        let (value, height) = (anchor.value.clone(), anchor.height);
        self.put(value, height, mark)
    }

    fn open(&mut self, shape: Shape, flow: bool, anchor: Option<&str>, mark: Mark) -> Result<(), Fault> {
        if matches!(self.fields(), Some(fields) if matches!(fields.key, Key::None)) {
            return Err(Fault::new(mark, Kind::KeyCollection));
        }
        if self.frames.len() >= MAX_DEPTH {
            return Err(Fault::new(mark, Kind::Depth));
        }
        let anchor = anchor.map(|name| (name.into(), self.budget.spent()));
        self.budget.node(0).map_err(|kind| Fault::new(mark, kind))?;
        // Inside braces everything is inside braces.
        let flow = flow || self.frames.last().is_some_and(|frame| frame.flow);
        self.frames.push(Frame {
            shape,
            flow,
            anchor,
            height: 1,
        });
        Ok(())
    }

    fn close(&mut self, mark: Mark) -> Result<(), Fault> {
        let Some(Frame {
            shape,
            flow: _,
            anchor,
            height,
        }) = self.frames.pop()
        else {
            return Ok(());
        };
        let value = match shape {
            Shape::List(items) => Value::Array(items),
            Shape::Map(fields) => Value::Object(fields.close()?),
        };
        if let Some((name, before)) = anchor {
            let anchor = Anchor {
                value: value.clone(),
                key: None,
                spent: self.budget.spent().since(before),
                height,
            };
            self.define(name, anchor, mark)?;
        }
        self.put(value, height, mark)
    }

    fn define(&mut self, name: Box<str>, anchor: Anchor, mark: Mark) -> Result<(), Fault> {
        self.budget
            .copy(anchor.spent)
            .map_err(|kind| Fault::new(mark, kind))?;
        self.anchors.insert(name, anchor);
        Ok(())
    }

    /// Puts a finished value where it belongs.
    fn put(&mut self, value: Value, height: usize, mark: Mark) -> Result<(), Fault> {
        if self.frames.len() + height > MAX_DEPTH {
            return Err(Fault::new(mark, Kind::Depth));
        }
        let dialect = self.dialect;
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(value);
            return Ok(());
        };
        frame.height = frame.height.max(height + 1);
        match &mut frame.shape {
            Shape::List(items) => items.push(value),
            Shape::Map(fields) => fields
                .put(value, dialect)
                .map_err(|kind| Fault::new(mark, kind))?,
        }
        Ok(())
    }

    /// The fields of the innermost collection, if it is a map.
    fn fields(&mut self) -> Option<&mut Fields> {
        match &mut self.frames.last_mut()?.shape {
            Shape::Map(fields) => Some(fields),
            Shape::List(_) => None,
        }
    }
}

impl Fields {
    /// Notes where the key stands that was just taken.
    fn mark(&mut self, mark: Mark, dialect: Dialect) {
        if dialect == Dialect::Kustomize && matches!(self.key, Key::Text(_)) {
            self.marks.push(mark);
        }
    }

    fn put(&mut self, value: Value, dialect: Dialect) -> Result<(), Kind> {
        match std::mem::take(&mut self.key) {
            Key::Text(key) => self.entries.push((key, value)),
            Key::Merge => self.merge(value, dialect)?,
            Key::None | Key::Dropped => {}
        }
        Ok(())
    }

    /// Merges maps in: what kubectl merges counts as written at this place, so that it overrides fields
    /// above it and is overridden by those below. Of a list of maps, the first one wins.
    fn merge(&mut self, value: Value, dialect: Dialect) -> Result<(), Kind> {
        let maps = match value {
            Value::Object(map) => vec![map],
            Value::Array(items) => {
                let maps = items.into_iter().map(|item| match item {
                    Value::Object(map) => Ok(map),
                    _ => Err(Kind::Merge),
                });
                maps.collect::<Result<_, _>>()?
            }
            _ => return Err(Kind::Merge),
        };
        match dialect {
            Dialect::Kubectl => self.entries.extend(maps.into_iter().rev().flatten()),
            Dialect::Kustomize if self.merged.is_some() => return Err(Kind::DuplicateKey("<<".into())),
            Dialect::Kustomize => self.merged = Some(maps.into_iter().rev().flatten().collect()),
        }
        Ok(())
    }

    /// The finished map. Of equal keys the last one wins, or they are refused where their marks were kept.
    fn close(self) -> Result<Map<String, Value>, Fault> {
        let Self {
            entries,
            marks,
            key: _,
            merged,
        } = self;
        // Keys are mostly written in order; then no two are equal.
        let ordered = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if !marks.is_empty() && !ordered {
            let mut order: Vec<usize> = (0..entries.len()).collect();
            order.sort_by(|a, b| entries[*a].0.cmp(&entries[*b].0));
            let twice = order
                .windows(2)
                .find(|pair| entries[pair[0]].0 == entries[pair[1]].0);
            if let Some(&[_, second]) = twice {
                let key = entries[second].0.as_str().into();
                return Err(Fault::new(marks[second], Kind::DuplicateKey(key)));
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
