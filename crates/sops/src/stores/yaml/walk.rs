//! Walks through the events of a file and notes each leaf with its path and place.

use super::super::super::leaves::PathId;
use super::super::super::node::{Field, Item};
use super::scalars::Scalar;
use super::{
    INDENT, Leaves, LineStarts, Node, NodeEvent, NodeEventKind, Place, Problem, Range, Refusal, Role,
    Surroundings, metadata,
};

/// Deepest nesting of the metadata.
const MAX_METADATA_DEPTH: usize = 16;
/// Field with the metadata.
const METADATA: &str = "sops";

/// Returns the metadata of the first document with its line; none if it has none.
pub(super) fn find_metadata(
    events: &[NodeEvent],
    lines: &LineStarts,
) -> Result<Option<(Node, u32)>, Refusal> {
    let Some(NodeEventKind::MappingStart { flow }) = events.get(1).map(|event| &event.kind) else {
        return Ok(None);
    };
    let mut found: Option<(Node, u32)> = None;
    let mut at = 2;
    while let Some(event) = events.get(at).filter(|event| event.kind != NodeEventKind::MappingEnd) {
        let value = end_of_node(events, at);
        at = end_of_node(events, value);
        if !matches!(&event.kind, NodeEventKind::Scalar { text, .. } if text == METADATA) {
            continue;
        }
        let line = lines.line_of(event.start);
        if found.is_some() {
            return Err(form(line, "a second field sops", "remove one of them"));
        }
        let node = node(events, &mut value.clone(), lines, 0)?;
        if metadata::is_metadata(&node) {
            found = Some((node, line));
        }
    }
    match found {
        Some((_, line)) if *flow => {
            Err(form(line, "a document of YAML in braces", "write it without braces, or as a .json file"))
        }
        found => Ok(found),
    }
}

fn form(line: u32, found: &'static str, remedy: &'static str) -> Refusal {
    Refusal::new(line, Problem::Form { found, remedy })
}

fn alias(line: u32) -> Refusal {
    form(line, "an alias", "write the value out, or encrypt the file again with sops")
}

/// Returns the index behind a node.
fn end_of_node(events: &[NodeEvent], start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, event) in events.iter().enumerate().skip(start) {
        match event.kind {
            NodeEventKind::MappingStart { .. } | NodeEventKind::SequenceStart { .. } => depth += 1,
            NodeEventKind::MappingEnd | NodeEventKind::SequenceEnd => depth = depth.saturating_sub(1),
            NodeEventKind::Scalar { .. } | NodeEventKind::Alias(_) => {}
            NodeEventKind::DocumentStart | NodeEventKind::DocumentEnd => return at,
        }
        if depth == 0 {
            return at + 1;
        }
    }
    events.len()
}

/// Builds the tree of a node of the metadata, and moves the index behind it.
fn node(events: &[NodeEvent], at: &mut usize, lines: &LineStarts, depth: usize) -> Result<Node, Refusal> {
    let Some(event) = events.get(*at) else { return Ok(Node::Null) };
    let line = lines.line_of(event.start);
    if depth > MAX_METADATA_DEPTH {
        return Err(Refusal::new(line, Problem::Metadata { field: METADATA.into(), expected: "a flat map" }));
    }
    *at += 1;
    match &event.kind {
        NodeEventKind::Scalar { text, tag, plain } => {
            Ok(Scalar { text, tag: tag.as_deref(), plain: *plain }.node())
        }
        NodeEventKind::SequenceStart { .. } => {
            let mut items = Vec::new();
            while let Some(next) = events.get(*at).filter(|next| next.kind != NodeEventKind::SequenceEnd) {
                let line = lines.line_of(next.start);
                items.push(Item { line, value: node(events, at, lines, depth + 1)? });
            }
            *at += 1;
            Ok(Node::List(items))
        }
        NodeEventKind::MappingStart { .. } => {
            let mut fields = Vec::new();
            while let Some(next) = events.get(*at).filter(|next| next.kind != NodeEventKind::MappingEnd) {
                let line = lines.line_of(next.start);
                let NodeEventKind::Scalar { text, .. } = &next.kind else {
                    return Err(form(line, "a key that is not text", "put the key in quotes"));
                };
                *at += 1;
                fields.push(Field { key: text.clone(), line, value: node(events, at, lines, depth + 1)? });
            }
            *at += 1;
            Ok(Node::Map(fields))
        }
        NodeEventKind::Alias(_) => Err(alias(line)),
        _ => Ok(Node::Null),
    }
}

/// A map or list that is open.
struct Level {
    path: Option<PathId>,
    flow: bool,
    inside: Inside,
}

/// Kind of an open level.
enum Inside {
    /// A map, with the path and column of the key whose value is next.
    Map(Option<(PathId, usize)>),
    /// A list, by its index.
    List(usize),
}

/// The walk through one file.
pub(super) struct Walk<'a> {
    text: &'a str,
    lines: &'a LineStarts,
    levels: Vec<Level>,
    /// Number of fields of the document but the metadata.
    fields: usize,
    /// The document has metadata.
    has_metadata: bool,
    /// The MAC of the first document.
    mac: Option<Node>,
    pub(super) leaves: Leaves,
    pub(super) places: Vec<Place>,
    pub(super) metadata: Vec<(Range<usize>, bool)>,
    pub(super) list_items: Vec<usize>,
    /// Offsets of keys and items, with their paths.
    pub(super) marks: Vec<(usize, Option<PathId>)>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(text: &'a str, lines: &'a LineStarts) -> Self {
        Self {
            text,
            lines,
            levels: Vec::new(),
            fields: 0,
            has_metadata: false,
            mac: None,
            leaves: Leaves::default(),
            places: Vec::new(),
            metadata: Vec::new(),
            list_items: Vec::new(),
            marks: Vec::new(),
        }
    }

    pub(super) fn run(&mut self, events: &[NodeEvent]) -> Result<(), Refusal> {
        let mut at = 0;
        while let Some(event) = events.get(at) {
            at += 1;
            match &event.kind {
                NodeEventKind::DocumentStart => {
                    self.fields = 0;
                    self.has_metadata = false;
                }
                NodeEventKind::DocumentEnd => self.end_document(),
                NodeEventKind::MappingEnd | NodeEventKind::SequenceEnd => drop(self.levels.pop()),
                NodeEventKind::Alias(_) => return Err(alias(self.lines.line_of(event.start))),
                NodeEventKind::MappingStart { flow } => self.open(event, *flow, Inside::Map(None))?,
                NodeEventKind::SequenceStart { flow } => {
                    self.list_items.push(0);
                    self.open(event, *flow, Inside::List(self.list_items.len() - 1))?;
                }
                NodeEventKind::Scalar { text, tag, plain } => {
                    let scalar = Scalar { text, tag: tag.as_deref(), plain: *plain };
                    if let Some(Level { inside: Inside::Map(None), .. }) = self.levels.last() {
                        if self.levels.len() == 1 && text == METADATA {
                            let end = end_of_node(events, at);
                            self.remove(event, events.get(at..end).unwrap_or_default())?;
                            at = end;
                        } else {
                            self.key(event, scalar)?;
                        }
                    } else {
                        self.value(event, scalar)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn end_document(&mut self) {
        self.levels.clear();
        let alone = self.fields == 0 && self.has_metadata;
        if let Some((_, only)) = self.metadata.last_mut().filter(|_| alone) {
            *only = true;
        }
    }

    /// Notes the range of a document's metadata: its lines.
    fn remove(&mut self, key: &NodeEvent, value: &[NodeEvent]) -> Result<(), Refusal> {
        self.check_mac(value)?;
        if self.levels.last().is_some_and(|level| level.flow) {
            let remedy = "write it without braces, or as a .json file";
            return Err(form(self.lines.line_of(key.start), "a document of YAML in braces", remedy));
        }
        let mut flows = Vec::new();
        let mut end = key.end;
        for event in value {
            match event.kind {
                NodeEventKind::MappingStart { flow } | NodeEventKind::SequenceStart { flow } => {
                    flows.push(flow)
                }
                // Only the end of braces and brackets is text.
                NodeEventKind::MappingEnd | NodeEventKind::SequenceEnd => {
                    if flows.pop() == Some(true) {
                        end = end.max(event.end);
                    }
                }
                NodeEventKind::Scalar { .. } | NodeEventKind::Alias(_) => end = end.max(event.end),
                NodeEventKind::DocumentStart | NodeEventKind::DocumentEnd => {}
            }
        }
        if !self.text.get(..end).is_some_and(|text| text.ends_with('\n')) {
            end = self.lines.end_of(end, self.text.len());
        }
        self.has_metadata = true;
        self.metadata.push((self.lines.start_of(key.start)..end, false));
        Ok(())
    }

    /// Refuses a MAC that differs from the first document's: each has a copy.
    fn check_mac(&mut self, value: &[NodeEvent]) -> Result<(), Refusal> {
        let mut at = 0;
        let found = node(value, &mut at, self.lines, 0)?;
        let Node::Map(fields) = found else { return Ok(()) };
        let Some(field) = fields.into_iter().find(|field| field.key == "mac") else { return Ok(()) };
        match self.mac.get_or_insert(field.value.clone()) == &field.value {
            true => Ok(()),
            false => {
                let found = "another sops.mac than in the first document";
                Err(form(field.line, found, "restore the file from Git"))
            }
        }
    }

    fn key(&mut self, event: &NodeEvent, scalar: Scalar<'_>) -> Result<(), Refusal> {
        let line = self.lines.line_of(event.start);
        if scalar.is_merge() {
            return Err(form(
                line,
                "a merge key",
                "write the fields out, or encrypt the file again with sops",
            ));
        }
        let key =
            scalar.key().ok_or_else(|| form(line, "a key that is not text", "put the key in quotes"))?;
        if self.levels.len() == 1 {
            self.fields += 1;
        }
        if let Some(level) = self.levels.last_mut() {
            let path = self.leaves.paths.add(level.path, &key);
            level.inside = Inside::Map(Some((path, self.lines.column_of(event.start))));
            self.marks.push((event.start, Some(path)));
        }
        Ok(())
    }

    /// Enters a node; returns its path, its role, and the column of its parent.
    fn enter(&mut self, event: &NodeEvent) -> Result<(Option<PathId>, Role, Option<usize>), Refusal> {
        let Some(level) = self.levels.last_mut() else {
            let line = self.lines.line_of(event.start);
            return Err(form(line, "a document that is not a map", "put the value below a key"));
        };
        match &mut level.inside {
            Inside::Map(pending) => match pending.take() {
                Some((path, column)) => Ok((Some(path), Role::Value, Some(column))),
                None => {
                    let line = self.lines.line_of(event.start);
                    Err(form(line, "a key that is not text", "put the key in quotes"))
                }
            },
            Inside::List(list) => {
                let list = *list;
                if let Some(items) = self.list_items.get_mut(list) {
                    *items += 1;
                }
                self.marks.push((event.start, level.path));
                let before = self.text.get(..event.start).unwrap_or_default().trim_end();
                let dash = before.ends_with('-').then(|| before.len() - 1).filter(|_| !level.flow);
                Ok((level.path, Role::Item(dash, list), dash.map(|dash| self.lines.column_of(dash))))
            }
        }
    }

    fn open(&mut self, event: &NodeEvent, flow: bool, inside: Inside) -> Result<(), Refusal> {
        let root = self.levels.is_empty() && matches!(inside, Inside::Map(_));
        let path = if root { None } else { self.enter(event)?.0 };
        let flow = flow || self.levels.last().is_some_and(|level| level.flow);
        self.levels.push(Level { path, flow, inside });
        Ok(())
    }

    fn value(&mut self, event: &NodeEvent, scalar: Scalar<'_>) -> Result<(), Refusal> {
        let line = self.lines.line_of(event.start);
        let content = scalar.content().map_err(|()| {
            form(line, "a value that does not fit its tag", "remove the tag, or correct the value")
        })?;
        // A document may be empty.
        if self.levels.is_empty() && content.is_none() {
            return Ok(());
        }
        let flow = self.levels.last().is_some_and(|level| level.flow);
        let (path, role, parent) = self.enter(event)?;
        let Some(content) = content else { return Ok(()) };
        let surroundings = match parent.filter(|_| !flow) {
            Some(parent) => {
                Surroundings { parent, indent: indent(&role, parent), block: self.ends_line(event) }
            }
            None => Surroundings::FLOW,
        };
        self.leaves.push(line, path, content);
        self.places.push(Place { range: event.start..event.end, role, surroundings });
        Ok(())
    }

    /// True if nothing follows a scalar on its line.
    fn ends_line(&self, event: &NodeEvent) -> bool {
        let source = self.text.get(event.start..event.end).unwrap_or_default();
        let rest = self.text.get(event.end..).and_then(|rest| rest.split('\n').next()).unwrap_or_default();
        source.ends_with('\n') || rest.trim().is_empty()
    }
}

/// Returns the column of a block's lines below its parent, as SOPS writes it.
fn indent(role: &Role, parent: usize) -> usize {
    match role {
        Role::Item(..) => parent + 2,
        Role::Value | Role::Comment => INDENT * ((parent + INDENT) / INDENT),
    }
}
