//! Certificates for a signature: who signed, issued by whom, valid when.
//!
//! In: a certificate in DER, the authorities of a trust root, and the time of the signature.
//! Out: the identity, and the key of the issuer. `rustls-webpki` verifies the chain; here are the
//! fields that it does not read.

use jiff::Timestamp;
use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, Error, KeyUsage, ring as algorithms};

use crate::der::{
    self, BOOLEAN, Element, INTEGER, OBJECT_ID, OCTET_STRING, Reader, SEQUENCE, UTF8_STRING, tagged,
};
use crate::error::{MAX_CERTIFICATES, Reason, malformed, shown};
use crate::trust_root::Period;

const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const SIGNED_CERTIFICATE_TIMESTAMPS: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0xd6, 0x79, 0x02, 0x04, 0x02];
/// Fulcio's 1.3.6.1.4.1.57264.1: `.1` is the issuer as plain text, `.8` as a text in DER, and `.7`
/// the kind of a user name.
const FULCIO: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xbf, 0x30, 0x01];
/// Usages of a certificate: to sign code, and to sign timestamps.
pub(crate) const CODE_SIGNING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03];
pub(crate) const TIME_STAMPING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x08];

const ALGORITHMS: &[&dyn SignatureVerificationAlgorithm] = &[
    algorithms::ECDSA_P256_SHA256,
    algorithms::ECDSA_P256_SHA384,
    algorithms::ECDSA_P384_SHA256,
    algorithms::ECDSA_P384_SHA384,
    algorithms::ED25519,
    algorithms::RSA_PKCS1_2048_8192_SHA256,
    algorithms::RSA_PKCS1_2048_8192_SHA384,
    algorithms::RSA_PKCS1_2048_8192_SHA512,
    algorithms::RSA_PSS_2048_8192_SHA256_LEGACY_KEY,
    algorithms::RSA_PSS_2048_8192_SHA384_LEGACY_KEY,
    algorithms::RSA_PSS_2048_8192_SHA512_LEGACY_KEY,
];

/// An authority of a trust root: its root certificate, and those between it and the signers.
#[derive(Debug, Clone)]
pub(crate) struct Authority {
    pub(crate) anchor: TrustAnchor<'static>,
    pub(crate) others: Vec<CertificateDer<'static>>,
    pub(crate) period: Period,
}

/// A certificate, in parts.
#[derive(Debug)]
pub(crate) struct Certificate<'a> {
    pub(crate) der: &'a [u8],
    pub(crate) key: &'a [u8],
    pub(crate) issuer_name: &'a [u8],
    pub(crate) serial: &'a [u8],
    /// The fields before the extensions.
    fields: Vec<&'a [u8]>,
    extensions: Vec<Extension<'a>>,
}

#[derive(Debug)]
struct Extension<'a> {
    id: &'a [u8],
    value: &'a [u8],
    whole: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// Reads a certificate; its signature is not looked at.
    pub(crate) fn read(der: &'a [u8]) -> Result<Self, Reason> {
        Self::parse(der).ok_or_else(|| malformed("its certificate is not valid X.509"))
    }

    fn parse(der: &'a [u8]) -> Option<Self> {
        let mut body = der::open_only(der, SEQUENCE)?.open(SEQUENCE)?;
        let version = body.optional(tagged(0));
        let serial = body.element().filter(|field| field.tag == INTEGER)?;
        // Algorithm, issuer, validity, subject, key.
        let mut rest =
            [body.element()?, body.element()?, body.element()?, body.element()?, body.element()?].into_iter();
        rest.as_slice().iter().all(|field| field.tag == SEQUENCE).then_some(())?;
        let fields: Vec<_> =
            version.into_iter().chain([serial]).chain(rest.clone()).map(|field| field.whole).collect();
        let issuer = rest.nth(1)?;
        let key = rest.nth(2)?;
        let mut extensions = Vec::new();
        if let Some(list) = body.optional(tagged(3)) {
            let mut list = der::open_only(list.content, SEQUENCE)?;
            while let Some(extension) = list.optional(SEQUENCE) {
                extensions.push(Extension::parse(extension)?);
            }
            list.is_at_end().then_some(())?;
        }
        let certificate = Self {
            der,
            key: key.whole,
            issuer_name: issuer.whole,
            serial: serial.content,
            fields,
            extensions,
        };
        body.is_at_end().then_some(certificate)
    }

    fn extension(&self, id: &[u8]) -> Option<&'a [u8]> {
        self.extensions.iter().find(|extension| extension.id == id).map(|extension| extension.value)
    }

    /// The service that vouched for the subject.
    pub(crate) fn issuer(&self) -> String {
        let of = |number: u8| self.extension(&[FULCIO, &[number]].concat());
        let new = of(8).and_then(der_text);
        let issuer = new.or_else(|| of(1).and_then(|value| String::from_utf8(value.to_vec()).ok()));
        issuer.unwrap_or_default()
    }

    /// The names of the subject: addresses, URLs and user names.
    pub(crate) fn subjects(&self) -> Vec<String> {
        let mut subjects = Vec::new();
        let names = self.extension(SUBJECT_ALT_NAME).and_then(|value| der::open_only(value, SEQUENCE));
        let mut names = names.unwrap_or(Reader::new(&[]));
        while let Some(name) = names.element() {
            // An address, the name of a host, a URL.
            let plain =
                matches!(name.tag, 0x81 | 0x82 | 0x86).then(|| String::from_utf8(name.content.to_vec()).ok());
            subjects.extend(plain.flatten().or_else(|| user_name(name)));
        }
        subjects
    }

    /// The subjects in one text, for a message.
    pub(crate) fn shown_subject(&self) -> Box<str> {
        match &self.subjects()[..] {
            [] => "nobody".into(),
            subjects => shown(&subjects.join(", ")),
        }
    }

    /// True if the certificate may be used for this.
    pub(crate) fn may(&self, usage: &[u8]) -> bool {
        let usages = self.extension(EXTENDED_KEY_USAGE).and_then(|value| der::open_only(value, SEQUENCE));
        usages.is_some_and(|mut usages| {
            std::iter::from_fn(|| usages.content(OBJECT_ID)).any(|found| found == usage)
        })
    }

    /// The promises of certificate logs, as TLS writes them.
    pub(crate) fn log_promises(&self) -> Option<&'a [u8]> {
        let value = self.extension(SIGNED_CERTIFICATE_TIMESTAMPS)?;
        let mut reader = Reader::new(value);
        reader.content(OCTET_STRING).filter(|_| reader.is_at_end())
    }

    /// The body of the certificate as the certificate logs saw it: without their promises.
    pub(crate) fn body_for_logs(&self) -> Vec<u8> {
        let kept = self.extensions.iter().filter(|extension| extension.id != SIGNED_CERTIFICATE_TIMESTAMPS);
        let list =
            der::write(SEQUENCE, &kept.flat_map(|extension| extension.whole).copied().collect::<Vec<_>>());
        der::write(SEQUENCE, &[&self.fields.concat()[..], &der::write(tagged(3), &list)].concat())
    }

    /// Verifies that an authority issued the certificate for a usage, and that it was valid at a
    /// time. Returns the key of the issuer.
    pub(crate) fn verify(
        &self,
        authorities: &[Authority],
        usage: &'static [u8],
        time: Timestamp,
    ) -> Result<Vec<u8>, Reason> {
        let refused = |why: &str| Reason::Authority { subject: self.shown_subject(), why: why.into() };
        if !self.may(usage) {
            return Err(refused("it is not for this usage"));
        }
        let der = CertificateDer::from(self.der);
        let leaf = EndEntityCert::try_from(&der).map_err(|error| refused(&error.to_string()))?;
        let mut found = refused("no authority of the trust root was valid at the time of the signature");
        for authority in authorities.iter().filter(|authority| authority.period.holds(time)) {
            match issuer_key(&leaf, authority, usage, time) {
                Ok(key) => return Ok(key),
                // That the time is wrong says more than that another authority issued it.
                Err(_) if !matches!(found, Reason::Authority { .. }) => {}
                Err(error) => found = reason(&error, time).unwrap_or_else(|| refused(&error.to_string())),
            }
        }
        Err(found)
    }
}

impl<'a> Extension<'a> {
    fn parse(extension: Element<'a>) -> Option<Self> {
        let mut fields = Reader::new(extension.content);
        let id = fields.content(OBJECT_ID)?;
        fields.optional(BOOLEAN);
        let value = fields.content(OCTET_STRING)?;
        fields.is_at_end().then_some(Self { id, value, whole: extension.whole })
    }
}

/// Returns the key of a certificate's issuer, if an authority leads to it.
fn issuer_key(
    leaf: &EndEntityCert<'_>,
    authority: &Authority,
    usage: &'static [u8],
    time: Timestamp,
) -> Result<Vec<u8>, Error> {
    let seconds = u64::try_from(time.as_second()).map_err(|_| Error::BadDerTime)?;
    let path = leaf.verify_for_usage(
        ALGORITHMS,
        std::slice::from_ref(&authority.anchor),
        &authority.others,
        UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds)),
        KeyUsage::required_if_present(usage),
        None,
        None,
    )?;
    Ok(match path.intermediate_certificates().next() {
        Some(issuer) => issuer.subject_public_key_info().as_ref().to_vec(),
        None => der::write(SEQUENCE, path.anchor().subject_public_key_info.as_ref()),
    })
}

/// Returns the refusal for an error about the time.
fn reason(error: &Error, signed: Timestamp) -> Option<Reason> {
    let at = |time: &UnixTime| Timestamp::from_second(i64::try_from(time.as_secs()).ok()?).ok();
    match error {
        Error::CertExpired { not_after, .. } => Some(Reason::Expired { until: at(not_after)?, signed }),
        Error::CertNotValidYet { not_before, .. } => {
            Some(Reason::NotYetValid { from: at(not_before)?, signed })
        }
        _ => None,
    }
}

/// Reads a text in DER.
fn der_text(value: &[u8]) -> Option<String> {
    let mut reader = Reader::new(value);
    let text = reader.content(UTF8_STRING).filter(|_| reader.is_at_end())?;
    String::from_utf8(text.to_vec()).ok()
}

/// Reads Fulcio's name for a user that is neither an address nor a URL.
fn user_name(name: Element<'_>) -> Option<String> {
    let mut fields = Reader::new(name.content);
    let id = fields.content(OBJECT_ID)?;
    let value = fields.content(tagged(0))?;
    let is_user = name.tag == tagged(0) && *id == *[FULCIO, &[7]].concat();
    if is_user { der_text(value) } else { None }
}

/// Reads the certificates of an authority, the root last.
pub(crate) fn read_authority(chain: Vec<Vec<u8>>, period: Period) -> Option<Authority> {
    let mut others: Vec<_> = chain.into_iter().map(CertificateDer::from).collect();
    let root = others.pop().filter(|_| others.len() < MAX_CERTIFICATES)?;
    let anchor = webpki::anchor_from_trusted_cert(&root).ok()?.to_owned();
    Some(Authority { anchor, others, period })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_name_is_read() {
        let text = |value: &str| der::write(UTF8_STRING, value.as_bytes());
        let name = |id: &[u8]| {
            let id = der::write(OBJECT_ID, id);
            der::write(tagged(0), &[&id[..], &der::write(tagged(0), &text("ann!shop.example"))].concat())
        };
        let read = |name: Vec<u8>| user_name(Reader::new(&name).element().unwrap());
        assert_eq!(read(name(&[FULCIO, &[7]].concat())), Some("ann!shop.example".to_owned()));
        assert_eq!(read(name(&[FULCIO, &[8]].concat())), None);
        assert_eq!(read(text("ann")), None);
    }
}
