//! The trust root of a Sigstore installation: the file `trusted_root.json`.
//!
//! In: the file. Out: authorities of certificates and of timestamps, and logs, each with the
//! period in which it is trusted. Lists that are empty ask for nothing: without `ctlogs`,
//! certificates need no promise of a log.

use jiff::Timestamp;
use serde_json::Value;

use crate::certificate::{Authority, read_authority};
use crate::error::{MAX_CERTIFICATES, Reason, malformed};
use crate::json;
use crate::key::PublicKey;

/// A trust root.
#[derive(Debug, Clone)]
pub struct TrustRoot {
    pub(crate) authorities: Vec<Authority>,
    pub(crate) timestamp_authorities: Vec<Authority>,
    pub(crate) logs: Vec<Log>,
    pub(crate) certificate_logs: Vec<Log>,
}

/// A trust root that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the trust root cannot be used: {0}")]
pub struct TrustRootError(Box<str>);

/// A log: its identity, key, and the period in which the key is trusted.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(crate) id: Vec<u8>,
    pub(crate) key: PublicKey,
    pub(crate) period: Period,
}

/// A period of time, without an end if it is not over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Period {
    from: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Period {
    /// True if a time is in the period.
    pub(crate) fn holds(self, time: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= time) && self.until.is_none_or(|until| time <= until)
    }

    fn read(value: &Value, path: &str) -> Result<Self, Reason> {
        let time = |name: &str| {
            let path = format!("{path}/{name}");
            let Some(_) = json::field(value, &path) else { return Ok(None) };
            let time = json::text(value, &path)?.parse();
            time.map(Some).map_err(|_| malformed(format!("{path} must be a time")))
        };
        Ok(Self { from: time("start")?, until: time("end")? })
    }
}

impl TrustRoot {
    /// Reads a `trusted_root.json`.
    pub fn read(file: &[u8]) -> Result<Self, TrustRootError> {
        Self::parse(file).map_err(|reason| match reason {
            Reason::Malformed(what) => TrustRootError(what),
            other => TrustRootError(other.to_string().into()),
        })
    }

    fn parse(file: &[u8]) -> Result<Self, Reason> {
        let root = json::read(file)?;
        let kind = json::text(&root, "/mediaType")?;
        if !kind.starts_with("application/vnd.dev.sigstore.trustedroot") {
            return Err(malformed("/mediaType must be that of a trusted_root.json"));
        }
        let read = Self {
            authorities: items(&root, "/certificateAuthorities", authority)?,
            timestamp_authorities: items(&root, "/timestampAuthorities", authority)?,
            logs: items(&root, "/tlogs", log)?,
            certificate_logs: items(&root, "/ctlogs", log)?,
        };
        match () {
            () if read.authorities.is_empty() => Err(malformed("it has no certificateAuthorities")),
            () if read.logs.is_empty() && read.timestamp_authorities.is_empty() => {
                Err(malformed("it has neither tlogs nor timestampAuthorities, so nothing can prove a time"))
            }
            () => Ok(read),
        }
    }
}

/// Reads the items of a list, and names the one that is wrong.
fn items<T>(root: &Value, path: &str, read: fn(&Value) -> Result<T, Reason>) -> Result<Vec<T>, Reason> {
    let named = |(index, item): (usize, &Value)| {
        read(item).map_err(|reason| match reason {
            Reason::Malformed(what) => malformed(format!("{path}/{index}: {what}")),
            other => other,
        })
    };
    json::list(root, path, MAX_CERTIFICATES)?.iter().enumerate().map(named).collect()
}

fn authority(value: &Value) -> Result<Authority, Reason> {
    let chain = json::list(value, "/certChain/certificates", MAX_CERTIFICATES)?;
    let chain =
        chain.iter().map(|certificate| json::bytes(certificate, "/rawBytes")).collect::<Result<_, _>>()?;
    let period = Period::read(value, "/validFor")?;
    read_authority(chain, period).ok_or_else(|| malformed("/certChain must end with a root certificate"))
}

fn log(value: &Value) -> Result<Log, Reason> {
    let bytes = json::bytes(value, "/publicKey/rawBytes")?;
    let is_pkcs1 = json::text(value, "/publicKey/keyDetails").is_ok_and(|kind| kind.starts_with("PKCS1_"));
    let key = if is_pkcs1 { PublicKey::from_pkcs1(&bytes) } else { PublicKey::from_der(&bytes) };
    let key =
        key.ok_or_else(|| malformed("/publicKey must be a key of ECDSA P-256 or P-384, Ed25519, or RSA"))?;
    let id = match json::field(value, "/logId/keyId") {
        Some(_) => json::bytes(value, "/logId/keyId")?,
        None => key.id(),
    };
    Ok(Log { id, key, period: Period::read(value, "/publicKey/validFor")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_trust_root_is_named() {
        let check = |file: &str, expect: &str| {
            let error = TrustRoot::read(file.as_bytes()).unwrap_err().to_string();
            assert_eq!(error, format!("the trust root cannot be used: {expect}"));
        };
        check("{", "its JSON is not valid in line 1, column 1");
        check("{}", "/mediaType must be a text");
        check(r#"{"mediaType": "text/plain"}"#, "/mediaType must be that of a trusted_root.json");
        let kind = r#""mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1""#;
        check(&format!("{{{kind}}}"), "it has no certificateAuthorities");
        check(
            &format!(r#"{{{kind}, "tlogs": [{{"publicKey": {{"rawBytes": "aGk="}}}}]}}"#),
            "/tlogs/0: /publicKey must be a key of ECDSA P-256 or P-384, Ed25519, or RSA",
        );
        check(
            &format!(r#"{{{kind}, "certificateAuthorities": [{{"validFor": {{"start": "today"}}}}]}}"#),
            "/certificateAuthorities/0: /validFor/start must be a time",
        );
        check(
            &format!(r#"{{{kind}, "certificateAuthorities": [{{}}]}}"#),
            "/certificateAuthorities/0: /certChain must end with a root certificate",
        );
    }

    #[test]
    fn a_log_may_have_a_key_of_pkcs1() {
        let read =
            |kind: &str| log(&serde_json::json!({"publicKey": {"rawBytes": "aGk=", "keyDetails": kind}}));
        assert_eq!(read("PKCS1_RSA_PKCS1V5").unwrap().key, PublicKey::from_pkcs1(b"hi").unwrap());
        assert!(read("PKIX_RSA_PKCS1V15_2048_SHA256").is_err());
    }

    #[test]
    fn a_period_holds_its_ends() {
        let time = |second| Timestamp::from_second(second).unwrap();
        let period = Period { from: Some(time(5)), until: Some(time(9)) };
        let holds = [4, 5, 9, 10].map(|second| period.holds(time(second)));
        assert_eq!(holds, [false, true, true, false]);
        assert!(Period { from: None, until: None }.holds(time(0)));
    }
}
