//! A safe pull parser over libyaml, and the only unsafe code of the crate.
//!
//! In: the text of one document. Out: [`Event`]s with their [`Offset`]s, or a [`SyntaxError`].
//! kubectl's own reader descends from libyaml, so documents are accepted and refused alike. libyaml
//! is C translated to Rust and has an interface of raw pointers, which stays inside this file.
//!
//! # Invariants
//! 1. The parser and the event live in zeroed allocations that never move, because libyaml keeps a
//!    pointer to its own parser (its reader callback) from `yaml_parser_set_input_string` on. They
//!    are held as raw pointers, so that no `&mut` to the parser exists while libyaml's own pointer
//!    is in use.
//! 2. The input outlives the parser (lifetime `'a`); libyaml only reads it.
//! 3. `event` is always either all zeroes or an event that libyaml filled and that was not deleted
//!    yet: it is deleted exactly once, before the next one is read or when the parser is dropped.
//!    Deleting an all-zero event does nothing.
//! 4. Everything that an [`Event`] borrows points into `event` and is bound to the `&mut self` of
//!    [`Parser::next`], so the borrow ends before the event is deleted.
//! 5. After an error or the end of the stream libyaml is not called again.
#![expect(unsafe_code, reason = "libyaml-rs offers nothing but unsafe functions; the invariants are above")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::borrow::Cow;
use std::ffi::CStr;
use std::ptr::NonNull;

use libyaml_rs as sys;

/// A byte offset in the parsed text. libyaml counts lines as well, but it also counts line ends
/// that no editor shows (U+2028), so lines are counted separately where they are needed.
pub(super) type Offset = usize;

/// Line and column, both from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Lines before this one.
    pub(super) line: u32,
    /// Characters before this one in the line.
    pub(super) column: u32,
}

impl Mark {
    /// Returns the mark at the end of `text`, which begins at this mark.
    pub(super) fn after(self, text: &str) -> Self {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        match text.rsplit_once('\n') {
            None => Self { line: self.line, column: self.column.saturating_add(count(text.chars().count())) },
            Some((before, last)) => Self {
                line: self
                    .line
                    .saturating_add(count(before.bytes().filter(|byte| *byte == b'\n').count() + 1)),
                column: count(last.chars().count()),
            },
        }
    }
}

/// A syntax error of libyaml, with its offset.
#[derive(Debug)]
pub(super) struct SyntaxError {
    pub(super) offset: Offset,
    /// The message of libyaml.
    pub(super) problem: String,
}

/// Style of a scalar, as far as it changes the meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Without quotes.
    Plain,
    /// As a folded block (`>`).
    Folded,
    /// In quotes or as a literal block.
    Quoted,
}

/// A scalar with its spelling.
#[derive(Debug)]
pub(super) struct Scalar<'e> {
    /// The text, with escapes and folding undone.
    pub(super) text: &'e str,
    /// The tag in its long form, if one was given (`!` alone is none).
    pub(super) tag: Option<Cow<'e, str>>,
    pub(super) style: Style,
    /// True for a plain scalar without a tag, also without the lone `!`.
    pub(super) implicit: bool,
    /// The anchor's name.
    pub(super) anchor: Option<Cow<'e, str>>,
}

/// One step through a document.
#[derive(Debug)]
pub(super) enum Event<'e> {
    /// The text begins.
    StreamStart,
    /// The text holds no further document.
    StreamEnd,
    /// A document begins.
    DocumentStart,
    /// A document ends.
    DocumentEnd,
    /// `*name`.
    Alias(Cow<'e, str>),
    /// A scalar.
    Scalar(Scalar<'e>),
    /// A list begins.
    SequenceStart {
        /// Written in brackets.
        flow: bool,
        /// The anchor's name.
        anchor: Option<Cow<'e, str>>,
    },
    /// A list ends.
    SequenceEnd,
    /// A map begins.
    MappingStart {
        /// Written in braces.
        flow: bool,
        /// The anchor's name.
        anchor: Option<Cow<'e, str>>,
    },
    /// A map ends.
    MappingEnd,
}

/// A pull parser over one text.
pub(super) struct Parser<'a> {
    raw: NonNull<sys::yaml_parser_t>,
    event: NonNull<sys::yaml_event_t>,
    text: &'a str,
}

impl<'a> Parser<'a> {
    /// Creates a parser at the beginning of `text`.
    pub(super) fn new(text: &'a str) -> Self {
        let raw = zeroed::<sys::yaml_parser_t>();
        let event = zeroed::<sys::yaml_event_t>();
        // SAFETY: both allocations are live and zeroed. Initialising fails only when memory is
        // exhausted, and then libyaml-rs aborts. The input is live for 'a (invariant 2), and its
        // pointer is non-null even when it is empty. The encoding is set before anything is read.
        unsafe {
            let _always_ok = sys::yaml_parser_initialize(raw.as_ptr());
            sys::yaml_parser_set_encoding(raw.as_ptr(), sys::YAML_UTF8_ENCODING);
            sys::yaml_parser_set_input_string(raw.as_ptr(), text.as_ptr(), text.len() as u64);
        }
        Self { raw, event, text }
    }

    /// Returns the next event; must not be called after [`Event::StreamEnd`] or an error.
    pub(super) fn next(&mut self) -> Result<(Event<'_>, Offset), SyntaxError> {
        // SAFETY: invariant 3 holds before, and yaml_parser_parse zeroes the event before it fills
        // it, so that it holds after, also after a failure.
        let ok = unsafe {
            sys::yaml_event_delete(self.event.as_ptr());
            sys::yaml_parser_parse(self.raw.as_ptr(), self.event.as_ptr()).ok
        };
        if !ok {
            return Err(self.problem());
        }
        // SAFETY: the event is initialised (all fields are plain data, zeroes included), and
        // nothing writes to it while the borrow of self lives (invariant 4).
        let event: &sys::yaml_event_t = unsafe { self.event.as_ref() };
        let offset = event.start_mark.index as Offset;
        let event = convert(event);
        match self.has_json_escape() {
            true => Err(SyntaxError {
                offset,
                problem: "while parsing a quoted scalar: found unknown escape character".to_owned(),
            }),
            false => Ok((event, offset)),
        }
    }

    /// Returns the offset behind the event that [`Self::next`] returned last.
    pub(super) fn end(&self) -> Offset {
        // SAFETY: as in `next`.
        let event: &sys::yaml_event_t = unsafe { self.event.as_ref() };
        event.end_mark.index as Offset
    }

    /// True if the current event is a scalar in double quotes with the escape `\/`. libyaml accepts
    /// it as YAML 1.2; the readers of Kubernetes do not.
    fn has_json_escape(&self) -> bool {
        // SAFETY: as in `next`.
        let event: &sys::yaml_event_t = unsafe { self.event.as_ref() };
        // SAFETY: the union's field is chosen by the event's type.
        let quoted = event.type_ == sys::YAML_SCALAR_EVENT
            && unsafe { event.data.scalar.style } == sys::YAML_DOUBLE_QUOTED_SCALAR_STYLE;
        let range = event.start_mark.index as usize..event.end_mark.index as usize;
        let source = match quoted {
            true => self.text.as_bytes().get(range).unwrap_or_default(),
            false => return false,
        };
        let mut rest = source.iter();
        while rest.any(|byte| *byte == b'\\') {
            if rest.next() == Some(&b'/') {
                return true;
            }
        }
        false
    }

    /// Returns libyaml's last error.
    fn problem(&self) -> SyntaxError {
        // SAFETY: the parser is initialised; problem and context are null or static C strings.
        unsafe {
            let raw = self.raw.as_ref();
            let problem = static_text(raw.problem).unwrap_or("the text is not YAML");
            let problem = match static_text(raw.context) {
                Some(context) => format!("{context}: {problem}"),
                None => problem.to_owned(),
            };
            // Forbidden characters are found before libyaml sets marks, so their offset is in
            // another field.
            let offset = match raw.error {
                sys::YAML_READER_ERROR => raw.problem_offset,
                _ => raw.problem_mark.index,
            };
            SyntaxError { offset: offset as Offset, problem }
        }
    }
}

impl Drop for Parser<'_> {
    fn drop(&mut self) {
        // SAFETY: both were allocated by `zeroed` with these layouts and are released once, here;
        // the memory that the event and the parser own is released before (invariant 3).
        unsafe {
            sys::yaml_event_delete(self.event.as_ptr());
            sys::yaml_parser_delete(self.raw.as_ptr());
            dealloc(self.event.as_ptr().cast(), Layout::new::<sys::yaml_event_t>());
            dealloc(self.raw.as_ptr().cast(), Layout::new::<sys::yaml_parser_t>());
        }
    }
}

/// Returns zeroed memory for a `T` that libyaml initializes; no Rust value of type `T` exists
/// before.
fn zeroed<T>() -> NonNull<T> {
    let layout = Layout::new::<T>();
    // SAFETY: neither of the two types it is used for has size zero.
    let memory = unsafe { alloc_zeroed(layout) };
    NonNull::new(memory.cast()).unwrap_or_else(|| handle_alloc_error(layout))
}

/// Converts an event of libyaml.
fn convert(event: &sys::yaml_event_t) -> Event<'_> {
    let data = &event.data;
    // SAFETY: the union's field is chosen by the event's type, as libyaml filled it; the pointers
    // are null or NUL-terminated strings owned by the event, which lives as long as the result.
    unsafe {
        match event.type_ {
            sys::YAML_STREAM_START_EVENT => Event::StreamStart,
            sys::YAML_DOCUMENT_START_EVENT => Event::DocumentStart,
            sys::YAML_DOCUMENT_END_EVENT => Event::DocumentEnd,
            sys::YAML_ALIAS_EVENT => Event::Alias(name(data.alias.anchor).unwrap_or_default()),
            sys::YAML_SCALAR_EVENT => Event::Scalar(scalar(event)),
            sys::YAML_SEQUENCE_START_EVENT => Event::SequenceStart {
                flow: data.sequence_start.style == sys::YAML_FLOW_SEQUENCE_STYLE,
                anchor: name(data.sequence_start.anchor),
            },
            sys::YAML_SEQUENCE_END_EVENT => Event::SequenceEnd,
            sys::YAML_MAPPING_START_EVENT => Event::MappingStart {
                flow: data.mapping_start.style == sys::YAML_FLOW_MAPPING_STYLE,
                anchor: name(data.mapping_start.anchor),
            },
            sys::YAML_MAPPING_END_EVENT => Event::MappingEnd,
            _ => Event::StreamEnd,
        }
    }
}

/// Converts a scalar event of libyaml.
///
/// # Safety
/// The event must be a scalar event that libyaml filled.
unsafe fn scalar(event: &sys::yaml_event_t) -> Scalar<'_> {
    // SAFETY: promised by the caller.
    let data = unsafe { &event.data.scalar };
    // SAFETY: value points to `length` initialised bytes owned by the event. They are checked, not
    // assumed, to be UTF-8: the check costs little, and escapes are decoded by foreign code.
    let bytes = unsafe { std::slice::from_raw_parts(data.value, data.length as usize) };
    Scalar {
        text: std::str::from_utf8(bytes).unwrap_or("\u{fffd}"),
        // SAFETY: null or NUL-terminated, owned by the event.
        tag: unsafe { name(data.tag) }.filter(|tag| tag != "!"),
        style: match data.style {
            sys::YAML_PLAIN_SCALAR_STYLE => Style::Plain,
            sys::YAML_FOLDED_SCALAR_STYLE => Style::Folded,
            _ => Style::Quoted,
        },
        implicit: data.plain_implicit && data.tag.is_null(),
        // SAFETY: as above.
        anchor: unsafe { name(data.anchor) },
    }
}

/// Returns the text of an event's C string, if it is set. `%` escapes let tags hold any bytes.
///
/// # Safety
/// `text` must be null or NUL-terminated and live as long as the result.
unsafe fn name<'e>(text: *const u8) -> Option<Cow<'e, str>> {
    match text.is_null() {
        true => None,
        // SAFETY: promised by the caller.
        false => Some(unsafe { CStr::from_ptr(text.cast()) }.to_string_lossy()),
    }
}

/// Returns a message of libyaml, which has signed characters on every machine, unlike C.
///
/// # Safety
/// `text` must be null or a static NUL-terminated string.
unsafe fn static_text(text: *const i8) -> Option<&'static str> {
    match text.is_null() {
        true => None,
        // SAFETY: promised by the caller.
        false => unsafe { CStr::from_ptr(text.cast()) }.to_str().ok(),
    }
}
