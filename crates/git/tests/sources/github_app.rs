//! The login of a GitHub App: exchanges, their sharing and renewal, and refusals.

use std::time::{Duration, Instant};

use moorline_git::{Address, Credentials, Error, Reference, Repositories, Repository};
use moorline_test_support::git_bench::{Bench, read_all, soon};
use moorline_test_support::git_server::Reply;
use moorline_test_support::github::{AppKey, Github, INSTALLATION, OWNER, TOKEN_MARK};
use moorline_test_support::under_load::under_load;
use serde_json::{Value, json};

/// A server with an App, and a daemon.
struct AppBench {
    github: Github,
    key: AppKey,
    all: Repositories,
    bench: Bench,
}

impl AppBench {
    /// `None` without ssh-keygen.
    fn new(format: &str) -> Option<Self> {
        let bench = Bench::new();
        let key = AppKey::new(bench.root.path(), "app-key", format)?;
        Some(Self { github: Github::start(bench.root.path(), &key), key, all: bench.all(), bench })
    }

    /// Opens the repository with this Secret, changed by `change`.
    fn try_open(&self, owner: &str, change: Value) -> Result<Repository, Error> {
        let mut data = self.github.secret(&self.key);
        for (key, value) in change.as_object().unwrap() {
            data[key] = value.clone();
        }
        let pairs = data.as_object().unwrap().iter().filter_map(|(key, value)| Some((key, value.as_str()?)));
        let credentials = Credentials::from_secret(pairs)?;
        self.all.repository(&Address::remote(&self.github.url()).unwrap(), owner, &credentials)
    }

    fn open(&self, owner: &str) -> Repository {
        self.try_open(owner, json!({})).unwrap()
    }

    fn exchanges(&self) -> usize {
        self.github.state().exchanges
    }

    fn assert_fine(&self) {
        assert_eq!(self.github.state().problems, Vec::<String>::new());
    }
}

async fn refusal(repository: &Repository) -> String {
    let error = repository.resolve(&Reference::Head, soon()).await.unwrap_err();
    assert_eq!(error.reason(), "RepositoryAccessDenied", "{error}");
    error.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_token_serves_all_repositories_with_the_same_app() {
    for format in ["PEM", "PKCS8"] {
        let Some(app) = AppBench::new(format) else { return };
        app.github.state().delay = Duration::from_millis(300);
        let names: Vec<String> = (0..8).map(|number| format!("team-{number}/secret")).collect();
        let opened: Vec<_> = names.iter().map(|owner| app.open(owner)).collect();
        let read = opened.iter().map(read_all);
        for count in futures::future::join_all(read).await {
            assert_eq!(count, Ok(2));
        }
        assert_eq!(app.exchanges(), 1, "one exchange for eight repositories, polled at once");
        app.assert_fine();
        let shown = format!("{:?} {:?}", opened, app.all);
        assert!(!shown.contains(TOKEN_MARK) && !shown.contains(app.key.mark()), "{shown}");
        drop(opened);
        assert_eq!(read_all(&app.open("later/secret")).await, Ok(2));
        assert_eq!(app.exchanges(), 2, "a token ends with the last repository that uses it");
    }
}

#[tokio::test]
async fn an_installation_is_found_by_its_owner() {
    let Some(app) = AppBench::new("PEM") else { return };
    let by_owner = json!({"githubAppInstallationID": null, "githubAppInstallationOwner": OWNER});
    let repository = app.try_open("", by_owner).unwrap();
    assert_eq!(read_all(&repository).await, Ok(2));
    assert_eq!(app.exchanges(), 1);
    assert_eq!(app.github.state().searches, 2, "as an organization, then as a user");
    app.assert_fine();
    let nobody = json!({"githubAppInstallationID": null, "githubAppInstallationOwner": "nobody"});
    let message = refusal(&app.try_open("other", nobody).unwrap()).await;
    assert!(message.contains("has no such installation"), "{message}");
}

#[tokio::test]
async fn a_token_is_renewed_before_it_expires() {
    let Some(app) = AppBench::new("PEM") else { return };
    app.github.state().lifetime = Duration::from_secs(5);
    let repository = app.open("");
    assert_eq!(read_all(&repository).await, Ok(2));
    let end = Instant::now() + Duration::from_secs(8);
    while Instant::now() < end {
        repository.resolve(&Reference::Head, soon()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let exchanges = app.exchanges();
    assert!((2..=4).contains(&exchanges), "{exchanges} exchanges in 8 s for tokens of 5 s");
    let refused = app.github.server.requests();
    let api = refused.iter().filter(|request| request.path.starts_with("/api/")).count();
    assert_eq!(api, exchanges, "and no request with an old one");

    // A failed renewal does not end a token that is still valid.
    app.github.state().lifetime = Duration::from_secs(6);
    let failing =
        app.try_open("renewal", json!({"ca.crt": format!("{}\n", app.github.authority.pem)})).unwrap();
    failing.resolve(&Reference::Head, soon()).await.unwrap();
    app.github.state().answer = Some((503, "", String::new()));
    tokio::time::sleep(Duration::from_millis(5200)).await;
    let before = app.exchanges();
    failing.resolve(&Reference::Head, soon()).await.unwrap();
    assert_eq!(app.exchanges(), before + 1, "it was tried");
}

#[tokio::test]
async fn a_refused_token_is_exchanged_once_more() {
    let Some(app) = AppBench::new("PEM") else { return };
    let repository = app.open("");
    assert_eq!(read_all(&repository).await, Ok(2));
    app.github.state().tokens.clear();
    repository.resolve(&Reference::Head, soon()).await.unwrap();
    assert_eq!(app.exchanges(), 2);
    app.github.state().tokens.clear();
    for _ in 0..3 {
        let message = refusal(&repository).await;
        assert!(message.contains("refuses access (status 401)"), "{message}");
    }
    assert_eq!(app.exchanges(), 2, "a server that takes no token gets no new one each time");
}

#[tokio::test]
async fn a_new_key_takes_the_place_of_the_old_one_at_once() {
    let Some(app) = AppBench::new("PEM") else { return };
    let repository = app.open("");
    assert_eq!(read_all(&repository).await, Ok(2));
    let new = AppKey::new(app.bench.root.path(), "new-key", "PKCS8").unwrap();
    app.github.trust(&new);
    let message = refusal(&repository).await;
    assert!(message.contains("does not accept the App's signature"), "{message}");
    assert!(!message.contains("planted"), "{message}");
    app.try_open("", json!({"githubAppPrivateKey": new.pem})).unwrap();
    repository.resolve(&Reference::Head, soon()).await.unwrap();
}

#[tokio::test]
async fn refusals_say_what_to_change_and_are_shared() {
    let Some(app) = AppBench::new("PEM") else { return };
    let soon_after = "Date: Fri, 02 Jan 2026 03:00:00 GMT\r\n";
    let large = format!("{{\"token\": \"{}\"}}", "a".repeat(70_000));
    let old = r#"{"token": "ghs_plantedtoken", "expires_at": "2026-01-02T03:00:00Z"}"#;
    let far = r#"{"token": "ghs planted", "expires_at": "2096-01-02T03:00:00Z"}"#;
    let moved = "Location: http://169.254.169.254/planted\r\n";
    let table = [
        ("RepositoryAccessDenied", 401, "", "planted", "does not accept the App's signature"),
        ("RepositoryAccessDenied", 401, soon_after, "planted", "the clock of the daemon is "),
        ("RepositoryAccessDenied", 403, "", "planted", "its installation may be suspended"),
        ("RepositoryAccessDenied", 404, "", "planted", "has no such installation"),
        ("RepositoryAccessDenied", 422, "", "planted", "the permission Contents: read"),
        ("RepositoryAccessDenied", 302, moved, "planted", "redirects elsewhere, which is not followed"),
        ("RepositoryAccessDenied", 201, "", "planted", "sends no JSON"),
        (
            "RepositoryAccessDenied",
            201,
            "",
            "{\"token\": \"planted\"}",
            "does not say when the token expires",
        ),
        ("RepositoryAccessDenied", 201, "", old, "has expired already"),
        ("RepositoryAccessDenied", 201, "", far, "no token that can be used"),
        ("RepositoryTooLarge", 201, "", large.as_str(), "more than 65536 bytes of a token"),
        ("RepositoryUnavailable", 503, "", "planted", "returned status 503"),
    ];
    for (at, (reason, status, headers, body, expect)) in table.into_iter().enumerate() {
        app.github.state().answer = Some((status, headers, body.to_owned()));
        // Another line in the trusted certificates is another input, and so another token.
        let authorities = format!("{}{}", app.github.authority.pem, "\n".repeat(at + 1));
        let opened = app.try_open(&format!("owner-{at}"), json!({"ca.crt": authorities})).unwrap();
        let before = app.exchanges();
        for _ in 0..3 {
            let error = opened.resolve(&Reference::Head, soon()).await.unwrap_err();
            let message = error.to_string();
            assert_eq!(error.reason(), reason, "{message}");
            assert!(message.contains(expect) && !message.contains("planted"), "{expect}: {message}");
            assert!(message.contains(&format!("https://localhost:{}", app.github.server.port)), "{message}");
        }
        assert_eq!(app.exchanges(), before + 1, "{expect}: the failure is shared for a while");
    }
}

#[tokio::test]
async fn an_exchange_ends_by_the_deadline_and_lets_the_others_go_on() {
    let Some(app) = AppBench::new("PEM") else { return };
    app.github.server.rule(|_| Reply::Silence);
    let (one, two) = (app.open("one"), app.open("two"));
    let by = Instant::now() + Duration::from_secs(1);
    let found = futures::future::join(one.resolve(&Reference::Head, by), two.resolve(&Reference::Head, by));
    let begun = Instant::now();
    let (one, two) = found.await;
    assert!(begun.elapsed() < under_load(Duration::from_secs(4)), "{:?}", begun.elapsed());
    assert_eq!(one.unwrap_err().reason(), "RepositoryTimeout");
    assert_eq!(two.unwrap_err().reason(), "RepositoryTimeout");
}

#[test]
fn an_app_signs_in_only_where_its_repository_is() {
    let root = tempfile::tempdir().unwrap();
    let Some(key) = AppKey::new(root.path(), "key", "PEM") else { return };
    let check = |url: &str, base: &str| {
        let data = [
            ("githubAppID", "1"),
            ("githubAppInstallationID", INSTALLATION),
            ("githubAppPrivateKey", &key.pem),
            ("githubAppBaseURL", base),
        ];
        Credentials::from_secret(data)?.check_address(&Address::remote(url).unwrap())
    };
    let fine = [
        ("https://github.com/a/b", ""),
        ("https://github.com/a/b", "https://api.github.com/"),
        ("https://acme.ghe.com/a/b", ""),
        ("https://git.example.com/a/b", "https://git.example.com/api/v3\n"),
        ("https://git.example.com:8443/a/b", "https://GIT.example.com:8443/api/v3/"),
    ];
    for (url, base) in fine {
        assert_eq!(check(url, base), Ok(()), "{url} {base}");
    }
    let wrong = [
        ("https://git.example.com/a/b", "", "githubAppBaseURL: https://git.example.com/api/v3"),
        ("https://git.example.com/a/b", "https://api.github.com", "the API of git.example.com is"),
        (
            "https://github.com/a/b",
            "https://evil.example/api/v3",
            "the API of github.com is https://api.github.com;",
        ),
        ("https://github.com.evil.example/a/b", "", "on github.com.evil.example"),
        ("https://notghe.com/a/b", "", "write the address of its API"),
        (
            "https://git.example.com:8443/a/b",
            "https://git.example.com/api/v3",
            "https://git.example.com:8443/api/v3",
        ),
        (
            "https://git.example.com/a/b",
            "http://git.example.com/api/v3",
            "githubAppBaseURL is not an address",
        ),
        (
            "https://git.example.com/a/b",
            "https://user:planted@git.example.com",
            "githubAppBaseURL is not an address",
        ),
        ("https://git.example.com/a/b", "planted", "githubAppBaseURL is not an address"),
        ("ssh://git@github.com/a/b", "", "a GitHub App, which works over https only"),
        ("http://github.com/a/b", "", "plain http"),
    ];
    for (url, base, expect) in wrong {
        let message = check(url, base).unwrap_err().to_string();
        assert!(message.contains(expect) && !message.contains("planted"), "{expect}: {message}");
    }
}

#[test]
fn the_keys_of_an_app_are_named_if_one_is_missing_or_broken() {
    let root = tempfile::tempdir().unwrap();
    let Some(key) = AppKey::new(root.path(), "key", "PEM") else { return };
    let (id, pem) = (("githubAppID", "1"), ("githubAppPrivateKey", key.pem.as_str()));
    let (installation, owner) = (("githubAppInstallationID", "2"), ("githubAppInstallationOwner", "a-b"));
    let broken = "-----BEGIN RSA PRIVATE KEY-----\nplanted\n-----END RSA PRIVATE KEY-----\n";
    let table: &[(&[(&str, &str)], &str)] = &[
        (&[id], "githubAppID but not githubAppPrivateKey"),
        (&[pem], "githubAppPrivateKey but not githubAppID"),
        (&[id, pem], "githubAppID but not githubAppInstallationID"),
        (&[id, pem, installation, owner], "both githubAppInstallationID and githubAppInstallationOwner"),
        (&[id, ("githubAppPrivateKey", "planted"), owner], "githubAppPrivateKey is not PEM"),
        (&[id, ("githubAppPrivateKey", broken), owner], "githubAppPrivateKey is no RSA key"),
        (&[("githubAppID", "plan ted"), pem, owner], "githubAppID is neither"),
        (&[id, pem, ("githubAppInstallationID", "planted")], "githubAppInstallationID is not a number"),
        (&[id, pem, ("githubAppInstallationOwner", "../planted")], "githubAppInstallationOwner is not"),
        (&[id, pem, owner, ("username", "u"), ("password", "planted")], "both password and githubAppID"),
        (&[id, pem, owner, ("bearerToken", "planted")], "both bearerToken and githubAppID"),
    ];
    for (data, expect) in table {
        let message = Credentials::from_secret(data.iter().copied()).unwrap_err().to_string();
        assert!(message.contains(expect) && !message.contains("planted"), "{expect}: {message}");
    }
    assert!(Credentials::from_secret([id, pem, owner]).is_ok());
}
