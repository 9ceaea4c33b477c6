//! Tests of plans for viewers, with a sandbox and a repository in this process.

use std::pin::Pin;
use std::task::{Context, Waker};

use futures::future::join_all;
use serde_json::json;

use super::*;
use crate::controller::targets::tests::{Hub, map};

/// A key that signed nothing here.
const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMcoBw8b36bCa6DhJuox+18w0QLHQwpQBZVSgFVVKF12";

/// Creates a suspended Sync, and waits until it may be planned.
async fn suspend(hub: &Hub, name: &str, more: serde_json::Value) -> SyncName {
    let mut spec = json!({"suspend": true});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    hub.sync(name, &spec);
    let sync = SyncName::new("moorline", name);
    hub.until("it is suspended", |hub| hub.context.reporting.held_back.get(&sync).is_some()).await;
    sync
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_is_of_a_commit_with_a_trusted_signature() {
    let hub = Hub::new();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "signers", "namespace": "moorline"},
        "stringData": {"team": KEY},
    });
    hub.home.apply("/api/v1/namespaces/moorline/secrets", &secret, "test").unwrap();
    let git = json!({
        "url": format!("file://{}", hub.books.path().display()),
        "verify": {"mode": "HEAD", "secretRef": {"name": "signers"}},
    });
    let views = LiveViews::new(hub.context.clone());
    let signed = suspend(&hub, "home", json!({"source": {"git": git}})).await;
    let refused = views.next_plan(&signed).await.unwrap_err();
    assert!(refused.contains("is not signed"), "{refused}");
    let any = suspend(&hub, "east", json!({})).await;
    assert_eq!(views.next_plan(&any).await.unwrap().changes.created, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_names_two_hundred_changes_and_counts_the_others() {
    let hub = Hub::new();
    let views = LiveViews::new(hub.context.clone());
    for (name, count) in [("many", 200), ("more", 203)] {
        let files: Vec<_> = (0..count)
            .map(|nth| (format!("{name}/{nth:03}.yaml"), map(&format!("{name}-{nth:03}"), name)))
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (&**path, &**text)).collect();
        hub.books.commit(name, &files, &[]).unwrap();
    }
    for (name, created, lines, last) in
        [("many", 200, 200, "create ConfigMap shop/many-199"), ("more", 203, 201, "and 3 more")]
    {
        let sync = suspend(&hub, name, json!({})).await;
        let plan = views.next_plan(&sync).await.unwrap();
        let changes = &plan.changes;
        assert_eq!((changes.created, changes.lines.len()), (created, lines), "{name}");
        assert_eq!(changes.lines.last().map(String::as_str), Some(last));
    }
}

/// The refusal of one more viewer, who is not kept waiting.
async fn refused_at_once(views: &LiveViews, sync: &SyncName) -> String {
    let asked = tokio::time::timeout(Duration::from_secs(60), views.next_plan(sync));
    asked.await.expect("nobody waits for a place").unwrap_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_plan_is_made_at_a_time_and_the_viewers_who_wait_have_a_bound() {
    let hub = Hub::new();
    let views = LiveViews::new(hub.context.clone());
    let home = suspend(&hub, "home", json!({})).await;
    let east = suspend(&hub, "east", json!({})).await;
    let mut context = Context::from_waker(Waker::noop());
    // A plan of another Sync is made at this moment.
    let turn = views.plan_turn.acquire().await.unwrap();
    let ask = |nth: usize| Box::pin(views.next_plan(if nth.is_multiple_of(2) { &home } else { &east }));
    let mut waiting: Vec<_> = (0..MAX_PLAN_VIEWERS).map(ask).collect();
    for viewer in &mut waiting {
        assert!(Pin::new(viewer).poll(&mut context).is_pending());
    }
    let refusal = "too many plans are asked for; try again in a moment";
    assert_eq!(refused_at_once(&views, &home).await, refusal);
    assert_eq!(MAX_PLAN_VIEWERS, 32);
    // A viewer who goes leaves the place to another one.
    drop(waiting.pop());
    waiting.push(ask(1));
    assert!(Pin::new(waiting.last_mut().unwrap()).poll(&mut context).is_pending());
    assert_eq!(refused_at_once(&views, &home).await, refusal);
    drop(turn);
    let plans: Vec<_> = join_all(waiting).await.into_iter().map(Result::unwrap).collect();
    for (nth, plan) in plans.iter().enumerate() {
        assert!(Arc::ptr_eq(plan, &plans[nth % 2]), "viewers of a Sync share one plan");
    }
    assert!(Arc::ptr_eq(&views.next_plan(&home).await.unwrap(), &plans[0]));
}
