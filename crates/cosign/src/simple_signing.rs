//! Signatures that version 2 of cosign writes: a payload, and annotations of its layer.
//!
//! In: payload and annotations. Out: the signature and what came with it. The annotation with the
//! chain is not read: authorities are those of the trust root.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::{MAX_DOCUMENT_BYTES, Reason, malformed};
use crate::json;
use crate::log_entry::LogEntry;
use crate::material::{Claim, Material, Witnesses};
use crate::pem;
use crate::verification::Annotations;

/// Annotation of the layer with the signature.
pub(crate) const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
const LOG_ENTRY: &str = "dev.sigstore.cosign/bundle";
const TIMESTAMP: &str = "dev.sigstore.cosign/rfc3161timestamp";

/// Reads a signature.
pub(crate) fn read_simple_signing(payload: &[u8], annotations: &Annotations) -> Result<Material, Reason> {
    let annotation = |name: &str| annotations.get(name).map(String::as_str).filter(|text| !text.is_empty());
    if payload.len() > MAX_DOCUMENT_BYTES {
        return Err(malformed(format!("its payload has {} bytes", payload.len())));
    }
    let signature = annotation(SIGNATURE).and_then(|text| STANDARD.decode(text).ok());
    Ok(Material {
        signature: signature.ok_or_else(|| malformed(format!("{SIGNATURE} must be bytes in base64")))?,
        message: payload.to_vec(),
        payload: payload.to_vec(),
        claim: Claim::SimpleSigning,
        hint: None,
        witnesses: witnesses(annotation(CERTIFICATE), annotation(LOG_ENTRY), annotation(TIMESTAMP)),
    })
}

/// Reads what proves the signer and the time.
fn witnesses(
    certificate: Option<&str>,
    entry: Option<&str>,
    timestamp: Option<&str>,
) -> Result<Witnesses, Reason> {
    let certificate = certificate.map(|text| {
        let bytes = pem::bytes_of(text, "CERTIFICATE");
        bytes.ok_or_else(|| malformed(format!("{CERTIFICATE} must be a certificate in PEM")))
    });
    let timestamp =
        timestamp.map(|text| json::bytes(&json::read(text.as_bytes())?, "/SignedRFC3161Timestamp"));
    Ok(Witnesses {
        certificate: certificate.transpose()?,
        entries: entry.map(LogEntry::of_annotation).transpose()?.into_iter().collect(),
        timestamps: timestamp.transpose()?.into_iter().collect(),
    })
}
