//! YAML that the program prints, and YAML files of the repository, are read alike by independent
//! readers.
//!
//! In: output of the binary, files, and kubectl where there is one. Out: nothing, or the text that
//! our reader, the crate `serde_yaml` and kubectl do not all take for the same value. The first and
//! the last read YAML 1.1, the crate YAML 1.2; no scalar of these texts differs between the two.

use std::fs;

use moorline::yaml::{self, Dialect};
use moorline_test_support::command::Folder;
use moorline_test_support::{places, programs};
use serde_json::{Map, Value, json};

/// Folders with manifests that are rendered.
const FOLDERS: [&str; 5] =
    ["examples/shop/apps", "examples/platform/syncs", "examples/quickstart", "config/default", "config/crd"];

/// The documents of a text, as our reader and the independent one read them. Both must agree.
fn read(name: &str, text: &str) -> Vec<Value> {
    let ours =
        yaml::read(name, text.as_bytes(), Dialect::Kubectl).unwrap_or_else(|error| panic!("{name}: {error}"));
    let ours: Vec<Value> = ours.into_iter().map(|document| document.value).collect();
    let documents = serde_yaml::Deserializer::from_str(text).map(|document| {
        serde::Deserialize::deserialize(document).unwrap_or_else(|error| panic!("{name}: {error}"))
    });
    // Documents without content are left out by ours.
    let theirs: Vec<Value> = documents.filter(|document: &Value| !document.is_null()).collect();
    assert_eq!(ours, theirs, "{name}");
    ours
}

/// Checks that kubectl reads the objects of a text as ours does.
fn read_by_kubectl(name: &str, text: &str) {
    let objects: Vec<Value> = read(name, text);
    let Some(kubectl) = programs::find("kubectl") else { return };
    let folder = Folder::new(&format!("kubectl-{}", name.replace('/', "-")), &[("in.yaml", text.as_bytes())]);
    let mut command = programs::command(&kubectl);
    let arguments = ["patch", "--local", "--type=merge", "-p", "{}", "-o", "json", "-f", "in.yaml"];
    command.args(arguments).current_dir(&folder.0).env("HOME", &folder.0);
    let printed = programs::run(&mut command).unwrap_or_else(|words| panic!("{name}: {words}"));
    let theirs: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(&printed).into_iter().collect();
    let theirs = theirs.unwrap_or_else(|error| panic!("{name}: {error}"));
    let bare = |objects: Vec<Value>| objects.into_iter().map(without_defaults).collect::<Vec<_>>();
    assert_eq!(bare(objects), bare(theirs), "{name}");
}

/// Removes what kubectl adds to objects whose types it knows: nulls, empty maps and zero values.
fn without_defaults(value: Value) -> Value {
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, without_defaults(value)));
            Value::Object(fields.filter(|(_, value)| is_set(value)).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(without_defaults).collect(),
        value => value,
    }
}

/// Runs the binary at the root of the repository and returns its standard output.
fn printed(arguments: &[&str]) -> String {
    let mut command = programs::command(places::moorline());
    command.args(arguments).current_dir(places::repository());
    programs::run(&mut command).unwrap_or_else(|words| panic!("{arguments:?}: {words}"))
}

#[test]
fn the_definition_and_permissions_are_read_back() {
    let definition = printed(&["crd"]);
    assert_eq!(read("moorline crd", &definition).len(), 5);
    read_by_kubectl("crd", &definition);
    for folder in ["examples/shop/apps", "examples/quickstart"] {
        let permissions = printed(&["rbac", folder, "--service-account", "deployer", "-n", "shop"]);
        assert!(read("moorline rbac", &permissions).len() > 1, "{permissions}");
        read_by_kubectl("rbac", &permissions);
    }
}

#[test]
fn rendered_objects_are_read_back() {
    for folder in FOLDERS {
        let objects: Value = serde_json::from_str(&printed(&["render", folder, "--output", "json"])).unwrap();
        let text = printed(&["render", folder]);
        assert_eq!(Value::from(read(folder, &text)), objects, "{folder}");
        read_by_kubectl(folder, &text);
    }
}

#[test]
fn plans_and_texts_of_every_kind_are_read_back() {
    let texts = [
        "0644",
        "yes",
        "n",
        "~",
        "1e3",
        "0x1F",
        "12:30:45",
        "2001-12-14",
        "<<",
        " a",
        "a: b",
        "two\nlines\n",
        "\t",
        "",
    ];
    let data: Map<String, Value> =
        texts.iter().enumerate().map(|(at, text)| (format!("key{at}"), json!(text))).collect();
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "texts"}, "data": data});
    let live = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "texts", "namespace": "default"}, "data": {"key0": "420"}},
    ]});
    let folder = Folder::new(
        "printed-yaml",
        &[("app/texts.json", object.to_string().as_bytes()), ("live/all.json", live.to_string().as_bytes())],
    );
    let text = folder.moorline(&["render", "app"]).data;
    assert_eq!(read("texts", &text), [object]);
    read_by_kubectl("texts", &text);
    let plan = ["plan", "app", "--against", "live", "--show-all", "--output"];
    let as_yaml = folder.moorline(&[&plan[..], &["yaml"]].concat()).data;
    let as_json = folder.moorline(&[&plan[..], &["json"]].concat()).data;
    assert_eq!(read("plan", &as_yaml), [serde_json::from_str::<Value>(&as_json).unwrap()]);
}

#[test]
fn files_of_the_repository_are_read_alike() {
    let mut open =
        ["config", "examples", "charts/moorline/crds"].map(|it| places::repository().join(it)).to_vec();
    let mut count = 0;
    while let Some(place) = open.pop() {
        for entry in fs::read_dir(&place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|it| it == "yaml") {
                let name = path.strip_prefix(places::repository()).unwrap().display().to_string();
                read(&name, &fs::read_to_string(&path).unwrap());
                count += 1;
            }
        }
    }
    let values = places::repository().join("charts/moorline/values.yaml");
    read("values.yaml", &fs::read_to_string(values).unwrap());
    assert!(count > 50, "{count}");
}
