//! Repositories over ssh: as whom we log in, which servers we trust, and servers that fail or say
//! nothing.

use std::time::{Duration, Instant};

use moorline_git::{
    Address, Credentials, Error, History, HostPolicy, LfsFile, Reference, Repositories, Repository,
    fetch_lfs, fill_lfs,
};
use moorline_test_support::authority::Authority;
use moorline_test_support::git_server::{GitServer, Work};
use moorline_test_support::lfs_server::LfsServer;
use moorline_test_support::ssh_server::{Mode, SshServer, ecdsa, ed25519, known, pem, rsa};
use moorline_test_support::under_load::under_load;
use russh::keys::{EcdsaCurve, PrivateKey};

/// A server with one repository, the key that it lets in, and a daemon's data folder.
struct Bench {
    root: tempfile::TempDir,
    work: Work,
    key: PrivateKey,
    server: SshServer,
    all: Repositories,
}

impl Bench {
    fn new() -> Self {
        Self::with(ed25519(), ed25519())
    }

    fn with(host_key: PrivateKey, key: PrivateKey) -> Self {
        let root = tempfile::tempdir().unwrap();
        let work = Work::new(root.path());
        work.push(&[("a/one.yaml", "one"), ("a/two.yaml", "two")]);
        let server = SshServer::start(root.path(), host_key, &key);
        let open =
            || Repositories::new(&root.path().join("data"), None, moorline_git::HostPolicy::allow_all());
        // Another test may be starting git just now: until it has, the child holds our lock as
        // well.
        let all = (0..100)
            .find_map(|_| open().map_err(|_| std::thread::sleep(Duration::from_millis(20))).ok())
            .unwrap_or_else(|| open().unwrap());
        Self { root, work, key, server, all }
    }

    fn open(&self) -> Repository {
        self.open_with("repository.git", &self.key, &self.server.known()).unwrap()
    }

    fn open_with(&self, path: &str, key: &PrivateKey, known: &str) -> Result<Repository, Error> {
        let url = format!("ssh://git@127.0.0.1:{}/{path}", self.server.port);
        let secret = [("ssh-privatekey", pem(key)), ("known_hosts", known.to_owned())];
        let credentials = Credentials::from_secret(secret).unwrap();
        self.all.repository(&Address::remote(&url).unwrap(), "ns/secret", &credentials)
    }

    /// Returns the error of a poll with these known hosts.
    async fn fault(&self, known: &str) -> Error {
        let repository = self.open_with("repository.git", &self.key, known).unwrap();
        repository.resolve(&Reference::Head, within(10_000)).await.unwrap_err()
    }
}

fn within(milliseconds: u64) -> Instant {
    Instant::now() + Duration::from_millis(milliseconds)
}

async fn count(repository: &Repository) -> Result<usize, Error> {
    let revision = repository.resolve(&Reference::Head, within(20_000)).await?;
    Ok(repository.read(&revision, &[""], within(20_000)).await?.files.entries().count())
}

/// Looks, fetches, reads, and asks for history, with a server of this mode.
async fn follow(mode: Mode) {
    let bench = Bench::new();
    bench.server.mode(mode);
    let large: String = (0..20_000).map(|number| format!("{}\n", number * 7919)).collect();
    let first = bench.work.push(&[("large", &large)]);
    let repository = bench.open();
    let begun = Instant::now();
    let revision = repository.resolve(&Reference::Head, within(20_000)).await.unwrap();
    println!("{mode:?}: a look takes {:?}", begun.elapsed());
    assert_eq!((revision.commit.to_string(), &*revision.name), (first, "refs/heads/main"));
    let asked = if matches!(mode, Mode::Old) { "" } else { "GIT_PROTOCOL=version=2 " };
    assert_eq!(bench.server.commands(), [format!("{asked}git-upload-pack '/repository.git'")]);
    let whole = repository.fetch(&revision, within(20_000)).await.unwrap();
    let files = repository.read(&revision, &[""], within(20_000)).await.unwrap().files;
    assert_eq!((files.entries().count(), bench.server.commands().len()), (3, 1));

    let again = repository.resolve(&Reference::branch("main").unwrap(), within(20_000)).await.unwrap();
    assert_eq!((again.commit, bench.server.commands().len()), (revision.commit, 1));
    assert_eq!(repository.fetch(&again, within(20_000)).await, Ok(0));
    assert_eq!(bench.server.commands().len(), 0, "what is here is not fetched");

    bench.work.push(&[("a/one.yaml", "changed")]);
    let newer = repository.resolve(&Reference::Head, within(20_000)).await.unwrap();
    let bytes = repository.fetch(&newer, within(20_000)).await.unwrap();
    assert!(bytes < 1000 && whole > 20_000, "{bytes} of {whole}");
    let history = repository.history(revision.commit, newer.commit, within(20_000)).await;
    assert_eq!(history, Ok(History::Forward));
    let missing = repository.resolve(&Reference::branch("mian").unwrap(), within(20_000)).await.unwrap_err();
    assert!(missing.to_string().contains("did you mean main?"), "{missing}");
}

#[tokio::test]
async fn a_repository_is_followed_with_version_2() {
    follow(Mode::Git).await;
}

#[tokio::test]
async fn a_repository_is_followed_with_a_server_that_knows_no_version_2() {
    follow(Mode::Old).await;
}

#[tokio::test]
async fn all_kinds_of_keys_open_and_are_recognised() {
    let keys = [ecdsa(EcdsaCurve::NistP256), ecdsa(EcdsaCurve::NistP384), ecdsa(EcdsaCurve::NistP521), rsa()];
    for key in keys {
        let bench = Bench::with(key.clone(), key);
        assert_eq!(count(&bench.open()).await, Ok(2), "{}", bench.server.host_key.algorithm());
    }
}

#[tokio::test]
async fn a_server_that_is_not_known_is_not_trusted() {
    let bench = Bench::new();
    let port = bench.server.port;
    let line = bench.server.known();
    let key = line.split_once(' ').unwrap().1;
    let other = known(port, ed25519().public_key());
    let table = [
        (format!("127.0.0.1 {key}"), format!("`ssh-keyscan -p {port} 127.0.0.1` prints")),
        (format!("git.example.com {key}"), "has no key of [127.0.0.1]:".to_owned()),
        (other.clone(), "is not the one in known_hosts".to_owned()),
        (known(port, ecdsa(EcdsaCurve::NistP256).public_key()), "is not the one in known_hosts".to_owned()),
        (format!("{line}\n@revoked * {key}"), "is marked @revoked".to_owned()),
        (format!("@cert-authority * {key}"), "certificates of hosts are not supported".to_owned()),
    ];
    for (known, expect) in table {
        let error = bench.fault(&known).await;
        assert_eq!(error.reason(), "RepositoryUntrusted", "{error}");
        assert!(error.to_string().contains(&expect), "{error}");
        assert!(!error.to_string().contains("git@"), "{error}");
    }
    assert!(bench.server.commands().is_empty(), "nobody logged in");
    let both = bench.open_with("repository.git", &bench.key, &format!("{other}\n{line}")).unwrap();
    assert_eq!(count(&both).await, Ok(2));
}

#[tokio::test]
async fn a_key_that_the_server_does_not_know_is_reported_and_can_be_changed() {
    let bench = Bench::new();
    let repository = bench.open();
    assert_eq!(count(&repository).await, Ok(2));
    let next = ed25519();
    bench.server.let_in(&next);
    let error = repository.resolve(&Reference::Head, within(10_000)).await.unwrap_err();
    assert_eq!(error.reason(), "RepositoryAccessDenied");
    assert!(error.to_string().contains("does not accept the ssh key of the Secret"), "{error}");
    let again = bench.open_with("repository.git", &next, &bench.server.known()).unwrap();
    assert_eq!(count(&again).await, Ok(2));
    assert_eq!(count(&repository).await, Ok(2), "those who hold it already use the new key");
    assert!(!format!("{again:?} {:?}", bench.all).contains("PRIVATE"));
}

#[tokio::test]
async fn failures_of_servers_are_distinguished_and_not_quoted() {
    let bench = Bench::new();
    let repository = bench.open();
    let table = [
        (Mode::Say("", 1), "RepositoryNotFound"),
        (Mode::Say("", 127), "RepositoryInvalidResponse"),
        (Mode::Say("planted: welcome, this account is for people\n", 0), "RepositoryInvalidResponse"),
        (Mode::Say("0014ERR planted word", 1), "RepositoryInvalidResponse"),
        (Mode::Cut(60), "RepositoryInvalidResponse"),
        (Mode::Refuse, "RepositoryInvalidResponse"),
    ];
    for (mode, expect) in table {
        bench.server.mode(mode);
        let error = repository.resolve(&Reference::Head, within(10_000)).await.unwrap_err();
        assert_eq!(error.reason(), expect, "{mode:?}: {error}");
        assert!(!error.to_string().contains("planted"), "{error}");
    }
    bench.server.mode(Mode::Git);
    let elsewhere = bench.open_with("none.git", &bench.key, &bench.server.known()).unwrap();
    assert_eq!(count(&elsewhere).await.unwrap_err().reason(), "RepositoryNotFound");

    let revision = repository.resolve(&Reference::Head, within(10_000)).await.unwrap();
    bench.server.mode(Mode::Cut(300));
    assert_eq!(
        repository.fetch(&revision, within(10_000)).await.unwrap_err().reason(),
        "RepositoryInvalidResponse"
    );
    bench.server.mode(Mode::Git);
    assert_eq!(count(&repository).await, Ok(2), "what failed leaves nothing behind");
    assert!(bench.root.path().join("data").is_dir());
}

#[tokio::test]
async fn a_silent_server_costs_no_more_than_the_deadline() {
    let bench = Bench::new();
    let repository = bench.open();
    for mode in [Mode::Silence, Mode::Stall(0), Mode::Stall(60), Mode::Stall(200)] {
        bench.server.mode(mode);
        let begun = Instant::now();
        let error = repository.resolve(&Reference::Head, within(700)).await.unwrap_err();
        assert_eq!(error.reason(), "RepositoryTimeout", "{mode:?}: {error}");
        assert!(begun.elapsed() < under_load(Duration::from_secs(2)), "{mode:?}: {:?}", begun.elapsed());
    }
    bench.server.mode(Mode::Git);
    assert_eq!(count(&repository).await, Ok(2), "the thread is free again");

    // A server that takes the connection and does not even greet.
    let mute = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = mute.local_addr().unwrap().port();
    let secret = [("ssh-privatekey", pem(&bench.key)), ("known_hosts", known(port, &bench.server.host_key))];
    let credentials = Credentials::from_secret(secret).unwrap();
    let address = Address::remote(&format!("ssh://127.0.0.1:{port}/a")).unwrap();
    let silent = bench.all.repository(&address, "", &credentials).unwrap();
    let error = silent.resolve(&Reference::Head, within(500)).await.unwrap_err();
    assert_eq!(error.reason(), "RepositoryTimeout", "{error}");
    drop(mute);
    let error = silent.resolve(&Reference::Head, within(5_000)).await.unwrap_err();
    assert!(["RepositoryUnreachable", "RepositoryInvalidResponse"].contains(&error.reason()), "{error}");
}

#[tokio::test]
async fn a_missing_key_of_the_secret_is_reported_before_any_connection() {
    let bench = Bench::new();
    let refused = |known: &str| bench.open_with("repository.git", &bench.key, known).unwrap_err();
    let error = refused("planted");
    assert_eq!(error.reason(), "CredentialsInvalid");
    assert!(error.to_string().contains("ssh-keyscan HOST") && !error.to_string().contains("planted"));
    assert!(bench.server.commands().is_empty());
}

#[tokio::test]
async fn a_server_over_ssh_says_who_serves_its_files_of_git_lfs() {
    let bench = Bench::new();
    let authority = Authority::new();
    let web = GitServer::start_with(bench.root.path(), Some(authority.server(None)));
    let url = format!("https://localhost:{}", web.port);
    let lfs = LfsServer::serve(&web, url.clone(), Some("RemoteAuth planted"));
    lfs.only_first_login();
    bench.work.push(&[("a/one.yaml", &lfs.add(b"the file"))]);
    let secret = [
        ("ssh-privatekey", pem(&bench.key)),
        ("known_hosts", bench.server.known()),
        ("ca.crt", authority.pem.clone()),
    ];
    let address = format!("ssh://git@127.0.0.1:{}/repository.git", bench.server.port);
    let hosts = HostPolicy::new("allowedHosts", ["127.0.0.1", "::1", "localhost"]).unwrap();
    let all = Repositories::new(&bench.root.path().join("other"), None, hosts).unwrap();
    let credentials = Credentials::from_secret(secret).unwrap();
    let repository = all.repository(&Address::remote(&address).unwrap(), "ns/secret", &credentials).unwrap();
    let revision = repository.resolve(&Reference::Head, within(20_000)).await.unwrap();
    let mut snapshot = repository.read(&revision, &[""], within(20_000)).await.unwrap();
    let left = fill_lfs(&repository, &mut snapshot).unwrap();
    let files: Vec<LfsFile> =
        left.iter().map(|(path, pointer)| LfsFile { path: path.into(), pointer: pointer.clone() }).collect();
    drop(bench.server.commands());

    let table = [
        ("", 0, "does not say where its Git LFS is"),
        ("{}", 0, "does not say where its Git LFS is"),
        (r#"{"href": "https://127.0.0.1/x"}"#, 1, "does not say where its Git LFS is"),
        (r#"{"href": "http://127.0.0.1/x"}"#, 0, "that is not one of https"),
        (r#"{"href": "https://169.254.169.254/x"}"#, 0, "169.254.169.254 must not be contacted"),
    ];
    for (said, status, expect) in table {
        bench.server.mode(Mode::Say(said, status));
        let error = fetch_lfs(&repository, files.clone(), within(20_000)).await.unwrap_err().to_string();
        assert!(error.contains(expect) && !error.contains("planted"), "{said}: {error}");
    }
    let said = format!(
        r#"{{"href": "{url}/repository.git/info/lfs", "header": {{"Authorization": "RemoteAuth planted"}}, "expires_in": 60}}"#
    );
    bench.server.mode(Mode::Say(Box::leak(said.into_boxed_str()), 0));
    drop(bench.server.commands());
    fetch_lfs(&repository, files, within(20_000)).await.unwrap();
    let command = &bench.server.commands()[0];
    assert!(command.ends_with("git-lfs-authenticate '/repository.git' download"), "{command}");
    assert_eq!(lfs.counts(), (1, 1));
    lfs.assert_fine();
    assert!(fill_lfs(&repository, &mut snapshot).unwrap().iter().next().is_none());
}
