//! A certificate authority for servers on this machine.

use std::sync::Arc;

/// A certificate authority that only this test uses.
pub struct Authority {
    certificate: rcgen::CertifiedIssuer<'static, rcgen::KeyPair>,
    pub pem: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut parameters = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertifiedIssuer::self_signed(parameters, key).unwrap();
        let pem = certificate.pem();
        Self { certificate, pem }
    }

    pub fn issue(&self, name: &str) -> (rcgen::Certificate, rcgen::KeyPair) {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        (parameters.signed_by(&key, &self.certificate).unwrap(), key)
    }

    /// TLS settings of a server on `localhost`; with `clients`, it requires client certificates of
    /// that authority.
    pub fn server(&self, clients: Option<&Self>) -> Arc<rustls::ServerConfig> {
        let (certificate, key) = self.issue("localhost");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let mut roots = rustls::RootCertStore::empty();
                roots.add(clients.certificate.der().clone()).unwrap();
                let verifier =
                    rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        Arc::new(builder.with_single_cert(vec![certificate.der().clone()], key).unwrap())
    }
}
