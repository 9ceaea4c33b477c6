//! The ground that Moorline is built on: its requests do what the design says, on a real API server and on the sandbox alike.
//!
//! Each scenario is a function of a server and runs as two tests. Where only one of them passes, the sandbox is wrong. One
//! scenario stands apart: whose rights end where. The sandbox knows who asks, but has no rights that could be refused:
//! everybody may do everything there, as its answers to reviews say.

mod applying;
pub(crate) mod servers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, PostParams};
use kube::discovery::{Discovery, Scope};
use moorline::desired::{self, Scopes};
use moorline::object::GroupKind;

use applying::{Applicable, apply_all, fifty, patches_of_fifty, resting_versions};
use moorline_test_support::credentials::{ADMIN, MOORLINE, TENANT};
use moorline_test_support::sandbox_plane::ONLY_ON_A_REAL_SERVER;
use servers::{Server, on_both_servers};

/// For what the controllers do in a moment on an idle machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

on_both_servers! {
    the_server_answers_with_the_version_that_the_figures_are_for
    each_request_is_observed_once_with_its_user
    a_second_equal_apply_of_fifty_objects_of_ten_kinds_changes_no_resource_version
    the_table_of_scopes_is_what_the_server_says
    a_deleted_namespace_is_emptied_by_the_controllers_and_then_gone
}

#[test]
fn each_test_that_the_sandbox_cannot_run_exists() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let files = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    // Rooms, their modules, and the modules of these.
    let mut all = files(&folder);
    for _ in 0..2 {
        all = all
            .iter()
            .flat_map(|path| if path.is_dir() { files(path) } else { vec![path.clone()] })
            .collect();
    }
    let sources = all.iter().filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let tests: String = sources.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    for (name, _) in ONLY_ON_A_REAL_SERVER {
        assert!(tests.contains(&format!("async fn {name}()")), "there is no test {name}");
    }
}

async fn the_server_answers_with_the_version_that_the_figures_are_for(server: &Server) {
    let version = server.client(ADMIN).await.apiserver_version().await.expect("/version");
    assert_eq!(version.git_version, "v1.36.3");
}

async fn each_request_is_observed_once_with_its_user(server: &Server) {
    let namespace = server.namespace("counted").await;
    let mark = server.mark().await;
    let maps = |client| Api::<ConfigMap>::namespaced(client, &namespace);
    let (moorline, admin) = (maps(server.client(MOORLINE).await), maps(server.client(ADMIN).await));
    for _ in 0..20 {
        moorline.list(&Default::default()).await.expect("a list");
    }
    admin.get("absent").await.expect_err("it is absent");

    let requests = mark.requests().await.in_namespace(&namespace);
    let listed = requests.clone().by_user(MOORLINE);
    assert_eq!(listed.tally(), BTreeMap::from([("list configmaps".to_owned(), 20)]));
    let missed = requests.by_user(ADMIN);
    assert_eq!(missed.tally(), BTreeMap::from([("get configmaps".to_owned(), 1)]));
    assert_eq!(missed.as_slice()[0].code, 404);
}

/// Only the real server refuses anybody anything.
#[tokio::test]
async fn who_has_no_rights_is_refused_and_counted_as_well() {
    let Some(server) = Server::real() else { return };
    let namespace = server.namespace("refused").await;
    let mark = server.mark().await;
    let maps: Api<ConfigMap> = Api::namespaced(server.client(TENANT).await, &namespace);
    maps.get("absent").await.expect_err("the tenant has no rights");
    let refused = mark.requests().await.in_namespace(&namespace).by_user(TENANT);
    assert_eq!(refused.tally(), BTreeMap::from([("get configmaps".to_owned(), 1)]));
    assert_eq!(refused.as_slice()[0].code, 403);
}

async fn a_second_equal_apply_of_fifty_objects_of_ten_kinds_changes_no_resource_version(server: &Server) {
    let namespace = server.namespace("fifty").await;
    let manager = format!("moorline/{namespace}/fifty");
    let objects = Applicable::all(server.client(ADMIN).await, &namespace, fifty(&namespace)).await;
    let moorline = server.client(MOORLINE).await;

    let first = server.mark().await;
    apply_all(&objects, &moorline, &manager).await;
    assert_eq!(first.requests().await.by_user(MOORLINE).of_this_test().tally(), patches_of_fifty());

    let resting = resting_versions(&server.client(ADMIN).await, &objects).await;
    let second = server.mark().await;
    let applied = apply_all(&objects, &moorline, &manager).await;
    let requests = second.requests().await;
    assert_eq!(applied.len(), 50);
    assert_eq!(applied, resting, "an equal apply changed what it should have left alone");
    assert_eq!(requests.by_user(MOORLINE).of_this_test().tally(), patches_of_fifty());
}

async fn the_table_of_scopes_is_what_the_server_says(server: &Server) {
    let discovery = Discovery::new(server.client(ADMIN).await)
        .run_aggregated()
        .await
        .expect("the API server tells its kinds");
    let scope = |scope| match scope {
        Scope::Namespaced => desired::Scope::Namespaced,
        Scope::Cluster => desired::Scope::Cluster,
    };
    // A kind that cannot be listed and patched cannot be held to anything: reviews, bindings, component status.
    let served: BTreeMap<GroupKind, desired::Scope> = discovery
        .groups()
        .flat_map(|group| group.recommended_resources())
        .filter(|(_, can)| can.supports_operation("list") && can.supports_operation("patch"))
        .map(|(kind, capabilities)| (GroupKind::new(&kind.group, &kind.kind), scope(capabilities.scope)))
        .collect();
    let builtin = Scopes::builtin();
    let known: BTreeMap<GroupKind, desired::Scope> =
        builtin.iter().map(|(kind, scope)| (kind.clone(), scope)).collect();
    let missing: Vec<_> = served.iter().filter(|(kind, scope)| known.get(kind) != Some(scope)).collect();
    assert!(missing.is_empty(), "not in the table, or otherwise: {missing:?}");
    let unserved: Vec<_> =
        known.keys().filter(|kind| !served.contains_key(kind)).map(ToString::to_string).collect();
    // Served only where an alpha or beta feature is on, or on older servers.
    let expect: [&str; 0] = [];
    assert_eq!(unserved, expect);
}

async fn a_deleted_namespace_is_emptied_by_the_controllers_and_then_gone(server: &Server) {
    let name = server.namespace("deleted").await;
    let admin = server.client(ADMIN).await;
    let kept: ConfigMap =
        serde_json::from_value(serde_json::json!({"metadata": {"name": "content"}})).expect("a ConfigMap");
    Api::namespaced(admin.clone(), &name)
        .create(&PostParams::default(), &kept)
        .await
        .expect("a ConfigMap in a new namespace");
    let namespaces: Api<Namespace> = Api::all(admin);
    namespaces.delete(&name, &DeleteParams::default()).await.expect("the deletion begins");
    let deadline = Instant::now() + DEADLINE;
    while let Some(namespace) = namespaces.get_opt(&name).await.expect("an answer about the namespace") {
        assert!(Instant::now() < deadline, "still there after {DEADLINE:?}: {:?}", namespace.status);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
