//! Asks the key service of a cloud to decrypt a data key.
//!
//! In: the key and the encrypted data key as a file names them; a ServiceAccount, or credentials of
//! a Secret.
//! Out: the data key, or [`KmsError`]. One request for each data key, without redirects. The
//! host follows from the name of the key; of a key vault, the operator allows its domain.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use moorline_identity::aws::AwsRole;
use moorline_identity::aws_kms::AwsKey;
use moorline_identity::azure::{AzureClient, AzureService, read_token};
use moorline_identity::azure_vault::VaultKey;
use moorline_identity::gcp_kms::{self, GcpKeyFile};
use moorline_identity::sigv4::AwsCredentials;
use moorline_identity::{CloudEndpoints, ExchangeError, ExchangeRequest, SecretBytes, SecretText, gcp};

use super::account::CloudAccount;
use super::sessions::{
    AWS, AZURE, AccountSessions, GCP, Holder, SESSION_NAME, Session, bearer, exchange_aws, exchange_bearer,
    send,
};
use crate::error::Error;
use crate::http::SharedNetwork;

/// Most bytes of an encrypted data key.
const MAX_CIPHERTEXT_BYTES: usize = 64 * 1024;

/// A data key, as a file names it and the key that encrypted it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KmsCiphertext {
    /// Of AWS KMS.
    Aws {
        /// ARN of the key.
        arn: Box<str>,
        /// ARN of a role to assume first; may be empty.
        role: Box<str>,
        /// The encryption context.
        context: BTreeMap<String, String>,
        /// The encrypted data key.
        ciphertext: Box<str>,
    },
    /// Of Google Cloud KMS.
    Gcp {
        /// Name of the key.
        resource: Box<str>,
        /// The encrypted data key.
        ciphertext: Box<str>,
    },
    /// Of Azure Key Vault.
    Azure {
        /// Address of the vault.
        vault: Box<str>,
        /// Name of the key.
        name: Box<str>,
        /// Its version.
        version: Box<str>,
        /// The encrypted data key.
        ciphertext: Box<str>,
    },
}

/// Credentials for key services: those of a Secret, else those of a ServiceAccount.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KmsLogin {
    /// The ServiceAccount.
    pub account: Option<CloudAccount>,
    /// Access key of AWS.
    pub aws: Option<AwsCredentials>,
    /// Key of a service account of Google.
    pub gcp: Option<GcpKeyFile>,
    /// Application of Azure, and its secret.
    pub azure: Option<(AzureClient, SecretText)>,
}

/// Error of asking for a data key. It quotes nothing of a service.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KmsError {
    /// There are no credentials for the cloud.
    #[error("there are no credentials of {0}: neither a ServiceAccount nor an entry of the Secret")]
    NoCredentials(&'static str),
    /// The key cannot be asked for, or the answer has no data key.
    #[error("{service}: {problem}")]
    Refused {
        /// The cloud.
        service: &'static str,
        /// The problem.
        problem: ExchangeError,
    },
    /// There is no login, or no answer.
    #[error(transparent)]
    Server(#[from] Error),
}

impl KmsError {
    /// True if the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NoCredentials(_) => false,
            Self::Refused { problem, .. } => {
                matches!(problem, ExchangeError::Unavailable(_) | ExchangeError::Refused { .. })
            }
            Self::Server(error) => !error.needs_new_input(),
        }
    }
}

/// Returns the name of the server for the shares of the workers.
pub(crate) fn server(wanted: &KmsCiphertext) -> Arc<str> {
    match wanted {
        KmsCiphertext::Aws { arn, .. } => {
            let region = arn.split(':').nth(3).unwrap_or_default();
            format!("AWS KMS {region}").into()
        }
        KmsCiphertext::Gcp { .. } => "Google Cloud KMS".into(),
        KmsCiphertext::Azure { vault, .. } => vault.as_ref().into(),
    }
}

/// Asks for a data key.
pub(crate) fn decrypt(
    wanted: &KmsCiphertext,
    login: &KmsLogin,
    network: &SharedNetwork,
    by: Instant,
) -> Result<SecretBytes, KmsError> {
    let asking = Asking { login, network, by };
    let (KmsCiphertext::Aws { ciphertext, .. }
    | KmsCiphertext::Gcp { ciphertext, .. }
    | KmsCiphertext::Azure { ciphertext, .. }) = wanted;
    if ciphertext.len() > MAX_CIPHERTEXT_BYTES {
        return Err(refused("the file", ExchangeError::Input("the encrypted data key is too long")));
    }
    match wanted {
        KmsCiphertext::Aws { arn, role, context, .. } => asking.aws((arn, role), (ciphertext, context)),
        KmsCiphertext::Gcp { resource, .. } => asking.gcp(resource, ciphertext),
        KmsCiphertext::Azure { vault, name, version, .. } => asking.azure((vault, name, version), ciphertext),
    }
}

fn refused(service: &'static str, problem: ExchangeError) -> KmsError {
    KmsError::Refused { service, problem }
}

/// One request for a data key.
#[derive(Clone, Copy)]
struct Asking<'a> {
    login: &'a KmsLogin,
    network: &'a SharedNetwork,
    by: Instant,
}

impl<'a> Asking<'a> {
    fn endpoints(self) -> &'a CloudEndpoints {
        self.network.clouds().endpoints()
    }

    fn account(self, cloud: &'static str) -> Result<AccountSessions<'a>, KmsError> {
        let account = self.login.account.as_ref().ok_or(KmsError::NoCredentials(cloud))?;
        Ok(AccountSessions { account, network: self.network, by: self.by })
    }

    fn aws(
        self,
        (arn, role): (&str, &str),
        encrypted: (&str, &BTreeMap<String, String>),
    ) -> Result<SecretBytes, KmsError> {
        let wrong = |problem| refused("AWS KMS", problem);
        let key = AwsKey::new(arn).map_err(wrong)?;
        let own = match &self.login.aws {
            Some(credentials) => credentials.clone(),
            None => self.account(AWS)?.aws(key.region())?.0,
        };
        let credentials = match role {
            "" => own,
            role => self.role_of(&own, AwsRole::new(role, key.region()).map_err(wrong)?)?,
        };
        let request = key.decrypt(self.endpoints(), encrypted, &credentials, Timestamp::now());
        let (answer, _) = send(self.network, &request.map_err(wrong)?, self.by)?;
        key.read_data_key(answer.status, answer.body.reveal()).map_err(wrong)
    }

    /// Returns the credentials of the role that the file names.
    fn role_of(self, own: &AwsCredentials, role: AwsRole) -> Result<AwsCredentials, KmsError> {
        let holder = Holder { shown: "the role in the file".into(), cloud: AWS };
        let inputs = [
            b"AWS role".as_slice(),
            own.access_key.as_bytes(),
            own.secret_key.as_str().as_bytes(),
            role.arn().as_bytes(),
        ];
        let session = self.network.clouds().session(&inputs, self.by, || {
            let request = role.assume_by(self.endpoints(), own, SESSION_NAME, Timestamp::now());
            let request = request.map_err(|error| holder.error(error))?;
            exchange_aws(self.network, &holder, &request, self.by)
        })?;
        match &*session {
            Session::Aws(credentials) => Ok(credentials.clone()),
            Session::Bearer(..) => Err(Error::Stopped.into()),
        }
    }

    fn gcp(self, resource: &str, encrypted: &str) -> Result<SecretBytes, KmsError> {
        let wrong = |problem| refused("Google Cloud KMS", problem);
        // A malformed name costs no token.
        gcp_kms::decrypt(self.endpoints(), (resource, encrypted), &"-".into()).map_err(wrong)?;
        let (token, _) = match &self.login.gcp {
            Some(key) => self.bearer_of(GCP, &key.identity(), |holder| {
                let request = key.exchange(self.endpoints(), Timestamp::now());
                let request = request.map_err(|error| holder.error(error))?;
                exchange_bearer(self.network, holder, &request, gcp::read_token, self.by)
            })?,
            None => self.account(GCP)?.gcp()?,
        };
        let request = gcp_kms::decrypt(self.endpoints(), (resource, encrypted), &token).map_err(wrong)?;
        let (answer, _) = send(self.network, &request, self.by)?;
        gcp_kms::read_data_key(answer.status, answer.body.reveal()).map_err(wrong)
    }

    fn azure(self, names: (&str, &str, &str), encrypted: &str) -> Result<SecretBytes, KmsError> {
        let wrong = |problem| refused("Azure Key Vault", problem);
        let key = VaultKey::new(self.endpoints(), names).map_err(wrong)?;
        let service = key.service();
        let (token, _) = match &self.login.azure {
            Some((client, secret)) => self.of_application(client, secret, &service)?,
            None => self.account(AZURE)?.azure(&service)?,
        };
        let request: ExchangeRequest = key.decrypt(encrypted, &token);
        let (answer, _) = send(self.network, &request, self.by)?;
        key.read_data_key(answer.status, answer.body.reveal()).map_err(wrong)
    }

    fn of_application(
        self,
        client: &AzureClient,
        secret: &SecretText,
        service: &AzureService,
    ) -> Result<(SecretText, Duration), KmsError> {
        let [id, tenant] = client.names();
        let scope = service.scope();
        let inputs = [id, tenant, secret.as_str(), &scope].map(str::as_bytes);
        self.bearer_of(AZURE, &inputs, |holder| {
            let request = client.exchange_secret(self.endpoints(), secret, service);
            exchange_bearer(self.network, holder, &request, read_token, self.by)
        })
    }

    /// Returns the token for a key of the Secret.
    fn bearer_of(
        self,
        cloud: &'static str,
        inputs: &[&[u8]],
        exchange: impl FnOnce(&Holder) -> Result<(Session, Duration), Error>,
    ) -> Result<(SecretText, Duration), KmsError> {
        let holder = Holder { shown: "the key in the Secret".into(), cloud };
        let all: Vec<&[u8]> =
            [b"Secret".as_slice(), cloud.as_bytes()].into_iter().chain(inputs.iter().copied()).collect();
        let session = self.network.clouds().session(&all, self.by, || exchange(&holder))?;
        Ok(bearer(&session)?)
    }
}
