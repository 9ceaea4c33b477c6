//! The client of the API server.
//!
//! In: the kubeconfig of the environment, or the pod's service account.
//! Out: a client and its namespace. The proxy variables of the environment are for Git servers; the
//! API server is reached through a proxy only if the kubeconfig says so.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

use super::kubeconfig;
use super::lease::{Leadership, LeaseClaim, LeaseError, LeaseTimings, acquire_reporting};
use super::transport::http2_client;
use moorline_metrics::Metrics;

/// Error while creating the client.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// There is no kubeconfig, and this is not a pod.
    #[error("no cluster is configured: {0}; set KUBECONFIG, or run in a pod with a service account")]
    Nothing(String),
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(String),
    /// TLS or authentication failed.
    #[error("cannot create a client for the API server: {0}")]
    Client(String),
}

/// Timeout for establishing a connection.
pub(super) const CONNECT: Duration = Duration::from_secs(5);

/// A connection to one API server as one user; cheap to clone.
#[derive(Clone)]
pub struct Connection {
    pub(super) client: Client,
    /// The pod's namespace, or that of the kubeconfig's context.
    pub namespace: Box<str>,
    /// True if the server runs on this machine.
    pub(super) is_local: bool,
    /// Host and port of the server; none if it runs in this process.
    pub(super) place: Option<(Box<str>, u16)>,
}

impl Connection {
    /// Wraps an existing client.
    pub fn from_client(client: Client, namespace: &str) -> Self {
        Self { client, namespace: namespace.into(), is_local: true, place: None }
    }

    /// Returns host and port of the server; none if it runs in this process.
    pub fn server(&self) -> Option<String> {
        self.place.as_ref().map(|(host, port)| format!("{host}:{port}"))
    }

    /// Returns the known addresses of the server: of its host name, of the Service in the pod's
    /// environment, and of the endpoints behind that Service.
    pub async fn addresses(&self) -> Vec<SocketAddr> {
        let Some((host, port)) = &self.place else { return Vec::new() };
        let named = tokio::net::lookup_host((&**host, *port)).await;
        let named: Vec<SocketAddr> = named.map(Iterator::collect).unwrap_or_default();
        named.into_iter().chain(of_service()).chain(self.endpoints().await).collect()
    }

    /// Endpoints behind the server's Service; empty where the daemon may not read them.
    async fn endpoints(&self) -> Vec<SocketAddr> {
        let request = http::Request::get(ENDPOINTS).body(Vec::new());
        let Ok(request) = request else { return Vec::new() };
        let answer = tokio::time::timeout(CONNECT, self.client.request::<Value>(request)).await;
        match answer {
            Ok(Ok(slice)) => endpoints_of(&slice),
            Ok(Err(error)) => {
                tracing::debug!(%error, "cannot read the endpoints of the API server");
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }

    /// Waits until the Lease is acquired; reports each current holder to `waits_for`.
    pub async fn acquire_lease(
        &self,
        metrics: Metrics,
        claim: LeaseClaim,
        timings: LeaseTimings,
        waits_for: &(dyn Fn(&str) + Sync),
    ) -> Result<Leadership, LeaseError> {
        acquire_reporting(self.client.clone(), metrics, claim, timings, waits_for).await
    }
}

/// Connects to the cluster of the environment, impersonating `impersonated` if given. HTTP/2 is
/// offered to the server if `http2` is true.
pub async fn connect(impersonated: Option<&str>, http2: bool) -> Result<Connection, ConnectError> {
    // Fails if a provider is installed already, which is just as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    connection_of(config().await?, impersonated, http2)
}

/// The contexts of the user's kubeconfig. It is never formatted: it holds credentials.
#[derive(Clone)]
pub struct KubeconfigContexts(pub(super) Kubeconfig);

impl KubeconfigContexts {
    /// Reads the kubeconfig of the environment.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Nothing`] if there is none, and [`ConnectError::Kubeconfig`] if it cannot be
    /// read.
    pub fn read() -> Result<Self, ConnectError> {
        Ok(Self(match kubeconfig::read_named()? {
            Some(named) => named,
            None => kubeconfig::read_default()?,
        }))
    }

    /// Returns the names of the contexts, in the order of the kubeconfig.
    pub fn names(&self) -> Vec<String> {
        self.0.contexts.iter().map(|named| named.name.clone()).collect()
    }

    /// Connects to the cluster of a context. A program that the kubeconfig names runs on the
    /// calling thread.
    ///
    /// # Errors
    ///
    /// Any [`ConnectError`], also if there is no such context.
    pub async fn connect(mut self, context: &str) -> Result<Connection, ConnectError> {
        // Fails if a provider is installed already, which is just as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        if !self.0.contexts.iter().any(|named| named.name == context) {
            return Err(ConnectError::Kubeconfig(format!("there is no context {context}")));
        }
        self.0.current_context = Some(context.to_owned());
        connection_of(from_kubeconfig(self.0).await?, None, false)
    }
}

fn connection_of(
    mut config: Config,
    impersonated: Option<&str>,
    http2: bool,
) -> Result<Connection, ConnectError> {
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT);
    config.auth_info.impersonate = impersonated.map(str::to_owned).or(config.auth_info.impersonate);
    let namespace = config.default_namespace.as_str().into();
    let is_local = matches!(config.cluster_url.host(), Some("127.0.0.1" | "[::1]" | "localhost"));
    let place = config.cluster_url.host().map(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        (host.into(), config.cluster_url.port_u16().unwrap_or(443))
    });
    // A proxy carries HTTP/1.1.
    let client = match http2 && config.proxy_url.is_none() {
        true => {
            let mut connector = HttpConnector::new();
            connector.enforce_http(false);
            connector.set_connect_timeout(Some(CONNECT));
            http2_client(&config, connector)
        }
        false => Client::try_from(config),
    };
    let client = client.map_err(|error| ConnectError::Client(error.to_string()))?;
    Ok(Connection { client, namespace, is_local, place })
}

/// Every API server registers its own address in this EndpointSlice.
const ENDPOINTS: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";

fn endpoints_of(slice: &Value) -> Vec<SocketAddr> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let ports: Vec<u16> =
        list(&slice["ports"]).iter().filter_map(|it| it["port"].as_u64()?.try_into().ok()).collect();
    let addresses = list(&slice["endpoints"]).into_iter().flat_map(|it| list(&it["addresses"]));
    let addresses = addresses.filter_map(|it| it.as_str()?.parse::<IpAddr>().ok());
    addresses
        .flat_map(|ip| ports.iter().map(move |port| SocketAddr::new(ip, *port)).collect::<Vec<_>>())
        .collect()
}

/// Address of the server's Service, from the environment of the container.
fn of_service() -> Option<SocketAddr> {
    let variable = |name: &str| std::env::var(name).ok();
    service(variable("KUBERNETES_SERVICE_HOST")?.as_str(), variable("KUBERNETES_SERVICE_PORT").as_deref())
}

fn service(host: &str, port: Option<&str>) -> Option<SocketAddr> {
    let host = host.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
    Some(SocketAddr::new(host, port.and_then(|port| port.parse().ok()).unwrap_or(443)))
}

async fn config() -> Result<Config, ConnectError> {
    if let Some(named) = kubeconfig::read_named()? {
        return from_kubeconfig(named).await;
    }
    match Config::incluster() {
        Ok(config) => Ok(config),
        Err(_) => from_kubeconfig(kubeconfig::read_default()?).await,
    }
}

async fn from_kubeconfig(kubeconfig: Kubeconfig) -> Result<Config, ConnectError> {
    let names_proxy = proxy_of(&kubeconfig);
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| ConnectError::Kubeconfig(error.to_string()))?;
    if !names_proxy {
        config.proxy_url = None;
    }
    Ok(config)
}

/// True if the cluster of the current context names a proxy.
fn proxy_of(kubeconfig: &Kubeconfig) -> bool {
    let context = kubeconfig.current_context.as_deref().unwrap_or_default();
    let context = kubeconfig.contexts.iter().find(|named| named.name == context);
    let cluster = context.and_then(|named| named.context.as_ref()).map(|context| context.cluster.as_str());
    let cluster = kubeconfig.clusters.iter().find(|named| Some(named.name.as_str()) == cluster);
    cluster.and_then(|named| named.cluster.as_ref()).is_some_and(|cluster| cluster.proxy_url.is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_server_is_where_its_service_and_its_endpoints_are() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let slice = json!({
            "endpoints": [{"addresses": ["192.0.2.1"]}, {"addresses": ["2001:db8::1", "no address"]}, {}],
            "ports": [{"name": "https", "port": 6443}, {"port": 70000}, {}],
        });
        assert_eq!(endpoints_of(&slice), [at("192.0.2.1:6443"), at("[2001:db8::1]:6443")]);
        assert_eq!(endpoints_of(&json!({"endpoints": null, "ports": []})), []);
        assert_eq!(service("10.0.0.1", Some("6443")), Some(at("10.0.0.1:6443")));
        assert_eq!(service("[fd00::1]", None), Some(at("[fd00::1]:443")));
        assert_eq!(service("kubernetes.default.svc", Some("443")), None, "its name is judged by itself");
    }
}
