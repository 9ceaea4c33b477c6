//! Features that people write by hand: merges with nulls and directives, operations, replacements that change their own source,
//! tables for one kind, and transformers in place.
//!
//! In: the objects of a case and a source of chance. Out: a feature for one layer of a mutant.

use moorline::yaml;
use serde_json::{Map, Value, json};

use super::mutation::{Chance, Feature, named};

/// One step on the way to a value.
#[derive(Clone)]
enum Step {
    Key(String),
    Item(usize),
}

/// One idiom, where the objects allow it.
pub(crate) fn idiom(
    layer: &'static str,
    number: u64,
    objects: &[Value],
    chance: &mut Chance,
) -> Option<Feature> {
    let object = chance.one_of(objects)?;
    let plain = |field, lines: String| Some(Feature { layer, field, lines, files: Vec::new() });
    match chance.below(11) {
        0 | 1 => merge(layer, &null_at(object, chance)?, object, number, chance),
        2 => merge(layer, &texts(number, chance), object, number, chance),
        3 => merge(layer, &directive(object, chance)?, object, number, chance),
        4 => merge(layer, &of_containers(object, number, chance)?, object, number, chance),
        5 | 6 => plain("replacements", replacement(object, number, objects, chance)?),
        7 => configuration(layer, number, objects, chance),
        8 => plain("patches", operations(object, number, chance)?),
        9 => plain("transformers", transformer(object, number, chance)),
        _ => plain("labels", labels(number, chance)),
    }
}

/// A merge as an entry of `patches`, in place or in a file, with and without a target, or of `patchesStrategicMerge`.
fn merge(
    layer: &'static str,
    change: &Value,
    object: &Value,
    number: u64,
    chance: &mut Chance,
) -> Option<Feature> {
    let mut body = json!({"apiVersion": object["apiVersion"], "kind": object["kind"]});
    body["metadata"] = json!({"name": object["metadata"]["name"]});
    if let Some(namespace) = object.pointer("/metadata/namespace") {
        body["metadata"]["namespace"] = namespace.clone();
    }
    join(&mut body, change);
    let text = if chance.below(5) == 0 { format!("{body}\n") } else { yaml::write(&body) };
    let (kind, name) = (named(object, "/kind"), named(object, "/metadata/name"));
    let target = match chance.below(5) {
        0 => format!("  target: {{kind: {kind}}}\n"),
        1 => format!("  target: {{kind: {kind}, name: {name}}}\n"),
        2 => "  options: {allowNameChange: true}\n".to_owned(),
        _ => String::new(),
    };
    let path = format!("merge-{number}.yaml");
    let feature = |field, lines, files| Some(Feature { layer, field, lines, files });
    match chance.below(4) {
        0 => {
            let file = (format!("{layer}/{path}"), text);
            feature("patches", format!("- path: {path}\n{target}"), vec![file])
        }
        1 => feature("patchesStrategicMerge", format!("- |\n{}", indented(&text, 2)), Vec::new()),
        _ => feature("patches", format!("- patch: |\n{}{target}", indented(&text, 4)), Vec::new()),
    }
}

fn indented(text: &str, by: usize) -> String {
    text.lines().map(|line| format!("{:by$}{line}\n", "")).collect()
}

/// Puts the fields of one mapping into another.
fn join(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                join(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

/// A way to some value of an object, but for what tells which object it is.
fn way(object: &Value, chance: &mut Chance) -> Option<Vec<Step>> {
    let (mut value, mut way) = (object, Vec::new());
    loop {
        let step = match value {
            Value::Object(map) if !map.is_empty() => {
                let keys: Vec<&String> = map
                    .keys()
                    .filter(|key| !way.is_empty() || !["apiVersion", "kind"].contains(&key.as_str()))
                    .collect();
                Step::Key((*chance.one_of(&keys)?).clone())
            }
            Value::Array(items) if !items.is_empty() => Step::Item(chance.below(items.len() as u64) as usize),
            _ => break,
        };
        value = match &step {
            Step::Key(key) => &value[key],
            Step::Item(at) => &value[at],
        };
        way.push(step);
        if way.len() > 1 && chance.below(6) == 0 {
            break;
        }
    }
    let is_identity = matches!(way.as_slice(), [Step::Key(first), Step::Key(second)] if first == "metadata" && ["name", "namespace"].contains(&second.as_str()));
    (way.len() > 1 && !is_identity).then_some(way)
}

/// A null at some field. An item of a list is named by its name, where it has one.
fn null_at(object: &Value, chance: &mut Chance) -> Option<Value> {
    let way = way(object, chance)?;
    let value = if chance.below(4) == 0 { json!({}) } else { Value::Null };
    build(object, &way, value)
}

fn build(object: &Value, way: &[Step], last: Value) -> Option<Value> {
    let Some((step, rest)) = way.split_first() else { return Some(last) };
    match step {
        Step::Key(key) => Some(json!({key: build(object.get(key)?, rest, last)?})),
        Step::Item(at) => {
            let item = object.get(at)?;
            let mut inner =
                if rest.is_empty() { json!({"$patch": "delete"}) } else { build(item, rest, last)? };
            if let Some(fields) = inner.as_object_mut() {
                for key in ["name", "containerPort", "mountPath", "key", "ip"] {
                    if let Some(value) = item.get(key) {
                        fields.insert(key.to_owned(), value.clone());
                        break;
                    }
                }
            }
            Some(json!([inner]))
        }
    }
}

/// Labels and annotations of all sorts.
fn texts(number: u64, chance: &mut Chance) -> Value {
    let mut map = Map::new();
    for (key, value) in [
        (format!("added-{number}"), json!("text")),
        ("note-1".to_owned(), Value::Null),
        (format!("number-{number}"), json!(7)),
        (format!("flag-{number}"), json!(true)),
        ("label-1".to_owned(), Value::Null),
        ("app".to_owned(), Value::Null),
        (format!("empty-{number}"), json!("")),
    ] {
        if chance.below(3) == 0 {
            map.insert(key, value);
        }
    }
    let value = match chance.below(8) {
        0 => Value::Null,
        _ => Value::Object(map),
    };
    let field = if chance.below(3) == 0 { "labels" } else { "annotations" };
    json!({"metadata": {field: value}})
}

/// A mapping that is replaced or deleted.
fn directive(object: &Value, chance: &mut Chance) -> Option<Value> {
    let mut way = way(object, chance)?;
    let is_mapping = |way: &[Step]| {
        let value = way.iter().try_fold(object, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Item(at) => value.get(at),
        });
        value.is_some_and(Value::is_object)
    };
    while !is_mapping(&way) {
        way.pop()?;
    }
    if way.is_empty() || matches!(way.as_slice(), [Step::Key(key)] if key == "metadata") {
        return None;
    }
    let last = match chance.below(3) {
        0 => json!({"$patch": "delete"}),
        1 => json!({"$patch": "replace", "replaced": "x"}),
        _ => json!({"$patch": "merge", "merged": "x"}),
    };
    build(object, &way, last)
}

/// The most frequent changes of Pods.
fn of_containers(object: &Value, number: u64, chance: &mut Chance) -> Option<Value> {
    let containers = object.pointer("/spec/template/spec/containers")?.as_array()?;
    let name = chance.one_of(containers)?.get("name")?.clone();
    let bodies = [
        json!({"name": name, "env": [{"name": format!("E{number}"), "value": "x"}]}),
        json!({"name": name, "env": null, "image": "images.example.com/other:1"}),
        json!({"name": name, "resources": {"limits": {"cpu": null, "memory": "1Gi"}}}),
        json!({"name": name, "ports": [{"containerPort": 8080, "name": "web"}, {"containerPort": 53, "protocol": "UDP"}]}),
        json!({"name": name, "volumeMounts": [{"name": "v", "mountPath": "/v"}], "args": ["--x", "--y=1"]}),
        json!({"name": name, "$patch": "delete"}),
        json!({"name": format!("side-{number}"), "image": "i", "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
        json!({"name": name, "$patch": "replace", "image": "i"}),
    ];
    let body = chance.one_of(&bodies)?.clone();
    let mut spec = json!({"containers": [body]});
    match chance.below(6) {
        0 => spec["volumes"] = json!([{"name": "v", "emptyDir": {}}]),
        1 => spec["tolerations"] = json!([{"key": "k", "operator": "Exists"}]),
        2 => spec["nodeSelector"] = json!({"$patch": "replace", "disk": "fast"}),
        3 => spec["$setElementOrder/containers"] = Value::Null,
        _ => {}
    }
    spec.as_object_mut()?.remove("$setElementOrder/containers");
    Some(json!({"spec": {"template": {"spec": spec}}}))
}

/// The way as replacements write it.
fn dotted(way: &[Step]) -> String {
    let step = |step: &Step| match step {
        Step::Key(key) if key.contains('.') => format!("[{key}]"),
        Step::Key(key) => key.clone(),
        Step::Item(at) => at.to_string(),
    };
    way.iter().map(step).collect::<Vec<_>>().join(".")
}

/// A replacement whose source is often among its targets.
fn replacement(object: &Value, number: u64, objects: &[Value], chance: &mut Chance) -> Option<String> {
    let path = match chance.below(4) {
        0 => "metadata.name".to_owned(),
        _ => dotted(&way(object, chance)?),
    };
    let (kind, name) = (named(object, "/kind"), named(object, "/metadata/name"));
    let part = ["", ", options: {delimiter: \"-\", index: 0}", ", options: {delimiter: \".\", index: 1}"];
    let part = chance.one_of(&part)?;
    let mut out =
        format!("- source: {{kind: {kind}, name: {name}, fieldPath: '{path}'{part}}}\n  targets:\n");
    for _ in 0..=chance.below(3) {
        let other = chance.one_of(objects)?;
        let of = if chance.below(2) == 0 { object } else { other };
        let of_kind = named(of, "/kind");
        let select = match chance.below(3) {
            0 => format!("kind: {of_kind}"),
            1 => format!("kind: {of_kind}, name: {}", named(of, "/metadata/name")),
            _ => format!("name: {name}"),
        };
        let to = match chance.below(4) {
            0 => path.clone(),
            1 => format!("metadata.annotations.copied-{number}"),
            2 => format!("metadata.labels.copied-{number}"),
            _ => dotted(&way(of, chance)?),
        };
        let options = [
            "",
            "    options: {create: true}\n",
            "    options: {delimiter: \"-\", index: 0}\n",
            "    options: {delimiter: \"-\", index: -1, create: true}\n",
            "    options: {delimiter: \"/\", index: 9}\n",
        ];
        let options = chance.one_of(&options)?;
        out.push_str(&format!("  - select: {{{select}}}\n    fieldPaths: ['{to}']\n{options}"));
    }
    Some(out)
}

/// A table for one kind, and a field that uses it.
fn configuration(
    layer: &'static str,
    number: u64,
    objects: &[Value],
    chance: &mut Chance,
) -> Option<Feature> {
    let kind = named(chance.one_of(objects)?, "/kind");
    let tables = [
        ("namePrefix", "metadata/name", "namePrefix: c-\n"),
        ("nameSuffix", "metadata/name", "nameSuffix: -c\n"),
        ("commonLabels", "metadata/labels", "commonLabels: {configured: one}\n"),
        ("commonAnnotations", "metadata/annotations", "commonAnnotations: {configured: one}\n"),
        ("labels", "metadata/labels", "labels: [{pairs: {configured: one}}]\n"),
        ("images", "spec/template/spec/containers[]/image", "images: [{name: nginx, newTag: configured}]\n"),
        ("namespace", "spec/namespace", "namespace: configured\n"),
    ];
    let (table, path, _) = chance.one_of(&tables)?;
    let create = ["", ", create: true", ", create: false"];
    let create = chance.one_of(&create)?;
    let of = match chance.below(4) {
        0 => String::new(),
        1 => ", version: v1".to_owned(),
        _ => format!(", kind: {kind}"),
    };
    let path_of_file = format!("table-{number}.yaml");
    let text = format!("{table}:\n- {{path: '{path}'{of}{create}}}\n");
    Some(Feature {
        layer,
        field: "configurations",
        lines: format!("- {path_of_file}\n"),
        files: vec![(format!("{layer}/{path_of_file}"), text)],
    })
}

/// Operations on fields that are there, and some that are not.
fn operations(object: &Value, number: u64, chance: &mut Chance) -> Option<String> {
    let pointer = |way: &[Step]| {
        let step = |step: &Step| match step {
            Step::Key(key) => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
            Step::Item(at) => format!("/{at}"),
        };
        way.iter().map(step).collect::<String>()
    };
    let (first, second) = (pointer(&way(object, chance)?), pointer(&way(object, chance)?));
    let value =
        [json!("text"), json!(7), json!(null), json!({"a": "b"}), json!(["x"]), json!("7"), json!(1.5)];
    let value = chance.one_of(&value)?;
    let operation = match chance.below(7) {
        0 => json!({"op": "add", "path": first, "value": value}),
        1 => json!({"op": "replace", "path": first, "value": value}),
        2 => json!({"op": "remove", "path": first}),
        3 => json!({"op": "copy", "from": first, "path": second}),
        4 => json!({"op": "move", "from": first, "path": second}),
        5 => json!({"op": "add", "path": format!("/metadata/annotations/op-{number}"), "value": value}),
        _ => json!({"op": "test", "path": first, "value": object.pointer(&first)?}),
    };
    let text = match chance.below(2) {
        0 => format!("    {}\n", json!([operation])),
        _ => indented(&yaml::write(&json!([operation])), 4),
    };
    Some(format!("- target: {{kind: {}}}\n  patch: |\n{text}", named(object, "/kind")))
}

/// A transformer in place.
fn transformer(object: &Value, number: u64, chance: &mut Chance) -> String {
    let kind = named(object, "/kind");
    let bodies = [
        format!(
            "kind: PrefixSuffixTransformer\nprefix: t{number}-\nsuffix: -t\nfieldSpecs: [{{path: metadata/name}}]\n"
        ),
        format!(
            "kind: PrefixTransformer\nprefix: t{number}-\nfieldSpecs: [{{path: metadata/name, kind: {kind}}}]\n"
        ),
        format!(
            "kind: LabelTransformer\nlabels: {{t{number}: true, m{number}: 5}}\nfieldSpecs: [{{path: metadata/labels, create: true}}]\n"
        ),
        format!(
            "kind: AnnotationsTransformer\nannotations: {{t{number}: 1.5, m{number}: x}}\nfieldSpecs: [{{path: metadata/annotations, create: true, kind: {kind}}}]\n"
        ),
        format!(
            "kind: NamespaceTransformer\nmetadata: {{name: n, namespace: t{number}}}\nunsetOnly: true\nfieldSpecs: [{{path: metadata/namespace, create: true}}]\n"
        ),
    ];
    let body = &bodies[chance.below(bodies.len() as u64) as usize];
    let metadata = if body.contains("metadata: {") { "" } else { "metadata: {name: x}\n" };
    format!("- |\n{}", indented(&format!("apiVersion: builtin\n{metadata}{body}"), 2))
}

fn labels(number: u64, chance: &mut Chance) -> String {
    let with = [
        "",
        "  includeSelectors: true\n",
        "  includeTemplates: true\n",
        "  fields: [{path: spec/labels, create: true}]\n",
        "  fields: [{path: metadata/labels, kind: ConfigMap, create: true}]\n",
    ];
    let with = with[chance.below(5) as usize];
    format!("- pairs: {{label-{}: two}}\n{with}", number % 3)
}
