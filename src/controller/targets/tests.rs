//! Tests with two clusters in this process: a home cluster and another one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use moorline_test_support::authority::Authority;
use moorline_test_support::under_load::under_load;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

use super::RemoteConnector;
use crate::api;
use crate::cluster::lease::WritePermit;
use crate::cluster::remote::RemoteAccess;
use crate::cluster::{Cluster, Connection};
use crate::controller::key_manager::use_temporary_keys;
use crate::controller::{Board, Context, ContextOptions, manager};
use crate::helm::Helm;
use crate::metrics::Metrics;
use crate::sandbox::{ClientLink, Options, Sandbox};
use crate::serve::DaemonHealth;
use crate::settings::Settings;
use crate::source::{AllowList, DemoRepository, HostPolicy, OutboundClient, Repositories};

pub(in crate::controller) const SYNCS: &str = "/apis/moorline.dev/v1alpha1/namespaces/moorline/syncs";
pub(super) const SECRETS: &str = "/api/v1/namespaces/moorline/secrets";
pub(super) const MAPS: &str = "/api/v1/namespaces/shop/configmaps";

/// A hub with one other cluster.
pub(in crate::controller) struct Hub {
    pub(in crate::controller) home: Sandbox,
    pub(super) east: Sandbox,
    /// A third cluster, to which the token `other` leads.
    pub(super) west: Sandbox,
    pub(in crate::controller) books: DemoRepository,
    pub(in crate::controller) context: Arc<Context>,
    /// Tokens of the connections to the other cluster, each with its line.
    lines: Arc<Mutex<Vec<(String, ClientLink)>>>,
    /// New requests with the token `switched` lead to the third cluster.
    pub(super) switched: Arc<AtomicBool>,
    _end: watch::Sender<bool>,
    _folder: tempfile::TempDir,
}

pub(in crate::controller) fn map(name: &str, place: &str) -> String {
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"},
        "data": {"place": place},
    });
    body.to_string()
}

pub(super) fn kubeconfig(token: &str, more: &Value) -> String {
    let mut user = json!({"token": token});
    user.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let config = json!({
        "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://east.example.com"}}],
        "users": [{"name": "u", "user": user}],
    });
    config.to_string()
}

impl Hub {
    pub(in crate::controller) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [home, east, west] = [1, 2, 3]
            .map(|seed| Sandbox::new(&Options { seed, record_requests: true, ..Options::default() }));
        for (sandbox, name) in [(&home, "moorline"), (&home, "shop"), (&east, "shop"), (&west, "shop")] {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            sandbox.apply("/api/v1/namespaces", &body, "test").unwrap();
        }
        let mut definition = api::definition().unwrap();
        // The daemon writes Syncs of a SyncSet as well, and the repository is on this disk.
        let url = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/source/properties/git/properties/url";
        let url = definition.pointer_mut(url).and_then(Value::as_object_mut).unwrap();
        url.remove("x-kubernetes-validations").unwrap();
        home.define(&definition).unwrap();
        let books = DemoRepository::new(&folder.path().join("books")).unwrap();
        let files = ["home", "east"].map(|place| {
            [("settings", place), ("extra", place)]
                .map(|(name, place)| (format!("{place}/{name}.yaml"), map(name, place)))
        });
        let files = files.as_flattened();
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        books.commit("first", &files, &[]).unwrap();
        let settings = Settings {
            data_dir: folder.path().join("data"),
            request_timeout: Duration::from_secs(1),
            retry_cap: Duration::from_secs(1),
            ..Settings::default()
        };
        let metrics = Metrics::new().unwrap();
        let (end, ending) = watch::channel(false);
        let connection = Connection::from_client(home.client(), "moorline");
        let cluster = Cluster::new(connection, metrics.clone(), WritePermit::unlimited(), &settings);
        use_temporary_keys(&cluster, None);
        // Registries and hosts of the tests are on this machine.
        let hosts = HostPolicy::new("allowedHosts", ["*", "127.0.0.0/8", "::1"]).unwrap();
        let repositories = Repositories::new(&settings.data_dir, None, hosts).unwrap();
        let parts = ContextOptions {
            sources: (repositories, AllowList::new("remoteBases", []).unwrap()),
            helm: Helm::with_disk_cache("helm", "moorline", settings.data_dir.join("rendered")),
            metrics,
            health: DaemonHealth::new(),
            settings,
            namespace: "moorline".into(),
            held_by: None,
            notebook: None,
            disk: Some("/".into()),
            ending,
        };
        let context = Arc::new(Context::new(cluster, Board::new(true), parts));
        let lines = Arc::<Mutex<Vec<(String, ClientLink)>>>::default();
        let (known, server, other) = (lines.clone(), east.clone(), west.clone());
        let switched = Arc::<AtomicBool>::default();
        let is_switched = switched.clone();
        let connector: RemoteConnector = Box::new(move |access| {
            assert_eq!(access.host_and_port(), ("east.example.com", 443));
            if access.token.as_deref() == Some("switched") {
                let client = switching((server.client(), other.client()), is_switched.clone());
                return Ok(Connection::from_client(client, "default"));
            }
            let is_other = access.token.as_deref() == Some("other");
            let (client, line) = if is_other { &other } else { &server }.named_client("hub");
            known.lock().unwrap().push((access.token.clone().unwrap(), line));
            Ok(Connection::from_client(client, "default"))
        });
        context.targets.connect_by(connector);
        let (_, calls) = mpsc::channel(1);
        tokio::spawn(manager::run(context.clone(), calls));
        Self { home, east, west, books, context, lines, switched, _end: end, _folder: folder }
    }

    pub(in crate::controller) fn sync(&self, name: &str, more: &Value) {
        let mut spec = json!({
            "source": {"git": {"url": format!("file://{}", self.books.path().display())}}, "path": format!("./{name}"),
        });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let metadata = json!({"name": name, "namespace": "moorline"});
        let body = json!({"apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": metadata, "spec": spec});
        self.home.apply(SYNCS, &body, "test").unwrap();
    }

    pub(super) fn secret(&self, kubeconfig: &str) {
        let body = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "east", "namespace": "moorline"},
            "stringData": {"value": kubeconfig},
        });
        self.home.apply(SECRETS, &body, "test").unwrap();
    }

    pub(in crate::controller) fn ready(&self, name: &str) -> (String, String) {
        let sync = self.home.get(&format!("{SYNCS}/{name}")).unwrap_or_default();
        let conditions = sync["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.into_iter().find(|it| it["type"] == "Ready").unwrap_or_default();
        let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
        (text("reason"), text("message"))
    }

    /// The messages of all conditions.
    pub(in crate::controller) fn message(&self, name: &str) -> String {
        let sync = self.home.get(&format!("{SYNCS}/{name}")).unwrap_or_default();
        sync["status"]["conditions"].to_string()
    }

    /// The value in a ConfigMap; none if it does not exist.
    pub(in crate::controller) fn place(sandbox: &Sandbox, name: &str) -> Option<String> {
        Some(sandbox.get(&format!("{MAPS}/{name}"))?["data"]["place"].as_str()?.to_owned())
    }

    pub(in crate::controller) fn edit(sandbox: &Sandbox, name: &str) {
        let patch = json!({"data": {"place": "by hand"}});
        sandbox.merge(&format!("{MAPS}/{name}"), &patch, "kubectl-edit").unwrap();
    }

    /// Asks for a poll of the repository.
    pub(in crate::controller) fn look(&self, name: &str) {
        let patch = json!({"metadata": {"annotations": {"moorline.dev/requested-at": "now"}}});
        self.home.merge(&format!("{SYNCS}/{name}"), &patch, "test").unwrap();
    }

    fn hold(&self, held: bool) {
        self.lines.lock().unwrap().iter().for_each(|(_, line)| line.set_held(held));
    }

    pub(in crate::controller) async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(
                begun.elapsed() < under_load(Duration::from_secs(90)),
                "never: {what}; {:?}",
                self.ready("east")
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Returns a client of the first cluster, or of the second one once it is switched.
fn switching((first, second): (kube::Client, kube::Client), is_switched: Arc<AtomicBool>) -> kube::Client {
    let service = tower::service_fn(move |request| {
        let client = if is_switched.load(Ordering::SeqCst) { &second } else { &first }.clone();
        async move { client.send(request).await }
    });
    kube::Client::new(service, "default")
}

fn both(hub: &Hub, name: &str) -> [Option<String>; 2] {
    [Hub::place(&hub.home, name), Hub::place(&hub.east, name)]
}

pub(super) fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_of_one_id_in_two_clusters_are_two_objects() {
    let hub = Hub::new();
    let none = json!({});
    hub.sync("home", &none);
    hub.sync("east", &json!({"cluster": {"secretRef": {"name": "east"}}, "deletionPolicy": "Delete"}));
    hub.until("the Secret is missing", |hub| hub.ready("east").0 == "SecretMissing").await;
    let is_there =
        |hub: &Hub, at: usize| both(hub, "extra")[at].is_some() && both(hub, "settings")[at].is_some();
    hub.until("home is applied", |hub| is_there(hub, 0)).await;
    assert_eq!(both(&hub, "settings"), [text("home"), None], "no other identity is used");
    hub.secret(&kubeconfig("one", &json!({"exec": {"command": "sh"}})));
    hub.until("exec is refused", |hub| hub.ready("east").1.contains("exec")).await;
    assert_eq!(hub.ready("east").0, "KubeconfigInvalid");
    assert!(hub.lines.lock().unwrap().is_empty());

    hub.secret(&kubeconfig("one", &none));
    hub.until("east is applied", |hub| is_there(hub, 1)).await;
    assert_eq!(both(&hub, "settings"), [text("home"), text("east")]);
    let marks = |sandbox: &Sandbox| {
        let found = sandbox.get(&format!("{MAPS}/settings")).unwrap();
        (
            found["metadata"]["labels"]["moorline.dev/sync"].clone(),
            found["metadata"]["managedFields"].to_string(),
        )
    };
    let ((at_home, _), (away, managers)) = (marks(&hub.home), marks(&hub.east));
    assert_eq!(at_home, "moorline.home");
    assert!(away.as_str().unwrap().starts_with("r_"), "{away}");
    assert!(!managers.contains("moorline/moorline/east"), "{managers}");

    Hub::edit(&hub.east, "settings");
    hub.until("drift is repaired", |hub| both(hub, "settings")[1] == text("east")).await;
    assert_eq!(both(&hub, "settings")[0], text("home"));

    hub.secret(&kubeconfig("two", &none));
    let has_two = |hub: &Hub| hub.lines.lock().unwrap().last().is_some_and(|(token, _)| token == "two");
    hub.until("the new token is used", has_two).await;
    // The old token ends.
    hub.lines.lock().unwrap()[0].1.set_held(true);
    Hub::edit(&hub.east, "settings");
    hub.until("drift is repaired with the new token", |hub| both(hub, "settings")[1] == text("east")).await;

    hub.books.commit("less", &[], &["east/extra.yaml"]).unwrap();
    hub.look("east");
    hub.until("extra is pruned", |hub| both(hub, "extra")[1].is_none()).await;
    assert_eq!(both(&hub, "extra"), [text("home"), None]);

    // The cluster does not answer: others do not wait, and its Sync waits for it.
    hub.hold(true);
    Hub::edit(&hub.east, "settings");
    let begun = Instant::now();
    Hub::edit(&hub.home, "settings");
    hub.until("home is repaired", |hub| both(hub, "settings")[0] == text("home")).await;
    assert!(begun.elapsed() < under_load(Duration::from_secs(2)), "{:?}", begun.elapsed());
    hub.home.delete(&format!("{SYNCS}/east")).unwrap();
    hub.until("the deletion waits", |hub| hub.ready("east").1.contains("--abandon-cluster")).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert!(hub.home.get(&format!("{SYNCS}/east")).is_some(), "{:?}", hub.ready("east"));
    assert_eq!(both(&hub, "settings"), [text("home"), text("by hand")]);
    hub.hold(false);
    hub.until("the objects there are deleted", |hub| both(hub, "settings")[1].is_none()).await;
    hub.until("the Sync is gone", |hub| hub.home.get(&format!("{SYNCS}/east")).is_none()).await;
    assert_eq!([both(&hub, "settings"), both(&hub, "extra")], [[text("home"), None], [text("home"), None]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_in_another_cluster_than_before_or_after_the_end_of_the_secret() {
    let hub = Hub::new();
    let (none, cluster) = (json!({}), json!({"secretRef": {"name": "east"}}));
    let pause = async |millis| tokio::time::sleep(Duration::from_millis(millis)).await;
    let is = |hub: &Hub, place: &str| Hub::place(&hub.east, "settings") == text(place);
    let change = |hub: &Hub, url: &str| {
        let spec = json!({"spec": {"source": {"git": {"url": url}}}});
        hub.home.merge(&format!("{SYNCS}/east"), &spec, "test").unwrap();
    };
    hub.secret(&kubeconfig("one", &none));
    hub.sync("east", &json!({"cluster": cluster, "deletionPolicy": "Delete"}));
    hub.until("east is applied", |hub| is(hub, "east") && hub.ready("east").0 == "Applied").await;
    let uid =
        |sandbox: &Sandbox| sandbox.get("/api/v1/namespaces/kube-system").unwrap()["metadata"]["uid"].clone();
    assert_ne!(uid(&hub.east), uid(&hub.west));
    assert_eq!(hub.home.get(&format!("{SYNCS}/east")).unwrap()["status"]["targetUid"], uid(&hub.east));

    // The Secret of another cluster: nothing is written or deleted in either of them.
    hub.secret(&kubeconfig("other", &none));
    hub.until("another cluster is refused", |hub| hub.ready("east").0 == "OtherCluster").await;
    Hub::edit(&hub.east, "settings");
    hub.home.delete(&format!("{SYNCS}/east")).unwrap();
    hub.until("the deletion waits", |hub| hub.ready("east").1.contains("--abandon-cluster")).await;
    pause(500).await;
    assert_eq!((Hub::place(&hub.west, "settings"), is(&hub, "by hand")), (None, true));
    hub.secret(&kubeconfig("one", &none));
    hub.until("the Sync is gone", |hub| hub.home.get(&format!("{SYNCS}/east")).is_none()).await;
    assert_eq!(Hub::place(&hub.east, "settings"), None);

    // The spec is invalid, and the Secret goes: the access goes with it.
    hub.sync("east", &json!({"cluster": cluster, "deletionPolicy": "Delete"}));
    hub.until("east is applied again", |hub| is(hub, "east") && hub.ready("east").0 == "Applied").await;
    change(&hub, "nonsense");
    hub.until("the spec is refused", |hub| hub.ready("east").0 == "SpecInvalid").await;
    Hub::edit(&hub.east, "settings");
    hub.until("the last request is kept", |hub| is(hub, "east")).await;
    hub.home.delete(&format!("{SECRETS}/east")).unwrap();
    pause(500).await;
    Hub::edit(&hub.east, "settings");
    pause(1000).await;
    assert!(is(&hub, "by hand"), "{:?}", hub.ready("east"));
    hub.secret(&kubeconfig("one", &none));
    change(&hub, &format!("file://{}", hub.books.path().display()));
    hub.until("it is repaired", |hub| is(hub, "east") && hub.ready("east").0 == "Applied").await;

    // Another cluster behind the same address and with the same user.
    hub.east.delete("/api/v1/namespaces/kube-system").unwrap();
    hub.until("it is gone", |hub| hub.east.get("/api/v1/namespaces/kube-system").is_none()).await;
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}});
    hub.east.apply("/api/v1/namespaces", &body, "test").unwrap();
    pause(2100).await;
    Hub::edit(&hub.east, "settings");
    hub.until("it is noticed", |hub| hub.ready("east").1.contains("another one than before")).await;
    assert!(is(&hub, "by hand"));

    // A person decides, also if the spec is invalid.
    change(&hub, "nonsense");
    hub.until("the spec is refused", |hub| hub.ready("east").0 == "SpecInvalid").await;
    hub.home.delete(&format!("{SYNCS}/east")).unwrap();
    hub.until("the deletion waits", |hub| hub.ready("east").1.contains("--abandon-cluster")).await;
    pause(500).await;
    assert!(hub.ready("east").1.contains("SpecInvalid") && is(&hub, "by hand"), "{:?}", hub.ready("east"));
}

/// Serves the sandbox over TLS as `localhost`; returns the port, and how each connection begins.
async fn serve_with_tls(sandbox: &Sandbox, authority: &Authority) -> (u16, Arc<Mutex<Vec<String>>>) {
    let plain = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let behind = plain.local_addr().unwrap();
    tokio::spawn(sandbox.clone().serve(plain));
    let front = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let (port, heads) = (front.local_addr().unwrap().port(), Arc::<Mutex<Vec<String>>>::default());
    let (acceptor, told) = (TlsAcceptor::from(authority.server(None)), heads.clone());
    tokio::spawn(async move {
        while let Ok((stream, _)) = front.accept().await {
            let (acceptor, told) = (acceptor.clone(), told.clone());
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut head = vec![0; 4096];
                let count = stream.read(&mut head).await.unwrap_or_default();
                told.lock().unwrap().push(String::from_utf8_lossy(&head[..count]).to_lowercase());
                let mut server = TcpStream::connect(behind).await.unwrap();
                server.write_all(&head[..count]).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
            });
        }
    });
    (port, heads)
}

#[tokio::test]
async fn a_connection_goes_to_checked_addresses_and_proven_servers_only() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (sandbox, folder) = (Sandbox::new(&Options::default()), tempfile::tempdir().unwrap());
    let (own, other) = (Authority::new(), Authority::new());
    let (port, heads) = serve_with_tls(&sandbox, &own).await;
    let reach = async |server: String, authority: &Authority, allowed: &[&str]| {
        let hosts = HostPolicy::new("allowedHosts", allowed.iter().copied()).unwrap();
        let rules = OutboundClient::new(&Repositories::new(folder.path(), None, hosts).unwrap());
        let access = RemoteAccess {
            server: server.parse().unwrap(),
            authorities: Some(authority.pem.clone().into_bytes()),
            server_name: None,
            token: Some("a-token".to_owned()),
            client: None,
        };
        let check = Arc::new(move |host: &str, port: u16| rules.addresses(host, port));
        let connection = Connection::to_remote(&access, check, true).map_err(|error| error.to_string())?;
        let settings = Settings::default();
        let cluster = Cluster::new(connection, Metrics::new().unwrap(), WritePermit::unlimited(), &settings);
        cluster.discovery().ensure().await.map_err(|failure| failure.to_string())
    };
    let by_name = format!("https://localhost:{port}");
    reach(by_name.clone(), &own, &["127.0.0.0/8", "::1"]).await.unwrap();
    // The first connection offers HTTP/2. The server does not select it, so it carries nothing.
    let heard =
        || -> Vec<String> { heads.lock().unwrap().iter().filter(|head| !head.is_empty()).cloned().collect() };
    let before = heard();
    assert!(!before.is_empty(), "the first connection was heard");
    assert!(before.iter().all(|head| head.contains("authorization: bearer a-token")), "{before:?}");
    for (server, authority, allowed, expect) in [
        (by_name.clone(), &other, &["127.0.0.0/8", "::1"] as &[&str], "certificate"),
        (by_name, &own, &[], "refused"),
        (format!("https://127.0.0.1:{port}"), &own, &[], "refused"),
        (format!("https://127.0.0.1:{port}"), &own, &["127.0.0.0/8"], "certificate"),
    ] {
        let error = reach(server.clone(), authority, allowed).await.unwrap_err();
        assert!(error.contains(expect), "{server} {allowed:?}: {error}");
    }
    assert_eq!(heard(), before, "nothing was sent to others");
}
