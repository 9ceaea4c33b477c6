//! Generators, transformers and validators that a kustomization configures by objects, in files or
//! inline.
//!
//! Only the built-in ones: programs and containers are never run.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::build::{Accumulator, Build};
use super::charts::{self, ChartSettings};
use super::configuration::{FieldSpec, field_specs};
use super::error::{BuildError, Built, ErrorClass, FieldLocation};
use super::files::Folder;
use super::generated_objects::merge_generated;
use super::generators;
use super::generators::GeneratedKind;
use super::kustomization::{self, Patch};
use super::labels_images_replicas::{set_image, set_replicas, set_texts};
use super::name_hash;
use super::namespaces_and_affixes::{Affix, NamespaceOptions, Subjects, add_affix, set_namespace};
use super::node::{Fields, LocatedText, Node};
use super::patches;
use super::patches::PatchContext;
use super::provenance;
use super::replacement::replacements;
use super::resource::Resource;
use super::select::selector;
use super::transformers::{FIELDS_OF_A_LOOK, replace};

/// Returns the configuring objects: inline ones first, then those of files and folders.
fn configured(
    build: &Build<'_>,
    folder: &Folder,
    entries: &[LocatedText],
) -> Result<Vec<(Resource, FieldLocation)>, BuildError> {
    let (mut inline, mut paths) = (Vec::new(), Vec::new());
    for entry in entries {
        match build.files.resources(&build.files.display_path(&entry.at.file), entry.text.as_bytes()) {
            Ok(mut found) => {
                if build.tracks_changes {
                    let name = entry.at.file.rsplit('/').next().unwrap_or_default();
                    let source = folder.source.append(name);
                    found.iter_mut().try_for_each(|it| provenance::record_origin(it, &source))?;
                }
                inline.extend(found.into_iter().map(|resource| (resource, entry.at.clone())));
            }
            Err(_) => paths.push(entry.clone()),
        }
    }
    for entry in &paths {
        let mut found = Accumulator::default();
        build.add_resources(folder, std::slice::from_ref(entry), &mut found)?;
        inline.extend(found.resources.into_iter().map(|resource| (resource, entry.at.clone())));
    }
    let mut known = HashSet::new();
    if let Some((resource, at)) = inline.iter().find(|(resource, _)| !known.insert(resource.id().key())) {
        return Err(
            at.error(ErrorClass::Duplicate, format!("{} is there twice; give them names", resource.id()))
        );
    }
    Ok(inline)
}

fn is_builtin(resource: &Resource, at: &FieldLocation) -> Result<(), BuildError> {
    match resource.api_version() {
        "builtin" => Ok(()),
        version => {
            let text = format!(
                "{version} {} is an exec or container plugin, and these are not supported",
                resource.kind()
            );
            Err(at.error(ErrorClass::Unsupported, text))
        }
    }
}

fn unknown(resource: &Resource, what: &str, at: &FieldLocation) -> BuildError {
    let kind = resource.kind();
    let text = match kind {
        "ValueAddTransformer" => format!("{kind} is not supported"),
        _ => format!("{kind} is not a built-in {what}"),
    };
    at.error(ErrorClass::Unsupported, text)
}

/// Runs generators.
pub(super) fn generate(
    build: &Build<'_>,
    folder: &Folder,
    entries: &[LocatedText],
    into: &mut Accumulator,
) -> Built<()> {
    for (resource, at) in configured(build, folder, entries)? {
        is_builtin(&resource, &at)?;
        let made = match resource.kind() {
            "ConfigMapGenerator" => GeneratedKind::ConfigMap,
            "SecretGenerator" => GeneratedKind::Secret,
            "IAMPolicyGenerator" => {
                let step = ("generators", resource.kind());
                for mut account in account(build, &resource, &at)? {
                    track(build, folder, &resource, &mut account)?;
                    build.run_step(step, &at, &mut into.resources, |it| merge_generated(it, account, &at))?;
                }
                continue;
            }
            "HelmChartInflationGenerator" => {
                let read = loose(&resource.body, &at, &charts::FIELDS);
                let (chart, home) = charts::read_plugin_chart(&read.node())?;
                let around = ChartSettings { home: &home, namespace: "", digests: &BTreeMap::new() };
                build.add_chart(folder, (&chart, "generators"), around, into)?;
                continue;
            }
            _ => return Err(unknown(&resource, "generator", &at)),
        };
        let mut body = resource.body.clone();
        if let Some(name) = Some(resource.name()).filter(|_| body.get("name").is_none()) {
            body["name"] = name.into();
        }
        if let Some(namespace) =
            Some(resource.namespace()).filter(|it| !it.is_empty() && body.get("namespace").is_none())
        {
            body["namespace"] = (*namespace).into();
        }
        let generator =
            kustomization::generator(&loose(&body, &at, &GENERATOR).node(), made == GeneratedKind::Secret)?;
        let mut made = generators::generate(build.files, folder, made, &generator, None)?;
        track(build, folder, &resource, &mut made)?;
        let step = ("generators", resource.kind());
        build.run_step(step, &at, &mut into.resources, |it| merge_generated(it, made, &at))?;
    }
    Ok(())
}

/// Records the generator of an object in its annotations, if they are requested.
fn track(build: &Build<'_>, folder: &Folder, plugin: &Resource, made: &mut Resource) -> Built<()> {
    match build.tracks_changes {
        true => provenance::record_generator(made, &folder.source, provenance::by_plugin(plugin)),
        false => Ok(()),
    }
}

/// Returns the ServiceAccount of an IAMPolicyGenerator. Kustomize formats it as text, so that a
/// name like `1` becomes a number.
fn account(build: &Build<'_>, plugin: &Resource, at: &FieldLocation) -> Result<Vec<Resource>, BuildError> {
    const KNOWN: [&str; 3] = ["cloud", "kubernetesService", "serviceAccount"];
    let read = loose(&plugin.body, at, &KNOWN);
    let fields = read.node().fields(&KNOWN)?;
    match fields.text("cloud")?.as_str() {
        "gke" => {}
        other => {
            return Err(at.error(ErrorClass::Generator, format!("the cloud {other} is not known; gke is")));
        }
    }
    let part = |name, known: [&'static str; 2]| {
        let fields = fields.get(name).map(|node| node.fields(&known)).transpose()?;
        let text = |name| fields.as_ref().map_or(Ok(String::new()), |fields| fields.text(name));
        Ok::<_, BuildError>((text(known[0])?, text(known[1])?))
    };
    let (name, namespace) = part("kubernetesService", ["name", "namespace"])?;
    let (account, project) = part("serviceAccount", ["name", "projectId"])?;
    let namespace = if namespace.is_empty() { namespace } else { format!("  namespace: {namespace}\n") };
    let text = format!(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  annotations:\n    \
         iam.gke.io/gcp-service-account: {account}@{project}.iam.gserviceaccount.com\n  name: {name}\n{namespace}"
    );
    build.files.resources(&build.files.display_path(&at.file), text.as_bytes())
}

/// Runs transformers.
pub(super) fn transform(
    build: &Build<'_>,
    folder: &Folder,
    entries: &[LocatedText],
    into: &mut Accumulator,
) -> Built<()> {
    for (resource, at) in configured(build, folder, entries)? {
        is_builtin(&resource, &at)?;
        let change = |it: &mut Vec<Resource>| run(build, folder, &resource, &at, it);
        build.run_step(("transformers", resource.kind()), &at, &mut into.resources, change)?;
        if build.tracks_changes {
            provenance::record_transformer(&mut into.resources, provenance::by_plugin(&resource).as_deref())?;
        }
    }
    Ok(())
}

/// Runs validators: transformers that must not change anything.
pub(super) fn validate(
    build: &Build<'_>,
    folder: &Folder,
    entries: &[LocatedText],
    into: &mut Accumulator,
) -> Built<()> {
    for (resource, at) in configured(build, folder, entries)? {
        is_builtin(&resource, &at)?;
        let mut copy = into.resources.clone();
        run(build, folder, &resource, &at, &mut copy)?;
        let is_equal = without_label(&copy).iter().eq(into.resources.iter().map(|it| &it.body));
        if !is_equal {
            return Err(
                at.error(ErrorClass::Field, "a validator must not change anything, and this one does")
            );
        }
        into.resources = copy;
    }
    Ok(())
}

/// The only label that a validator may add.
const VALIDATED_BY: &str = "validated-by";

/// Returns the objects without the label that a validator may add. Kustomize rewrites the other
/// labels when it removes this one, and counts that as a change.
fn without_label(resources: &[Resource]) -> Vec<Value> {
    let body = |resource: &Resource| {
        let mut body = resource.body.clone();
        if let Some(labels) = body.pointer_mut("/metadata/labels").and_then(Value::as_object_mut)
            && labels.remove(VALIDATED_BY).is_some()
        {
            if !labels.is_empty() {
                return Value::Null;
            }
            if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("labels");
            }
        }
        body
    };
    resources.iter().map(body).collect()
}

const GENERATOR: [&str; 9] =
    ["name", "namespace", "behavior", "literals", "files", "envs", "env", "options", "type"];

/// Fields that a plugin reads from its object; other fields are ignored.
struct PluginFields {
    value: Value,
    at: FieldLocation,
}

impl PluginFields {
    fn node(&self) -> Node<'_> {
        Node::new(&self.value, self.at.clone())
    }
}

fn loose(body: &Value, at: &FieldLocation, known: &[&str]) -> PluginFields {
    let mut value = body.clone();
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| known.iter().any(|name| name.eq_ignore_ascii_case(key)));
    }
    PluginFields { value, at: at.clone() }
}

/// Reads texts of a plugin's object, which may be written as booleans and numbers.
fn texts(fields: &Fields<'_>, name: &'static str) -> Result<BTreeMap<String, String>, BuildError> {
    let Some(node) = fields.get(name) else { return Ok(BTreeMap::new()) };
    let Value::Object(map) = node.value else { return node.text_map() };
    let text = |(key, value): (&String, &Value)| {
        let text = match value {
            Value::Bool(flag) => flag.to_string(),
            Value::Number(number) if !number.is_f64() || number.as_f64().is_some_and(is_plain) => {
                number.to_string()
            }
            value => Node::new(value, node.at.key(key)).text()?,
        };
        Ok((key.clone(), text))
    };
    map.iter().map(text).collect()
}

/// True if kustomize formats a float without an exponent.
fn is_plain(float: f64) -> bool {
    float == 0.0 || (1e-4..1e21).contains(&float.abs())
}

fn specs(fields: &Fields<'_>) -> Result<Vec<FieldSpec>, BuildError> {
    fields.get("fieldSpecs").map_or(Ok(Vec::new()), |node| field_specs(&node))
}

fn run(
    build: &Build<'_>,
    folder: &Folder,
    plugin: &Resource,
    at: &FieldLocation,
    resources: &mut Vec<Resource>,
) -> Built<()> {
    let ground = PatchContext { files: build.files, folder, schemas: build.schemas() };
    let read = |known: &[&str]| loose(&plugin.body, at, known);
    let set = |texts: &BTreeMap<String, String>, specs: &[FieldSpec], resources: &mut Vec<Resource>| {
        build.files.count_visits(resources.len(), texts.len().saturating_mul(specs.len()), at)?;
        set_texts(resources, texts, specs, at)
    };
    // Every transformer does its work for each of its fields.
    let specs_count = plugin.body.get("fieldSpecs").and_then(Value::as_array).map_or(0, Vec::len);
    build.files.count_visits(resources.len(), specs_count / FIELDS_OF_A_LOOK, at)?;
    match plugin.kind() {
        "LabelTransformer" => {
            let (read, known) = (read(&["labels", "fieldSpecs"]), ["labels", "fieldSpecs"]);
            let fields = read.node().fields(&known)?;
            set(&texts(&fields, "labels")?, &specs(&fields)?, resources)
        }
        "AnnotationsTransformer" => {
            let (read, known) = (read(&["annotations", "fieldSpecs"]), ["annotations", "fieldSpecs"]);
            let fields = read.node().fields(&known)?;
            set(&texts(&fields, "annotations")?, &specs(&fields)?, resources)
        }
        "ImageTagTransformer" => {
            let (read, known) = (read(&["imageTag", "fieldSpecs"]), ["imageTag", "fieldSpecs"]);
            let fields = read.node().fields(&known)?;
            let image = fields.get("imageTag").map(|node| kustomization::image(&node)).transpose()?;
            set_image(resources, &image.unwrap_or_default(), &specs(&fields)?)
        }
        "ReplicaCountTransformer" => {
            let (read, known) = (read(&["replica", "fieldSpecs"]), ["replica", "fieldSpecs"]);
            let fields = read.node().fields(&known)?;
            let Some(replica) = fields.get("replica") else {
                return Err(at.error(ErrorClass::Field, "replica is missing"));
            };
            set_replicas(resources, &kustomization::replicas(&replica)?, &specs(&fields)?)
        }
        "PrefixTransformer" | "SuffixTransformer" | "PrefixSuffixTransformer" => {
            run_affix(plugin, at, resources)
        }
        "NamespaceTransformer" => run_namespace(plugin, at, resources),
        "PatchTransformer" | "PatchJson6902Transformer" | "PatchStrategicMergeTransformer" => {
            run_patch(plugin, at, ground, resources)
        }
        "ReplacementTransformer" => {
            let read = read(&["replacements"]);
            let entries = read.node().fields(&["replacements"])?.each("replacements", replacements)?;
            replace(build, folder, (&entries, at), resources)
        }
        "HashTransformer" => {
            name_hash::add_hashes(resources);
            Ok(())
        }
        _ => Err(unknown(plugin, "transformer", at)),
    }
}

fn run_affix(plugin: &Resource, at: &FieldLocation, resources: &mut [Resource]) -> Built<()> {
    let read = loose(&plugin.body, at, &["prefix", "suffix", "fieldSpecs"]);
    let fields = read.node().fields(&["prefix", "suffix", "fieldSpecs"])?;
    if fields.get("fieldSpecs").is_none() {
        return Err(at.error(ErrorClass::Field, "fieldSpecs are missing"));
    }
    let (prefix, suffix) = (fields.text("prefix")?, fields.text("suffix")?);
    let specs = specs(&fields)?;
    if plugin.kind() != "SuffixTransformer" {
        add_affix(resources, Affix::Prefix(&prefix), &specs, at)?;
    }
    if plugin.kind() != "PrefixTransformer" {
        add_affix(resources, Affix::Suffix(&suffix), &specs, at)?;
    }
    Ok(())
}

fn run_namespace(plugin: &Resource, at: &FieldLocation, resources: &mut [Resource]) -> Built<()> {
    let read = loose(&plugin.body, at, &["fieldSpecs", "unsetOnly", "setRoleBindingSubjects"]);
    let fields = read.node().fields(&["fieldSpecs", "unsetOnly", "setRoleBindingSubjects"])?;
    let subjects = match fields.text("setRoleBindingSubjects")?.as_str() {
        "" | "defaultOnly" => Subjects::Default,
        "allServiceAccounts" => Subjects::ServiceAccounts,
        "none" => Subjects::None,
        _ => {
            let text = "setRoleBindingSubjects must be defaultOnly, allServiceAccounts or none";
            return Err(at.error(ErrorClass::Field, text));
        }
    };
    let namespacing = NamespaceOptions {
        namespace: &plugin.namespace(),
        fields: &specs(&fields)?,
        subjects,
        only_unset: fields.flag("unsetOnly")?,
    };
    set_namespace(resources, &namespacing, at)
}

fn run_patch(
    plugin: &Resource,
    at: &FieldLocation,
    ground: PatchContext<'_>,
    resources: &mut Vec<Resource>,
) -> Built<()> {
    match plugin.kind() {
        "PatchTransformer" => {
            let read = loose(&plugin.body, at, &["path", "patch", "target", "options"]);
            patches::apply(resources, &kustomization::patch(&read.node())?, ground)
        }
        "PatchJson6902Transformer" => {
            let read = loose(&plugin.body, at, &["path", "jsonOp", "target"]);
            let fields = read.node().fields(&["path", "jsonOp", "target"])?;
            let patch = Patch {
                at: at.clone(),
                path: fields.text("path")?,
                patch: fields.text("jsonOp")?,
                target: fields.get("target").map(|node| selector(&node)).transpose()?,
                allow_name_change: false,
                allow_kind_change: false,
            };
            patches::apply_operations(resources, &patch, ground)
        }
        _ => {
            let read = loose(&plugin.body, at, &["paths", "patches"]);
            let fields = read.node().fields(&["paths", "patches"])?;
            let mut entries = fields.texts("paths")?;
            if let Some(patches) = fields.get("patches") {
                entries.push(LocatedText { text: patches.text()?, at: patches.at });
            }
            if entries.is_empty() {
                return Err(at.error(ErrorClass::Patch, "neither paths nor patches are given"));
            }
            entries.iter().try_for_each(|entry| patches::apply_merge(resources, entry, ground))
        }
    }
}
