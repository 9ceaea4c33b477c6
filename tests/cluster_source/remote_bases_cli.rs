//! Remote bases on the command line: what may be fetched, how far it may reach, and that it yields what the real tool makes of it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use moorline::controller::reconcile::remote_bases;
use moorline::controller::reconcile::remote_bases::{LatestRevisions, ResolvedBases, TrackedBases};
use moorline::metrics::Metrics;
use moorline::render::{self, RenderOptions, Rendered};
use moorline::source::{AllowList, Repositories};
use moorline::tree::FileTree;
use moorline::yaml::{Dialect, read};
use moorline_test_support::git_server::{GitServer, Work};
use serde_json::Value;

struct Ground {
    root: tempfile::TempDir,
    git: GitServer,
}

impl Ground {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        Self { git: GitServer::start(root.path()), root }
    }

    /// A repository with these files on its main branch.
    fn repository(&self, name: &str, files: &[(&str, &str)]) -> Work {
        let folder = self.root.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        let work = Work::new(&folder);
        work.push(files);
        work
    }

    fn url(&self, name: &str) -> String {
        self.git.url(&format!("{name}/repository.git"))
    }

    /// A folder whose kustomization names this.
    fn overlay(&self, entries: &str) -> PathBuf {
        let folder = self.root.path().join("overlay");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("kustomization.yaml"), format!("namePrefix: my-\n{entries}\n")).unwrap();
        folder
    }

    /// Returns the output of `render` for that, where everything on the loopback is allowed.
    fn render(&self, entries: &str) -> (i32, String, String) {
        let prefix = format!("http://127.0.0.1:{}", self.git.port);
        self.render_with(entries, &["--allow-remote", &prefix, "--verbose"])
    }

    fn render_with(&self, entries: &str, flags: &[&str]) -> (i32, String, String) {
        let folder = self.overlay(entries);
        let arguments = [&["render", ".", "--root", "."], flags].concat();
        let run = Command::new(env!("CARGO_BIN_EXE_moorline")).args(arguments).current_dir(folder).output();
        let Output { status, stdout, stderr } = run.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (status.code().unwrap(), text(stdout), text(stderr))
    }

    fn refused(&self, entries: &str, parts: &[&str]) {
        let (code, _, words) = self.render(entries);
        assert_eq!(code, 1, "{entries}");
        parts.iter().for_each(|part| assert!(words.contains(part), "{entries}: {words}"));
    }
}

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map\ndata:\n  key: ";

fn map(value: &str) -> String {
    format!("{MAP}{value}\n")
}

#[test]
fn a_reference_is_a_branch_a_tag_a_commit_or_nothing() {
    let ground = Ground::new();
    let files = |value: &str| {
        [("base/kustomization.yaml", "resources: [map.yaml]\n".to_owned()), ("base/map.yaml", map(value))]
    };
    let push = |work: &Work, value: &str| {
        let files = files(value);
        work.push(&files.iter().map(|(path, text)| (*path, text.as_str())).collect::<Vec<_>>())
    };
    let work = ground.repository("one", &[]);
    let first = push(&work, "first");
    work.git(&["tag", "-a", "-m", "x", "v1"]);
    work.git(&["checkout", "-q", "-b", "feature/x"]);
    push(&work, "branch");
    // A tag comes before a branch of the same name.
    work.git(&["branch", "both"]);
    work.git(&["checkout", "-q", "main"]);
    let newest = push(&work, "newest");
    work.git(&["tag", "both"]);
    work.git(&["push", "-q", "origin", "refs/heads/both", "refs/heads/feature/x"]);
    work.git(&["push", "-q", "origin", "--tags"]);
    let url = ground.url("one");
    let check = |query: &str, expect: &str, revision: &str| {
        let (code, data, words) = ground.render(&format!("resources: [\"{url}//base{query}\"]"));
        assert_eq!(code, 0, "{query}: {words}");
        assert!(data.contains("name: my-map") && data.contains(&format!("key: {expect}")), "{query}: {data}");
        assert!(words.contains(&format!("the remote base {url} is {revision}")), "{query}: {words}");
    };
    check("", "newest", &format!("main@{newest}"));
    check("?ref=main", "newest", &format!("main@{newest}"));
    check("?version=v1&timeout=3s", "first", &format!("v1@{first}"));
    check("?ref=feature/x", "branch", "feature/x@");
    check("?ref=refs/heads/both", "branch", "both@");
    check("?ref=both", "newest", &format!("both@{newest}"));
    check(&format!("?ref={first}"), "first", &first);
    ground.refused(
        &format!("resources: [\"{url}//base?ref=mian\"]"),
        &[&url, "has no branch or tag mian (did you mean main?)", "kustomization.yaml:2:13"],
    );
    ground.refused(
        &format!("resources: [\"{url}//bas\"]"),
        &["there is no file or folder", &format!("at {newest}/bas")],
    );
    ground.refused(&format!("resources: [\"{url}//base/map.yaml\"]"), &["is a single file"]);
}

#[test]
fn nobody_is_asked_who_is_not_allowed() {
    let ground = Ground::new();
    ground.repository("one", &[("kustomization.yaml", "resources: []\n")]);
    let url = ground.url("one");
    let entries = format!("resources:\n- {url}");
    for flags in
        [&[][..], &["--allow-remote", &ground.git.url("on")], &["--allow-remote", "https://example.com"]]
    {
        let (code, data, words) = ground.render_with(&entries, flags);
        assert_eq!((code, data.as_str()), (1, ""), "{flags:?}");
        for part in ["kustomization.yaml:3:3", &url, "--allow-remote", "commit the files"] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }
    let (code, _, words) = ground.render_with(&entries, &["--allow-remote", "http://me:planted@host"]);
    assert_eq!(code, 1);
    assert!(words.contains("--allow-remote") && !words.contains("planted"), "{words}");
    assert!(ground.git.requests().is_empty());
    let (_, _, words) = ground.render("resources: [\"http://me:planted@127.0.0.1/a/b\"]");
    assert!(words.contains("http://…@127.0.0.1/a/b has a user or a password in it"), "{words}");
    ground.refused("resources: [\"git@127.0.0.1:a/b\"]", &["uses ssh", "write the https URL"]);
    ground.refused("resources: [\"file:///srv/a\"]", &["is a path on the local disk"]);
    assert!(ground.git.requests().is_empty());
}

#[test]
fn a_base_reaches_no_further_than_its_own_repository() {
    let ground = Ground::new();
    let work = ground.repository(
        "one",
        &[
            ("up/kustomization.yaml", "resources: [../../secret]\n"),
            ("slash/kustomization.yaml", "resources: [/secret]\n"),
            ("file/kustomization.yaml", "configMapGenerator:\n- {name: a, files: [../map.yaml]}\n"),
            ("link/kustomization.yaml", "resources: [out]\n"),
            ("place/kustomization.yaml", "resources: [\"../http:/127.0.0.1\"]\n"),
            ("map.yaml", &map("x")),
        ],
    );
    symlink("../../secret", work.folder.join("link/out")).unwrap();
    work.push(&[]);
    let url = ground.url("one");
    let check = |path: &str, part: &str| {
        let at = format!("/{path}/kustomization.yaml:");
        ground.refused(&format!("resources: [\"{url}//{path}\"]"), &[part, &format!("{url} at "), &at]);
    };
    check("up", "../../secret is outside of the repository");
    check("slash", "/secret is outside of the repository");
    check("file", "does not lie below the folder of its kustomization");
    check("link", "leads out of the tree");
    check("place", "there is no file or folder");
    // The overlay's own files are not the base's, and the other way round.
    ground.refused(&format!("resources: [\"{url}//../secret\"]"), &["is not a URL of a folder"]);
}

#[test]
fn bases_name_bases_and_never_themselves() {
    let ground = Ground::new();
    let (one, two) = (ground.url("one"), ground.url("two"));
    ground.repository(
        "two",
        &[
            ("base/kustomization.yaml", "resources: [map.yaml]\ncomponents: [../part]\n"),
            ("base/map.yaml", &map("x")),
            (
                "part/kustomization.yaml",
                "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\nnameSuffix: -part\n",
            ),
            ("back/kustomization.yaml", &format!("resources: [\"{one}//back\"]\n")),
        ],
    );
    ground.repository(
        "one",
        &[
            (
                "base/kustomization.yaml",
                &format!("namePrefix: one-\nresources: [\"{two}//base?ref=main\"]\n"),
            ),
            ("back/kustomization.yaml", &format!("resources: [\"{two}//back\"]\n")),
        ],
    );
    let (code, data, words) = ground.render(&format!("resources: [\"{one}//base\"]"));
    assert_eq!(code, 0, "{words}");
    assert!(data.contains("name: my-one-map-part"), "{data}");
    ground.refused(&format!("resources: [\"{one}//back\"]"), &["leads back to", &two]);
    // A prefix has to allow each of them.
    let (code, _, words) = ground
        .render_with(&format!("resources: [\"{one}//base\"]"), &["--allow-remote", &ground.git.url("one")]);
    assert_eq!(code, 1);
    assert!(
        words.contains(&format!("/base/kustomization.yaml:2:13: {two}//base?ref=main may not be fetched")),
        "{words}"
    );
    let many: Vec<String> = (0..40).map(|at| format!("- \"{two}//part?ref=b{at}\"")).collect();
    (0..40).for_each(|at| {
        let bare = ground.root.path().join("two/repository.git");
        Work::git_in(&bare, &["branch", &format!("b{at}"), "main"]);
    });
    ground.refused(
        &format!("components:\n{}", many.join("\n")),
        &["exceeds the limit of 32 remote bases per render"],
    );
}

/// The tool that `MOORLINE_KUSTOMIZE` names, else the one on the `PATH`.
fn kustomize() -> Option<PathBuf> {
    if let Some(program) = std::env::var_os("MOORLINE_KUSTOMIZE") {
        return Some(program.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("kustomize")).find(|place| place.is_file())
}

fn documents(text: &str) -> Vec<Value> {
    let documents = read("output", text.as_bytes(), Dialect::Kustomize).unwrap();
    documents.into_iter().map(|document| document.value).filter(|value| !value.is_null()).collect()
}

fn built(program: &Path, folder: &Path) -> Output {
    Command::new(program).arg("build").arg(folder).output().unwrap()
}

#[test]
fn a_folder_with_remote_bases_comes_to_what_the_tool_makes_of_it() {
    let Some(program) = kustomize() else { return };
    let ground = Ground::new();
    let work = ground.repository(
        "one",
        &[
            (
                "base/kustomization.yaml",
                "resources: [map.yaml, ../more]\nconfigMapGenerator:\n- {name: made, files: [words.txt]}\n",
            ),
            ("base/map.yaml", &map("x")),
            ("base/words.txt", "words"),
            ("more/kustomization.yaml", "nameSuffix: -more\nresources: [map.yaml]\n"),
            ("more/map.yaml", &map("y")),
            (
                "part/kustomization.yaml",
                "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\nlabels: [{pairs: {a: b}}]\n",
            ),
        ],
    );
    work.git(&["tag", "v1"]);
    work.git(&["push", "-q", "origin", "v1"]);
    work.push(&[("base/map.yaml", &map("z"))]);
    let url = ground.url("one");
    let cases = [
        format!("resources: [\"{url}//base?ref=main\"]"),
        format!("resources: [\"{url}/base?version=v1\"]\ncomponents: [\"{url}/part\"]"),
        format!(
            "resources: [\"git::{url}//base?ref=v1&submodules=false&timeout=20\", \"{url}/more\"]\nnamespace: shop"
        ),
        format!("resources: [\"{url}//base?ref=none\"]"),
        format!("resources: [\"{url}//base/map.yaml/\"]"),
        format!("resources: [\"{url}//base/../more\"]"),
    ];
    for entries in &cases {
        let (code, data, words) = ground.render(entries);
        let tool = built(&program, &ground.overlay(entries));
        let said = String::from_utf8_lossy(&tool.stderr);
        assert_eq!(code == 0, tool.status.success(), "{entries}\nours: {words}\nthe tool's: {said}");
        if code == 0 {
            assert_eq!(documents(&data), documents(&String::from_utf8(tool.stdout).unwrap()), "{entries}");
        }
    }
}

#[tokio::test]
async fn where_signatures_count_only_commits_are_taken() {
    let ground = Ground::new();
    let work = ground
        .repository("one", &[("kustomization.yaml", "resources: [map.yaml]\n"), ("map.yaml", &map("x"))]);
    let (commit, url) = (work.git(&["rev-parse", "HEAD"]), ground.url("one"));
    let repositories =
        Repositories::new(&ground.root.path().join("data"), None, moorline::source::HostPolicy::allow_all())
            .unwrap();
    let allowed = AllowList::new("remoteBases", [ground.git.url("").as_str()]).unwrap();
    let (heads, followed, metrics) =
        (LatestRevisions::default(), TrackedBases::default(), Metrics::new().unwrap());
    let (repositories, heads, allowed, followed) = (&repositories, &heads, &allowed, &followed);
    let fresh = Duration::from_secs(1);
    let by = moorline_test_support::git_bench::soon();
    let asked = remote_bases::RemoteBaseContext {
        repositories,
        heads,
        allowed,
        followed,
        asker: "",
        sync: Box::default(),
        metrics: &metrics,
        pinned: true,
        fresh,
    };
    for (reference, expect) in [("main", Err("pinned to a full commit id")), (commit.as_str(), Ok(1))] {
        let text = format!("resources: [\"{url}?ref={reference}\"]\n");
        let (tree, options) =
            (FileTree::from_texts([("kustomization.yaml", text.as_str())]), RenderOptions::default());
        let mut bases = ResolvedBases::default();
        let mut files = bases.mount(tree.clone(), by).await.unwrap();
        let missing = render::missing_inputs(&files, &options);
        bases.take(missing, &files, &asked, by).await.unwrap();
        files = bases.mount(tree, by).await.unwrap();
        match (render::render(&files, &options), expect) {
            (Rendered::Complete(complete), Ok(count)) => assert_eq!(complete.objects().len(), count),
            (Rendered::Incomplete(incomplete), Err(part)) => {
                let problem = incomplete.problems[0].to_string();
                assert!(problem.contains(part), "{problem}");
                assert_eq!(incomplete.problems[0].reason(), "RemoteBaseRefused");
            }
            (rendered, _) => panic!("{reference}: {rendered:?}"),
        }
    }
}
