//! Tests of the generators whose sources are lists: tags and pull requests.
//!
//! In: generators and lists. Out: the names of the Syncs, or an error.

use moorline_api::SyncSet;
use serde_json::{Value, json};

use crate::{CompiledSet, PullRequest, SetChildren, SetOwner, SourceAnswers, generate};

fn names(generators: &Value, name: &str, answers: &SourceAnswers) -> Result<Vec<String>, String> {
    let raw = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet",
        "metadata": {"namespace": "team", "name": "apps", "uid": "u1"},
        "spec": {
            "generators": generators, "name": name,
            "template": {"spec": {
                "source": {"git": {"url": "https://git.example.com/apps.git"}}, "serviceAccountName": "preview",
            }},
        },
    });
    let set: SyncSet = serde_json::from_value(raw.clone()).unwrap();
    let parameters = generate(&set.spec, answers)?;
    let compiled = CompiledSet::compile(&set, &raw).map_err(|errors| errors.join("; "))?;
    let built = SetChildren::build(&compiled, &SetOwner::of(&raw), &parameters, |_, _| Ok(()));
    Ok(built.map_err(|it| it.join("; "))?.iter().map(|child| child.name.clone()).collect())
}

#[test]
fn tags_and_pull_requests_are_parameters() {
    let tags = json!({"ociTags": {"url": "oci://registry.example.com/shop", "semver": "1.x"}});
    let host = json!({"url": "https://api.github.com", "secretRef": {"name": "token"}});
    let pulls = json!({"pullRequests": {"github": host, "repository": "team/shop"}});
    let envs = json!({"list": {"elements": [{"env": "dev"}]}});
    let listed = ["1.10.0", "1.9.0"].map(str::to_owned).to_vec();
    let pull = |number| PullRequest { number, commit: "c0ffee".to_owned(), target_branch: "main".to_owned() };
    let of_tags = SourceAnswers { tags: vec![listed], ..SourceAnswers::default() };
    let of_pulls = SourceAnswers { pull_requests: vec![vec![pull(7), pull(9)]], ..SourceAnswers::default() };
    let tag = "params.tag.name.replace('.', '-')";
    let number = "'pr-' + string(params.pull.number)";
    let both = "string(params.pull.number) + '-' + params.pull.targetBranch + '-' + params.env";
    for (generators, name, answers, expect) in [
        (json!([tags]), tag, &of_tags, Ok(["apps-1-10-0", "apps-1-9-0"])),
        (json!([pulls]), number, &of_pulls, Ok(["apps-pr-7", "apps-pr-9"])),
        (json!([{"matrix": [pulls, envs]}]), both, &of_pulls, Ok(["apps-7-main-dev", "apps-9-main-dev"])),
        (json!([tags]), tag, &of_pulls, Err("a list of tags is missing")),
        (json!([pulls]), number, &of_tags, Err("a list of tags is missing")),
        (json!([pulls]), number, &SourceAnswers::default(), Err("a list of pull requests is missing")),
        (json!([{"ociTags": tags["ociTags"], "list": envs["list"]}]), tag, &of_tags, Err("exactly one of")),
    ] {
        let found = names(&generators, name, answers);
        match expect {
            Ok(expect) => assert_eq!(found, Ok(expect.map(str::to_owned).to_vec()), "{generators}"),
            Err(expect) => assert!(found.is_err_and(|error| error.contains(expect)), "{generators}"),
        }
    }
}
