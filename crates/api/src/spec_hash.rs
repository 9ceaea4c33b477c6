//! The hash of an object as rendered, as it is annotated on the object.
//!
//! In and out: [`SpecHash`] and its text. A hash is compared in the form in which it was recorded, so that a new form, or a new key,
//! rewrites no object that did not change.

/// The hash of an object as rendered: `v1:` and 64 hex digits, or `k1:`, the name of a key, `:` and 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpecHash {
    /// The form that was hashed.
    pub form: CanonicalForm,
    /// The hash of the form.
    pub digest: [u8; 32],
}

/// The forms that this program can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CanonicalForm {
    /// SHA-256 of compact JSON with sorted keys; see `desired/canonical.rs`.
    V1,
    /// The same, hashed once more with the key of this name: values of Secrets went into it, and could be guessed without.
    Keyed([u8; 4]),
}

impl SpecHash {
    /// Reads an annotation; none for a form that this program does not know.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(digits) = text.strip_prefix("v1:") {
            return Some(Self { form: CanonicalForm::V1, digest: hex(digits)? });
        }
        let (key, digits) = text.strip_prefix("k1:")?.split_once(':')?;
        Some(Self { form: CanonicalForm::Keyed(hex(key)?), digest: hex(digits)? })
    }
}

/// Exactly as many bytes, in hex digits.
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
