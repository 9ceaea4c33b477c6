//! `moorline check` from outside: what it finds without a server, what it says that it did not check, and what a server adds.
//!
//! In: files of literal manifests; a sandbox as the server. Out: standard output, standard error and exit codes.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use moorline_test_support::command::Folder;
use moorline_test_support::manifests::{DEFINITION, MAP};

const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web:1
";

const WIDGET: &str =
    "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a, namespace: shop}\nspec: {size: big}\n";

fn check(test: &str, files: &[(&str, &str)], arguments: &[&str], expect: (i32, &str, &str)) {
    let files = files.iter().map(|(path, text)| (*path, text.replace("GROUP", "example.com")));
    let files: Vec<(&str, String)> = files.collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    let outcome = Folder::new(test, &files).moorline(&[&["check"], arguments].concat());
    assert_eq!((outcome.code, outcome.data.as_str(), outcome.words.as_str()), expect);
}

#[test]
fn a_value_of_another_type_is_never_sound() {
    check(
        "type",
        &[("app/web.yaml", &WEB.replace("replicas: 3", "replicas: three"))],
        &["app"],
        (
            1,
            "",
            "error: app/web.yaml:5:3: Deployment.apps shop/web: spec.replicas: found a string \"three\"; expected a 32-bit integer\n",
        ),
    );
    check("sound", &[("app/web.yaml", WEB)], &["app"], (0, "app: 1 object is valid\n", ""));
}

#[test]
fn each_error_is_reported_with_its_place() {
    let text = WEB
        .replace("replicas: 3", "replica: 3")
        .replace("image: web:1", "imagee: nginx")
        .replace("labels: {app: web}", "labels: {app: api}");
    check(
        "several",
        &[("app/web.yaml", &text)],
        &["app"],
        (
            1,
            "",
            "error: app/web.yaml:5:3: Deployment.apps shop/web: spec.replica: unknown field; did you mean replicas?\n\
             error: app/web.yaml:12:9: Deployment.apps shop/web: spec.template.spec.containers[0].imagee: unknown field; did you mean image?\n\
             error: app/web.yaml:8:16: Deployment.apps shop/web: spec.template.metadata.labels: found a mapping {\"app\":\"api\"}; expected labels that match the selector: {\"matchLabels\":{\"app\":\"web\"}}\n\
             error: app/web.yaml:11:9: Deployment.apps shop/web: spec.template.spec.containers[0].image: missing: a value is required\n\
             error: 4 problems\n",
        ),
    );
}

#[test]
fn a_kind_without_a_schema_is_counted_and_not_called_sound() {
    let two = format!("{WIDGET}---\n{}", WIDGET.replace("name: a", "name: b"));
    check(
        "unknown",
        &[("app/a.yaml", MAP), ("app/widgets.yaml", &two)],
        &["app"],
        (
            0,
            "app: 1 object is valid, 2 are not checked\n",
            "note: not checked: no schema for Widget of example.com/v1 (2 objects)\n",
        ),
    );
}

#[test]
fn definitions_in_the_folder_beside_it_or_named_by_a_flag_are_used() {
    let refused = "error: app/widget.yaml:4:8: Widget.example.com shop/a: spec.size: found a string \"big\"; expected the type integer\n";
    let files = [("app/widget.yaml", WIDGET), ("crds/widget.yaml", DEFINITION)];
    check("crds", &files, &["app", "--crds", "crds"], (1, "", refused));
    check("beside", &files, &["app", "crds"], (1, "crds: 1 object is valid\n", refused));
    let inside = [("app/widget.yaml", WIDGET), ("app/definition.yaml", DEFINITION)];
    check("inside", &inside, &["app"], (1, "", refused));
    let sound = WIDGET.replace("big", "3");
    let files = [("app/widget.yaml", sound.as_str()), ("crds/widget.yaml", DEFINITION)];
    check("fits", &files, &["app", "--crds", "crds"], (0, "app: 1 object is valid\n", ""));
}

/// A sandbox that ends with the test.
struct Sandbox {
    server: Child,
    kubeconfig: String,
}

impl Sandbox {
    fn start(folder: &Folder) -> Self {
        let mut server = Command::new(env!("CARGO_BIN_EXE_moorline"))
            .args(["sandbox", "--seed", "1"])
            .env("TMPDIR", &folder.0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let kubeconfig = line.trim().strip_prefix("export KUBECONFIG=").unwrap().to_owned();
        Self { server, kubeconfig }
    }

    fn moorline(&self, folder: &Folder, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_moorline"))
            .args(arguments)
            .current_dir(&folder.0)
            .env("KUBECONFIG", &self.kubeconfig)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn a_server_is_asked_about_the_whole_set_and_nothing_is_written() {
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
    let widget = WIDGET.replace("big", "3").replace("shop", "default");
    let definition = DEFINITION.replace("GROUP", "example.com");
    let folder = Folder::new(
        "server",
        &[
            ("set/a.yaml", MAP.as_bytes()),
            ("set/namespace.yaml", namespace.as_bytes()),
            ("set/web.yaml", WEB.as_bytes()),
            ("set/definition.yaml", definition.as_bytes()),
            ("set/widget.yaml", widget.as_bytes()),
            ("lost/web.yaml", WEB.as_bytes()),
            ("alone/widget.yaml", widget.as_bytes()),
        ],
    );
    let sandbox = Sandbox::start(&folder);
    let expect = (
        Some(0),
        "set: 5 objects are valid\nset: the server accepts 3 objects, 2 are not checked\n".to_owned(),
        "note: not checked by the server: Deployment.apps shop/web: these files create its namespace\n\
         note: not checked by the server: Widget.example.com default/a: these files create its kind\n"
            .to_owned(),
    );
    // The second time is as the first: nothing was written.
    for _ in 0..2 {
        assert_eq!(sandbox.moorline(&folder, &["check", "set", "--server", "-n", "default"]), expect);
    }
    let (code, data, words) = sandbox.moorline(&folder, &["check", "lost", "--server"]);
    assert_eq!((code, data.as_str()), (Some(1), "lost: 1 object is valid\n"));
    assert_eq!(words, "error: lost/web.yaml:1: Deployment.apps shop/web: namespaces \"shop\" not found\n");
    let (code, _, words) = sandbox.moorline(&folder, &["check", "alone", "--server"]);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("error: alone/widget.yaml:1: Widget.example.com default/a: "), "{words}");
}
