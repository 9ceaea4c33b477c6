//! Git's frames: four hex digits of length, then the data.
//!
//! In: bytes from a server. Out: [`Packet`]s, and [`Fault`] when the bytes are not frames or exceed a bound.
//! Also the writer of frames for requests.

use std::io::{self, Read};

/// The most bytes of one frame, its length included, as the protocol has it.
const MAX_PACKET_BYTES: usize = 65_520;

/// Why an answer cannot be read. What a server wrote is never part of it.
#[derive(Debug)]
pub(super) enum Fault {
    /// The connection ended, or took too long.
    Input(io::Error),
    /// The local side could not take what was read.
    Output(io::Error),
    /// The bytes are no answer of a Git server.
    Bad(&'static str),
    /// More bytes than allowed.
    TooLarge(u64),
    /// The server refuses the request.
    Refused,
    /// The server does not know, or does not give out, an object that was asked for.
    NotGiven,
}

/// One frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Packet<'a> {
    /// The end of a message.
    Flush,
    /// The end of a section, or of a whole answer.
    Mark,
    /// Bytes.
    Data(&'a [u8]),
}

/// Frames of one answer.
pub(super) struct Packets<R> {
    input: R,
    buffer: Vec<u8>,
    limit: u64,
    read: u64,
}

impl<R: Read> Packets<R> {
    pub(super) fn new(input: R, limit: u64) -> Self {
        Self { input, buffer: vec![0; MAX_PACKET_BYTES], limit, read: 0 }
    }

    /// The next frame. An end of the bytes is a fault: every answer ends with a flush.
    pub(super) fn next(&mut self) -> Result<Packet<'_>, Fault> {
        let mut head = [0; 4];
        self.input.read_exact(&mut head).map_err(Fault::Input)?;
        let text = std::str::from_utf8(&head).map_err(|_| Fault::Bad(NO_FRAME))?;
        let length = match usize::from_str_radix(text, 16) {
            Ok(_) if text.starts_with('+') => return Err(Fault::Bad(NO_FRAME)),
            Ok(0) => return Ok(Packet::Flush),
            Ok(1 | 2) => return Ok(Packet::Mark),
            Ok(length) if (4..=MAX_PACKET_BYTES).contains(&length) => length - 4,
            Ok(_) | Err(_) => return Err(Fault::Bad(NO_FRAME)),
        };
        self.read += length as u64 + 4;
        if self.read > self.limit {
            return Err(Fault::TooLarge(self.limit));
        }
        let data = &mut self.buffer[..length];
        self.input.read_exact(data).map_err(Fault::Input)?;
        if data.starts_with(b"ERR ") {
            let unknown = [&b"not our ref"[..], b"no such ref", b"unadvertised"];
            let found = unknown.iter().any(|text| data.windows(text.len()).any(|window| window == *text));
            return Err(if found { Fault::NotGiven } else { Fault::Refused });
        }
        Ok(Packet::Data(data))
    }

    /// The next frame as a line of text without its line break; none at a flush or mark.
    pub(super) fn line(&mut self) -> Result<Option<&str>, Fault> {
        match self.next()? {
            Packet::Flush | Packet::Mark => Ok(None),
            Packet::Data(data) => match std::str::from_utf8(data) {
                Ok(text) => Ok(Some(text.strip_suffix('\n').unwrap_or(text))),
                Err(_) => Err(Fault::Bad("a line is not UTF-8")),
            },
        }
    }
}

const NO_FRAME: &str = "it sends something else than Git's frames";

/// A request under construction.
#[derive(Debug, Default)]
pub(super) struct Request(Vec<u8>);

impl Request {
    /// Adds one line; lines are short, so that their length always fits.
    pub(super) fn add(&mut self, text: &str) {
        self.0.extend_from_slice(format!("{:04x}{text}\n", text.len() + 5).as_bytes());
    }

    /// Adds one line, for chains.
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
        let mut request = Request::default();
        request.line("first").delimiter().line("").flush();
        let bytes = request.into_bytes();
        assert_eq!(bytes, b"000afirst\n00010005\n0000");
        let mut packets = Packets::new(&bytes[..], 100);
        assert_eq!(packets.line().unwrap(), Some("first"));
        assert_eq!(packets.next().unwrap(), Packet::Mark);
        assert_eq!(packets.line().unwrap(), Some(""));
        assert_eq!(packets.next().unwrap(), Packet::Flush);
        assert!(matches!(packets.next(), Err(Fault::Input(_))));
    }

    #[test]
    fn what_is_not_a_frame_is_refused() {
        let fault =
            |bytes: &[u8]| Packets::new(bytes, 20).next().map(|packet| format!("{packet:?}")).unwrap_err();
        for bad in [&b"<htm"[..], b"0003", b"+004", b"-004", b"fff5", b"\xff\xff\xff\xff"] {
            assert!(matches!(fault(bad), Fault::Bad(_)), "{bad:?}");
        }
        for short in [&b""[..], b"00", b"0009abc"] {
            assert!(matches!(fault(short), Fault::Input(_)), "{short:?}");
        }
        assert!(matches!(fault(b"0100"), Fault::TooLarge(20)));
        assert!(matches!(fault(b"0009ERR x"), Fault::Refused));
        assert!(matches!(fault(b"0014ERR not our ref "), Fault::NotGiven));
    }
}
