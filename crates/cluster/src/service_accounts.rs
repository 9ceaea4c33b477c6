//! Requests about ServiceAccounts: their metadata, and tokens for an audience.
//!
//! In: namespace and name.
//! Out: [`AccountMetadata`] and [`AccountToken`]. A token cannot be formatted.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Cluster, kinds};
use crate::api_client::ApiRequest;
use crate::api_error::ApiError;
use moorline_metrics::RequestClass;

/// Lifetime of a token: the shortest that the API server gives. It is exchanged at once.
const TOKEN_SECONDS: u64 = 600;

/// Path of reviews of the own user.
const SELF: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Prefix of the user name of a ServiceAccount.
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// Requests about ServiceAccounts.
#[derive(Clone, Copy)]
pub struct ServiceAccounts<'a>(&'a Cluster);

/// Metadata of a ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountMetadata {
    /// Its uid.
    pub uid: Box<str>,
    /// Its annotations.
    pub annotations: BTreeMap<Box<str>, Box<str>>,
}

/// A token of a ServiceAccount, which is never formatted.
pub struct AccountToken(String);

impl AccountToken {
    /// Returns the token.
    pub fn into_text(self) -> String {
        self.0
    }
}

impl<'a> ServiceAccounts<'a> {
    /// Returns the requests by the identity of a cluster.
    pub fn of(cluster: &'a Cluster) -> Self {
        Self(cluster)
    }

    /// Reads a ServiceAccount; none if it does not exist.
    pub async fn read(&self, namespace: &str, name: &str) -> Result<Option<AccountMetadata>, ApiError> {
        match self.0.0.wire.send(ApiRequest::new(RequestClass::Verify, "get", path(namespace, name))).await {
            Ok(reply) => Ok(Some(metadata(&reply.json()?))),
            Err(failure) if failure.code() == Some(404) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Requests a token for an audience.
    ///
    /// # Guarantees
    ///
    /// One create request without retry. It changes no object.
    ///
    /// # Cancellation
    ///
    /// A token that was created is dropped, and ends by itself.
    ///
    /// # Errors
    ///
    /// Any [`ApiError`].
    pub async fn token(&self, namespace: &str, name: &str, audience: &str) -> Result<AccountToken, ApiError> {
        let spec = json!({"audiences": [audience], "expirationSeconds": TOKEN_SECONDS});
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
        let call =
            ApiRequest::new(RequestClass::Verify, "create", format!("{}/token", path(namespace, name)))
                .content("application/json", body.to_string().into_bytes());
        let answer: Value = self.0.0.wire.send(call).await?.json()?;
        let token = answer.pointer("/status/token").and_then(Value::as_str);
        // The answer is not quoted: it may be a token.
        let bad = || ApiError::InvalidResponse("a token that cannot be read".into());
        token.map(|token| AccountToken(token.to_owned())).ok_or_else(bad)
    }

    /// Returns namespace and name of our own ServiceAccount; none for another user.
    pub async fn own(&self) -> Result<Option<(Box<str>, Box<str>)>, ApiError> {
        let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        let call = ApiRequest::new(RequestClass::Verify, "create", SELF.to_owned())
            .content("application/json", body.to_string().into_bytes());
        let answer: Value = self.0.0.wire.send(call).await?.json()?;
        let user = answer.pointer("/status/userInfo/username").and_then(Value::as_str).unwrap_or_default();
        Ok(account_of(user))
    }
}

fn account_of(user: &str) -> Option<(Box<str>, Box<str>)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
    Some((namespace.into(), name.into()))
}

fn path(namespace: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/serviceaccounts/{}", kinds::escape(name))
}

fn metadata(account: &Value) -> AccountMetadata {
    let uid = account.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().into();
    let annotations = account.pointer("/metadata/annotations").and_then(Value::as_object);
    let annotations = annotations.into_iter().flatten();
    let annotations =
        annotations.filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())));
    AccountMetadata { uid, annotations: annotations.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_known_by_its_user_name() {
        let known = account_of("system:serviceaccount:moorline:daemon");
        assert_eq!(known, Some(("moorline".into(), "daemon".into())));
        assert_eq!(account_of("kubernetes-admin"), None);
    }
}
