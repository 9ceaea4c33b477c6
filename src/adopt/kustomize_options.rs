//! Converts options over a kustomization to `spec.render.kustomize` of a Sync.
//!
//! In: the spec of a Kustomization, or `source.kustomize` of an Application. Out: the same for the
//! Sync, and the fields for which its objects would differ. Both tools write their options into the
//! kustomization of the folder, as a Sync does.

use serde_json::{Map, Value, json};

use super::sync_builder::{SyncBuilder, is_set, text};

/// Fields of a target and of an image that are the same in all three tools.
const TARGET: [&str; 7] =
    ["group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector"];
const IMAGE: [&str; 4] = ["name", "newName", "newTag", "digest"];

/// Options of an Application that affect rendering and that a Sync does not have.
const REFUSED_FIELDS: [(&str, &str); 3] = [
    ("apiVersions", "charts of a kustomization name the API versions in helmCharts: write them there in Git"),
    ("kubeVersion", "charts of a kustomization name the version in helmCharts: write it there in Git"),
    (
        "labelIncludeTemplates",
        "labels are set on objects only: write them into the kustomization in Git, with includeTemplates",
    ),
];

/// Known options of an Application.
const FIELDS: [&str; 18] = [
    "apiVersions",
    "commonAnnotations",
    "commonAnnotationsEnvsubst",
    "commonLabels",
    "components",
    "forceCommonAnnotations",
    "forceCommonLabels",
    "ignoreMissingComponents",
    "images",
    "kubeVersion",
    "labelIncludeTemplates",
    "labelWithoutSelector",
    "namePrefix",
    "nameSuffix",
    "namespace",
    "patches",
    "replicas",
    "version",
];

/// Kinds with a Pod template, and kinds whose number of replicas kustomize sets.
const TEMPLATES: &str = "Deployment|ReplicaSet|ReplicationController|DaemonSet|StatefulSet|Job";
const SCALED: &str = "Deployment|ReplicaSet|ReplicationController|StatefulSet";

/// Converts the options of a Kustomization. Flux builds every folder with kustomize, so the Sync
/// does so, too.
pub(super) fn convert_flux_options(spec: &Value, draft: &mut SyncBuilder) {
    let mut options = Map::new();
    copy_texts(spec, &["namePrefix", "nameSuffix"], &mut options);
    let target = text(spec, "/targetNamespace");
    if !target.is_empty() {
        options.insert("namespace".into(), target.into());
    }
    let patches =
        each(&spec["patches"], |at, patch| convert_patch(&format!("spec.patches[{at}]"), patch, draft));
    insert(&mut options, "patches", patches);
    let images = each(&spec["images"], |at, image| {
        let image = keep(image, &IMAGE);
        if image.len() < 2 {
            let why = "the image has neither a new name nor a new tag or digest: remove the entry";
            draft.refuse(format!("spec.images[{at}]"), why);
            return None;
        }
        Some(image.into())
    });
    insert(&mut options, "images", images);
    components(spec, "spec", &mut options, draft);
    let metadata = &spec["commonMetadata"];
    draft.mark_unknown_lost(metadata, "spec.commonMetadata", &["annotations", "labels"]);
    for field in ["annotations", "labels"] {
        let texts = metadata[field].as_object().cloned().unwrap_or_default();
        let has_variable = texts.values().filter_map(Value::as_str).any(|text| text.contains("${"));
        if has_variable && is_set(&spec["postBuild"]) {
            let why =
                "Flux writes these as they are, and a Sync replaces variables in them: write the values";
            draft.refuse(format!("spec.commonMetadata.{field}"), why);
        } else if !texts.is_empty() {
            options.insert(field.into(), texts.into());
        }
    }
    draft.spec["render"]["kustomize"] = options.into();
}

/// Converts the options of an Application.
pub(super) fn convert_argocd_options(kustomize: &Value, place: &str, draft: &mut SyncBuilder) {
    if !is_set(kustomize) {
        return;
    }
    let place = format!("{place}.kustomize");
    draft.refuse_each(kustomize, &place, &REFUSED_FIELDS);
    draft.mark_unknown_lost(kustomize, &place, &FIELDS);
    if is_set(&kustomize["version"]) {
        draft.mark_lost(
            format!("{place}.version"),
            "Moorline builds as kustomize 5.8.1 does: look at the plan",
        );
    }
    let mut options = Map::new();
    copy_texts(kustomize, &["namePrefix", "nameSuffix", "namespace"], &mut options);
    let mut patches = each(&kustomize["patches"], |at, patch| {
        convert_patch(&format!("{place}.patches[{at}]"), patch, draft)
    });
    patches.extend(each(&kustomize["replicas"], |at, replicas| {
        convert_replicas(&format!("{place}.replicas[{at}]"), replicas, draft)
    }));
    patches.extend(metadata(kustomize, &place, &mut options, draft));
    insert(&mut options, "patches", patches);
    let images = each(&kustomize["images"], |at, image| {
        let read = parse_image(image.as_str().unwrap_or_default());
        if read.is_none() {
            let why = "this is no image: write name:tag, name@digest or old=new:tag, without stars";
            draft.refuse(format!("{place}.images[{at}]"), why);
        }
        read
    });
    insert(&mut options, "images", images);
    components(kustomize, &place, &mut options, draft);
    draft.spec["render"]["type"] = "Kustomize".into();
    draft.spec["render"]["kustomize"] = options.into();
}

/// Converts common labels and annotations of an Application; returns the patches for Pod
/// templates, which kustomize annotates as well.
fn metadata(
    kustomize: &Value,
    place: &str,
    options: &mut Map<String, Value>,
    draft: &mut SyncBuilder,
) -> Vec<Value> {
    let texts = |field: &str| kustomize[field].as_object().cloned().unwrap_or_default();
    let has_variable =
        |texts: &Map<String, Value>| texts.values().filter_map(Value::as_str).any(|text| text.contains('$'));
    let (labels, annotations) = (texts("commonLabels"), texts("commonAnnotations"));
    let variables = "variables of Argo CD are not replaced: write the values";
    if has_variable(&labels) {
        draft.refuse(format!("{place}.commonLabels"), variables);
    } else if !labels.is_empty() && kustomize["labelWithoutSelector"] != json!(true) {
        let why = "Argo CD sets these labels in selectors, too, which a Sync does not: write them as commonLabels into the kustomization in Git";
        draft.refuse(format!("{place}.commonLabels"), why);
    } else if !labels.is_empty() {
        options.insert("labels".into(), labels.into());
    }
    if kustomize["commonAnnotationsEnvsubst"] == json!(true) && has_variable(&annotations) {
        draft.refuse(format!("{place}.commonAnnotations"), variables);
    }
    if annotations.is_empty() {
        return Vec::new();
    }
    options.insert("annotations".into(), annotations.clone().into());
    let metadata = json!({"metadata": {"annotations": annotations}});
    let job = json!({"metadata": metadata["metadata"], "spec": {"template": metadata}});
    vec![
        merge_patch(&json!({"kind": TEMPLATES}), &json!({"template": metadata})),
        merge_patch(&json!({"kind": "CronJob"}), &json!({"jobTemplate": job})),
    ]
}

/// Returns a patch of the spec of all selected objects.
fn merge_patch(target: &Value, spec: &Value) -> Value {
    // With a target, the patch needs a kind and a name, which have no effect.
    let patch = json!({"apiVersion": "v1", "kind": "Any", "metadata": {"name": "any"}, "spec": spec});
    json!({"patch": patch.to_string(), "target": target})
}

fn convert_replicas(place: &str, replicas: &Value, draft: &mut SyncBuilder) -> Option<Value> {
    let written = &replicas["count"];
    let count = written.as_i64().or_else(|| written.as_str()?.parse().ok());
    match (text(replicas, "/name"), count) {
        ("", _) | (_, None) => {
            draft.refuse(place, "this is no number of replicas: write a name and a number");
            None
        }
        (name, Some(count)) => {
            let target = json!({"kind": SCALED, "name": name.replace('.', "[.]")});
            Some(merge_patch(&target, &json!({"replicas": count})))
        }
    }
}

fn convert_patch(place: &str, patch: &Value, draft: &mut SyncBuilder) -> Option<Value> {
    if is_set(&patch["path"]) {
        let why = "files of patches are named in the kustomization in Git: name it there, or write the patch itself";
        draft.refuse(format!("{place}.path"), why);
        return None;
    }
    if is_set(&patch["options"]) {
        let why = "a patch here changes neither names nor kinds: write it into the kustomization in Git";
        draft.refuse(format!("{place}.options"), why);
        return None;
    }
    draft.mark_unknown_lost(patch, place, &["options", "patch", "path", "target"]);
    draft.mark_unknown_lost(&patch["target"], &format!("{place}.target"), &TARGET);
    let mut converted = json!({"patch": text(patch, "/patch")});
    if patch["target"].is_object() {
        converted["target"] = keep(&patch["target"], &TARGET).into();
    }
    Some(converted)
}

fn components(old: &Value, place: &str, options: &mut Map<String, Value>, draft: &mut SyncBuilder) {
    let components = each(&old["components"], |_, path| Some(path.clone()));
    if !components.is_empty() && old["ignoreMissingComponents"] == json!(true) {
        let why = "a component that is missing is an error: name those that are there";
        draft.mark_lost(format!("{place}.ignoreMissingComponents"), why);
    }
    insert(options, "components", components);
}

/// Parses an image as `kustomize edit set image` does; none if a part is kept by a star.
fn parse_image(image: &str) -> Option<Value> {
    let is_odd = image.contains(['*', '$']) || image.contains(char::is_whitespace);
    let (name, new) = match image.split_once('=') {
        Some((name, new)) if !new.contains('=') => (name, new),
        Some(_) => return None,
        None => ("", image),
    };
    let (path, tag) = match (new.split_once('@'), new.rsplit_once(':')) {
        (Some((path, digest)), _) => (path, json!({"digest": digest})),
        (None, Some((path, tag))) if !tag.contains('/') => (path, json!({"newTag": tag})),
        (None, _) if name.is_empty() => return None,
        (None, _) => (new, json!({})),
    };
    let mut read = tag;
    let name = if name.is_empty() {
        path
    } else {
        read["newName"] = path.into();
        name
    };
    read["name"] = name.into();
    (!is_odd && !name.is_empty() && !path.is_empty()).then_some(read)
}

/// Converts the entries of a list.
fn each(list: &Value, mut convert: impl FnMut(usize, &Value) -> Option<Value>) -> Vec<Value> {
    let entries = list.as_array().into_iter().flatten().enumerate();
    entries.filter_map(|(at, entry)| convert(at, entry)).collect()
}

/// Returns the fields of a mapping that are set and known.
fn keep(old: &Value, known: &[&str]) -> Map<String, Value> {
    let fields = known.iter().filter(|field| is_set(&old[**field]));
    fields.map(|field| ((*field).to_owned(), old[*field].clone())).collect()
}

fn copy_texts(old: &Value, fields: &[&str], options: &mut Map<String, Value>) {
    options.extend(keep(old, fields));
}

fn insert(options: &mut Map<String, Value>, field: &str, entries: Vec<Value>) {
    if !entries.is_empty() {
        options.insert(field.to_owned(), entries.into());
    }
}
