//! Updates `managedFields` after a write.
//!
//! In: the object before and after.
//! Out: the object with its `managedFields`. The rules of each endpoint are here: a field that
//! cannot be written through an endpoint is not owned through it either.

use serde_json::Value;

use super::Target;
use crate::ask::Ask;
use crate::convert::{self, Conversions};
use crate::ownership::{self, Fault, InVersion, Writer};
use crate::refusal::Refusal;
use crate::served::Origin;
use crate::state::State;

/// Updates `managedFields` of `new`.
pub(super) fn note(state: &State, target: &Target, ask: &Ask, old: Option<&Value>, new: &mut Value) {
    let (manager, now, version) = (ask.manager(), state.clock.text(), target.api_version());
    with_writer(&state.conversions, target, &manager, &now, &version, &mut |writer| {
        ownership::update(&target.served().schema, old, new, writer);
    });
}

/// Applies a configuration to the live object.
pub(super) fn applied(
    state: &State,
    target: &Target,
    ask: &Ask,
    live: Option<&Value>,
    config: &Value,
) -> Result<Value, Refusal> {
    let (manager, now, version) = (ask.manager(), state.clock.text(), target.api_version());
    let force = ask.is_set("force");
    let mut done = Ok(Value::Null);
    with_writer(&state.conversions, target, &manager, &now, &version, &mut |writer| {
        done = ownership::apply(&target.served().schema, live, config, writer, force);
    });
    done.map_err(|fault| match fault {
        Fault::Conflicts(conflicts) => {
            let (message, causes) = ownership::conflict_message(&conflicts);
            Refusal::field_conflicts(message, causes)
        }
        Fault::Typed(words) => Refusal::failed(words),
        Fault::Refused(words) => Refusal::bad_request(words),
    })
}

fn with_writer(
    conversions: &Conversions,
    target: &Target,
    manager: &str,
    now: &str,
    api_version: &str,
    act: &mut dyn FnMut(&Writer<'_>),
) {
    let resource = &target.resource;
    let in_version = |wanted: &str, object: &Value| {
        let version = wanted.rsplit_once('/').map_or(wanted, |(_, version)| version);
        let known = resource.versions.iter().position(|known| *known.name == *version);
        match (&resource.origin, known) {
            (Origin::Builtin(kind), None) if kind.home() != kind.group => InVersion::Same,
            (_, None) => InVersion::Gone,
            (_, Some(at)) if object["apiVersion"] == resource.api_version(at) => InVersion::Same,
            (_, Some(at)) => {
                let mut object = object.clone();
                if let Some(metadata) = object["metadata"].as_object_mut() {
                    metadata.remove("managedFields");
                }
                // Converted by way of the version of the request.
                let between = |at, object| convert::between(conversions, resource, at, object);
                let converted = between(target.version, object).and_then(|object| between(at, object));
                match converted {
                    Ok(object) => InVersion::Other(resource.versions[at].schema.clone(), object),
                    Err(words) => InVersion::Failed(words),
                }
            }
        }
    };
    let reset: &[&[&str]] = match target.subresource.as_str() {
        // Deployment is the only built-in kind that resets its labels.
        "status" if &*resource.kind == "Deployment" => &[&["spec"], &["metadata", "labels"]],
        "status" if resource.builtin().is_none() => &[&["spec"], &["metadata"]],
        "status" => &[&["spec"]],
        _ if target.served().has_status => &[&["status"]],
        _ => &[],
    };
    act(&Writer {
        manager,
        api_version,
        subresource: &target.subresource,
        now,
        reset,
        in_version: &in_version,
    });
}
