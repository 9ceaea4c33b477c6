//! The rule by which a file chooses the values that are encrypted.
//!
//! In: a rule of the metadata, and the keys on the path of a value.
//! Out: the answer if the value must be encrypted. A rule holds for a value if any key on its path
//! fits. Rules about comments are not evaluated: comments are placed differently by each writer, so
//! a value counts as encrypted if it has that form, and the MAC decides. So the MAC has to cover
//! all values: with `mac_only_encrypted`, such a rule is refused.

use regex::bytes::{Regex, RegexBuilder};

/// Largest program of a regular expression, in bytes.
const MAX_PROGRAM_BYTES: usize = 1 << 20;

/// A rule for the choice of values.
#[derive(Debug, Clone)]
pub(crate) enum Rule {
    /// Everything is encrypted but paths with a key that ends so.
    UnencryptedSuffix(String),
    /// Only paths with a key that ends so are encrypted.
    EncryptedSuffix(String),
    /// Everything is encrypted but paths with a key that fits.
    UnencryptedRegex(Regex),
    /// Only paths with a key that fits are encrypted.
    EncryptedRegex(Regex),
    /// Comments decide.
    Comments,
}

impl Default for Rule {
    fn default() -> Self {
        Self::UnencryptedSuffix("_unencrypted".to_owned())
    }
}

impl Rule {
    /// True if the rule fits a key.
    pub(crate) fn fits(&self, key: &str) -> bool {
        match self {
            Self::UnencryptedSuffix(suffix) | Self::EncryptedSuffix(suffix) => key.ends_with(suffix.as_str()),
            Self::UnencryptedRegex(regex) | Self::EncryptedRegex(regex) => regex.is_match(key.as_bytes()),
            Self::Comments => false,
        }
    }

    /// True if a value must be encrypted; `fits` says if the rule fits a key on its path. None if
    /// the form of the value decides.
    pub(crate) fn encrypts(&self, fits: bool) -> Option<bool> {
        match self {
            Self::UnencryptedSuffix(_) | Self::UnencryptedRegex(_) => Some(!fits),
            Self::EncryptedSuffix(_) | Self::EncryptedRegex(_) => Some(fits),
            Self::Comments => None,
        }
    }
}

/// Compiles a regular expression with the classes of Go, which are those of ASCII.
pub(crate) fn compile(text: &str) -> Option<Regex> {
    RegexBuilder::new(text).unicode(!text.is_ascii()).size_limit(MAX_PROGRAM_BYTES).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_choose_by_key() {
        let regex = |text| compile(text).expect("compiles");
        let cases = [
            (Rule::default(), "a_unencrypted", Some(false)),
            (Rule::default(), "a", Some(true)),
            (Rule::EncryptedSuffix("_enc".into()), "a_enc", Some(true)),
            (Rule::EncryptedSuffix("_enc".into()), "a", Some(false)),
            (Rule::EncryptedRegex(regex("^(data|stringData)$")), "data", Some(true)),
            (Rule::EncryptedRegex(regex("^(data|stringData)$")), "metadata", Some(false)),
            (Rule::UnencryptedRegex(regex("(?i)^KIND$")), "kind", Some(false)),
            (Rule::UnencryptedRegex(regex(r"^\d+$")), "12", Some(false)),
            (Rule::UnencryptedRegex(regex("^[éà]$")), "é", Some(false)),
            (Rule::Comments, "a", None),
        ];
        for (rule, key, expect) in cases {
            assert_eq!(rule.encrypts(rule.fits(key)), expect, "{rule:?} {key}");
        }
    }

    #[test]
    fn endless_expressions_do_not_compile() {
        assert!(compile("(a{1000}){1000}").is_none());
        assert!(compile("(").is_none());
    }
}
