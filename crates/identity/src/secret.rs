//! Text that is never printed and is wiped when it is dropped.
//!
//! In: a token, a key or a signed request.
//! Out: [`SecretText`], which can be read, but not formatted.

use std::fmt;

use zeroize::Zeroizing;

/// A token, or text that contains one.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    /// Takes over the text; it is wiped with the result.
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SecretText {
    fn from(text: &str) -> Self {
        Self::new(text.to_owned())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(..)")
    }
}
