//! `moorline check --server` on a real API server: a dry run of every apply of a set, with the rights of the caller.
//!
//! In: files of literal manifests. Out: standard output, standard error and exit codes. Nothing is written.

use std::process::Command;

use moorline_test_support::command::Folder;
use moorline_test_support::control_plane::{PlaneGuard, shared};
use moorline_test_support::credentials::{ADMIN, TENANT};
use moorline_test_support::fault_proxy::FaultProxy;
use moorline_test_support::manifests::{DEFINITION, MAP};
use moorline_test_support::rest::{grant, rule, send_request, user};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A person with a folder of manifests and a kubeconfig.
struct Person {
    plane: PlaneGuard,
    proxy: FaultProxy,
    namespace: String,
    folder: Folder,
    admin: kube::Client,
}

/// The exit code, standard output and standard error.
type Said = (Option<i32>, String, String);

impl Person {
    /// A person in a namespace of this purpose. In the files NS is that namespace and GROUP a group of its own.
    async fn new(purpose: &str, files: &[(&str, &str)]) -> Option<Self> {
        let plane = shared()?;
        let namespace = plane.namespace(purpose).await;
        let group = format!("{namespace}.example.com");
        let filled: Vec<(&str, String)> = files
            .iter()
            .map(|(path, text)| (*path, text.replace("NS", &namespace).replace("GROUP", &group)))
            .collect();
        let files: Vec<(&str, &[u8])> = filled.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
        let (proxy, admin) = (FaultProxy::start(&plane), plane.client(ADMIN).await);
        Some(Self { proxy, namespace, folder: Folder::new(purpose, &files), admin, plane })
    }

    /// Runs `moorline check` as this user, in the namespace.
    fn check(&self, by: &str, arguments: &[&str]) -> Said {
        let place = self.folder.0.join(format!("kubeconfig-of-{by}"));
        std::fs::write(&place, self.proxy.kubeconfig(&self.plane, by)).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_moorline"))
            .arg("check")
            .args(arguments)
            .args(["--server", "-n", &self.namespace])
            .current_dir(&self.folder.0)
            .env("KUBECONFIG", place)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    fn said(&self, code: i32, data: &str, words: &str) -> Said {
        let fill = |text: &str| text.replace("NS", &self.namespace).replace("GROUP", &self.group());
        (Some(code), fill(data), fill(words))
    }

    fn group(&self) -> String {
        format!("{}.example.com", self.namespace)
    }

    /// No request was more than a dry run.
    fn assert_writes_nothing(&self) {
        let asked = self.proxy.take_requests();
        let is_dry = |query: &str| query.contains("dryRun=All");
        let shown: Vec<String> = asked
            .iter()
            .filter(|one| one.method != "GET" && !is_dry(&one.query))
            .map(|one| format!("{} {}?{}", one.method, one.path, one.query))
            .collect();
        assert_eq!(shown, Vec::<String>::new());
        assert!(asked.iter().any(|one| is_dry(&one.query)), "the server was asked");
    }
}

const MADE: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-made}\n";

const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS-made}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: web:1
";

const WIDGET: &str = "apiVersion: GROUP/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: 3}\n";

#[tokio::test]
async fn a_whole_set_is_asked_about_and_nothing_is_written() {
    let files = [
        ("set/a.yaml", MAP),
        ("set/made.yaml", MADE),
        ("set/web.yaml", WEB),
        ("set/definition.yaml", DEFINITION),
        ("set/widget.yaml", WIDGET),
        ("lost/web.yaml", WEB),
        ("alone/widget.yaml", WIDGET),
    ];
    let Some(person) = Person::new("check-set", &files).await else { return };
    let expect = person.said(
        0,
        "set: 5 objects are valid\nset: the server accepts 3 objects, 2 are not checked\n",
        "note: not checked by the server: Deployment.apps NS-made/web: these files create its namespace\n\
         note: not checked by the server: Widget.GROUP NS/a: these files create its kind\n",
    );
    // The second time is as the first: nothing was written.
    for _ in 0..2 {
        assert_eq!(person.check(ADMIN, &["set"]), expect);
    }
    person.assert_writes_nothing();
    for path in [
        format!("/api/v1/namespaces/{}/configmaps/a", person.namespace),
        format!("/api/v1/namespaces/{}-made", person.namespace),
        format!("{DEFINITIONS}/widgets.{}", person.group()),
    ] {
        assert!(send_request(&person.admin, "GET", &path, Value::Null).await.is_err(), "{path} is there");
    }

    // A namespace or a kind that nobody creates is wrong.
    let expect = person.said(
        1,
        "lost: 1 object is valid\n",
        "error: lost/web.yaml:1: Deployment.apps NS-made/web: namespaces \"NS-made\" not found\n",
    );
    assert_eq!(person.check(ADMIN, &["lost"]), expect);
    let (code, data, words) = person.check(ADMIN, &["alone"]);
    assert_eq!((code, data.as_str()), (Some(1), "alone: 0 objects are valid, 1 is not checked\n"), "{words}");
    let expect = person
        .said(
            0,
            "",
            "error: alone/widget.yaml:1: Widget.GROUP a: the API server does not serve the kind Widget.GROUP",
        )
        .2;
    assert!(words.contains(&expect), "{words}");
}

/// A set is refused by the server for a reason that no schema has; the others of the set are reported all the same.
#[tokio::test]
async fn the_state_of_the_cluster_counts() {
    let web = WEB.replace("namespace: NS-made", "namespace: NS");
    let changed = web.replace("app: web", "app: other");
    let definition = DEFINITION.replace("size: {type: integer}", "size: {type: string}");
    let widget = WIDGET.replace("size: 3", "size: large");
    let files = [
        ("set/a.yaml", MAP),
        ("set/web.yaml", changed.as_str()),
        ("kinds/definition.yaml", definition.as_str()),
        ("kinds/widget.yaml", widget.as_str()),
    ];
    let Some(person) = Person::new("check-state", &files).await else { return };
    let apply = async |text: &str, path: String| {
        let text = text.replace("NS", &person.namespace).replace("GROUP", &person.group());
        let request = http::Request::patch(format!("{path}?fieldManager=test"))
            .header("Content-Type", "application/apply-patch+yaml");
        person.admin.request::<Value>(request.body(text.into_bytes()).unwrap()).await.unwrap()
    };
    apply(&web, format!("/apis/apps/v1/namespaces/{}/deployments/web", person.namespace)).await;
    let (code, data, words) = person.check(ADMIN, &["set"]);
    assert_eq!((code, data.as_str()), (Some(1), "set: 2 objects are valid\n"), "{words}");
    let expect = person.said(0, "", "error: set/web.yaml:1: Deployment.apps NS/web: ").2;
    assert!(words.starts_with(&expect) && words.contains("field is immutable"), "{words}");
    assert_eq!(words.lines().count(), 1, "{words}");

    // The definition that is served is another one than that of the set.
    apply(DEFINITION, format!("{DEFINITIONS}/widgets.{}", person.group())).await;
    moorline_test_support::daemon::until("the kind is served", async || {
        let uri = format!("/apis/{}/v1/widgets", person.group());
        send_request(&person.admin, "GET", &uri, Value::Null).await.ok()
    })
    .await;
    let (code, data, words) = person.check(ADMIN, &["kinds"]);
    let expect = "kinds: 2 objects are valid\nkinds: the server accepts 1 object, 1 is not checked\n";
    assert_eq!((code, data.as_str()), (Some(0), expect), "{words}");
    let expect = person
        .said(0, "", "Widget.GROUP NS/a: these files change its CRD; with the one that is installed: ")
        .2;
    assert!(words.contains(&expect), "{words}");
    person.assert_writes_nothing();
    let gone = send_request(
        &person.admin,
        "DELETE",
        &format!("{DEFINITIONS}/widgets.{}", person.group()),
        json!({}),
    )
    .await;
    gone.unwrap();
}

/// A person is asked no more than what that person may do.
#[tokio::test]
async fn the_rights_of_the_caller_count() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\n";
    let inside = MAP.replace("{name: a}", "{name: a, namespace: NS-made}");
    let files = [
        ("mine/a.yaml", MAP),
        ("both/a.yaml", MAP),
        ("both/b.yaml", secret),
        ("made/made.yaml", MADE),
        ("made/a.yaml", MAP),
        ("made/inside.yaml", inside.as_str()),
    ];
    let Some(person) = Person::new("check-rights", &files).await else { return };
    let rules = json!([rule("", &["configmaps"], &["get", "create", "patch"])]);
    grant(&person.admin, &person.namespace, &user(TENANT), &rules).await;
    let expect = person.said(0, "mine: 1 object is valid\nmine: the server accepts 1 object\n", "");
    assert_eq!(person.check(TENANT, &["mine"]), expect);
    let (code, data, words) = person.check(TENANT, &["both"]);
    assert_eq!((code, data.as_str()), (Some(1), "both: 2 objects are valid\n"), "{words}");
    let expect = person.said(0, "", "error: both/b.yaml:1: Secret NS/b: ").2;
    assert!(words.starts_with(&expect) && words.contains("403 Forbidden"), "{words}");
    assert_eq!(words.lines().count(), 1, "{words}");
    // The existence of a namespace that the caller may not read is not known. The rest of the set is asked about.
    let (code, data, words) = person.check(TENANT, &["made"]);
    assert_eq!((code, data.as_str()), (Some(1), "made: 3 objects are valid\n"), "{words}");
    let expect = person.said(0, "", "error: made/made.yaml:1: Namespace NS-made: ").2;
    assert!(words.contains(&expect) && words.contains("forbidden"), "{words}");
    person.assert_writes_nothing();
}

#[tokio::test]
async fn without_a_server_nothing_is_said_to_be_accepted() {
    let Some(person) = Person::new("check-away", &[("set/a.yaml", MAP)]).await else { return };
    let place = person.folder.0.join("kubeconfig");
    let away = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:9"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}], "users": [{"name": "a", "user": {}}],
    });
    std::fs::write(&place, away.to_string()).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_moorline"));
        command.arg("check").args(arguments).current_dir(&person.folder.0).env("KUBECONFIG", &place);
        let output = command.output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (code, data, words) = run(&["set", "--server"]);
    assert_eq!((code, data.as_str()), (Some(1), "set: 1 object is valid\n"), "{words}");
    assert!(words.starts_with("error: "), "{words}");
    let (code, _, words) = run(&["set", "-n", "shop"]);
    assert_eq!(code, Some(64), "a namespace is for a server: {words}");
}
