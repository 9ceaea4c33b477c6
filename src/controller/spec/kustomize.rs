//! Validates the options over a kustomization.
//!
//! In: `spec.render.kustomize`. Out: [`KustomizeOptions`], or an error.

use std::sync::Arc;

use super::{SpecError, refuse};
use crate::api::{KustomizeImage, KustomizePatch, KustomizeSpec, RenderSpec, RenderType};
use crate::kustomize::{ImageOption, KustomizeOptions, PatchOption, PatchTarget, is_component_path};
use crate::name_rules;

const FIELD: &str = "spec.render.kustomize";

/// Most patches, and most images.
const MAX_ENTRIES: usize = 64;
/// Most characters of a patch.
const MAX_PATCH: usize = 65536;
/// Most components.
const MAX_COMPONENTS: usize = 32;
/// Most characters of a prefix or suffix.
const MAX_AFFIX: usize = 200;
/// Most labels, and most annotations.
const MAX_TEXTS: usize = 64;
/// Most characters of an annotation.
const MAX_ANNOTATION: usize = 4096;

/// Returns the options over the kustomization; none if the Sync has none.
pub(crate) fn kustomize_options(render: &RenderSpec) -> Result<Option<Arc<KustomizeOptions>>, SpecError> {
    let Some(spec) = &render.kustomize else { return Ok(None) };
    if render.kind == RenderType::Helm || render.helm.is_some() {
        return refuse(FIELD, "kustomize is not valid for a Helm chart: remove it, or change the type");
    }
    for (name, text) in [("namePrefix", &spec.name_prefix), ("nameSuffix", &spec.name_suffix)] {
        if text.as_deref().is_some_and(|text| !is_affix(text)) {
            let text = "write letters, digits, -, . and :, such as staging-";
            return refuse(format!("{FIELD}.{name}"), text);
        }
    }
    if let Some(rule) = spec.namespace.as_deref().and_then(name_rules::namespace) {
        return refuse(format!("{FIELD}.namespace"), format!("the name of a namespace {rule}"));
    }
    check_texts(spec)?;
    Ok(Some(Arc::new(KustomizeOptions {
        field: FIELD.into(),
        patches: patches(&spec.patches)?,
        images: images(&spec.images)?,
        components: components(&spec.components)?,
        name_prefix: spec.name_prefix.clone().unwrap_or_default(),
        name_suffix: spec.name_suffix.clone().unwrap_or_default(),
        namespace: spec.namespace.clone().unwrap_or_default(),
        labels: spec.labels.iter().map(|(key, text)| (key.clone(), text.0.clone())).collect(),
        annotations: spec.annotations.iter().map(|(key, text)| (key.clone(), text.0.clone())).collect(),
    })))
}

fn is_affix(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
    (1..=MAX_AFFIX).contains(&text.len()) && text.bytes().all(is_plain)
}

fn patches(patches: &[KustomizePatch]) -> Result<Vec<PatchOption>, SpecError> {
    if patches.len() > MAX_ENTRIES {
        let text = format!("write at most {MAX_ENTRIES} patches here, and others into Git");
        return refuse(format!("{FIELD}.patches"), text);
    }
    let one = |(at, patch): (usize, &KustomizePatch)| {
        let size = patch.patch.chars().count();
        if size > MAX_PATCH || patch.patch.trim().is_empty() {
            let text = format!("write a patch of at most {MAX_PATCH} characters");
            return refuse(format!("{FIELD}.patches[{at}].patch"), text);
        }
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let target = patch.target.as_ref().map(|target| PatchTarget {
            group: text(&target.group),
            version: text(&target.version),
            kind: text(&target.kind),
            name: text(&target.name),
            namespace: text(&target.namespace),
            label_selector: text(&target.label_selector),
            annotation_selector: text(&target.annotation_selector),
        });
        Ok(PatchOption { patch: patch.patch.clone(), target })
    };
    patches.iter().enumerate().map(one).collect()
}

fn images(images: &[KustomizeImage]) -> Result<Vec<ImageOption>, SpecError> {
    if images.len() > MAX_ENTRIES {
        let text = format!("write at most {MAX_ENTRIES} images here, and others into Git");
        return refuse(format!("{FIELD}.images"), text);
    }
    let one = |(at, image): (usize, &KustomizeImage)| {
        let field = || format!("{FIELD}.images[{at}]");
        let texts = [&image.new_name, &image.new_tag, &image.digest];
        if image.name.is_empty() || texts.iter().all(|text| text.as_deref().is_none_or(str::is_empty)) {
            return refuse(field(), "write a name, and at least one of newName, newTag and digest");
        }
        let is_odd = |text: &str| text.contains(|it: char| it.is_whitespace() || it.is_control());
        if texts.into_iter().flatten().any(|text| is_odd(text)) {
            return refuse(field(), "write name, tag and digest of an image without spaces");
        }
        let [new_name, new_tag, digest] = texts.map(|text| text.clone().unwrap_or_default());
        Ok(ImageOption { name: image.name.clone(), new_name, new_tag, digest })
    };
    images.iter().enumerate().map(one).collect()
}

fn components(components: &[String]) -> Result<Vec<String>, SpecError> {
    if components.len() > MAX_COMPONENTS {
        let text = format!("name at most {MAX_COMPONENTS} components here, and others in Git");
        return refuse(format!("{FIELD}.components"), text);
    }
    match components.iter().position(|path| !is_component_path(path)) {
        None => Ok(components.to_vec()),
        Some(at) => refuse(
            format!("{FIELD}.components[{at}]"),
            "write a folder of the same repository, relative to the path, such as ../components/tls",
        ),
    }
}

/// Checks labels and annotations: those of an object in Git would be refused alike.
fn check_texts(spec: &KustomizeSpec) -> Result<(), SpecError> {
    let (labels, annotations) = (format!("{FIELD}.labels"), format!("{FIELD}.annotations"));
    if spec.labels.len() > MAX_TEXTS {
        return refuse(labels, format!("write at most {MAX_TEXTS} labels"));
    }
    for (key, text) in &spec.labels {
        if let Some(rule) = name_rules::qualified_name(key) {
            return refuse(labels, format!("the key {key:?} {rule}"));
        }
        if let Some(rule) = name_rules::label_value(&text.0) {
            return refuse(labels, format!("the value of {key} {rule}"));
        }
    }
    if spec.annotations.len() > MAX_TEXTS {
        return refuse(annotations, format!("write at most {MAX_TEXTS} annotations"));
    }
    for (key, text) in &spec.annotations {
        if let Some(rule) = name_rules::annotation_key(key) {
            return refuse(annotations, format!("the key {key:?} {rule}"));
        }
        if text.0.chars().count() > MAX_ANNOTATION {
            return refuse(
                annotations,
                format!("the value of {key} has more than {MAX_ANNOTATION} characters"),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refused(render: Value) -> Option<String> {
        let render: RenderSpec = serde_json::from_value(render).unwrap();
        kustomize_options(&render).err().map(|error| error.to_string())
    }

    #[test]
    fn options_that_the_api_server_refuses_are_refused_here_too() {
        let of = |kustomize: Value| refused(json!({"kustomize": kustomize}));
        for sound in [
            json!({}),
            json!({"namePrefix": "a-", "nameSuffix": "-b", "namespace": "shop"}),
            json!({"components": ["../tls", "extra"], "labels": {"example.com/a": ""}}),
            json!({"patches": [{"patch": "- {op: remove, path: /a}", "target": {}}]}),
            json!({"images": [{"name": "web", "digest": "sha256:0123"}], "annotations": {"a": "any ${TEXT}"}}),
        ] {
            assert_eq!(of(sound.clone()), None, "{sound}");
        }
        for (bad, field) in [
            (json!({"namePrefix": "a b"}), "namePrefix"),
            (json!({"nameSuffix": ""}), "nameSuffix"),
            (json!({"namespace": "A"}), "namespace"),
            (json!({"components": ["a", "https://example.com/a/b"]}), "components[1]"),
            (json!({"components": ["/a"]}), "components[0]"),
            (json!({"components": ["github.com/group/repository"]}), "components[0]"),
            (json!({"labels": {"a": "b c"}}), "labels"),
            (json!({"labels": {"": "b"}}), "labels"),
            (json!({"annotations": {"a b": ""}}), "annotations"),
            (json!({"annotations": {"a": "x".repeat(4097)}}), "annotations"),
            (json!({"patches": [{"patch": " "}]}), "patches[0].patch"),
            (json!({"images": [{"name": "a"}]}), "images[0]"),
            (json!({"images": [{"name": "a", "newTag": "b c"}]}), "images[0]"),
        ] {
            let told = of(bad.clone()).unwrap_or_default();
            assert!(told.starts_with(&format!("{FIELD}.{field}: ")), "{bad}: {told}");
        }
        for chart in [json!({"type": "Helm", "kustomize": {}}), json!({"helm": {}, "kustomize": {}})] {
            assert!(refused(chart).is_some_and(|told| told.starts_with("spec.render.kustomize: ")));
        }
    }
}
