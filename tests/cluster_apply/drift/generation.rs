//! The generation, which moves where the table trusts it: it moves with the spec and not with a label.

use moorline::observed::generation_is_trusted;
use serde_json::{Value, json};

use super::ground::Ground;
use super::place::MERGE;

/// Objects, each with its path and a change of what its generation counts; a unit test of the table compares the kinds.
const KINDS: &str = include_str!("../../drift/generation.json");

#[tokio::test]
async fn a_generation_that_is_trusted_moves_with_the_spec() {
    let Some(ground) = Ground::new().await else { return };
    let kinds: Vec<Value> = serde_json::from_str(KINDS).expect("the fixture is JSON");
    for mut kind in kinds {
        let resource = kind["resource"].as_str().expect("a resource").to_owned();
        let (change, body) = (kind["change"].take(), kind["body"].take());
        let group =
            body["apiVersion"].as_str().and_then(|it| it.split_once('/')).map_or("", |it| it.0).to_owned();
        let name = body["kind"].as_str().expect("a kind").to_owned();
        let namespace = if kind["cluster"] == true { "" } else { &ground.namespace };
        let place = ground.place_in(namespace, kind["name"].as_str(), (&resource, body));
        place.apply().await;
        let generation = async || place.seen().await.metadata("generation").and_then(Value::as_i64);
        let first = generation().await;
        assert!(first.is_some_and(|first| first > 0), "{name} has none");
        place.patch("x", MERGE, json!({"metadata": {"labels": {"x": "y"}}})).await;
        // EndpointSlices count labels as well: each is looked at once more than it need be.
        assert_eq!(generation().await != first, kind["labels"] == true, "{name}: a label is no spec");
        let first = generation().await;
        place.patch("x", MERGE, change).await;
        assert!(generation().await > first, "{name}");
        assert!(generation_is_trusted(&group, &name), "{name}");
    }
}
