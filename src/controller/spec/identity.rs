//! Validates the cloud that gives the login for a source, and the ServiceAccount for it.
//!
//! In: `provider` and `serviceAccountName` of a source. Out: [`SourceIdentity`], or an error.

use super::{SpecError, ValidatedSource, ValidatedSpec, named, refuse};
use crate::api::CloudProvider;
use crate::source::{AccountName, Cloud};

/// A cloud, and the ServiceAccount whose tokens it accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceIdentity {
    /// The cloud.
    pub cloud: Cloud,
    /// The ServiceAccount; none for the one that acts for the Sync.
    pub account: Option<Box<str>>,
}

/// Returns the identity of the source at `field`, such as `spec.source.oci`.
pub(super) fn identity(
    field: &str,
    provider: Option<Cloud>,
    account: Option<&str>,
    has_secret: bool,
) -> Result<Option<SourceIdentity>, SpecError> {
    let account = named(&format!("{field}.serviceAccountName"), account)?;
    match (provider, account) {
        (None, None) => Ok(None),
        (None, Some(_)) => refuse(
            format!("{field}.serviceAccountName"),
            "write provider, too: it exchanges the tokens of this ServiceAccount",
        ),
        (Some(_), _) if has_secret => refuse(
            format!("{field}.provider"),
            "write either provider or secretRef: the provider gives a login without a Secret",
        ),
        (Some(cloud), account) => Ok(Some(SourceIdentity { cloud, account })),
    }
}

/// Converts the provider of a registry.
pub(super) fn cloud(provider: CloudProvider) -> Cloud {
    match provider {
        CloudProvider::Aws => Cloud::Aws,
        CloudProvider::Gcp => Cloud::Gcp,
        CloudProvider::Azure => Cloud::Azure,
    }
}

/// Returns the name of a ServiceAccount that is used for a Sync; `account` is the one that a field
/// names.
pub(crate) fn account_name(
    valid_spec: &ValidatedSpec,
    namespace: &str,
    account: Option<&str>,
) -> AccountName {
    let own = valid_spec.service_account.as_deref();
    AccountName {
        namespace: namespace.into(),
        name: account.or(own).map(Into::into),
        asker: valid_spec.service_account.clone(),
    }
}

/// Returns the ServiceAccounts that fields name for clouds; none for the one that acts for the
/// Sync. Files that a cloud decrypts are known only if the field is set.
pub(crate) fn cloud_accounts(valid_spec: &ValidatedSpec) -> impl Iterator<Item = Option<&str>> {
    let own = [&valid_spec.identity, &valid_spec.chart_identity].into_iter();
    let sources = own.chain(valid_spec.mounts.iter().map(|mount| &mount.source.identity)).flatten();
    let of_sources = sources.map(|identity| identity.account.as_deref());
    let decryption = valid_spec.decryption.iter().filter(|it| it.account.is_some() || it.secret.is_none());
    of_sources.chain(decryption.map(|decryption| decryption.account.as_deref()))
}

/// Returns what the login for the source depends on: the namespace with the Secret, or with the
/// ServiceAccounts; empty without a login. Mirrors and newest revisions are shared by it.
pub(crate) fn login_owner(valid_spec: &ValidatedSpec, namespace: &str) -> String {
    source_owner(valid_spec, namespace, (valid_spec.secret.as_deref(), valid_spec.identity.as_ref()))
}

/// Same as [`login_owner`], for the source of a mount.
pub(crate) fn mount_owner(valid_spec: &ValidatedSpec, namespace: &str, source: &ValidatedSource) -> String {
    source_owner(valid_spec, namespace, (source.secret.as_deref(), source.identity.as_ref()))
}

fn source_owner(
    valid_spec: &ValidatedSpec,
    namespace: &str,
    login: (Option<&str>, Option<&SourceIdentity>),
) -> String {
    match login {
        (Some(secret), _) => format!("{namespace}/{secret}"),
        (None, Some(identity)) => format!("{namespace}/{}", identity_owner(valid_spec, identity)),
        (None, None) => String::new(),
    }
}

/// Returns what a login of a cloud depends on. No Secret has such a name.
pub(crate) fn identity_owner(valid_spec: &ValidatedSpec, identity: &SourceIdentity) -> String {
    let asker = valid_spec.service_account.as_deref().unwrap_or_default();
    let account = identity.account.as_deref().unwrap_or(asker);
    format!("serviceaccounts/{account}/{asker}")
}
