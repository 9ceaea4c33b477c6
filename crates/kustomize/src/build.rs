//! Accumulates the resources of a kustomization: includes, generators and transformers, in
//! kustomize's order.
//!
//! In: the folder of a kustomization. Out: [`Accumulator`], its resources before the final steps,
//! which run once for the whole build and not for each folder.

use std::cell::{Cell, OnceCell, RefCell};

use serde_json::Value;

use super::accumulator::{Accumulator, ResourceIndex};
use super::bounds::LOOKS_BY_NAMES;
use super::build_trace::Tracer;
use super::builtin_plugins;
use super::charts::{self, ChartEntry, ChartSettings};
use super::configuration::{self, Additions, Configuration};
use super::error::{BuildError, Built, ErrorClass, FieldLocation};
use super::files::{Files, Folder, ResourceTarget};
use super::generated_objects::merge_generated;
use super::generators::{GeneratedKind, generate};
use super::kustomization::{self, Kustomization};
use super::node::LocatedText;
use super::provenance;
use super::resource::Resource;
use super::schema::{Schemas, Scope};
use super::transformers;
use super::variables;
use super::write_budget::WriteBudget;
use moorline_core::grammar::with_article;
use moorline_yaml as yaml;

/// State that a whole build shares.
#[derive(Debug)]
pub(super) struct Build<'a> {
    pub(super) files: &'a Files<'a>,
    /// Merge keys; the first ones that are set apply to the whole build, none means the built-in
    /// ones.
    schemas: OnceCell<Option<Schemas>>,
    /// Objects were already read, so merge keys can no longer change.
    has_objects: Cell<bool>,
    /// The annotations of `buildMetadata` are kept.
    pub(super) tracks_changes: bool,
    pub(super) tracer: Tracer,
    /// Bytes that replacements may still write.
    pub(super) budget: RefCell<WriteBudget>,
}

/// Longest text whose copies are not counted.
const SHORT: usize = 256;

impl<'a> Build<'a> {
    /// Creates a build; its merge keys are those of the outermost kustomization.
    pub(super) fn new(
        files: &'a Files<'a>,
        folder: &Folder,
        outer: &Kustomization,
        tracer: Tracer,
    ) -> Result<Self, BuildError> {
        let tracks = outer
            .build_metadata
            .iter()
            .any(|it| it.text == "originAnnotations" || it.text == "transformerAnnotations");
        let (schemas, began, budget) = (OnceCell::new(), Cell::new(false), RefCell::default());
        let build = Self { files, schemas, has_objects: began, tracks_changes: tracks, tracer, budget };
        build.take_schema(folder, outer)?;
        Ok(build)
    }

    pub(super) fn schemas(&self) -> &Schemas {
        match self.custom_schemas() {
            Some(schemas) => schemas,
            None => Schemas::builtin(),
        }
    }

    fn custom_schemas(&self) -> Option<&Schemas> {
        self.schemas.get()?.as_ref()
    }

    /// Sets the merge keys of a kustomization, unless some were set before.
    fn take_schema(&self, folder: &Folder, from: &Kustomization) -> Built<()> {
        let at = from.at.key("openapi");
        let file = match from.openapi.get("path") {
            Some(path) => Some(self.files.file(folder, path, &at.key("path"))?),
            None => None,
        };
        if from.openapi.is_empty() || self.schemas.get().is_some() {
            return Ok(());
        }
        if self.has_objects.get() {
            let text = "openapi is set after other objects were read, where kustomize is ambiguous; list this folder first";
            return Err(at.error(ErrorClass::Unsupported, text));
        }
        if from.openapi.len() > 1 {
            return Err(at.error(ErrorClass::Configuration, "path and version are both set; remove one"));
        }
        for (field, value) in &from.openapi {
            match field.as_str() {
                "path" => {
                    let Some((path, bytes)) = &file else { continue };
                    let schemas = Schemas::from_document(&self.read_first_document(path, bytes)?);
                    let schemas =
                        schemas.map_err(|fault| at.error(ErrorClass::Configuration, fault.to_string()))?;
                    self.schemas.get_or_init(|| Some(schemas));
                }
                "version" if value == "v1.21.2" || value == "v1212" => {
                    self.schemas.get_or_init(|| None);
                }
                "version" => {
                    let text = format!(
                        "the version {value} is not supported; use v1.21.2, or a path to definitions"
                    );
                    return Err(at.error(ErrorClass::Unsupported, text));
                }
                _ => return Err(at.error(ErrorClass::Field, format!("unknown field {field}"))),
            }
        }
        Ok(())
    }

    /// Runs a step over all resources, with its work counted and traced.
    pub(super) fn run_step(
        &self,
        name: (&str, &str),
        at: &FieldLocation,
        resources: &mut Vec<Resource>,
        change: impl FnOnce(&mut Vec<Resource>) -> Built<()>,
    ) -> Built<()> {
        self.files.count_visits(resources.len() + self.files.bounds.object_weight(), 1, at)?;
        self.tracer.step(name, at, resources, change)
    }

    /// Records a transformer of a kustomization's own fields in the annotations, if they are
    /// requested.
    pub(super) fn record_transformer(
        &self,
        kind: &str,
        folder: &Folder,
        by: &Kustomization,
        resources: &mut [Resource],
    ) -> Built<()> {
        match self.tracks_changes {
            true => {
                let mark = folder.source.by_field(&by.at.file, kind);
                provenance::record_transformer(resources, mark.as_deref())
            }
            false => Ok(()),
        }
    }

    /// Reserves memory for long texts that a step writes into so many objects; short texts do not
    /// matter.
    pub(super) fn reserve_texts<'t>(
        &self,
        texts: impl Iterator<Item = &'t str>,
        into: usize,
        at: &FieldLocation,
    ) -> Built<()> {
        let bytes: usize = texts.map(str::len).filter(|length| *length > SHORT).sum();
        // A workload has most of these texts twice: on itself and on its pod template.
        self.files.reserve((2 * bytes as u64).saturating_mul(into as u64), at)
    }

    /// Returns the first document of a file.
    pub(super) fn read_first_document(&self, path: &str, bytes: &[u8]) -> Result<Value, BuildError> {
        self.files.reserve(yaml::estimate_file(bytes), &FieldLocation::file(path))?;
        let documents =
            yaml::read_as_written(&self.files.display_path(path), bytes, &|| self.files.is_awaited());
        let documents =
            documents.map_err(|error| BuildError::invalid_yaml(ErrorClass::Configuration, &error))?;
        Ok(documents.into_iter().next().map_or(Value::Null, |document| document.value))
    }

    /// Accumulates a kustomization; a component changes the resources that are there already.
    pub(super) fn accumulate(
        &self,
        folder: &Folder,
        kustomization: &Kustomization,
        mut into: Accumulator,
    ) -> Result<Accumulator, BuildError> {
        let folder = &folder.with_namespace(&kustomization.namespace);
        if kustomization.copies_values() {
            self.files.decrypted.copies_values();
        }
        self.add_resources(folder, &kustomization.resources, &mut into)?;
        self.configure(folder, kustomization, &mut into.configuration)?;
        self.add_generated(folder, kustomization, &mut into)?;
        for entry in &kustomization.components {
            let (inner, component) = self.enter(folder, entry, true)?;
            into = self.accumulate(&inner, &component, into)?;
            // After each component, kustomize merges everything into an empty accumulator again.
            let mut again = Configuration::default();
            let merged = again.merge(&into.configuration);
            merged.map_err(|text| entry.at.error(ErrorClass::Configuration, text))?;
            into.configuration = again;
        }
        transformers::transform(self, folder, kustomization, &mut into)?;
        builtin_plugins::transform(self, folder, &kustomization.transformers, &mut into)?;
        builtin_plugins::validate(self, folder, &kustomization.validators, &mut into)?;
        let vars = LOOKS_BY_NAMES * kustomization.vars.len();
        self.files.count_visits(into.resources.len(), vars, &kustomization.at)?;
        variables::record_sources(&mut into.resources, &kustomization.vars)?;
        variables::merge(&mut into.variables, kustomization.vars.clone())?;
        Ok(into)
    }

    pub(super) fn read(&self, folder: &Folder, at: &FieldLocation) -> Result<Kustomization, BuildError> {
        let (path, bytes) = self.files.kustomization(folder, at)?;
        kustomization::read(&path, &self.files.display_path(&path), &bytes, &|| self.files.is_awaited())
    }

    /// Accumulates the kustomization in a folder that another one names.
    fn enter(
        &self,
        from: &Folder,
        entry: &LocatedText,
        as_component: bool,
    ) -> Result<(Folder, Kustomization), BuildError> {
        self.files.bounds.count_folder(&entry.at)?;
        let folder = self.files.folder(from, entry)?;
        let found = self.read(&folder, &entry.at)?;
        self.take_schema(&folder, &found)?;
        match (as_component, found.is_component) {
            (true, false) => {
                let text = format!("{} is not a component; list it under resources", entry.text);
                Err(entry.at.error(ErrorClass::Component, text))
            }
            (false, true) => {
                let text = format!("{} is a component; name it under components", entry.text);
                Err(entry.at.error(ErrorClass::Component, text))
            }
            _ => Ok((folder, found)),
        }
    }

    pub(super) fn add_resources(
        &self,
        folder: &Folder,
        entries: &[LocatedText],
        into: &mut Accumulator,
    ) -> Built<()> {
        let mut known = ResourceIndex::of(&into.resources);
        for entry in entries {
            let before = self.files.decrypted.count();
            match self.files.resource(folder, entry)? {
                ResourceTarget::File(path, bytes) => {
                    self.files.bounds.count_bytes(bytes.len(), &entry.at)?;
                    self.files.reserve(yaml::estimate_file(&bytes), &entry.at)?;
                    let mut found = self.files.resources(&self.files.display_path(&path), &bytes)?;
                    let contains_secret = self.files.decrypted.claim_since(before);
                    found.iter_mut().for_each(|it| it.contains_secret = contains_secret);
                    self.has_objects.set(true);
                    self.check_scopes(&found, &entry.at)?;
                    if self.tracks_changes {
                        let source = folder.source.append(&entry.text);
                        found.iter_mut().try_for_each(|it| provenance::record_origin(it, &source))?;
                    }
                    self.tracer.record_source(&mut found, entry);
                    known.add(&mut into.resources, found, &entry.at)?;
                }
                ResourceTarget::Folder => {
                    let (inner, base) = self.enter(folder, entry, false)?;
                    let mut base = self.accumulate(&inner, &base, Accumulator::default())?;
                    self.tracer.record_source(&mut base.resources, entry);
                    into.merge(base, &mut known, &entry.at)?;
                }
            }
        }
        Ok(())
    }

    /// Refuses objects of a kind that only a custom schema declares cluster-scoped: scopes are
    /// known for Kubernetes' own kinds only.
    fn check_scopes(&self, found: &[Resource], at: &FieldLocation) -> Built<()> {
        let scope = |schemas: &Schemas, it: &Resource| schemas.scope_of(it.api_version(), it.kind());
        let is_new = |it: &&Resource| {
            let own = self.custom_schemas().and_then(|schemas| scope(schemas, it));
            own == Some(Scope::Cluster) && scope(Schemas::builtin(), it).is_none()
        };
        match found.iter().find(is_new) {
            None => Ok(()),
            Some(resource) => {
                let text = format!(
                    "openapi says that {} has no namespace, which is not supported",
                    with_article(resource.kind())
                );
                Err(at.error(ErrorClass::Unsupported, text))
            }
        }
    }

    fn configure(
        &self,
        folder: &Folder,
        kustomization: &Kustomization,
        into: &mut Configuration,
    ) -> Built<()> {
        let refuse = |at: &FieldLocation| {
            let at = at.clone();
            move |text: String| at.error(ErrorClass::Configuration, text)
        };
        let mut additions = Additions::default();
        for entry in &kustomization.configurations {
            let (path, bytes) = self.files.file(folder, &entry.text, &entry.at)?;
            let read =
                Additions::read(&self.read_first_document(&path, &bytes)?, &FieldLocation::file(&path))?;
            additions.merge(&read).map_err(refuse(&entry.at))?;
        }
        let at = kustomization.at.key("configurations");
        let own = Configuration::standard_with(&additions).map_err(refuse(&at))?;
        into.merge(&own).map_err(refuse(&at))?;
        let mut additions = Additions::default();
        for entry in &kustomization.crds {
            let (path, bytes) = self.files.file(folder, &entry.text, &entry.at)?;
            let read = configuration::read_definitions(&self.read_first_document(&path, &bytes)?);
            read.and_then(|read| additions.merge(&read)).map_err(refuse(&entry.at))?;
        }
        into.add(&additions).map_err(refuse(&kustomization.at.key("crds")))
    }

    fn add_generated(
        &self,
        folder: &Folder,
        kustomization: &Kustomization,
        into: &mut Accumulator,
    ) -> Built<()> {
        let global = kustomization.generator_options.as_ref();
        let kinds = [
            (GeneratedKind::ConfigMap, &kustomization.config_maps),
            (GeneratedKind::Secret, &kustomization.secrets),
        ];
        for (made, generators) in kinds {
            for generator in generators {
                let mut resource = generate(self.files, folder, made, generator, global)?;
                self.has_objects.set(true);
                if self.tracks_changes {
                    let mark = folder.source.by_field(&kustomization.at.file, made.generator_name());
                    provenance::record_generator(&mut resource, &folder.source, mark)?;
                }
                self.run_step((made.field(), ""), &generator.at, &mut into.resources, |resources| {
                    merge_generated(resources, resource, &generator.at)
                })?;
            }
        }
        for chart in &kustomization.charts {
            let Kustomization { chart_home: home, digests, .. } = kustomization;
            let around = ChartSettings { home, namespace: &folder.namespace, digests };
            self.add_chart(folder, (chart, "helmCharts"), around, into)?;
        }
        builtin_plugins::generate(self, folder, &kustomization.generators, into)
    }

    /// Adds the objects of a chart.
    pub(super) fn add_chart(
        &self,
        folder: &Folder,
        (chart, field): (&ChartEntry, &str),
        around: ChartSettings<'_>,
        into: &mut Accumulator,
    ) -> Built<()> {
        if self.tracks_changes {
            let text = "buildMetadata: origins and transformations beside charts are not supported";
            return Err(chart.at.error(ErrorClass::Unsupported, text));
        }
        self.has_objects.set(true);
        for resource in charts::inflate(self, folder, chart, around)? {
            self.run_step((field, ""), &chart.at, &mut into.resources, |resources| {
                merge_generated(resources, resource, &chart.at)
            })?;
        }
        Ok(())
    }
}
