//! `moorline plan` from outside: what it says of live objects in a folder, and its exit codes.

use std::fs;

use serde_json::{Value, json};

use moorline_test_support::command::{CONFIG_MAP, Folder};

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
         Prune (1)\n  - ConfigMap default/old: no longer in Git; the daemon checks the proof before it deletes\n\n\
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

/// A live Deployment whose fields the Sync `default/default` owns, as an apply of its first commit left them.
fn live_deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7",
            "annotations": {
                "moorline.dev/id": "default/default|apps/Deployment|default/web",
                "moorline.dev/spec-hash": format!("v1:{}", "0".repeat(64)),
            },
            "managedFields": [{
                "manager": "moorline/default/default", "operation": "Apply", "apiVersion": "apps/v1",
                "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:containers": {
                    "k:{\"name\":\"app\"}": {".": {}, "f:name": {}, "f:image": {}, "f:env": {
                        "k:{\"name\":\"OLD\"}": {".": {}, "f:name": {}, "f:value": {}},
                    }},
                    "k:{\"name\":\"proxy\"}": {".": {}, "f:name": {}, "f:image": {}},
                }}}}},
            }],
        },
        "spec": {"template": {"spec": {"containers": [
            {"name": "app", "image": "app:1", "env": [{"name": "OLD", "value": "1"}], "imagePullPolicy": "Always"},
            {"name": "proxy", "image": "proxy:1", "imagePullPolicy": "Always"},
        ]}}},
    })
}

/// A text of 63 lines, one of which ends in a word.
fn pages(word: &str) -> String {
    (0..63).map(|at| format!("line {at}{}\n", if at == 30 { word } else { "" })).collect()
}

/// New and changed objects: texts of several lines, lists with keys, Secrets.
fn changed(test: &str) -> Folder {
    let config = |name: &str, kind: &str, word: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, (if kind == "Secret" { "stringData" } else { "data" }): {"f": pages(word)}});
    let containers = json!([
        {"name": "app", "image": "app:1", "env": [{"name": "NEW", "value": "2"}]}, {"name": "side", "image": "side:1"},
    ]);
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"template": {"spec": {"containers": containers}}}});
    let files = [
        ("app/changed.json", config("changed", "ConfigMap", " hunter2").to_string()),
        ("app/new.json", config("new", "ConfigMap", " new").to_string()),
        ("app/secret.json", config("secret", "Secret", " hunter3").to_string()),
        ("app/login.json", config("login", "Secret", " hunter3").to_string()),
        ("app/web.json", deployment.to_string()),
    ];
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    let folder = Folder::new(test, &files);
    let zero = format!("v1:{}", "0".repeat(64));
    let mut login = live("login", &json!({"f": "aHVudGVyMQ=="}), &zero);
    login["kind"] = "Secret".into();
    login["metadata"]["annotations"]["moorline.dev/id"] = "default/default|/Secret|default/login".into();
    let objects = [live("changed", &json!({"f": pages("")}), &zero), login, live_deployment()];
    fs::create_dir(folder.0.join("live")).unwrap();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    fs::write(folder.0.join("live/all.json"), list.to_string()).unwrap();
    folder
}

#[test]
fn plan_shows_the_changed_lines_of_a_text_and_the_items_of_a_list() {
    let folder = changed("lines");
    let outcome = folder.moorline(&["plan", "app", "--against", "live"]);
    assert_eq!(outcome.code, 2, "{}", outcome.words);
    let update = r#"Update (3)
  ~ ConfigMap default/changed: changed in Git
      data.f:
        @@ -28,7 +28,7 @@
         line 27
         line 28
         line 29
        -line 30
        +line 30 hunter2
         line 31
         line 32
         line 33
  ~ Secret default/login: changed in Git
      data.f: hidden: may contain Secret values
  ~ Deployment.apps default/web: changed in Git
      {containers}[name=app].env[name=NEW]:
        +name: NEW
        +value: "2"
      {containers}[name=side]:
        +image: side:1
        +name: side
      {containers}[name=app].env[name=OLD]:
        -name: OLD
        -value: "1"
      {containers}[name=proxy]:
        -image: proxy:1
        -imagePullPolicy: Always
        -name: proxy
"#
    .replace("{containers}", "spec.template.spec.containers");
    assert!(outcome.data.contains(&update), "{}\n{update}", outcome.data);
    assert!(
        outcome.data.starts_with("Create (2)\n  + ConfigMap default/new\n  + Secret default/secret\n\n"),
        "{}",
        outcome.data
    );
    assert!(!outcome.data.contains("hunter1") && !outcome.data.contains("hunter3"), "{}", outcome.data);
}

#[test]
fn plan_shows_all_when_it_is_asked_to_and_no_secret() {
    let folder = changed("all");
    let all = folder.moorline(&["plan", "app", "--against", "live", "--show-all"]).data;
    let new = "  + ConfigMap default/new\n        +apiVersion: v1\n        +data:\n        +  f: |\n        +    line 0\n";
    assert!(all.contains(new) && all.contains("        +    line 62\n"), "{all}");
    assert!(all.contains("  + Secret default/secret\n      hidden: may contain Secret values\n"), "{all}");
    assert!(!all.contains("hunter3") && !all.contains("aHVudGVyM"), "{all}");

    let json = folder.moorline(&["plan", "app", "--against", "live", "--show-all", "--output", "json"]).data;
    assert!(!json.contains("hunter3") && !json.contains("aHVudGVyM"), "{json}");
    let plan: Value = serde_json::from_str(&json).unwrap();
    let step = |name: &str| -> Value {
        let mut steps =
            plan["stages"].as_array().unwrap().iter().flat_map(|stage| stage["steps"].as_array().unwrap());
        steps.find(|step| step["name"] == name).cloned().unwrap()
    };
    let lines = [
        "@@ -28,7 +28,7 @@",
        " line 27",
        " line 28",
        " line 29",
        "-line 30",
        "+line 30 hunter2",
        " line 31",
        " line 32",
        " line 33",
    ];
    assert_eq!(step("changed")["fields"][0]["diff"], json!(lines));
    assert_eq!(step("web")["fields"][3]["wanted"], Value::Null);
    assert_eq!(step("new")["object"]["wanted"]["data"]["f"], pages(" new"));
    assert_eq!(step("secret")["object"], json!({"path": "", "hidden": "hidden: may contain Secret values"}));
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
         note: no live objects found; the plan is for an empty cluster\n"
    );
    folder
        .moorline(&["render", "-"])
        .refused(1, "error: standard input is not read; name a file (a file called - is ./-)\n");
}

/// The hash of the one object below `path`, asked of the library.
fn hash_of(folder: &Folder, path: &str) -> String {
    use moorline::desired::{Scopes, build_desired_set};
    use moorline::render::{self, RenderOptions, Rendered};
    let (tree, inside) = moorline::source::directory::read(&folder.0.join(path), render::is_read).unwrap();
    let options = RenderOptions { path: inside, ..RenderOptions::default() };
    let Rendered::Complete(complete) = render::render(&tree, &options) else { panic!("the folder is sound") };
    let desired = build_desired_set(complete, "default", &Scopes::builtin()).unwrap();
    desired.objects()[0].hash.to_string()
}
