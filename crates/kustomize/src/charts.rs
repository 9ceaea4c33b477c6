//! `helmCharts`: charts that helm renders and the kustomization changes.
//!
//! In: an entry of the list, or a `HelmChartInflationGenerator`. Out: the objects in helm's output
//! for it. Helm does not run here: the output of the run is looked up in the tree. If it is
//! missing, the run is recorded as wanted, and the caller runs helm and builds again. The same
//! holds for a published chart, for which the kustomization must state the digest. Helm gets the
//! same arguments as from kustomize.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::build::Build;
use super::error::{BuildError, ErrorClass, FieldLocation};
use super::files::Folder;
use super::host::{ChartInflation, ChartOutput};
use super::node::{Fields, LocatedText, Node};
use super::resource::Resource;
use super::scalar_style::Spelling;
use super::strategic::{self, Merged, TargetStyle};
use moorline_api::CHART_DIGEST_PREFIX;
use moorline_core::name_rules::is_release;
use moorline_core::position::SourcePosition;
use moorline_core::tree::FileTree;
use moorline_yaml::{self as yaml, Dialect};

/// Default folder of charts.
const HOME: &str = "charts";

/// Fields of a chart, followed by those of `helmGlobals`.
pub(super) const FIELDS: [&str; 19] = [
    "name",
    "version",
    "repo",
    "releaseName",
    "namespace",
    "additionalValuesFiles",
    "valuesFile",
    "valuesInline",
    "valuesMerge",
    "includeCRDs",
    "skipHooks",
    "apiVersions",
    "kubeVersion",
    "nameTemplate",
    "skipTests",
    "debug",
    "devel",
    "chartHome",
    "configHome",
];
const GLOBALS: usize = 17;

/// One chart of a kustomization.
#[derive(Debug, Clone)]
pub(super) struct ChartEntry {
    pub(super) at: FieldLocation,
    name: String,
    version: String,
    repo: String,
    namespace: String,
    values_file: String,
    more_values: Vec<LocatedText>,
    values: Map<String, Value>,
    merge: ValuesPrecedence,
    inflation: ChartInflation,
}

/// A published chart, which is not in the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedChart {
    /// URL of the chart repository, or of the registry with the path in it.
    pub url: String,
    /// Name of the chart; none for a registry, where it is part of the URL.
    pub name: Option<String>,
    /// Version of the chart.
    pub version: String,
    /// Required digest.
    pub digest: String,
    /// Position of the entry in the kustomization.
    pub place: SourcePosition,
}

/// Location of a chart.
enum ChartLocation {
    /// In this folder of the repository.
    Repository(String),
    /// In a tree of its own.
    Fetched(FileTree),
}

/// Settings of a kustomization for all of its charts.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChartSettings<'a> {
    /// Folder of the charts.
    pub(super) home: &'a str,
    /// Namespace of charts that have none.
    pub(super) namespace: &'a str,
    /// Digests of published charts, by name and version.
    pub(super) digests: &'a BTreeMap<String, String>,
}

/// Precedence between a values file and inline values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValuesPrecedence {
    Inline,
    File,
    /// Inline values only, without the file.
    Alone,
}

/// Reads the fields of `helmGlobals` and returns the folder of charts. `configHome` is accepted and
/// ignored: helm runs here with an empty configuration.
pub(super) fn read_chart_home(node: Option<Node<'_>>) -> Result<String, BuildError> {
    let Some(node) = node else { return Ok(HOME.to_owned()) };
    home_of(&node.fields(&["chartHome", "configHome"])?)
}

fn home_of(fields: &Fields<'_>) -> Result<String, BuildError> {
    fields.text("configHome")?;
    let home = fields.text("chartHome")?;
    Ok(if home.is_empty() { HOME.to_owned() } else { home })
}

/// Reads an entry of `helmCharts`.
pub(super) fn read_chart(node: &Node<'_>) -> Result<ChartEntry, BuildError> {
    read(&node.fields(&FIELDS[..GLOBALS])?, &node.at)
}

/// Reads a `HelmChartInflationGenerator`, which also has the fields of `helmGlobals`; returns the
/// chart and its folder.
pub(super) fn read_plugin_chart(node: &Node<'_>) -> Result<(ChartEntry, String), BuildError> {
    let fields = node.fields(&FIELDS)?;
    Ok((read(&fields, &node.at)?, home_of(&fields)?))
}

fn read(fields: &Fields<'_>, at: &FieldLocation) -> Result<ChartEntry, BuildError> {
    let name = fields.text("name")?;
    if name.is_empty() {
        return Err(at.error(ErrorClass::Generator, "a chart needs a name"));
    }
    let merge = match fields.text("valuesMerge")?.as_str() {
        "" | "override" => ValuesPrecedence::Inline,
        "merge" => ValuesPrecedence::File,
        "replace" => ValuesPrecedence::Alone,
        _ => {
            let text = "valuesMerge must be override, merge or replace";
            return Err(at.key("valuesMerge").error(ErrorClass::Field, text));
        }
    };
    let values = match fields.get("valuesInline").map(|node| (node.value, node.at)) {
        None => Map::new(),
        Some((Value::Object(values), at)) => exact(values, &at)?,
        Some((_, at)) => return Err(at.error(ErrorClass::Field, "values are a mapping")),
    };
    // These only change how kustomize contacts servers and reports errors, not the objects.
    fields.flag("debug")?;
    fields.flag("devel")?;
    let api_versions = fields.texts("apiVersions")?.into_iter().map(|it| it.text).collect();
    let inflation = ChartInflation {
        release: release(fields, at)?,
        namespace: String::new(),
        name_template: fields.text("nameTemplate")?,
        values: Vec::new(),
        api_versions,
        kube_version: fields.text("kubeVersion")?,
        with_crds: fields.flag("includeCRDs")?,
        without_tests: fields.flag("skipTests")?,
        without_hooks: fields.flag("skipHooks")?,
    };
    Ok(ChartEntry {
        at: at.clone(),
        name,
        version: fields.text("version")?,
        repo: fields.text("repo")?,
        namespace: fields.text("namespace")?,
        values_file: fields.text("valuesFile")?,
        more_values: fields.texts("additionalValuesFiles")?,
        values,
        merge,
        inflation,
    })
}

/// Reads the name of the release; helm must not take it for a flag.
fn release(fields: &Fields<'_>, at: &FieldLocation) -> Result<String, BuildError> {
    let name = fields.text("releaseName")?;
    match name.is_empty() || is_release(&name) {
        true => Ok(name),
        false => {
            let text = format!(
                "{name:?} is not a release name: use at most 53 lower-case letters, digits and dashes"
            );
            Err(at.key("releaseName").error(ErrorClass::Field, text))
        }
    }
}

/// Largest integer that kustomize keeps exactly: it converts all numbers of a kustomization to
/// floats.
const MAX_EXACT: u64 = 1 << 53;

/// Returns the values, unless kustomize would change one of their numbers.
fn exact(values: &Map<String, Value>, at: &FieldLocation) -> Result<Map<String, Value>, BuildError> {
    let mut waiting: Vec<&Value> = values.values().collect();
    while let Some(value) = waiting.pop() {
        match value {
            Value::Array(items) => waiting.extend(items),
            Value::Object(map) => waiting.extend(map.values()),
            Value::Number(number) => {
                let large = number.as_u64().or(number.as_i64().map(i64::unsigned_abs));
                if large.is_some_and(|large| large > MAX_EXACT) {
                    let text =
                        format!("{number} is larger than what kustomize keeps of a number; put it in quotes");
                    return Err(at.error(ErrorClass::Unsupported, text));
                }
            }
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
    Ok(values.clone())
}

impl ChartEntry {
    /// Returns the folder of the chart relative to the kustomization; kustomize puts a fetched
    /// chart into a folder with its version.
    pub(super) fn folder_path(&self, home: &str) -> String {
        match self.version.is_empty() || self.repo.is_empty() {
            true => format!("{home}/{}", self.name),
            false => format!("{home}/{}-{}/{0}", self.name, self.version),
        }
    }

    /// Returns the published chart. Its digest must be stated: the server may offer another chart
    /// under the same version tomorrow.
    fn published(
        &self,
        place: &str,
        digests: &BTreeMap<String, String>,
    ) -> Result<PublishedChart, BuildError> {
        let Self { at, name, version, repo, .. } = self;
        if repo.is_empty() {
            let text = format!("there is no chart {place}, and no repo to fetch it from");
            return Err(at.error(ErrorClass::Missing, text));
        }
        if version.is_empty() {
            let text = format!(
                "there is no chart {place}, and fetching it requires a version; set the version, or commit the chart"
            );
            return Err(at.error(ErrorClass::Unsupported, text));
        }
        let Some(digest) = digests.get(&format!("{name}-{version}")) else {
            let text = format!(
                "there is no chart {place}, and fetching it requires a digest; write {CHART_DIGEST_PREFIX}{name}-{version}: sha256:... of its archive under metadata.annotations of this kustomization, or commit the chart"
            );
            return Err(at.error(ErrorClass::Unsupported, text));
        };
        let (url, name) = match repo.starts_with("oci://") {
            true => (format!("{}/{name}", repo.trim_end_matches('/')), None),
            false => (repo.clone(), Some(name.clone())),
        };
        let place = SourcePosition { file: at.file.to_string(), line: 1, column: 1 };
        Ok(PublishedChart { url, name, version: version.clone(), digest: digest.clone(), place })
    }
}

/// Returns the objects of a chart from helm's output; none if the output is missing.
pub(super) fn inflate(
    build: &Build<'_>,
    folder: &Folder,
    chart: &ChartEntry,
    around: ChartSettings<'_>,
) -> Result<Vec<Resource>, BuildError> {
    let at = &chart.at;
    let place = chart.folder_path(around.home);
    let lies = match build.files.chart(folder, &place, at)? {
        Some(here) => ChartLocation::Repository(here),
        None => match build.files.fetched_chart(chart.published(&place, around.digests)?, at)? {
            Some(fetched) => ChartLocation::Fetched(fetched),
            None => return Ok(Vec::new()),
        },
    };
    let mut inflation = chart.inflation.clone();
    inflation.namespace = match chart.namespace.as_str() {
        "" => around.namespace.to_owned(),
        own => own.to_owned(),
    };
    inflation.values.push(merged_values(build, folder, chart, (&place, &lies))?);
    for file in &chart.more_values {
        let (path, bytes) = build.files.file(folder, &file.text, &file.at)?;
        inflation.values.push((build.files.display_path(&path), bytes));
    }
    let run = match &lies {
        ChartLocation::Repository(path) => build.files.helm_run(None, path, inflation, at)?,
        ChartLocation::Fetched(tree) => build.files.helm_run(Some(tree), "", inflation, at)?,
    };
    let Some(ChartOutput { bytes: output, templates: names }) = run.output else { return Ok(Vec::new()) };
    build.files.reserve(yaml::estimate_file(&output), at)?;
    let mut found = build.files.resources(&names.template_at(1), &output)?;
    for resource in &mut found {
        resource.origin.file = names.template_at(resource.origin.line);
        mark_as_helm_output(resource);
    }
    Ok(found)
}

/// Marks an object of helm: kustomize gives it no namespace, because helm has already decided.
fn mark_as_helm_output(resource: &mut Resource) {
    let Some(metadata) = resource.metadata_mut() else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    if annotations.is_null() {
        *annotations = Value::Object(Map::new());
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(HELM_MARK.to_owned(), "true".into());
    }
}

/// Annotation of the mark, removed from the result.
pub(super) const HELM_MARK: &str = "internal.config.kubernetes.io/helm-generated";

/// Returns the values in place of the chart's own: a file, merged with inline values by their
/// precedence.
fn merged_values(
    build: &Build<'_>,
    folder: &Folder,
    chart: &ChartEntry,
    (place, lies): (&str, &ChartLocation),
) -> Result<(String, Arc<[u8]>), BuildError> {
    let own = format!("{place}/values.yaml");
    let at = if chart.values_file.is_empty() { chart.at.clone() } else { chart.at.key("valuesFile") };
    let shown_by = |(path, bytes): (String, Arc<[u8]>)| (build.files.display_path(&path), bytes);
    let file = || match (chart.values_file.as_str(), lies) {
        ("", ChartLocation::Fetched(tree)) => {
            let bytes = tree.read("values.yaml").map_err(|error| BuildError::from_tree_error(&at, &error))?;
            Ok((tree.display_path("values.yaml"), bytes))
        }
        ("", ChartLocation::Repository(_)) => build.files.file(folder, &own, &at).map(shown_by),
        (file, ChartLocation::Repository(_) | ChartLocation::Fetched(_)) => {
            build.files.file(folder, file, &at).map(shown_by)
        }
    };
    let inline_at = chart.at.key("valuesInline");
    let shown = || format!("valuesInline of {}", build.files.display_path(&chart.at.file));
    let json = |values: &Value| values.to_string().into_bytes().into();
    if !chart.values.is_empty() && chart.merge == ValuesPrecedence::Alone {
        return Ok((shown(), json(&Value::Object(chart.values.clone()))));
    }
    let (name, bytes) = file()?;
    if chart.values.is_empty() {
        return Ok((name, bytes));
    }
    let documents = yaml::read(&name, &bytes, Dialect::Kustomize);
    let documents = documents.map_err(|error| BuildError::invalid_yaml(ErrorClass::Generator, &error))?;
    let Some(of_file) = documents.into_iter().next() else {
        return Err(
            at.error(ErrorClass::Generator, format!("{name} holds nothing, with which no values are merged"))
        );
    };
    let spelling = Spelling::from_document(&of_file);
    let unclear = |text: &str| at.error(ErrorClass::Unsupported, format!("{name} {text}"));
    let of_file = of_file.value;
    let inline = Value::Object(chart.values.clone());
    if spelling.has_nulls_in_braces() {
        return Err(unclear("has a field without a value inside braces; write null or ''"));
    }
    let (below, above, keeps_nulls) = match chart.merge {
        ValuesPrecedence::Inline => (of_file, inline, spelling.keeps_nulls().map_err(unclear)?),
        ValuesPrecedence::File | ValuesPrecedence::Alone => (inline, of_file, true),
    };
    if !below.is_object() || !above.is_object() {
        return Err(at.error(ErrorClass::Generator, format!("{name} holds no values, which are a mapping")));
    }
    // The values are never written out in between, so quotes do not turn a number into text.
    let writing = TargetStyle { keeps_nulls, is_quoted: None, quoted_scalars: None };
    build.files.reserve(yaml::estimate_file(&bytes), &at)?;
    match strategic::merge(below, &above, build.schemas(), writing)
        .map_err(|fault| inline_at.error(ErrorClass::Generator, fault.to_string()))?
    {
        Merged::Object(values) => Ok((shown(), json(&values))),
        Merged::Deleted => Ok((shown(), json(&Value::Object(Map::new())))),
    }
}
