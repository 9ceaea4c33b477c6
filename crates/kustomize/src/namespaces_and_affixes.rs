//! Transformers for namespaces, name prefixes and name suffixes.

use std::collections::HashMap;

use serde_json::Value;

use super::configuration::{Configuration, FieldSpec, FieldUse};
use super::error::{BuildError, ErrorClass, FieldLocation};
use super::field_spec::{CreatedValue, change_fields, scalar_text, set_scalar};
use super::id::{Gvk, ResourceId};
use super::kustomization::Kustomization;
use super::resource::Resource;

/// Subjects of a binding that get the namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subjects {
    Default,
    ServiceAccounts,
    None,
}

/// Options for setting a namespace.
#[derive(Debug)]
pub(super) struct NamespaceOptions<'a> {
    pub(super) namespace: &'a str,
    pub(super) fields: &'a [FieldSpec],
    pub(super) subjects: Subjects,
    pub(super) only_unset: bool,
}

/// Sets the namespace of resources.
pub(super) fn set_namespace(
    resources: &mut [Resource],
    how: &NamespaceOptions<'_>,
    at: &FieldLocation,
) -> Result<(), BuildError> {
    if how.namespace.is_empty() {
        return Ok(());
    }
    let mut known: HashMap<ResourceId, usize> = HashMap::with_capacity(resources.len());
    for resource in resources.iter() {
        *known.entry(resource.id().key()).or_default() += 1;
    }
    for resource in resources.iter_mut().filter(|resource| !resource.is_empty()) {
        if resource.is_from_helm() {
            continue;
        }
        let before = resource.id().key();
        resource.record_name();
        place(resource, how)
            .map_err(|text| at.error(ErrorClass::Resource, format!("{}: {text}", resource.id())))?;
        let after = resource.id().key();
        if before != after {
            known.entry(before).and_modify(|count| *count -= 1);
            *known.entry(after.clone()).or_default() += 1;
        }
        if known.get(&after).is_some_and(|count| *count > 1) {
            let text = format!("with this namespace there are two objects that are {}", resource.id());
            return Err(at.error(ErrorClass::Duplicate, text));
        }
    }
    Ok(())
}

fn place(resource: &mut Resource, how: &NamespaceOptions<'_>) -> Result<(), String> {
    let gvk = resource.gvk();
    let mut set = |value: &mut Value| match value {
        Value::String(text) if how.only_unset && !text.is_empty() => Ok(()),
        Value::Bool(_) | Value::Number(_) if how.only_unset => Ok(()),
        value => set_scalar(value, how.namespace.into()),
    };
    // To kustomize an explicit null is a text, so it counts as set.
    let is_null = how.only_unset && resource.body.pointer("/metadata/namespace").is_some_and(Value::is_null);
    let stays = is_null
        && match resource.spelling.null_text() {
            Some(text) => !text.is_empty(),
            None => return Err("some nulls are written and some left out; write all alike".to_owned()),
        };
    if !gvk.is_cluster_scoped() && !stays {
        let path = "metadata/namespace".to_owned();
        change_fields(
            &mut resource.body,
            &FieldSpec { gvk: Gvk::default(), path, create: true },
            CreatedValue::Scalar,
            &mut set,
        )?;
    }
    let is_binding = ["RoleBinding", "ClusterRoleBinding"].contains(&gvk.kind.as_str());
    if is_binding {
        place_subjects(&mut resource.body, how.subjects, &mut set)?;
    }
    let is_core = resource.api_version() == "v1";
    for spec in how.fields {
        let is_skipped = match spec.path.as_str() {
            "metadata/namespace" => true,
            "metadata/name" => !is_core,
            "subjects/namespace" => {
                is_binding && ["RoleBinding", "ClusterRoleBinding"].contains(&spec.gvk.kind.as_str())
            }
            _ => false,
        };
        if !is_skipped {
            change_fields(&mut resource.body, spec, CreatedValue::Scalar, &mut set)?;
        }
    }
    Ok(())
}

fn place_subjects(
    body: &mut Value,
    subjects: Subjects,
    set: &mut dyn FnMut(&mut Value) -> Result<(), String>,
) -> Result<(), String> {
    let (field, wanted) = match subjects {
        Subjects::None => return Ok(()),
        Subjects::Default => ("name", "default"),
        Subjects::ServiceAccounts => ("kind", "ServiceAccount"),
    };
    let list = match body.get_mut("subjects") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err("subjects is not a list".to_owned()),
    };
    for subject in list {
        let Some(subject) = subject.as_object_mut() else {
            return Err("a subject is not a mapping".to_owned());
        };
        if subject.get(field).and_then(Value::as_str) == Some(wanted) {
            set(subject.entry("namespace").or_insert(Value::Null))?;
        }
    }
    Ok(())
}

/// A prefix or suffix for names.
#[derive(Debug, Clone, Copy)]
pub(super) enum Affix<'a> {
    Prefix(&'a str),
    Suffix(&'a str),
}

/// Adds a prefix or suffix to names.
pub(super) fn add_affix(
    resources: &mut [Resource],
    affix: Affix<'_>,
    fields: &[FieldSpec],
    at: &FieldLocation,
) -> Result<(), BuildError> {
    let (Affix::Prefix(text) | Affix::Suffix(text)) = affix;
    for resource in resources {
        let first = resource.first_id();
        let Gvk { group, kind, .. } = &first.gvk;
        let is_api_service = group == "apiregistration.k8s.io" && kind == "APIService";
        if is_api_service || kind == "CustomResourceDefinition" || kind == "Namespace" {
            continue;
        }
        for spec in fields.iter().filter(|spec| first.gvk.is_selected(&spec.gvk)) {
            if spec.path == "metadata/name" && !text.is_empty() {
                match affix {
                    Affix::Prefix(text) => resource.prefixes.push(text.to_owned()),
                    Affix::Suffix(text) => resource.suffixes.push(text.to_owned()),
                }
                resource.record_name();
            }
            let mut change = |value: &mut Value| {
                let name = scalar_text(value).ok_or("found a mapping or a list, expected a name")?;
                let name = match affix {
                    Affix::Prefix(text) => format!("{text}{name}"),
                    Affix::Suffix(text) => format!("{name}{text}"),
                };
                set_scalar(value, name.into())
            };
            let changed = change_fields(&mut resource.body, spec, CreatedValue::Scalar, &mut change);
            changed.map_err(|text| at.error(ErrorClass::Resource, format!("{first}: {text}")))?;
        }
    }
    Ok(())
}

/// Adds the prefix and suffix of a kustomization.
pub(super) fn add_affixes(
    resources: &mut [Resource],
    from: &Kustomization,
    configuration: &Configuration,
) -> Result<(), BuildError> {
    let (prefix, suffix) = (from.name_prefix.as_str(), from.name_suffix.as_str());
    if !prefix.is_empty() {
        add_affix(
            resources,
            Affix::Prefix(prefix),
            &configuration.fields(FieldUse::NamePrefix),
            &from.field("namePrefix"),
        )?;
    }
    if !suffix.is_empty() {
        add_affix(
            resources,
            Affix::Suffix(suffix),
            &configuration.fields(FieldUse::NameSuffix),
            &from.field("nameSuffix"),
        )?;
    }
    Ok(())
}
