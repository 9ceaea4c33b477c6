//! The changes that a kustomization makes by its own fields, in the order that counts.
//!
//! In: what has come together so far. Out: the same with patches, namespace, names, labels, numbers, images and replacements.

use super::build::{Accumulator, Build};
use super::configuration::{Configuration, FieldSpec, Use, merge_fields};
use super::fault::{At, Class, Refusal};
use super::files::Folder;
use super::id::Gvk;
use super::kustomization::{Kustomization, Labels};
use super::marking::{set_image, set_replicas, set_texts};
use super::naming::{Namespacing, Subjects, affixes, set_namespace};
use super::patching::{self, Ground};
use super::replacement::{self, Replacements};
use super::resource::Resource;

type Done = Result<(), Refusal>;

/// Makes all changes of a kustomization but those of its plugins.
pub(super) fn transform(
    build: &Build<'_>,
    folder: &Folder,
    kustomization: &Kustomization,
    into: &mut Accumulator,
) -> Done {
    let ground = Ground { files: build.files, folder, schemas: build.schemas() };
    let Accumulator { resources, configuration, .. } = into;
    for entry in &kustomization.merge_patches {
        let step = ("patchesStrategicMerge", entry.one_line());
        build.step(step, &entry.at, resources, |it| patching::apply_merge(it, entry, ground))?;
    }
    for patch in &kustomization.patches {
        let step = ("patches", patch.path.as_str());
        build.step(step, &patch.at, resources, |it| patching::apply(it, patch, ground))?;
    }
    rename(build, kustomization, configuration, resources)?;
    mark(build, kustomization, configuration, resources)?;
    for patch in &kustomization.json_patches {
        let step = ("patchesJson6902", patch.path.as_str());
        build.step(step, &patch.at, resources, |it| patching::apply_operations(it, patch, ground))?;
    }
    for replicas in &kustomization.replicas {
        let fields = configuration.fields(Use::Replicas);
        build.step(("replicas", ""), &replicas.at, resources, |it| set_replicas(it, replicas, &fields))?;
    }
    for image in &kustomization.images {
        let fields = configuration.fields(Use::Images);
        build.write([&*image.new_name, &*image.new_tag].into_iter(), resources.len(), &image.at)?;
        build.step(("images", ""), &image.at, resources, |it| set_image(it, image, &fields))?;
    }
    let at = kustomization.at.key("replacements");
    replace(build, folder, (&kustomization.replacements, &at), resources)
}

/// Sets the namespace, and what stands before and behind names.
fn rename(
    build: &Build<'_>,
    from: &Kustomization,
    by: &Configuration,
    resources: &mut Vec<Resource>,
) -> Done {
    let at = from.at.key("namespace");
    let namespacing = Namespacing {
        namespace: &from.namespace,
        fields: &by.fields(Use::Namespace),
        subjects: Subjects::Default,
        only_unset: false,
    };
    let texts = (from.name_prefix.as_str(), from.name_suffix.as_str());
    build.write([from.namespace.as_str(), texts.0, texts.1].into_iter(), resources.len(), &at)?;
    build.step(("namespace", ""), &at, resources, |it| set_namespace(it, &namespacing, &at))?;
    let name = if texts.0.is_empty() { "nameSuffix" } else { "namePrefix" };
    build.step((name, ""), &from.at.key(name), resources, |it| affixes(it, texts, by, &from.at))
}

/// Sets labels and annotations.
fn mark(build: &Build<'_>, from: &Kustomization, by: &Configuration, resources: &mut Vec<Resource>) -> Done {
    for labels in &from.labels {
        let fields = fields_of(labels, by);
        let fields = fields.map_err(|text| labels.at.refuse(Class::Configuration, text))?;
        build.bounds.look(resources.len(), labels.pairs.len() * fields.len(), &labels.at)?;
        let texts = labels.pairs.iter().flat_map(|(key, text)| [key.as_str(), text.as_str()]);
        build.write(texts, resources.len(), &labels.at)?;
        let change = |it: &mut Vec<Resource>| set_texts(it, &labels.pairs, &fields, &labels.at);
        build.step(("labels", ""), &labels.at, resources, change)?;
    }
    let common = [
        ("commonLabels", &from.common_labels, Use::CommonLabels),
        ("commonAnnotations", &from.common_annotations, Use::CommonAnnotations),
    ];
    common.into_iter().try_for_each(|(name, texts, to)| {
        let (at, fields) = (from.at.key(name), by.fields(to));
        build.bounds.look(resources.len(), texts.len() * fields.len(), &at)?;
        let written = texts.iter().flat_map(|(key, text)| [key.as_str(), text.as_str()]);
        build.write(written, resources.len(), &at)?;
        build.step((name, ""), &at, resources, |it| set_texts(it, texts, &fields, &at))
    })
}

/// The fields that get an entry of `labels`.
fn fields_of(labels: &Labels, configuration: &Configuration) -> Result<Vec<FieldSpec>, String> {
    let fields = merge_fields(labels.fields.clone(), &configuration.fields(Use::Labels))?;
    if labels.include_selectors {
        return merge_fields(fields, &configuration.fields(Use::CommonLabels));
    }
    let fields = match labels.include_templates {
        true => merge_fields(fields, &configuration.fields(Use::TemplateLabels))?,
        false => fields,
    };
    let own = FieldSpec { gvk: Gvk::default(), path: "metadata/labels".to_owned(), create: true };
    merge_fields(fields, &[own])
}

/// Makes replacements, in place or from files.
pub(super) fn replace(
    build: &Build<'_>,
    folder: &Folder,
    (entries, at): (&[Replacements], &At),
    resources: &mut Vec<Resource>,
) -> Done {
    let budget = &mut *build.budget.borrow_mut();
    for entry in entries {
        match entry {
            Replacements::Inline(one) => {
                let one = std::slice::from_ref(&**one);
                let change = |it: &mut Vec<Resource>| replacement::apply(it, one, budget);
                build.step(("replacements", ""), at, resources, change)?;
            }
            Replacements::File(file) => {
                let (path, bytes) = build.files.file(folder, &file.text, &file.at)?;
                let read = replacement::read(&path, &build.files.shown(&path), &bytes)?;
                let change = |it: &mut Vec<Resource>| replacement::apply(it, &read, budget);
                build.step(("replacements", &file.text), &file.at, resources, change)?;
            }
        }
    }
    Ok(())
}
