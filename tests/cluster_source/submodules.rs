//! Submodules: their files are read where they are on the same server, and nothing else is followed.

use std::path::Path;
use std::process::Command;

use moorline::source::{
    Address, Credentials, Error, ReadLimits, Reference, Repositories, Repository, Revision, Snapshot,
};
use moorline::tree::TreeEntry;
use moorline_test_support::authority::Authority;
use moorline_test_support::git_bench::soon;
use moorline_test_support::git_server::{GitServer, Reply, Work};
use moorline_test_support::scene::{Scene, config_map};
use serde_json::json;

/// A bare repository in a folder with these files, and the commit that has them.
fn repository(root: &Path, name: &str, files: &[(&str, &str)], modules: &[(&str, &str, &str)]) -> String {
    let work = root.join(format!("{name}-work"));
    let bare = root.join(format!("{name}.git"));
    if !bare.exists() {
        git(root, &["init", "-q", "--bare", "-b", "main", &format!("{name}.git")]);
        git(root, &["init", "-q", "-b", "main", &format!("{name}-work")]);
    }
    for (path, text) in files {
        let file = work.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    commit(&work, modules);
    git(&work, &["push", "-q", &bare.display().to_string(), "HEAD:main"]);
    git(&work, &["rev-parse", "HEAD"])
}

/// Commits everything, with submodules: a path, a URL and a commit.
fn commit(work: &Path, modules: &[(&str, &str, &str)]) {
    let said: String = modules
        .iter()
        .map(|(path, url, _)| format!("[submodule \"{path}\"]\n\tpath = {path}\n\turl = {url}\n"))
        .collect();
    if !said.is_empty() {
        std::fs::write(work.join(".gitmodules"), said).unwrap();
    }
    git(work, &["add", "-A"]);
    for (path, _, commit) in modules {
        git(work, &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},{path}")]);
    }
    git(work, &["-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "-q", "-m", "one more"]);
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

struct Ground {
    root: tempfile::TempDir,
    server: GitServer,
    all: Repositories,
}

impl Ground {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let server = GitServer::start(root.path());
        let all =
            Repositories::new(&root.path().join("data"), None, moorline::source::HostPolicy::allow_all())
                .unwrap();
        Self { root, server, all }
    }

    fn make(&self, name: &str, files: &[(&str, &str)], modules: &[(&str, &str, &str)]) -> String {
        repository(self.root.path(), name, files, modules)
    }

    /// The files of the repository `shop` and its submodules.
    async fn read(&self) -> Snapshot {
        self.read_folder("deploy").await.unwrap()
    }

    async fn read_folder(&self, folder: &str) -> Result<Snapshot, Error> {
        let (repository, revision) = self.shop().await;
        let reading = repository
            .read_with_submodules(
                &revision,
                (&[folder], &[]),
                &Default::default(),
                &ReadLimits::default(),
                soon(),
            )
            .await;
        reading.map(|reading| reading.snapshot.unwrap())
    }

    async fn shop(&self) -> (Repository, Revision) {
        let address = Address::remote(&self.server.url("shop.git")).unwrap();
        let repository = self.all.repository(&address, "", &Credentials::default()).unwrap();
        let revision = repository.resolve(&Reference::branch("main").unwrap(), soon()).await.unwrap();
        (repository, revision)
    }

    /// Returns the number of mirrors on disk.
    fn mirrors(&self) -> usize {
        let folders = std::fs::read_dir(self.root.path().join("data")).unwrap().flatten();
        folders.filter(|it| it.path().is_dir()).count()
    }
}

fn texts(snapshot: &Snapshot) -> Vec<(&str, String)> {
    let text = |entry: &TreeEntry| match entry {
        TreeEntry::File(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        TreeEntry::Unreadable { reason, .. } => format!("unreadable: {reason}"),
        other => format!("{other:?}"),
    };
    snapshot.files.entries().map(|(path, entry)| (path, text(entry))).collect()
}

#[tokio::test]
async fn submodules_are_read_as_deep_as_they_are_nested() {
    let ground = Ground::new();
    let inner = ground.make("inner", &[("c.yaml", "c")], &[]);
    let base = ground.make("base", &[("b.yaml", "b")], &[("lib/inner", "../inner.git", &inner)]);
    let absolute = ground.server.url("base.git");
    ground.make("shop", &[("deploy/a.yaml", "a")], &[("deploy/base", &absolute, &base)]);
    let files = |b: &str| {
        [
            ("deploy/a.yaml", "a"),
            ("deploy/base/.gitmodules", ""),
            ("deploy/base/b.yaml", b),
            ("deploy/base/lib/inner/c.yaml", "c"),
        ]
        .map(|(path, text)| (path, text.to_owned()))
        .to_vec()
    };
    let told = |snapshot: &Snapshot| {
        let mut told: Vec<(String, String)> =
            texts(snapshot).into_iter().map(|(path, text)| (path.to_owned(), text)).collect();
        told.iter_mut().filter(|(path, _)| path.ends_with(".gitmodules")).for_each(|(_, text)| text.clear());
        told
    };
    let owned = |files: Vec<(&str, String)>| -> Vec<(String, String)> {
        files.into_iter().map(|(path, text)| (path.to_owned(), text)).collect()
    };
    let first = ground.read().await;
    assert_eq!(told(&first), owned(files("b")));
    // The commit that is named counts, not the newest one of the submodule.
    let newer = ground.make("base", &[("b.yaml", "newer")], &[("lib/inner", "../inner.git", &inner)]);
    assert_eq!(told(&ground.read().await), owned(files("b")));
    ground.make("shop", &[("deploy/a.yaml", "a")], &[("deploy/base", "../base.git", &newer)]);
    assert_eq!(told(&ground.read().await), owned(files("newer")));
    // As long as somebody holds what was read, its mirror stays; then it goes.
    ground.all.remove_unused();
    drop(first);
    ground.all.remove_unused();
    assert_eq!(ground.mirrors(), 0);
}

#[tokio::test]
async fn a_submodule_that_is_gone_is_named() {
    let ground = Ground::new();
    let base = ground.make("base", &[("b.yaml", "b")], &[]);
    let gone = ("deploy/a-gone", "../gone.git", &*base);
    ground.make("shop", &[("deploy/a.yaml", "a")], &[("deploy/base", "../base.git", &base), gone]);
    let error = ground.read_folder("deploy").await.unwrap_err();
    assert_eq!(error.reason(), "RepositoryNotFound");
    assert!(error.to_string().starts_with("the submodule deploy/a-gone: "), "{error}");
    // The fetched objects are there for the next attempt.
    assert_eq!(ground.mirrors(), 3);
    let missing = "0123456789012345678901234567890123456789";
    ground.make("shop", &[("deploy/a.yaml", "b")], &[("deploy/gone", "../base.git", missing)]);
    let error = ground.read_folder("deploy").await.unwrap_err();
    assert_eq!(error.reason(), "CommitNotFound");
    assert!(error.to_string().starts_with("the submodule deploy/gone: "), "{error}");
}

#[tokio::test]
async fn the_path_may_lie_in_a_submodule() {
    let ground = Ground::new();
    let base = ground.make("base", &[("app/b.yaml", "b"), ("other/c.yaml", "c")], &[]);
    ground.make("shop", &[("deploy/a.yaml", "a")], &[("lib/base", "../base.git", &base)]);
    for folder in ["lib/base/app", "lib/base"] {
        let snapshot = ground.read_folder(folder).await.unwrap();
        assert_eq!(snapshot.files.read("lib/base/app/b.yaml").as_deref(), Ok(&b"b"[..]), "{folder}");
        assert_eq!(snapshot.ids.keys().map(|path| &**path).collect::<Vec<_>>(), ["lib/base"]);
    }
    let (repository, revision) = ground.shop().await;
    let told = [
        (ground.read_folder("lib/base/none").await, "lib/base/none does not exist"),
        (ground.read_folder("lib/none").await, "lib/none does not exist"),
        (repository.read(&revision, &["lib/base/app"], soon()).await, "(spec.source.git.submodules)"),
    ];
    for (found, expect) in told {
        let error = found.unwrap_err();
        assert_eq!(error.reason(), "PathNotFound");
        assert!(error.to_string().contains(expect), "{error}");
    }
    ground.make("shop", &[], &[("lib/base", "https://elsewhere.example/base.git", &base)]);
    let error = ground.read_folder("lib/base/app").await.unwrap_err();
    assert!(error.to_string().contains("on another server"), "{error}");
}

#[tokio::test]
async fn submodules_are_not_without_end() {
    let ground = Ground::new();
    let base = ground.make("base", &[("b.yaml", "b")], &[]);
    let names: Vec<String> = (0..65).map(|at| format!("deploy/m{at}")).collect();
    let all: Vec<(&str, &str, &str)> = names.iter().map(|name| (&**name, "../base.git", &*base)).collect();
    ground.make("shop", &[("deploy/a.yaml", "a")], &all[..64]);
    assert_eq!(ground.read().await.files.entries().count(), 65);
    ground.make("shop", &[("deploy/a.yaml", "b")], &all);
    let error = ground.read_folder("deploy").await.unwrap_err();
    assert_eq!(error.reason(), "PathTooLarge");
    assert!(error.to_string().contains("more than 64 submodules"), "{error}");
    assert_eq!(ground.mirrors(), 1, "what is too much is not kept");
}

#[tokio::test]
async fn a_submodule_is_asked_for_with_the_login_and_the_authority_of_the_repository() {
    let ground = Ground::new();
    let base = ground.make("base", &[("b.yaml", "b")], &[]);
    ground.make("shop", &[("deploy/a.yaml", "a")], &[("deploy/base", "../base.git", &base)]);
    let authority = Authority::new();
    let server = GitServer::start_with(ground.root.path(), Some(authority.server(None)));
    server.rule(|request| match request.header("authorization") {
        Some("Basic bWU6b25l") => Reply::Git,
        _ => Reply::Raw(401, "", Vec::new()),
    });
    let address = Address::remote(&format!("https://localhost:{}/shop.git", server.port)).unwrap();
    let secret = [("ca.crt", &*authority.pem), ("username", "me"), ("password", "one")];
    let login = Credentials::from_secret(secret).unwrap();
    let repository = ground.all.repository(&address, "ns/secret", &login).unwrap();
    let revision = repository.resolve(&Reference::Head, soon()).await.unwrap();
    let reading = repository
        .read_with_submodules(
            &revision,
            (&["deploy"], &[]),
            &Default::default(),
            &ReadLimits::default(),
            soon(),
        )
        .await;
    let snapshot = reading.unwrap().snapshot.unwrap();
    assert_eq!(snapshot.files.read("deploy/base/b.yaml").as_deref(), Ok(&b"b"[..]));
}

#[tokio::test]
async fn a_submodule_elsewhere_is_not_asked_for() {
    let ground = Ground::new();
    let secret = GitServer::start(ground.root.path());
    let base = ground.make("base", &[("b.yaml", "b")], &[]);
    for (url, why) in [
        (secret.url("base.git"), "on another server"),
        (
            format!("file://{}", ground.root.path().join("base.git").display()),
            "a submodule whose URL is not supported",
        ),
        (ground.root.path().join("base.git").display().to_string(), "a submodule whose URL is not supported"),
        ("../../../../base.git".to_owned(), "a submodule whose URL is not supported"),
    ] {
        ground.make("shop", &[("deploy/a.yaml", &url)], &[("deploy/base", &url, &base)]);
        let snapshot = ground.read().await;
        let told = texts(&snapshot);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[1].0 == "deploy/base" && told[1].1.contains(why), "{told:?}");
    }
    assert!(secret.requests().is_empty(), "nobody asked it for anything");
}

#[tokio::test]
async fn a_sync_reads_submodules_where_that_is_asked_for() {
    let Some(scene) = Scene::new("modules").await else { return };
    let root = scene.root.path();
    let base = repository(root, "base", &[("b.json", &config_map("b", "of the base"))], &[]);
    let work: &Work = &scene.work;
    work.git(&["rev-parse", "--is-inside-work-tree"]);
    repository(root, "shop", &[("a.json", &config_map("a", "own"))], &[("base", "../base.git", &base)]);
    let _daemon = scene.daemon();
    let git = |submodules: bool| json!({"git": {"url": scene.git.url("shop.git"), "submodules": submodules}});
    scene.sync("shop", json!({"source": git(false)})).await;
    let until = async |wanted: &str| {
        moorline_test_support::daemon::until(wanted, async || {
            let message = scene.status("shop", "/conditions/0/message").await;
            message.as_str().unwrap_or_default().contains(wanted).then_some(())
        })
        .await;
    };
    until("spec.source.git.submodules").await;
    assert!(scene.values().await.is_empty(), "half a repository is none");
    scene.patch_sync("shop", json!({"spec": {"source": git(true)}})).await;
    until("2 objects are in sync with").await;
    let values = scene.values().await;
    assert_eq!(values.get("b").map(String::as_str), Some("of the base"));
    scene.assert_calm("with submodules").await;
}
