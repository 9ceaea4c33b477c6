//! Reads a file as a flat list of events with their places, for those who edit the text itself.
//!
//! In: the bytes of one file. Out: each map, list and scalar of all its documents in file order,
//! with the bytes that it spans. Nothing is resolved: aliases stay names, and keys are scalars like
//! others. The bounds on bytes, documents and depth are those of [`super::read`].

use super::error::{Error, ErrorKind, MAX_DEPTH, MAX_DOCUMENTS, MarkedError};
use super::parser::{Event, Mark, Parser, Style};
use super::text;

/// One event of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEvent {
    /// The event itself.
    pub kind: NodeEventKind,
    /// Offset of its first byte: that of a tag or an anchor, if it has one.
    pub start: usize,
    /// Offset behind its last byte. The end of a block scalar is behind its last line break.
    pub end: usize,
}

/// Kind of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeEventKind {
    /// A document begins.
    DocumentStart,
    /// A document ends.
    DocumentEnd,
    /// An alias, with its name.
    Alias(String),
    /// A scalar.
    Scalar {
        /// The text, with escapes and folding undone.
        text: String,
        /// The tag in its long form, if one is written.
        tag: Option<String>,
        /// Written without quotes and not as a block.
        plain: bool,
    },
    /// A list begins; in brackets or not.
    SequenceStart {
        /// Written in brackets.
        flow: bool,
    },
    /// A list ends.
    SequenceEnd,
    /// A map begins.
    MappingStart {
        /// Written in braces.
        flow: bool,
    },
    /// A map ends.
    MappingEnd,
}

/// Returns the events of a file in order, at most `most`.
///
/// Pure and bounded, like [`super::read`]. Offsets count from the first byte of the file.
pub fn read_events(file: &str, bytes: &[u8], most: usize) -> Result<Vec<NodeEvent>, Error> {
    events(bytes, most).map_err(|fault| super::common_mistakes::explain_mistake(bytes, fault).in_file(file))
}

fn events(bytes: &[u8], most: usize) -> Result<Vec<NodeEvent>, MarkedError> {
    let all = text(bytes)?;
    // The parser does not count the byte order mark.
    let marked = all.strip_prefix('\u{feff}').unwrap_or(all);
    let shift = all.len() - marked.len();
    let place = |offset: usize| Mark::default().after(marked.get(..offset).unwrap_or(marked));
    let mut parser = Parser::new(marked);
    let mut found = Vec::new();
    let (mut depth, mut documents) = (0_usize, 0_u32);
    loop {
        let (event, start) = parser.next().map_err(|error| {
            let fault = ErrorKind::Syntax(error.problem.into());
            MarkedError::new(place(error.offset), fault)
        })?;
        let kind = match event {
            Event::StreamStart => continue,
            Event::StreamEnd => return Ok(found),
            other => kind_of(other),
        };
        match kind {
            NodeEventKind::DocumentStart => documents += 1,
            NodeEventKind::SequenceStart { .. } | NodeEventKind::MappingStart { .. } => depth += 1,
            NodeEventKind::SequenceEnd | NodeEventKind::MappingEnd => depth = depth.saturating_sub(1),
            NodeEventKind::DocumentEnd | NodeEventKind::Alias(_) | NodeEventKind::Scalar { .. } => {}
        }
        let excess = match () {
            () if documents > MAX_DOCUMENTS => Some(ErrorKind::Documents),
            () if depth > MAX_DEPTH => Some(ErrorKind::Depth),
            () if found.len() >= most => Some(ErrorKind::Events(most)),
            () => None,
        };
        if let Some(excess) = excess {
            return Err(MarkedError::new(place(start), excess));
        }
        found.push(NodeEvent { kind, start: start + shift, end: parser.end() + shift });
    }
}

fn kind_of(event: Event<'_>) -> NodeEventKind {
    match event {
        Event::StreamStart | Event::DocumentStart => NodeEventKind::DocumentStart,
        Event::StreamEnd | Event::DocumentEnd => NodeEventKind::DocumentEnd,
        Event::Alias(name) => NodeEventKind::Alias(name.into_owned()),
        Event::Scalar(scalar) => NodeEventKind::Scalar {
            text: scalar.text.to_owned(),
            tag: scalar.tag.map(|tag| tag.into_owned()),
            plain: scalar.style == Style::Plain,
        },
        Event::SequenceStart { flow, .. } => NodeEventKind::SequenceStart { flow },
        Event::SequenceEnd => NodeEventKind::SequenceEnd,
        Event::MappingStart { flow, .. } => NodeEventKind::MappingStart { flow },
        Event::MappingEnd => NodeEventKind::MappingEnd,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_span_their_source() {
        let file = "\u{feff}é: &x !!str 'ü'\nb:\n- |\n  two\n  lines\n- c # d\n---\ne: *x\n";
        let events = read_events("f.yaml", file.as_bytes(), 100).expect("reads");
        let spans: Vec<&str> = events
            .iter()
            .filter(|event| matches!(event.kind, NodeEventKind::Scalar { .. } | NodeEventKind::Alias(_)))
            .map(|event| &file[event.start..event.end])
            .collect();
        assert_eq!(spans, ["é", "&x !!str 'ü'", "b", "|\n  two\n  lines\n", "c", "e", "*x"]);
    }

    #[test]
    fn refusals_have_a_place() {
        let error = read_events("f.yaml", b"a: 1\nb: [\n", 100).expect_err("is cut off");
        assert_eq!((error.file(), error.line()), ("f.yaml", 3));
        let deep = "[".repeat(MAX_DEPTH + 1);
        let error = read_events("f.yaml", deep.as_bytes(), 1000).expect_err("is deep").to_string();
        assert!(error.ends_with("found maps and lists nested deeper than 512"), "{error}");
        let error = read_events("f.yaml", b"[1, 2, 3]", 4).expect_err("has more").to_string();
        assert_eq!(error, "f.yaml:1:8: found more than 4 nodes in the file");
    }
}
