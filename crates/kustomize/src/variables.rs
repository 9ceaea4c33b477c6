//! Variables: `$(NAME)` in a text stands for a field of an object.
//!
//! In: the `vars` of kustomizations, the objects, and the fields that may contain variables. Out:
//! the objects with the variables replaced. The object of a variable is fixed where it is declared,
//! and its value is read at the end of the build.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::configuration::FieldSpec;
use super::error::{Built, ErrorClass};
use super::field_path::{FieldPathError, find_field, path_parts};
use super::field_spec::{CreatedValue, change_fields};
use super::id::{Gvk, ResourceId};
use super::kustomization::Var;
use super::resource::Resource;
use super::scalar_style::float_text;

/// From here on, the spelling of a number cannot be derived from its value.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// Records on the objects which variables refer to them, in the kustomization that declares the
/// variables.
pub(super) fn record_sources(resources: &mut [Resource], vars: &[Var]) -> Built<()> {
    for var in vars {
        let gvk = gvk(var);
        let means = |id: &ResourceId| {
            let is_there = var.namespace.is_empty() || var.namespace == id.namespace();
            id.gvk == gvk && id.name == var.object && is_there
        };
        let mut meant = resources.iter_mut().filter(|resource| resource.ids().any(|id| means(&id)));
        let Some(first) = meant.next() else { continue };
        if let Some(other) = meant.next() {
            let text =
                format!("{} could mean {} and {}; name the namespace", var.name, first.id(), other.id());
            return Err(var.at.error(ErrorClass::Variable, text));
        }
        first.vars.push(var.name.clone());
    }
    Ok(())
}

/// Adds variables to the known ones; an error if a name is taken.
pub(super) fn merge(known: &mut Vec<Var>, more: Vec<Var>) -> Built<()> {
    if more.is_empty() {
        return Ok(());
    }
    let mut names: HashSet<String> = known.iter().map(|known| known.name.clone()).collect();
    for var in more {
        if !names.insert(var.name.clone()) {
            let text = format!("there is a variable {} already", var.name);
            return Err(var.at.error(ErrorClass::Variable, text));
        }
        known.push(var);
    }
    Ok(())
}

/// Replaces the variables.
pub(super) fn resolve(resources: &mut [Resource], vars: &[Var], specs: &[FieldSpec]) -> Built<()> {
    let Some(first) = vars.first() else { return Ok(()) };
    let sources = sources(resources);
    let values = vars.iter().map(|var| Ok((var.name.as_str(), value(&sources, var)?)));
    let values: BTreeMap<&str, Value> = values.collect::<Built<_>>()?;
    let mut budget = MAX_BYTES;
    for resource in resources {
        if resource.spelling.has_untyped_values() {
            let text = format!(
                "a replacement has made a field in {} whose type variables would change",
                resource.id()
            );
            return Err(first.at.error(ErrorClass::Unsupported, text));
        }
        for spec in specs {
            let mut change = |field: &mut Value| replace(field, &values, &mut budget);
            if let Err(text) = change_fields(&mut resource.body, spec, CreatedValue::Nothing, &mut change) {
                let text = format!("in {}, {text}", resource.id());
                let class =
                    if text.ends_with(NOT_ASCII) { ErrorClass::Unsupported } else { ErrorClass::Variable };
                return Err(first.at.error(class, text));
            }
        }
    }
    Ok(())
}

fn gvk(var: &Var) -> Gvk {
    let (mut group, mut version) = (&*var.group, &*var.version);
    match var.api_version.split('/').collect::<Vec<_>>()[..] {
        [""] => {}
        [only] => version = only,
        [first, second] => (group, version) = (first, second),
        _ => {}
    }
    Gvk { group: group.to_owned(), version: version.to_owned(), kind: var.kind.clone() }
}

/// Returns the first object of each variable.
fn sources(resources: &[Resource]) -> HashMap<&str, &Resource> {
    let mut sources = HashMap::new();
    for resource in resources {
        for name in &resource.vars {
            sources.entry(name.as_str()).or_insert(resource);
        }
    }
    sources
}

/// Returns the value of a variable.
fn value(sources: &HashMap<&str, &Resource>, var: &Var) -> Built<Value> {
    let refuse = |class, text: String| var.at.error(class, text);
    let Some(resource) = sources.get(var.name.as_str()) else {
        let text =
            format!("there is no {} {}, the source of the variable {}", var.kind, var.object, var.name);
        return Err(refuse(ErrorClass::Variable, text));
    };
    let missed = |miss: FieldPathError| refuse(miss.class, format!("{}: {}", var.field, miss.text));
    let parts = indexed(path_parts(&var.field).map_err(missed)?);
    let found = find_field(&resource.body, &parts).map_err(|miss| match miss.class {
        ErrorClass::Replacement => missed(FieldPathError { class: ErrorClass::Variable, ..miss }),
        _ => missed(miss),
    })?;
    match found {
        None => Err(refuse(ErrorClass::Variable, format!("{} has no field {}", resource.id(), var.field))),
        Some((_, Value::Null)) => {
            let text =
                format!("{} of {} is null, which could be written in several ways", var.field, resource.id());
            Err(refuse(ErrorClass::Unsupported, text))
        }
        Some((_, Value::Number(number))) if number.as_f64().is_some_and(|it| it.abs() >= TWO_TO_63) => {
            Err(refuse(
                ErrorClass::Unsupported,
                format!("{} of {} is too large a number", var.field, resource.id()),
            ))
        }
        Some((way, value)) => match resource.spelling.untyped(&way, value) {
            Some(text) => Ok(Value::String(text.to_owned())),
            None if resource.spelling.is_rewritten(value) => {
                let text = format!(
                    "{} of {} may be written in another way; put it in quotes",
                    var.field,
                    resource.id()
                );
                Err(refuse(ErrorClass::Unsupported, text))
            }
            None => Ok(value.clone()),
        },
    }
}

/// Splits `ports[0]` into `ports` and `0`.
fn indexed(parts: Vec<String>) -> Vec<String> {
    let mut all = Vec::new();
    for part in parts {
        let index = part.strip_suffix(']').and_then(|part| part.rsplit_once('['));
        match index.filter(|(_, index)| !index.is_empty() && index.bytes().all(|it| it.is_ascii_digit())) {
            Some((name, index)) => {
                all.extend((!name.is_empty()).then(|| name.to_owned()));
                all.push(index.to_owned());
            }
            None => all.push(part),
        }
    }
    all
}

/// Most text that variables may produce.
const MAX_BYTES: usize = 64 * 1024 * 1024;
const NOT_ASCII: &str = "a $ is followed by a character that is not ASCII";

type Values<'v> = BTreeMap<&'v str, Value>;

/// Replaces variables in a text, the texts of a list, or those of a mapping.
fn replace(field: &mut Value, values: &Values<'_>, budget: &mut usize) -> Result<(), String> {
    match field {
        Value::String(text) => {
            if let Some(new) = replaced(text, values, budget)? {
                *field = new;
            }
        }
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::String(_) => replace(item, values, budget)?,
                    _ => return Err("the list has something else than texts".to_owned()),
                }
            }
        }
        Value::Object(map) => {
            for field in map.values_mut().filter(|field| field.is_string()) {
                replace(field, values, budget)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Ok(())
}

/// Returns the text with values, or the value itself if the text is a single reference; none if
/// there is nothing to replace.
fn replaced(text: &str, values: &Values<'_>, budget: &mut usize) -> Result<Option<Value>, String> {
    let Some(begin) = text.find('$') else { return Ok(None) };
    let whole = text.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
    let whole = whole.filter(|name| !name.contains(')')).and_then(|name| values.get(name));
    let new = match whole.filter(|value| !is_composite(value)) {
        Some(value) => value.clone(),
        None => Value::String(substitute_references(text, begin, values, *budget)?),
    };
    let bytes = new.as_str().map_or(0, str::len);
    *budget = budget.checked_sub(bytes).ok_or_else(too_much)?;
    Ok(Some(new))
}

fn too_much() -> String {
    format!("variables expand to more than {MAX_BYTES} bytes")
}

fn is_composite(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
}

fn substitute_references(
    text: &str,
    begin: usize,
    values: &Values<'_>,
    budget: usize,
) -> Result<String, String> {
    let (before, mut rest) = text.split_at(begin);
    let mut out = before.to_owned();
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let Some(next) = after.chars().next() else {
            rest = &rest[at..];
            break;
        };
        rest = match next {
            '$' => {
                out.push('$');
                &after[1..]
            }
            '(' => match after.split_once(')') {
                Some((name, behind)) => {
                    let name = &name[1..];
                    match values.get(name).and_then(inside_text) {
                        Some(value) => out.push_str(&value),
                        None => out.extend(["$(", name, ")"]),
                    }
                    behind
                }
                None => {
                    out.push_str("$(");
                    &after[1..]
                }
            },
            next if next.is_ascii() => {
                out.extend(['$', next]);
                &after[1..]
            }
            _ => return Err(NOT_ASCII.to_owned()),
        };
        if out.len() > budget {
            return Err(too_much());
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Returns a value as text; none for a mapping or list.
fn inside_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) if number.is_f64() => Some(float_text(number)),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::FieldLocation;
    use moorline_core::object::Origin;

    fn object(body: Value) -> Resource {
        Resource::new(body, Origin { file: "r.yaml".into(), document: 0, line: 1, item: None })
    }

    fn var(name: &str, field: &str) -> Var {
        Var {
            at: FieldLocation::default(),
            name: name.to_owned(),
            api_version: "apps/v1".to_owned(),
            group: String::new(),
            version: String::new(),
            kind: "Deployment".to_owned(),
            object: "web".to_owned(),
            namespace: String::new(),
            field: field.to_owned(),
        }
    }

    fn built(text: &Value) -> Result<Value, ErrorClass> {
        let spec = json!({"n": 3, "f": 1.5, "tiny": 0.00001, "t": true, "s": "$(N)", "m": {}, "list": ["a"], "field": text});
        let body =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec});
        let mut resources = [object(body)];
        let fields = [
            ("N", "spec.n"),
            ("F", "spec.f"),
            ("TINY", "spec.tiny"),
            ("T", "spec.t"),
            ("S", "spec.s"),
            ("M", "spec.m"),
        ];
        let mut vars: Vec<Var> = fields.iter().map(|(name, field)| var(name, field)).collect();
        vars.extend([var("I", "spec.list[0]"), var("NAME", "metadata.name")]);
        let specs = [FieldSpec { gvk: Gvk::default(), path: "spec/field".to_owned(), create: false }];
        record_sources(&mut resources, &vars)
            .and_then(|()| resolve(&mut resources, &vars, &specs))
            .map_err(|refusal| refusal.class())?;
        Ok(resources[0].body["spec"]["field"].clone())
    }

    // Recorded from Kustomize 5.8.1.
    #[test]
    fn references_are_replaced_as_the_tool_does() {
        for (text, expected) in [
            (json!("$(N)"), json!(3)),
            (json!("$(F)"), json!(1.5)),
            (json!("$(T)"), json!(true)),
            (json!("x$(N)$(F)$(T)$(NAME)$(I)"), json!("x31.5trueweba")),
            (json!("a $(TINY)"), json!("a 1e-05")),
            (json!("$(S)"), json!("$(N)")),
            (json!("$(M)/$(NOPE)/$()"), json!("$(M)/$(NOPE)/$()")),
            (json!("$$(N) $$ $x $( $"), json!("$(N) $ $x $( $")),
            (json!("$(N"), json!("$(N")),
            (json!("$(N)$"), json!("3$")),
            (json!(["$(N)", "b"]), json!([3, "b"])),
            (json!({"a": "$(N)", "b": 7}), json!({"a": 3, "b": 7})),
            (json!(7), json!(7)),
            (json!(null), json!(null)),
        ] {
            assert_eq!(built(&text), Ok(expected), "{text}");
        }
        assert_eq!(built(&json!(["a", 7])), Err(ErrorClass::Variable));
        assert_eq!(built(&json!("$é")), Err(ErrorClass::Unsupported));
    }

    #[test]
    fn a_variable_means_one_object_and_a_name_one_variable() {
        let body = |namespace: &str| {
            let metadata = json!({"name": "web", "namespace": namespace});
            object(json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}))
        };
        let mut resources = [body("a"), body("b")];
        let refused = record_sources(&mut resources, &[var("X", "metadata.name")]).unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Variable);
        let one = Var { namespace: "b".to_owned(), ..var("X", "metadata.namespace") };
        record_sources(&mut resources, std::slice::from_ref(&one)).unwrap();
        assert_eq!(value(&sources(&resources), &one).unwrap(), json!("b"));
        let mut known = vec![one.clone()];
        assert_eq!(merge(&mut known, vec![one]).unwrap_err().class(), ErrorClass::Variable);
        let missing = [var("Y", "metadata.name"), var("X", "spec.missing")];
        for var in &missing {
            assert_eq!(value(&sources(&resources), var).unwrap_err().class(), ErrorClass::Variable);
        }
    }
}
