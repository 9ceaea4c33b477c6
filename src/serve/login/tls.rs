//! TLS of the page: its certificate, and the certificate of an authenticating proxy.
//!
//! In: folders of Secrets. Out: a configuration of rustls for each connection. The files are read
//! again every minute, so that a renewed certificate takes effect without a restart; files that
//! cannot be used leave the last configuration in place.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::time::Instant;

/// Interval at which the files are read again.
const RELOAD_INTERVAL: Duration = Duration::from_secs(60);

/// Mark of a request whose connection has a certificate of the proxy's authority.
#[derive(Debug, Clone, Copy)]
pub(in crate::serve) struct ProxyConnection;

/// The error of a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct TlsError {
    file: String,
    problem: &'static str,
}

/// TLS of the page.
#[derive(Debug)]
pub(in crate::serve) struct PageTls {
    folder: PathBuf,
    client_ca: Option<PathBuf>,
    current: Mutex<(Instant, Arc<ServerConfig>)>,
}

impl PageTls {
    /// Reads `tls.crt` and `tls.key` of a folder, and the authority of the proxy's certificate.
    pub(super) fn new(folder: PathBuf, client_ca: Option<PathBuf>) -> Result<Self, TlsError> {
        let config = read(&folder, client_ca.as_deref())?;
        Ok(Self { folder, client_ca, current: Mutex::new((Instant::now(), config)) })
    }

    /// Returns the configuration of today.
    pub(in crate::serve) fn config(&self) -> Arc<ServerConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0.elapsed() >= RELOAD_INTERVAL {
            current.0 = Instant::now();
            match read(&self.folder, self.client_ca.as_deref()) {
                Ok(config) => current.1 = config,
                Err(error) => tracing::warn!(%error, "the certificate of the page cannot be read again"),
            }
        }
        current.1.clone()
    }
}

fn read(folder: &Path, client_ca: Option<&Path>) -> Result<Arc<ServerConfig>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let (chain, key) = (folder.join("tls.crt"), folder.join("tls.key"));
    let pair = certificates(&chain)?;
    let no_key = "has no private key that can be read";
    let bytes = bytes(&key)?;
    let der = PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| error(&key, no_key))?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|_| error(&chain, "cannot be used"))?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(authority)? {
                roots
                    .add(certificate)
                    .map_err(|_| error(authority, "has a certificate that cannot be read"))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = verifier.allow_unauthenticated().build();
            builder.with_client_cert_verifier(
                verifier.map_err(|_| error(authority, "has no certificate of an authority"))?,
            )
        }
    };
    let config = builder.with_single_cert(pair, der);
    let mut config = config.map_err(|_| error(&key, "does not belong to tls.crt"))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let broken = "has no certificate that can be read";
    let bytes = bytes(file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or_else(|| error(file, broken))
}

fn bytes(file: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(file).map_err(|_| error(file, "cannot be read"))
}

fn error(file: &Path, problem: &'static str) -> TlsError {
    TlsError { file: file.display().to_string(), problem }
}
