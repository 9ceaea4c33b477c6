//! Applies the transformers of a kustomization's own fields, in kustomize's order.
//!
//! In: the resources so far. Out: the same with patches, namespace, names, labels, replicas, images
//! and replacements applied.

use super::accumulator::Accumulator;
use super::build::Build;
use super::configuration::{Configuration, FieldSpec, FieldUse, merge_fields};
use super::error::{Built, ErrorClass, FieldLocation};
use super::files::Folder;
use super::id::Gvk;
use super::kustomization::{Kustomization, Labels};
use super::labels_images_replicas::{set_image, set_replicas, set_texts};
use super::namespaces_and_affixes::{NamespaceOptions, Subjects, add_affixes, set_namespace};
use super::patches;
use super::patches::PatchContext;
use super::replacement::{self, Replacements};
use super::resource::Resource;

/// Number of fields that are looked up in the time of one object visit: most are for other kinds.
pub(super) const FIELDS_OF_A_LOOK: usize = 16;

/// Applies all transformers of a kustomization except plugins.
pub(super) fn transform(
    build: &Build<'_>,
    folder: &Folder,
    kustomization: &Kustomization,
    into: &mut Accumulator,
) -> Built<()> {
    let context = PatchContext { files: build.files, folder, schemas: build.schemas() };
    let Accumulator { resources, configuration, .. } = into;
    for entry in &kustomization.merge_patches {
        let step = ("patchesStrategicMerge", entry.one_line());
        build.run_step(step, &entry.at, resources, |it| patches::apply_merge(it, entry, context))?;
    }
    if !kustomization.merge_patches.is_empty() {
        build.record_transformer("PatchStrategicMergeTransformer", folder, kustomization, resources)?;
    }
    for patch in &kustomization.patches {
        let step = ("patches", patch.path.as_str());
        build.run_step(step, &patch.at, resources, |it| patches::apply(it, patch, context))?;
        build.record_transformer("PatchTransformer", folder, kustomization, resources)?;
    }
    rename(build, folder, kustomization, configuration, resources)?;
    set_labels_and_annotations(build, folder, kustomization, configuration, resources)?;
    for patch in &kustomization.json_patches {
        let step = ("patchesJson6902", patch.path.as_str());
        build.run_step(step, &patch.at, resources, |it| patches::apply_operations(it, patch, context))?;
        build.record_transformer("PatchJson6902Transformer", folder, kustomization, resources)?;
    }
    for replicas in &kustomization.replicas {
        let fields = configuration.fields(FieldUse::Replicas);
        build.files.count_visits(resources.len(), fields.len() / FIELDS_OF_A_LOOK, &replicas.at)?;
        build
            .run_step(("replicas", ""), &replicas.at, resources, |it| set_replicas(it, replicas, &fields))?;
        build.record_transformer("ReplicaCountTransformer", folder, kustomization, resources)?;
    }
    for image in &kustomization.images {
        let fields = configuration.fields(FieldUse::Images);
        build.reserve_texts([&*image.new_name, &*image.new_tag].into_iter(), resources.len(), &image.at)?;
        build.files.count_visits(resources.len(), fields.len() / FIELDS_OF_A_LOOK, &image.at)?;
        build.run_step(("images", ""), &image.at, resources, |it| set_image(it, image, &fields))?;
        build.record_transformer("ImageTagTransformer", folder, kustomization, resources)?;
    }
    let at = kustomization.at.key("replacements");
    replace(build, folder, (&kustomization.replacements, &at), resources)?;
    match kustomization.replacements.is_empty() {
        true => Ok(()),
        false => build.record_transformer("ReplacementTransformer", folder, kustomization, resources),
    }
}

/// Sets the namespace, and adds prefix and suffix to names.
fn rename(
    build: &Build<'_>,
    folder: &Folder,
    from: &Kustomization,
    by: &Configuration,
    resources: &mut Vec<Resource>,
) -> Built<()> {
    let at = from.field("namespace");
    let namespacing = NamespaceOptions {
        namespace: &from.namespace,
        fields: &by.fields(FieldUse::Namespace),
        subjects: Subjects::Default,
        only_unset: false,
    };
    let texts = (from.name_prefix.as_str(), from.name_suffix.as_str());
    let asks = [from.namespace.as_str(), texts.0, texts.1].map(|text| !text.is_empty());
    for (asks, what) in
        asks.into_iter().zip([FieldUse::Namespace, FieldUse::NamePrefix, FieldUse::NameSuffix])
    {
        let fields = if asks { by.fields(what).len() } else { 0 };
        build.files.count_visits(resources.len(), fields / FIELDS_OF_A_LOOK, &at)?;
    }
    build.reserve_texts([from.namespace.as_str(), texts.0, texts.1].into_iter(), resources.len(), &at)?;
    build.run_step(("namespace", ""), &at, resources, |it| set_namespace(it, &namespacing, &at))?;
    if !from.namespace.is_empty() {
        build.record_transformer("NamespaceTransformer", folder, from, resources)?;
    }
    let name = if texts.0.is_empty() { "nameSuffix" } else { "namePrefix" };
    build.run_step((name, ""), &from.field(name), resources, |it| add_affixes(it, from, by))?;
    for (text, kind) in [(texts.0, "PrefixTransformer"), (texts.1, "SuffixTransformer")] {
        if !text.is_empty() {
            build.record_transformer(kind, folder, from, resources)?;
        }
    }
    Ok(())
}

/// Sets labels and annotations.
fn set_labels_and_annotations(
    build: &Build<'_>,
    folder: &Folder,
    from: &Kustomization,
    by: &Configuration,
    resources: &mut Vec<Resource>,
) -> Built<()> {
    for labels in &from.labels {
        let fields = fields_of(labels, by);
        let fields = fields.map_err(|text| labels.at.error(ErrorClass::Configuration, text))?;
        build.files.count_visits(resources.len(), labels.pairs.len() * fields.len(), &labels.at)?;
        let texts = labels.pairs.iter().flat_map(|(key, text)| [key.as_str(), text.as_str()]);
        build.reserve_texts(texts, resources.len(), &labels.at)?;
        let change = |it: &mut Vec<Resource>| set_texts(it, &labels.pairs, &fields, &labels.at);
        build.run_step(("labels", ""), &labels.at, resources, change)?;
        build.record_transformer("LabelTransformer", folder, from, resources)?;
    }
    let common = [
        ("commonLabels", &from.common_labels, FieldUse::CommonLabels),
        ("commonAnnotations", &from.common_annotations, FieldUse::CommonAnnotations),
    ];
    common.into_iter().try_for_each(|(name, texts, to)| {
        let (at, fields) = (from.at.key(name), by.fields(to));
        build.files.count_visits(resources.len(), texts.len() * fields.len(), &at)?;
        let written = texts.iter().flat_map(|(key, text)| [key.as_str(), text.as_str()]);
        build.reserve_texts(written, resources.len(), &at)?;
        build.run_step((name, ""), &at, resources, |it| set_texts(it, texts, &fields, &at))?;
        // Kustomize runs the transformer of commonLabels for both types of labels.
        match to {
            FieldUse::CommonLabels if !(texts.is_empty() && from.labels.is_empty()) => {
                build.record_transformer("LabelTransformer", folder, from, resources)
            }
            FieldUse::CommonAnnotations if !texts.is_empty() => {
                build.record_transformer("AnnotationsTransformer", folder, from, resources)
            }
            _ => Ok(()),
        }
    })
}

/// Returns the fields that get an entry of `labels`.
fn fields_of(labels: &Labels, configuration: &Configuration) -> Result<Vec<FieldSpec>, String> {
    let fields = merge_fields(labels.fields.clone(), &configuration.fields(FieldUse::Labels))?;
    if labels.include_selectors {
        return merge_fields(fields, &configuration.fields(FieldUse::CommonLabels));
    }
    let fields = match labels.include_templates {
        true => merge_fields(fields, &configuration.fields(FieldUse::TemplateLabels))?,
        false => fields,
    };
    let own = FieldSpec { gvk: Gvk::default(), path: "metadata/labels".to_owned(), create: true };
    merge_fields(fields, &[own])
}

/// Applies replacements, inline or from files.
pub(super) fn replace(
    build: &Build<'_>,
    folder: &Folder,
    (entries, at): (&[Replacements], &FieldLocation),
    resources: &mut Vec<Resource>,
) -> Built<()> {
    let budget = &mut *build.budget.borrow_mut();
    let look =
        |objects: usize, things: usize, at: &FieldLocation| build.files.count_visits(objects, things, at);
    for entry in entries {
        match entry {
            Replacements::Inline(one) => {
                let one = std::slice::from_ref(&**one);
                let change = |it: &mut Vec<Resource>| replacement::apply(it, one, budget, &look);
                build.run_step(("replacements", ""), at, resources, change)?;
            }
            Replacements::File(file) => {
                let (path, bytes) = build.files.file(folder, &file.text, &file.at)?;
                let read = replacement::read(&path, &build.files.display_path(&path), &bytes, &|| {
                    build.files.is_awaited()
                })?;
                let change = |it: &mut Vec<Resource>| replacement::apply(it, &read, budget, &look);
                build.run_step(("replacements", &file.text), &file.at, resources, change)?;
            }
        }
    }
    Ok(())
}
