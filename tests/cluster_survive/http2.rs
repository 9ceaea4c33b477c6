//! A daemon over HTTP/2: all its watches on a few connections, also after these were cut.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use moorline_test_support::credentials::MOORLINE;
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::scene::{Scene, file};

/// One for watches, one for all other requests, and each may be replaced once.
const FEW: usize = 4;

/// Kinds of the test, each of which is watched.
const KINDS: [(&str, &str); 10] = [
    ("v1", "ServiceAccount"),
    ("v1", "Service"),
    ("v1", "Secret"),
    ("v1", "LimitRange"),
    ("v1", "PodTemplate"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("networking.k8s.io/v1", "Ingress"),
    ("policy/v1", "PodDisruptionBudget"),
    ("apps/v1", "ControllerRevision"),
];

fn manifest((version, kind): (&str, &str)) -> (String, String) {
    let mut object: Value = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "one"}});
    let more = match kind {
        "Service" => json!({"spec": {"ports": [{"port": 80}]}}),
        "Role" => json!({"rules": []}),
        "LimitRange" => json!({"spec": {"limits": []}}),
        "NetworkPolicy" => json!({"spec": {"podSelector": {}}}),
        "Ingress" => {
            json!({"spec": {"defaultBackend": {"service": {"name": "one", "port": {"number": 80}}}}})
        }
        "PodDisruptionBudget" => {
            json!({"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"a": "b"}}}})
        }
        "ControllerRevision" => json!({"revision": 1, "data": {}}),
        "PodTemplate" => json!({"template": {"spec": {"containers": [{"name": "a", "image": "a"}]}}}),
        _ => json!({}),
    };
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    (format!("{}.json", kind.to_lowercase()), object.to_string())
}

/// Passes bytes on to a server, and counts the connections.
struct Relay {
    port: u16,
    open: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Relay {
    async fn start(server: String) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let open = Arc::<Mutex<Vec<JoinHandle<()>>>>::default();
        let relay = Self { port: listener.local_addr().unwrap().port(), open: open.clone() };
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let server = server.clone();
                open.lock().unwrap().push(tokio::spawn(async move {
                    let Ok(mut server) = TcpStream::connect(server).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                }));
            }
        });
        relay
    }

    fn open(&self) -> usize {
        self.open.lock().unwrap().iter().filter(|task| !task.is_finished()).count()
    }

    fn cut(&self) {
        self.open.lock().unwrap().drain(..).for_each(|task| task.abort());
    }
}

#[tokio::test]
async fn many_watches_need_few_connections_also_after_these_were_cut() {
    let Some(scene) = Scene::beside("http2").await else { return };
    let Some(server) = scene.plane.url.strip_prefix("https://") else { return };
    let relay = Relay::start(server.to_owned()).await;
    let through = format!("https://127.0.0.1:{}", relay.port);
    let kubeconfig = scene.plane.kubeconfig(MOORLINE).replace(&scene.plane.url, &through);
    let folder = scene.root.path().join("daemon");
    std::fs::create_dir_all(&folder).unwrap();
    let arguments =
        ["--namespace", &scene.namespace, "--http2=true", "--leader-election=false", "--retry-cap", "1s"];
    let arguments = [&arguments[..], &scene.instance_arguments()].concat();
    let daemon = Daemon::with_kubeconfig(&scene.plane.reaper, &kubeconfig, &folder, &arguments);

    let mut files: Vec<(String, String)> = KINDS.map(manifest).into();
    files.push(file("map", "one"));
    let commit = scene.push(&files);
    scene.sync("shop", json!({})).await;
    scene.until_ready("shop", &commit).await;
    let count = relay.open();
    assert!((1..=FEW).contains(&count), "{count} connections: {}", daemon.log());

    let is_healed = async |how: &str| {
        scene.edit("map", "by hand").await;
        let healed = async || (scene.values().await.get("map")? == "one").then_some(());
        until(how, healed).await;
    };
    is_healed("it is repaired").await;
    relay.cut();
    is_healed("it is repaired after all connections were cut").await;
    let commit = scene.push(&[file("map", "two")]);
    scene.nudge("shop", "again").await;
    scene.until_ready("shop", &commit).await;
    until("few connections are open", async || (relay.open() <= FEW).then_some(())).await;
}
