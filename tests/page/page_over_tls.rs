//! The page over TLS behind an authenticating proxy: whose headers are believed.
//!
//! In: a certificate of the page, one of the proxy's authority, and one of another. Out: answers,
//! over real connections on loopback.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use moorline::report::board::StatusBoard;
use moorline::serve::login::SignIn;
use moorline::serve::rights::ConsoleAccess;
use moorline::serve::viewer::AccessReviews;
use moorline::serve::{StatusPage, serve_page};
use moorline::settings::ConsoleSettings;
use moorline::source::{HostPolicy, Repositories};
use moorline_test_support::authority::Authority;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

/// Sends a request with headers, and with a certificate of an authority. Returns the status; `None`
/// if there is no connection.
fn ask(page: (SocketAddr, &Authority), client: Option<&Authority>, headers: &str) -> Option<u16> {
    let (address, authority) = page;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    let pem = <rustls::pki_types::CertificateDer<'_> as rustls::pki_types::pem::PemObject>::from_pem_slice;
    roots.add(pem(authority.pem.as_bytes()).unwrap()).unwrap();
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let config = match client {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let (certificate, key) = authority.issue("proxy");
            let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
            builder.with_client_auth_cert(vec![certificate.der().clone()], key).unwrap()
        }
    };
    let name = ServerName::try_from("localhost").unwrap();
    let connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, stream);
    let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    // The other side may close without a farewell.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap().split(' ').nth(1)?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_of_a_proxy_are_believed_with_its_certificate_only() {
    let (authority, proxies, others) = (Authority::new(), Authority::new(), Authority::new());
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = authority.issue("localhost");
    for (name, text) in [
        ("tls.crt", certificate.pem()),
        ("tls.key", key.serialize_pem()),
        ("client-ca.crt", proxies.pem.clone()),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let place = folder.path().to_str().unwrap();
    let entries = [
        ("proxyUserHeader", "X-User"),
        ("proxyGroupsHeader", "X-Groups"),
        ("tls", place),
        ("secrets", place),
    ];
    let entries = entries.map(|(name, value)| (name.into(), value.into()));
    let settings = ConsoleSettings::new(entries.into()).unwrap();
    let network = Repositories::new(folder.path(), None, HostPolicy::allow_all()).unwrap();
    let sign_in = SignIn::new(&settings, mpsc::channel(1).0, &network, "moorline").unwrap();
    let (_board, newest) = watch::channel(Arc::new(StatusBoard::default()));
    let (_end, ending) = watch::channel(false);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let access =
        ConsoleAccess { reviews: AccessReviews::new(mpsc::channel(1).0), actions: mpsc::channel(1).0 };
    let page = StatusPage::new(newest, mpsc::channel(1).0, ending, true).with_console(access);
    let page = page.with_sign_in(sign_in);
    tokio::spawn(serve_page(listener, page, std::future::pending()));

    tokio::task::spawn_blocking(move || {
        for (client, headers, expect) in [
            (Some(&proxies), "X-User: ada\r\nX-Groups: a,b\r\n", Some(200)),
            (Some(&proxies), "", Some(401)),
            (Some(&proxies), "X-User: system:admin\r\n", Some(401)),
            (Some(&proxies), "X-User: ada\r\nX-User: eve\r\n", Some(401)),
            (None, "X-User: ada\r\n", Some(401)),
            (None, "X-Groups: system:masters\r\n", Some(401)),
            (None, "", Some(401)),
            // The handshake fails.
            (Some(&others), "X-User: ada\r\n", None),
        ] {
            assert_eq!(ask((address, &authority), client, headers), expect, "{headers}");
        }
    })
    .await
    .unwrap();
}
