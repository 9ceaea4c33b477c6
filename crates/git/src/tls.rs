//! TLS settings of one repository's client.
//!
//! In: credentials, and the authorities that all clients share.
//! Out: a configuration of rustls, or the key of the Secret that cannot be used.

use std::sync::Arc;

use rustls::crypto::ring;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use super::error::Error;
use super::secret_keys::{ClientCertificate, CredentialsError};
use super::sensitive::Sensitive;

/// Returns TLS settings with the authorities of the Secret, and our client certificate. `roots`
/// adds the authorities of the system.
pub(super) fn tls_config(
    (authorities, client): (Option<&Sensitive<Vec<u8>>>, Option<&ClientCertificate>),
    roots: impl FnOnce(Vec<Certificate<'static>>) -> RootCerts,
) -> Result<TlsConfig, Error> {
    let own = match authorities {
        Some(pem) => certificates("ca.crt", pem.reveal())?,
        None => Vec::new(),
    };
    let provider = Arc::new(ring::default_provider());
    let client = client.map(|client| client_certificate(client, &provider)).transpose()?;
    Ok(TlsConfig::builder()
        .root_certs(roots(own))
        .client_cert(client)
        .unversioned_rustls_crypto_provider(provider)
        .build())
}

fn certificates(key: &'static str, pem: &[u8]) -> Result<Vec<Certificate<'static>>, Error> {
    let broken = CredentialsError::Value { key, problem: "has no certificate that can be read" };
    let mut found = Vec::new();
    let mut trial = rustls::RootCertStore::empty();
    for item in parse_pem(pem) {
        if let PemItem::Certificate(certificate) = item.map_err(|_| broken.clone())? {
            trial.add(certificate.der().to_vec().into()).map_err(|_| broken.clone())?;
            found.push(certificate);
        }
    }
    if found.is_empty() { Err(broken.into()) } else { Ok(found) }
}

/// The client does not check the pair until it is used, so it is checked here.
fn client_certificate(
    pair: &ClientCertificate,
    provider: &Arc<rustls::crypto::CryptoProvider>,
) -> Result<ClientCert, Error> {
    let problem = "has no private key that can be read (a key with a password cannot be used)";
    let no_key = CredentialsError::Value { key: "tls.key", problem };
    let chain = certificates("tls.crt", pair.certificates.reveal())?;
    let key = PrivateKey::from_pem(pair.key.reveal()).map_err(|_| no_key.clone())?;
    let der = rustls::pki_types::pem::PemObject::from_pem_slice(pair.key.reveal()).map_err(|_| no_key)?;
    rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map(|builder| builder.with_root_certificates(rustls::RootCertStore::empty()))
        .and_then(|builder| {
            builder.with_client_auth_cert(chain.iter().map(|one| one.der().to_vec().into()).collect(), der)
        })
        .map_err(|_| CredentialsError::Value { key: "tls.key", problem: "does not belong to tls.crt" })?;
    Ok(ClientCert::new_with_certs(&chain, key))
}
