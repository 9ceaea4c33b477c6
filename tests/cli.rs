//! The command line from outside: standard output, standard error and exit code of the real binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// A folder of files that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str, files: &[(&str, &[u8])]) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("cli-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        for (path, bytes) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        Self(root)
    }

    /// Runs `moorline` in the folder.
    fn moorline(&self, arguments: &[&str]) -> Outcome {
        let output = Command::new(env!("CARGO_BIN_EXE_moorline"))
            .args(arguments)
            .current_dir(&self.0)
            .env_remove("NO_COLOR")
            .output()
            .unwrap();
        Outcome::of(&output)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[derive(Debug)]
struct Outcome {
    code: i32,
    data: String,
    words: String,
}

impl Outcome {
    fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            data: String::from_utf8(output.stdout.clone()).unwrap(),
            words: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// The exit code and standard error; nothing may have gone to standard output.
    fn refused(&self, code: i32, words: &str) {
        assert_eq!((self.code, self.words.as_str(), self.data.as_str()), (code, words, ""));
    }
}

const CONFIG_MAP: &[u8] =
    b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  mode: 0644\n  on: text\n";

#[test]
fn render_prints_what_kubernetes_reads() {
    let folder = Folder::new("render", &[("app/a.yaml", CONFIG_MAP), ("app/values.yaml", b"a: 1\n")]);
    let outcome = folder.moorline(&["render", "app"]);
    assert_eq!(outcome.code, 0);
    assert_eq!(
        outcome.data,
        "---\napiVersion: v1\ndata:\n  mode: 420\n  \"true\": text\nkind: ConfigMap\nmetadata:\n  name: a\n"
    );
    assert_eq!(
        outcome.words,
        "note: app/values.yaml is skipped: no document in it has an apiVersion or a kind\n"
    );
    let outcome = folder.moorline(&["render", "app/a.yaml", "--output", "json"]);
    let expect = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"mode": 420, "true": "text"},
    }]);
    assert_eq!(serde_json::from_str::<Value>(&outcome.data).unwrap(), expect);
    assert_eq!((outcome.code, outcome.words.as_str()), (0, ""));
}

#[test]
fn bad_input_is_told_with_its_place_and_what_to_do() {
    let sound: &[u8] = CONFIG_MAP;
    let folder = Folder::new(
        "bad",
        &[
            ("binary/image.yaml", b"\x89PNG\r\n\x1a\n\0\0\0"),
            ("twice/a.yaml", sound),
            ("twice/b.yaml", sound),
            ("nameless/a.yaml", b"apiVersion: v1\nkind: Pod\nmetadata:\n  labels: {}\n"),
            ("badname/a.yaml", b"apiVersion: v1\nkind: Service\nmetadata:\n  name: Web_1\n"),
            ("scope/a.yaml", b"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  namespace: b\n"),
            ("live/none.txt", b""),
        ],
    );
    fs::create_dir(folder.0.join("empty")).unwrap();
    let check = |arguments: &[&str], code: i32, words: &str| folder.moorline(arguments).refused(code, words);

    check(
        &["render", "nowhere"],
        1,
        "error: nowhere: No such file or directory (os error 2); check the path\n",
    );
    check(
        &["render", "empty"],
        1,
        "error: there is no manifest below empty: files that end in .yaml, .yml or .json and hold an apiVersion and a kind are read\n",
    );
    check(
        &["render", "binary"],
        1,
        "error: binary/image.yaml:1:1: found bytes that are not UTF-8, expected text in UTF-8\n",
    );
    check(
        &["render", "twice"],
        1,
        "error: twice/b.yaml:1: ConfigMap a is written a second time; the first is at twice/a.yaml:1; remove one\n",
    );
    check(&["render", "nameless"], 1, "error: nameless/a.yaml:3:1: the Pod has no metadata.name; add it\n");
    check(
        &["check", "badname"],
        1,
        "error: badname/a.yaml:4:3: metadata.name \"Web_1\" must be at most 63 lower-case letters, digits and '-', and begin and end with a letter or digit\n",
    );
    let scope = "error: scope/a.yaml:5:3: Namespace is cluster-scoped and cannot be in namespace \"b\"; remove metadata.namespace\n";
    check(&["check", "scope"], 1, scope);
    check(
        &["plan", "scope", "--against", "live"],
        1,
        &format!("note: there is no live object; the plan is for an empty cluster\n{scope}"),
    );
    check(
        &["plan", "twice/a.yaml", "--against", "cluster"],
        1,
        "error: --against cluster: a live cluster cannot be asked yet; give a folder of live objects (a folder called cluster is ./cluster)\n",
    );
}

#[test]
fn a_folder_that_cannot_be_read_is_no_empty_folder() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("unreadable", &[("app/a.yaml", CONFIG_MAP), ("app/closed/b.yaml", b"")]);
    let closed = folder.0.join("app/closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let outcome = folder.moorline(&["render", "app"]);
    let as_root = fs::read_dir(&closed).is_ok();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    match as_root {
        // Nothing is closed to root; what is left to see is that the folder was read.
        true => assert_eq!(outcome.code, 0),
        false => {
            outcome.refused(1, "error: app/closed cannot be read: Permission denied (os error 13)\n");
        }
    }
}

/// Files that must not be opened, or not be read: each would cost memory or wait for ever.
#[test]
fn large_files_and_pipes_are_refused_unread() {
    let folder = Folder::new("unread", &[("app/a.yaml", CONFIG_MAP)]);
    fs::File::create(folder.0.join("app/large.yaml")).unwrap().set_len(100_000_000).unwrap();
    let made = Command::new("mkfifo").arg(folder.0.join("app/pipe.yaml")).status().unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink("/etc/passwd", folder.0.join("app/out.yaml")).unwrap();
    folder.moorline(&["render", "app"]).refused(
        1,
        "error: app/large.yaml has 100000000 bytes; a file may have at most 33554432; split it or leave it out\n\
         error: app/out.yaml leads out of the tree (to /etc/passwd); links are followed only inside it\n\
         error: app/pipe.yaml cannot be read: it is not a regular file\n\
         error: 3 problems\n",
    );
}

/// The exit code tells about manifests, whoever reads the words about them.
#[test]
fn a_reader_who_has_gone_changes_no_exit_code() {
    let folder = Folder::new("closed", &[("bad.yaml", b"kind: Pod\n"), ("app/a.yaml", CONFIG_MAP)]);
    fs::create_dir(folder.0.join("live")).unwrap();
    let code = |arguments: &[&str]| {
        let closed = || {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            writer
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_moorline"));
        command.args(arguments).current_dir(&folder.0).stdout(closed()).stderr(closed());
        command.status().unwrap().code().unwrap()
    };
    assert_eq!(code(&["render", "app"]), 0);
    assert_eq!(code(&["check", "bad.yaml"]), 1);
    assert_eq!(code(&["plan", "app", "--against", "live"]), 2);
    assert_eq!(code(&["--help"]), 0);
    assert_eq!(code(&["--bogus"]), 64);
}

/// A name in a repository is a stranger's text: it must not write lines of its own into a log.
#[test]
fn text_of_strangers_stays_on_its_line() {
    let manifest = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, \"x\\e[31m\\n::error::\": b}\n";
    let folder = Folder::new("strangers", &[("a.yaml", manifest), ("b\n::error::.yaml", b"a: 1\n")]);
    let outcome = folder.moorline(&["render", "."]);
    assert_eq!(outcome.code, 1);
    assert_eq!(outcome.words.lines().count(), 2, "{}", outcome.words);
    assert!(!outcome.words.contains(['\u{1b}', '\r']), "{}", outcome.words);
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    let folder = Folder::new("usage", &[]);
    let check = |arguments: &[&str], words: &str| {
        let outcome = folder.moorline(arguments);
        assert_eq!((outcome.code, outcome.data.as_str()), (64, ""), "{outcome:?}");
        assert!(outcome.words.starts_with(words), "{}", outcome.words);
    };
    check(
        &["render", ".", "--recursive"],
        "error: unexpected argument '--recursive' found\n\n  tip: a similar argument exists: '--recurse'\n",
    );
    check(
        &["render", ".", "--recurse", "--no-recurse"],
        "error: the argument '--recurse' cannot be used with '--no-recurse'\n",
    );
    check(&["plan", "."], "error: the following required arguments were not provided:\n  --against <DIR>\n");
    check(
        &["render", ".", "--output", "xml"],
        "error: invalid value 'xml' for '--output <OUTPUT>'\n  [possible values: yaml, json]\n",
    );
    let namespace =
        "must be at most 63 lower-case letters, digits and '-', and begin and end with a letter or digit";
    for flag in ["--namespace", "--target-namespace"] {
        let words = format!("error: invalid value 'a/b' for '{flag} <NAMESPACE>': {namespace}\n");
        check(&["plan", ".", "--against", ".", flag, "a/b"], &words);
    }
    check(
        &["rendr"],
        "error: unrecognized subcommand 'rendr'\n\n  tip: a similar subcommand exists: 'render'\n",
    );
    check(&[], "Holds a Kubernetes cluster to a committed Git revision\n");
    check(&["render", ".", "--include", "a/***"], "error: invalid value 'a/***' for '--include <GLOB>': ");
}

#[test]
fn help_version_and_completions_are_no_errors() {
    let folder = Folder::new("help", &[]);
    let says = |arguments: &[&str], part: &str| {
        let outcome = folder.moorline(arguments);
        assert_eq!((outcome.code, outcome.words.as_str()), (0, ""));
        assert!(outcome.data.contains(part), "{}", outcome.data);
    };
    says(&["--version"], concat!("moorline ", env!("CARGO_PKG_VERSION"), "\n"));
    says(&["--help"], "Examples:\n  moorline render examples/quickstart");
    for verb in ["render", "check", "plan", "completions"] {
        says(&[verb, "--help"], "Examples:\n  ");
    }
    says(&["completions", "bash"], "complete -F _moorline");
    says(&["completions", "fish"], "complete -c moorline");
}

#[test]
fn check_counts_what_is_sound_and_goes_on_after_what_is_not() {
    let folder = Folder::new("check", &[("a.yaml", CONFIG_MAP), ("b.yaml", b"apiVersion: v1\n")]);
    let outcome = folder.moorline(&["check", "nowhere", "b.yaml", "a.yaml"]);
    assert_eq!(outcome.code, 1);
    assert_eq!(outcome.data, "a.yaml: 1 object is sound\n");
    assert_eq!(
        outcome.words,
        "error: nowhere: No such file or directory (os error 2); check the path\n\
         error: b.yaml:1:1: the document has an apiVersion but no kind; add kind, or move the document to a file without manifests\n"
    );
}

/// A live ConfigMap that the Sync `default/default` applied, with the hash of its body.
fn live(name: &str, data: &Value, hash: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "7",
            "annotations": {
                "moorline.dev/id": format!("default/default|/ConfigMap|default/{name}"),
                "moorline.dev/spec-hash": hash,
            },
            "managedFields": [{"manager": "moorline/default/default", "operation": "Apply"}],
        },
    })
}

#[test]
fn plan_says_what_would_change_and_why() {
    let file = |name: &str, data: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {data}\n")
    };
    let folder = Folder::new(
        "plan",
        &[
            ("app/new.yaml", file("new", "{a: b}").as_bytes()),
            ("app/changed.yaml", file("changed", "{level: debug}").as_bytes()),
        ],
    );
    let objects = [
        live("changed", &json!({"level": "info"}), &format!("v1:{}", "0".repeat(64))),
        live("old", &json!({}), &format!("v1:{}", "0".repeat(64))),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "foreign", "namespace": "default"}}),
    ];
    fs::create_dir(folder.0.join("live")).unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs::write(folder.0.join("live/all.json"), list.to_string()).unwrap();

    let outcome = folder.moorline(&["plan", "app", "--against", "live"]);
    assert_eq!(outcome.code, 2, "{}", outcome.words);
    assert_eq!(
        outcome.data,
        "Create (1)\n  + ConfigMap default/new\n\n\
         Update (1)\n  ~ ConfigMap default/changed: changed in Git\n      data.level: \"info\" -> \"debug\"\n\n\
         Prune (1)\n  - ConfigMap default/old: no longer in Git\n\n\
         1 to create, 1 to update, 1 to prune, 0 as in Git.\n"
    );

    let outcome = folder.moorline(&["plan", "app", "--against", "live", "--output", "json"]);
    let plan: Value = serde_json::from_str(&outcome.data).unwrap();
    assert_eq!(plan["stages"][0]["steps"][0]["action"], "update");
    assert_eq!(
        plan["stages"][1]["steps"][0],
        json!({
            "action": "prune", "group": "", "kind": "ConfigMap", "namespace": "default", "name": "old", "uid": "uid-old",
        })
    );
    let as_yaml = folder.moorline(&["plan", "app", "--against", "live", "--output", "yaml"]);
    assert_eq!(as_yaml.code, 2);
    assert!(
        as_yaml.data.contains("  - action: prune\n    group: \"\"\n    kind: ConfigMap\n"),
        "{}",
        as_yaml.data
    );
    let coloured = folder.moorline(&["plan", "app", "--against", "live", "--color", "always"]);
    assert!(coloured.data.contains("\u{1b}[31m- ConfigMap default/old\u{1b}[0m"), "{}", coloured.data);
}

#[test]
fn a_plan_with_nothing_to_do_and_a_plan_that_only_holds_have_codes_of_their_own() {
    let folder = Folder::new("codes", &[("app/a.yaml", CONFIG_MAP)]);
    let hash = hash_of(&folder, "app");
    fs::create_dir(folder.0.join("live")).unwrap();
    let write = |objects: &[Value]| {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        fs::write(folder.0.join("live/all.json"), list.to_string()).unwrap();
    };
    let kept = live("a", &json!({"mode": 420, "true": "text"}), &hash);
    write(std::slice::from_ref(&kept));
    let outcome = folder.moorline(&["plan", "app", "--against", "live"]);
    assert_eq!((outcome.code, outcome.data.as_str()), (0, "Nothing to do: 1 object is as in Git.\n"));

    let mut claim = live("claim", &json!({}), &hash);
    claim["kind"] = "PersistentVolumeClaim".into();
    claim["metadata"]["annotations"]["moorline.dev/id"] =
        "default/default|/PersistentVolumeClaim|default/claim".into();
    write(&[kept, claim]);
    let outcome = folder.moorline(&["plan", "app", "--against", "live"]);
    assert_eq!(outcome.code, 3, "{outcome:?}");
    assert!(outcome.data.starts_with("Held (1)\n  ! PersistentVolumeClaim default/claim: no longer in Git, and its kind is pruned only by approval\n"), "{}", outcome.data);
    assert!(outcome.data.contains("moorline.dev/approve: \""), "{}", outcome.data);
}

/// Dumps overlap, as those of two questions to one cluster do; two clusters in one folder are a mistake.
#[test]
fn an_object_that_is_dumped_twice_is_one_object() {
    let folder = Folder::new("overlap", &[("app/a.yaml", CONFIG_MAP)]);
    let hash = hash_of(&folder, "app");
    let object = live("a", &json!({"mode": 420, "true": "text"}), &hash);
    fs::create_dir(folder.0.join("live")).unwrap();
    fs::write(folder.0.join("live/one.json"), object.to_string()).unwrap();
    fs::write(folder.0.join("live/two.json"), object.to_string()).unwrap();
    let plan = ["plan", "app", "--against", "live"];
    let outcome = folder.moorline(&plan);
    assert_eq!((outcome.code, outcome.data.as_str()), (0, "Nothing to do: 1 object is as in Git.\n"));
    let mut other = object;
    other["metadata"]["uid"] = "another".into();
    fs::write(folder.0.join("live/two.json"), other.to_string()).unwrap();
    folder.moorline(&plan).refused(
        1,
        "error: live/two.json:1: ConfigMap default/a is written a second time; the first is at live/one.json:1; remove one\n",
    );
    fs::write(folder.0.join("live/two.json"), "{}").unwrap();
    fs::remove_file(folder.0.join("live/one.json")).unwrap();
    let outcome = folder.moorline(&plan);
    assert_eq!(outcome.code, 2);
    assert_eq!(
        outcome.words,
        "note: live/two.json is skipped: no document in it has an apiVersion or a kind\n\
         note: there is no live object; the plan is for an empty cluster\n"
    );
    folder
        .moorline(&["render", "-"])
        .refused(1, "error: standard input is not read; name a file (a file called - is ./-)\n");
}

/// The hash of the one object below `path`, asked of the library.
fn hash_of(folder: &Folder, path: &str) -> String {
    use moorline::desired::{Scopes, desired};
    use moorline::render::{self, Options, Rendered};
    let (tree, inside) = moorline::source::directory::read(&folder.0.join(path), render::is_read).unwrap();
    let options = Options { path: inside, ..Options::default() };
    let Rendered::Complete(complete) = render::render(&tree, &options) else { panic!("the folder is sound") };
    let desired = desired(complete, "default", &Scopes::builtin()).unwrap();
    desired.objects()[0].hash.to_string()
}
