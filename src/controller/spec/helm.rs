//! Validates the Helm options of a Sync.
//!
//! In: `spec.render.helm`, and defaults for the fields that it leaves out. Out: [`HelmOptions`],
//! the chart, and the objects with values, or an error.

use super::identity::{SourceIdentity, cloud};
use super::verification::{Verification, of_chart};
use super::{SpecError, ValuesSource, named, refuse};
use crate::api::{HelmSpec, HelmValuesFrom};
use crate::name_rules;
use crate::render::helm::{ExternalValues, ValuesPath};
use crate::render::{self, HelmOptions};
use crate::source::{ChartError, ChartRequest};

/// Key of an object with values, if the spec names no other.
const VALUES_KEY: &str = "values.yaml";
/// Field that names the objects with values.
const VALUES_FROM: &str = "spec.render.helm.valuesFrom";
/// Most objects with values.
const MAX_OBJECTS: usize = 16;

/// Most values files of a Sync.
const MAX_FILES: usize = 32;
/// Most bytes in the name of a values file.
const MAX_FILE_NAME: usize = 1024;
/// Most bytes of inline values in a Sync.
const MAX_VALUES: usize = 512 * 1024;

pub(super) fn helm(spec: Option<&HelmSpec>, name: &str, namespace: &str) -> Result<HelmOptions, SpecError> {
    let nothing = HelmSpec::default();
    let spec = spec.unwrap_or(&nothing);
    let release = spec.release_name.as_deref();
    if release.is_some_and(|name| !name_rules::is_release(name)) {
        return refuse(
            "spec.render.helm.releaseName",
            "write lower-case letters, digits, - and ., at most 53, beginning and ending with a letter or digit",
        );
    }
    let own = spec.namespace.as_deref();
    if let Some(rule) = own.and_then(name_rules::namespace) {
        return refuse("spec.render.helm.namespace", format!("the name of a namespace {rule}"));
    }
    if spec.values_files.len() > MAX_FILES {
        return refuse("spec.render.helm.valuesFiles", format!("name at most {MAX_FILES} files"));
    }
    let is_sound = |file: &str| {
        (1..=MAX_FILE_NAME).contains(&file.len()) && !file.contains("://") && !file.contains(['\0', '\n'])
    };
    if let Some(at) = spec.values_files.iter().position(|file| !is_sound(file)) {
        return refuse(
            format!("spec.render.helm.valuesFiles[{at}]"),
            "write a path in the repository, such as ../values/prod.yaml: values files are not fetched from URLs",
        );
    }
    if serde_json::to_string(&spec.values).map_or(0, |text| text.len()) > MAX_VALUES {
        return refuse(
            "spec.render.helm.values",
            format!("write at most {MAX_VALUES} bytes here, and the rest into a values file"),
        );
    }
    if spec.kube_version.as_deref().is_some_and(|version| !render::helm::is_version(version)) {
        return refuse("spec.render.helm.kubeVersion", "write a Kubernetes version such as 1.33 or v1.33.2");
    }
    Ok(HelmOptions {
        release: release.unwrap_or(name).into(),
        namespace: own.unwrap_or(namespace).into(),
        values_files: spec.values_files.clone(),
        values: spec.values.clone(),
        external: ExternalValues::default(),
        is_upgrade: spec.is_upgrade,
        skip_crds: spec.skip_crds,
        test_hooks: spec.test_hooks,
        kube_version: spec.kube_version.as_deref().map(Into::into),
        chart: None,
        dependencies: Vec::new(),
    })
}

/// A ConfigMap or Secret with values of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartValuesSource {
    /// The object.
    pub source: ValuesSource,
    /// Its key.
    pub key: Box<str>,
    /// The value that the text of the key sets; none if the text is a values file.
    pub path: Option<ValuesPath>,
}

/// Returns the objects with values of the chart.
pub(super) fn values_from(spec: Option<&HelmSpec>) -> Result<Vec<ChartValuesSource>, SpecError> {
    let from = spec.map(|spec| spec.values_from.as_slice()).unwrap_or_default();
    if from.len() > MAX_OBJECTS {
        return refuse(VALUES_FROM, format!("name at most {MAX_OBJECTS} objects"));
    }
    from.iter().enumerate().map(|(at, from)| values_source(at, from)).collect()
}

fn values_source(at: usize, from: &HelmValuesFrom) -> Result<ChartValuesSource, SpecError> {
    let field = |name: &str| format!("{VALUES_FROM}[{at}].{name}");
    let Some(name) = named(&field("name"), Some(&from.name))?.filter(|name| !name.is_empty()) else {
        return refuse(field("name"), "write the name of a ConfigMap or Secret in the Sync's own namespace");
    };
    let key = from.key.as_deref().unwrap_or(VALUES_KEY);
    if key.is_empty() {
        return refuse(field("key"), "write a key of the object, such as values.yaml");
    }
    let path = from.target_path.as_deref().map(|path| ValuesPath::parse(path, from.literal)).transpose();
    let path = match path {
        Ok(path) => path,
        Err(problem) => return refuse(field("targetPath"), problem),
    };
    if from.literal && path.is_none() {
        return refuse(field("literal"), "set targetPath: literal says how the value for that path is read");
    }
    let source = ValuesSource { field: VALUES_FROM, kind: from.kind, name, optional: from.optional };
    Ok(ChartValuesSource { source, key: key.into(), path })
}

/// Returns the name of the Secret for the server of the chart.
pub(super) fn secret(spec: Option<&HelmSpec>) -> Option<&str> {
    Some(&*spec?.chart.as_ref()?.secret_ref.as_ref()?.name)
}

/// Returns the signatures that the chart must have.
pub(super) fn verification(spec: Option<&HelmSpec>) -> Result<Option<Verification>, SpecError> {
    let Some(chart) = spec.and_then(|spec| spec.chart.as_ref()) else { return Ok(None) };
    of_chart(chart.verify.as_ref(), (&chart.url, chart.digest.as_deref()))
}

/// Returns the identity for the server of the chart.
pub(super) fn identity(spec: Option<&HelmSpec>) -> Result<Option<SourceIdentity>, SpecError> {
    let Some(chart) = spec.and_then(|spec| spec.chart.as_ref()) else { return Ok(None) };
    if chart.provider.is_some() && !chart.url.starts_with("oci://") {
        let text = "use oci:// in the URL: the provider gives a login for registries only";
        return refuse("spec.render.helm.chart.url", text);
    }
    let (provider, account) = (chart.provider.map(cloud), chart.service_account_name.as_deref());
    super::identity::identity("spec.render.helm.chart", provider, account, chart.secret_ref.is_some())
}

/// Returns the chart that is fetched from a chart repository or registry; none if the chart is in
/// the Git repository.
pub(super) fn chart(spec: Option<&HelmSpec>) -> Result<Option<ChartRequest>, SpecError> {
    let Some(chart) = spec.and_then(|spec| spec.chart.as_ref()) else { return Ok(None) };
    let schemes = ["https://", "http://", "oci://"];
    let behind = schemes.iter().find_map(|scheme| chart.url.strip_prefix(scheme));
    let strange = |char: char| char.is_whitespace() || "@?#".contains(char);
    if behind.is_none_or(|rest| rest.is_empty() || rest.contains(strange)) {
        let text = "write https://host/path or oci://host/path, without a user, ? and #";
        return refuse("spec.render.helm.chart.url", text);
    }
    if chart.secret_ref.is_some() && chart.url.starts_with("http://") {
        let text =
            "use https:// in the URL: with plain http, the Secret of secretRef would be sent unencrypted";
        return refuse("spec.render.helm.chart.url", text);
    }
    match ChartRequest::new(&chart.url, chart.name.as_deref(), &chart.version, chart.digest.as_deref()) {
        Ok(chart) => Ok(Some(chart)),
        Err(error @ ChartError::Field { field, .. }) if field != "name" => {
            refuse(format!("spec.render.helm.chart.{field}"), error.to_string())
        }
        Err(error @ ChartError::Range(_)) => refuse("spec.render.helm.chart.version", error.to_string()),
        Err(error) => refuse("spec.render.helm.chart", error.to_string()),
    }
}
