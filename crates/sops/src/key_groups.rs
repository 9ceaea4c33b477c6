//! The data key of a file from the keys that are here.
//!
//! In: the groups of keys, and holders of keys. Out: the data key. Any key of a group opens its
//! part. With several groups, the parts are shares of Shamir's scheme over GF(256), and as many as
//! the threshold are needed.

use zeroize::Zeroizing;

use super::error::{Problem, Refusal};
use super::key_source::KeySource;
use super::metadata::Metadata;
use super::secret::{DataKey, SecretBytes};

/// Holder of keys that decrypts data keys: a list of identities, or the answers of a service.
pub trait KeyHolder {
    /// Returns what a key of a file decrypts to, or none if this holder has not that key.
    fn decrypt(&self, source: &KeySource) -> Result<Option<SecretBytes>, KeyRefusal>;
}

/// Reason why a holder cannot decrypt with a key. It must not quote contents.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyRefusal(pub String);

/// Most keys that a message names.
const MAX_NAMED: usize = 5;

/// Returns the data key; asks the holders for no more groups than are needed.
pub(crate) fn data_key(metadata: &Metadata, holders: &[&dyn KeyHolder]) -> Result<DataKey, Refusal> {
    let mut parts = Vec::new();
    let mut tried = Vec::new();
    for group in &metadata.groups {
        if parts.len() == metadata.threshold {
            break;
        }
        match part(group, holders) {
            Ok(part) => parts.push(part),
            Err(reasons) => tried.extend(reasons),
        }
    }
    if parts.len() < metadata.threshold {
        return Err(Refusal::new(metadata.line, no_key(metadata, parts.len(), &tried)));
    }
    let key = match (metadata.groups.len(), parts.pop()) {
        (1, Some(part)) => Ok(part),
        (_, Some(last)) => {
            parts.push(last);
            combine(&parts)
        }
        (_, None) => Err("no part of it is known"),
    };
    key.and_then(|key| DataKey::new(&key).ok_or("it does not have 32 bytes"))
        .map_err(|fault| Refusal::new(metadata.line, Problem::DataKey(fault)))
}

fn no_key(metadata: &Metadata, opened: usize, tried: &[String]) -> Problem {
    let what = match metadata.groups.len() {
        1 => "this file".to_owned(),
        count => {
            format!("{} of its {count} key groups; {opened} are open", metadata.threshold)
        }
    };
    let mut named = tried.get(..MAX_NAMED).unwrap_or(tried).join(", ");
    if tried.len() > MAX_NAMED {
        named.push_str(&format!(", and {} more", tried.len() - MAX_NAMED));
    }
    Problem::NoKey { what: what.into(), tried: named.into() }
}

/// Returns the part of a group, or each key with the reason why it does not open it.
fn part(group: &[KeySource], holders: &[&dyn KeyHolder]) -> Result<SecretBytes, Vec<String>> {
    let mut sources: Vec<&KeySource> = group.iter().collect();
    sources.sort_by_key(|source| source.rank());
    let mut tried = Vec::new();
    for source in sources {
        let mut reason = "not here".to_owned();
        for holder in holders {
            match holder.decrypt(source) {
                Ok(Some(part)) => return Ok(part),
                Ok(None) => {}
                Err(KeyRefusal(refusal)) => reason = refusal,
            }
        }
        tried.push(format!("{} ({reason})", source.name()));
    }
    Err(tried)
}

/// Combines shares: each has a byte for each byte of the secret, and its point as the last byte.
fn combine(shares: &[SecretBytes]) -> Result<SecretBytes, &'static str> {
    let length = DataKey::BYTES + 1;
    if shares.iter().any(|share| share.as_bytes().len() != length) {
        return Err("a part does not have 33 bytes");
    }
    let points: Vec<u8> = shares.iter().filter_map(|share| share.as_bytes().last().copied()).collect();
    let twice = points.iter().enumerate().any(|(at, point)| points[..at].contains(point));
    if twice || points.contains(&0) {
        return Err("two parts are the same");
    }
    let mut secret = Zeroizing::new(vec![0_u8; DataKey::BYTES]);
    for (share, point) in shares.iter().zip(&points) {
        let weight = weight(*point, &points);
        for (byte, value) in secret.iter_mut().zip(share.as_bytes()) {
            *byte ^= multiply(*value, weight);
        }
    }
    Ok(SecretBytes::new(std::mem::take(&mut *secret)))
}

/// Returns the weight of a point in the polynomial's value at zero.
fn weight(point: u8, points: &[u8]) -> u8 {
    let others = points.iter().filter(|other| **other != point);
    // Subtraction is addition here.
    others.fold(1, |product, other| multiply(product, multiply(*other, inverse(*other ^ point))))
}

/// Multiplies in GF(256) with the polynomial of AES, in a time that does not depend on the values.
fn multiply(a: u8, b: u8) -> u8 {
    let (mut product, mut shifted) = (0_u8, a);
    for bit in 0..8 {
        product ^= shifted & 0_u8.wrapping_sub((b >> bit) & 1);
        let carry = 0_u8.wrapping_sub(shifted >> 7);
        shifted = (shifted << 1) ^ (carry & 0x1b);
    }
    product
}

/// Returns the inverse in GF(256): the power of 254.
fn inverse(value: u8) -> u8 {
    let mut power = value;
    let mut product = 1;
    for _ in 1..8 {
        power = multiply(power, power);
        product = multiply(product, power);
    }
    product
}

#[cfg(test)]
mod tests {
    use super::super::rule::Rule;
    use super::*;

    /// Shares of a secret on the line `secret + slope * x`.
    fn share(point: u8) -> SecretBytes {
        let mut bytes: Vec<u8> = (0..32).map(|at| at ^ multiply(at * 3 + 1, point)).collect();
        bytes.push(point);
        SecretBytes::new(bytes)
    }

    fn secret() -> Vec<u8> {
        (0..32).collect()
    }

    struct Answers(Vec<(&'static str, u8)>);

    impl KeyHolder for Answers {
        fn decrypt(&self, source: &KeySource) -> Result<Option<SecretBytes>, KeyRefusal> {
            let KeySource::Pgp { enc, .. } = source else { return Err(KeyRefusal("not served".into())) };
            let point = self.0.iter().find(|(name, _)| name == enc).map(|(_, point)| *point);
            Ok(point.map(|point| if point == 0 { SecretBytes::new(secret()) } else { share(point) }))
        }
    }

    fn metadata(groups: &[&[&str]], threshold: usize) -> Metadata {
        let key = |name: &&str| KeySource::Pgp { fingerprint: format!("F-{name}"), enc: (*name).into() };
        Metadata {
            line: 4,
            groups: groups.iter().map(|group| group.iter().map(key).collect()).collect(),
            threshold,
            rule: Rule::default(),
            mac: String::new(),
            mac_line: 5,
            mac_only_encrypted: false,
            last_modified: String::new(),
        }
    }

    fn opened(metadata: &Metadata, answers: &[(&'static str, u8)]) -> Result<Vec<u8>, String> {
        let holder = Answers(answers.to_vec());
        let key = data_key(metadata, &[&holder]).map_err(|refusal| refusal.in_file("f").to_string())?;
        Ok(key.as_bytes().to_vec())
    }

    #[test]
    fn one_key_of_one_group_is_enough() {
        let file = metadata(&[&["a", "b"]], 1);
        assert_eq!(opened(&file, &[("b", 0)]), Ok(secret()));
        let refusal = "f:4: no key here opens this file: OpenPGP key F-a (not here), OpenPGP key F-b (not here); \
                       add a key, or run `sops updatekeys` with one that is here";
        assert_eq!(opened(&file, &[]), Err(refusal.into()));
    }

    #[test]
    fn shares_are_combined() {
        let file = metadata(&[&["a"], &["b"], &["c", "d"]], 2);
        assert_eq!(opened(&file, &[("a", 1), ("b", 2)]), Ok(secret()));
        assert_eq!(opened(&file, &[("a", 1), ("d", 200)]), Ok(secret()));
        assert_eq!(opened(&file, &[("b", 2), ("c", 77)]), Ok(secret()));
        let refusal = opened(&file, &[("c", 77)]).expect_err("one is not enough");
        assert!(
            refusal.contains("opens 2 of its 3 key groups; 1 are open: OpenPGP key F-a (not here)"),
            "{refusal}"
        );
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let file = metadata(&[&["a"], &["b"]], 2);
        let fault = |text| {
            format!("f:4: the data key cannot be put together: {text}; encrypt the file again with sops")
        };
        assert_eq!(opened(&file, &[("a", 1), ("b", 1)]), Err(fault("two parts are the same")));
        assert_eq!(opened(&file, &[("a", 1), ("b", 0)]), Err(fault("a part does not have 33 bytes")));
        assert_eq!(opened(&metadata(&[&["a"]], 1), &[("a", 1)]), Err(fault("it does not have 32 bytes")));
    }

    #[test]
    fn every_element_has_its_inverse() {
        for value in 1..=255 {
            assert_eq!(multiply(value, inverse(value)), 1, "{value}");
        }
        // The example of FIPS 197, section 4.2.
        assert_eq!(multiply(0x57, 0x83), 0xc1);
    }
}
