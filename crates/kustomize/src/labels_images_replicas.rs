//! Transformers for labels, annotations, images and replica counts.

use std::collections::BTreeMap;

use serde_json::Value;

use super::configuration::FieldSpec;
use super::error::{BuildError, ErrorClass, FieldLocation};
use super::field_spec::{CreatedValue, change_fields, scalar_text, set_entry, set_scalar};
use super::kustomization::{Image, Replicas};
use super::resource::Resource;
use super::select::{ByteRegex, expression};
use moorline_yaml::{self as yaml, Dialect};

/// Sets labels or annotations in their fields.
pub(super) fn set_texts(
    resources: &mut [Resource],
    texts: &BTreeMap<String, String>,
    fields: &[FieldSpec],
    at: &FieldLocation,
) -> Result<(), BuildError> {
    if let Some(key) = texts.keys().find(|key| !is_read_as_text(key)) {
        let text = format!(
            "the key {key} is read as something else than text, with and without quotes, and has to be another one"
        );
        return Err(at.error(ErrorClass::Field, text));
    }
    for resource in resources {
        for (key, text) in texts {
            set_text(resource, (key, text), fields)
                .map_err(|text| at.error(ErrorClass::Resource, format!("{}: {text}", resource.id())))?;
        }
    }
    Ok(())
}

fn is_read_as_text(key: &str) -> bool {
    yaml::resolve_scalar(key, None, Dialect::Kustomize).is_some_and(|value| value.as_str() == Some(key))
}

/// Sets one entry. Kustomize creates one shared YAML node for several fields, so a later change of
/// one field changes all of them; the shared fields are recorded.
fn set_text(resource: &mut Resource, (key, text): (&str, &str), fields: &[FieldSpec]) -> Result<(), String> {
    let mut made = Vec::new();
    for spec in fields {
        let (mut is_new, mut is_changed) = (false, false);
        let mut set = |value: &mut Value| {
            match value.get(key) {
                None => is_new = true,
                Some(old) => is_changed |= old.as_str() != Some(text),
            }
            set_entry(value, key, text)
        };
        change_fields(&mut resource.body, spec, CreatedValue::Mapping, &mut set)?;
        if is_changed {
            for other in resource.sharing.other_fields(key, &spec.path) {
                let mut set = |value: &mut Value| match value.get(key) {
                    Some(_) => set_entry(value, key, text),
                    None => Ok(()),
                };
                change_fields(&mut resource.body, &other, CreatedValue::Nothing, &mut set)?;
            }
        }
        if is_new {
            made.push(spec.clone());
        }
    }
    resource.sharing.add(key, made);
    Ok(())
}

/// Sets images.
pub(super) fn set_image(
    resources: &mut [Resource],
    image: &Image,
    fields: &[FieldSpec],
) -> Result<(), BuildError> {
    let pattern = format!("^{}(:[a-zA-Z0-9_.{{}}-]*)?(@sha256:[a-zA-Z0-9_.{{}}-]*)?$", image.name);
    let no_pattern = |_| {
        image
            .at
            .error(ErrorClass::Field, format!("the name {:?} is not a valid regular expression", image.name))
    };
    let pattern = expression(&pattern).map_err(no_pattern)?;
    for resource in resources.iter_mut().filter(|resource| resource.kind() != "CustomResourceDefinition") {
        let mut change = |value: &mut Value| changed_image(value, image, &pattern);
        let done = every_container(&mut resource.body, &mut change);
        // Then again for the fields of the table; with a suffix, the second change is visible.
        let done = done.and_then(|()| {
            fields.iter().try_for_each(|spec| {
                change_fields(&mut resource.body, spec, CreatedValue::Nothing, &mut change)
            })
        });
        done.map_err(|text| image.at.error(ErrorClass::Resource, format!("{}: {text}", resource.id())))?;
    }
    Ok(())
}

/// Changes the images of all containers, at any depth.
fn every_container(
    value: &mut Value,
    change: &mut dyn FnMut(&mut Value) -> Result<(), String>,
) -> Result<(), String> {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                every_container(value, change)?;
                let containers =
                    (key == "containers" || key == "initContainers").then(|| value.as_array_mut());
                for container in containers.flatten().into_iter().flatten() {
                    match container {
                        Value::Object(container) => {
                            container.get_mut("image").map_or(Ok(()), &mut *change)?
                        }
                        Value::Null => {}
                        _ => return Err("a container is not a mapping".to_owned()),
                    }
                }
            }
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| every_container(item, change)),
        _ => Ok(()),
    }
}

fn changed_image(value: &mut Value, image: &Image, pattern: &ByteRegex) -> Result<(), String> {
    if value.is_null() {
        return Ok(());
    }
    let written = scalar_text(value).ok_or("an image is not a string")?;
    let text = written.as_str();
    if !pattern.is_match(text) {
        return Ok(());
    }
    let (name, mut tag, mut digest) = split_image(text);
    let name = if image.new_name.is_empty() { name } else { &image.new_name };
    let (tag_with_suffix, no) = (format!("{tag}{}", image.tag_suffix), "");
    match (image.new_tag.as_str(), image.digest.as_str(), image.tag_suffix.as_str()) {
        ("", "", "") => {}
        ("", "", _) => (tag, digest) = (&tag_with_suffix, no),
        ("", new, _) => (tag, digest) = (no, new),
        (new, "", _) => (tag, digest) = (new, no),
        (new, new_digest, _) => (tag, digest) = (new, new_digest),
    }
    let mut whole = name.to_owned();
    for (sign, part) in [(':', tag), ('@', digest)] {
        if !part.is_empty() {
            whole.push(sign);
            whole.push_str(part);
        }
    }
    *value = whole.into();
    Ok(())
}

/// Splits an image into name, tag and digest; a port of the registry host is not a tag.
fn split_image(text: &str) -> (&str, &str, &str) {
    let slash = text.find('/').unwrap_or(0);
    let rest = &text[slash..];
    let (colon, at) = (rest.find(':').map(|at| at + slash), rest.find('@').map(|at| at + slash));
    match (colon, at) {
        (None, None) => (text, "", ""),
        (Some(colon), None) => (&text[..colon], &text[colon + 1..], ""),
        (Some(colon), Some(at)) if colon < at => (&text[..colon], &text[colon + 1..at], &text[at + 1..]),
        (_, Some(at)) => (&text[..at], "", &text[at + 1..]),
    }
}

/// Sets the replica count of the objects with a name.
pub(super) fn set_replicas(
    resources: &mut [Resource],
    replicas: &Replicas,
    fields: &[FieldSpec],
) -> Result<(), BuildError> {
    let mut found = false;
    for spec in fields {
        for resource in resources.iter_mut() {
            let is_meant =
                |id: super::id::ResourceId| id.name == replicas.name && id.gvk.is_selected(&spec.gvk);
            if !resource.has_name(&replicas.name) || !resource.ids().any(is_meant) {
                continue;
            }
            found = true;
            let mut set = |value: &mut Value| set_scalar(value, replicas.count.into());
            let changed = change_fields(&mut resource.body, spec, CreatedValue::Scalar, &mut set);
            changed.map_err(|text| {
                replicas.at.error(ErrorClass::Resource, format!("{}: {text}", resource.id()))
            })?;
        }
    }
    match found {
        true => Ok(()),
        false => {
            let kinds: Vec<&str> = fields.iter().map(|spec| spec.gvk.kind.as_str()).collect();
            let text = format!("there is no {} called {}", kinds.join(" or "), replicas.name);
            Err(replicas.at.error(ErrorClass::Target, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_a_name_a_tag_and_a_digest() {
        assert_eq!(split_image("nginx"), ("nginx", "", ""));
        assert_eq!(split_image("nginx:1.2"), ("nginx", "1.2", ""));
        assert_eq!(split_image("host:5000/a/b"), ("host:5000/a/b", "", ""));
        assert_eq!(split_image("host:5000/a/b:1@sha256:0f"), ("host:5000/a/b", "1", "sha256:0f"));
        assert_eq!(split_image("a@sha256:0f"), ("a", "", "sha256:0f"));
    }
}
