//! A ServiceAccount whose tokens are exchanged.
//!
//! In: its name, and the account on whose behalf it is used; what requests its tokens.
//! Out: a [`CloudAccount`]. Two of them are equal if their names are.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use moorline_identity::SecretText;

use super::renewed::Renewed;
use crate::error::Error;

/// Time for which uid and annotations of a ServiceAccount are not read again.
const FACTS_LIFETIME: Duration = Duration::from_secs(60);

/// Name of a ServiceAccount, and of the one that uses it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountName {
    /// Namespace of the Sync.
    pub namespace: Box<str>,
    /// The ServiceAccount; none for that of the daemon itself.
    pub name: Option<Box<str>>,
    /// The ServiceAccount that acts for the Sync; none if the daemon acts itself.
    pub asker: Option<Box<str>>,
}

/// Uid and annotations of a ServiceAccount.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountFacts {
    /// Namespace and name, as they are shown.
    pub shown: Box<str>,
    /// Its uid: an account of the same name that is created later has another.
    pub uid: Box<str>,
    /// Its annotations.
    pub annotations: BTreeMap<Box<str>, Box<str>>,
}

/// Requests about ServiceAccounts. They block until `by` at most. An error is the rest of a
/// sentence, and quotes no token.
pub trait AccountTokens: Send + Sync {
    /// Reads a ServiceAccount, and checks that it may be used on behalf of the other.
    fn facts(&self, account: &AccountName, by: Instant) -> Result<AccountFacts, Box<str>>;

    /// Requests a token for an audience.
    fn token(
        &self,
        account: &AccountName,
        facts: &AccountFacts,
        audience: &str,
        by: Instant,
    ) -> Result<SecretText, Box<str>>;
}

/// A ServiceAccount, and what requests its tokens; cheap to clone.
#[derive(Clone)]
pub struct CloudAccount(Arc<Inner>);

struct Inner {
    name: AccountName,
    tokens: Arc<dyn AccountTokens>,
    facts: Renewed<AccountFacts>,
}

impl CloudAccount {
    /// Creates an account.
    pub fn new(name: AccountName, tokens: Arc<dyn AccountTokens>) -> Self {
        Self(Arc::new(Inner { name, tokens, facts: Renewed::default() }))
    }

    /// Returns the names, with which everything begins that a token depends on.
    pub fn name(&self) -> &AccountName {
        &self.0.name
    }

    /// Returns uid and annotations.
    pub(super) fn facts(&self, cloud: &'static str, by: Instant) -> Result<Arc<AccountFacts>, Error> {
        self.0.facts.get(by, || {
            let facts = self.0.tokens.facts(&self.0.name, by);
            let facts =
                facts.map_err(|problem| Error::NoIdentity { holder: self.shown(), cloud, problem })?;
            Ok((facts, FACTS_LIFETIME))
        })
    }

    /// Requests a token for an audience.
    pub(super) fn token(
        &self,
        facts: &AccountFacts,
        (cloud, audience): (&'static str, &str),
        by: Instant,
    ) -> Result<SecretText, Error> {
        let token = self.0.tokens.token(&self.0.name, facts, audience, by);
        token.map_err(|problem| Error::NoIdentity { holder: self.shown(), cloud, problem })
    }

    /// Returns the account as messages name it.
    pub(super) fn shown(&self) -> Box<str> {
        let AccountName { namespace, name, .. } = &self.0.name;
        match name {
            Some(name) => format!("the ServiceAccount {namespace}/{name}").into(),
            None => "the ServiceAccount of the daemon".into(),
        }
    }
}

impl PartialEq for CloudAccount {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for CloudAccount {}

impl fmt::Debug for CloudAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CloudAccount").field(&self.0.name).finish()
    }
}
