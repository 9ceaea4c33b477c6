//! The systems that people run, on a real API server: a definition, an operator and resources in one commit come up in
//! order, are as healthy as their operators say, and go away in order.
//!
//! The operators are the test: it writes the statuses and lets the finalizers go. Each system is a Sync of its own, and
//! all of them are followed by one daemon.

pub(crate) mod conversion;
mod converted;
pub(crate) mod databases;
mod guarded;
pub(crate) mod kubelet;
pub(crate) mod life;
mod namesakes;
mod platform;
mod refused;
pub(crate) mod table;

use conversion::Conversion;
use futures::future::join_all;
use kubelet::Kubelet;
use moorline_test_support::audit::AuditMark;
use moorline_test_support::scene::Scene;
use table::SYSTEMS;

#[tokio::test]
async fn systems_come_up_in_order_and_go_away_in_order() {
    let Some(scene) = Scene::new("systems").await else { return };
    let _kubelet = Kubelet::start(&scene.admin);
    let mark = AuditMark::set(&scene.plane).await;
    let conversion = Conversion::start(&scene);
    let commit = life::push(&scene, &conversion, SYSTEMS.iter().map(|system| system.folder));
    let _daemon = scene.daemon();
    join_all(SYSTEMS.iter().map(|system| life::follow(&scene, system))).await;

    join_all(SYSTEMS.iter().map(|system| life::begins(&scene, system))).await;
    join_all(SYSTEMS.iter().map(|system| life::becomes_well(&scene, system, &commit))).await;
    let requests = mark.requests().await;
    SYSTEMS.iter().for_each(|system| life::assert_came_in_order(&requests, system));
    scene.settle().await;
    scene.assert_calm("while all systems are well").await;

    join_all(SYSTEMS.iter().map(|system| life::breaks(&scene, system))).await;
    join_all(SYSTEMS.iter().map(|system| life::becomes_well(&scene, system, &commit))).await;
    scene.settle().await;

    let mark = AuditMark::set(&scene.plane).await;
    life::remove(&scene, SYSTEMS.iter().map(|system| system.folder));
    join_all(SYSTEMS.iter().map(|system| life::waits_for_a_person(&scene, system))).await;
    // The needed rights are complete once every Sync has read the commit.
    scene.settle().await;
    let requests = mark.requests().await;
    SYSTEMS.iter().for_each(|system| life::assert_operator_stays(&requests, system));
    join_all(SYSTEMS.iter().map(|system| life::goes_once_approved(&scene, system))).await;
    let requests = mark.requests().await;
    SYSTEMS.iter().for_each(|system| life::assert_went_in_order(&requests, system));
    for system in &SYSTEMS {
        for resource in system.resources {
            let definition = format!("{}/{}", life::DEFINITIONS, resource.definition());
            life::until_gone(&scene, &definition).await;
            if let Some(namespace) = resource.namespace {
                life::until_gone(&scene, &format!("/api/v1/namespaces/{namespace}")).await;
            }
        }
    }
    join_all(SYSTEMS.iter().map(|system| scene.delete_sync(system.folder))).await;
}
