//! Hash of a rendered object, as its annotation stores it.
//!
//! In and out: [`SpecHash`] and its text. A hash is compared in the form in which it was recorded,
//! so that a new form or a new key does not rewrite unchanged objects.

/// Hash of a rendered object: `v1:` and 64 hex digits, or `k1:`, the name of a key, `:` and 64 hex
/// digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpecHash {
    /// Form that was hashed.
    pub form: CanonicalForm,
    /// Hash of that form.
    pub digest: [u8; 32],
}

/// Canonical forms that this program can produce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CanonicalForm {
    /// SHA-256 of compact JSON with sorted keys; see `crates/engine/src/desired/canonical.rs`.
    V1,
    /// The same, hashed again with the key of this name: it covers values of Secrets, which a plain
    /// hash would let an attacker guess.
    Keyed([u8; 4]),
}

impl SpecHash {
    /// Parses an annotation; none for a form that this program does not know.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(digits) = text.strip_prefix("v1:") {
            return Some(Self { form: CanonicalForm::V1, digest: hex(digits)? });
        }
        let (key, digits) = text.strip_prefix("k1:")?.split_once(':')?;
        Some(Self { form: CanonicalForm::Keyed(hex(key)?), digest: hex(digits)? })
    }
}

/// Decodes exactly `N` bytes from hex digits.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

impl std::fmt::Display for SpecHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.form {
            CanonicalForm::V1 => f.write_str("v1:")?,
            CanonicalForm::Keyed(key) => {
                f.write_str("k1:")?;
                key.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str(":")?;
            }
        }
        self.digest.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for SpecHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_reads_back_as_it_was_written() {
        let hash = SpecHash { form: CanonicalForm::V1, digest: [0xa5; 32] };
        assert_eq!(hash.to_string(), format!("v1:{}", "a5".repeat(32)));
        assert_eq!(SpecHash::parse(&hash.to_string()), Some(hash));
        for text in
            ["", "v1:", "v2:a5", &format!("v1:{}", "zz".repeat(32)), &format!("v1:{}", "é".repeat(32))]
        {
            assert_eq!(SpecHash::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_keyed_hash_names_its_key() {
        let hash = SpecHash { form: CanonicalForm::Keyed([1, 2, 0xa0, 0xff]), digest: [0xa5; 32] };
        assert_eq!(hash.to_string(), format!("k1:0102a0ff:{}", "a5".repeat(32)));
        assert_eq!(SpecHash::parse(&hash.to_string()), Some(hash));
        for text in ["k1:", "k1:0102a0ff", "k1:0102a0:00", "k1::"] {
            assert_eq!(SpecHash::parse(text), None, "{text}");
        }
    }
}
