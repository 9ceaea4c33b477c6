//! A team may have the daemon send a Secret only where it could send it itself, or where the Secret says.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use moorline_test_support::authority::Authority;
use moorline_test_support::credentials::ADMIN;
use moorline_test_support::daemon::{until, until_within};
use moorline_test_support::git_server::{GitServer, Reply};
use moorline_test_support::rest::{send_request, tenant};
use moorline_test_support::scene::{Scene, config_map};
use moorline_test_support::under_load::under_load;

const REFUSED: &str = "SecretNotAllowed";

/// A team's namespace, and a server that wants its login.
struct Team<'a> {
    scene: &'a Scene,
    namespace: String,
    server: GitServer,
    /// Requests so far, no matter who made them.
    asked: Mutex<usize>,
}

impl<'a> Team<'a> {
    async fn new(scene: &'a Scene) -> Self {
        let authority = Authority::new();
        let server = GitServer::start_with(scene.root.path(), Some(authority.server(None)));
        server.rule(|request| match request.header("authorization") {
            Some("Basic dTpw") => Reply::Git,
            _ => Reply::Raw(401, "", Vec::new()),
        });
        let namespace = scene.plane.namespace("team").await;
        let verbs = ["get", "list", "watch", "create", "patch", "delete"];
        tenant(&scene.admin, &namespace, &verbs).await;
        let data = json!({"username": "u", "password": "p", "ca.crt": authority.pem});
        for (name, annotations) in
            [("login", json!({})), ("named", json!({"moorline.dev/hosts": "localhost"}))]
        {
            let secret = json!({"metadata": {"name": name, "annotations": annotations}, "stringData": data});
            send_request(&scene.admin, "POST", &format!("/api/v1/namespaces/{namespace}/secrets"), secret)
                .await
                .unwrap();
        }
        Self { scene, namespace, server, asked: Mutex::new(0) }
    }

    /// A Sync that acts as the team's account.
    async fn sync(&self, name: &str, host: &str, secret: &str) {
        let url = format!("https://{host}:{}/repository.git", self.server.port);
        let sync = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": name},
            "spec": {"source": {"git": {"url": url, "secretRef": {"name": secret}}}, "path": name,
                "serviceAccountName": "tenant", "interval": "1h", "health": {"wait": false}},
        });
        send_request(&self.scene.admin, "POST", &self.path(), sync).await.unwrap();
    }

    fn path(&self) -> String {
        format!("/apis/moorline.dev/v1alpha1/namespaces/{}/syncs", self.namespace)
    }

    /// Waits for a reason, and gives the message with it.
    async fn until_reason(&self, name: &str, reason: &str) -> String {
        until(&format!("{name} says {reason}"), async || {
            let sync =
                send_request(&self.scene.admin, "GET", &format!("{}/{name}", self.path()), Value::Null)
                    .await
                    .ok()?;
            let ready = sync.pointer("/status/conditions/0")?;
            (ready["reason"] == reason).then(|| ready["message"].as_str().unwrap_or_default().to_owned())
        })
        .await
    }

    /// Returns the number of requests that the server has had since the last time.
    fn asked(&self) -> usize {
        let mut asked = self.asked.lock().unwrap();
        *asked += self.server.requests().len();
        std::mem::take(&mut *asked)
    }

    /// Applies what `moorline rbac` prints.
    async fn grant(&self, sync: &str) {
        let kubeconfig = self.scene.root.path().join("kubeconfig-of-a-person");
        std::fs::write(&kubeconfig, self.scene.plane.kubeconfig(ADMIN)).unwrap();
        let daemon = format!("{}/moorline", self.scene.namespace);
        let printed = std::process::Command::new(env!("CARGO_BIN_EXE_moorline"))
            .args(["rbac", "--sync", sync, "-n", &self.namespace, "--daemon", &daemon])
            .env("KUBECONFIG", kubeconfig)
            .output()
            .unwrap();
        assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        let documents = moorline::yaml::read("printed", &printed.stdout, moorline::yaml::Dialect::Kubectl);
        let documents: Vec<Value> = documents.unwrap().into_iter().map(|document| document.value).collect();
        let rule = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["login"], "verbs": ["get"]});
        let has_rule = |document: &&Value| {
            document["rules"].as_array().is_some_and(|rules| rules.contains(&rule))
                && document["metadata"]["name"] == format!("moorline-sync-{}-{sync}", self.namespace)
        };
        assert_eq!(documents.iter().filter(has_rule).count(), 1, "{documents:?}");
        for document in &documents {
            let kind = document["kind"].as_str().unwrap().to_lowercase();
            let namespace = document["metadata"]["namespace"].as_str();
            let place = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
            let uri = format!("/apis/rbac.authorization.k8s.io/v1/{place}{kind}s");
            send_request(&self.scene.admin, "POST", &uri, document).await.unwrap();
        }
    }
}

/// A right counts for a minute after it was asked for, and looks are five seconds apart.
const REVOKED: Duration = Duration::from_secs(90);

/// It is not asked for again and again before that.
const ASKED_ANEW: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_taken_away_counts_for_a_sync_that_runs() {
    let Some(scene) = Scene::new("revoked").await else { return };
    scene.push(&[("shop/shop.json".to_owned(), config_map("shop", "1"))]);
    let team = Team::new(&scene).await;
    let _daemon = scene.daemon();
    team.sync("shop", "localhost", "login").await;
    team.until_reason("shop", REFUSED).await;
    team.grant("shop").await;
    team.until_reason("shop", "Applied").await;
    let often = json!({"spec": {"interval": "5s"}});
    let sync = format!("{}/shop", team.path());
    send_request(&scene.admin, "PATCH", &sync, often).await.unwrap();

    let place = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}", team.namespace);
    let binding = format!("{place}/rolebindings/moorline-sync-{}-shop", team.namespace);
    let bound = send_request(&scene.admin, "GET", &binding, Value::Null).await.unwrap();
    scene.proxy.take_requests();
    send_request(&scene.admin, "DELETE", &binding, Value::Null).await.unwrap();
    tokio::time::sleep(ASKED_ANEW).await;
    let reviews =
        scene.proxy.take_requests().iter().filter(|one| one.path.contains("selfsubjectaccess")).count();
    assert!(reviews <= 1, "{reviews} in a minute");
    let message = until_within(REVOKED, "the login is not sent any more", async || {
        let sync = send_request(&scene.admin, "GET", &sync, Value::Null).await.ok()?;
        let ready = sync.pointer("/status/conditions/0")?;
        (ready["reason"] == REFUSED).then(|| ready["message"].as_str().unwrap_or_default().to_owned())
    })
    .await;
    assert!(message.contains("is not sent to localhost: the ServiceAccount tenant"), "{message}");

    // Nothing is sent from here on, also for a new commit; what is applied stays.
    team.asked();
    scene.push(&[("shop/shop.json".to_owned(), config_map("shop", "2"))]);
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(team.asked(), 0, "the login is not sent");
    let map = format!("/api/v1/namespaces/{}/configmaps/shop", team.namespace);
    assert_eq!(send_request(&scene.admin, "GET", &map, Value::Null).await.unwrap()["data"]["key"], "1");

    let name = json!({"name": bound["metadata"]["name"]});
    let again = json!({"metadata": name, "subjects": bound["subjects"], "roleRef": bound["roleRef"]});
    send_request(&scene.admin, "POST", &format!("{place}/rolebindings"), again).await.unwrap();
    until_within(Duration::from_secs(60), "the new commit is applied", async || {
        let map = send_request(&scene.admin, "GET", &map, Value::Null).await.ok()?;
        (map["data"]["key"] == "2").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_does_not_have_a_secret_sent_that_it_may_not_read() {
    let Some(scene) = Scene::new("sent").await else { return };
    let file = |name: &str| (format!("{name}/{name}.json"), config_map(name, "1"));
    scene.push(&[file("shop"), file("named"), file("thief")]);
    let team = Team::new(&scene).await;
    let _daemon = scene.daemon();
    team.sync("shop", "localhost", "login").await;
    // The same Secret as one that is named for another host.
    team.sync("thief", "127.0.0.1", "named").await;
    for (sync, host) in [("shop", "localhost"), ("thief", "127.0.0.1")] {
        let message = team.until_reason(sync, REFUSED).await;
        let place = &team.namespace;
        for part in [
            format!("is not sent to {host}: the ServiceAccount tenant"),
            format!("`moorline rbac --sync {sync} -n {place} | kubectl apply -f -`"),
            format!("moorline.dev/hosts={host}`"),
        ] {
            assert!(message.contains(&part), "{part}: {message}");
        }
    }
    assert_eq!(team.asked(), 0, "nothing was sent");

    team.sync("named", "localhost", "named").await;
    team.until_reason("named", "Applied").await;
    assert!(team.asked() > 0);

    team.grant("shop").await;
    let granted = Instant::now();
    team.until_reason("shop", "Applied").await;
    assert!(granted.elapsed() < under_load(Duration::from_secs(10)), "{:?}", granted.elapsed());
    // One that is refused asks from time to time whether it is granted.
    send_request(&scene.admin, "DELETE", &format!("{}/thief", team.path()), Value::Null).await.unwrap();
    scene.settle().await;
    scene.assert_calm("nobody asks again and again what is allowed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_login_of_a_chart_is_sent_only_where_the_team_may_send_it() {
    let Some(scene) = Scene::new("sent-chart").await else { return };
    scene.push(&[("shop/words.txt".to_owned(), "words".to_owned())]);
    let team = Team::new(&scene).await;
    team.server.rule(|request| match request.header("authorization") {
        Some("Basic dTpw") => Reply::Raw(404, "", Vec::new()),
        _ => Reply::Raw(401, "", Vec::new()),
    });
    let _daemon = scene.daemon();
    let sync = |name: &str, host: &str, secret: &str| {
        let url = format!("https://{host}:{}/charts", team.server.port);
        let chart = json!({"url": url, "name": "web", "version": "1.x", "secretRef": {"name": secret}});
        json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync", "metadata": {"name": name},
            "spec": {"source": {"git": {"url": scene.git.url("repository.git")}}, "path": "shop", "interval": "5s",
                "serviceAccountName": "tenant", "render": {"helm": {"chart": chart}}},
        })
    };
    for (name, host, secret) in [("shop", "localhost", "login"), ("thief", "127.0.0.1", "named")] {
        send_request(&scene.admin, "POST", &team.path(), sync(name, host, secret)).await.unwrap();
        let message = team.until_reason(name, REFUSED).await;
        assert!(message.contains(&format!("is not sent to {host}: the ServiceAccount tenant")), "{message}");
    }
    assert_eq!(team.asked(), 0, "nothing was sent");
    send_request(&scene.admin, "POST", &team.path(), sync("named", "localhost", "named")).await.unwrap();
    team.until_reason("named", "ChartNotFound").await;
    assert!(team.asked() > 0);
}
