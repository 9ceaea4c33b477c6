//! Whom we trust, as whom we log in, and through which proxy.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use moorline_git::{Address, Credentials, Error, Reference, Repositories};
use moorline_test_support::authority::Authority;
use moorline_test_support::git_bench::{Bench, read_all, soon};
use moorline_test_support::git_server::{GitServer, Reply};

#[tokio::test]
async fn logins_are_sent_and_changed_without_a_restart() {
    let bench = Bench::new();
    let root = bench.root.path().join("tls");
    fs::create_dir_all(&root).unwrap();
    let authority = Authority::new();
    let server = GitServer::start_with(bench.root.path(), Some(authority.server(None)));
    let wanted = Arc::new(std::sync::Mutex::new("Basic bWU6b25l".to_owned()));
    let expect = wanted.clone();
    server.rule(move |request| match request.header("authorization") {
        Some(value) if *value == *expect.lock().unwrap() => Reply::Git,
        _ => Reply::Raw(401, "", Vec::new()),
    });
    let address = Address::remote(&format!("https://localhost:{}/repository.git", server.port)).unwrap();
    let secret = |keys: &[(&str, &str)]| {
        let authority = ("ca.crt", authority.pem.as_str());
        Credentials::from_secret(keys.iter().copied().chain([authority])).unwrap()
    };
    let all = bench.all();
    let open = |credentials: &Credentials| all.repository(&address, "ns/secret", credentials).unwrap();
    let repository = open(&secret(&[("username", "me"), ("password", "one")]));
    assert_eq!(read_all(&repository).await, Ok(2));

    *wanted.lock().unwrap() = "Bearer planted-token".to_owned();
    let error = repository.resolve(&Reference::Head, soon()).await.unwrap_err();
    assert_eq!(error.reason(), "RepositoryAccessDenied");
    let again = open(&secret(&[("bearerToken", "planted-token")]));
    assert_eq!(read_all(&again).await, Ok(2));
    assert_eq!(read_all(&repository).await, Ok(2), "those who hold it already use the new login");
    assert!(!format!("{repository:?} {all:?}").contains("planted-token"));
}

#[tokio::test]
async fn a_proxy_is_used_where_it_is_set() {
    let bench = Bench::new();
    let authority = Authority::new();
    let server = GitServer::start_with(bench.root.path(), Some(authority.server(None)));
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://me:word@127.0.0.1:{}", listener.local_addr().unwrap().port());
    let heads: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let log = heads.clone();
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| tunnel(stream, &log)));
    let proxy = moorline_git::Proxy::new(&url, &[]).unwrap();
    let all = Repositories::new(
        &bench.root.path().join("behind"),
        Some(proxy),
        moorline_git::HostPolicy::allow_all(),
    )
    .unwrap();
    let address = Address::remote(&format!("https://localhost:{}/repository.git", server.port)).unwrap();
    let credentials = Credentials::from_secret([("ca.crt", &authority.pem)]).unwrap();
    assert_eq!(read_all(&all.repository(&address, "", &credentials).unwrap()).await, Ok(2));
    let heads = heads.lock().unwrap();
    assert!(!heads.is_empty());
    for head in heads.iter() {
        assert!(head.starts_with(&format!("CONNECT localhost:{} ", server.port)), "{head}");
        assert!(head.to_ascii_lowercase().contains("proxy-authorization: basic bwu6d29yza=="), "{head}");
    }
}

/// Connects `stream` to where it asks to be connected, on threads of its own.
pub(crate) fn tunnel(mut stream: std::net::TcpStream, log: &std::sync::Mutex<Vec<String>>) {
    use std::io::{BufRead, BufReader, Write};
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|length| length > 2) {}
    let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
    log.lock().unwrap().push(head);
    let Ok(mut server) = std::net::TcpStream::connect(target) else { return };
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
    let (mut up, mut down) = (server.try_clone().unwrap(), stream.try_clone().unwrap());
    std::thread::spawn(move || drop(std::io::copy(&mut reader, &mut up)));
    std::thread::spawn(move || drop(std::io::copy(&mut server, &mut down)));
}

#[tokio::test]
async fn tls_trusts_exactly_who_it_should() {
    let bench = Bench::new();
    let (authority, other) = (Authority::new(), Authority::new());
    let plain = GitServer::start_with(bench.root.path(), Some(authority.server(None)));
    let mutual = GitServer::start_with(bench.root.path(), Some(authority.server(Some(&authority))));
    let all = bench.all();
    let owner = AtomicUsize::new(0);
    let look = |port: u16, host: &str, keys: Vec<(&'static str, String)>| {
        let address = Address::remote(&format!("https://{host}:{port}/repository.git")).unwrap();
        let credentials = match keys.is_empty() {
            true => Ok(Credentials::default()),
            false => Credentials::from_secret(keys),
        };
        let owner = owner.fetch_add(1, Ordering::Relaxed).to_string();
        let repository = all.repository(&address, &owner, &credentials.unwrap());
        async move { repository?.resolve(&Reference::Head, soon()).await.map(drop) }
    };
    let ca = |of: &Authority| ("ca.crt", of.pem.clone());
    let pair = |of: &Authority| {
        let (certificate, key) = of.issue("client");
        [("tls.crt", certificate.pem()), ("tls.key", key.serialize_pem())]
    };
    let reason = |result: Result<(), Error>| result.map_or_else(|error| error.reason(), |()| "");
    assert_eq!(reason(look(plain.port, "localhost", vec![ca(&authority)]).await), "");
    assert_eq!(reason(look(plain.port, "localhost", vec![]).await), "RepositoryUntrusted");
    assert_eq!(reason(look(plain.port, "localhost", vec![ca(&other)]).await), "RepositoryUntrusted");
    assert_eq!(reason(look(plain.port, "127.0.0.1", vec![ca(&authority)]).await), "RepositoryUntrusted");
    let [certificate, key] = pair(&authority);
    let with_pair = vec![ca(&authority), certificate.clone(), key.clone()];
    assert_eq!(reason(look(mutual.port, "localhost", with_pair).await), "");
    let refused = look(mutual.port, "localhost", vec![ca(&authority)]).await.unwrap_err();
    assert!(matches!(refused, Error::Untrusted { .. } | Error::Unreachable { .. }), "{refused}");
    let [_, foreign] = pair(&other);
    let mixed = look(plain.port, "localhost", vec![ca(&authority), certificate, foreign]).await.unwrap_err();
    assert_eq!(mixed.to_string(), "the Secret's key tls.key does not belong to tls.crt");
    let broken = ("ca.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned());
    assert_eq!(reason(look(plain.port, "localhost", vec![broken]).await), "CredentialsInvalid");
}

#[tokio::test]
async fn a_server_that_shows_an_authority_is_refused_with_what_to_do() {
    let bench = Bench::new();
    let (pem, config) = self_signed();
    let server = GitServer::start_with(bench.root.path(), Some(config));
    let address = Address::remote(&format!("https://localhost:{}/repository.git", server.port)).unwrap();
    let credentials = Credentials::from_secret([("ca.crt", &pem)]).unwrap();
    let repository = bench.all().repository(&address, "", &credentials).unwrap();
    let error = repository.resolve(&Reference::Head, soon()).await.unwrap_err();
    assert_eq!(error.reason(), "RepositoryUntrusted");
    let words = error.to_string();
    assert!(words.contains("basicConstraints=CA:FALSE") && !words.contains("CaUsedAsEndEntity"), "{words}");
}

/// The certificate and the settings of a server on `localhost` whose certificate is an authority
/// that signed itself.
fn self_signed() -> (String, Arc<rustls::ServerConfig>) {
    let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let key = rustls::pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
    (certificate.pem(), Arc::new(config))
}
