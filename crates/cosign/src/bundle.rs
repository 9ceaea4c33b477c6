//! Bundles of Sigstore, which version 3 of cosign writes.
//!
//! In: a bundle of version 0.3 in JSON. Out: its signature and what came with it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::SHA256_OUTPUT_LEN;
use serde_json::Value;

use crate::artifact::{Artifact, hex};
use crate::error::{MAX_LOG_ENTRIES, MAX_TIMESTAMPS, Reason, malformed, shown};
use crate::json;
use crate::log_entry::LogEntry;
use crate::material::{Claim, Material, Witnesses};

const MEDIA_TYPES: [&str; 2] =
    ["application/vnd.dev.sigstore.bundle.v0.3+json", "application/vnd.dev.sigstore.bundle+json;version=0.3"];
const STATEMENT: &str = "application/vnd.in-toto+json";
const CERTIFICATE: &str = "/verificationMaterial/certificate/rawBytes";

/// Reads a bundle.
pub(crate) fn read_bundle(bundle: &[u8], artifact: &Artifact) -> Result<Material, Reason> {
    let bundle = json::read(bundle)?;
    let kind = json::text(&bundle, "/mediaType")?;
    if !MEDIA_TYPES.contains(&kind) {
        return Err(malformed(format!(
            "it is of type {}; only bundles of version 0.3 are read",
            shown(kind)
        )));
    }
    let hint = json::field(&bundle, "/verificationMaterial/publicKey/hint").and_then(Value::as_str);
    let material = content(&bundle, artifact)?;
    Ok(Material { hint: hint.map(shown_key), witnesses: witnesses(&bundle), ..material })
}

/// Reads what proves the signer and the time.
fn witnesses(bundle: &Value) -> Result<Witnesses, Reason> {
    let timestamps = "/verificationMaterial/timestampVerificationData/rfc3161Timestamps";
    let timestamps = json::list(bundle, timestamps, MAX_TIMESTAMPS)?.iter();
    let entries = json::list(bundle, "/verificationMaterial/tlogEntries", MAX_LOG_ENTRIES)?.iter();
    let certificate = json::field(bundle, CERTIFICATE).map(|_| json::bytes(bundle, CERTIFICATE));
    Ok(Witnesses {
        certificate: certificate.transpose()?,
        entries: entries.map(LogEntry::of_bundle).collect::<Result<_, _>>()?,
        timestamps: timestamps
            .map(|stamp| json::bytes(stamp, "/signedTimestamp"))
            .collect::<Result<_, _>>()?,
    })
}

/// Reads the signature and the bytes that were signed.
fn content(bundle: &Value, artifact: &Artifact) -> Result<Material, Reason> {
    let (signature, message, payload, claim);
    if json::field(bundle, "/dsseEnvelope").is_some() {
        let kind = json::text(bundle, "/dsseEnvelope/payloadType")?;
        if kind != STATEMENT {
            return Err(malformed(format!("its payload is of type {}, not {STATEMENT}", shown(kind))));
        }
        let [_] = json::list(bundle, "/dsseEnvelope/signatures", 1)? else {
            return Err(malformed("/dsseEnvelope/signatures must have one item"));
        };
        signature = json::bytes(bundle, "/dsseEnvelope/signatures/0/sig")?;
        payload = json::bytes(bundle, "/dsseEnvelope/payload")?;
        let head = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len());
        message = [head.as_bytes(), &payload].concat();
        claim = Claim::Statement;
    } else {
        signature = json::bytes(bundle, "/messageSignature/signature")?;
        let named = json::bytes(bundle, "/messageSignature/messageDigest/digest")?;
        if json::text(bundle, "/messageSignature/messageDigest/algorithm")? != "SHA2_256" {
            return Err(malformed("/messageSignature/messageDigest must be of SHA2_256"));
        }
        let named = format!("sha256:{}", hex(&named));
        if named != artifact.digest() {
            return Err(Reason::OtherArtifact(named.into()));
        }
        payload = artifact.manifest().ok_or(Reason::ManifestUnread)?.to_vec();
        message = payload.clone();
        claim = Claim::Manifest;
    }
    Ok(Material { signature, message, payload, claim, hint: None, witnesses: Ok(Witnesses::default()) })
}

/// Returns the name of a key for a message: as a fingerprint if it is the one that cosign writes.
fn shown_key(hint: &str) -> Box<str> {
    match STANDARD.decode(hint) {
        Ok(hash) if hash.len() == SHA256_OUTPUT_LEN => hex(&hash).into(),
        _ => shown(hint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_as_a_fingerprint() {
        let hash = [7; SHA256_OUTPUT_LEN];
        assert_eq!(*shown_key(&STANDARD.encode(hash)), *"07".repeat(SHA256_OUTPUT_LEN));
        assert_eq!((&*shown_key("shop\n"), &*shown_key("c2hvcA==")), ("shop\\n", "c2hvcA=="));
    }
}
