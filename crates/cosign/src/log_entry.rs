//! Entries of the log Rekor, versions 1 and 2.
//!
//! In: an entry from a bundle or an annotation, the logs of a trust root, and the signature.
//! Out: the time that the log vouches for, or a refusal. An entry counts only if it is of this very
//! signature, key and payload.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};
use serde_json::Value;

use crate::artifact::hex;
use crate::certificate::Certificate;
use crate::error::{MAX_PROOF_HASHES, Reason, malformed};
use crate::json;
use crate::material::Material;
use crate::merkle::Proof;
use crate::pem;
use crate::trust_root::{Log, Period};

/// One entry.
#[derive(Debug)]
pub(crate) struct LogEntry {
    body: Vec<u8>,
    log: Vec<u8>,
    index: u64,
    /// Seconds since 1970; version 2 has no time.
    seconds: u64,
    promise: Option<Vec<u8>>,
    proof: Option<Proof>,
}

/// An entry that was verified: its time if the log signed one, and the period of the log's key.
#[derive(Debug)]
pub(crate) struct Logged {
    pub(crate) time: Option<Timestamp>,
    pub(crate) period: Period,
}

/// Places of the fields in one kind of entry.
struct Shape {
    signature: &'static str,
    key: &'static str,
    hash: &'static str,
    /// The signature is in base64 twice.
    is_twice_encoded: bool,
    /// Key and hash in the form of version 2.
    is_version_2: bool,
    /// The hash is of the payload inside an envelope, and not of the signed bytes.
    is_of_payload: bool,
}

impl LogEntry {
    /// Reads an entry of a bundle, which must have a proof.
    pub(crate) fn of_bundle(value: &Value) -> Result<Self, Reason> {
        let hashes = json::list(value, "/inclusionProof/hashes", MAX_PROOF_HASHES)?;
        let proof = Proof {
            index: json::number(value, "/inclusionProof/logIndex")?,
            size: json::number(value, "/inclusionProof/treeSize")?,
            root: json::bytes(value, "/inclusionProof/rootHash")?,
            hashes: hashes.iter().map(|hash| json::bytes(hash, "")).collect::<Result<_, _>>()?,
            checkpoint: json::text(value, "/inclusionProof/checkpoint/envelope")?.to_owned(),
        };
        const PROMISE: &str = "/inclusionPromise/signedEntryTimestamp";
        Ok(Self {
            body: json::bytes(value, "/canonicalizedBody")?,
            log: json::bytes(value, "/logId/keyId")?,
            index: json::number(value, "/logIndex")?,
            seconds: json::number(value, "/integratedTime")?,
            promise: json::field(value, PROMISE).map(|_| json::bytes(value, PROMISE)).transpose()?,
            proof: Some(proof),
        })
    }

    /// Reads the annotation that version 2 of cosign writes.
    pub(crate) fn of_annotation(text: &str) -> Result<Self, Reason> {
        let value = json::read(text.as_bytes())?;
        let log = json::text(&value, "/Payload/logID")?;
        Ok(Self {
            body: json::bytes(&value, "/Payload/body")?,
            log: from_hex(log).ok_or_else(|| malformed("/Payload/logID must be hex digits"))?,
            index: json::number(&value, "/Payload/logIndex")?,
            seconds: json::number(&value, "/Payload/integratedTime")?,
            promise: Some(json::bytes(&value, "/SignedEntryTimestamp")?),
            proof: None,
        })
    }

    /// Verifies that a log of the trust root has the entry, and that it is of this signature.
    /// `None` if the log is unknown.
    pub(crate) fn verify(
        &self,
        logs: &[Log],
        material: &Material,
        certificate: &Certificate<'_>,
    ) -> Result<Option<Logged>, Reason> {
        let mut logs = logs.iter().filter(|log| log.id == self.log).peekable();
        if logs.peek().is_none() {
            return Ok(None);
        }
        self.compare(material, certificate)?;
        let mut found = Err(Reason::LogEntry("it is neither signed nor proven"));
        for log in logs {
            found = self.verify_in(log);
            if found.is_ok() {
                break;
            }
        }
        found.map(Some)
    }

    fn verify_in(&self, log: &Log) -> Result<Logged, Reason> {
        let mut logged = Logged { time: None, period: log.period };
        if let Some(promise) = &self.promise {
            if !log.key.verifies(self.signed_text().as_bytes(), promise) {
                return Err(Reason::LogEntry("its time is not signed by the log"));
            }
            let time =
                i64::try_from(self.seconds).ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
            logged.time = time.filter(|time| log.period.holds(*time));
            if logged.time.is_none() {
                return Err(Reason::LogEntry("the trust root does not trust the log at its time"));
            }
        }
        match &self.proof {
            Some(proof) => proof.verify(&self.body, log).map_err(Reason::LogEntry)?,
            None if logged.time.is_none() => return Err(Reason::LogEntry("it is neither signed nor proven")),
            None => {}
        }
        Ok(logged)
    }

    /// Returns the text that the log signed: canonical JSON.
    fn signed_text(&self) -> String {
        format!(
            r#"{{"body":"{}","integratedTime":{},"logID":"{}","logIndex":{}}}"#,
            STANDARD.encode(&self.body),
            self.seconds,
            hex(&self.log),
            self.index
        )
    }

    /// Compares the entry with the signature, its key and its payload.
    fn compare(&self, material: &Material, certificate: &Certificate<'_>) -> Result<(), Reason> {
        let body = json::read(&self.body)?;
        let shape = shape(json::text(&body, "/kind")?, json::text(&body, "/apiVersion")?)
            .ok_or(Reason::LogEntry("it is of a kind that is not supported"))?;
        let mut signature = json::bytes(&body, shape.signature)?;
        if shape.is_twice_encoded {
            signature =
                STANDARD.decode(&signature).map_err(|_| malformed("its log entry has no signature"))?;
        }
        if signature != material.signature {
            return Err(Reason::OtherLogEntry("signature"));
        }
        let logged_key = match shape.is_version_2 {
            true => ["/x509Certificate/rawBytes", "/publicKey/rawBytes"]
                .iter()
                .find_map(|end| json::bytes(&body, &format!("{}{end}", shape.key)).ok()),
            false => pem_bytes(&json::bytes(&body, shape.key)?),
        };
        if !logged_key.is_some_and(|key| key == certificate.der || key == certificate.key) {
            return Err(Reason::OtherLogEntry("key"));
        }
        let signed = if shape.is_of_payload { &material.payload } else { &material.message };
        match logged_hash(&body, &shape)? {
            Some((algorithm, hash)) if digest(algorithm, signed).as_ref() == hash => Ok(()),
            _ => Err(Reason::OtherLogEntry("payload")),
        }
    }
}

/// Returns the places of the fields in a kind of entry; `None` if it is unknown.
fn shape(kind: &str, version: &str) -> Option<Shape> {
    let shape = |signature, key, hash| Shape {
        signature,
        key,
        hash,
        is_twice_encoded: kind == "intoto",
        is_version_2: version == "0.0.2" && kind != "intoto",
        is_of_payload: kind != "hashedrekord",
    };
    Some(match (kind, version) {
        ("hashedrekord", "0.0.1") => {
            shape("/spec/signature/content", "/spec/signature/publicKey/content", "/spec/data/hash")
        }
        ("hashedrekord", "0.0.2") => shape(
            "/spec/hashedRekordV002/signature/content",
            "/spec/hashedRekordV002/signature/verifier",
            "/spec/hashedRekordV002/data",
        ),
        ("dsse", "0.0.1") => {
            shape("/spec/signatures/0/signature", "/spec/signatures/0/verifier", "/spec/payloadHash")
        }
        ("dsse", "0.0.2") => shape(
            "/spec/dsseV002/signatures/0/content",
            "/spec/dsseV002/signatures/0/verifier",
            "/spec/dsseV002/payloadHash",
        ),
        ("intoto", "0.0.2") => shape(
            "/spec/content/envelope/signatures/0/sig",
            "/spec/content/envelope/signatures/0/publicKey",
            "/spec/content/payloadHash",
        ),
        _ => return None,
    })
}

/// Returns the hash in an entry and its algorithm; `None` if that is unknown.
fn logged_hash(body: &Value, shape: &Shape) -> Result<Option<(&'static Algorithm, Vec<u8>)>, Reason> {
    let algorithm = match json::text(body, &format!("{}/algorithm", shape.hash))? {
        "sha256" | "SHA2_256" => &SHA256,
        "sha384" | "SHA2_384" => &SHA384,
        "sha512" | "SHA2_512" => &SHA512,
        _ => return Ok(None),
    };
    let hash = match shape.is_version_2 {
        true => Some(json::bytes(body, &format!("{}/digest", shape.hash))?),
        false => from_hex(json::text(body, &format!("{}/value", shape.hash))?),
    };
    Ok(hash.map(|hash| (algorithm, hash)))
}

/// Returns the bytes of a certificate or public key in PEM.
fn pem_bytes(text: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let (label, bytes, _) = pem::section(text)?;
    ["CERTIFICATE", "PUBLIC KEY"].contains(&label).then_some(bytes)
}

/// Returns the bytes of hex digits.
fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| match pair {
            [first, second] => {
                let digit =
                    |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                Some(digit(first)? << 4 | digit(second)?)
            }
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_digits_are_read() {
        assert_eq!(from_hex("00fFa1"), Some(vec![0, 255, 0xa1]));
        assert_eq!(from_hex(""), Some(Vec::new()));
        assert!([from_hex("0"), from_hex("0g"), from_hex("é")].iter().all(Option::is_none));
    }

    #[test]
    fn the_signed_text_is_canonical() {
        let entry = LogEntry {
            body: b"hi".to_vec(),
            log: vec![1, 255],
            index: 7,
            seconds: 9,
            promise: None,
            proof: None,
        };
        assert_eq!(entry.signed_text(), r#"{"body":"aGk=","integratedTime":9,"logID":"01ff","logIndex":7}"#);
    }
}
