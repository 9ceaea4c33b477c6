//! Signed timestamps (RFC 3161): an authority saw a signature at a time.
//!
//! In: the answer of a timestamp authority, the signature, and the authorities of a trust root.
//! Out: the time, or a refusal.

use jiff::Timestamp;
use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};

use crate::certificate::{Authority, Certificate, TIME_STAMPING};
use crate::der::{
    self, Element, GENERALIZED_TIME, INTEGER, OBJECT_ID, OCTET_STRING, Reader, SEQUENCE, SET, tagged,
};
use crate::error::{MAX_TIMESTAMPS, Reason};
use crate::key::PublicKey;

const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
const TIMESTAMP: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x01, 0x04];
const CONTENT_TYPE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x03];
const MESSAGE_DIGEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x04];
/// SHA-256, SHA-384 and SHA-512, but for the last digit.
const SHA2: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];
/// Signatures with ECDSA and RSA, but for the last digit, and with Ed25519.
const WITH_ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
const WITH_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
/// Tag of the name of a signer by its key.
const KEY_ID: u8 = 0x80;

/// The parts of an answer.
struct Token<'a> {
    /// The time and what was seen.
    info: &'a [u8],
    certificates: Vec<&'a [u8]>,
    signer: Element<'a>,
    algorithm: &'static Algorithm,
    attributes: Element<'a>,
    signature: &'a [u8],
}

/// Verifies that an authority of the trust root saw a signature. Returns the time.
pub(crate) fn verify_timestamp(
    answer: &[u8],
    signature: &[u8],
    authorities: &[Authority],
) -> Result<Timestamp, Reason> {
    let refused = Reason::SignedTimestamp;
    let token = parse(answer).ok_or(refused("it cannot be read"))?;
    let (seen_by, seen, time) = parse_info(token.info).ok_or(refused("it cannot be read"))?;
    if digest(seen_by, signature).as_ref() != seen {
        return Err(refused("it is of another signature"));
    }
    if !token.has_attributes() {
        return Err(refused("its signature is of another time"));
    }
    let mut others = token.certificates.clone();
    // An answer may leave the certificate out; if it has one, that counts.
    if others.is_empty() {
        others.extend(authorities.iter().flat_map(|authority| &authority.others).map(|other| &**other));
    }
    let signed = [&[SET], &token.attributes.whole[1..]].concat();
    let mut found = Err(refused("it is not signed by an authority of the trust root"));
    for certificate in others.into_iter().filter_map(|other| Certificate::read(other).ok()) {
        let key = PublicKey::from_der(certificate.key);
        if token.is_by(&certificate) && key.is_some_and(|key| key.verifies(&signed, token.signature)) {
            match certificate.verify(authorities, TIME_STAMPING, time) {
                Ok(_) => return Ok(time),
                Err(Reason::Expired { .. } | Reason::NotYetValid { .. }) => {
                    found = Err(refused("the certificate of the authority was not valid at its time"));
                }
                Err(_) => {}
            }
        }
    }
    found
}

impl Token<'_> {
    /// True if the signed attributes are of this content.
    fn has_attributes(&self) -> bool {
        let mut attributes = Reader::new(self.attributes.content);
        let (mut has_type, mut has_digest) = (false, false);
        while let Some(mut attribute) = attributes.open(SEQUENCE) {
            let (Some(id), Some(mut values)) = (attribute.content(OBJECT_ID), attribute.open(SET)) else {
                return false;
            };
            match id {
                CONTENT_TYPE => has_type = values.content(OBJECT_ID) == Some(TIMESTAMP),
                MESSAGE_DIGEST => {
                    has_digest =
                        values.content(OCTET_STRING) == Some(digest(self.algorithm, self.info).as_ref());
                }
                _ => {}
            }
        }
        has_type && has_digest && attributes.is_at_end()
    }

    /// True if the token names this certificate as its signer's.
    fn is_by(&self, certificate: &Certificate<'_>) -> bool {
        let serial = der::write(INTEGER, certificate.serial);
        // A key needs no name: the signature proves it.
        self.signer.tag == KEY_ID || *self.signer.content == *[certificate.issuer_name, &serial].concat()
    }
}

/// Reads an answer (`TimeStampResp`) and the `SignedData` in it.
fn parse(answer: &[u8]) -> Option<Token<'_>> {
    let mut response = der::open_only(answer, SEQUENCE)?;
    let status = response.open(SEQUENCE)?.content(INTEGER)?;
    // Granted, with changes or without.
    matches!(status, [0 | 1]).then_some(())?;
    let mut content = response.open(SEQUENCE)?;
    (content.content(OBJECT_ID)? == SIGNED_DATA && response.is_at_end()).then_some(())?;
    let mut data = der::open_only(content.content(tagged(0))?, SEQUENCE)?;
    data.content(INTEGER)?;
    hash(data.open(SET)?.open(SEQUENCE)?.content(OBJECT_ID)?)?;
    let mut inner = data.open(SEQUENCE)?;
    (inner.content(OBJECT_ID)? == TIMESTAMP).then_some(())?;
    let info = inner.open(tagged(0))?.content(OCTET_STRING)?;
    let mut certificates = Vec::new();
    if let Some(list) = data.optional(tagged(0)) {
        let mut list = Reader::new(list.content);
        while let Some(certificate) = list.element() {
            (certificates.len() < MAX_TIMESTAMPS).then(|| certificates.push(certificate.whole))?;
        }
        list.is_at_end().then_some(())?;
    }
    data.optional(tagged(1));
    let mut signers = data.open(SET)?;
    let mut signer = signers.open(SEQUENCE)?;
    signer.content(INTEGER)?;
    let name = signer.element().filter(|name| matches!(name.tag, SEQUENCE | KEY_ID))?;
    let algorithm = hash(signer.open(SEQUENCE)?.content(OBJECT_ID)?)?;
    let attributes = signer.optional(tagged(0))?;
    is_known(signer.open(SEQUENCE)?.content(OBJECT_ID)?).then_some(())?;
    let signature = signer.content(OCTET_STRING)?;
    signers.is_at_end().then_some(Token {
        info,
        certificates,
        signer: name,
        algorithm,
        attributes,
        signature,
    })
}

/// Reads the content (`TSTInfo`): the hash of what was seen, and the time.
fn parse_info(info: &[u8]) -> Option<(&'static Algorithm, &[u8], Timestamp)> {
    let mut fields = der::open_only(info, SEQUENCE)?;
    (fields.content(INTEGER)? == [1]).then_some(())?;
    fields.content(OBJECT_ID)?;
    let mut seen = fields.open(SEQUENCE)?;
    let algorithm = hash(seen.open(SEQUENCE)?.content(OBJECT_ID)?)?;
    let seen = seen.content(OCTET_STRING)?;
    fields.content(INTEGER)?;
    let time = parse_time(fields.content(GENERALIZED_TIME)?)?;
    Some((algorithm, seen, time))
}

/// Reads a time such as `20261127101500Z` or `20261127101500.25Z`.
fn parse_time(time: &[u8]) -> Option<Timestamp> {
    let time = std::str::from_utf8(time).ok().filter(|time| time.is_ascii() && time.ends_with('Z'))?;
    let part = |from: usize, to: usize| time.get(from..to);
    let (date, clock) =
        ([part(0, 4)?, part(4, 6)?, part(6, 8)?], [part(8, 10)?, part(10, 12)?, time.get(12..)?]);
    format!("{}T{}", date.join("-"), clock.join(":")).parse().ok()
}

/// True for an algorithm of signatures by keys that can be read; the key decides which it is.
fn is_known(algorithm: &[u8]) -> bool {
    let starts = |start: &[u8], ends: &[u8]| {
        algorithm.strip_prefix(start).is_some_and(|end| matches!(end, [end] if ends.contains(end)))
    };
    starts(WITH_ECDSA, &[2, 3, 4]) || starts(WITH_RSA, &[1, 10, 11, 12, 13]) || algorithm == ED25519
}

fn hash(id: &[u8]) -> Option<&'static Algorithm> {
    match id.strip_prefix(SHA2)? {
        [1] => Some(&SHA256),
        [2] => Some(&SHA384),
        [3] => Some(&SHA512),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_read() {
        let check = |time: &str, expect: Option<&str>| {
            assert_eq!(parse_time(time.as_bytes()).map(|time| time.to_string()).as_deref(), expect, "{time}");
        };
        check("20261127101500Z", Some("2026-11-27T10:15:00Z"));
        check("20261127101500.25Z", Some("2026-11-27T10:15:00.25Z"));
        for wrong in ["", "Z", "20261127101500", "20261327101500Z", "2026112710150Z", "202611271015é0Z"] {
            check(wrong, None);
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            drop(parse(&bytes));
            let _ = parse_info(&bytes);
            let _ = parse_time(&bytes);
        }
    }
}
