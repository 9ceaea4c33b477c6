//! Repositories that are silent, slow, huge, damaged or hostile, and data folders after a crash.

#[path = "support/git_server.rs"]
#[expect(dead_code, reason = "each test binary uses a part of it")]
mod git_server;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use git_server::{GitServer, Reply, Work};
use moorline::source::{Address, Credentials, Error, Reference, Repositories, Repository, Revision};
use moorline::tree::Entry;

struct Bench {
    root: tempfile::TempDir,
    work: Work,
    server: GitServer,
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let work = Work::new(root.path());
        let server = GitServer::start(root.path());
        work.push(&[("a/one.yaml", "one"), ("a/two.yaml", "two")]);
        Self { root, work, server }
    }

    fn all(&self) -> Repositories {
        // Another test may be starting git just now: until it has, the child holds our lock as well.
        let open = || Repositories::new(&self.root.path().join("data"), None);
        (0..100)
            .find_map(|_| open().map_err(|_| std::thread::sleep(Duration::from_millis(20))).ok())
            .unwrap_or_else(|| open().unwrap())
    }

    fn open(&self, all: &Repositories) -> Repository {
        let address = Address::remote(&self.server.url("repository.git")).unwrap();
        all.repository(&address, "", &Credentials::default()).unwrap()
    }

    /// The only folder of objects in the data folder.
    fn store(&self) -> PathBuf {
        let one = |folder: PathBuf| {
            let folders: Vec<_> = fs::read_dir(folder)
                .unwrap()
                .map(|one| one.unwrap().path())
                .filter(|one| one.is_dir())
                .collect();
            assert_eq!(folders.len(), 1, "{folders:?}");
            folders.into_iter().next().unwrap()
        };
        one(one(self.root.path().join("data")))
    }

    fn packs(&self) -> Vec<PathBuf> {
        let listed = fs::read_dir(self.store().join("objects/pack")).unwrap();
        listed
            .map(|one| one.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "pack"))
            .collect()
    }
}

fn within(milliseconds: u64) -> Instant {
    Instant::now() + Duration::from_millis(milliseconds)
}

fn soon() -> Instant {
    within(20_000)
}

async fn look(repository: &Repository) -> Revision {
    repository.look(&Reference::Head, soon()).await.unwrap()
}

async fn read_all(repository: &Repository) -> Result<usize, Error> {
    let revision = look(repository).await;
    Ok(repository.read(&revision, &[""], soon()).await?.files.entries().count())
}

#[tokio::test]
async fn a_slow_server_ends_at_the_deadline() {
    let bench = Bench::new();
    let all = bench.all();
    let repository = bench.open(&all);
    let revision = look(&repository).await;
    bench.server.rule(|_| Reply::Drip);
    let begun = Instant::now();
    for result in [
        repository.look(&Reference::Head, within(400)).await.map(drop),
        repository.fetch(&revision, within(400)).await.map(drop),
    ] {
        assert_eq!(result.unwrap_err().reason(), "RepositoryTimeout");
    }
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    bench.server.rule(|_| Reply::Git);
    assert_eq!(read_all(&repository).await, Ok(2));
}

#[tokio::test]
async fn wrong_answers_are_told_apart_and_never_quoted() {
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
        (Reply::Raw(200, html, planted.clone()), "RepositoryBadAnswer"),
        (Reply::Raw(200, refs, planted.clone()), "RepositoryBadAnswer"),
        (Reply::Raw(200, refs, b"0013ERR planted\n0000".to_vec()), "RepositoryBadAnswer"),
        (Reply::Raw(200, refs, Vec::new()), "RepositoryBadAnswer"),
        (Reply::Raw(200, refs, huge()), "RepositoryBadAnswer"),
        (Reply::Raw(302, "Location: https://elsewhere/planted\r\n", Vec::new()), "RepositoryRedirect"),
        (Reply::Raw(302, "Location: file:///planted/info/refs\r\n", Vec::new()), "RepositoryRedirect"),
        (Reply::Raw(302, "", Vec::new()), "RepositoryRedirect"),
        (Reply::Cut(30), "RepositoryBadAnswer"),
        (Reply::Cut(0), "RepositoryBadAnswer"),
    ];
    let repository = bench.open(&all);
    for (reply, reason) in table {
        let shown = match &reply {
            Reply::Raw(status, headers, body) => format!("{status} {headers} {}", body.len()),
            _ => "cut".to_owned(),
        };
        bench.server.rule(move |_| reply.clone());
        let error = repository.look(&Reference::Head, soon()).await.unwrap_err();
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
    let error = repository.look(&Reference::Head, soon()).await.unwrap_err();
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
    let error = open("round").look(&Reference::Head, soon()).await.unwrap_err();
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
        assert!(matches!(error, Error::BadAnswer { .. } | Error::Corrupt { .. }), "{error}");
        assert_eq!(repository.read(&good, &[""], soon()).await.unwrap().files.entries().count(), 2);
        let left = fs::read_dir(bench.store().join("objects/pack")).unwrap().count();
        assert_eq!(left, 2, "a pack and its index, nothing half-written");
    }
    bench.server.rule(|_| Reply::Git);
    assert_eq!(read_all(&repository).await, Ok(3));
}

#[tokio::test]
async fn what_a_crash_leaves_behind_mends_itself() {
    let bench = Bench::new();
    {
        let all = bench.all();
        assert_eq!(read_all(&bench.open(&all)).await, Ok(2));
    }
    let store = bench.store();
    for lock in ["shallow.lock", "packed-refs.lock", "index.lock", "config.lock", "packed-refs.new"] {
        fs::write(store.join(lock), "").unwrap();
    }
    fs::write(store.join("objects/pack/pack_git2_abc"), "half").unwrap();
    fs::write(store.join("objects/pack/tmp_pack_abc"), "half").unwrap();
    fs::create_dir_all(store.with_file_name("2.unfinished/objects/pack")).unwrap();
    fs::create_dir_all(store.with_file_name("0/objects")).unwrap();
    {
        let all = bench.all();
        let repository = bench.open(&all);
        bench.server.requests();
        assert_eq!(read_all(&repository).await, Ok(2));
        assert_eq!(bench.server.requests().len(), 2, "a restart looks, and fetches nothing");
        bench.work.push(&[("a/three.yaml", "three")]);
        assert_eq!(read_all(&repository).await, Ok(3));
    }
    let mut names: Vec<_> = fs::read_dir(bench.store())
        .unwrap()
        .map(|one| one.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["HEAD", "config", "first-bytes", "objects", "packed-refs", "refs", "shallow"]);
    Work::git_in(&bench.store(), &["fsck", "--strict"]);

    // Packs that were cut, emptied, or lost.
    for damage in ["cut", "empty", "lost", "no index", "no refs"] {
        let pack = bench.packs()[0].clone();
        let bytes = fs::read(&pack).unwrap();
        fs::set_permissions(&pack, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
        match damage {
            "cut" => fs::write(&pack, &bytes[..bytes.len() / 2]).unwrap(),
            "empty" => fs::write(&pack, "").unwrap(),
            "lost" => fs::remove_file(&pack).unwrap(),
            "no index" => fs::remove_file(pack.with_extension("idx")).unwrap(),
            _ => fs::remove_file(bench.store().join("packed-refs")).unwrap(),
        }
        let all = bench.all();
        assert_eq!(read_all(&bench.open(&all)).await, Ok(3), "{damage}");
    }
}

#[tokio::test]
async fn a_mirror_that_is_damaged_while_it_is_used_mends_itself() {
    let bench = Bench::new();
    let all = bench.all();
    let repository = bench.open(&all);
    assert_eq!(read_all(&repository).await, Ok(2));
    for pack in bench.packs() {
        fs::remove_file(&pack).unwrap();
        fs::write(&pack, "x").unwrap();
    }
    assert_eq!(read_all(&repository).await, Ok(2));
    bench.work.push(&[("a/three.yaml", "three")]);
    fs::remove_dir_all(bench.store()).unwrap();
    assert_eq!(read_all(&repository).await, Ok(3));
}

#[tokio::test]
async fn a_mirror_stays_near_the_size_of_a_fresh_clone() {
    let rounds = if std::env::var_os("MOORLINE_LONG_TESTS").is_some() { 1000 } else { 150 };
    let bench = Bench::new();
    let text: String = (0..3000).map(|number| format!("{}: {}\n", number, number * 7919)).collect();
    bench.work.push(&[("a/large.yaml", &text)]);
    // All commits are made at once, and the branch moves over them: starting git a thousand times is slow.
    let mut import = String::from("reset refs/heads/next\nfrom refs/heads/main\n\n");
    for round in 0..rounds {
        let number = round.to_string();
        import.push_str(&format!(
            "commit refs/heads/next\ncommitter a <a@example.com> {round} +0000\ndata 1\nx\n\
             M 100644 inline a/one.yaml\ndata {}\n{number}\n",
            number.len()
        ));
    }
    bench.work.write("../import", &import);
    let script = "git fast-import --quiet < ../import";
    let done = std::process::Command::new("sh").args(["-c", script]).current_dir(&bench.work.bare).status();
    assert!(done.unwrap().success());
    let commits = Work::git_in(&bench.work.bare, &["rev-list", "--reverse", "main..next"]);
    let all = bench.all();
    let repository = bench.open(&all);
    let (mut most, mut bytes) = (0, 0);
    let begun = Instant::now();
    for commit in commits.lines() {
        fs::write(bench.work.bare.join("refs/heads/main"), format!("{commit}\n")).unwrap();
        let revision = look(&repository).await;
        assert_eq!(revision.commit.to_string(), commit);
        bytes += repository.fetch(&revision, soon()).await.unwrap();
        most = most.max(repository.size(soon()).await.unwrap().1);
    }
    let elapsed = begun.elapsed();
    let fresh_all = Repositories::new(&bench.root.path().join("fresh"), None).unwrap();
    let fresh = bench.open(&fresh_all);
    let revision = look(&fresh).await;
    fresh.fetch(&revision, soon()).await.unwrap();
    let clone = fresh.size(soon()).await.unwrap().1;
    println!(
        "{rounds} fetches in {elapsed:?}: {bytes} bytes fetched, at most {most} on disk; a fresh clone has {clone}"
    );
    assert!(most < 3 * clone, "{most} of {clone}");
    let read = repository.read(&look(&repository).await, &[""], soon()).await.unwrap();
    assert_eq!(read.files.entries().count(), 3);
}

#[tokio::test]
async fn a_file_of_100_megabytes_is_refused_by_its_size() {
    let bench = Bench::new();
    let make = "head -c 104857600 /dev/zero | git hash-object -w --stdin -t blob";
    let made =
        std::process::Command::new("sh").args(["-c", make]).current_dir(&bench.work.folder).output().unwrap();
    let id = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    bench.work.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{id},a/zeros.bin")]);
    bench.work.git(&["commit", "-q", "-m", "x"]);
    bench.work.git(&["push", "-q", "origin", "HEAD"]);
    let all = bench.all();
    let repository = bench.open(&all);
    let revision = look(&repository).await;
    let before = peak_memory();
    let found = repository.read(&revision, &["a"], soon()).await.unwrap();
    let entry = found.files.entries().find(|(path, _)| *path == "a/zeros.bin").unwrap().1.clone();
    assert_eq!(entry, Entry::TooLarge(104_857_600));
    println!("peak memory {before} before and {} after, kB", peak_memory());
}

fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn links_and_submodules_are_recorded_and_not_followed_out() {
    let bench = Bench::new();
    let link =
        |target: &str, path: &str| std::os::unix::fs::symlink(target, bench.work.folder.join(path)).unwrap();
    link("/etc/passwd", "a/absolute");
    link("../../../etc/passwd", "a/climbs");
    link("../shared/base.yaml", "a/base.yaml");
    link("../gone", "a/gone");
    bench.work.write("shared/base.yaml", "base");
    bench.work.write("shared/unused.yaml", "unused");
    let commit = bench.work.commit(&[]);
    fs::create_dir_all(bench.work.folder.join("a/module")).unwrap();
    bench.work.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},a/module")]);
    bench.work.git(&["commit", "-q", "-m", "x"]);
    bench.work.git(&["push", "-q", "origin", "HEAD"]);
    let all = bench.all();
    let repository = bench.open(&all);
    let revision = look(&repository).await;
    let found = repository.read(&revision, &["a"], soon()).await.unwrap();
    let entry =
        |path: &str| found.files.entries().find(|(other, _)| *other == path).map(|(_, entry)| entry.clone());
    assert_eq!(entry("a/absolute"), Some(Entry::Link("/etc/passwd".into())));
    assert_eq!(entry("a/climbs"), Some(Entry::Link("../../../etc/passwd".into())));
    assert!(matches!(entry("a/module"), Some(Entry::Unreadable { folder: true, .. })));
    assert_eq!(&*found.files.read("a/base.yaml").unwrap(), b"base");
    assert_eq!(entry("shared/unused.yaml"), None);
    assert!(found.files.read("a/climbs").is_err() && found.files.read("a/absolute").is_err());
    let ids: Vec<_> = found.ids.iter().map(|(path, id)| (&**path, id.is_some())).collect();
    assert_eq!(ids, [("a", true), ("gone", false), ("shared/base.yaml", true)]);

    // The key changes exactly when something that was read changes.
    let same = async |files: &[(&str, &str)]| {
        bench.work.push(files);
        let revision = look(&repository).await;
        repository.ids(&revision, &found.ids, soon()).await.unwrap() == found.ids
    };
    assert!(same(&[("shared/unused.yaml", "changed"), ("other", "new")]).await);
    assert!(!same(&[("gone", "is there now")]).await);
}

#[tokio::test]
async fn a_rewritten_branch_and_a_moved_tag_are_followed() {
    let bench = Bench::new();
    let all = bench.all();
    let repository = bench.open(&all);
    bench.work.git(&["tag", "release"]);
    bench.work.git(&["push", "-q", "origin", "release"]);
    let tag = Reference::tag("release").unwrap();
    let first = repository.look(&tag, soon()).await.unwrap();
    assert_eq!(first.commit, look(&repository).await.commit);
    assert_eq!(read_all(&repository).await, Ok(2));
    bench.work.git(&["checkout", "-q", "--orphan", "new"]);
    bench.work.commit(&[("b", "b"), ("c", "c"), ("d", "d")]);
    bench.work.git(&["tag", "-f", "release"]);
    bench.work.git(&["push", "-q", "-f", "origin", "HEAD:main", "release"]);
    assert_eq!(read_all(&repository).await, Ok(5));
    let moved = repository.look(&tag, soon()).await.unwrap();
    assert_eq!(moved.commit, look(&repository).await.commit);
}

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
    let error = repository.look(&Reference::Head, soon()).await.unwrap_err();
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
    let proxy = moorline::source::Proxy::new(&url, &[]).unwrap();
    let all = Repositories::new(&bench.root.path().join("behind"), Some(proxy)).unwrap();
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
fn tunnel(mut stream: std::net::TcpStream, log: &std::sync::Mutex<Vec<String>>) {
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
        async move { repository?.look(&Reference::Head, soon()).await.map(drop) }
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

/// A certificate authority of this test alone.
struct Authority {
    certificate: rcgen::CertifiedIssuer<'static, rcgen::KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = rcgen::CertificateParams::new(Vec::<String>::new()).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertifiedIssuer::self_signed(parameters, key).unwrap();
        let pem = certificate.pem();
        Self { certificate, pem }
    }

    fn issue(&self, name: &str) -> (rcgen::Certificate, rcgen::KeyPair) {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        (parameters.signed_by(&key, &self.certificate).unwrap(), key)
    }

    /// What a server on `localhost` uses; with `clients`, it demands a certificate of theirs.
    fn server(&self, clients: Option<&Self>) -> Arc<rustls::ServerConfig> {
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

#[test]
fn a_data_folder_has_one_user() {
    let root = tempfile::tempdir().unwrap();
    let first = Repositories::new(root.path(), None).unwrap();
    assert_eq!(Repositories::new(root.path(), None).unwrap_err().reason(), "DataFolder");
    drop(first);
    let again = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        Repositories::new(root.path(), None).is_ok()
    });
    assert!(again);
}

#[tokio::test]
async fn mirrors_that_nobody_holds_are_removed() {
    let bench = Bench::new();
    let all = bench.all();
    let repository = bench.open(&all);
    assert_eq!(read_all(&repository).await, Ok(2));
    all.remove_unused();
    bench.store();
    drop(repository);
    all.remove_unused();
    assert_eq!(fs::read_dir(bench.root.path().join("data")).unwrap().count(), 1, "the lock alone");
}

#[tokio::test]
async fn a_pack_that_would_fill_the_memory_is_refused() {
    // A file of 200 MB and a second one that is the first with another end: 200 kB, or 400 MB of memory.
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
    let before = Reference::Commit(moorline::source::ObjectHash::parse(&good).unwrap());
    let revision = repository.look(&before, soon()).await.unwrap();
    assert_eq!(repository.read(&revision, &["a"], soon()).await.unwrap().files.entries().count(), 2);
}
