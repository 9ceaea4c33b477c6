//! Bech32 (BIP 173), in which age writes keys.

use zeroize::Zeroizing;

use super::super::secret::SecretBytes;

const ALPHABET: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
/// Length of the checksum, in characters.
const CHECKSUM: usize = 6;
/// Longest text that is decoded.
const MAX_CHARS: usize = 200;

/// Returns the prefix in lower case, and the bytes. None if the text or its checksum is wrong.
pub(super) fn decode(text: &str) -> Option<(String, SecretBytes)> {
    let mixed = text.bytes().any(|byte| byte.is_ascii_lowercase())
        && text.bytes().any(|byte| byte.is_ascii_uppercase());
    if mixed || text.len() > MAX_CHARS || !text.bytes().all(|byte| (33..127).contains(&byte)) {
        return None;
    }
    // Each copy of a secret is wiped, and none is moved because it grows.
    let lower = Zeroizing::new(text.to_ascii_lowercase());
    let (prefix, data) = lower.rsplit_once('1')?;
    let mut values = Zeroizing::new(Vec::with_capacity(data.len()));
    for letter in data.bytes() {
        values.push(value(letter)?);
    }
    let payload = values.len().checked_sub(CHECKSUM)?;
    if prefix.is_empty() || checksum(prefix, &values) != 1 {
        return None;
    }
    Some((prefix.to_owned(), SecretBytes::new(regroup(values.get(..payload)?, 5, 8)?)))
}

/// Returns the text of bytes with a prefix in lower case.
pub(super) fn encode(prefix: &str, bytes: &[u8]) -> String {
    let mut values = padded(bytes);
    let payload = values.len();
    values.resize(payload + CHECKSUM, 0);
    let sum = checksum(prefix, &values) ^ 1;
    values.truncate(payload);
    values.extend((0..CHECKSUM).map(|at| ((sum >> (5 * (CHECKSUM - 1 - at))) & 31) as u8));
    let letters = values.iter().map(|value| char::from(ALPHABET[usize::from(*value & 31)]));
    format!("{prefix}1{}", letters.collect::<String>())
}

fn value(letter: u8) -> Option<u8> {
    ALPHABET.iter().position(|other| *other == letter).and_then(|at| u8::try_from(at).ok())
}

/// Returns groups of five bits, the last one filled with zeros.
fn padded(bytes: &[u8]) -> Vec<u8> {
    let (mut groups, mut bits, mut held) = (Vec::new(), 0_u32, 0_u32);
    for byte in bytes {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            groups.push(((held >> bits) & 31) as u8);
        }
    }
    if bits > 0 {
        groups.push(((held << (5 - bits)) & 31) as u8);
    }
    groups
}

/// Regroups bits; what is left over must be zeros, and less than a group.
fn regroup(values: &[u8], from: u32, to: u32) -> Option<Vec<u8>> {
    // The capacity is never exceeded.
    let mut groups = Vec::with_capacity(values.len());
    let (mut bits, mut held) = (0_u32, 0_u32);
    for value in values {
        held = ((held << from) | u32::from(*value)) & 0xffff;
        bits += from;
        if bits >= to {
            bits -= to;
            groups.push(((held >> bits) & 0xff) as u8);
        }
    }
    let rest = held & ((1 << bits) - 1);
    (bits < from && rest == 0).then_some(groups)
}

/// The checksum's polynomial over prefix and values; 1 for a right text.
fn checksum(prefix: &str, values: &[u8]) -> u32 {
    const GENERATOR: [u32; 5] = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3];
    let high = prefix.bytes().map(|byte| byte >> 5);
    let low = prefix.bytes().map(|byte| byte & 31);
    let all = high.chain([0]).chain(low).chain(values.iter().copied());
    all.fold(1, |sum: u32, value| {
        let top = sum >> 25;
        let next = ((sum & 0x01ff_ffff) << 5) ^ u32::from(value);
        (0..5).filter(|bit| (top >> bit) & 1 == 1).fold(next, |next, bit| next ^ GENERATOR[bit as usize])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_decoded_and_encoded() {
        let bytes: Vec<u8> = (0..32).collect();
        let text = encode("age", &bytes);
        let (prefix, found) = decode(&text).expect("is right");
        assert_eq!((prefix.as_str(), found.as_bytes()), ("age", bytes.as_slice()));
        assert!(decode(&text.to_ascii_uppercase()).is_some());
        // Two valid texts of BIP 173.
        assert_eq!(decode("A12UEL5L").map(|(prefix, _)| prefix).as_deref(), Some("a"));
        assert_eq!(encode("a", &[]), "a12uel5l");
    }

    #[test]
    fn wrong_texts_are_refused() {
        let text = encode("age", &[7; 32]);
        for at in 4..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'q' { b'p' } else { b'q' };
            let changed = String::from_utf8(bytes).expect("is ASCII");
            assert!(decode(&changed).is_none(), "{changed}");
        }
        let mixed = text.replacen("age", "Age", 1);
        for wrong in ["", "1", "age1", "10a06t8", &mixed, "ageé1qqqqqq"] {
            assert!(decode(wrong).is_none(), "{wrong}");
        }
    }
}
