//! Plans of pull requests against the real API server: what a stranger proposes, and what is not shown for it.

use moorline_test_support::person::moorline;
use moorline_test_support::rest::send_request;
use moorline_test_support::scene::{Scene, config_map, file};
use serde_json::{Value, json};

#[tokio::test]
async fn a_pull_request_is_planned_without_secrets() {
    let Some(scene) = Scene::new("pull-request").await else { return };
    let maps = format!("/api/v1/namespaces/{}/configmaps", scene.namespace);
    let theirs: Value = serde_json::from_str(&config_map("theirs", "hidden-of-others")).unwrap();
    send_request(&scene.admin, "POST", &maps, &theirs).await.unwrap();
    let vars = json!({"render": {"substitute": {"vars": {"COLOUR": "hidden-variable"}}}});
    let (_daemon, base) =
        scene.applied(&[file("a", "${COLOUR}"), file("b", "1"), file("old", "1")], vars).await;
    scene.edit("b", "hidden-drift").await;
    scene
        .until_values(
            &[
                file("a", "hidden-variable"),
                file("b", "1"),
                file("old", "1"),
                file("theirs", "hidden-of-others"),
            ],
            "the drift is repaired",
        )
        .await;

    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"key": "hidden-secret"}});
    let proposed = [
        file("a", "blue"),
        file("b", "@everyone"),
        file("theirs", "x"),
        file("new", "1"),
        ("key.json".to_owned(), secret.to_string()),
    ];
    let proposed: Vec<_> = proposed.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    scene.work.git(&["rm", "-q", "--", "old.json"]);
    let head = scene.work.commit(&proposed);
    scene.work.git(&["push", "-q", "origin", "HEAD:refs/pull/7/head"]);
    let told = moorline(&scene, &["plan", "--sync", "shop", "--pull-request", "7", "--cluster-name", "prod"]);
    assert_eq!(told.code, 2, "{}", told.words);
    let namespace = &scene.namespace;
    let text = &told.data;
    assert!(text.starts_with(&format!("<!-- moorline-plan: prod/{namespace}/shop ")), "{text}");
    for part in [
        &format!(
            "`{head}` against `main@{base}`: **2 to create, 1 to adopt, 2 to update, 1 to prune**, 0 as before."
        ),
        &format!("- `ConfigMap {namespace}/theirs`\n"),
        &format!("- `Secret {namespace}/key`\n"),
        "`data.key`: `${COLOUR}` → `blue`\n",
        "`data.key`: `1` → `@everyone`\n",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains("hidden"), "{text}");

    // A commit that cannot be rendered gets a comment as well.
    scene.work.commit(&[
        ("bad.yaml", "a: [`@all`"),
        ("kustomization.yaml", "resources: [https://evil.example/x?ref=main]"),
    ]);
    scene.work.git(&["push", "-q", "-f", "origin", "HEAD:refs/pull/7/head"]);
    let told = moorline(&scene, &["plan", "--sync", "shop", "--pull-request", "7"]);
    assert_eq!(told.code, 1, "{}", told.words);
    assert!(told.data.contains("This commit cannot be planned:"), "{} {}", told.data, told.words);
    let told = moorline(&scene, &["plan", "--sync", "shop", "--pull-request", "8"]);
    assert!(told.code == 1 && told.data.is_empty(), "{} {}", told.data, told.words);
}
