//! The command line from outside: standard output, standard error and exit code of the real binary.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use moorline::yaml::{self, Dialect};
use moorline_test_support::command::{CONFIG_MAP, Folder};

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
fn bad_input_is_reported_with_its_place_and_a_remedy() {
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
        &format!("note: no live objects found; the plan is for an empty cluster\n{scope}"),
    );
}

#[test]
fn a_folder_takes_the_place_of_a_mount() {
    let sync: &[u8] = br#"{"apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": "a", "namespace": "b"},
        "spec": {"path": "./own/app", "source": {"git": {"url": "https://example.com/a"}, "mounts": [
            {"path": "vendor/base", "git": {"url": "https://example.com/b"}}]}}}"#;
    let files: [(&str, &[u8]); 5] = [
        ("own/.git/HEAD", b""),
        ("own/app/kustomization.yaml", b"resources: [../vendor/base]\n"),
        ("base/a.yaml", CONFIG_MAP),
        ("base/kustomization.yaml", b"resources: [a.yaml]\n"),
        ("syncs/sync.json", sync),
    ];
    let folder = Folder::new("mounts", &files);
    let outcome = folder.moorline(&["render", "own/app", "--mount", "./vendor/base/=base"]);
    assert_eq!((outcome.code, outcome.words.as_str()), (0, ""));
    assert!(outcome.data.contains("mode: 420"), "{}", outcome.data);
    let missing = folder.moorline(&["render", "own/app"]);
    assert!(missing.code == 1 && missing.words.contains("vendor/base"), "{}", missing.words);
    let hides = folder.moorline(&["render", "own/app", "--mount", "app=base"]);
    assert!(hides.code == 1 && hides.words.contains("app exists already"), "{}", hides.words);
    let note = folder.moorline(&["render", "syncs"]).words;
    assert!(note.contains("spec.source.mounts") && note.contains("--mount PATH=DIR"), "{note}");
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

/// The exit code tells about manifests, no matter who reads the words about them.
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
    check(&[], "Keeps a Kubernetes cluster in sync with Git\n");
    check(&["render", ".", "--include", "a/***"], "error: invalid value 'a/***' for '--include <GLOB>': ");
}

/// A SyncSet is written by the Sync, and writes Syncs itself, as another account.
#[test]
fn rbac_prints_what_the_sets_of_a_folder_need() {
    let login = json!({"git": {"url": "https://host/a.git", "secretRef": {"name": "login"}, "folders": {"include": ["*"]}}});
    let set = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet", "metadata": {"name": "apps"},
        "spec": {
            "serviceAccountName": "setter", "generators": [login], "name": "params.folder.name",
            "set": [{"field": "/spec/suspend", "value": "false"}],
            "template": {"spec": {"source": {"git": {"url": "https://host/a.git"}}}},
        },
    });
    let folder = Folder::new("rbac-sets", &[("sets/set.json", set.to_string().as_bytes())]);
    let outcome = folder.moorline(&["rbac", "sets", "--service-account", "deployer", "-n", "shop"]);
    assert_eq!((outcome.code, outcome.words.as_str()), (0, ""));
    let printed = yaml::read("rbac", outcome.data.as_bytes(), Dialect::Kubectl).unwrap();
    let rules: Vec<&Value> = printed.iter().rev().take(4).rev().map(|it| &it.value["rules"]).collect();
    let setter = json!([
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["login"], "verbs": ["get"]},
        {"apiGroups": ["moorline.dev"], "resources": ["syncs"], "verbs": ["create", "delete", "get", "patch", "suspend"]},
    ]);
    let acts = json!([
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["login"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["setter"], "verbs": ["impersonate"]},
    ]);
    assert_eq!((rules[0], rules[2]), (&setter, &acts));
}

/// A user who applies a ClusterRole must hold what it grants, so that the rights for it are worth as much.
#[test]
fn rbac_prints_what_a_folder_needs_and_marks_what_amounts_to_all() {
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 2}});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "all"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
    });
    let (web, role) = (web.to_string(), role.to_string());
    let folder = Folder::new(
        "rbac",
        &[
            ("app/web.json", web.as_bytes()),
            ("more/role.json", role.as_bytes()),
            ("more/web.json", web.as_bytes()),
        ],
    );
    let rbac = |path: &str| {
        let outcome = folder.moorline(&["rbac", path, "--service-account", "deployer", "-n", "shop"]);
        assert_eq!((outcome.code, outcome.words.as_str()), (0, ""));
        outcome.data
    };
    let documents = |text: &str| -> Vec<Value> {
        let documents = yaml::read("rbac", text.as_bytes(), Dialect::Kubectl).unwrap();
        documents.into_iter().map(|document| document.value).collect()
    };
    let all = ["create", "delete", "get", "list", "patch", "watch"];
    let in_namespace = json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": all},
        {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["list"]},
        {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["moorline.dev"], "resources": ["syncs"], "verbs": ["own"]},
    ]);
    let namespace = json!({
        "apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["shop"], "verbs": ["get", "list", "watch"],
    });

    let plain = rbac("app");
    let printed = documents(&plain);
    let kinds: Vec<&Value> = printed.iter().map(|document| &document["kind"]).collect();
    assert_eq!(kinds, ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Role", "RoleBinding"]);
    assert_eq!((&printed[0]["rules"], &printed[2]["rules"]), (&json!([namespace]), &in_namespace));
    let deployer = json!([{"kind": "ServiceAccount", "name": "deployer", "namespace": "shop"}]);
    assert_eq!((&printed[1]["subjects"], &printed[3]["subjects"]), (&deployer, &deployer));
    // The daemon acts as the account, and as no other.
    let acts = json!([{"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["deployer"],
        "verbs": ["impersonate"]}]);
    let daemon = json!([{"kind": "ServiceAccount", "name": "moorline", "namespace": "moorline"}]);
    assert_eq!((&printed[4]["rules"], &printed[5]["subjects"]), (&acts, &daemon));
    assert_eq!(printed[4]["metadata"]["namespace"], "shop");
    assert!(!plain.contains('#'), "{plain}");

    // The console reads more than that.
    let outcome =
        folder.moorline(&["rbac", "app", "--console", "--service-account", "deployer", "-n", "shop"]);
    let read = json!([
        {"apiGroups": [""], "resources": ["events", "persistentvolumeclaims", "pods"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
    ]);
    let rules = documents(&outcome.data)[2]["rules"].clone();
    let added =
        rules.as_array().unwrap().iter().filter(|rule| !in_namespace.as_array().unwrap().contains(rule));
    assert_eq!(added.cloned().collect::<Value>(), read, "{rules}");
    let marked = rbac("more");
    let printed = documents(&marked);
    let everything = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    let roles =
        json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": all});
    assert_eq!(printed[0]["rules"], json!([namespace, everything, roles]));
    assert_eq!(printed[2]["rules"], in_namespace);
    // The mark stands over the role that it is about, and over no other.
    let mark = "---\n# amounts to cluster-admin: * *: it allows everything\n\
        apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n";
    assert!(marked.starts_with(mark) && marked.matches('#').count() == 1, "{marked}");
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
    for verb in ["render", "check", "plan", "install", "doctor", "version", "completions"] {
        says(&[verb, "--help"], "Examples:\n  ");
    }
    says(&["completions", "bash"], "complete -F _moorline");
    says(&["completions", "fish"], "complete -c moorline");
}

#[test]
fn check_counts_what_is_sound_and_goes_on_after_what_is_not() {
    let sound = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let folder = Folder::new("check", &[("a.yaml", sound), ("b.yaml", b"apiVersion: v1\n")]);
    let outcome = folder.moorline(&["check", "nowhere", "b.yaml", "a.yaml"]);
    assert_eq!(outcome.code, 1);
    assert_eq!(outcome.data, "a.yaml: 1 object is valid\n");
    assert_eq!(
        outcome.words,
        "error: nowhere: No such file or directory (os error 2); check the path\n\
         error: b.yaml:1:1: the document has an apiVersion but no kind; add kind, or move the document to a file without manifests\n"
    );
}
