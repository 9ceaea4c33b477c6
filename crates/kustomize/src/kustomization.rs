//! Reads the fields of a kustomization.
//!
//! In: the bytes of a kustomization file. Out: [`Kustomization`], with deprecated fields converted
//! to current ones.

use std::collections::BTreeMap;

use serde_json::Value;

use super::charts::{self, ChartEntry};
use super::configuration::{FieldSpec, field_specs};
use super::error::{BuildError, Built, ErrorClass, FieldLocation};
use super::node::{Fields, LocatedText, Node};
use super::replacement::{Replacements, replacements};
use super::select::{Selector, selector};
use moorline_api::CHART_DIGEST_PREFIX;
use moorline_yaml::{self as yaml, KeepGoing};

/// File names of kustomizations.
pub const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

const FIELDS: [&str; 34] = [
    "apiVersion",
    "kind",
    "metadata",
    "openapi",
    "namePrefix",
    "nameSuffix",
    "namespace",
    "commonLabels",
    "labels",
    "commonAnnotations",
    "patchesStrategicMerge",
    "patchesJson6902",
    "patches",
    "images",
    "imageTags",
    "replacements",
    "replicas",
    "vars",
    "sortOptions",
    "resources",
    "components",
    "crds",
    "bases",
    "configMapGenerator",
    "secretGenerator",
    "helmGlobals",
    "helmCharts",
    "helmChartInflationGenerator",
    "generatorOptions",
    "configurations",
    "generators",
    "transformers",
    "validators",
    "buildMetadata",
];

/// One kustomization or component.
#[derive(Debug, Default)]
pub(super) struct Kustomization {
    pub(super) at: FieldLocation,
    pub(super) is_component: bool,
    pub(super) openapi: BTreeMap<String, String>,
    pub(super) name_prefix: String,
    pub(super) name_suffix: String,
    pub(super) namespace: String,
    pub(super) common_labels: BTreeMap<String, String>,
    pub(super) labels: Vec<Labels>,
    pub(super) common_annotations: BTreeMap<String, String>,
    pub(super) merge_patches: Vec<LocatedText>,
    pub(super) json_patches: Vec<Patch>,
    pub(super) patches: Vec<Patch>,
    pub(super) images: Vec<Image>,
    pub(super) replacements: Vec<Replacements>,
    pub(super) replicas: Vec<Replicas>,
    pub(super) vars: Vec<Var>,
    pub(super) sorting: Option<Sorting>,
    pub(super) resources: Vec<LocatedText>,
    pub(super) components: Vec<LocatedText>,
    pub(super) crds: Vec<LocatedText>,
    pub(super) config_maps: Vec<Generator>,
    pub(super) secrets: Vec<Generator>,
    pub(super) generator_options: Option<GeneratorOptions>,
    pub(super) configurations: Vec<LocatedText>,
    pub(super) generators: Vec<LocatedText>,
    pub(super) transformers: Vec<LocatedText>,
    pub(super) validators: Vec<LocatedText>,
    pub(super) build_metadata: Vec<LocatedText>,
    pub(super) charts: Vec<ChartEntry>,
    pub(super) chart_home: String,
    /// Digests of published charts, by name and version.
    pub(super) digests: BTreeMap<String, String>,
    /// Fields that options of the caller replace.
    pub(super) from_options: Vec<(&'static str, FieldLocation)>,
}

impl Kustomization {
    /// Returns the position of a field that may come from options.
    pub(super) fn field(&self, name: &str) -> FieldLocation {
        let option = self.from_options.iter().find(|(option, _)| *option == name);
        option.map_or_else(|| self.at.key(name), |(_, at)| at.clone())
    }

    /// True if the build may copy values from one object to another.
    pub(super) fn copies_values(&self) -> bool {
        !(self.replacements.is_empty() && self.vars.is_empty() && self.transformers.is_empty())
    }
}

#[derive(Debug)]
pub(super) struct Labels {
    pub(super) at: FieldLocation,
    pub(super) pairs: BTreeMap<String, String>,
    pub(super) include_selectors: bool,
    pub(super) include_templates: bool,
    pub(super) fields: Vec<FieldSpec>,
}

#[derive(Debug, Clone)]
pub(super) struct Patch {
    pub(super) at: FieldLocation,
    pub(super) path: String,
    pub(super) patch: String,
    pub(super) target: Option<Selector>,
    pub(super) allow_name_change: bool,
    pub(super) allow_kind_change: bool,
}

#[derive(Debug, Default)]
pub(super) struct Image {
    pub(super) name: String,
    pub(super) new_name: String,
    pub(super) new_tag: String,
    pub(super) tag_suffix: String,
    pub(super) digest: String,
    pub(super) at: FieldLocation,
}

#[derive(Debug)]
pub(super) struct Replicas {
    pub(super) at: FieldLocation,
    pub(super) name: String,
    pub(super) count: i64,
}

#[derive(Debug, Clone)]
pub(super) struct Var {
    pub(super) at: FieldLocation,
    pub(super) name: String,
    pub(super) api_version: String,
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) object: String,
    pub(super) namespace: String,
    pub(super) field: String,
}

#[derive(Debug, Clone)]
pub(super) struct Sorting {
    pub(super) at: FieldLocation,
    pub(super) order: String,
    pub(super) legacy: Option<(Vec<String>, Vec<String>)>,
}

#[derive(Debug, Clone)]
pub(super) struct Generator {
    pub(super) at: FieldLocation,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) behavior: String,
    pub(super) secret_type: String,
    pub(super) literals: Vec<LocatedText>,
    pub(super) files: Vec<LocatedText>,
    pub(super) envs: Vec<LocatedText>,
    pub(super) options: Option<GeneratorOptions>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct GeneratorOptions {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) no_hash: bool,
    pub(super) immutable: bool,
}

/// Reads a kustomization file.
pub(super) fn read(file: &str, shown: &str, bytes: &[u8], go_on: KeepGoing<'_>) -> Built<Kustomization> {
    let documents = yaml::read_as_written(shown, bytes, go_on);
    let documents = documents.map_err(|error| BuildError::invalid_yaml(ErrorClass::Kustomization, &error))?;
    let at = FieldLocation::file(file);
    // Kustomize ignores documents after the first.
    let Some(first) = documents.first() else {
        return Err(at.error(ErrorClass::Kustomization, "it is empty"));
    };
    decode(&first.value, &at)
}

fn decode(value: &Value, at: &FieldLocation) -> Built<Kustomization> {
    let fields = Node::new(value, at.clone()).fields(&FIELDS)?;
    let is_component = head(&fields)?;
    if FIELDS[3..].iter().all(|name| fields.get(name).is_none()) && fields.get("metadata").is_none() {
        return Err(at.error(ErrorClass::Kustomization, "it is empty"));
    }
    if let Some(node) = fields.get("helmChartInflationGenerator") {
        let text = "helmChartInflationGenerator is the old form of helmCharts and helmGlobals; write these";
        return Err(node.at.error(ErrorClass::Unsupported, text));
    }
    let mut digests = BTreeMap::new();
    if let Some(metadata) = fields.get("metadata") {
        let metadata = metadata.fields(&["name", "namespace", "labels", "annotations"])?;
        for field in ["name", "namespace"] {
            metadata.text(field)?;
        }
        metadata.text_map("labels")?;
        let annotations = metadata.text_map("annotations")?.into_iter();
        let digest =
            |(key, value): (String, String)| Some((key.strip_prefix(CHART_DIGEST_PREFIX)?.to_owned(), value));
        digests.extend(annotations.filter_map(digest));
    }
    let mut images = fields.each("images", image)?;
    images.extend(fields.each("imageTags", image)?);
    let mut resources = fields.texts("resources")?;
    resources.extend(fields.texts("bases")?);
    Ok(Kustomization {
        at: at.clone(),
        is_component,
        openapi: fields.text_map("openapi")?,
        name_prefix: fields.text("namePrefix")?,
        name_suffix: fields.text("nameSuffix")?,
        namespace: fields.text("namespace")?,
        common_labels: fields.text_map("commonLabels")?,
        labels: fields.each("labels", labels)?,
        common_annotations: fields.text_map("commonAnnotations")?,
        merge_patches: fields.texts("patchesStrategicMerge")?,
        json_patches: fields.each("patchesJson6902", patch)?,
        patches: fields.each("patches", patch)?,
        images,
        replacements: fields.each("replacements", replacements)?,
        replicas: fields.each("replicas", replicas)?,
        vars: fields.each("vars", var)?,
        sorting: fields.get("sortOptions").map(|node| sorting(&node)).transpose()?,
        resources,
        components: fields.texts("components")?,
        crds: fields.texts("crds")?,
        config_maps: fields.each("configMapGenerator", |node| generator(node, false))?,
        secrets: fields.each("secretGenerator", |node| generator(node, true))?,
        generator_options: fields.get("generatorOptions").map(|node| options(&node)).transpose()?,
        configurations: fields.texts("configurations")?,
        generators: fields.texts("generators")?,
        transformers: fields.texts("transformers")?,
        validators: fields.texts("validators")?,
        build_metadata: fields.texts("buildMetadata")?,
        charts: fields.each("helmCharts", charts::read_chart)?,
        chart_home: charts::read_chart_home(fields.get("helmGlobals"))?,
        digests,
        from_options: Vec::new(),
    })
}

/// Checks kind and apiVersion; true for a component.
fn head(fields: &Fields<'_>) -> Built<bool> {
    let (kind, version) = (fields.text("kind")?, fields.text("apiVersion")?);
    let (is_component, expected) = match kind.as_str() {
        "" | "Kustomization" => (false, "kustomize.config.k8s.io/v1beta1"),
        "Component" => (true, "kustomize.config.k8s.io/v1alpha1"),
        _ => {
            let text = format!("found the kind {kind}, expected Kustomization or Component");
            return Err(fields.at.key("kind").error(ErrorClass::Kustomization, text));
        }
    };
    match version.is_empty() || version == expected {
        true => Ok(is_component),
        false => {
            let text = format!("found the version {version}, expected {expected}");
            Err(fields.at.key("apiVersion").error(ErrorClass::Kustomization, text))
        }
    }
}

fn labels(node: &Node<'_>) -> Built<Labels> {
    let fields = node.fields(&["pairs", "includeSelectors", "includeTemplates", "fields"])?;
    Ok(Labels {
        at: node.at.clone(),
        pairs: fields.text_map("pairs")?,
        include_selectors: fields.flag("includeSelectors")?,
        include_templates: fields.flag("includeTemplates")?,
        fields: fields.get("fields").map_or(Ok(Vec::new()), |node| field_specs(&node))?,
    })
}

pub(super) fn patch(node: &Node<'_>) -> Built<Patch> {
    let fields = node.fields(&["path", "patch", "target", "options"])?;
    let options = fields.get("options").map(|node| node.fields(&["allowNameChange", "allowKindChange"]));
    let options = options.transpose()?;
    let allows = |name| options.as_ref().map_or(Ok(false), |options| options.flag(name));
    Ok(Patch {
        at: node.at.clone(),
        path: fields.text("path")?,
        patch: fields.text("patch")?,
        target: fields.get("target").map(|node| selector(&node)).transpose()?,
        allow_name_change: allows("allowNameChange")?,
        allow_kind_change: allows("allowKindChange")?,
    })
}

pub(super) fn image(node: &Node<'_>) -> Built<Image> {
    let fields = node.fields(&["name", "newName", "newTag", "tagSuffix", "digest"])?;
    Ok(Image {
        name: fields.text("name")?,
        new_name: fields.text("newName")?,
        new_tag: fields.text("newTag")?,
        tag_suffix: fields.text("tagSuffix")?,
        digest: fields.text("digest")?,
        at: node.at.clone(),
    })
}

pub(super) fn replicas(node: &Node<'_>) -> Built<Replicas> {
    let fields = node.fields(&["name", "count"])?;
    Ok(Replicas { at: node.at.clone(), name: fields.text("name")?, count: fields.integer("count")? })
}

fn var(node: &Node<'_>) -> Built<Var> {
    let fields = node.fields(&["name", "objref", "fieldref"])?;
    let target = ["apiVersion", "group", "version", "kind", "name", "namespace"];
    let object = fields.get("objref").map(|node| node.fields(&target)).transpose()?;
    let of_object = |name| object.as_ref().map_or(Ok(String::new()), |object| object.text(name));
    let field = fields.get("fieldref").map(|node| node.fields(&["fieldpath"])).transpose()?;
    let field = field.map_or(Ok(String::new()), |field| field.text("fieldpath"))?;
    Ok(Var {
        at: node.at.clone(),
        name: fields.text("name")?,
        api_version: of_object("apiVersion")?,
        group: of_object("group")?,
        version: of_object("version")?,
        kind: of_object("kind")?,
        object: of_object("name")?,
        namespace: of_object("namespace")?,
        field: if field.is_empty() { "metadata.name".to_owned() } else { field },
    })
}

fn sorting(node: &Node<'_>) -> Built<Sorting> {
    let fields = node.fields(&["order", "legacySortOptions"])?;
    let legacy = fields.get("legacySortOptions").map(|node| {
        let fields = node.fields(&["orderFirst", "orderLast"])?;
        let kinds = |name| Ok(fields.texts(name)?.into_iter().map(|kind| kind.text).collect());
        Ok((kinds("orderFirst")?, kinds("orderLast")?))
    });
    Ok(Sorting { at: node.at.clone(), order: fields.text("order")?, legacy: legacy.transpose()? })
}

pub(super) fn generator(node: &Node<'_>, is_secret: bool) -> Built<Generator> {
    let known = ["name", "namespace", "behavior", "literals", "files", "envs", "env", "options", "type"];
    let fields = node.fields(if is_secret { &known } else { &known[..8] })?;
    let mut envs = fields.texts("envs")?;
    if let Some(env) = fields.get("env") {
        envs.push(LocatedText { text: env.text()?, at: env.at });
    }
    Ok(Generator {
        at: node.at.clone(),
        name: fields.text("name")?,
        namespace: fields.text("namespace")?,
        behavior: fields.text("behavior")?,
        secret_type: if is_secret { fields.text("type")? } else { String::new() },
        literals: fields.texts("literals")?,
        files: fields.texts("files")?,
        envs: envs.into_iter().filter(|env| !env.text.is_empty()).collect(),
        options: fields.get("options").map(|node| options(&node)).transpose()?,
    })
}

pub(super) fn options(node: &Node<'_>) -> Built<GeneratorOptions> {
    let fields = node.fields(&["labels", "annotations", "disableNameSuffixHash", "immutable"])?;
    Ok(GeneratorOptions {
        labels: fields.text_map("labels")?,
        annotations: fields.text_map("annotations")?,
        no_hash: fields.flag("disableNameSuffixHash")?,
        immutable: fields.flag("immutable")?,
    })
}
