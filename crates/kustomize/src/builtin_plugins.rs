//! Generators, transformers and validators that a kustomization configures by objects, in files or
//! inline.
//!
//! Only the built-in ones: programs and containers are never run.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::accumulator::Accumulator;
use super::build::Build;
use super::charts::{self, ChartSettings};
use super::error::{BuildError, Built, ErrorClass, FieldLocation};
use super::files::Folder;
use super::generated_objects::merge_generated;
use super::generators;
use super::generators::GeneratedKind;
use super::kustomization;
use super::node::{LocatedText, Node};
use super::plugin_transformers::run;
use super::provenance;
use super::resource::Resource;

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

/// Returns the error for a kind that is not built in.
pub(super) fn unknown(resource: &Resource, what: &str, at: &FieldLocation) -> BuildError {
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
pub(super) struct PluginFields {
    value: Value,
    at: FieldLocation,
}

impl PluginFields {
    pub(super) fn node(&self) -> Node<'_> {
        Node::new(&self.value, self.at.clone())
    }
}

/// Returns the known fields of a plugin's object.
pub(super) fn loose(body: &Value, at: &FieldLocation, known: &[&str]) -> PluginFields {
    let mut value = body.clone();
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| known.iter().any(|name| name.eq_ignore_ascii_case(key)));
    }
    PluginFields { value, at: at.clone() }
}
