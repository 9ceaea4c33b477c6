//! Data keys that AWS KMS decrypts.
//!
//! In: the ARN of a key, the encrypted data key and its context, credentials.
//! Out: the request, and the data key in its answer. The region is a part of the ARN, and the host
//! follows from it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::json;

use crate::endpoints::CloudEndpoints;
use crate::exchange::{self, ExchangeError, ExchangeRequest, Method};
use crate::secret::{SecretBytes, SecretText};
use crate::sigv4::{self, AwsCredentials, AwsScope};

/// Maximum number of characters of an ARN.
const MAX_ARN_LENGTH: usize = 2048;

/// A key of KMS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsKey {
    arn: Box<str>,
    region: Box<str>,
    domain: &'static str,
}

impl AwsKey {
    /// Reads `arn:aws:kms:REGION:ACCOUNT:key/ID`, or the ARN of an alias.
    pub fn new(arn: &str) -> Result<Self, ExchangeError> {
        let wrong = ExchangeError::Input("the key is not the ARN of a key of KMS");
        let parts: Vec<&str> = arn.splitn(6, ':').collect();
        let ["arn", partition, "kms", region, account, name] = parts[..] else { return Err(wrong) };
        let domain = match (partition, region.starts_with("cn-")) {
            ("aws" | "aws-us-gov", false) => "amazonaws.com",
            ("aws-cn", true) => "amazonaws.com.cn",
            _ => return Err(wrong),
        };
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let named = |byte: u8| byte.is_ascii_alphanumeric() || b"-_/".contains(&byte);
        let is_sound = !region.is_empty()
            && region.bytes().all(plain)
            && account.len() == 12
            && account.bytes().all(|byte| byte.is_ascii_digit())
            && (name.starts_with("key/") || name.starts_with("alias/"))
            && name.bytes().all(named)
            && arn.len() <= MAX_ARN_LENGTH;
        if is_sound { Ok(Self { arn: arn.into(), region: region.into(), domain }) } else { Err(wrong) }
    }

    /// Returns the region.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Builds the request that decrypts a data key, which is in base64.
    pub fn decrypt(
        &self,
        endpoints: &CloudEndpoints,
        (encrypted, context): (&str, &BTreeMap<String, String>),
        credentials: &AwsCredentials,
        now: Timestamp,
    ) -> Result<ExchangeRequest, ExchangeError> {
        let mut body = json!({"CiphertextBlob": encrypted, "KeyId": self.arn});
        if !context.is_empty() {
            body["EncryptionContext"] = json!(context);
        }
        let public = || format!("https://kms.{}.{}", self.region, self.domain);
        let mut request = ExchangeRequest {
            method: Method::Post,
            url: format!("{}/", endpoints.base("aws-kms", public)),
            headers: vec![
                ("content-type", "application/x-amz-json-1.1".into()),
                ("x-amz-target", "TrentService.Decrypt".into()),
            ],
            body: SecretText::new(body.to_string()),
        };
        let scope = AwsScope { region: &self.region, service: "kms" };
        sigv4::sign(&mut request, credentials, scope, now)?;
        Ok(request)
    }

    /// Reads the data key, and checks that this key decrypted it.
    pub fn read_data_key(&self, status: u16, body: &[u8]) -> Result<SecretBytes, ExchangeError> {
        let problem = "KMS does not decrypt it: the credentials need kms:Decrypt on the key, and the data key must be of that key and context";
        exchange::accept(status, problem)?;
        let answer = exchange::json(body)?;
        // An alias stands for a key of another name.
        let is_other = self.arn.contains(":key/") && answer["KeyId"].as_str() != Some(&*self.arn);
        if is_other {
            return Err(ExchangeError::Answer("answers with another key"));
        }
        let plain = answer["Plaintext"].as_str().and_then(|text| STANDARD.decode(text).ok());
        plain.map(SecretBytes::new).ok_or(ExchangeError::Answer("gives no data key"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab";

    #[test]
    fn a_data_key_is_asked_for_in_the_region_of_its_key() {
        let key = AwsKey::new(KEY).unwrap();
        let credentials = AwsCredentials {
            access_key: "AKIA1".to_owned(),
            secret_key: "planted".into(),
            session_token: None,
        };
        let now = "2026-01-02T03:00:00Z".parse().unwrap();
        let context = BTreeMap::from([("app".to_owned(), "shop".to_owned())]);
        let public = CloudEndpoints::default();
        let request = key.decrypt(&public, ("AQIC", &context), &credentials, now).unwrap();
        assert_eq!(request.url, "https://kms.eu-central-1.amazonaws.com/");
        let body: serde_json::Value = serde_json::from_str(request.body.as_str()).unwrap();
        assert_eq!(
            body,
            json!({"CiphertextBlob": "AQIC", "KeyId": KEY, "EncryptionContext": {"app": "shop"}})
        );
        let answer = format!(r#"{{"KeyId": "{KEY}", "Plaintext": "{}"}}"#, STANDARD.encode([7; 32]));
        assert_eq!(key.read_data_key(200, answer.as_bytes()).unwrap().as_bytes(), &[7; 32]);
    }

    #[test]
    fn another_key_and_malformed_answers_are_refused() {
        let key = AwsKey::new(KEY).unwrap();
        let of = |id: &str, plain: &str| format!(r#"{{"KeyId": "{id}", "Plaintext": "{plain}"}}"#);
        for (status, body, expect) in [
            (400, "planted".to_owned(), "kms:Decrypt"),
            (302, "planted".to_owned(), "redirects elsewhere"),
            (500, "planted".to_owned(), "status 500"),
            (200, of("arn:aws:kms:eu-central-1:123456789012:key/other", "AQIC"), "another key"),
            (200, of(KEY, "planted!"), "no data key"),
        ] {
            let message = key.read_data_key(status, body.as_bytes()).unwrap_err().to_string();
            assert!(message.contains(expect) && !message.contains("planted"), "{expect}: {message}");
        }
        let alias = AwsKey::new("arn:aws:kms:eu-central-1:123456789012:alias/shop").unwrap();
        assert!(alias.read_data_key(200, of(KEY, "AQIC").as_bytes()).is_ok());
        for wrong in [
            "",
            "arn:aws:kms:evil.example/:123456789012:key/a",
            "arn:aws:kms::123456789012:key/a",
            "arn:aws:iam:eu-central-1:123456789012:key/a",
            "arn:aws-cn:kms:eu-central-1:123456789012:key/a",
            "arn:aws:kms:eu-central-1:123456789012:a",
        ] {
            assert!(AwsKey::new(wrong).is_err(), "{wrong}");
        }
    }
}
