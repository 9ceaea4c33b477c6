//! A connection to an API server, with or without TLS.
//!
//! In: an address.
//! Out: a stream, and its socket.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Way to connect to an API server.
pub struct Connector(Option<Arc<ClientConfig>>);

/// A connection.
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Connector {
    /// Connector for a server with a certificate of this authority, as PEM. Without an authority
    /// there is no TLS.
    pub fn new(authority: &str) -> Self {
        if authority.is_empty() {
            return Self(None);
        }
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Self(Some(Arc::new(config)))
    }

    pub fn connect(&self, address: &str) -> io::Result<Stream> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let Some(config) = &self.0 else { return Ok(Stream::Plain(stream)) };
        let name = ServerName::try_from("127.0.0.1").map_err(io::Error::other)?;
        let session = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
        Ok(Stream::Tls(Box::new(StreamOwned::new(session, stream))))
    }
}

impl Stream {
    /// The underlying socket.
    pub fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.get_ref(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(buffer),
            Self::Tls(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
