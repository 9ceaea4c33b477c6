//! Files of Git LFS: who is asked for them, with which login, and which files are believed.

use std::time::Duration;

use moorline_core::tree::{FileTree, LfsPointers};
use moorline_git::{
    Address, Credentials, Error, HostPolicy, LfsError, LfsFile, Reference, Repositories, Repository,
    fetch_lfs, fill_lfs,
};
use moorline_test_support::authority::Authority;
use moorline_test_support::git_bench::soon;
use moorline_test_support::git_server::{GitServer, Reply, Work};
use moorline_test_support::lfs_server::{LfsFault, LfsServer, pointer};

/// The header of the login in the Secret.
const LOGIN: &str = "Basic bWU6cGxhbnRlZA==";

struct Ground {
    root: tempfile::TempDir,
    server: GitServer,
    lfs: LfsServer,
    work: Work,
    authority: Authority,
    all: Repositories,
}

fn hosts() -> HostPolicy {
    HostPolicy::new("allowedHosts", ["localhost", "127.0.0.1", "::1"]).unwrap()
}

/// Opens the folder of another daemon. A process that another test starts just now may still hold
/// its lock.
fn reopen(root: &tempfile::TempDir) -> Repositories {
    let data = root.path().join("data");
    loop {
        match Repositories::new(&data, None, hosts()) {
            Err(Error::Disk { .. }) => std::thread::sleep(Duration::from_millis(10)),
            opened => return opened.unwrap(),
        }
    }
}

impl Ground {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let (work, authority) = (Work::new(root.path()), Authority::new());
        let server = GitServer::start_with(root.path(), Some(authority.server(None)));
        let lfs = LfsServer::serve(&server, format!("https://localhost:{}", server.port), Some(LOGIN));
        let all = Repositories::new(&root.path().join("data"), None, hosts()).unwrap();
        Self { root, server, lfs, work, authority, all }
    }

    fn credentials(&self) -> Credentials {
        let keys = [("username", "me"), ("password", "planted"), ("ca.crt", &self.authority.pem)];
        Credentials::from_secret(keys).unwrap()
    }

    fn open(&self, owner: &str) -> Repository {
        let url = format!("https://localhost:{}/repository.git", self.server.port);
        self.all.repository(&Address::remote(&url).unwrap(), owner, &self.credentials()).unwrap()
    }

    /// Reads the newest commit, and every pointer in it.
    async fn read(&self, repository: &Repository) -> (FileTree, LfsPointers) {
        let revision = repository.resolve(&Reference::Head, soon()).await.unwrap();
        let mut snapshot = repository.read(&revision, &[""], soon()).await.unwrap();
        let left = fill_lfs(repository, &mut snapshot).unwrap();
        let paths: Vec<String> = snapshot.files.entries().map(|(path, _)| path.to_owned()).collect();
        for path in paths {
            drop(snapshot.files.read(&path));
        }
        (snapshot.files, left)
    }

    /// Fetches what was read.
    async fn fetch(&self, repository: &Repository) -> Result<(), LfsError> {
        let (_, left) = self.read(repository).await;
        let one = |(path, pointer): (&str, &_)| LfsFile { path: path.into(), pointer: Clone::clone(pointer) };
        fetch_lfs(repository, left.were_read().map(one).collect(), soon()).await
    }

    fn leak(text: String) -> &'static str {
        Box::leak(text.into_boxed_str())
    }
}

#[tokio::test]
async fn a_file_is_fetched_once_and_kept_on_disk_for_its_secret_alone() {
    let it = Ground::new();
    let files = [it.lfs.add(b"one"), it.lfs.add(b"two")];
    it.work.push(&[("a", &files[0]), ("folder/b", &files[1]), ("again", &files[0]), ("plain", "text")]);
    let repository = it.open("team/login");
    it.fetch(&repository).await.unwrap();
    assert_eq!(it.lfs.counts(), (1, 2), "a file at two paths is fetched once");
    let (tree, left) = it.read(&repository).await;
    assert!(left.iter().next().is_none());
    for (path, expect) in [("a", "one"), ("folder/b", "two"), ("again", "one"), ("plain", "text")] {
        assert_eq!(&*tree.read(path).unwrap(), expect.as_bytes());
    }

    // Another commit, and another daemon with the same folder, find them on disk.
    it.work.push(&[("c", &files[1])]);
    it.fetch(&repository).await.unwrap();
    drop((repository, tree));
    let Ground { all, root, .. } = it;
    drop(all);
    let it = Ground { all: reopen(&root), root, ..it };
    it.fetch(&it.open("team/login")).await.unwrap();
    assert_eq!(it.lfs.counts(), (0, 0));
    // A person who may read the pointer may not read the file for that.
    it.fetch(&it.open("other/login")).await.unwrap();
    assert_eq!(it.lfs.counts(), (1, 2));
    it.lfs.assert_fine();
}

#[tokio::test]
async fn what_is_not_the_file_of_the_pointer_is_refused() {
    let it = Ground::new();
    it.work.push(&[("a/b.yaml", &it.lfs.add(b"the file"))]);
    let repository = it.open("team/login");
    let server = format!("https://localhost:{}", it.server.port);
    let there = |place: &str| Ground::leak(format!("Location: {place}\r\n"));
    let metadata = "https://169.254.169.254/latest/meta-data";
    let table = [
        (LfsFault::OtherBytes, "LfsFileInvalid", "sends a file of sha256:"),
        (LfsFault::MoreBytes(1), "LfsFileInvalid", "does not have the 8 bytes of the pointer"),
        (LfsFault::MoreBytes(100 << 20), "LfsFileInvalid", "does not have the 8 bytes of the pointer"),
        (LfsFault::Empty, "LfsFileMissing", "does not have it; run git lfs push"),
        (LfsFault::Object(404), "LfsFileMissing", "does not have it; run git lfs push"),
        (LfsFault::Object(422), "LfsFileInvalid", "refuses to serve it"),
        (LfsFault::Batch(404, ""), "LfsFileMissing", "has no Git LFS for this repository"),
        (LfsFault::Batch(403, ""), "RepositoryAccessDenied", "refuses access (status 403)"),
        (LfsFault::Batch(503, ""), "RepositoryUnavailable", "returned status 503"),
        (LfsFault::Batch(200, ""), "LfsFileInvalid", "answers a request for files with no JSON"),
        (LfsFault::Batch(307, there(&server)), "RepositoryRedirect", "redirects elsewhere"),
        (LfsFault::Href(metadata.into()), "HostNotAllowed", "https://169.254.169.254 must not be contacted"),
        (LfsFault::Href("http://localhost/a".into()), "LfsFileInvalid", "leads from https to http"),
        (
            LfsFault::Href("file:///etc/passwd".into()),
            "LfsFileInvalid",
            "gives a URL for it that cannot be used",
        ),
        (LfsFault::Download(404, ""), "LfsFileMissing", "does not have it"),
        (LfsFault::Download(500, ""), "RepositoryUnavailable", "returned status 500"),
        (LfsFault::Download(302, there(metadata)), "HostNotAllowed", "169.254.169.254 must not be contacted"),
        (LfsFault::Download(302, there("http://localhost/a")), "LfsFileInvalid", "leads from https to http"),
        (LfsFault::Download(302, ""), "RepositoryRedirect", "redirects elsewhere"),
    ];
    for (fault, reason, expect) in table {
        it.lfs.set_fault(fault.clone());
        let error = it.fetch(&repository).await.unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with("a/b.yaml is in Git LFS, and its file sha256:"), "{message}");
        assert_eq!(error.reason(), reason, "{fault:?}: {message}");
        assert!(message.contains(expect) && !message.contains("planted"), "{fault:?}: {message}");
        let kept = std::fs::read_dir(it.root.path().join("data/lfs")).map_or(0, Iterator::count);
        assert_eq!(kept, 0, "{fault:?}");
    }
    it.lfs.set_fault(LfsFault::None);
    it.fetch(&repository).await.unwrap();
}

#[tokio::test]
async fn a_login_is_sent_to_the_server_of_the_repository_alone() {
    let it = Ground::new();
    let text = it.lfs.add(b"the file");
    let oid = text.split(['\n', ':']).find(|part| part.len() == 64).unwrap();
    it.work.push(&[("a", &text)]);
    let repository = it.open("team/login");
    // A redirected download has no login and no ticket, also on the same server.
    let location = format!("Location: https://localhost:{}/lfs-files/moved/{oid}\r\n", it.server.port);
    it.lfs.set_fault(LfsFault::Download(302, Ground::leak(location)));
    it.fetch(&repository).await.unwrap();
    assert_eq!(it.lfs.counts(), (1, 2));
    it.lfs.assert_fine();

    // Another server gets no login, and nothing at all if it is not public and not listed.
    let storage = GitServer::start_with(it.root.path(), Some(it.authority.server(None)));
    storage.rule(|_| Reply::Raw(200, "", b"the file".to_vec()));
    let file = |host: &str| LfsFault::Href(format!("https://{host}:{}/file?signature=x", storage.port));
    it.lfs.set_fault(file("localhost"));
    it.fetch(&it.open("other/login")).await.unwrap();
    let asked = storage.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].header("authorization"), asked[0].query.as_str()), (None, "signature=x"));
    it.lfs.set_fault(file("127.0.0.1"));
    let narrow = HostPolicy::new("allowedHosts", ["*"]).unwrap().with_loopback();
    let all = Repositories::new(&it.root.path().join("narrow"), None, narrow).unwrap();
    let it = Ground { all, ..it };
    let error = it.fetch(&it.open("team/login")).await.unwrap_err();
    assert_eq!(error.reason(), "RepositoryUnreachable", "{error}");
    assert!(storage.requests().is_empty());
}

#[tokio::test]
async fn a_pointer_that_lies_about_its_size_costs_no_memory() {
    let it = Ground::new();
    let oid = "a".repeat(64);
    it.work.push(&[("huge", &pointer(&oid, 1 << 40))]);
    let repository = it.open("team/login");
    let error = it.fetch(&repository).await.unwrap_err();
    assert_eq!(error.reason(), "FileUnreadable", "{error}");
    assert!(error.needs_new_input() && error.to_string().contains("1099511627776 bytes"), "{error}");
    // Many files that are too much together.
    let many: Vec<(String, String)> =
        (0..9).map(|at| (format!("part-{at}"), pointer(&format!("{at:064x}"), 32 << 20))).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    it.work.git(&["rm", "-q", "huge"]);
    it.work.push(&many);
    let error = it.fetch(&repository).await.unwrap_err();
    assert!(error.to_string().contains("this Sync reads more than 268435456 bytes"), "{error}");
    assert_eq!(it.lfs.counts(), (0, 0), "nobody is asked");
}
