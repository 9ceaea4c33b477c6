//! Options over a kustomization are built as if they were written in it.
//!
//! In: the cases, with the fields that options can hold taken out of the built kustomization; and a
//! table of folders with options, each with the folder in which the same is written out.
//! Out: nothing, or the folders that are built otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use moorline::kustomize::{
    BuildRoot, ImageOption, KustomizeOptions, PatchOption, PatchTarget, build, is_component_path,
};
use moorline::render::{RenderOptions, Rendered, render};
use moorline::tree::{FileTree, TreeEntry};
use moorline::yaml::read_as_written;
use serde_json::{Map, Value, json};

use super::answer::{self, Answer};
use super::refusals;

/// Fields of an entry that an option has, too.
const PATCH: [&str; 2] = ["patch", "target"];
const IMAGE: [&str; 4] = ["name", "newName", "newTag", "digest"];

/// Moves what options can hold out of the kustomization in a folder; none if there is nothing.
pub(crate) fn moved(tree: &FileTree, folder: &str) -> Option<(FileTree, KustomizeOptions)> {
    let file = format!("{folder}/kustomization.yaml");
    let bytes = tree.read(&file).ok()?;
    let mut documents = read_as_written("", &bytes, &|| true).ok()?.into_iter();
    let Value::Object(mut fields) = documents.next()?.value else { return None };
    // A field in two cases is there twice.
    let keys: BTreeSet<String> = fields.keys().map(|key| key.to_ascii_lowercase()).collect();
    if keys.len() < fields.len() {
        return None;
    }
    let options = KustomizeOptions {
        field: "spec.render.kustomize".into(),
        patches: entries(&mut fields, "patches", &PATCH, patch),
        images: entries(&mut fields, "images", &IMAGE, image),
        components: entries(&mut fields, "components", &[], |path| {
            path.as_str().filter(|path| is_component_path(path)).map(str::to_owned)
        }),
        name_prefix: text(&mut fields, "namePrefix"),
        name_suffix: text(&mut fields, "nameSuffix"),
        namespace: text(&mut fields, "namespace"),
        ..KustomizeOptions::default()
    };
    let nothing = KustomizeOptions { field: options.field.clone(), ..KustomizeOptions::default() };
    // An empty kustomization is refused.
    if options == nothing || fields.keys().all(|key| key == "apiVersion" || key == "kind") {
        return None;
    }
    let rest = TreeEntry::File(Value::Object(fields).to_string().into_bytes().into());
    let tree = tree.entries().map(|(path, entry)| match path == file {
        true => (path.to_owned(), rest.clone()),
        false => (path.to_owned(), entry.clone()),
    });
    Some((tree.collect(), options))
}

/// Takes out a list, if an option can hold each of its entries.
fn entries<T>(
    fields: &mut Map<String, Value>,
    name: &str,
    known: &[&str],
    convert: impl Fn(&Value) -> Option<T>,
) -> Vec<T> {
    let list = fields.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_known = |entry: &Value| {
        entry.as_object().is_none_or(|entry| entry.keys().all(|key| known.contains(&key.as_str())))
    };
    let read: Option<Vec<T>> = list.iter().map(|entry| convert(entry).filter(|_| is_known(entry))).collect();
    match read {
        Some(read) if !read.is_empty() => {
            fields.remove(name);
            read
        }
        _ => Vec::new(),
    }
}

fn text(fields: &mut Map<String, Value>, name: &str) -> String {
    match fields.get(name).and_then(Value::as_str).map(str::to_owned) {
        Some(text) => {
            fields.remove(name);
            text
        }
        None => String::new(),
    }
}

/// The texts of a mapping; none if it has other values.
fn texts(value: &Value) -> Option<BTreeMap<&str, String>> {
    let fields = value.as_object()?.iter();
    fields.map(|(key, value)| Some((key.as_str(), value.as_str()?.to_owned()))).collect()
}

fn patch(value: &Value) -> Option<PatchOption> {
    let patch = value.get("patch")?.as_str()?.to_owned();
    let target = match value.get("target") {
        None => None,
        Some(target) => {
            let mut texts = texts(target)?;
            let mut take = |name: &str| texts.remove(name).unwrap_or_default();
            let target = PatchTarget {
                group: take("group"),
                version: take("version"),
                kind: take("kind"),
                name: take("name"),
                namespace: take("namespace"),
                label_selector: take("labelSelector"),
                annotation_selector: take("annotationSelector"),
            };
            texts.is_empty().then_some(Some(target))?
        }
    };
    Some(PatchOption { patch, target })
}

fn image(value: &Value) -> Option<ImageOption> {
    let mut texts = texts(value)?;
    let mut take = |name: &str| texts.remove(name).unwrap_or_default();
    Some(ImageOption {
        name: take("name"),
        new_name: take("newName"),
        new_tag: take("newTag"),
        digest: take("digest"),
    })
}

/// Our answer for a folder with options.
pub(crate) fn built(tree: &FileTree, folder: &str, options: &KustomizeOptions) -> Answer {
    let root = BuildRoot { options: Some(options), ..BuildRoot::from(folder) };
    match build(tree, root) {
        Ok(built) => {
            Answer::Objects(built.objects.into_iter().map(|object| Value::Object(object.body)).collect())
        }
        Err(fault) => Answer::Refused { class: refusals::of_fault(&fault), text: fault.to_string() },
    }
}

/// A folder with options, and the same written out.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    files: Vec<(&'static str, String)>,
    options: KustomizeOptions,
    /// Files of the same without options, in place of those.
    written: Vec<(&'static str, String)>,
}

impl Row {
    /// The objects of the folder `app` with the options, as the Sync renders them.
    pub(crate) fn ours(&self) -> Vec<Value> {
        let options = RenderOptions {
            path: "app".into(),
            kustomize: Some(Arc::new(self.options.clone())),
            ..RenderOptions::default()
        };
        match render(&texts_tree(&self.files), &options) {
            Rendered::Complete(complete) => {
                complete.objects().iter().map(|object| Value::Object(object.object().body)).collect()
            }
            Rendered::Incomplete(incomplete) => panic!("{}: {:?}", self.name, incomplete.problems),
        }
    }

    /// The folder with the same written out: its files, without those that are replaced.
    pub(crate) fn written(&self) -> FileTree {
        let kept = self.files.iter().filter(|(path, _)| self.written.iter().all(|(other, _)| other != path));
        let all: Vec<_> = kept.chain(&self.written).cloned().collect();
        texts_tree(&all)
    }
}

fn texts_tree(files: &[(&'static str, String)]) -> FileTree {
    FileTree::from_texts(files.iter().map(|(path, text)| (*path, text.as_str())))
}

const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {team: old}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: 'registry.example.com/web:1', envFrom: [{configMapRef: {name: settings}}]}]
";

fn map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: '1'}}\n")
}

fn owned(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
}

/// The kustomization that sets labels and annotations on the objects of `app` alone.
const METADATA: &str = "resources: [../app]
labels: [{pairs: {team: new, tier: front}}]
transformers:
- |
  apiVersion: builtin
  kind: AnnotationsTransformer
  metadata: {name: notes}
  annotations: {owner: shop}
  fieldSpecs: [{path: metadata/annotations, create: true}]
";

/// Options without any effect.
fn nothing() -> KustomizeOptions {
    KustomizeOptions { field: "spec.render.kustomize".into(), ..KustomizeOptions::default() }
}

fn base() -> Vec<(&'static str, String)> {
    vec![("app/web.yaml", WEB.to_owned()), ("app/map.yaml", map("settings"))]
}

fn with(kustomization: &str) -> Vec<(&'static str, String)> {
    let mut files = base();
    files.push(("app/kustomization.yaml", kustomization.to_owned()));
    files
}

fn written(kustomization: Value) -> Vec<(&'static str, String)> {
    vec![("app/kustomization.yaml", kustomization.to_string())]
}

fn inline(patch: &str, kind: Option<&str>) -> PatchOption {
    let target = |kind: &str| PatchTarget { kind: kind.to_owned(), ..PatchTarget::default() };
    PatchOption { patch: patch.to_owned(), target: kind.map(target) }
}

const JSON_PATCH: &str = "- {op: add, path: /metadata/annotations/x, value: y}\n";

/// The table.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = rows_of_fields();
    rows.extend(rows_of_folders());
    rows
}

/// Fields that the kustomization has, too.
fn rows_of_fields() -> Vec<Row> {
    let merge = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n";
    vec![
        Row {
            name: "a prefix, a suffix and a namespace replace the written ones",
            files: with("resources: [web.yaml, map.yaml]\nnamePrefix: a-\nnameSuffix: -b\nnamespace: one\n"),
            options: KustomizeOptions {
                name_prefix: "c-".into(),
                name_suffix: "-d".into(),
                namespace: "two".into(),
                ..nothing()
            },
            written: written(
                json!({"resources": ["web.yaml", "map.yaml"], "namePrefix": "c-", "nameSuffix": "-d",
                "namespace": "two"}),
            ),
        },
        Row {
            name: "patches follow the written ones",
            files: with(
                "resources: [web.yaml, map.yaml]\npatches: [{patch: '[{\"op\": \"add\", \"path\": \"/spec/replicas\", \"value\": 2}]', target: {kind: Deployment}}]\n",
            ),
            options: KustomizeOptions {
                patches: vec![inline(merge, None), inline(JSON_PATCH, Some("ConfigMap|Deployment"))],
                ..nothing()
            },
            written: written(json!({"resources": ["web.yaml", "map.yaml"], "patches": [
                {"patch": "[{\"op\": \"add\", \"path\": \"/spec/replicas\", \"value\": 2}]", "target": {"kind": "Deployment"}},
                {"patch": merge}, {"patch": JSON_PATCH, "target": {"kind": "ConfigMap|Deployment"}}]})),
        },
        Row {
            name: "an image replaces the one of its name, with all of its fields",
            files: with(
                "resources: [web.yaml, map.yaml]\nimages: [{name: registry.example.com/web, newName: other, newTag: '2'}]\n",
            ),
            options: KustomizeOptions {
                images: vec![
                    ImageOption {
                        name: "registry.example.com/web".into(),
                        new_tag: "3".into(),
                        ..Default::default()
                    },
                    ImageOption { name: "absent".into(), new_tag: "4".into(), ..Default::default() },
                ],
                ..nothing()
            },
            written: written(json!({"resources": ["web.yaml", "map.yaml"], "images": [
                {"name": "registry.example.com/web", "newTag": "3"}, {"name": "absent", "newTag": "4"}]})),
        },
    ]
}

/// Components, labels, and folders without a kustomization.
fn rows_of_folders() -> Vec<Row> {
    let both = "resources: [web.yaml, map.yaml]\n";
    vec![
        Row {
            name: "a component is applied before the patches",
            files: {
                let mut files = with(both);
                files.push(("parts/tls/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [map.yaml]\nnamePrefix: c-\n".to_owned()));
                files.push(("parts/tls/map.yaml", map("tls")));
                files
            },
            options: KustomizeOptions {
                components: vec!["../parts/tls".into()],
                patches: vec![inline(JSON_PATCH, Some("ConfigMap"))],
                ..nothing()
            },
            written: written(json!({"resources": ["web.yaml", "map.yaml"], "components": ["../parts/tls"],
                "patches": [{"patch": JSON_PATCH, "target": {"kind": "ConfigMap"}}]})),
        },
        Row {
            name: "labels and annotations are for objects, not for selectors and templates",
            files: with(both),
            options: KustomizeOptions {
                labels: owned(&[("team", "new"), ("tier", "front")]),
                annotations: owned(&[("owner", "shop")]),
                ..nothing()
            },
            written: vec![("overlay/kustomization.yaml", METADATA.to_owned())],
        },
        Row {
            name: "a folder without a kustomization is one of its manifests",
            files: {
                let mut files = base();
                files.extend([
                    ("app/deep/er/map.yml", map("deep")),
                    (
                        "app/built/kustomization.yml",
                        "namePrefix: built-\nresources: [map.yaml, in]\n".to_owned(),
                    ),
                    ("app/built/map.yaml", map("one")),
                    ("app/built/not.yaml", map("not")),
                    ("app/built/in/Kustomization", "nameSuffix: -in\nresources: [map.yaml]\n".to_owned()),
                    ("app/built/in/map.yaml", map("two")),
                    ("app/notes.txt", "kind: none".to_owned()),
                    ("app/values.yaml", "replicas: 1\nimage: {kind: small}\n".to_owned()),
                ]);
                files
            },
            options: KustomizeOptions { name_prefix: "all-".into(), ..nothing() },
            written: written(json!({"namePrefix": "all-",
                "resources": ["built", "deep/er/map.yml", "map.yaml", "web.yaml"]})),
        },
        Row {
            name: "without any option, the folder is built like this, too",
            files: base(),
            options: nothing(),
            written: written(json!({"resources": ["map.yaml", "web.yaml"]})),
        },
    ]
}

/// The folder in which the same is written out.
pub(crate) fn written_folder(tree: &FileTree) -> &'static str {
    if tree.is_file("overlay/kustomization.yaml") { "overlay" } else { "app" }
}

/// Compares the objects of two answers.
pub(crate) fn verdict(ours: Vec<Value>, expected: &Answer) -> answer::Verdict {
    answer::compare(&Answer::Objects(ours), expected)
}
