//! A sandbox with Syncs and a repository, for commands that read a cluster.
//!
//! In: Syncs with a status. Out: the outputs of commands, and the requests that they made.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use moorline::sandbox::{Options, Sandbox, kubeconfig};
use moorline::source::DemoRepository;
use moorline_test_support::command::{Folder, Outcome};
use moorline_test_support::places;
use serde_json::{Value, json};

const SYNCS: &str = "/apis/moorline.dev/v1alpha1/namespaces/team/syncs";

/// A value of a Secret, which no output may have.
pub(crate) const PLANTED: &str = "hunter2-planted";

pub(crate) struct Sandboxed {
    pub(crate) sandbox: Sandbox,
    pub(crate) commit: String,
    url: String,
    address: SocketAddr,
    folder: Folder,
    _runtime: tokio::runtime::Runtime,
}

impl Sandboxed {
    /// Starts a sandbox with a namespace, and a repository with a ConfigMap and a Secret.
    pub(crate) fn start(test: &str) -> Self {
        Self::with_value(test, "debug", "Open the shop")
    }

    /// Starts a sandbox in which a value of the ConfigMap and the message of the commit are given.
    pub(crate) fn with_value(test: &str, value: &str, message: &str) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let folder = Folder::new(test, &[]);
        let options = Options { seed: 7, record_requests: true, ..Options::default() };
        let (sandbox, address) = runtime.block_on(async {
            let listener =
                tokio::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
            let (sandbox, address) = (Sandbox::new(&options), listener.local_addr().unwrap());
            tokio::spawn(sandbox.clone().serve(listener));
            (sandbox, address)
        });
        std::fs::write(folder.0.join("kubeconfig"), kubeconfig(address)).unwrap();
        let _inside = runtime.enter();
        sandbox.define(&moorline::api::definition().unwrap()).unwrap();
        let apply = |path: &str, object: Value| drop(sandbox.apply(path, &object, "test").unwrap());
        for name in ["team", "shop"] {
            apply(
                "/api/v1/namespaces",
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
            );
        }
        // A person's object that the Sync would adopt, and one that it would change.
        for (kind, name, data) in
            [("ConfigMap", "settings", json!({"level": "info"})), ("Secret", "login", json!({"key": "b2xk"}))]
        {
            let metadata = json!({"name": name, "namespace": "shop"});
            let path = format!("/api/v1/namespaces/shop/{}s", kind.to_lowercase());
            apply(&path, json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data}));
        }
        let repository = DemoRepository::new(&folder.0.join("repository")).unwrap();
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"level": value},
        });
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"key": PLANTED},
        });
        let new = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "new"}, "stringData": {"key": PLANTED},
        });
        let files = [("app/map.yaml", map), ("app/secret.yaml", secret), ("app/new.yaml", new)];
        let files: Vec<(&str, String)> = files.map(|(path, object)| (path, object.to_string())).to_vec();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let commit = repository.commit(message, &files, &[]).unwrap();
        let url = format!("file://{}", repository.path().display());
        sandbox.take_requests();
        Self { sandbox, commit, url, address, folder, _runtime: runtime }
    }

    /// The URL of its API server.
    pub(crate) fn server(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Creates a Sync with this status.
    pub(crate) fn sync(&self, name: &str, status: Value) {
        let spec = json!({"source": {"git": {"url": self.url}}, "path": "app", "targetNamespace": "shop"});
        let sync = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": name, "namespace": "team"},
            "spec": spec,
        });
        self.sandbox.apply(SYNCS, &sync, "test").unwrap();
        let path = format!("{SYNCS}/{name}/status");
        self.sandbox.merge(&path, &json!({"status": status}), "test").unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(places::moorline());
        command
            .args(arguments)
            .current_dir(&self.folder.0)
            .env("KUBECONFIG", self.folder.0.join("kubeconfig"));
        command
    }

    /// Runs a command.
    pub(crate) fn moorline(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(&self.command(arguments).output().unwrap())
    }

    /// Gives lines to `moorline mcp`, each with the number of lines that answer it; returns the answers.
    pub(crate) fn converse(&self, arguments: &[&str], lines: &[(&[u8], usize)]) -> Vec<String> {
        let mut child = self
            .command(&[&["mcp"], arguments].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut output = BufReader::new(output).lines();
        let mut answers = Vec::new();
        for (line, count) in lines {
            input.write_all(line).and_then(|()| input.write_all(b"\n")).unwrap();
            for _ in 0..*count {
                let answer = output.next().unwrap_or_else(|| panic!("no answer to {line:?}"));
                answers.push(answer.unwrap());
            }
        }
        drop(input);
        let rest: Vec<String> = output.map(Result::unwrap).collect();
        assert_eq!(rest, Vec::<String>::new(), "nothing that was not asked for is said");
        assert!(child.wait().unwrap().success());
        answers
    }
}
