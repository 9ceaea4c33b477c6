//! `moorline plan` from outside: what it says of live objects in a folder, and its exit codes.

#[path = "support/command.rs"]
mod command;

use std::fs;

use serde_json::{Value, json};

use command::{CONFIG_MAP, Folder};

/// A live ConfigMap that the Sync `default/default` applied, with the hash of its body.
fn live(name: &str, data: &Value, hash: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {
            "name": name, "namespace": "default", "uid": format!("uid-{name}"), "resourceVersion": "7",
            "annotations": {
                "moorline.dev/id": format!("default/default|/ConfigMap|default/{name}"),
                "moorline.dev/spec-hash": hash,
            },
            "managedFields": [{"manager": "moorline/default/default", "operation": "Apply"}],
        },
    })
}

#[test]
fn plan_says_what_would_change_and_why() {
    let file = |name: &str, data: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {data}\n")
    };
    let folder = Folder::new(
        "plan",
        &[
            ("app/new.yaml", file("new", "{a: b}").as_bytes()),
            ("app/changed.yaml", file("changed", "{level: debug}").as_bytes()),
        ],
    );
    let objects = [
        live("changed", &json!({"level": "info"}), &format!("v1:{}", "0".repeat(64))),
        live("old", &json!({}), &format!("v1:{}", "0".repeat(64))),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "foreign", "namespace": "default"}}),
    ];
    fs::create_dir(folder.0.join("live")).unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs::write(folder.0.join("live/all.json"), list.to_string()).unwrap();

    let outcome = folder.moorline(&["plan", "app", "--against", "live"]);
    assert_eq!(outcome.code, 2, "{}", outcome.words);
    assert_eq!(
        outcome.data,
        "Create (1)\n  + ConfigMap default/new\n\n\
         Update (1)\n  ~ ConfigMap default/changed: changed in Git\n      data.level: \"info\" -> \"debug\"\n\n\
         Prune (1)\n  - ConfigMap default/old: no longer in Git\n\n\
         1 to create, 1 to update, 1 to prune, 0 as in Git.\n"
    );

    let outcome = folder.moorline(&["plan", "app", "--against", "live", "--output", "json"]);
    let plan: Value = serde_json::from_str(&outcome.data).unwrap();
    assert_eq!(plan["stages"][0]["steps"][0]["action"], "update");
    assert_eq!(
        plan["stages"][1]["steps"][0],
        json!({
            "action": "prune", "group": "", "kind": "ConfigMap", "namespace": "default", "name": "old", "uid": "uid-old",
        })
    );
    let as_yaml = folder.moorline(&["plan", "app", "--against", "live", "--output", "yaml"]);
    assert_eq!(as_yaml.code, 2);
    assert!(
        as_yaml.data.contains("  - action: prune\n    group: \"\"\n    kind: ConfigMap\n"),
        "{}",
        as_yaml.data
    );
    let coloured = folder.moorline(&["plan", "app", "--against", "live", "--color", "always"]);
    assert!(coloured.data.contains("\u{1b}[31m- ConfigMap default/old\u{1b}[0m"), "{}", coloured.data);
}

#[test]
fn a_plan_with_nothing_to_do_and_a_plan_that_only_holds_have_codes_of_their_own() {
    let folder = Folder::new("codes", &[("app/a.yaml", CONFIG_MAP)]);
    let hash = hash_of(&folder, "app");
    fs::create_dir(folder.0.join("live")).unwrap();
    let write = |objects: &[Value]| {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        fs::write(folder.0.join("live/all.json"), list.to_string()).unwrap();
    };
    let kept = live("a", &json!({"mode": 420, "true": "text"}), &hash);
    write(std::slice::from_ref(&kept));
    let outcome = folder.moorline(&["plan", "app", "--against", "live"]);
    assert_eq!((outcome.code, outcome.data.as_str()), (0, "Nothing to do: 1 object is as in Git.\n"));

    let mut claim = live("claim", &json!({}), &hash);
    claim["kind"] = "PersistentVolumeClaim".into();
    claim["metadata"]["annotations"]["moorline.dev/id"] =
        "default/default|/PersistentVolumeClaim|default/claim".into();
    write(&[kept, claim]);
    let outcome = folder.moorline(&["plan", "app", "--against", "live"]);
    assert_eq!(outcome.code, 3, "{outcome:?}");
    assert!(outcome.data.starts_with("Held (1)\n  ! PersistentVolumeClaim default/claim: no longer in Git, and its kind is pruned only by approval\n"), "{}", outcome.data);
    assert!(outcome.data.contains("moorline.dev/approve: \""), "{}", outcome.data);
}

/// Dumps overlap, as those of two questions to one cluster do; two clusters in one folder are a mistake.
#[test]
fn an_object_that_is_dumped_twice_is_one_object() {
    let folder = Folder::new("overlap", &[("app/a.yaml", CONFIG_MAP)]);
    let hash = hash_of(&folder, "app");
    let object = live("a", &json!({"mode": 420, "true": "text"}), &hash);
    fs::create_dir(folder.0.join("live")).unwrap();
    fs::write(folder.0.join("live/one.json"), object.to_string()).unwrap();
    fs::write(folder.0.join("live/two.json"), object.to_string()).unwrap();
    let plan = ["plan", "app", "--against", "live"];
    let outcome = folder.moorline(&plan);
    assert_eq!((outcome.code, outcome.data.as_str()), (0, "Nothing to do: 1 object is as in Git.\n"));
    let mut other = object;
    other["metadata"]["uid"] = "another".into();
    fs::write(folder.0.join("live/two.json"), other.to_string()).unwrap();
    folder.moorline(&plan).refused(
        1,
        "error: live/two.json:1: ConfigMap default/a is written a second time; the first is at live/one.json:1; remove one\n",
    );
    fs::write(folder.0.join("live/two.json"), "{}").unwrap();
    fs::remove_file(folder.0.join("live/one.json")).unwrap();
    let outcome = folder.moorline(&plan);
    assert_eq!(outcome.code, 2);
    assert_eq!(
        outcome.words,
        "note: live/two.json is skipped: no document in it has an apiVersion or a kind\n\
         note: there is no live object; the plan is for an empty cluster\n"
    );
    folder
        .moorline(&["render", "-"])
        .refused(1, "error: standard input is not read; name a file (a file called - is ./-)\n");
}

/// The hash of the one object below `path`, asked of the library.
fn hash_of(folder: &Folder, path: &str) -> String {
    use moorline::desired::{Scopes, desired};
    use moorline::render::{self, Options, Rendered};
    let (tree, inside) = moorline::source::directory::read(&folder.0.join(path), render::is_read).unwrap();
    let options = Options { path: inside, ..Options::default() };
    let Rendered::Complete(complete) = render::render(&tree, &options) else { panic!("the folder is sound") };
    let desired = desired(complete, "default", &Scopes::builtin()).unwrap();
    desired.objects()[0].hash.to_string()
}
