//! Strategic merge patches: merge patches that use the schema to decide which lists are merged, and
//! by which key.
//!
//! In: the schema of a built-in kind, an object of it, and a patch. The patch may contain
//! directives for a map (`$patch`, `$retainKeys`) or for a list (`$deleteFromPrimitiveList/…`,
//! `$setElementOrder/…`).
//! Out: the object as the API server would return it, including the order of list items, or a
//! [`PatchError`].

use serde_json::{Map, Value};

use super::PatchError;
use crate::schema::Schema;

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

const BAD_RETAIN: &str = "invalid patch format of retainKeys";

type Object = Map<String, Value>;

/// Applies the patch to the object.
pub(crate) fn apply_strategic_patch(
    schema: &Schema,
    target: Value,
    patch: Value,
) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else {
        let found = match patch {
            Value::Array(_) => "array",
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "bool",
            Value::Null | Value::Object(_) => "null",
        };
        let words = format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
        return Err(PatchError::new(400, words));
    };
    let target = if let Value::Object(target) = target { target } else { Object::new() };
    merge(Some(schema), target, patch).map(Value::Object)
}

/// Patch strategy of a list or map field.
struct FieldStrategy<'a> {
    schema: Option<&'a Schema>,
    merges: bool,
    replaces: bool,
    /// Empty for lists of scalars.
    key: &'a str,
}

impl<'a> FieldStrategy<'a> {
    fn of(schema: Option<&'a Schema>, name: &str) -> Self {
        let patch = schema.and_then(|it| it.declared(name)).and_then(|it| it.patch.as_ref());
        Self {
            schema: schema.and_then(|it| it.field(name)),
            merges: patch.is_some_and(|it| it.merge),
            // A map is replaced only if its strategy is neither `merge` nor `retainKeys`.
            replaces: patch.is_some_and(|it| !it.merge && !it.retain_keys),
            key: patch.map_or("", |it| &it.merge_key),
        }
    }

    fn items(&self) -> Option<&'a Schema> {
        self.schema.and_then(Schema::items)
    }
}

fn merge(schema: Option<&Schema>, mut target: Object, mut patch: Object) -> Result<Object, PatchError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => Err(unknown_directive(directive, &patch)),
        };
    }
    retain(&mut target, &mut patch)?;
    order_lists(schema, &mut target, &mut patch)?;
    for (name, wanted) in patch {
        let (name, deletes) = match name.strip_prefix(DELETE_FROM) {
            Some(name) => (name.to_owned(), true),
            None => (name, false),
        };
        if wanted.is_null() {
            target.remove(&name);
            continue;
        }
        let field = FieldStrategy::of(schema, &name);
        let merged = match (target.remove(&name), wanted) {
            (Some(Value::Object(own)), Value::Object(wanted)) if !field.replaces => {
                Some(Value::Object(merge(field.schema, own, wanted)?))
            }
            (Some(Value::Object(_)), Value::Object(wanted)) => Some(Value::Object(wanted)),
            (Some(Value::Array(own)), Value::Array(wanted)) if field.merges || deletes => {
                Some(Value::Array(merge_lists(field.items(), own, wanted, field.key, deletes)?))
            }
            (Some(Value::Array(_)), Value::Array(wanted)) => Some(Value::Array(wanted)),
            (own, _) if deletes => own,
            (_, mut wanted) => {
                drop_nulls(&mut wanted);
                without_directives(wanted)
            }
        };
        if let Some(merged) = merged {
            target.insert(name, merged);
        }
    }
    Ok(target)
}

/// `$retainKeys` lists all members that are kept; the patch may set no others.
fn retain(target: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(kept) = patch.remove(RETAIN) else { return Ok(()) };
    let Value::Array(kept) = kept else { return Err(PatchError::new(400, BAD_RETAIN)) };
    let stays = |name: &String| kept.iter().any(|it| it == name);
    let is_plain = |name: &str| !name.starts_with(DELETE_FROM) && !name.starts_with(ORDER);
    if patch.iter().any(|(name, value)| !value.is_null() && is_plain(name) && !stays(name)) {
        return Err(PatchError::new(400, BAD_RETAIN));
    }
    target.retain(|name, _| stays(name));
    Ok(())
}

/// `$setElementOrder/…` gives the order of the items that the patch mentions.
fn order_lists(schema: Option<&Schema>, target: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let ordered: Vec<_> = patch.keys().filter(|name| name.starts_with(ORDER)).cloned().collect();
    for directive in ordered {
        let Some(Value::Array(order)) = patch.remove(&directive) else { return Err(wrong_type("slice")) };
        let name = &directive[ORDER.len()..];
        let field = FieldStrategy::of(schema, name);
        let list = |value: Option<Value>| match value {
            Some(Value::Array(list)) => Ok(Some(list)),
            None => Ok(None),
            Some(_) => Err(wrong_type("slice")),
        };
        let (own, wanted) = (list(target.get(name).cloned())?, list(patch.get(name).cloned())?);
        if let Some(wanted) = &wanted {
            agree(wanted, &order, field.key)?;
        }
        let before = own.clone().unwrap_or_default();
        let merged = match (own, wanted) {
            (Some(own), None) => own,
            (Some(own), Some(wanted)) if field.merges => {
                merge_lists(field.items(), own, wanted, field.key, false)?
            }
            (Some(_), Some(wanted)) => wanted,
            (None, Some(wanted)) => {
                let items = wanted.into_iter().filter_map(without_directives);
                items.collect()
            }
            (None, None) => continue,
        };
        check_keys(&merged, field.key)?;
        target.insert(name.to_owned(), Value::Array(in_order(merged, &order, &before, field.key)));
        patch.remove(name);
    }
    Ok(())
}

/// Checks that the items of a patch are in the order that it gives itself.
fn agree(wanted: &[Value], order: &[Value], key: &str) -> Result<(), PatchError> {
    if order.is_empty() || wanted.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    let plain = wanted.iter().filter(|it| it.get(PATCH).is_none());
    let mut in_turn = plain.clone().map(|item| rest.any(|it| same(it, item, key)));
    if in_turn.all(|it| it) {
        return Ok(());
    }
    let (wanted, order) = (go(&Value::Array(wanted.to_vec())), go(&Value::Array(order.to_vec())));
    let words =
        format!("The order in patch list:\n{wanted}\n doesn't match $setElementOrder list:\n{order}\n");
    Err(PatchError::new(500, words))
}

fn merge_lists(
    schema: Option<&Schema>,
    own: Vec<Value>,
    wanted: Vec<Value>,
    key: &str,
    deletes: bool,
) -> Result<Vec<Value>, PatchError> {
    let Some(first) = own.first().or(wanted.first()) else { return Ok(own) };
    if first.is_array() {
        return Err(PatchError::new(422, "lists of lists are not supported"));
    }
    let kind = std::mem::discriminant(first);
    if own.iter().chain(&wanted).any(|it| std::mem::discriminant(it) != kind) {
        let words =
            format!("list element types are not identical: [{} {}]", go(&own.into()), go(&wanted.into()));
        return Err(PatchError::new(500, words));
    }
    if !first.is_object() {
        if deletes {
            return Ok(own.into_iter().filter(|it| !wanted.contains(it)).collect());
        }
        let mut merged: Vec<Value> = Vec::with_capacity(own.len() + wanted.len());
        for item in own.iter().chain(&wanted) {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return Ok(in_order(merged, &wanted, &own, ""));
    }
    if key.is_empty() {
        let name = schema.map_or("", Schema::name);
        return Err(PatchError::new(500, format!("cannot merge lists without merge key for {name}")));
    }
    let (own, wanted) = obey(own, wanted, key)?;
    let before = own.clone();
    let mut merged = own;
    for item in &wanted {
        let Value::Object(wanted) = item else { continue };
        let value = wanted.get(key).ok_or_else(|| no_key(item, key))?;
        match merged.iter().position(|it| it.get(key) == Some(value)) {
            Some(at) => {
                let found = std::mem::take(&mut merged[at]);
                let found = if let Value::Object(found) = found { found } else { Object::new() };
                merged[at] = Value::Object(merge(schema, found, wanted.clone())?);
            }
            None => merged.push(item.clone()),
        }
    }
    check_keys(&merged, key)?;
    Ok(in_order(merged, &wanted, &before, key))
}

/// Applies the directives of list items: `$patch: delete` for one item, `$patch: replace` for the
/// whole list.
fn obey(mut own: Vec<Value>, wanted: Vec<Value>, key: &str) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let (mut plain, mut replaces) = (Vec::with_capacity(wanted.len()), false);
    for item in wanted {
        match item.get(PATCH).map(|it| it.as_str().unwrap_or_default()) {
            None => plain.push(item),
            Some("delete") => {
                let value = item.get(key).ok_or_else(|| no_key(&item, key))?;
                own.retain(|it| it.get(key) != Some(value));
            }
            Some("replace") => replaces = true,
            Some("merge") => {
                return Err(PatchError::new(500, "merging lists cannot yet be specified in the patch"));
            }
            Some(_) => {
                let map = item.as_object().cloned().unwrap_or_default();
                return Err(unknown_directive(&item[PATCH], &map));
            }
        }
    }
    Ok(if replaces { (plain, Vec::new()) } else { (own, plain) })
}

/// Sorts the items that the patch mentions by its order, the others by theirs; items known in both
/// keep their previous relative order.
fn in_order(merged: Vec<Value>, order: &[Value], before: &[Value], key: &str) -> Vec<Value> {
    let place = |list: &[Value], item: &Value| list.iter().position(|it| same(it, item, key));
    let (mut known, mut others): (Vec<_>, Vec<_>) =
        merged.into_iter().partition(|it| place(order, it).is_some());
    known.sort_by_key(|it| place(order, it));
    others.sort_by_key(|it| place(before, it));
    let mut all = Vec::with_capacity(known.len() + others.len());
    let (mut known, mut others) = (known.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let other_first = match (others.peek(), known.peek()) {
            (None, None) => return all,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(known)) => match (place(before, other), place(before, known)) {
                (Some(other), Some(known)) => other < known,
                _ => false,
            },
        };
        all.extend(if other_first { others.next() } else { known.next() });
    }
}

fn same(left: &Value, right: &Value, key: &str) -> bool {
    if key.is_empty() { left == right } else { left.get(key).is_some() && left.get(key) == right.get(key) }
}

fn check_keys(items: &[Value], key: &str) -> Result<(), PatchError> {
    match items.iter().find(|it| !key.is_empty() && it.get(key).is_none()) {
        Some(item) => Err(no_key(item, key)),
        None => Ok(()),
    }
}

/// Removes nulls from a value that the patch adds.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, it| !it.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes items with a `$patch` directive; `None` if nothing else is left.
fn without_directives(value: Value) -> Option<Value> {
    Some(match value {
        Value::Object(map) if map.contains_key(PATCH) => return None,
        Value::Object(map) => {
            let kept = map.into_iter().filter_map(|(name, it)| Some((name, without_directives(it)?)));
            Value::Object(kept.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().filter_map(without_directives).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    })
}

fn unknown_directive(directive: &Value, map: &Object) -> PatchError {
    let map = go(&Value::Object(map.clone()));
    PatchError::new(500, format!("unknown patch type: {} in map: {map}", go(directive)))
}

fn no_key(item: &Value, key: &str) -> PatchError {
    PatchError::new(500, format!("map: {} does not contain declared merge key: {key}", go(item)))
}

fn wrong_type(wanted: &str) -> PatchError {
    PatchError::new(500, format!("expected a {wanted}"))
}

/// Formats a value as Go prints it.
fn go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let members: Vec<_> = map.iter().map(|(name, it)| format!("{name}:{}", go(it))).collect();
            format!("map[{}]", members.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of the Kubernetes code, recorded by `tests/control-plane/sandbox/strategic`.
    #[test]
    fn patches_come_to_what_kubernetes_makes_of_them() {
        let (mut cases, mut wrong) = (0, Vec::new());
        for line in include_str!("../../../../tests/sandbox_kinds/strategic.jsonl").lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let of = |field: &str| case[field].as_str().unwrap();
            let schema = Schema::builtin(of("group"), of("version"), of("kind")).unwrap();
            let made = apply_strategic_patch(&schema, case["target"].clone(), case["patch"].clone());
            let same = match (&made, case.get("merged")) {
                (Ok(made), Some(merged)) => made == merged,
                (Err(fault), None) => fault.words == of("error"),
                _ => false,
            };
            if !same {
                wrong.push(format!("{line}\n    here: {made:?}"));
            }
            cases += 1;
        }
        assert!(
            wrong.is_empty(),
            "{} of {cases} differ:\n{}",
            wrong.len(),
            wrong[..wrong.len().min(8)].join("\n")
        );
        assert!(cases >= 200, "{cases}");
    }
}
