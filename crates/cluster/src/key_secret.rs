//! The Secret with the daemon's keys: reads and fills it.
//!
//! In: a namespace and a name.
//! Out: [`KeyData`]. A fill carries the resourceVersion that it is based on, so that of two daemons
//! one wins. No content of the Secret is formatted, and no error quotes it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::{ApiError, Cluster, kinds};
use crate::api_client::ApiRequest;
use moorline_api::{DAEMON_MANAGER, KEYS_LABEL};
use moorline_engine::proof::KEY_BYTES;
use moorline_metrics::RequestClass;

/// Data field with the current key.
pub const CURRENT: &str = "current";
/// Data field with the previous keys, concatenated.
pub const PREVIOUS: &str = "previous";
/// Data field with the identity under which a run without a Sync owns objects.
pub const ID: &str = "id";

/// Content of the Secret.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyData {
    /// resourceVersion of the Secret.
    pub version: Box<str>,
    /// The current key; none if it is yet to be filled in.
    pub current: Option<[u8; KEY_BYTES]>,
    /// The previous keys.
    pub previous: Vec<[u8; KEY_BYTES]>,
    /// Identity of a run without a Sync.
    pub id: Option<Box<str>>,
    /// True if the Secret has the label by which other daemons recognise it.
    pub is_labelled: bool,
}

/// Data fields to fill in.
pub type Fill<'a> = [(&'a str, &'a [u8])];

/// Reads the keys; none if the Secret does not exist.
pub async fn key_data(cluster: &Cluster, namespace: &str, name: &str) -> Result<Option<KeyData>, ApiError> {
    match cluster
        .0
        .wire
        .send(ApiRequest::new(RequestClass::Verify, "get", place(namespace, Some(name))))
        .await
    {
        Ok(reply) => read(&reply.body).map(Some),
        Err(failure) if failure.code() == Some(404) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Fills data fields of the Secret.
///
/// # Guarantees
///
/// Writes only if the Secret still has this resourceVersion.
///
/// # Cancellation
///
/// Dropping the future leaves open whether the Secret was written.
///
/// # Errors
///
/// 409 if the Secret has changed since; otherwise any [`ApiError`].
pub async fn fill_keys(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    version: &str,
    fill: &Fill<'_>,
) -> Result<KeyData, ApiError> {
    let patch = json!({"metadata": {"resourceVersion": version, "labels": mark()}, "data": encoded(fill)});
    let call = ApiRequest::new(RequestClass::Verify, "patch", write_uri(namespace, Some(name)))
        .content("application/merge-patch+json", patch.to_string().into_bytes());
    read(&cluster.send_unlisted(call).await?.body)
}

/// Creates the Secret.
///
/// # Guarantees
///
/// An existing Secret is not changed.
///
/// # Cancellation
///
/// Dropping the future leaves open whether the Secret was created.
///
/// # Errors
///
/// 409 if it exists; otherwise any [`ApiError`].
pub async fn create_key_secret(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    fill: &Fill<'_>,
) -> Result<KeyData, ApiError> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": name, "namespace": namespace, "labels": mark()},
        "data": encoded(fill),
    });
    let call = ApiRequest::new(RequestClass::Verify, "create", write_uri(namespace, None))
        .content("application/json", secret.to_string().into_bytes());
    read(&cluster.send_unlisted(call).await?.body)
}

fn place(namespace: &str, name: Option<&str>) -> String {
    let collection = format!("/api/v1/namespaces/{}/secrets", kinds::escape(namespace));
    name.map_or_else(|| collection.clone(), |name| format!("{collection}/{}", kinds::escape(name)))
}

fn write_uri(namespace: &str, name: Option<&str>) -> String {
    format!("{}?fieldManager={DAEMON_MANAGER}", place(namespace, name))
}

fn mark() -> Value {
    json!({KEYS_LABEL: "true"})
}

fn encoded(fill: &Fill<'_>) -> Value {
    Value::Object(
        fill.iter().map(|(key, bytes)| ((*key).to_owned(), STANDARD.encode(bytes).into())).collect(),
    )
}

fn read(body: &[u8]) -> Result<KeyData, ApiError> {
    let bad = |what: &str| ApiError::InvalidResponse(what.into());
    let secret: Map<String, Value> =
        serde_json::from_slice(body).map_err(|_| bad("the Secret with the keys is not a JSON object"))?;
    let version = secret.get("metadata").and_then(|metadata| metadata["resourceVersion"].as_str());
    let labels = secret.get("metadata").and_then(|metadata| metadata.get("labels"));
    let data = secret.get("data").and_then(Value::as_object);
    let bytes = |key: &str| -> Result<Vec<u8>, ApiError> {
        let Some(Value::String(text)) = data.and_then(|data| data.get(key)) else { return Ok(Vec::new()) };
        STANDARD
            .decode(text)
            .map_err(|_| bad(&format!("the field {key} of the Secret with the keys is not base64")))
    };
    let keys = |key: &str| -> Result<Vec<[u8; KEY_BYTES]>, ApiError> {
        let bytes = bytes(key)?;
        let (keys, rest) = bytes.as_chunks::<KEY_BYTES>();
        match rest.is_empty() {
            true => Ok(keys.to_vec()),
            false => Err(bad(&format!(
                "the field {key} of the Secret with the keys has {} bytes, and a key has {KEY_BYTES}",
                bytes.len()
            ))),
        }
    };
    let current = keys(CURRENT)?;
    if current.len() > 1 {
        return Err(bad(&format!("the field {CURRENT} of the Secret with the keys holds more than one key")));
    }
    let id = String::from_utf8(bytes(ID)?).ok().filter(|id| !id.is_empty());
    Ok(KeyData {
        version: version.ok_or_else(|| bad("the Secret with the keys has no resourceVersion"))?.into(),
        current: current.first().copied(),
        previous: keys(PREVIOUS)?,
        id: id.map(Into::into),
        is_labelled: labels.is_some_and(|labels| labels.get(KEYS_LABEL).is_some()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(data: Value) -> Result<KeyData, ApiError> {
        read(json!({"metadata": {"resourceVersion": "7"}, "data": data}).to_string().as_bytes())
    }

    #[test]
    fn keys_of_the_right_length_are_read_and_others_are_not_quoted() {
        let text = |byte: u8, count: usize| STANDARD.encode(vec![byte; count]);
        let two = secret(json!({"current": text(1, 32), "previous": text(2, 64)})).unwrap();
        assert_eq!((two.current, two.previous.len(), two.id), (Some([1; 32]), 2, None));
        let empty = secret(Value::Null).unwrap();
        assert!(empty.current.is_none() && empty.previous.is_empty());
        for wrong in
            [json!({"current": text(65, 31)}), json!({"current": text(65, 64)}), json!({"previous": "%"})]
        {
            let told = secret(wrong).map(drop).unwrap_err().to_string();
            assert!(!told.contains("AAAA") && !told.contains("QUFB"), "{told}");
        }
    }
}
