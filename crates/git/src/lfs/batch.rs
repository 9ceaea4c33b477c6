//! Batch API of Git LFS: asks a server where it has files.
//!
//! In: pointers; the body of the answer.
//! Out: the body of the request; for each file a [`Download`], or the reason why there is none.
//! Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use ureq::http::{HeaderMap, HeaderName, HeaderValue, header};

use super::error::LfsProblem;
use crate::chart::url::Url;
use moorline_core::tree::LfsPointer;

/// Media type of requests and answers.
pub(super) const MEDIA_TYPE: &str = "application/vnd.git-lfs+json";

/// Maximum number of headers for a download.
const MAX_HEADERS: usize = 16;

/// Maximum number of bytes of the value of a header.
const MAX_HEADER_BYTES: usize = 8 * 1024;

/// Headers that belong to the connection, and that no server sets for us.
const OWN_HEADERS: [HeaderName; 9] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::ACCEPT_ENCODING,
    header::PROXY_AUTHORIZATION,
    header::RANGE,
    header::TE,
    header::UPGRADE,
];

/// The place of a file.
pub(super) struct Download {
    pub(super) url: Url,
    /// Headers of the request, whose values may be secret.
    pub(super) headers: HeaderMap,
    /// True if no further login is needed.
    pub(super) is_authenticated: bool,
}

/// Returns the body of a request for files.
pub(super) fn request(wanted: &[&LfsPointer]) -> Vec<u8> {
    let objects: Vec<Value> =
        wanted.iter().map(|pointer| json!({"oid": pointer.oid, "size": pointer.size})).collect();
    let body = json!({
        "operation": "download", "transfers": ["basic"], "hash_algo": "sha256", "objects": objects,
    });
    body.to_string().into_bytes()
}

/// Reads an answer: the places of files by their ids.
pub(super) fn answer(
    server: &str,
    body: &[u8],
) -> Result<BTreeMap<Box<str>, Result<Download, LfsProblem>>, LfsProblem> {
    let invalid = |problem| LfsProblem::Invalid { server: server.into(), problem };
    let answer: Value =
        serde_json::from_slice(body).map_err(|_| invalid("answers a request for files with no JSON"))?;
    if answer["transfer"].as_str().is_some_and(|transfer| transfer != "basic") {
        return Err(invalid("offers its files only by a transfer that was not asked for"));
    }
    if answer["hash_algo"].as_str().is_some_and(|name| name != "sha256") {
        return Err(invalid("names its files by another hash than SHA-256"));
    }
    let objects =
        answer["objects"].as_array().ok_or_else(|| invalid("answers a request for files without any"))?;
    let one = |object: &Value| Some((object["oid"].as_str()?.into(), download(server, object)));
    Ok(objects.iter().filter_map(one).collect())
}

/// Reads the place of one file.
fn download(server: &str, object: &Value) -> Result<Download, LfsProblem> {
    let invalid = |problem| LfsProblem::Invalid { server: server.into(), problem };
    let error = &object["error"];
    match error["code"].as_u64() {
        Some(404 | 410) => return Err(LfsProblem::Missing { server: server.into() }),
        Some(_) => return Err(invalid("refuses to serve it")),
        None if !error.is_null() => return Err(invalid("refuses to serve it")),
        None => {}
    }
    let action = &object["actions"]["download"];
    if !action["href"].is_string() {
        return Err(LfsProblem::Missing { server: server.into() });
    }
    let (url, headers) = place(server, action)?;
    let is_authenticated =
        object["authenticated"].as_bool() == Some(true) || headers.contains_key(header::AUTHORIZATION);
    Ok(Download { url, headers, is_authenticated })
}

/// Reads a URL, and the headers for it.
pub(super) fn place(server: &str, action: &Value) -> Result<(Url, HeaderMap), LfsProblem> {
    let invalid = |problem| LfsProblem::Invalid { server: server.into(), problem };
    let url = action["href"].as_str().and_then(Url::parse);
    let url = url.ok_or_else(|| invalid("gives a URL for it that cannot be used"))?;
    let mut headers = HeaderMap::new();
    for (name, value) in action["header"].as_object().into_iter().flatten() {
        let value = value.as_str().filter(|value| value.len() <= MAX_HEADER_BYTES);
        let value = value.and_then(|value| HeaderValue::from_str(value).ok());
        let (Ok(name), Some(mut value)) = (HeaderName::try_from(name), value) else {
            return Err(invalid("gives headers for it that cannot be sent"));
        };
        if OWN_HEADERS.contains(&name) {
            continue;
        }
        if headers.len() >= MAX_HEADERS {
            return Err(invalid("gives too many headers for it"));
        }
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok((url, headers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_used_as_far_as_it_is_sound() {
        let table = [
            (json!({"actions": {"download": {"href": "https://h/a?x=1"}}}), Ok((0, false))),
            (
                json!({"actions": {"download": {"href": "https://h/a", "header": {"Authorization": "x", "Host": "o"}}}}),
                Ok((1, true)),
            ),
            (
                json!({"authenticated": true, "actions": {"download": {"href": "https://h/a", "header": {}}}}),
                Ok((0, true)),
            ),
            (json!({"error": {"code": 404, "message": "planted"}}), Err("h does not have it")),
            (json!({"error": {"code": 500, "message": "planted"}}), Err("h refuses to serve it")),
            (json!({"error": "planted"}), Err("h refuses to serve it")),
            (json!({}), Err("h does not have it")),
            (json!({"actions": {"download": {"href": "file:///etc/passwd"}}}), Err("h gives a URL")),
            (json!({"actions": {"download": {"href": "https://u:planted@h/a"}}}), Err("h gives a URL")),
            (
                json!({"actions": {"download": {"href": "https://h/a", "header": {"x": "planted\n"}}}}),
                Err("h gives headers"),
            ),
            (
                json!({"actions": {"download": {"href": "https://h/a", "header": {"x": "a".repeat(9000)}}}}),
                Err("h gives headers"),
            ),
        ];
        for (mut object, expect) in table {
            object["oid"] = "aa".into();
            let body = json!({"objects": [object]}).to_string();
            let found = answer("h", body.as_bytes()).unwrap().remove("aa").unwrap();
            match (found, expect) {
                (Ok(found), Ok(expect)) => assert_eq!((found.headers.len(), found.is_authenticated), expect),
                (Err(error), Err(expect)) => {
                    let message = error.to_string();
                    assert!(message.starts_with(expect) && !message.contains("planted"), "{message}");
                }
                (found, _) => panic!("{body}: {:?}", found.err()),
            }
        }
        for body in
            ["", "[]", "{}", r#"{"transfer": "tus", "objects": []}"#, r#"{"hash_algo": "x", "objects": []}"#]
        {
            assert!(answer("h", body.as_bytes()).is_err(), "{body}");
        }
        assert!(answer("h", br#"{"transfer": "basic", "objects": [1, {"oid": 2}]}"#).unwrap().is_empty());
    }
}
