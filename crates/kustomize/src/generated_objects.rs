//! Merges generated objects into the resources of a kustomization.
//!
//! In: an object of a generator or a chart, and the resources so far. Out: the resources with the
//! object added, merged, or in place of another one, as its `behavior` says.

use serde_json::Value;

use super::error::{Built, ErrorClass, FieldLocation};
use super::provenance;
use super::resource::{Behavior, Resource};

/// Adds a generated object, or merges it into the resource with the same id.
pub(super) fn merge_generated(
    resources: &mut Vec<Resource>,
    mut made: Resource,
    at: &FieldLocation,
) -> Built<()> {
    let id = made.id();
    let mut fits = (0..resources.len()).filter(|index| resources[*index].is_or_was(&id));
    let (found, another) = (fits.next(), fits.next());
    if another.is_some() {
        return Err(at.error(ErrorClass::Generator, format!("more than one object is or was {id}")));
    }
    match (found, made.behavior) {
        (None, Behavior::Merge | Behavior::Replace) => {
            let text = format!("there is no {id} to merge or replace");
            Err(at.error(ErrorClass::Generator, text))
        }
        (None, Behavior::Create | Behavior::Unspecified) => {
            resources.push(made);
            Ok(())
        }
        (Some(_), Behavior::Create | Behavior::Unspecified) => {
            let text = format!("{id} already exists; set behavior: merge or replace");
            Err(at.error(ErrorClass::Generator, text))
        }
        (Some(index), _)
            if resources[index].has_non_text_namespace() || resources[index].has_null_namespace() =>
        {
            let text = format!("the namespace of {id} is not a string; put it in quotes, or leave it out");
            Err(at.error(ErrorClass::Unsupported, text))
        }
        (Some(index), behavior) => {
            resources[index].convert_to_texts("labels")?;
            resources[index].convert_to_texts("annotations")?;
            if behavior == Behavior::Merge {
                resources[index].convert_data_to_texts()?;
            }
            succeed(&mut made, &resources[index], behavior);
            provenance::take_over(&mut made, &resources[index], behavior == Behavior::Merge)?;
            resources[index] = made;
            Ok(())
        }
    }
}

/// Lets a generated object take over name, namespace, labels and annotations of the old one, and
/// its data if it merges.
fn succeed(made: &mut Resource, old: &Resource, behavior: Behavior) {
    for field in ["labels", "annotations"] {
        let mut texts = old.texts(field).cloned().unwrap_or_default();
        texts.extend(made.texts(field).cloned().unwrap_or_default());
        if let (Some(metadata), false) = (made.metadata_mut(), texts.is_empty()) {
            metadata.insert(field.to_owned(), Value::Object(texts));
        }
    }
    made.set_name(old.name());
    made.set_namespace(&old.namespace());
    if behavior == Behavior::Merge {
        for field in ["data", "binaryData"] {
            let map = |resource: &Resource| resource.body.get(field).and_then(Value::as_object).cloned();
            let mut data = map(old).unwrap_or_default();
            data.extend(map(made).unwrap_or_default());
            if !data.is_empty() {
                made.body[field] = Value::Object(data);
            }
        }
    }
    made.needs_hash &= old.needs_hash;
    made.contains_secret |= old.contains_secret;
    made.behavior = old.behavior;
    made.take_over_history(old);
}
