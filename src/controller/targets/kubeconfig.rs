//! Reads the access to another cluster from a Secret.
//!
//! In: the data of a Secret: a kubeconfig, or a cluster Secret of Argo CD.
//! Out: a [`RemoteAccess`], or the field that is refused. Only values within the Secret count: a
//! program, a path or a token file would be those of the daemon, and a proxy or an unchecked
//! certificate would show the token to somebody else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Uri;
use serde_json::{Map, Value};

use crate::cluster::remote::{ClientPair, RemoteAccess};
use crate::yaml::{self, Dialect};

/// Keys that may have the kubeconfig: ours, and that of Cluster API.
const KEYS: [&str; 2] = ["kubeconfig", "value"];

/// Maximum size of a kubeconfig.
const MAX_KUBECONFIG: usize = 256 << 10;

/// Fields of a cluster that count; those with a value beside them are refused.
const CLUSTER_FIELDS: [&str; 5] =
    ["server", "certificate-authority-data", "tls-server-name", "disable-compression", "extensions"];

/// Fields of a user that count.
const USER_FIELDS: [&str; 4] = ["token", "client-certificate-data", "client-key-data", "extensions"];

/// Fields of the `config` of a cluster Secret of Argo CD that count, and those of its
/// `tlsClientConfig`.
const ARGO_FIELDS: [&str; 3] = ["bearerToken", "tlsClientConfig", "disableCompression"];
const ARGO_TLS_FIELDS: [&str; 4] = ["caData", "certData", "keyData", "serverName"];

/// A Secret that gives no access to another cluster, in a sentence without any of its values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct KubeconfigError(String);

type Fields = Map<String, Value>;

/// Returns the access in the data of a Secret; `key` is the key of the kubeconfig, if one is named.
pub(crate) fn read_access(
    data: &[(String, Vec<u8>)],
    key: Option<&str>,
) -> Result<RemoteAccess, KubeconfigError> {
    let find = |key: &str| data.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_slice());
    let known = match key {
        Some(key) => Some(find(key).ok_or_else(|| refused(format!("it has no key {key}")))?),
        None => KEYS.into_iter().find_map(find),
    };
    match (known, find("server"), find("config")) {
        (Some(text), _, _) => of_kubeconfig(text),
        (None, Some(server), Some(config)) => of_argo(server, config),
        (None, _, _) => Err(refused(format!(
            "it has none of the keys {} and {}, and not both server and config, as Argo CD writes them",
            KEYS[0], KEYS[1]
        ))),
    }
}

fn of_kubeconfig(text: &[u8]) -> Result<RemoteAccess, KubeconfigError> {
    if text.len() > MAX_KUBECONFIG {
        return Err(refused(format!("its kubeconfig has more than {} KiB", MAX_KUBECONFIG >> 10)));
    }
    let documents = yaml::read("kubeconfig", text, Dialect::Kubectl);
    // The message of the parser may quote a value.
    let documents = documents.map_err(|_| refused("its kubeconfig is no valid YAML"))?;
    let [document] = &*documents else { return Err(refused("its kubeconfig is not one YAML document")) };
    let whole = document.value.as_object().ok_or_else(|| refused("its kubeconfig is no mapping"))?;
    let contexts = list(whole, "contexts");
    let current = text_of(whole, "current-context")?;
    let context = match (current, &*contexts) {
        (Some(name), _) => part(&contexts, name, "context")?,
        (None, [only]) => fields(only.get("context"), "context")?,
        (None, _) => return Err(refused("its kubeconfig names no current-context")),
    };
    let named = |field: &str, of: &str| {
        let name = text_of(context, field)?;
        let name = name.ok_or_else(|| refused(format!("the context of its kubeconfig names no {field}")))?;
        part(&list(whole, of), name, field).cloned()
    };
    let (cluster, user) = (named("cluster", "clusters")?, named("user", "users")?);
    refuse_others(&cluster, &CLUSTER_FIELDS, "cluster")?;
    refuse_others(&user, &USER_FIELDS, "user")?;
    let server = text_of(&cluster, "server")?.unwrap_or_default();
    let client = pair(
        text_of(&user, "client-certificate-data")?,
        text_of(&user, "client-key-data")?,
        ["client-certificate-data", "client-key-data"],
    )?;
    complete(RemoteAccess {
        server: address(server)?,
        authorities: decoded(&cluster, "certificate-authority-data")?,
        server_name: text_of(&cluster, "tls-server-name")?.map(str::to_owned),
        token: text_of(&user, "token")?.map(str::to_owned),
        client,
    })
}

/// Reads a cluster Secret of Argo CD.
fn of_argo(server: &[u8], config: &[u8]) -> Result<RemoteAccess, KubeconfigError> {
    let config: Value = serde_json::from_slice(config).map_err(|_| refused("its config is no valid JSON"))?;
    let config = fields(Some(&config), "config")?;
    refuse_others(config, &ARGO_FIELDS, "config")?;
    let none = Map::new();
    let tls = match config.get("tlsClientConfig") {
        None | Some(Value::Null) => &none,
        Some(tls) => fields(Some(tls), "tlsClientConfig")?,
    };
    refuse_others(tls, &ARGO_TLS_FIELDS, "tlsClientConfig")?;
    let server = std::str::from_utf8(server).map_err(|_| refused("its server is no text"))?;
    let client = pair(text_of(tls, "certData")?, text_of(tls, "keyData")?, ["certData", "keyData"])?;
    complete(RemoteAccess {
        server: address(server.trim())?,
        authorities: decoded(tls, "caData")?,
        server_name: text_of(tls, "serverName")?.map(str::to_owned),
        token: text_of(config, "bearerToken")?.map(str::to_owned),
        client,
    })
}

fn refused(why: impl Into<String>) -> KubeconfigError {
    KubeconfigError(why.into())
}

/// Refuses an access without credentials: an anonymous user is no identity.
fn complete(access: RemoteAccess) -> Result<RemoteAccess, KubeconfigError> {
    match access.token.is_some() || access.client.is_some() {
        true => Ok(access),
        false => Err(refused("it has neither a token nor a client certificate with its key")),
    }
}

/// Refuses fields with a value that do not count.
fn refuse_others(found: &Fields, counted: &[&str], what: &str) -> Result<(), KubeconfigError> {
    let is_empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    };
    let other = found.iter().find(|(field, value)| !counted.contains(&field.as_str()) && !is_empty(value));
    match other {
        None => Ok(()),
        Some((field, _)) => Err(refused(format!(
            "the field {} of its {what} is refused: only {} count here, with the values in the Secret itself",
            field.chars().take(MAX_SHOWN).collect::<String>(),
            counted.join(", ")
        ))),
    }
}

/// Most characters that are shown of the name of a field.
const MAX_SHOWN: usize = 60;

fn list<'a>(whole: &'a Fields, field: &str) -> Vec<&'a Fields> {
    let items = whole.get(field).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_object).collect()
}

/// Returns the part of this name in a list of a kubeconfig.
fn part<'a>(all: &[&'a Fields], name: &str, what: &str) -> Result<&'a Fields, KubeconfigError> {
    let mut found = all.iter().filter(|one| one.get("name").and_then(Value::as_str) == Some(name));
    match (found.next(), found.next()) {
        (Some(one), None) => fields(one.get(what), what),
        (Some(_), Some(_)) => Err(refused(format!("its kubeconfig has the {what} of its context twice"))),
        (None, _) => Err(refused(format!("its kubeconfig lacks the {what} that its context names"))),
    }
}

fn fields<'a>(value: Option<&'a Value>, what: &str) -> Result<&'a Fields, KubeconfigError> {
    value.and_then(Value::as_object).ok_or_else(|| refused(format!("its {what} is no mapping")))
}

/// Returns a text that is not empty.
fn text_of<'a>(of: &'a Fields, field: &str) -> Result<Option<&'a str>, KubeconfigError> {
    match of.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(refused(format!("the field {field} is no text"))),
    }
}

fn decoded(of: &Fields, field: &str) -> Result<Option<Vec<u8>>, KubeconfigError> {
    let Some(text) = text_of(of, field)? else { return Ok(None) };
    STANDARD.decode(text.trim()).map(Some).map_err(|_| refused(format!("the field {field} is no base64")))
}

fn pair(
    certificate: Option<&str>,
    key: Option<&str>,
    names: [&str; 2],
) -> Result<Option<ClientPair>, KubeconfigError> {
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            Ok(Some(ClientPair { certificate: certificate.to_owned(), key: key.to_owned() }))
        }
        _ => Err(refused(format!("it has only one of {} and {}", names[0], names[1]))),
    }
}

/// Parses the URL of an API server.
fn address(url: &str) -> Result<Uri, KubeconfigError> {
    let bad = || refused("its server is no URL such as https://east.example.com:6443");
    let uri: Uri = url.parse().map_err(|_| bad())?;
    let authority = uri.authority().ok_or_else(bad)?;
    if uri.scheme_str() != Some("https") {
        return Err(refused("its server is not reached with https: the token would be readable on the way"));
    }
    match authority.as_str().contains('@') || uri.query().is_some() || authority.host().is_empty() {
        true => Err(bad()),
        false => Ok(uri),
    }
}

#[cfg(test)]
#[path = "kubeconfig_tests.rs"]
mod tests;
