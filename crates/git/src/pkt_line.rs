//! Git's pkt-line framing: four hex digits of length, then the data.
//!
//! In: bytes from a server.
//! Out: [`PktLine`]s, or a [`ProtocolError`] if the bytes are not pkt-lines or exceed a bound. Also
//! writes pkt-lines for requests.

use std::io::{self, Read};

/// Maximum number of bytes of a pkt-line, including its length, as defined by the protocol.
const MAX_PACKET_BYTES: usize = 65_520;

/// Error of reading a response. It never contains text of the server.
#[derive(Debug)]
pub(super) enum ProtocolError {
    /// The connection ended or timed out.
    Input(io::Error),
    /// The local side could not store the data.
    Output(io::Error),
    /// The bytes are not a response of a Git server.
    Bad(&'static str),
    /// The response exceeds its bound.
    TooLarge(u64),
    /// The server refused the request.
    Refused,
    /// The server does not have, or does not serve, a requested object.
    NotGiven,
}

/// One pkt-line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PktLine<'a> {
    /// Flush packet: the end of a message.
    Flush,
    /// Delimiter or response-end packet.
    Mark,
    /// Data packet.
    Data(&'a [u8]),
}

/// Reads the pkt-lines of one response.
pub(super) struct PktLineReader<R> {
    input: R,
    buffer: Vec<u8>,
    limit: u64,
    read: u64,
}

impl<R: Read> PktLineReader<R> {
    pub(super) fn new(input: R, limit: u64) -> Self {
        Self { input, buffer: vec![0; MAX_PACKET_BYTES], limit, read: 0 }
    }

    /// Returns the next pkt-line. The end of the input is an error: every response ends with a
    /// flush.
    pub(super) fn next(&mut self) -> Result<PktLine<'_>, ProtocolError> {
        let mut head = [0; 4];
        self.input.read_exact(&mut head).map_err(ProtocolError::Input)?;
        let text = std::str::from_utf8(&head).map_err(|_| ProtocolError::Bad(NO_FRAME))?;
        let length = match usize::from_str_radix(text, 16) {
            Ok(_) if text.starts_with('+') => return Err(ProtocolError::Bad(NO_FRAME)),
            Ok(0) => return Ok(PktLine::Flush),
            Ok(1 | 2) => return Ok(PktLine::Mark),
            Ok(length) if (4..=MAX_PACKET_BYTES).contains(&length) => length - 4,
            Ok(_) | Err(_) => return Err(ProtocolError::Bad(NO_FRAME)),
        };
        self.read += length as u64 + 4;
        if self.read > self.limit {
            return Err(ProtocolError::TooLarge(self.limit));
        }
        let data = &mut self.buffer[..length];
        self.input.read_exact(data).map_err(ProtocolError::Input)?;
        if data.starts_with(b"ERR ") {
            let unknown = [&b"not our ref"[..], b"no such ref", b"unadvertised"];
            let found = unknown.iter().any(|text| data.windows(text.len()).any(|window| window == *text));
            return Err(if found { ProtocolError::NotGiven } else { ProtocolError::Refused });
        }
        Ok(PktLine::Data(data))
    }

    /// Returns the next pkt-line as text without its line break; none at a flush or delimiter.
    pub(super) fn line(&mut self) -> Result<Option<&str>, ProtocolError> {
        match self.next()? {
            PktLine::Flush | PktLine::Mark => Ok(None),
            PktLine::Data(data) => match std::str::from_utf8(data) {
                Ok(text) => Ok(Some(text.strip_suffix('\n').unwrap_or(text))),
                Err(_) => Err(ProtocolError::Bad("a line is not UTF-8")),
            },
        }
    }
}

const NO_FRAME: &str = "it does not send Git's pkt-lines";

/// Writes the pkt-lines of a request.
#[derive(Debug, Default)]
pub(super) struct PktLineWriter(Vec<u8>);

impl PktLineWriter {
    /// Adds a line; lines are short, so their length always fits.
    pub(super) fn add(&mut self, text: &str) {
        self.0.extend_from_slice(format!("{:04x}{text}\n", text.len() + 5).as_bytes());
    }

    /// Adds a line, for chained calls.
    pub(super) fn line(&mut self, text: &str) -> &mut Self {
        self.add(text);
        self
    }

    pub(super) fn delimiter(&mut self) -> &mut Self {
        self.0.extend_from_slice(b"0001");
        self
    }

    pub(super) fn flush(&mut self) -> &mut Self {
        self.0.extend_from_slice(b"0000");
        self
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_are_written() {
        let mut request = PktLineWriter::default();
        request.line("first").delimiter().line("").flush();
        let bytes = request.into_bytes();
        assert_eq!(bytes, b"000afirst\n00010005\n0000");
        let mut packets = PktLineReader::new(&bytes[..], 100);
        assert_eq!(packets.line().unwrap(), Some("first"));
        assert_eq!(packets.next().unwrap(), PktLine::Mark);
        assert_eq!(packets.line().unwrap(), Some(""));
        assert_eq!(packets.next().unwrap(), PktLine::Flush);
        assert!(matches!(packets.next(), Err(ProtocolError::Input(_))));
    }

    #[test]
    fn what_is_not_a_frame_is_refused() {
        let fault = |bytes: &[u8]| {
            PktLineReader::new(bytes, 20).next().map(|packet| format!("{packet:?}")).unwrap_err()
        };
        for bad in [&b"<htm"[..], b"0003", b"+004", b"-004", b"fff5", b"\xff\xff\xff\xff"] {
            assert!(matches!(fault(bad), ProtocolError::Bad(_)), "{bad:?}");
        }
        for short in [&b""[..], b"00", b"0009abc"] {
            assert!(matches!(fault(short), ProtocolError::Input(_)), "{short:?}");
        }
        assert!(matches!(fault(b"0100"), ProtocolError::TooLarge(20)));
        assert!(matches!(fault(b"0009ERR x"), ProtocolError::Refused));
        assert!(matches!(fault(b"0014ERR not our ref "), ProtocolError::NotGiven));
    }
}
