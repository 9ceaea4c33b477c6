//! HTTP client for webhooks.
//!
//! In: a `clientConfig` and a request body.
//! Out: the response body, or the error in the wording of Kubernetes where it has one.

use std::error::Error;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::response::Parts;
use http::{Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;

/// Maximum size of a response in bytes.
const MAX_ANSWER: usize = 16 << 20;
/// Maximum number of bytes of an error response that are quoted.
const MAX_TOLD: usize = 2048;

/// Address of a webhook.
struct Address {
    url: String,
    /// Name of the Service in front of the webhook. It is never found: the sandbox has no network.
    service: Option<String>,
}

/// HTTP client of one webhook.
pub(crate) struct WebhookClient {
    address: Address,
    bundle: Vec<u8>,
    /// Timeout in seconds.
    timeout_seconds: u64,
    client: OnceLock<Client>,
}

impl WebhookClient {
    /// Returns a client for a `clientConfig`.
    pub(crate) fn new(client: &Value, patience: u64) -> Self {
        let bundle = STANDARD.decode(client["caBundle"].as_str().unwrap_or_default()).unwrap_or_default();
        Self { address: address(client), bundle, timeout_seconds: patience, client: OnceLock::new() }
    }

    /// Sends a body and returns the response body.
    pub(crate) async fn post(&self, body: String) -> Result<Vec<u8>, String> {
        let told =
            |words: &str| format!("Post \"{}?timeout={}s\": {words}", self.address.url, self.timeout_seconds);
        if let Some(service) = &self.address.service {
            return Err(told(&format!("service {service:?} not found")));
        }
        match tokio::time::timeout(Duration::from_secs(self.timeout_seconds), self.send(body)).await {
            Ok(Ok((head, answer))) if !head.status.is_success() => Err(refusal(head.status, &answer)),
            Ok(Ok((head, answer))) if answer.is_empty() => {
                let content = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
                let (code, content) = (head.status.as_u16(), content.unwrap_or_default());
                Err(format!("0-length response with status code: {code} and content type: {content}"))
            }
            Ok(Ok((_, answer))) => Ok(answer),
            Ok(Err(words)) => Err(told(&words)),
            Err(_) => Err(told("context deadline exceeded")),
        }
    }

    async fn send(&self, body: String) -> Result<(Parts, Vec<u8>), String> {
        let url: Uri = self.address.url.parse().map_err(|_| "the URL is invalid".to_owned())?;
        let client = match self.client.get() {
            Some(client) => client.clone(),
            None => {
                let client = client(&url, &self.bundle)?;
                self.client.get_or_init(|| client).clone()
            }
        };
        let request = Request::post(format!("{}?timeout={}s", url.path(), self.timeout_seconds))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::USER_AGENT, "kube-apiserver-admission")
            .body(Body::from(body.into_bytes()))
            .map_err(|error| error.to_string())?;
        let response = client.send(request).await.map_err(|error| words(&error, &url))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MAX_ANSWER).collect().await.map_err(|error| words(&*error, &url))?;
        Ok((head, body.to_bytes().into()))
    }
}

/// Reads the address from a `clientConfig`.
fn address(client: &Value) -> Address {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match client.get("service").filter(|service| service.is_object()) {
        Some(service) => {
            let (name, namespace) = (text(&service["name"]), text(&service["namespace"]));
            let port = service["port"].as_i64().unwrap_or(443);
            let url = format!("https://{name}.{namespace}.svc:{port}{}", text(&service["path"]));
            Address { url, service: Some(name) }
        }
        None => Address { url: text(&client["url"]), service: None },
    }
}

fn client(url: &Uri, bundle: &[u8]) -> Result<Client, String> {
    // An error means that a provider is installed already, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let host = url.authority().map(|authority| authority.as_str()).unwrap_or_default();
    let base = format!("https://{host}/").parse().map_err(|_| "the URL is invalid".to_owned())?;
    let mut config = Config::new(base);
    let certificates: Vec<Vec<u8>> =
        CertificateDer::pem_slice_iter(bundle).filter_map(|one| Some(one.ok()?.to_vec())).collect();
    config.root_cert = Some(certificates).filter(|certificates| !certificates.is_empty());
    config.proxy_url = None;
    // One deadline covers the whole call.
    config.connect_timeout = None;
    config.default_retry = false;
    Client::try_from(config).map_err(|error| error.to_string())
}

/// Returns the message for a failed connection, as Go prints it.
fn words(error: &(dyn Error + 'static), url: &Uri) -> String {
    let mut cause = Some(error);
    let mut last = String::new();
    while let Some(error) = cause {
        if let Some(rustls::Error::InvalidCertificate(why)) = tls(error) {
            return certificate(why);
        }
        if let Some(error) = error.downcast_ref::<io::Error>()
            && error.kind() == io::ErrorKind::ConnectionRefused
        {
            let port = url.port_u16().unwrap_or(443);
            let host = match url.host().unwrap_or_default() {
                "localhost" => "127.0.0.1",
                host => host,
            };
            return format!("dial tcp {host}:{port}: connect: connection refused");
        }
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message) {
            return "EOF".to_owned();
        }
        last = error.to_string();
        cause = error.source();
    }
    last
}

/// Finds a TLS error, which may be wrapped in an I/O error.
fn tls<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let inner = || tls(error.downcast_ref::<io::Error>()?.get_ref()?);
    error.downcast_ref().or_else(inner)
}

fn certificate(why: &rustls::CertificateError) -> String {
    use rustls::CertificateError::{BadSignature, Expired, ExpiredContext, UnknownIssuer};
    let why = match why {
        BadSignature | UnknownIssuer => "certificate signed by unknown authority".to_owned(),
        Expired | ExpiredContext { .. } => "certificate has expired or is not yet valid".to_owned(),
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}

/// Returns the message for a response without success.
fn refusal(status: StatusCode, body: &[u8]) -> String {
    let told = String::from_utf8_lossy(&body[..body.len().min(MAX_TOLD)]).trim().to_owned();
    match status.as_u16() {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 | 415 => told,
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request"
            .to_owned(),
        500.. => format!("an error on the server ({told:?}) has prevented the request from succeeding"),
        code => format!("the server responded with the status code {code} but did not return more information"),
    }
}
