//! Tests of SyncSets: what parameters, templates and live Syncs become.
//!
//! In: literal resources and trees. Out: names, errors and plans.

use moorline_api::SyncSet;
use moorline_core::tree::FileTree;
use moorline_sync_set::{
    CompiledSet, ExistingSync, PlannedRemoval, RemovalPolicy, SetChildren, SetOwner, SetPlan, SetStep,
    SourceAnswers, generate, git_generators, plan_children, read_folders, select_files,
};
use proptest::prelude::*;
use serde_json::{Value, json};
mod whole_set;

fn resource(generators: &Value, rest: Value) -> Value {
    let mut set = json!({
        "apiVersion": "moorline.dev/v1alpha1", "kind": "SyncSet",
        "metadata": {"namespace": "team", "name": "apps", "uid": "u1"},
        "spec": {
            "generators": generators,
            "name": "params.name",
            "template": {"spec": {"source": {"git": {"url": "https://git.example.com/apps.git"}}}},
        },
    });
    if let Value::Object(rest) = rest {
        rest.into_iter().for_each(|(field, value)| set["spec"][field] = value);
    }
    set
}

fn children(raw: &Value, trees: &[FileTree]) -> Result<SetChildren, String> {
    let set: SyncSet = serde_json::from_value(raw.clone()).unwrap();
    let answers = SourceAnswers { files: trees.to_vec(), ..SourceAnswers::default() };
    let parameters = generate(&set.spec, &answers)?;
    let compiled = CompiledSet::compile(&set, raw).map_err(|errors| errors.join("; "))?;
    SetChildren::build(&compiled, &SetOwner::of(raw), &parameters, |_, _| Ok(())).map_err(|it| it.join("; "))
}

fn names(raw: &Value, trees: &[FileTree]) -> Result<Vec<String>, String> {
    Ok(children(raw, trees)?.iter().map(|child| child.name.clone()).collect())
}

fn list(elements: Value) -> Value {
    json!({"list": {"elements": elements}})
}

fn git(field: &str, include: &[&str], exclude: &[&str]) -> Value {
    json!({"git": {"url": "https://git.example.com/apps.git", field: {"include": include, "exclude": exclude}}})
}

fn tree() -> FileTree {
    FileTree::from_texts([
        ("apps/shop/app.yaml", "name: shop\ntier: prod\n"),
        ("apps/blog/app.yaml", "name: blog\n"),
        ("apps/old/app.yaml", "name: old\n"),
        ("apps/readme.md", "# apps"),
    ])
}

/// Generators, a name, files, and the names of the children or a part of the error.
type GeneratorCase = (Value, Value, Vec<FileTree>, Result<Vec<&'static str>, &'static str>);

#[test]
fn generators_give_sets_of_parameters() {
    let folder_name = json!({"name": "params.folder.name"});
    let two = list(json!([{"env": "dev"}, {"env": "prod"}]));
    let both = json!({"name": "params.folder.name + '-' + params.env"});
    let keyed = json!({"name": "has(params.tier) ? params.name + '-' + params.tier : params.name"});
    let cases: Vec<GeneratorCase> = vec![
        (
            json!([list(json!([{"name": "b"}, {"name": "a"}]))]),
            json!({}),
            vec![],
            Ok(vec!["apps-a", "apps-b"]),
        ),
        (
            json!([git("folders", &["apps/*"], &["apps/old"])]),
            folder_name.clone(),
            vec![tree()],
            Ok(vec!["apps-blog", "apps-shop"]),
        ),
        (json!([git("folders", &["none/*"], &[])]), folder_name, vec![tree()], Ok(vec![])),
        (
            json!([git("files", &["apps/*/app.yaml"], &["**/old/*"])]),
            json!({}),
            vec![tree()],
            Ok(vec!["apps-blog", "apps-shop"]),
        ),
        (json!([git("files", &["**/*.md"], &[])]), json!({}), vec![tree()], Err("write a mapping")),
        (json!([git("files", &["apps/*/app.yaml"], &[])]), json!({}), vec![], Err("files of a repository")),
        (
            json!([{"matrix": [git("folders", &["apps/shop"], &[]), two]}]),
            both,
            vec![tree()],
            Ok(vec!["apps-shop-dev", "apps-shop-prod"]),
        ),
        (
            json!([{"matrix": [two, list(json!([{"env": "x"}]))]}]),
            json!({}),
            vec![],
            Err("both generators of matrix give the parameter env"),
        ),
        (
            json!([{"matrix": [list(json!(vec![json!({"a": 1}); 30])), list(json!(vec![json!({"b": 1}); 30]))]}]),
            json!({}),
            vec![],
            Err("900 sets of parameters are more than 500"),
        ),
        (
            json!([{"merge": {"keys": ["name"], "generators": [
                git("files", &["apps/*/app.yaml"], &["**/old/*"]), list(json!([{"name": "blog", "tier": "dev"}, {"name": "none", "tier": "x"}])),
            ]}}]),
            keyed,
            vec![tree()],
            Ok(vec!["apps-blog-dev", "apps-shop-prod"]),
        ),
        (
            json!([{"merge": {"keys": ["name"], "generators": [list(json!([{"name": "a"}, {"name": "a"}])), two]}}]),
            json!({}),
            vec![],
            Err("two sets of the first generator have the same keys"),
        ),
        (
            json!([list(json!([{"name": "a"}])), list(json!([{"name": "a"}]))]),
            json!({}),
            vec![],
            Err("two sets of parameters give the name apps-a"),
        ),
        (json!([list(json!([{"name": 7}]))]), json!({}), vec![], Err("spec.name: 7 is no text")),
        (json!([list(json!([{"other": 7}]))]), json!({}), vec![], Err("there is no field name")),
    ];
    for (generators, rest, trees, expect) in cases {
        let found = names(&resource(&generators, rest), &trees);
        match expect {
            Ok(expect) => assert_eq!(
                found.as_deref(),
                Ok(expect.iter().map(ToString::to_string).collect::<Vec<_>>().as_slice()),
                "{generators}"
            ),
            Err(expect) => {
                assert!(found.as_ref().is_err_and(|error| error.contains(expect)), "{generators}: {found:?}")
            }
        }
    }
}

#[test]
fn only_what_the_globs_need_is_read() {
    for (include, folders) in [
        (&["apps/*"][..], &["apps"][..]),
        (&["apps/*/config.yaml", "apps/x/*"], &["apps"]),
        (&["**/app.yaml", "apps/*"], &[""]),
        (&["app.yaml"], &[""]),
        (&["a/b/c.yaml", "d/*"], &["a/b", "d"]),
    ] {
        let raw = resource(&json!([git("files", include, &[])]), json!({}));
        let set: SyncSet = serde_json::from_value(raw).unwrap();
        let generator = git_generators(&set.spec)[0];
        assert_eq!(read_folders(generator), folders, "{include:?}");
        let tree = FileTree::from_texts([("apps/x/config.yaml", "a: b"), ("other", "")]);
        assert!(select_files(generator, &tree).len() <= 1);
    }
}

#[test]
fn an_expression_fits_the_field_or_nothing_changes() {
    let set = |field: &str, value: &str| json!({"set": [{"field": field, "value": value}]});
    let one = json!([list(json!([{"name": "a", "n": 3, "yes": true, "team": "blue", "none": null}]))]);
    for (field, value, expect) in [
        ("/spec/targetNamespace", "params.team", Ok(json!("blue"))),
        ("/spec/targetNamespace", "'team-' + params.name", Ok(json!("team-a"))),
        ("/spec/targetNamespace", "params.n", Err("invalid type")),
        ("/spec/targetNamespace", "params.none", Ok(Value::Null)),
        ("/spec/createNamespace", "params.yes", Ok(json!(true))),
        ("/spec/createNamespace", "'true'", Err("invalid type")),
        ("/spec/prune/budget/count", "params.n + 1", Ok(json!(4))),
        ("/spec/deletionPolicy", "'Erase'", Err("unknown variant")),
        ("/spec/source/git/ref/branch", "params.team", Ok(json!("blue"))),
        ("/spec/render/substitute/vars/team", "params.team", Ok(json!("blue"))),
        ("/spec/render/substitute/vars/n", "params.n", Err("a text is needed")),
        ("/metadata/labels/team", "params.team", Ok(json!("blue"))),
        ("/spec/source/git/url", "params.team", Err("/spec/source/git/url cannot be set by an expression")),
        ("/spec/serviceAccountName", "params.team", Err("/spec/serviceAccountName cannot be set")),
        ("/spec/source/git/secretRef/name", "params.team", Err("cannot be set by an expression")),
        ("/metadata/annotations/moorline.dev~1approve", "params.team", Err("cannot be set by an expression")),
        ("/spec/path", "other.team", Err("spec.set[0].value")),
        ("/spec/path", "params.team.all(x, x)", Err("the value of /spec/path")),
    ] {
        let found = children(&resource(&one, set(field, value)), &[]);
        match expect {
            Ok(expect) => {
                let found = found.unwrap();
                let child = found.get("apps-a").unwrap();
                assert_eq!(child.manifest.pointer(field).cloned().unwrap_or_default(), expect, "{field}");
            }
            Err(expect) => {
                assert!(found.as_ref().is_err_and(|error| error.contains(expect)), "{field}: {found:?}");
            }
        }
    }
    let own = json!({"template": {"metadata": {"annotations": {"moorline.dev/approve": "x"}}, "spec": {"source": {"git": {"url": "https://h/a"}}}}});
    assert!(children(&resource(&one, own), &[]).unwrap_err().contains("written by people"));
}

/// A Sync of the cluster as the set has applied it, with these changes.
fn live(child: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut sync = child.clone();
    sync["metadata"]["uid"] = json!(format!("uid-{}", sync["metadata"]["name"].as_str().unwrap()));
    sync["metadata"]["resourceVersion"] = json!("7");
    sync["metadata"]["generation"] = json!(2);
    sync["status"] = json!({"observedGeneration": 2, "renderDigest": "d"});
    sync["metadata"]["managedFields"] = json!([{"manager": "moorline-set/team/apps", "operation": "Apply"}]);
    sync["spec"]["interval"] = json!("30s");
    change(&mut sync);
    sync
}

fn plan(raw: &Value, live: &[Value], policy: &RemovalPolicy) -> SetPlan {
    let children = children(raw, &[]).unwrap();
    let owner = SetOwner::of(raw);
    let existing: Vec<ExistingSync> = live.iter().map(|sync| ExistingSync::of(sync, &owner)).collect();
    plan_children(&children, &existing, policy, |_, _| false)
}

fn of_names(names: &[&str]) -> Value {
    let elements: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    resource(&json!([list(json!(elements))]), json!({}))
}

#[test]
fn a_sync_of_others_is_never_taken_and_an_own_one_is_repaired() {
    let raw = of_names(&["a"]);
    let manifest = children(&raw, &[]).unwrap().get("apps-a").unwrap().manifest.clone();
    let mark =
        |sync: &mut Value, text: &str| sync["metadata"]["annotations"]["moorline.dev/sync-set"] = json!(text);
    let step = |change: &dyn Fn(&mut Value)| {
        let plan = plan(&raw, &[live(&manifest, change)], &RemovalPolicy::default());
        match &plan.steps[..] {
            [SetStep::Create(_)] => "create",
            [SetStep::Update { uid, .. }] if uid == "uid-apps-a" => "update",
            [SetStep::Keep(_)] => "keep",
            [SetStep::Await(_)] => "await",
            [SetStep::Conflict(_)] => "conflict",
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(step(&|_| {}), "keep");
    assert_eq!(step(&|sync| sync["spec"]["suspend"] = json!(true)), "keep", "a person may suspend it");
    assert_eq!(step(&|sync| sync["spec"]["source"]["git"]["url"] = json!("https://other/a")), "update");
    assert_eq!(
        step(&|sync| sync["metadata"]["annotations"]["moorline.dev/sync-set-hash"] = json!("x")),
        "update"
    );
    assert_eq!(step(&|sync| mark(sync, "apps/u0/apps-a")), "update", "left by an earlier set of this name");
    assert_eq!(step(&|sync| sync["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")), "await");
    for foreign in ["", "other/u1/apps-a", "apps/u1/apps-b", "apps/u1", "apps/u1/apps-a/x"] {
        assert_eq!(step(&|sync| mark(sync, foreign)), "conflict", "{foreign}");
    }
    assert_eq!(step(&|sync| sync["metadata"]["name"] = json!("apps-b")), "create");
}

#[test]
fn removals_have_a_budget_and_approvals_name_them() {
    let all = ["a", "b", "c", "d", "e"];
    let manifests: Vec<Value> =
        children(&of_names(&all), &[]).unwrap().iter().map(|child| live(&child.manifest, |_| {})).collect();
    let with = |count, percent| RemovalPolicy { count, percent, ..RemovalPolicy::default() };
    let removed =
        |kept: &[&str], policy: &RemovalPolicy| match plan(&of_names(kept), &manifests, policy).removal {
            PlannedRemoval::Remove(gone) => format!("remove {}", gone.len()),
            PlannedRemoval::Hold { syncs, .. } => format!("hold {}", syncs.len()),
            PlannedRemoval::Wait { .. } => "wait".to_owned(),
            PlannedRemoval::Keep(left) => format!("keep {}", left.len()),
        };
    for (kept, policy, expect) in [
        (&all[..], RemovalPolicy::default(), "remove 0"),
        (&all[..4], RemovalPolicy::default(), "remove 1"),
        (&all[..3], RemovalPolicy::default(), "hold 2"),
        (&all[..3], with(Some(2), None), "remove 2"),
        (&all[..3], with(Some(1), Some(50)), "remove 2"),
        (&all[..3], with(Some(1), Some(30)), "hold 2"),
        (&all[..4], with(Some(0), None), "hold 1"),
        (&all[..3], RemovalPolicy { is_disabled: true, ..RemovalPolicy::default() }, "keep 2"),
    ] {
        assert_eq!(removed(kept, &policy), expect, "{kept:?} {policy:?}");
    }
    let PlannedRemoval::Hold { hash, .. } =
        plan(&of_names(&all[..3]), &manifests, &RemovalPolicy::default()).removal
    else {
        panic!("two of five are held");
    };
    let approved = RemovalPolicy { approved: Some(hash), ..RemovalPolicy::default() };
    assert_eq!(removed(&all[..3], &approved), "remove 2");
    assert_eq!(removed(&all[..2], &approved), "hold 3", "another removal than the approved one");
    // The rest of a removal that has begun needs no second approval; anything more does.
    let begun = ["uid-apps-d", "uid-apps-e"].map(str::to_owned).into();
    let begun = RemovalPolicy { begun, count: Some(0), ..RemovalPolicy::default() };
    assert_eq!(removed(&all[..4], &begun), "remove 1");
    assert_eq!(removed(&all[..2], &begun), "hold 3");
}

#[test]
fn a_removal_needs_all_evidence_and_an_empty_answer_removes_nothing() {
    let two = children(&of_names(&["a", "b"]), &[]).unwrap();
    let [a, b] = ["apps-a", "apps-b"].map(|name| two.get(name).unwrap().manifest.clone());
    let removal = |change: &dyn Fn(&mut Value)| {
        let live = [live(&a, |_| {}), live(&b, change)];
        match plan(&of_names(&["a"]), &live, &RemovalPolicy::default()).removal {
            PlannedRemoval::Remove(gone) => gone,
            other => panic!("{other:?}"),
        }
    };
    let target = ("apps-b".to_owned(), "uid-apps-b".to_owned(), "7".to_owned());
    assert_eq!(removal(&|_| {}), [target]);
    let cases: [&dyn Fn(&mut Value); 7] = [
        &|sync| sync["metadata"]["managedFields"][0]["operation"] = json!("Update"),
        &|sync| sync["metadata"]["annotations"]["moorline.dev/sync-set"] = json!("apps/u0/apps-b"),
        &|sync| sync["metadata"]["annotations"]["moorline.dev/sync-set"] = json!("apps/u1/apps-a"),
        &|sync| sync["metadata"]["annotations"]["moorline.dev/prune"] = json!("disabled"),
        &|sync| sync["metadata"]["managedFields"] = json!([{"manager": "kubectl", "operation": "Apply"}]),
        &|sync| sync["metadata"]["namespace"] = json!("other"),
        &|sync| sync["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
    ];
    for (at, change) in cases.into_iter().enumerate() {
        assert_eq!(removal(change), [], "case {at}");
    }
    let mut empty =
        resource(&json!([git("folders", &["none/*"], &[])]), json!({"name": "params.folder.name"}));
    empty["spec"]["prune"] = json!({"budget": {"count": 100}});
    let none = children(&empty, &[FileTree::from_texts([("a/b", "")])]).unwrap();
    let existing = [ExistingSync::of(&live(&a, |_| {}), &SetOwner::of(&empty))];
    let policy = RemovalPolicy { count: Some(100), ..RemovalPolicy::default() };
    let plan = plan_children(&none, &existing, &policy, |_, _| false);
    assert!(matches!(plan.removal, PlannedRemoval::Hold { .. }), "{plan:?}");
}

#[test]
fn a_removal_waits_for_all_that_may_claim_its_objects_and_for_each_generator() {
    let old = children(&of_names(&["a", "b"]), &[]).unwrap();
    let [a, b] = ["apps-a", "apps-b"].map(|name| old.get(name).unwrap().manifest.clone());
    let new = children(&of_names(&["a", "c"]), &[]).unwrap().get("apps-c").unwrap().manifest.clone();
    let removal = |live: &[Value], raw: &Value, approves: bool| {
        let of = |policy: &RemovalPolicy| plan(raw, live, policy).removal;
        let approved = match of(&RemovalPolicy { count: Some(0), ..RemovalPolicy::default() }) {
            PlannedRemoval::Hold { hash, .. } if approves => Some(hash),
            _ => None,
        };
        match of(&RemovalPolicy { approved, ..RemovalPolicy::default() }) {
            PlannedRemoval::Remove(gone) => format!("remove {}", gone.len()),
            PlannedRemoval::Hold { syncs, .. } => format!("hold {}", syncs.join(" ")),
            PlannedRemoval::Wait { awaited, .. } => format!("wait for {}", awaited.join(" ")),
            PlannedRemoval::Keep(_) => "keep".to_owned(),
        }
    };
    let renamed = of_names(&["a", "c"]);
    let [kept, gone] = [live(&a, |_| {}), live(&b, |_| {})];
    let with = |third: Value| [kept.clone(), gone.clone(), third];
    let unseen = |sync: &mut Value| sync["status"] = json!(null);
    let mark = "/metadata/annotations/moorline.dev~1sync-set";
    // A new name is created first, and the old one goes when the new one claims its objects.
    assert_eq!(removal(&[kept.clone(), gone.clone()], &renamed, false), "wait for apps-c");
    assert_eq!(removal(&[kept.clone(), gone.clone()], &renamed, true), "wait for apps-c");
    for (change, expect) in [
        (&(|_: &mut Value| {}) as &dyn Fn(&mut Value), "remove 1"),
        (&unseen, "wait for apps-c"),
        (&|sync| sync["status"]["renderDigest"] = json!(null), "wait for apps-c"),
        (&|sync| sync["metadata"]["generation"] = json!(3), "wait for apps-c"),
        (&|sync| sync["spec"]["source"]["git"]["url"] = json!("https://other/a"), "wait for apps-c"),
        (&|sync| *sync.pointer_mut(mark).unwrap() = json!("other/u1/apps-c"), "wait for apps-c"),
        (&|sync| sync["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"), "wait for apps-c"),
    ] {
        let third = live(&new, change);
        assert_eq!(removal(&with(third.clone()), &renamed, false), expect, "{third}");
    }
    // A generator that gives nothing may have a wrong glob: only a person removes its Syncs.
    let generators = json!([list(json!([{"name": "a"}])), git("files", &["none/*"], &[])]);
    let raw = resource(&generators, json!({}));
    let empty = |policy: &RemovalPolicy| {
        let children = children(&raw, &[FileTree::from_texts([("a/b", "")])]).unwrap();
        let existing = [&kept, &gone].map(|sync| ExistingSync::of(sync, &SetOwner::of(&raw)));
        plan_children(&children, &existing, policy, |_, _| false).removal
    };
    let generous = RemovalPolicy { count: Some(9), ..RemovalPolicy::default() };
    let PlannedRemoval::Hold { hash, .. } = empty(&generous) else { panic!("it is held") };
    let removed = empty(&RemovalPolicy { approved: Some(hash), ..generous });
    assert!(matches!(removed, PlannedRemoval::Remove(gone) if gone.len() == 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn the_order_of_parameters_changes_nothing(
        names in proptest::collection::vec("[a-zA-Z0-9_-]{1,40}", 1..12), seed in 0_usize..100,
    ) {
        let (first, mut other): (Vec<&str>, Vec<&str>) = names.iter().map(|name| (&**name, &**name)).unzip();
        other.rotate_left(seed % names.len());
        other.reverse();
        prop_assert_eq!(children(&of_names(&first), &[]), children(&of_names(&other), &[]));
    }
}
