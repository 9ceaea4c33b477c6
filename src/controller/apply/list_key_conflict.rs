//! Resolves list key conflicts: another manager gave a list item, such as a port, a different key,
//! but it kept a value, such as the name, that Git gives to our item. A list cannot contain both,
//! so every apply is refused, forced or not.
//!
//! In: an object, and the error of its refused apply.
//! Out: true if no other item has the value any more, so that the apply can be sent once more.
//!
//! No request is sent unless an apply was refused with this error.

use serde_json::{Value, json};

use super::ApplyContext;
use super::stale_owner::{has_owner_released, is_owner_gone};
use crate::api::{ConflictPolicy, HANDOVER_MANAGER, MANAGER_PREFIX};
use crate::cluster::{ApiError, ApiStatus};
use crate::desired::DesiredObject;
use crate::fields::{Operation, entries};
use crate::object::Object;

/// The server's message about a duplicate in a list, before the value.
const VALUE: &str = "Duplicate value: ";

/// Value that the server assigns to an item once and that clients rely on: it stays with the item.
const CHOSEN: &str = "nodePort";

/// A duplicate value, and its field path without item numbers: `spec.ports.name`.
#[derive(Debug, PartialEq)]
struct DuplicateListKey {
    list: Vec<Box<str>>,
    field: Box<str>,
    value: Value,
}

/// A live item that has the value that Git gives to another item.
#[derive(Debug, PartialEq)]
struct ListKeyOwner {
    /// JSON pointer of its list in the live object.
    list: String,
    /// Its index in the list.
    number: usize,
    /// The item that Git desires in its place.
    rightful: Value,
}

/// Replaces the conflicting item by ours; returns true if it is replaced. An object that is not
/// known as ours must carry the managed fields of a Sync: its label may have been removed, or
/// its Sync is gone. Objects of other owners are changed by nothing but an apply.
pub(crate) async fn resolve_list_key_conflict(
    work: &ApplyContext<'_>,
    wanted: &DesiredObject,
    failure: &ApiError,
    is_known: bool,
) -> Result<bool, ApiError> {
    let ApiError::Refused(refusal) = failure else { return Ok(false) };
    let twice = named_twice(refusal);
    if work.conflicts != ConflictPolicy::Force || twice.is_empty() {
        return Ok(false);
    }
    let version = Some(&*wanted.version);
    let Some(live) = work.cluster.objects().read_whole(&wanted.id, version).await? else { return Ok(false) };
    if !is_known && !was_ours(work, wanted, &live).await? {
        return Ok(false);
    }
    let (live, body) = (Value::Object(live.body), Value::Object(wanted.body()));
    let list_key_owners = all_list_key_owners(&body, &live, &twice);
    if list_key_owners.is_empty() {
        // A hand-over and the receiving Sync send the same apply side by side. One of them
        // replaces the item between the refusal of the other and its read.
        return Ok(is_resolved(&body, &live, &twice));
    }
    let seen = live.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
    // If our item exists beside it, under another name, the conflicting item only has to be
    // removed.
    for takes_place in [true, false] {
        let mut steps = vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": seen})];
        steps.extend(list_key_owners.iter().map(|it| match takes_place {
            true => json!({"op": "replace", "path": it.pointer(), "value": it.rightful}),
            false => json!({"op": "remove", "path": it.pointer()}),
        }));
        match work
            .cluster
            .objects()
            .patch_as(&wanted.id, version, (work.owner, HANDOVER_MANAGER), &steps.into())
            .await
        {
            Ok(()) => {
                tracing::info!(sync = %work.owner, object = %wanted.id, "replaced a list item that conflicted with an item from Git");
                return Ok(true);
            }
            Err(failure) if failure.code() == Some(422) => {}
            Err(failure) => return Err(failure),
        }
    }
    // Of two concurrent replacements one finds a newer version, and its conflict may be
    // resolved.
    let now =
        work.cluster.objects().read_whole(&wanted.id, version).await?.map(|now| Value::Object(now.body));
    let now = now.as_ref().and_then(|now| now.pointer("/metadata/resourceVersion")?.as_str());
    Ok(now.is_some_and(|now| now != seen))
}

/// Returns true if the live object carries our managed fields, or those of a Sync that will
/// never release it.
async fn was_ours(work: &ApplyContext<'_>, wanted: &DesiredObject, live: &Object) -> Result<bool, ApiError> {
    let metadata = live.body.get("metadata").and_then(Value::as_object);
    let entries = metadata.map(entries).unwrap_or_default();
    let applied = entries.iter().filter(|entry| entry.operation == Operation::Apply);
    let syncs: Vec<&str> = applied.filter_map(|entry| entry.manager.strip_prefix(MANAGER_PREFIX)).collect();
    let own = work.owner.owner();
    for other in syncs.iter().filter(|sync| **sync != own) {
        if !is_owner_gone(work.context, work.owner, other).await?
            && !has_owner_released(work, other, wanted).await?
        {
            return Ok(false);
        }
    }
    Ok(!syncs.is_empty())
}

/// Returns each item once, the last items of a list first: removing an item moves all items after
/// it.
fn all_list_key_owners(wanted: &Value, live: &Value, twice: &[DuplicateListKey]) -> Vec<ListKeyOwner> {
    let mut all: Vec<ListKeyOwner> =
        twice.iter().flat_map(|twice| list_key_owners(wanted, live, twice)).collect();
    all.sort_by(|one, other| (&other.list, other.number).cmp(&(&one.list, one.number)));
    all.dedup_by(|one, other| (&one.list, one.number) == (&other.list, other.number));
    all
}

impl ListKeyOwner {
    fn pointer(&self) -> String {
        format!("{}/{}", self.list, self.number)
    }
}

/// Returns the duplicates that a refusal names.
fn named_twice(refusal: &ApiStatus) -> Vec<DuplicateListKey> {
    let mut all = Vec::new();
    for cause in refusal.causes.iter().filter(|cause| refusal.code == 422 && cause.is_duplicate_value()) {
        let names = cause.field.split('.').map(|part| part.split('[').next().unwrap_or_default().into());
        let mut list: Vec<Box<str>> = names.collect();
        let value = cause.message.strip_prefix(VALUE).and_then(|value| serde_json::from_str(value).ok());
        if let (Some(field), Some(value)) = (list.pop(), value) {
            let twice = DuplicateListKey { list, field, value };
            if !all.contains(&twice) {
                all.push(twice);
            }
        }
    }
    all
}

/// Returns the live items that have the value of an item in Git and differ from it.
fn list_key_owners(wanted: &Value, live: &Value, twice: &DuplicateListKey) -> Vec<ListKeyOwner> {
    let mut found = Vec::new();
    visit_lists((wanted, live), &twice.list, String::new(), &mut |wanted, live, at| {
        compare(wanted, live, twice, at, &mut found);
    });
    found
}

/// Returns true if Git has each of the values once: nothing in the live object conflicts with it
/// any more.
fn is_resolved(wanted: &Value, live: &Value, twice: &[DuplicateListKey]) -> bool {
    twice.iter().all(|twice| {
        let mut items = Vec::new();
        visit_lists((wanted, live), &twice.list, String::new(), &mut |wanted, _, _| {
            items.push(wanted.iter().filter(|item| item[&*twice.field] == twice.value).count());
        });
        items.contains(&1) && items.iter().all(|items| *items <= 1)
    })
}

/// Receives the items of Git, those of the live object, and the pointer of the list.
type ListVisitor<'a> = dyn FnMut(&[Value], &[Value], &str) + 'a;

/// Calls `visit` with each list of that name: the items of Git, those of the live object, and the
/// pointer of the list in the live object.
fn visit_lists((wanted, live): (&Value, &Value), list: &[Box<str>], at: String, visit: &mut ListVisitor<'_>) {
    match (wanted, live, list) {
        (Value::Array(wanted), Value::Array(live), []) => visit(wanted, live, &at),
        // Items of the lists on the path, such as containers, are matched by their names.
        (Value::Array(wanted), Value::Array(live), _) => {
            for (number, live) in live.iter().enumerate().filter(|(_, live)| live["name"].is_string()) {
                if let Some(wanted) = wanted.iter().find(|wanted| wanted["name"] == live["name"]) {
                    visit_lists((wanted, live), list, format!("{at}/{number}"), visit);
                }
            }
        }
        (Value::Object(_), Value::Object(_), [name, rest @ ..]) => {
            visit_lists((&wanted[&**name], &live[&**name]), rest, format!("{at}/{name}"), visit);
        }
        _ => {}
    }
}

fn compare(
    wanted: &[Value],
    live: &[Value],
    twice: &DuplicateListKey,
    at: &str,
    found: &mut Vec<ListKeyOwner>,
) {
    let has_it = |item: &&Value| item[&*twice.field] == twice.value;
    let mut ours = wanted.iter().filter(has_it);
    // A duplicate in Git itself has to be fixed by a person.
    let (Some(ours), None) = (ours.next(), ours.next()) else { return };
    for (number, item) in live.iter().enumerate().filter(|(_, item)| has_it(item)) {
        let says_the_same = |(name, value): (&String, &Value)| item[name] == *value;
        if !ours.as_object().is_some_and(|ours| ours.iter().all(says_the_same)) {
            let mut rightful = ours.clone();
            if rightful[CHOSEN].is_null() && !item[CHOSEN].is_null() {
                rightful[CHOSEN] = item[CHOSEN].clone();
            }
            found.push(ListKeyOwner { list: at.to_owned(), number, rightful });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::StatusCause;

    fn refused(reason: &str, field: &str) -> Vec<DuplicateListKey> {
        let message = "Duplicate value: \"web\"".into();
        let cause = StatusCause { reason: reason.into(), message, field: field.into() };
        named_twice(&ApiStatus {
            code: 422,
            reason: "Invalid".into(),
            message: "".into(),
            causes: vec![cause],
            retry_after: None,
        })
    }

    /// Checks the replacements for the duplicate name `web` in `field`.
    fn check(wanted: Value, live: Value, field: &str, expect: &[(&str, Value)]) {
        let twice = refused("FieldValueDuplicate", field);
        assert_eq!(twice.len(), 1);
        let found = list_key_owners(&wanted, &live, &twice[0]);
        let found: Vec<(String, Value)> = found.into_iter().map(|it| (it.pointer(), it.rightful)).collect();
        let expect: Vec<_> =
            expect.iter().map(|(pointer, value)| ((*pointer).to_owned(), value.clone())).collect();
        assert_eq!(found, expect, "{wanted} {live}");
    }

    #[test]
    fn who_has_the_name_of_our_item_is_found() {
        let ports = |ports: Value| json!({"spec": {"ports": ports}});
        let web = json!({"name": "web", "port": 80});
        let field = "spec.ports[1].name";
        let moved = json!([{"name": "other", "port": 1}, {"name": "web", "port": 81, "protocol": "TCP"}]);
        check(ports(json!([web])), ports(moved), field, &[("/spec/ports/1", web.clone())]);
        // Our item, with defaults that the server has added.
        let same = json!([{"name": "web", "port": 80, "protocol": "TCP"}]);
        check(ports(json!([web])), ports(same), field, &[]);
        // Git has the name twice.
        let twice = json!([web, {"name": "web", "port": 82}]);
        check(ports(twice), ports(json!([{"name": "web", "port": 81}])), field, &[]);
        check(json!({}), ports(json!([web])), field, &[]);
        check(ports(json!([web])), json!({"spec": null}), field, &[]);
    }

    #[test]
    fn an_item_that_has_another_name_is_left_alone() {
        let wanted = json!({"p": [{"name": "web", "port": 80}, {"name": "tls", "port": 443}]});
        let live = json!({"p": [{"name": "web", "port": 81}, {"name": "tls", "port": 443, "targetPort": 1}]});
        check(wanted.clone(), live, "p[1].name", &[("/p/0", json!({"name": "web", "port": 80}))]);
        let drifted = json!({"p": [{"name": "tls", "port": 444}]});
        check(wanted, drifted, "p[1].name", &[]);
    }

    #[test]
    fn what_the_server_has_chosen_stays_unless_git_says_it() {
        let live = json!({"p": [{"name": "web", "port": 81, "nodePort": 30001, "targetPort": 81}]});
        let (kept, said) = (
            json!({"name": "web", "port": 80, "nodePort": 30001}),
            json!({"name": "web", "port": 80, "nodePort": 30002}),
        );
        let silent = json!({"p": [{"name": "web", "port": 80}]});
        check(silent, live.clone(), "p[0].name", &[("/p/0", kept)]);
        check(json!({"p": [said]}), live, "p[0].name", &[("/p/0", said)]);
    }

    #[test]
    fn each_goes_once_and_those_at_the_end_go_first() {
        let twice = |field: &str, value: Value| DuplicateListKey {
            list: vec!["p".into()],
            field: field.into(),
            value,
        };
        let wanted = json!({"p": [{"name": "a", "port": 80, "nodePort": 30001}, {"name": "b", "port": 443}]});
        let live = json!({"p": [
            {"name": "b", "port": 1}, {"name": "a", "port": 2, "nodePort": 30001}, {"name": "x", "port": 80},
        ]});
        let causes = [twice("name", json!("b")), twice("name", json!("a")), twice("nodePort", json!(30001))];
        for causes in [
            &causes[..],
            &causes.iter().rev().map(|it| twice(&it.field, it.value.clone())).collect::<Vec<_>>()[..],
        ] {
            let places: Vec<String> =
                all_list_key_owners(&wanted, &live, causes).iter().map(ListKeyOwner::pointer).collect();
            assert_eq!(places, ["/p/1", "/p/0"]);
        }
    }

    #[test]
    fn containers_are_distinguished_by_their_names() {
        let pod = |containers: Value| json!({"spec": {"containers": containers}});
        let port = |number: u16| json!({"name": "web", "containerPort": number});
        let wanted = pod(
            json!([{"name": "a", "ports": [port(80)]}, {"name": "b", "ports": [{"name": "x", "containerPort": 1}]}]),
        );
        let live = pod(json!([{"name": "b", "ports": [port(9)]}, {"name": "a", "ports": [port(81)]}]));
        check(wanted, live, "spec.containers[1].ports[1].name", &[("/spec/containers/1/ports/0", port(80))]);
    }

    #[test]
    fn an_item_that_was_replaced_meanwhile_is_resolved() {
        let ports = |ports: Value| json!({"spec": {"ports": ports}});
        let twice = refused("FieldValueDuplicate", "spec.ports[1].name");
        let web = json!({"name": "web", "port": 80});
        let now = ports(json!([{"name": "web", "port": 80, "protocol": "TCP"}]));
        assert!(is_resolved(&ports(json!([web])), &now, &twice));
        // A person has to fix these two: no apply can succeed.
        let in_git = ports(json!([web, {"name": "web", "port": 82}]));
        assert!(!is_resolved(&in_git, &now, &twice));
        assert!(!is_resolved(&ports(json!([{"name": "tls", "port": 443}])), &now, &twice));
        assert!(!is_resolved(&json!({}), &now, &twice));
    }

    #[test]
    fn another_refusal_is_none_of_it() {
        assert_eq!(refused("FieldValueInvalid", "spec.ports[0].name"), []);
    }
}
