//! The forms of a proof: the one that the daemon writes counts, and no other.

use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::proof::{annotation, until_unproven};
use moorline_test_support::daemon::until;
use moorline_test_support::scene::{Scene, many};

/// Writes a real proof in another form.
type Form = fn(&str) -> String;

#[tokio::test]
async fn a_proof_counts_as_it_was_written_and_in_no_other_form() {
    let Some(scene) = Scene::new("proof-forms").await else { return };
    let (daemon, _) = scene.applied(&many(9, "one"), json!({})).await;
    drop(daemon);
    let proof = async |name: &str| {
        annotation(&scene.maps().get(name).await.unwrap(), "moorline.dev/proof").expect("a proof")
    };
    let editor = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    let forms: [(&str, Form); 7] = [
        ("a-1", |real| real[..real.len() - 2].to_owned()),
        ("a-2", |real| real.to_uppercase()),
        ("a-3", |real| format!("00000000{}", &real[8..])),
        ("a-4", |real| format!("{real}\n")),
        ("a-5", |real| format!("{real},{real}")),
        ("a-6", |real| real[9..].to_owned()),
        ("a-7", |real| format!("{}:{}", &real[..8], "0".repeat(64))),
    ];
    for (name, form) in forms {
        let annotations = json!({"moorline.dev/proof": form(&proof(name).await)});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        scene.maps().patch(name, &editor, &patch).await.unwrap();
    }
    let files: Vec<String> = (0..8).map(|at| format!("a-{at}.json")).collect();
    scene.remove(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let _daemon = scene.daemon();
    until("what is proven is pruned", async || {
        scene.maps().get_opt("a-0").await.unwrap().is_none().then_some(())
    })
    .await;
    until_unproven(&scene, 7).await;
    scene.assert_calm("while seven objects are not proven").await;
    assert_eq!(scene.values().await.len(), 8);
}
