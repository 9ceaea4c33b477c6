//! The real kubectl works on `moorline sandbox` as on any other API server.
//!
//! In: kubectl and the binary. Out: what kubectl prints, line by line, and that Ctrl-C leaves nothing behind.

use moorline_test_support::under_load::under_load;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A sandbox that runs, and kubectl for it.
struct Scene {
    kubectl: PathBuf,
    folder: PathBuf,
    config: String,
    server: Child,
}

impl Scene {
    /// One for each kubectl that there is: the newest, and one of two years ago where `make tools` could fetch it.
    fn all(test: &str) -> Vec<Self> {
        let old = Some(moorline_test_support::programs::tools().join("kubectl-old"))
            .filter(|program| program.is_file());
        let all = [("new", moorline_test_support::programs::find("kubectl")), ("old", old)];
        all.into_iter().filter_map(|(name, kubectl)| Some(Self::of(test, name, kubectl?))).collect()
    }

    fn of(test: &str, name: &str, kubectl: PathBuf) -> Self {
        let folder = format!("{test}-{name}-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let mut server = Command::new(env!("CARGO_BIN_EXE_moorline"))
            .args(["sandbox", "--ready-after", "300ms", "--seed", "1"])
            .env("TMPDIR", &folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let config = line.trim().strip_prefix("export KUBECONFIG=").unwrap().to_owned();
        Self { kubectl, folder, config, server }
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = moorline_test_support::programs::command(&self.kubectl);
        command
            .args(arguments.split(' '))
            .env("KUBECONFIG", &self.config)
            .env("HOME", self.folder.join("home"));
        command
    }

    /// Returns the output of kubectl.
    fn kubectl(&self, arguments: &str) -> String {
        moorline_test_support::programs::run(&mut self.command(arguments))
            .unwrap_or_else(|words| panic!("kubectl {arguments}: {words}"))
    }

    /// Returns kubectl's message when it fails.
    fn fails(&self, arguments: &str) -> String {
        moorline_test_support::programs::run(&mut self.command(arguments)).expect_err(arguments)
    }

    /// Applies text.
    fn apply(&self, text: &str) -> String {
        let file = self.folder.join("applied.yaml");
        fs::write(&file, text).unwrap();
        self.kubectl(&format!("apply --server-side --field-manager=m -f {}", file.display()))
    }

    /// Ends the server as Ctrl-C does.
    fn interrupt(&mut self) {
        let id = self.server.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        assert!(self.server.wait().unwrap().success(), "Ctrl-C is no failure");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The columns of a printed table, without those whose values only the server knows.
fn cells(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
";

#[test]
fn a_workload_is_applied_shown_changed_and_deleted() {
    for scene in Scene::all("kubectl-workload") {
        assert_eq!(scene.apply(DEPLOYMENT), "deployment.apps/web serverside-applied\n");
        assert_eq!(
            scene.kubectl("wait --for=condition=Available deployment/web --timeout=20s"),
            "deployment.apps/web condition met\n"
        );
        let table = scene.kubectl("get deployments");
        let table = cells(&table);
        assert_eq!(table[0], ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]);
        assert_eq!(table[1][..4], ["web", "2/2", "2", "2"]);
        assert_eq!(scene.kubectl("scale deployment web --replicas=3"), "deployment.apps/web scaled\n");
        assert_eq!(scene.kubectl("get deployment web -o jsonpath={.spec.replicas}"), "3");
        assert_eq!(scene.kubectl("label deployment web tier=front"), "deployment.apps/web labeled\n");
        assert_eq!(scene.kubectl("annotate deployment web note=text"), "deployment.apps/web annotated\n");
        assert_eq!(scene.kubectl("get deployment -l tier=front -o name"), "deployment.apps/web\n");
        let mut edit = scene.command("edit deployment web");
        edit.env("EDITOR", "sed -i s/image:.nginx/image:\\ nginx:2/");
        assert_eq!(moorline_test_support::programs::run(&mut edit).unwrap(), "deployment.apps/web edited\n");
        let image = "get deployment web -o jsonpath={.spec.template.spec.containers[0].image}";
        assert_eq!(scene.kubectl(image), "nginx:2");
        let told = scene.kubectl("describe deployment web");
        for line in
            ["Name:                   web", "Replicas:               3 desired", "Image:         nginx:2"]
        {
            assert!(told.contains(line), "{line}: {told}");
        }
        let refused = scene.fails(&format!(
            "apply --server-side --field-manager=other -f {}",
            scene.folder.join("applied.yaml").display()
        ));
        assert!(refused.contains("conflicts with \"kubectl-edit\" using apps/v1"), "{refused}");
        // Newer ones say from where.
        assert!(scene.kubectl("delete deployment web").starts_with("deployment.apps \"web\" deleted"));
        assert_eq!(
            scene.fails("get deployment web"),
            "Error from server (NotFound): deployments.apps \"web\" not found\n"
        );
    }
}

#[test]
fn kinds_are_listed_explained_and_shown_as_tables() {
    for scene in Scene::all("kubectl-kinds") {
        let kinds = scene.kubectl("api-resources --no-headers");
        let deployments = cells(&kinds).into_iter().find(|line| line[0] == "deployments").unwrap();
        assert_eq!(deployments, ["deployments", "deploy", "apps/v1", "true", "Deployment"]);
        let told = scene.kubectl("explain deployment.spec.replicas");
        assert!(told.contains("FIELD: replicas <integer>"), "{told}");
        let applied = scene.apply(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n---\n\
             apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {a: b}, ports: [{port: 80}]}\n---\n\
             apiVersion: v1\nkind: Namespace\nmetadata: {name: own}\n",
        );
        assert_eq!(
            applied,
            "configmap/c serverside-applied\nservice/s serverside-applied\nnamespace/own serverside-applied\n"
        );
        let check = |arguments: &str, head: &[&str], line: &[&str]| {
            let printed = scene.kubectl(arguments);
            let table = cells(&printed);
            assert_eq!(table[0], head, "{arguments}");
            assert!(table.iter().any(|cells| cells.starts_with(line)), "{arguments}: {printed}");
        };
        check("get configmaps", &["NAME", "DATA", "AGE"], &["c", "1"]);
        check("get ns", &["NAME", "STATUS", "AGE"], &["own", "Active"]);
        check(
            "get svc",
            &["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"],
            &["s", "ClusterIP"],
        );
        check("get cm -A", &["NAMESPACE", "NAME", "DATA", "AGE"], &["default", "c", "1"]);
        assert_eq!(scene.kubectl("get configmap c -o jsonpath={.data.a}"), "b");
    }
}

#[test]
fn a_watch_prints_what_happens() {
    for scene in Scene::all("kubectl-watch") {
        scene.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n");
        let mut watch = scene.command("get configmaps -w --no-headers -o name");
        let mut watch = watch.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(lines.next().unwrap(), "configmap/c");
        scene.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\ndata: {a: b}\n");
        assert_eq!(lines.next().unwrap(), "configmap/d");
        watch.kill().unwrap();
        watch.wait().unwrap();
    }
}

#[test]
fn nothing_is_left_after_ctrl_c() {
    for mut scene in Scene::all("kubectl-end") {
        let folder = Path::new(&scene.config).parent().unwrap().to_owned();
        assert!(
            folder.starts_with(&scene.folder) && folder.is_dir(),
            "the kubeconfig is in a folder of its own"
        );
        scene.interrupt();
        assert!(!folder.exists(), "{} is left", folder.display());
        let left: Vec<_> = fs::read_dir(&scene.folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, Vec::<PathBuf>::new());
    }
}

/// Newer ones send some objects in protobuf only.
#[test]
fn objects_are_created_and_rights_are_asked_for() {
    for scene in Scene::all("kubectl-create") {
        assert_eq!(scene.kubectl("create ns one"), "namespace/one created\n");
        assert_eq!(scene.kubectl("create configmap c -n one --from-literal=a=b"), "configmap/c created\n");
        assert_eq!(scene.kubectl("get configmap c -n one -o jsonpath={.data}"), "{\"a\":\"b\"}");
        assert_eq!(scene.kubectl("create secret generic s -n one --from-literal=a=b"), "secret/s created\n");
        assert_eq!(scene.kubectl("get secret s -n one -o jsonpath={.type}{.data.a}"), "OpaqueYg==");
        assert_eq!(scene.kubectl("create serviceaccount a -n one"), "serviceaccount/a created\n");
        assert_eq!(scene.kubectl("auth can-i create pods"), "yes\n");
        assert!(scene.kubectl("auth can-i --list").contains("[*]"));
        let again = scene.fails("create ns one");
        assert!(again.contains("namespaces \"one\" already exists"), "{again}");
    }
}

#[test]
fn whatever_needs_a_container_is_refused_at_once() {
    for scene in Scene::all("kubectl-logs") {
        scene.apply(DEPLOYMENT);
        for arguments in
            ["logs deployment/web", "logs web-1", "exec deployment/web -- ls", "exec web-1 -- ls"]
        {
            let begun = std::time::Instant::now();
            let told = scene.fails(arguments);
            assert!(told.contains("the sandbox runs no containers"), "{arguments}: {told}");
            assert!(
                begun.elapsed() < under_load(std::time::Duration::from_secs(10)),
                "{arguments}: {:?}",
                begun.elapsed()
            );
        }
    }
}

#[test]
fn kinds_are_explained_with_what_is_known_of_them() {
    for scene in Scene::all("kubectl-explain") {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/crd/moorline.dev_syncs.yaml");
        scene.kubectl(&format!("apply --server-side --field-manager=m -f {}", file.display()));
        let told = scene.kubectl("explain sync.spec.interval");
        assert!(told.contains("FIELD: interval <string>") && told.contains("Interval of polls"), "{told}");
        let told = scene.kubectl("explain deployment");
        assert!(
            told.contains("The sandbox has fields and types") && told.contains("<DeploymentSpec>"),
            "{told}"
        );
    }
}

const SYNC: &str = "apiVersion: moorline.dev/v1alpha1
kind: Sync
metadata: {name: shop, annotations: {note: \"yes\", mode: \"0644\", text: \"two\\nlines\\n\"}}
spec: {source: {git: {url: https://git.example.com/shop.git}}, path: ./apps}
";

/// Kubectl and the command line print YAML of the same objects. Texts that YAML 1.1 and 1.2 read
/// differently are quoted by both.
#[test]
fn printed_yaml_of_a_cluster_is_read_back_by_independent_readers() {
    let same = |what: &str, printed: &str, json: &str| {
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        let theirs: serde_json::Value = serde_yaml::from_str(printed).unwrap();
        assert_eq!(theirs, json, "{what}");
        let dialect = moorline::yaml::Dialect::Kubectl;
        let ours = moorline::yaml::read(what, printed.as_bytes(), dialect).unwrap();
        assert_eq!(ours.first().map(|document| &document.value), Some(&json), "{what}");
    };
    for scene in Scene::all("kubectl-yaml") {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/crd/moorline.dev_syncs.yaml");
        scene.kubectl(&format!("apply --server-side --field-manager=m -f {}", file.display()));
        scene.apply(SYNC);
        scene.apply(DEPLOYMENT);
        scene.kubectl("wait --for=condition=Available deployment/web --timeout=20s");
        let what = ["sync shop", "deployment web", "crd syncs.moorline.dev", "namespace default"];
        for what in what {
            let get = |format: &str| scene.kubectl(&format!("get {what} --show-managed-fields -o {format}"));
            same(what, &get("yaml"), &get("json"));
        }
        let status = |format: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_moorline"));
            command.args(["status", "--all-namespaces", "--output", format]).env("KUBECONFIG", &scene.config);
            // The exit code says that the Sync is not ready.
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        assert!(status("json").contains("\"shop\""), "{}", status("json"));
        same("moorline status", &status("yaml"), &status("json"));
    }
}
