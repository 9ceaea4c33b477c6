//! A login over http.
//!
//! In: a user and a password, or a token.
//! Out: the value of the `Authorization` header.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::sensitive::Sensitive;

/// A login over http.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HttpLogin {
    Basic { username: Sensitive<String>, password: Sensitive<String> },
    Bearer(Sensitive<String>),
}

impl HttpLogin {
    /// Returns the value of the `Authorization` header.
    pub(super) fn authorization(&self) -> Sensitive<String> {
        Sensitive::new(match self {
            Self::Basic { username, password } => {
                let pair = format!("{}:{}", username.reveal(), password.reveal());
                format!("Basic {}", STANDARD.encode(pair))
            }
            Self::Bearer(token) => format!("Bearer {}", token.reveal()),
        })
    }
}
