//! A kind that the server lists and cannot watch, as some that are served by programs beside it.

use std::time::{Duration, Instant};

use http::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use moorline_test_support::control_plane::shared_beside;
use moorline_test_support::credentials::{ADMIN, MOORLINE};
use moorline_test_support::daemon::{Daemon, until};
use moorline_test_support::fault_proxy::{Fate, FaultProxy};
use moorline_test_support::git_server::{GitServer, Work};
use moorline_test_support::scene::{Scene, many};
use moorline_test_support::under_load::under_load;

/// Returns the answer of aggregated discovery of the core group, as a server would that cannot watch ConfigMaps.
async fn without_watches(admin: &Client) -> &'static str {
    let request = Request::get("/api")
        .header("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    let mut said: Value = admin.request(request.body(Vec::new()).unwrap()).await.unwrap();
    let resources = said["items"][0]["versions"][0]["resources"].as_array_mut().unwrap();
    let maps = resources.iter_mut().find(|it| it["resource"] == "configmaps").unwrap();
    maps["verbs"].as_array_mut().unwrap().retain(|verb| verb != "watch");
    said.to_string().leak()
}

#[tokio::test]
async fn a_kind_that_cannot_be_watched_is_listed_from_time_to_time() {
    let Some(plane) = shared_beside() else { return };
    let namespace = plane.namespace("polled").await;
    let admin = plane.client(ADMIN).await;
    let maps: Api<ConfigMap> = Api::namespaced(admin.clone(), &namespace);
    let value = async |name: &str| maps.get_opt(name).await.unwrap()?.data?.remove("key");
    let (root, proxy) = (tempfile::tempdir().unwrap(), FaultProxy::start(&plane));
    let (work, server) = (Work::new(root.path()), GitServer::start(root.path()));
    let files = many(3, "one");
    work.push(&files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect::<Vec<_>>());
    let said = without_watches(&admin).await;
    proxy.rule(move |asked| if asked.path == "/api" { Fate::Say(said) } else { Fate::Pass });
    let url = server.url("repository.git");
    let arguments = ["--url", &url, "--namespace", &namespace, "--interval", "60", "--leader-election=false"];
    let kubeconfig = proxy.kubeconfig(&plane, MOORLINE);
    let _daemon = Daemon::with_kubeconfig(&plane.reaper, &kubeconfig, root.path(), &arguments);
    for (name, _) in many(3, "one") {
        let name = name.trim_end_matches(".json");
        until(&format!("{name} is there"), async || value(name).await).await;
    }
    proxy.take_requests();
    let by = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    maps.patch("a-1", &by, &Patch::Merge(&json!({"data": {"key": "by hand"}}))).await.unwrap();
    maps.delete("a-2", &DeleteParams::default()).await.unwrap();
    // A list between the two changes knows only the first.
    let mut writes = proxy.take_requests().iter().filter(|one| one.writes_object()).count();
    let (begun, mut lists, mut watches) = (Instant::now(), Vec::new(), 0);
    // It is listed once a minute. Until then there is no need to ask every few milliseconds.
    let least = Duration::from_secs(20);
    let is_repaired = async |name: &str| value(name).await.is_some_and(|value| value == "one");
    let mut is_over = false;
    while !is_over {
        is_over = begun.elapsed() > least && is_repaired("a-1").await && is_repaired("a-2").await;
        assert!(begun.elapsed() < under_load(Duration::from_secs(150)), "never repaired; lists: {lists:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
        for one in proxy.take_requests() {
            writes += usize::from(one.writes_object());
            watches += usize::from(one.is_watch() && one.path.ends_with("/configmaps"));
            if one.begins_list() && one.path.ends_with("/configmaps") {
                lists.push((begun.elapsed(), one.head));
            }
        }
    }
    assert_eq!((lists.len(), watches, writes), (1, 0, 2), "one list has both: {lists:?}");
}

#[tokio::test]
async fn a_sync_says_which_kinds_are_not_watched() {
    let Some(scene) = Scene::beside("unwatched").await else { return };
    let said = without_watches(&scene.admin).await;
    scene.proxy.rule(move |asked| if asked.path == "/api" { Fate::Say(said) } else { Fate::Pass });
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "watched"}}).to_string();
    let files = [many(2, "one"), vec![("secret.json".to_owned(), secret)]].concat();
    let (_daemon, _) = scene.applied(&files, json!({})).await;
    let object = format!("ConfigMap {}/a-0", scene.namespace);
    let message = "the API server cannot watch ConfigMap, so it is listed every 60 s: drift is detected with that delay";
    let expect = json!([{"reason": "Polled", "object": object, "file": "a-0.json:1", "message": message}]);
    assert_eq!(scene.status("shop", "/problems").await, expect);
    scene.delete_sync("shop").await;
}
