//! Logins and data keys of clouds for a ServiceAccount, without a password.
//!
//! In: a ServiceAccount, whose tokens the caller of this crate requests, and what it is for: a
//! registry, a repository, a data key.
//! Out: the login, or the data key. One exchange runs at a time for each set of inputs, and all
//! callers share its result. Addresses are fixed or the operator's: a file or a ServiceAccount
//! names none.

mod account;
mod cloud_login;
mod kms;
mod renewed;
mod sessions;

pub use account::{AccountFacts, AccountName, AccountTokens, CloudAccount};
pub use cloud_login::{Cloud, CloudLogin};
pub use kms::{KmsCiphertext, KmsError, KmsLogin};
pub(super) use kms::{decrypt, server};
pub(super) use sessions::{Clouds, send};
