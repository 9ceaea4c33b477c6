//! Credentials of clouds in a Secret, in the layout of Flux.
//!
//! In: the text of `sops.aws-kms`, `sops.gcp-kms` or `sops.azure-kv`. Out: the credentials, or a
//! problem that quotes nothing. Addresses in an entry are refused: they are the operator's.

use serde_json::Value;

use crate::source::{AwsCredentials, AzureClient, GcpKeyFile, SecretText};
use crate::yaml::{self, Dialect};

/// Reads `aws_access_key_id`, `aws_secret_access_key` and `aws_session_token`.
pub(super) fn aws(text: &str) -> Result<AwsCredentials, &'static str> {
    let entry = mapping(text)?;
    let access_key = entry["aws_access_key_id"].as_str().filter(|id| is_token(id));
    let secret_key = entry["aws_secret_access_key"].as_str().filter(|key| is_token(key));
    let session_token = match &entry["aws_session_token"] {
        Value::Null => None,
        token => Some(token.as_str().filter(|token| is_token(token)).ok_or("aws_session_token is no token")?),
    };
    match (access_key, secret_key) {
        (Some(access_key), Some(secret_key)) => Ok(AwsCredentials {
            access_key: access_key.to_owned(),
            secret_key: secret_key.into(),
            session_token: session_token.map(Into::into),
        }),
        _ => Err("it needs aws_access_key_id and aws_secret_access_key"),
    }
}

/// Reads the file of a service account's key of Google.
pub(super) fn gcp(text: &str) -> Result<GcpKeyFile, &'static str> {
    GcpKeyFile::new(text).map_err(|_| "it is not the file of a service account's key of Google")
}

/// Reads `tenantId`, `clientId` and `clientSecret`.
pub(super) fn azure(text: &str) -> Result<(AzureClient, SecretText), &'static str> {
    let entry = mapping(text)?;
    if entry.get("authorityHost").is_some() {
        return Err(
            "authorityHost is not read; the setting cloudEndpoints of the daemon names another address (azure-login)",
        );
    }
    let field = |name: &str| entry[name].as_str().unwrap_or_default();
    let client = AzureClient::new(field("clientId"), field("tenantId"));
    let client = client.map_err(|_| "it needs tenantId and clientId, which are GUIDs")?;
    match field("clientSecret") {
        secret if is_token(secret) => Ok((client, secret.into())),
        _ => Err("it needs clientSecret; certificates of applications are not supported"),
    }
}

fn mapping(text: &str) -> Result<Value, &'static str> {
    let documents = yaml::read("entry", text.as_bytes(), Dialect::Kubectl).map_err(|_| "it is no YAML")?;
    let mut values = documents.into_iter().map(|document| document.value);
    values.next().filter(Value::is_object).ok_or("it is no mapping of names to values")
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_flux_writes_them() {
        let read =
            aws("aws_access_key_id: AKIA1\naws_secret_access_key: abc\naws_session_token: xyz\n").unwrap();
        assert_eq!((&*read.access_key, read.secret_key.as_str()), ("AKIA1", "abc"));
        assert!(read.session_token.is_some());
        let id = "11111111-2222-3333-4444-555555555555";
        let (client, secret) =
            azure(&format!("tenantId: {id}\nclientId: {id}\nclientSecret: abc~1\n")).unwrap();
        assert_eq!((client.names(), secret.as_str()), ([id, id], "abc~1"));
    }

    #[test]
    fn what_is_no_entry_is_refused_and_not_quoted() {
        let id = "11111111-2222-3333-4444-555555555555";
        for told in [
            aws("planted").map(drop),
            aws("aws_access_key_id: planted").map(drop),
            aws("aws_access_key_id: a\naws_secret_access_key: b\naws_session_token: [planted]").map(drop),
            gcp("{\"type\": \"planted\"}").map(drop),
            azure("tenantId: planted").map(drop),
            azure(&format!("tenantId: {id}\nclientId: {id}\nclientCertificate: planted")).map(drop),
            azure(&format!(
                "tenantId: {id}\nclientId: {id}\nclientSecret: a\nauthorityHost: https://planted"
            ))
            .map(drop),
            aws("{").map(drop),
        ] {
            assert!(!told.unwrap_err().contains("planted"));
        }
    }
}
