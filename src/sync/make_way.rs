//! What stands in the way of an apply: somebody has given an item of a list, such as a port, another key, and it kept the name
//! that Git gives to ours. Both cannot be in one list, so that no apply goes through, by force or not.
//!
//! In: an object, and why its apply was refused. Out: true if the item that has the name is ours now, so that the apply can be
//! sent once more. Nothing is asked unless an apply was refused for it.

use serde_json::{Value, json};

use super::carry_out::Work;
use super::contact::{HANDOVER, body};
use crate::api::Conflicts;
use crate::cluster::{Failure, Refusal};
use crate::desired::DesiredObject;

/// The server's word for what is in a list twice.
const TWICE: &str = "FieldValueDuplicate";

/// An item that has what Git gives to another.
#[derive(Debug, PartialEq)]
struct Usurper {
    /// Where it is in the live object.
    pointer: String,
    /// What Git says instead.
    rightful: Value,
}

impl Work<'_> {
    /// Puts our item in the place of the one that has its name; true if that was done.
    pub(super) async fn make_way(&self, wanted: &DesiredObject, failure: &Failure) -> Result<bool, Failure> {
        let Failure::Refused(refusal) = failure else { return Ok(false) };
        let fields = named_twice(refusal);
        if self.conflicts != Conflicts::Force || fields.is_empty() {
            return Ok(false);
        }
        let version = Some(&*wanted.version);
        let Some(live) = self.cluster.whole(&wanted.id, version).await? else { return Ok(false) };
        let (live, body) = (Value::Object(live.body), body(wanted));
        let usurpers: Vec<Usurper> = fields.iter().flat_map(|field| usurpers(&body, &live, field)).collect();
        if usurpers.is_empty() {
            return Ok(false);
        }
        let seen = live.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
        // Where our item is there beside it, under another name, it only has to go.
        for takes_place in [true, false] {
            let mut steps = vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": seen})];
            steps.extend(usurpers.iter().rev().map(|it| match takes_place {
                true => json!({"op": "replace", "path": it.pointer, "value": it.rightful}),
                false => json!({"op": "remove", "path": it.pointer}),
            }));
            match self.cluster.patch_as(&wanted.id, version, (self.owner, HANDOVER), &steps.into()).await {
                Ok(()) => {
                    tracing::info!(sync = %self.owner, object = %wanted.id, "what had the names of our items in a list was replaced");
                    return Ok(true);
                }
                Err(failure) if failure.code() == Some(422) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(false)
    }
}

/// The fields that are told to be twice in a list, without the numbers of items: `spec.ports.name`.
fn named_twice(refusal: &Refusal) -> Vec<Vec<Box<str>>> {
    let causes = refusal.causes.iter().filter(|cause| refusal.code == 422 && &*cause.reason == TWICE);
    let path = |field: &str| -> Vec<Box<str>> {
        field.split('.').map(|part| part.split('[').next().unwrap_or_default().into()).collect()
    };
    let mut fields: Vec<_> = causes.map(|cause| path(&cause.field)).collect();
    fields.sort();
    fields.dedup();
    fields
}

/// The live items that have a value in this field which Git gives to an item that is not like them.
fn usurpers(wanted: &Value, live: &Value, field: &[Box<str>]) -> Vec<Usurper> {
    let mut found = Vec::new();
    if let [list @ .., field] = field {
        search((wanted, live), list, field, String::new(), &mut found);
    }
    found
}

fn search(
    (wanted, live): (&Value, &Value),
    list: &[Box<str>],
    field: &str,
    at: String,
    found: &mut Vec<Usurper>,
) {
    match (wanted, live, list) {
        (Value::Array(wanted), Value::Array(live), []) => compare(wanted, live, field, &at, found),
        // Items of lists on the way, such as containers, are the same where their names are.
        (Value::Array(wanted), Value::Array(live), _) => {
            for (number, live) in live.iter().enumerate().filter(|(_, live)| live["name"].is_string()) {
                if let Some(wanted) = wanted.iter().find(|wanted| wanted["name"] == live["name"]) {
                    search((wanted, live), list, field, format!("{at}/{number}"), found);
                }
            }
        }
        (Value::Object(_), Value::Object(_), [name, rest @ ..]) => {
            search((&wanted[&**name], &live[&**name]), rest, field, format!("{at}/{name}"), found);
        }
        _ => {}
    }
}

fn compare(wanted: &[Value], live: &[Value], field: &str, at: &str, found: &mut Vec<Usurper>) {
    for (number, item) in live.iter().enumerate().filter(|(_, item)| item[field].is_string()) {
        let mut rightful = wanted.iter().filter(|wanted| wanted[field] == item[field]);
        // What is twice in Git itself is for a person to change.
        let (Some(one), None) = (rightful.next(), rightful.next()) else { continue };
        let says_the_same = |(name, value): (&String, &Value)| item[name] == *value;
        if !one.as_object().is_some_and(|one| one.iter().all(says_the_same)) {
            found.push(Usurper { pointer: format!("{at}/{number}"), rightful: one.clone() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cause;

    fn check(wanted: Value, live: Value, field: &str, expect: &[(&str, Value)]) {
        let cause = Cause { reason: TWICE.into(), message: "Duplicate value".into(), field: field.into() };
        let refusal = Refusal {
            code: 422,
            reason: "Invalid".into(),
            message: "".into(),
            causes: vec![cause],
            retry_after: None,
        };
        let fields = named_twice(&refusal);
        let found: Vec<Usurper> = fields.iter().flat_map(|field| usurpers(&wanted, &live, field)).collect();
        let expect: Vec<Usurper> = expect
            .iter()
            .map(|(pointer, rightful)| Usurper { pointer: (*pointer).to_owned(), rightful: rightful.clone() })
            .collect();
        assert_eq!(found, expect, "{wanted} {live}");
    }

    #[test]
    fn who_has_the_name_of_our_item_is_found() {
        let ports = |ports: Value| json!({"spec": {"ports": ports}});
        let web = json!({"name": "web", "port": 80});
        let field = "spec.ports[1].name";
        let moved = json!([{"name": "other", "port": 1}, {"name": "web", "port": 81, "protocol": "TCP"}]);
        check(ports(json!([web])), ports(moved), field, &[("/spec/ports/1", web.clone())]);
        // Ours, with what the server has added.
        check(
            ports(json!([web])),
            ports(json!([{"name": "web", "port": 80, "protocol": "TCP"}])),
            field,
            &[],
        );
        // Git says it twice.
        let twice = json!([web, {"name": "web", "port": 82}]);
        check(ports(twice), ports(json!([{"name": "web", "port": 81}])), field, &[]);
        check(json!({}), ports(json!([web])), field, &[]);
        check(ports(json!([web])), json!({"spec": null}), field, &[]);
    }

    #[test]
    fn containers_are_told_apart_by_their_names() {
        let pod = |containers: Value| json!({"spec": {"containers": containers}});
        let port = |number: u16| json!({"name": "web", "containerPort": number});
        let wanted = pod(
            json!([{"name": "a", "ports": [port(80)]}, {"name": "b", "ports": [{"name": "x", "containerPort": 1}]}]),
        );
        let live = pod(json!([{"name": "b", "ports": [port(9)]}, {"name": "a", "ports": [port(81)]}]));
        check(wanted, live, "spec.containers[1].ports[1].name", &[("/spec/containers/1/ports/0", port(80))]);
    }

    #[test]
    fn another_refusal_is_none_of_it() {
        let cause = Cause {
            reason: "FieldValueInvalid".into(),
            message: "".into(),
            field: "spec.ports[0].name".into(),
        };
        let refusal = Refusal {
            code: 422,
            reason: "Invalid".into(),
            message: "".into(),
            causes: vec![cause],
            retry_after: None,
        };
        assert_eq!(named_twice(&refusal), Vec::<Vec<Box<str>>>::new());
    }
}
