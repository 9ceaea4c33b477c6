//! One line says which revision is refused and which one is kept: in the status, in `moorline status` and on the page.

use serde_json::{Value, json};

use moorline_test_support::daemon::until;
use moorline_test_support::kept::until_revision_held;
use moorline_test_support::page_requests::get;
use moorline_test_support::person::moorline;
use moorline_test_support::scene::{Scene, file, text};

#[tokio::test(flavor = "multi_thread")]
async fn one_line_says_everywhere_what_is_refused_and_what_is_kept() {
    let Some(scene) = Scene::new("kept-told").await else { return };
    let daemon = scene.daemon_with(&["--leader-election=false", "--page", "127.0.0.1:0"]);
    let kept = scene.push(&[file("app/a", "one"), file("app/b", "one")]);
    scene.sync("shop", json!({"path": "app"})).await;
    scene.until_ready("shop", &kept).await;
    let refused = scene.push(&[text("app/bad.yaml", "a: [")]);
    scene.nudge("shop", "broken").await;
    until_revision_held(&scene, "YamlInvalid", &refused, &kept).await;
    let line = scene.status("shop", "/conditions/0/message").await.as_str().unwrap().to_owned();
    assert!(line.starts_with(&format!("main@{refused} cannot be applied: ")), "{line}");
    assert!(line.ends_with(&format!("; main@{kept} stays applied")) && !line.contains('\n'), "{line}");

    let one = moorline(&scene, &["status", "shop"]);
    assert_eq!(one.code, 1, "{}", one.data);
    assert_eq!(one.data.lines().filter(|shown| shown.contains(&line)).count(), 1, "{}", one.data);
    let wide = moorline(&scene, &["status", "-o", "wide"]);
    let row = wide.data.lines().nth(1).unwrap();
    assert!(row.ends_with(&line) && row.contains("YamlInvalid"), "{}", wide.data);

    let address = until("the page is there", async || daemon.page()).await;
    let path = format!("/syncs/{}/shop", scene.namespace);
    let page = until("the page tells it", async || {
        let page = get(&address, &path);
        (page.status == 200 && page.body.contains(&line)).then_some(page.body)
    })
    .await;
    assert!(page.contains(&format!("main@{kept}")) && page.contains(&format!("main@{refused}")));
    let told: Value = serde_json::from_str(&get(&address, &format!("/api/v1{path}")).body).unwrap();
    assert!(told.to_string().contains(&line), "{told}");
    assert_eq!(told["revision"]["held"]["revision"], format!("main@{kept}"), "{told}");
    assert_eq!(told["state"], "Failing");

    // A sound commit ends it; the line stays in the history only.
    scene.work.git(&["rm", "-q", "app/bad.yaml"]);
    let mended = scene.push(&[]);
    scene.nudge("shop", "mended").await;
    scene.until_ready("shop", &mended).await;
    let one = moorline(&scene, &["status", "shop"]);
    assert!(one.code == 0 && !one.data.contains("cannot be applied"), "{}", one.data);
    until("the page says that all is well", async || {
        let told: Value = serde_json::from_str(&get(&address, &format!("/api/v1{path}")).body).ok()?;
        (told["state"] == "Synced").then_some(())
    })
    .await;
    scene.delete_sync("shop").await;
}
