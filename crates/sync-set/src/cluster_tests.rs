//! Tests of clusters of a set: the Secret of a Sync comes from the daemon's own list.
//!
//! In: generators, files, and Secrets. Out: the cluster of each Sync, or an error.

use moorline_api::SyncSet;
use moorline_core::tree::FileTree;
use serde_json::{Value, json};

use crate::{
    CompiledSet, ListedSecret, MAX_SETS, SetChildren, SetOwner, SourceAnswers, cluster_generators, generate,
};

fn children(raw: &Value, trees: &[FileTree]) -> Result<SetChildren, String> {
    let set: SyncSet = serde_json::from_value(raw.clone()).unwrap();
    // Every generator of clusters finds these.
    let secret = |name: &str, env: &str| {
        let item =
            json!({"metadata": {"name": name, "labels": {"env": env}, "annotations": {"region": "eu"}}});
        ListedSecret::of(item.as_object().unwrap()).unwrap()
    };
    let found = vec![secret("west", "dev"), secret("east", "prod")];
    let secrets = vec![found; cluster_generators(&set.spec).len()];
    let answers = SourceAnswers { files: trees.to_vec(), secrets, ..SourceAnswers::default() };
    let parameters = generate(&set.spec, &answers)?;
    let compiled = CompiledSet::compile(&set, raw).map_err(|errors| errors.join("; "))?;
    SetChildren::build(&compiled, &SetOwner::of(raw), &parameters, |_, _| Ok(())).map_err(|it| it.join("; "))
}

fn list(elements: Value) -> Value {
    json!({"list": {"elements": elements}})
}

/// Generators, a name, the value of the field, files, and each Sync with its cluster or a part of
/// the error.
type ClusterCase = (Value, &'static str, &'static str, Vec<FileTree>, Result<&'static str, &'static str>);

fn cluster_cases() -> Vec<ClusterCase> {
    let selector = json!({"matchLabels": {"env": "prod"}});
    let clusters = json!({"clusters": {"selector": selector}});
    let keyed = json!({"clusters": {"selector": selector, "key": "value"}});
    let git = json!({"git": {"url": "https://git.example.com/apps.git", "files": {"include": ["app.yaml"]}}});
    let forged = || vec![FileTree::from_texts([("app.yaml", "cluster: {name: evil}\n")])];
    let named = |name: &str| list(json!([{"cluster": {"name": name}, "tier": "blue"}]));
    let merge =
        |one: &Value, other: &Value, key: &str| json!({"merge": {"keys": [key], "generators": [one, other]}});
    let by_cluster = "params.cluster.name";
    vec![
        (json!([clusters]), by_cluster, by_cluster, vec![], Ok("apps-east east, apps-west west")),
        (json!([keyed]), by_cluster, by_cluster, vec![], Ok("apps-east east/value, apps-west west/value")),
        (
            json!([{"matrix": [clusters, list(json!([{"app": "a"}, {"app": "b"}]))]}]),
            "params.cluster.labels.env + '-' + params.cluster.annotations.region + '-' + params.app",
            by_cluster,
            vec![],
            Ok("apps-dev-eu-a west, apps-dev-eu-b west, apps-prod-eu-a east, apps-prod-eu-b east"),
        ),
        (
            json!([merge(&clusters, &named("east"), "cluster.name")]),
            "has(params.tier) ? params.tier : params.cluster.name",
            by_cluster,
            vec![],
            Ok("apps-blue east, apps-west west"),
        ),
        (
            json!([merge(&named("east"), &clusters, "cluster.name")]),
            by_cluster,
            by_cluster,
            vec![],
            Ok("apps-east east"),
        ),
        // A file or a list names no Secret.
        (json!([named("evil")]), by_cluster, by_cluster, vec![], Err("no clusters generator gives")),
        (json!([git]), by_cluster, by_cluster, forged(), Err("no clusters generator gives")),
        (
            json!([merge(&named("evil"), &clusters, "cluster.name")]),
            by_cluster,
            by_cluster,
            vec![],
            Err("no clusters generator gives"),
        ),
        (
            json!([{"matrix": [clusters, git]}]),
            by_cluster,
            by_cluster,
            forged(),
            Err("both generators of matrix give the parameter cluster"),
        ),
        (
            json!([merge(
                &clusters,
                &list(json!([{"cluster": {"labels": {"env": "prod"}, "name": "evil"}}])),
                "cluster.labels.env"
            )]),
            by_cluster,
            by_cluster,
            vec![],
            Err("changes the parameter cluster.name of the Secret east"),
        ),
        (
            json!([{"matrix": [clusters, clusters]}]),
            by_cluster,
            by_cluster,
            vec![],
            Err("both generators of matrix give the parameter cluster"),
        ),
        (
            json!([{"matrix": [clusters, keyed]}]),
            by_cluster,
            by_cluster,
            vec![],
            Err("both generators of matrix give a cluster"),
        ),
        (json!([clusters]), by_cluster, "params.cluster.labels.env", vec![], Err("may be set to params")),
        (json!([clusters]), by_cluster, "'east'", vec![], Err("may be set to params")),
        (json!([clusters]), "'one'", by_cluster, vec![], Err("two sets of parameters give the name")),
    ]
}

#[test]
fn the_cluster_of_a_sync_comes_from_a_clusters_generator_alone() {
    const FIELD: &str = "/spec/cluster/secretRef/name";
    for (generators, name, value, trees, expect) in cluster_cases() {
        let raw = json!({
            "metadata": {"namespace": "team", "name": "apps", "uid": "u1"},
            "spec": {
                "generators": generators, "name": name, "set": [{"field": FIELD, "value": value}],
                "template": {"spec": {"source": {"git": {"url": "https://git.example.com/apps.git"}}}},
            },
        });
        let found = children(&raw, &trees).map(|children| {
            let texts = children.iter().map(|child| {
                let of = &child.manifest["spec"]["cluster"]["secretRef"];
                let key = of["key"].as_str().map(|key| format!("/{key}")).unwrap_or_default();
                format!("{} {}{key}", child.name, of["name"].as_str().unwrap())
            });
            texts.collect::<Vec<_>>().join(", ")
        });
        match expect {
            Ok(expect) => assert_eq!(found.as_deref(), Ok(expect), "{generators}"),
            Err(expect) => {
                assert!(found.as_ref().is_err_and(|error| error.contains(expect)), "{generators}: {found:?}");
            }
        }
    }
}

#[test]
fn more_secrets_than_a_set_may_have_are_no_answer_in_any_place() {
    let clusters = json!({"clusters": {"selector": {"matchLabels": {"env": "prod"}}}});
    let merged = json!({"merge": {"keys": ["cluster.name"], "generators": [list(json!([])), clusters]}});
    for generator in [clusters, merged] {
        let raw = json!({
            "metadata": {"namespace": "team", "name": "apps", "uid": "u1"},
            "spec": {
                "generators": [generator.clone()], "name": "params.cluster.name",
                "template": {"spec": {"source": {"git": {"url": "https://git.example.com/apps.git"}}}},
            },
        });
        let set: SyncSet = serde_json::from_value(raw).unwrap();
        let generated = |count: usize| {
            let item = |nth: usize| json!({"metadata": {"name": format!("c-{nth}")}});
            let secret = |nth: usize| ListedSecret::of(item(nth).as_object().unwrap());
            let secrets: Vec<ListedSecret> = (0..count).filter_map(secret).collect();
            generate(&set.spec, &SourceAnswers { secrets: vec![secrets], ..SourceAnswers::default() })
                .map(drop)
        };
        assert_eq!(generated(MAX_SETS), Ok(()), "{generator}");
        let refused = generated(MAX_SETS + 1).expect_err("there are too many");
        assert!(refused.contains("more than 500"), "{generator}: {refused}");
    }
}
