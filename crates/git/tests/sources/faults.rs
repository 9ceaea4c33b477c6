//! Servers that are silent, slow, huge, damaged or hostile.

use std::fs;
use std::time::{Duration, Instant};

use moorline_git::{Address, Credentials, Error, Reference};
use moorline_test_support::git_bench::{Bench, look, read_all, soon, within};
use moorline_test_support::git_server::{Reply, Work};
use moorline_test_support::under_load::under_load;

#[tokio::test]
async fn a_slow_server_ends_at_the_deadline() {
    let bench = Bench::new();
    let all = bench.all();
    let repository = bench.open(&all);
    let revision = look(&repository).await;
    bench.server.rule(|_| Reply::Drip);
    let begun = Instant::now();
    for result in [
        repository.resolve(&Reference::Head, within(400)).await.map(drop),
        repository.fetch(&revision, within(400)).await.map(drop),
    ] {
        assert_eq!(result.unwrap_err().reason(), "RepositoryTimeout");
    }
    assert!(begun.elapsed() < under_load(Duration::from_secs(2)), "{:?}", begun.elapsed());
    bench.server.rule(|_| Reply::Git);
    assert_eq!(read_all(&repository).await, Ok(2));
}

#[tokio::test]
async fn wrong_answers_are_distinguished_and_never_quoted() {
    let bench = Bench::new();
    let all = bench.all();
    let html = "Content-Type: text/html\r\n";
    let refs = "Content-Type: application/x-git-upload-pack-advertisement\r\n";
    let planted = b"planted".to_vec();
    let huge = || {
        let line = format!("003d{} refs/heads/x\n", "0".repeat(40));
        line.repeat(70 * 1024 * 1024 / line.len()).into_bytes()
    };
    let table: Vec<(Reply, &str)> = vec![
        (Reply::Raw(401, "WWW-Authenticate: Basic\r\n", planted.clone()), "RepositoryAccessDenied"),
        (Reply::Raw(403, html, planted.clone()), "RepositoryAccessDenied"),
        (Reply::Raw(404, html, planted.clone()), "RepositoryNotFound"),
        (Reply::Raw(429, html, planted.clone()), "RepositoryUnavailable"),
        (Reply::Raw(500, html, planted.clone()), "RepositoryUnavailable"),
        (Reply::Raw(200, html, planted.clone()), "RepositoryInvalidResponse"),
        (Reply::Raw(200, refs, planted.clone()), "RepositoryInvalidResponse"),
        (Reply::Raw(200, refs, b"0013ERR planted\n0000".to_vec()), "RepositoryInvalidResponse"),
        (Reply::Raw(200, refs, Vec::new()), "RepositoryInvalidResponse"),
        (Reply::Raw(200, refs, huge()), "RepositoryInvalidResponse"),
        (Reply::Raw(302, "Location: https://elsewhere/planted\r\n", Vec::new()), "RepositoryRedirect"),
        (Reply::Raw(302, "Location: file:///planted/info/refs\r\n", Vec::new()), "RepositoryRedirect"),
        (Reply::Raw(302, "", Vec::new()), "RepositoryRedirect"),
        (Reply::Cut(30), "RepositoryInvalidResponse"),
        (Reply::Cut(0), "RepositoryInvalidResponse"),
    ];
    let repository = bench.open(&all);
    for (reply, reason) in table {
        let shown = match &reply {
            Reply::Raw(status, headers, body) => format!("{status} {headers} {}", body.len()),
            _ => "cut".to_owned(),
        };
        bench.server.rule(move |_| reply.clone());
        let error = repository.resolve(&Reference::Head, soon()).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{shown}: {error}");
        assert!(!format!("{error} {error:?}").contains("planted"), "{error}");
    }
    bench.server.rule(|_| Reply::Git);
    assert_eq!(read_all(&repository).await, Ok(2));
}

#[tokio::test]
async fn a_listing_without_end_is_refused() {
    let bench = Bench::new();
    let all = bench.all();
    let repository = bench.open(&all);
    bench.server.rule(|request| {
        let line = format!("0040{} refs/heads/{}\n", "1".repeat(40), "x".repeat(7));
        let count = 70 * 1024 * 1024 / line.len();
        match &*request.method {
            "POST" => Reply::Raw(
                200,
                "Content-Type: application/x-git-upload-pack-result\r\n",
                line.repeat(count).into_bytes(),
            ),
            _ => Reply::Git,
        }
    });
    let error = repository.resolve(&Reference::Head, soon()).await.unwrap_err();
    assert_eq!(error.reason(), "RepositoryTooLarge", "{error}");
}

#[tokio::test]
async fn redirects_are_followed_on_the_same_host() {
    let bench = Bench::new();
    let all = bench.all();
    bench.server.rule(|request| match &*request.path {
        "/moved/info/refs" => {
            Reply::Raw(301, "Location: /repository.git/info/refs?service=git-upload-pack\r\n", Vec::new())
        }
        "/round/info/refs" => Reply::Raw(301, "Location: /round/info/refs\r\n", Vec::new()),
        _ => Reply::Git,
    });
    let open = |path: &str| {
        let address = Address::remote(&bench.server.url(path)).unwrap();
        all.repository(&address, "", &Credentials::default()).unwrap()
    };
    assert_eq!(read_all(&open("moved")).await, Ok(2));
    let error = open("round").resolve(&Reference::Head, soon()).await.unwrap_err();
    assert_eq!(error.reason(), "RepositoryRedirect");
}

#[tokio::test]
async fn a_damaged_or_cut_pack_leaves_the_last_good_state() {
    let bench = Bench::new();
    let all = bench.all();
    let repository = bench.open(&all);
    let good = look(&repository).await;
    assert_eq!(read_all(&repository).await, Ok(2));
    bench.work.push(&[("a/three.yaml", "three")]);
    let next = look(&repository).await;
    fn flip(mut body: Vec<u8>) -> Vec<u8> {
        let at = body.len() - 60;
        body[at] ^= 0xff;
        body
    }
    for reply in [Reply::Cut(200), Reply::Changed(flip)] {
        let broken = reply.clone();
        bench.server.rule(move |request| if request.method == "POST" { broken.clone() } else { Reply::Git });
        let error = repository.read(&next, &[""], soon()).await.unwrap_err();
        assert!(matches!(error, Error::InvalidResponse { .. } | Error::Corrupt { .. }), "{error}");
        assert_eq!(repository.read(&good, &[""], soon()).await.unwrap().files.entries().count(), 2);
        let left = fs::read_dir(bench.store().join("objects/pack")).unwrap().count();
        assert_eq!(left, 2, "a pack and its index, nothing half-written");
    }
    bench.server.rule(|_| Reply::Git);
    assert_eq!(read_all(&repository).await, Ok(3));
}

#[tokio::test]
async fn a_server_that_is_exchanged_is_asked_anew() {
    let bench = Bench::new();
    let all = bench.all();
    let repository = bench.open(&all);
    for old in [false, true, false] {
        bench.server.rule(move |_| if old { Reply::OldGit } else { Reply::Git });
        bench.work.push(&[("a/three.yaml", if old { "old" } else { "new" })]);
        assert_eq!(read_all(&repository).await, Ok(3), "{old}");
    }
}

#[tokio::test]
async fn a_pack_that_would_fill_the_memory_is_refused() {
    // A file of 200 MB and a second one that is the first with another end: 200 kB, or 400 MB of
    // memory.
    let bench = Bench::new();
    let make = "mkdir -p big && head -c 200000000 /dev/zero > big/a && cp big/a big/b && echo x >> big/b";
    let made = std::process::Command::new("sh").args(["-c", make]).current_dir(&bench.work.folder).status();
    assert!(made.unwrap().success());
    let good = bench.work.git(&["rev-parse", "HEAD"]);
    bench.work.push(&[]);
    Work::git_in(&bench.work.bare, &["repack", "-adfq", "--window=2"]);
    let all = bench.all();
    let repository = bench.open(&all);
    let revision = look(&repository).await;
    let error = repository.read(&revision, &["a"], soon()).await.unwrap_err();
    assert_eq!(error.reason(), "RepositoryTooLarge", "{error}");
    let before = Reference::Commit(moorline_git::ObjectHash::parse(&good).unwrap());
    let revision = repository.resolve(&before, soon()).await.unwrap();
    assert_eq!(repository.read(&revision, &["a"], soon()).await.unwrap().files.entries().count(), 2);
}
