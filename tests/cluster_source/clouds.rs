//! Logins and data keys of clouds for a ServiceAccount: real tokens of the API server, stubs of the
//! clouds, and nothing of it in any output.

use std::path::PathBuf;

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use moorline_test_support::artifact_registry::{ArtifactRegistry, gzip, tar};
use moorline_test_support::clouds::{
    ACCESS_KEY, AZURE_CLIENT, AZURE_TENANT, CloudFault, Clouds, GCP_ACCOUNT, GCP_PROVIDER, MARK, SECRET,
    claims,
};
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::git_server::{GitServer, Reply};
use moorline_test_support::github::AppKey;
use moorline_test_support::page_requests::get;
use moorline_test_support::person::moorline;
use moorline_test_support::programs::find;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{QUIET_TIME, Scene, config_map, text};
use moorline_test_support::sops::encrypt_yaml;
use serde_json::{Value, json};

/// Value in encrypted files, and nowhere else.
const PLANTED: &str = "hunter2-cloud";

/// Clouds and a registry beside a scene.
struct Ground {
    scene: Scene,
    clouds: Clouds,
    registry: ArtifactRegistry,
}

impl Ground {
    async fn new(purpose: &str) -> Option<Self> {
        let scene = Scene::new(purpose).await?;
        let folder = |name: &str| {
            let folder = scene.root.path().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            folder
        };
        let (clouds, registry) =
            (Clouds::start(&folder("clouds")), ArtifactRegistry::start(&folder("registry")));
        let both = format!("{}{}", clouds.authority.pem, registry.authority.pem);
        std::fs::write(scene.root.path().join("authorities.pem"), both).unwrap();
        Some(Self { scene, clouds, registry })
    }

    fn daemon(&self) -> Daemon {
        self.daemon_with("", &[])
    }

    /// Starts a daemon with more addresses and more arguments.
    fn daemon_with(&self, addresses: &str, more: &[&str]) -> Daemon {
        let endpoints = self.clouds.endpoints(&self.registry.host()) + addresses;
        let authorities: PathBuf = self.scene.root.path().join("authorities.pem");
        let arguments = [
            "--leader-election=false",
            "--namespace",
            &self.scene.namespace,
            "--log-level",
            "trace",
            "--page",
            "127.0.0.1:0",
            "--cloud-endpoints",
            &endpoints,
        ];
        let variables = [("SSL_CERT_FILE", authorities.as_path())];
        let arguments = [arguments.as_slice(), more].concat();
        self.scene.daemon_in(&self.scene.proxy, "daemon", &arguments, &variables)
    }

    async fn create(&self, uri: &str, body: Value) {
        let uri = uri.replace("NAMESPACE", &self.scene.namespace);
        send_request(&self.scene.admin, "POST", &uri, body).await.unwrap();
    }

    /// Creates a ServiceAccount; with `role`, a Sync can act as it.
    async fn account(&self, name: &str, annotations: Value, role: Option<&str>) {
        let account = json!({"metadata": {"name": name, "annotations": annotations}});
        self.create("/api/v1/namespaces/NAMESPACE/serviceaccounts", account).await;
        let Some(role) = role else { return };
        let (kind, role) = role.split_once('/').unwrap_or(("ClusterRole", role));
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self.scene.namespace}],
        });
        self.create("/apis/rbac.authorization.k8s.io/v1/namespaces/NAMESPACE/rolebindings", binding).await;
    }

    /// A file with a Secret that the key of a cloud encrypted.
    fn encrypted(&self, cloud: &str, name: &str, password: &str) -> (String, String) {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "stringData": {"password": password}});
        let file = encrypt_yaml(&secret, &["data", "stringData"], &self.clouds.metadata(cloud));
        text(&format!("{name}.yaml"), &file)
    }

    fn spec(&self, cloud: &str, account: &str) -> Value {
        let oci = json!({"url": self.registry.url("shop"), "ref": {"tag": "v1"}, "provider": cloud});
        json!({"source": {"oci": oci}, "decryption": {"sops": {}}, "serviceAccountName": account, "interval": "1h"})
    }

    /// Checks by a review of the API server that a token is valid for this audience and account.
    async fn assert_token(&self, token: &str, audience: &str, account: &str) {
        let spec = json!({"token": token, "audiences": [audience]});
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec});
        let uri = "/apis/authentication.k8s.io/v1/tokenreviews";
        let answer = send_request(&self.scene.admin, "POST", uri, review).await.unwrap();
        let user = format!("system:serviceaccount:{}:{account}", self.scene.namespace);
        assert_eq!(answer["status"]["user"]["username"], user, "{answer}");
        assert_eq!(answer["status"]["audiences"], json!([audience]));
        let life = claims(token)["exp"].as_i64().unwrap() - claims(token)["iat"].as_i64().unwrap();
        assert_eq!(life, 600, "the token is as short as can be");
    }

    /// All that a person or a collector gets to see.
    async fn shown(&self, daemon: &Daemon, name: &str) -> String {
        let scene = &self.scene;
        let sync = scene.syncs().get(name).await.unwrap();
        let events: Api<Event> = Api::namespaced(scene.admin.clone(), &scene.namespace);
        let events = events.list(&ListParams::default()).await.unwrap();
        let verbs: [&[&str]; 2] = [&["status", name, "-o", "json"], &["events", name]];
        let said = verbs.map(|arguments| moorline(scene, arguments)).map(|said| said.data + &said.words);
        let page = until("the page is there", async || daemon.page()).await;
        let path = format!("/syncs/{}/{name}", scene.namespace);
        let pages = [path.clone(), format!("/api/v1{path}")].map(|path| get(&page, &path).body);
        let rest = [
            serde_json::to_string(&sync).unwrap(),
            serde_json::to_string(&events.items).unwrap(),
            daemon.log(),
            daemon.get("/metrics").unwrap_or_default(),
        ];
        [said.as_slice(), &pages, &rest].concat().join("\n")
    }

    async fn password(&self, name: &str) -> Option<String> {
        use base64::Engine as _;
        let uri = format!("/api/v1/namespaces/{}/secrets/{name}", self.scene.namespace);
        let secret = send_request(&self.scene.admin, "GET", &uri, Value::Null).await.ok()?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(secret["data"]["password"].as_str()?);
        String::from_utf8(bytes.ok()?).ok()
    }

    async fn until_told(&self, name: &str, part: &str) {
        until(part, async || {
            let status = self.scene.status(name, "").await.to_string();
            status.contains(part).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_cloud_gives_a_login_and_a_data_key_for_one_token() {
    let Some(ground) = Ground::new("clouds").await else { return };
    let provider = format!("https://iam.googleapis.com/{GCP_PROVIDER}");
    let table = [
        ("AWS", "sts.amazonaws.com", [("aws-exchange", 1), ("aws-key", 1), ("aws-login", 1)].as_slice()),
        ("GCP", &provider, &[("gcp-account", 1), ("gcp-exchange", 1), ("gcp-key", 1)]),
        // A token of Azure is for one service: for the registry, and for the vault.
        ("Azure", "api://AzureADTokenExchange", &[("azure-exchange", 2), ("azure-key", 1)]),
    ];
    let daemon = ground.daemon();
    for (cloud, audience, expect) in table {
        let (name, account) = (cloud.to_lowercase(), format!("{}-puller", cloud.to_lowercase()));
        ground.account(&account, Clouds::annotations(cloud), Some("cluster-admin")).await;
        ground.registry.login(Clouds::login(cloud));
        let files = |value: &str| {
            [
                ground.encrypted(cloud, &format!("{name}-login"), PLANTED),
                ground.encrypted(cloud, &format!("{name}-more"), PLANTED),
                (format!("{name}.json"), config_map(&name, value)),
            ]
        };
        let first = ground.registry.push("shop", "v1", &files("one"));
        let before = ground.clouds.tokens().len();
        ground.scene.sync(&name, ground.spec(cloud, &account)).await;
        ground.scene.until_ready(&name, &first).await;
        assert_eq!(ground.password(&format!("{name}-more")).await.as_deref(), Some(PLANTED));
        assert_eq!(ground.clouds.counts().into_iter().collect::<Vec<_>>(), expect, "{cloud}");
        for token in &ground.clouds.tokens()[before..] {
            ground.assert_token(token, audience, &account).await;
        }

        // A new artifact, and a second Sync of the same account, use what is there.
        let second = ground.registry.push("shop", "v1", &files("two"));
        ground.scene.nudge(&name, "second").await;
        ground.scene.until_ready(&name, &second).await;
        assert_eq!(ground.clouds.counts().len(), 0, "{cloud}: nothing is asked for again");
        let shown = ground.shown(&daemon, &name).await;
        assert!(shown.len() > 10_000, "there is much to look through");
        let tokens = ground.clouds.tokens();
        let hidden = tokens.iter().map(|token| token.rsplit('.').next().unwrap());
        for hidden in hidden.chain([MARK, PLANTED, "ASIA1"]) {
            let around = shown.find(hidden).map(|at| &shown[at.saturating_sub(300)..at + 40]);
            assert_eq!(around, None, "{cloud}: {hidden}");
        }
        ground.scene.settle().await;
        ground.scene.assert_calm(cloud).await;
        assert_eq!(ground.clouds.counts().len(), 0, "{cloud}: a Sync at rest asks nothing");
        ground.scene.delete_sync(&name).await;
    }
    assert!(ground.clouds.bodies()[0].contains(r#""EncryptionContext":{"app":"shop"}"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_cloud_refuses_or_lies_about_is_named_and_nothing_is_applied() {
    let Some(ground) = Ground::new("cloud-no").await else { return };
    let (scene, clouds) = (&ground.scene, &ground.clouds);
    ground.account("shop", Clouds::annotations("AWS"), Some("cluster-admin")).await;
    ground.registry.login(Clouds::login("AWS"));
    let first = ground.registry.push("shop", "v1", &[ground.encrypted("AWS", "login", "first")]);
    let daemon = ground.daemon();
    clouds.fault(CloudFault::RefuseExchange);
    scene.sync("shop", ground.spec("AWS", "shop")).await;
    let holder = format!("the ServiceAccount {}/shop gets no credentials of AWS: ", scene.namespace);
    ground.until_told("shop", &format!("{holder}AWS does not let the ServiceAccount assume the role")).await;
    assert_eq!(scene.status("shop", "/conditions/0/reason").await, "RepositoryAccessDenied");
    clouds.fault(CloudFault::RedirectExchange);
    ground.until_told("shop", &format!("{holder}it redirects elsewhere, which is not followed")).await;
    // It is tried again by itself.
    clouds.fault(CloudFault::None);
    scene.until_ready("shop", &first).await;

    // A key service that lies, redirects or refuses: the previous revision is held.
    for (fault, part) in [
        (CloudFault::OtherKey, "AWS KMS: it answers with another key"),
        (CloudFault::RedirectKeys, "AWS KMS: it redirects elsewhere, which is not followed"),
        (CloudFault::RefuseKeys, "AWS KMS: KMS does not decrypt it"),
    ] {
        clouds.fault(fault);
        let mut spec = ground.clouds.metadata("AWS");
        // Another data key for each attempt, so that it is asked for.
        spec["kms"][0]["context"]["app"] = json!(part);
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"},
            "stringData": {"password": "second"}});
        let file = encrypt_yaml(&secret, &["stringData"], &spec);
        ground.registry.push("shop", "v1", &[text("login.yaml", &file)]);
        scene.nudge("shop", part).await;
        ground.until_told("shop", part).await;
        tokio::time::sleep(QUIET_TIME).await;
        assert_eq!(ground.password("login").await.as_deref(), Some("first"), "{part}");
    }
    let told = scene.status("shop", "").await.to_string();
    assert!(!told.contains("planted") && !told.contains("169.254"), "{told}");
    assert!(!daemon.log().contains("169.254.169.254/latest"));
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_values_need_one_data_key() {
    let Some(ground) = Ground::new("cloud-many").await else { return };
    ground.account("shop", Clouds::annotations("AWS"), Some("cluster-admin")).await;
    ground.registry.login(Clouds::login("AWS"));
    let data = (0..9_990).map(|at| (format!("k{at}"), json!("v"))).collect::<serde_json::Map<_, _>>();
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "many"}, "stringData": data});
    let file = encrypt_yaml(&secret, &["stringData"], &ground.clouds.metadata("AWS"));
    let digest = ground.registry.push("shop", "v1", &[text("many.yaml", &file)]);
    let _daemon = ground.daemon();
    ground.scene.sync("shop", ground.spec("AWS", "shop")).await;
    ground.scene.until_ready("shop", &digest).await;
    assert_eq!(ground.clouds.counts()["aws-key"], 1);
    ground.scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_does_not_act_for_the_sync_is_used_only_by_those_who_may() {
    let Some(ground) = Ground::new("cloud-other").await else { return };
    let scene = &ground.scene;
    ground.account("deployer", json!({}), Some("edit")).await;
    ground.account("puller", Clouds::annotations("AWS"), None).await;
    ground.registry.login(Clouds::login("AWS"));
    let digest = ground.registry.push("shop", "v1", &[("a.json".to_owned(), config_map("a", "one"))]);
    let _daemon = ground.daemon();
    let mut spec = ground.spec("AWS", "deployer");
    spec["source"]["oci"]["serviceAccountName"] = json!("puller");
    spec["decryption"] = Value::Null;
    // The role edit includes tokens of ServiceAccounts, so a narrower one acts first.
    ground.account("narrow", json!({}), Some("Role/narrow")).await;
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({"apiGroups": groups, "resources": resources, "verbs": verbs});
    let role = json!({"metadata": {"name": "narrow"}, "rules": [
        rule(&[""], &["configmaps"], &["*"]), rule(&["moorline.dev"], &["syncs"], &["own"]),
    ]});
    ground.create("/apis/rbac.authorization.k8s.io/v1/namespaces/NAMESPACE/roles", role).await;
    spec["serviceAccountName"] = json!("narrow");
    scene.sync("shop", spec).await;
    ground
        .until_told("shop", "the ServiceAccount narrow that acts for the Sync may not request its tokens")
        .await;
    assert_eq!(ground.clouds.counts().len(), 0);
    scene.patch_sync("shop", json!({"spec": {"serviceAccountName": "deployer"}})).await;
    scene.until_ready("shop", &digest).await;
    ground.assert_token(&ground.clouds.tokens()[0], "sts.amazonaws.com", "puller").await;

    // The printed rules name the account: for the daemon, and for the account that acts for the Sync.
    scene.push(&[("b.json".to_owned(), config_map("b", "one"))]);
    let decryption = json!({"sops": {"serviceAccountName": "puller"}});
    scene
        .sync("keys", json!({"serviceAccountName": "narrow", "decryption": decryption, "suspend": true}))
        .await;
    let printed = moorline(scene, &["rbac", "--sync", "keys", "--daemon", "moorline/daemon"]);
    let rules: Vec<&str> =
        printed.data.split("\n- ").filter(|rule| rule.contains("serviceaccounts/token")).collect();
    assert_eq!(rules.len(), 2, "{} {}", printed.data, printed.words);
    assert!(rules.iter().all(|rule| rule.contains("puller") && rule.contains("create")), "{rules:?}");
    scene.delete_sync("keys").await;
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_clouds_in_the_secret_need_no_service_account() {
    let Some(ground) = Ground::new("cloud-secret").await else { return };
    let Some(key) = AppKey::new(ground.scene.root.path(), "google", "PKCS8") else { return };
    let scene = &ground.scene;
    let google = json!({"type": "service_account", "client_email": GCP_ACCOUNT, "private_key": key.pem,
        "token_uri": "https://169.254.169.254/token"});
    let entries = json!({
        "sops.aws-kms": format!("aws_access_key_id: {ACCESS_KEY}\naws_secret_access_key: {SECRET}\n"),
        "sops.gcp-kms": google.to_string(),
        "sops.azure-kv": format!("tenantId: {AZURE_TENANT}\nclientId: {AZURE_CLIENT}\nclientSecret: {SECRET}\n"),
    });
    let body = json!({"metadata": {"name": "keys"}, "stringData": entries});
    ground.create("/api/v1/namespaces/NAMESPACE/secrets", body).await;
    let commit = scene
        .push(&["AWS", "GCP", "Azure"].map(|cloud| ground.encrypted(cloud, &cloud.to_lowercase(), PLANTED)));
    let daemon = ground.daemon();
    let decryption = json!({"sops": {"secretRef": {"name": "keys"}}});
    scene.sync("shop", json!({"decryption": decryption, "interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    for name in ["aws", "gcp", "azure"] {
        assert_eq!(ground.password(name).await.as_deref(), Some(PLANTED), "{name}");
    }
    let expect = [("aws-key", 1), ("azure-exchange", 1), ("azure-key", 1), ("gcp-key", 1), ("gcp-oauth", 1)];
    assert_eq!(ground.clouds.counts().into_iter().collect::<Vec<_>>(), expect);
    assert_eq!(ground.clouds.tokens().len(), 0, "no token of a ServiceAccount is requested");
    let shown = ground.shown(&daemon, "shop").await;
    for hidden in [MARK, PLANTED, ACCESS_KEY, key.mark()] {
        assert!(!shown.contains(hidden), "{hidden}");
    }
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_of_azure_devops_is_read_by_a_token() {
    let Some(ground) = Ground::new("devops").await else { return };
    let scene = &ground.scene;
    ground.account("shop", Clouds::annotations("Azure"), Some("cluster-admin")).await;
    let devops = GitServer::start_with(scene.root.path(), Some(ground.registry.authority.server(None)));
    let login = format!("Bearer {MARK}-azure-access");
    devops.rule(move |request| match request.header("authorization") == Some(&login) {
        true => Reply::Git,
        false => Reply::Raw(401, "", b"planted".to_vec()),
    });
    let commit = scene.push(&[("a.json".to_owned(), config_map("a", "one"))]);
    let host = format!("localhost:{}", devops.port);
    let _daemon = ground.daemon_with(&format!(",azure-devops=https://{host}"), &[]);
    let git = json!({"url": format!("https://{host}/repository.git"), "provider": "Azure"});
    scene.sync("shop", json!({"source": {"git": git}, "serviceAccountName": "shop", "interval": "1h"})).await;
    scene.until_ready("shop", &commit).await;
    assert_eq!(ground.clouds.counts().into_iter().collect::<Vec<_>>(), [("azure-exchange", 1)]);
    ground.assert_token(&ground.clouds.tokens()[0], "api://AzureADTokenExchange", "shop").await;
    // The login of a cloud is not for other hosts.
    scene
        .patch_sync("shop", json!({"spec": {"source": {"git": {"url": "https://git.example.com/shop.git"}}}}))
        .await;
    ground.until_told("shop", "the provider Azure is for repositories of Azure DevOps").await;
    scene.delete_sync("shop").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_in_the_registry_of_a_cloud_is_read_by_its_login() {
    let Some(helm) = find("helm") else { return };
    let Some(ground) = Ground::new("cloud-chart").await else { return };
    let scene = &ground.scene;
    ground.account("shop", Clouds::annotations("AWS"), Some("cluster-admin")).await;
    ground.registry.login(Clouds::login("AWS"));
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\ndata: {key: \"one\"}\n";
    let archive = gzip(&tar(&[
        ("web/Chart.yaml", b'0', b"apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("web/templates/map.yaml", b'0', map.as_bytes()),
    ]));
    let media = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
    ground.registry.layer("web", "1.0.0", media, &archive);
    scene.push(&[text("words.txt", "words")]);
    let helm = std::path::absolute(helm).unwrap();
    let _daemon = ground.daemon_with("", &["--helm", helm.to_str().unwrap(), "--helm-fence", "bestEffort"]);
    let chart = json!({"url": ground.registry.url("web"), "version": "1.x", "provider": "AWS"});
    let render = json!({"helm": {"chart": chart}});
    scene.sync("shop", json!({"render": render, "serviceAccountName": "shop", "interval": "1h"})).await;
    let is_there = async || (scene.values().await.get("map")? == "one").then_some(());
    until("the chart is applied", is_there).await;
    assert_eq!(
        ground.clouds.counts().into_iter().collect::<Vec<_>>(),
        [("aws-exchange", 1), ("aws-login", 1)]
    );
    scene.delete_sync("shop").await;
}
