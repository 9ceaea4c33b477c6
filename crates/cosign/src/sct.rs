//! Promises of certificate logs (RFC 6962) inside a certificate.
//!
//! In: a certificate, the key of its issuer, and the logs of a trust root.
//! Out: nothing, or a refusal. One promise by a known log suffices.

use jiff::Timestamp;
use ring::digest::{SHA256, digest};

use crate::certificate::Certificate;
use crate::der::take;
use crate::error::{MAX_TIMESTAMPS, Reason};
use crate::trust_root::Log;

/// Bytes of the identity of a log.
const LOG_ID_BYTES: usize = 32;

/// One promise.
struct Promise<'a> {
    log: &'a [u8],
    milliseconds: &'a [u8],
    extensions: &'a [u8],
    signature: &'a [u8],
}

/// Verifies that a log of the trust root promised to hold a certificate.
pub(crate) fn verify_promises(
    certificate: &Certificate<'_>,
    issuer_key: &[u8],
    logs: &[Log],
) -> Result<(), Reason> {
    let list = certificate.log_promises().ok_or(Reason::CertificateLog("it has no promise of one"))?;
    let promises = parse_list(list).ok_or(Reason::CertificateLog("its promise cannot be read"))?;
    let body = certificate.body_for_logs();
    let mut known = false;
    for promise in promises {
        for log in logs.iter().filter(|log| log.id == promise.log) {
            known = true;
            let signed = promise.signed_bytes(issuer_key, &body);
            let in_time = promise.time().is_some_and(|time| log.period.holds(time));
            if in_time && signed.is_some_and(|signed| log.key.verifies(&signed, promise.signature)) {
                return Ok(());
            }
        }
    }
    Err(Reason::CertificateLog(match known {
        true => "the promise is not signed by the log for this certificate",
        false => "the promise is of another log",
    }))
}

/// Reads a list of promises.
fn parse_list(mut list: &[u8]) -> Option<Vec<Promise<'_>>> {
    let mut all = with_length(&mut list)?;
    let mut promises = Vec::new();
    while !all.is_empty() && promises.len() < MAX_TIMESTAMPS {
        let mut fields = with_length(&mut all)?;
        let version = take(&mut fields, 1)?;
        let log = take(&mut fields, LOG_ID_BYTES)?;
        let milliseconds = take(&mut fields, 8)?;
        let extensions = with_length(&mut fields)?;
        // Hash and kind of the signature: the log's key decides.
        take(&mut fields, 2)?;
        let signature = with_length(&mut fields)?;
        (version == [0] && fields.is_empty()).then_some(())?;
        promises.push(Promise { log, milliseconds, extensions, signature });
    }
    list.is_empty().then_some(promises)
}

/// Takes bytes behind their length of two bytes.
fn with_length<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u16::from_be_bytes(take(bytes, 2)?.try_into().ok()?);
    take(bytes, usize::from(length))
}

impl Promise<'_> {
    fn time(&self) -> Option<Timestamp> {
        let milliseconds = u64::from_be_bytes(self.milliseconds.try_into().ok()?);
        Timestamp::from_millisecond(i64::try_from(milliseconds).ok()?).ok()
    }

    /// Returns the bytes that the log signed.
    fn signed_bytes(&self, issuer_key: &[u8], body: &[u8]) -> Option<Vec<u8>> {
        let length = u32::try_from(body.len()).ok().filter(|length| *length < 1 << 24)?.to_be_bytes();
        let extensions = u16::try_from(self.extensions.len()).ok()?.to_be_bytes();
        let issuer = digest(&SHA256, issuer_key);
        // Version 1, a promise, and a certificate that was not final.
        let parts: [&[u8]; 8] = [
            &[0, 0],
            self.milliseconds,
            &[0, 1],
            issuer.as_ref(),
            &length[1..],
            body,
            &extensions,
            self.extensions,
        ];
        Some(parts.concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_list_is_read_to_its_end() {
        let promise =
            [&[0][..], &[7; 32], &[0, 0, 0, 0, 0, 0, 0, 5], &[0, 0], &[4, 3], &[0, 2, 8, 9]].concat();
        let list = |promise: &[u8], rest: &[u8]| {
            let length = u16::try_from(promise.len()).unwrap().to_be_bytes();
            let all = u16::try_from(promise.len() + 2).unwrap().to_be_bytes();
            [&all[..], &length, promise, rest].concat()
        };
        let whole = list(&promise, &[]);
        let read = parse_list(&whole).unwrap();
        assert_eq!((read.len(), read[0].signature), (1, &[8, 9][..]));
        assert_eq!(read[0].time(), Timestamp::from_millisecond(5).ok());
        for wrong in
            [list(&promise, &[0]), list(&promise[..20], &[]), list(&[&[1][..], &promise[1..]].concat(), &[])]
        {
            assert!(parse_list(&wrong).is_none(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn any_list_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            drop(parse_list(&bytes));
        }
    }
}
