//! Tests: what a closed window holds and lets through, with a daemon and a cluster in this process.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::{ListState, run_beside};
use super::note_failure;
use crate::api::{SyncName, change_window_definition, namespace_change_window_definition};
use crate::cluster::change_windows::WindowKind;
use crate::controller::targets::tests::{Hub, SYNCS, map};
use crate::windows::WindowState;

const WINDOWS: &str = "/apis/moorline.dev/v1alpha1/changewindows";

fn sync(hub: &Hub) -> Value {
    hub.home.get(&format!("{SYNCS}/home")).unwrap_or_default()
}

/// The revision that a window holds, and the hash of its plan.
fn held(hub: &Hub) -> Option<(String, String)> {
    let held = &sync(hub)["status"]["heldByWindow"];
    Some((held["revision"].as_str()?.to_owned(), held["hash"].as_str()?.to_owned()))
}

fn freeze(hub: &Hub) {
    let body = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "ChangeWindow", "metadata": {"name": "freeze"},
        "spec": {"effect": "Deny"},
    });
    hub.home.apply(WINDOWS, &body, "test").unwrap();
}

/// Closes the window once it was opened: the daemon has read it.
async fn freeze_and_wait(hub: &Hub) {
    freeze(hub);
    let is_read = |hub: &Hub| {
        let window = hub.home.get(&format!("{WINDOWS}/freeze")).unwrap_or_default();
        window["status"]["conditions"][0]["status"] == "True"
    };
    hub.until("the window is read", is_read).await;
}

fn annotate(hub: &Hub, hash: &str, reason: &str) {
    let annotations = json!({
        "moorline.dev/override": hash, "moorline.dev/override-by": format!("{hash} ada"),
        "moorline.dev/override-reason": reason,
    });
    let patch = json!({"metadata": {"annotations": annotations}});
    hub.home.merge(&format!("{SYNCS}/home"), &patch, "test").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_window_holds_what_is_new_and_an_override_is_of_one_plan() {
    let hub = Hub::new();
    let is = |hub: &Hub, name: &str, place: &str| Hub::place(&hub.home, name).as_deref() == Some(place);
    hub.home.define(&change_window_definition().unwrap()).unwrap();
    hub.home.define(&namespace_change_window_definition().unwrap()).unwrap();
    freeze(&hub);
    tokio::spawn(run_beside(hub.context.clone(), std::future::pending::<()>()));
    hub.sync("home", &json!({}));
    hub.until("the first revision is held", |hub| held(hub).is_some()).await;
    assert_eq!(Hub::place(&hub.home, "settings"), None);
    hub.home.delete(&format!("{WINDOWS}/freeze")).unwrap();
    hub.until("the first is applied", |hub| is(hub, "settings", "home") && is(hub, "extra", "home")).await;

    freeze_and_wait(&hub).await;
    hub.books.commit("second", &[("home/settings.yaml", &map("settings", "second"))], &[]).unwrap();
    hub.look("home");
    hub.until("the second is held", |hub| held(hub).is_some()).await;
    let (_, second) = held(&hub).unwrap();
    // Repair goes on; another spec of the applied revision is new.
    Hub::edit(&hub.home, "settings");
    hub.until("it is repaired", |hub| is(hub, "settings", "home")).await;
    annotate(&hub, "no-such-plan", "CVE");
    hub.home.merge(&format!("{SYNCS}/home"), &json!({"spec": {"path": "./east"}}), "test").unwrap();
    hub.until("it has another plan", |hub| held(hub).is_some_and(|(_, hash)| hash != second)).await;
    annotate(&hub, &second, "CVE");
    hub.until("it is of another plan", |hub| hub.message("home").contains("about another plan")).await;
    assert!(is(&hub, "settings", "home") && is(&hub, "extra", "home"));
    let (_, third) = held(&hub).unwrap();
    annotate(&hub, &third, "CVE");
    hub.until("the override lets it in", |hub| is(hub, "settings", "east") && is(hub, "extra", "east")).await;
    let overridden = &sync(&hub)["status"]["revision"]["overridden"];
    assert_eq!((&overridden["by"], &overridden["hash"]), (&json!("ada"), &json!(third)));

    // A list that has failed is not waited for.
    let center = &hub.context.windows;
    center.known.send_modify(|known| {
        known.windows.clear();
        known.lists = [ListState::Unknown(None), ListState::Known];
    });
    note_failure(&hub.context, WindowKind::Cluster, "forbidden");
    assert!(center.known.borrow().is_answered());
    let sync = SyncName::new("moorline", "home");
    let state = center.state_of(&hub.context.cluster, &sync, &BTreeMap::new()).await;
    let WindowState::Closed(closed) = state else { panic!("unknown windows are closed") };
    assert!(closed.to_string().ends_with("forbidden"), "{closed}");
}
