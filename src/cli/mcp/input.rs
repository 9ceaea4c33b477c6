//! Reads the lines of the client.
//!
//! In: standard input. Out: lines through a bounded channel. A line that is too long is skipped
//! and said to be so; nothing of it is kept.

use std::io::BufRead;

use tokio::sync::mpsc::Sender;

/// The most bytes of a line.
pub(super) const MAX_LINE_BYTES: usize = 1 << 20;

/// A line of the client.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine {
    Text(Vec<u8>),
    TooLong,
}

/// Sends every line until the input ends or nobody listens.
pub(super) fn read_lines(mut input: impl BufRead, lines: &Sender<InputLine>) {
    while let Ok(Some(line)) = next_line(&mut input) {
        let is_blank = matches!(&line, InputLine::Text(text) if text.iter().all(u8::is_ascii_whitespace));
        if !is_blank && lines.blocking_send(line).is_err() {
            return;
        }
    }
}

/// Reads a line without its line break; none at the end of the input.
fn next_line(input: &mut impl BufRead) -> std::io::Result<Option<InputLine>> {
    let (mut line, mut length) = (Vec::new(), 0_usize);
    loop {
        let part = input.fill_buf()?;
        if part.is_empty() {
            return Ok((length > 0).then(|| finish(line, length)));
        }
        let end = part.iter().position(|byte| *byte == b'\n');
        let text = &part[..end.unwrap_or(part.len())];
        let room = MAX_LINE_BYTES.saturating_sub(line.len());
        line.extend_from_slice(&text[..text.len().min(room)]);
        length = length.saturating_add(text.len());
        let used = end.map_or(part.len(), |end| end + 1);
        input.consume(used);
        if end.is_some() {
            return Ok(Some(finish(line, length)));
        }
    }
}

fn finish(line: Vec<u8>, length: usize) -> InputLine {
    if length > MAX_LINE_BYTES { InputLine::TooLong } else { InputLine::Text(line) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_bounded() {
        let mut input = b"a\n\n".to_vec();
        input.extend(vec![b'x'; MAX_LINE_BYTES + 1]);
        input.extend(b"\nlast");
        let mut input = std::io::BufReader::with_capacity(1000, &*input);
        let mut read = || next_line(&mut input).unwrap();
        let text = |text: &str| Some(InputLine::Text(text.as_bytes().to_vec()));
        assert_eq!(read(), text("a"));
        assert_eq!(read(), text(""));
        assert_eq!(read(), Some(InputLine::TooLong));
        assert_eq!(read(), text("last"));
        assert_eq!(read(), None);
    }
}
