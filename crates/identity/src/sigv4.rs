//! Signature version 4 of AWS.
//!
//! In: a request, credentials, a region, a service, the time.
//! Out: the same request with the headers of a signature. The session token is signed as well, and
//! every header that the request has.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ring::digest::{SHA256, digest};
use ring::hmac;

use crate::exchange::{ExchangeError, ExchangeRequest, Method, encoded};
use crate::secret::SecretText;

/// Name of the algorithm in a signature.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Credentials of AWS; those of a role have a session token and an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsCredentials {
    /// The id of the access key, which is no secret.
    pub access_key: String,
    /// The secret access key.
    pub secret_key: SecretText,
    /// The session token of a role.
    pub session_token: Option<SecretText>,
}

/// The place of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AwsScope<'a> {
    /// The region, such as `eu-central-1`.
    pub region: &'a str,
    /// The service, such as `ecr` or `kms`.
    pub service: &'a str,
}

/// Adds the signature to a request, which is valid for minutes around `now`.
pub fn sign(
    request: &mut ExchangeRequest,
    credentials: &AwsCredentials,
    scope: AwsScope<'_>,
    now: Timestamp,
) -> Result<(), ExchangeError> {
    let time = now.to_zoned(TimeZone::UTC).strftime("%Y%m%dT%H%M%SZ").to_string();
    let day = time.split('T').next().unwrap_or_default().to_owned();
    request.headers.push(("x-amz-date", time.as_str().into()));
    if let Some(token) = &credentials.session_token {
        request.headers.push(("x-amz-security-token", token.clone()));
    }
    let (canonical, names) = canonical(request)?;
    let place = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
    let signed = format!("{ALGORITHM}\n{time}\n{place}\n{}", hash(canonical.as_str()));
    let key = signing_key(credentials, &day, scope);
    let signature = hex(hmac::sign(&key, signed.as_bytes()).as_ref());
    let access_key = &credentials.access_key;
    let value =
        format!("{ALGORITHM} Credential={access_key}/{place}, SignedHeaders={names}, Signature={signature}");
    request.headers.push(("authorization", SecretText::new(value)));
    Ok(())
}

/// Returns the request in its canonical form, and the names of its headers.
fn canonical(request: &ExchangeRequest) -> Result<(SecretText, String), ExchangeError> {
    let rest = request.url.strip_prefix("https://").ok_or(ExchangeError::Input("the URL is not https"))?;
    let (host, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut headers = BTreeMap::from([("host", host.to_owned())]);
    for (name, value) in &request.headers {
        let words: Vec<&str> = value.as_str().split_whitespace().collect();
        headers.insert(name, words.join(" "));
    }
    let names: Vec<&str> = headers.keys().copied().collect();
    let names = names.join(";");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let method = match request.method {
        Method::Get => "GET",
        Method::Post => "POST",
        Method::Patch => "PATCH",
        Method::Put => "PUT",
    };
    let (path, query) = (canonical_path(path), canonical_query(query));
    let body = hash(request.body.as_str());
    Ok((SecretText::new(format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{body}")), names))
}

/// Encodes each part of a path once more.
fn canonical_path(path: &str) -> String {
    match path {
        "" => "/".to_owned(),
        path => path.split('/').map(encoded).collect::<Vec<_>>().join("/"),
    }
}

/// Sorts the fields of a query, which is encoded already.
fn canonical_query(query: &str) -> String {
    let fields = query.split('&').filter(|field| !field.is_empty());
    let mut fields: Vec<(&str, &str)> =
        fields.map(|field| field.split_once('=').unwrap_or((field, ""))).collect();
    fields.sort_unstable();
    fields.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

/// Derives the key of a day, a region and a service.
fn signing_key(credentials: &AwsCredentials, day: &str, scope: AwsScope<'_>) -> hmac::Key {
    let secret = SecretText::new(format!("AWS4{}", credentials.secret_key.as_str()));
    let first = hmac::Key::new(hmac::HMAC_SHA256, secret.as_str().as_bytes());
    [day, scope.region, scope.service, "aws4_request"].iter().fold(first, |key, part| {
        hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref())
    })
}

fn hash(text: &str) -> String {
    hex(digest(&SHA256, text.as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The credentials and the time of the examples that AWS publishes.
    fn signature(method: Method, url: &str, headers: &[(&'static str, &str)], body: &str) -> String {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).into())).collect();
        let mut request = ExchangeRequest { method, url: url.to_owned(), headers, body: body.into() };
        let credentials = AwsCredentials {
            access_key: "AKIDEXAMPLE".to_owned(),
            secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
        };
        let service = if url.contains("iam.") { "iam" } else { "service" };
        let scope = AwsScope { region: "us-east-1", service };
        sign(&mut request, &credentials, scope, "2015-08-30T12:36:00Z".parse().unwrap()).unwrap();
        let (_, value) = request.headers.last().unwrap();
        value.as_str().to_owned()
    }

    #[test]
    fn signatures_are_those_of_the_published_examples() {
        let form = [("content-type", "application/x-www-form-urlencoded")];
        let utf8 = [("content-type", "application/x-www-form-urlencoded; charset=utf-8")];
        let table: [(_, _, &[(&'static str, &str)], _, _); 5] = [
            (
                Method::Get,
                "https://example.amazonaws.com/",
                &[],
                "",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                Method::Post,
                "https://example.amazonaws.com",
                &[],
                "",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                Method::Get,
                "https://example.amazonaws.com/?Param2=value2&Param1=value1",
                &[],
                "",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
            (
                Method::Post,
                "https://example.amazonaws.com/",
                &form,
                "Param1=value1",
                "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ),
            (
                Method::Get,
                "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
                &utf8,
                "",
                "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
            ),
        ];
        for (method, url, headers, body, expect) in table {
            let value = signature(method, url, headers, body);
            assert!(value.ends_with(&format!("Signature={expect}")), "{url}: {value}");
        }
        let value = signature(Method::Get, "https://example.amazonaws.com/", &[], "");
        let head = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
                    SignedHeaders=host;x-amz-date, Signature=";
        assert!(value.starts_with(head), "{value}");
    }
}
