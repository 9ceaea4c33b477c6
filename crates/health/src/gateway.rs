//! Gateway API: GatewayClass, Gateway, the routes and BackendTLSPolicy.
//!
//! In: a live object.
//! Out: its health. Each condition has its own generation, and each Gateway that a route names
//! reports separately: the worst report decides the health of the route.

use serde_json::Value;

use super::condition::Condition;
use super::{Context, Health};
use crate::message::quote;
use crate::object_view::ObjectView;

/// Reasons of a False condition that mean "not yet".
const NOT_YET: [&str; 6] =
    ["Pending", "Waiting", "NotReconciled", "AddressNotAssigned", "WaitingForController", "Unknown"];

pub(super) fn class(live: ObjectView<'_>, _: &Context) -> Health {
    let found = live.condition("Accepted");
    condition_problem(found, "Accepted", live.generation(), "no controller has accepted it")
        .unwrap_or(Health::Healthy)
}

pub(super) fn gateway(live: ObjectView<'_>, _: &Context) -> Health {
    let generation = live.generation();
    let listeners = || live.items(&["status", "listeners"]).iter().find_map(listener_trouble);
    for kind in ["Accepted", "Programmed"] {
        match condition_problem(live.condition(kind), kind, generation, "no controller has accepted it") {
            // The condition of a listener is more precise than that of its Gateway.
            Some(Health::Degraded { why }) => return Health::degraded(listeners().unwrap_or(why)),
            Some(trouble) => return trouble,
            None => {}
        }
    }
    listeners().map_or(Health::Healthy, Health::degraded)
}

/// Problem of one listener, as a sentence.
fn listener_trouble(listener: &Value) -> Option<String> {
    let name = listener.get("name").and_then(Value::as_str).unwrap_or_default();
    let conflict = item_condition(listener, "Conflicted").filter(Condition::is_true);
    let refused = ["Accepted", "ResolvedRefs"]
        .into_iter()
        .find_map(|kind| item_condition(listener, kind).filter(is_refusal));
    let wrong = conflict.or(refused)?;
    Some(format!("the listener {}: {}", quote(name), wrong.describe()))
}

pub(super) fn route(live: ObjectView<'_>, _: &Context) -> Health {
    let wanted = live.items(&["spec", "parentRefs"]);
    let answers = live.items(&["status", "parents"]);
    let mut waits = None;
    // A report of a Gateway that the route no longer names does not count.
    let named =
        |answer: &&Value| answer.get("parentRef").is_some_and(|of| wanted.iter().any(|it| same(it, of)));
    for parent in answers.iter().filter(named) {
        let of = quote(name_of(parent.get("parentRef")));
        for kind in ["Accepted", "ResolvedRefs"] {
            let found = item_condition(parent, kind);
            // Only `Accepted` is always reported.
            if kind == "ResolvedRefs" && found.is_none() {
                continue;
            }
            match condition_problem(found, kind, live.generation(), "it has not reported a status") {
                Some(Health::Degraded { why }) => return Health::degraded(format!("{of}: {why}")),
                Some(Health::Progressing { why }) => waits = waits.or(Some(format!("{of}: {why}"))),
                Some(Health::Healthy | Health::Suspended | Health::Unknown { .. }) | None => {}
            }
        }
    }
    let answered =
        |parent: &&Value| answers.iter().any(|it| it.get("parentRef").is_some_and(|it| same(it, parent)));
    let silent = wanted.iter().find(|parent| !answered(parent));
    let silent = silent.map(|parent| format!("{} has not reported a status", quote(name_of(Some(parent)))));
    waits.or(silent).map_or(Health::Healthy, Health::progressing)
}

/// Judges a policy. Only Gateways that route to its backends report on it, and there may be none.
pub(super) fn policy(live: ObjectView<'_>, _: &Context) -> Health {
    for ancestor in live.items(&["status", "ancestors"]) {
        let of = quote(name_of(ancestor.get("ancestorRef")));
        if let Some(refused) = item_condition(ancestor, "Accepted").filter(is_refusal) {
            return Health::degraded(format!("{of}: {}", refused.describe()));
        }
    }
    Health::Healthy
}

/// Reason for which a condition is not true for this generation; `None` if it is true.
fn condition_problem(
    found: Option<Condition<'_>>,
    kind: &str,
    generation: Option<u64>,
    missing: &str,
) -> Option<Health> {
    let Some(condition) = found else { return Some(Health::progressing(missing)) };
    if condition.is_stale(generation) {
        return Some(Health::progressing(format!("{kind} was reported for an older generation")));
    }
    match condition {
        _ if condition.is_true() => None,
        _ if is_refusal(&condition) => Some(Health::degraded(condition.describe())),
        _ => Some(Health::progressing(condition.describe())),
    }
}

fn is_refusal(condition: &Condition<'_>) -> bool {
    condition.is_false() && !NOT_YET.contains(&condition.reason)
}

/// Condition of a type in an item that has its own conditions.
fn item_condition<'a>(item: &'a Value, kind: &str) -> Option<Condition<'a>> {
    let conditions = item.get("conditions").and_then(Value::as_array).into_iter().flatten();
    conditions.filter_map(Condition::from_value).find(|condition| condition.kind == kind)
}

fn name_of(reference: Option<&Value>) -> &str {
    reference.and_then(|reference| reference.get("name")?.as_str()).unwrap_or("a parent without a name")
}

/// True if two references name the same parent. Controllers may fill in defaults, so a field that
/// one of them omits is not compared.
fn same(left: &Value, right: &Value) -> bool {
    let both = |field: &str| match (left.get(field), right.get(field)) {
        (Some(left), Some(right)) => left == right,
        _ => true,
    };
    ["name", "namespace", "kind", "sectionName", "port"].into_iter().all(both)
}

#[cfg(test)]
mod tests {
    use crate::test_fixtures::check;

    fn condition(kind: &str, status: &str, reason: &str, observed: u64) -> String {
        format!(
            r#"{{"type": "{kind}", "status": "{status}", "reason": "{reason}", "message": "m", "observedGeneration": {observed}}}"#
        )
    }

    #[test]
    fn a_class() {
        let check = |conditions: &str, expect: &str| {
            let json =
                format!(r#"{{"metadata": {{"generation": 2}}, "status": {{"conditions": [{conditions}]}}}}"#);
            check("GatewayClass.gateway.networking.k8s.io", &json, expect);
        };
        check(&condition("Accepted", "True", "Accepted", 2), "Healthy");
        check(
            &condition("Accepted", "True", "Accepted", 1),
            "Progressing: Accepted was reported for an older generation",
        );
        check(
            &condition("Accepted", "False", "InvalidParameters", 2),
            "Degraded: Accepted is False (InvalidParameters: m)",
        );
        check(
            &condition("Accepted", "Unknown", "Pending", 2),
            "Progressing: Accepted is Unknown (Pending: m)",
        );
        check("", "Progressing: no controller has accepted it");
    }

    #[test]
    fn a_gateway() {
        let listener = |kind: &str, status: &str, reason: &str| {
            format!(r#"[{{"name": "https", "conditions": [{}]}}]"#, condition(kind, status, reason, 2))
        };
        let check = |accepted: &str, programmed: &str, listeners: &str, expect: &str| {
            let json = format!(
                r#"{{"metadata": {{"generation": 2}}, "status": {{"conditions": [{accepted}, {programmed}], "listeners": {listeners}}}}}"#
            );
            check("Gateway.gateway.networking.k8s.io", &json, expect);
        };
        let accepted = condition("Accepted", "True", "Accepted", 2);
        let programmed = condition("Programmed", "True", "Programmed", 2);
        let fine = listener("ResolvedRefs", "True", "ResolvedRefs");
        check(&accepted, &programmed, &fine, "Healthy");
        check(&accepted, &programmed, "[]", "Healthy");
        check(
            &accepted,
            &condition("Programmed", "True", "R", 1),
            &fine,
            "Progressing: Programmed was reported for an older generation",
        );
        let waits = condition("Programmed", "False", "AddressNotAssigned", 2);
        check(&accepted, &waits, &fine, "Progressing: Programmed is False (AddressNotAssigned: m)");
        check(
            &accepted,
            &condition("Programmed", "False", "NoResources", 2),
            &fine,
            "Degraded: Programmed is False (NoResources: m)",
        );
        let pending = condition("Accepted", "Unknown", "Pending", 2);
        check(
            &pending,
            &condition("Programmed", "Unknown", "Pending", 2),
            "[]",
            "Progressing: Accepted is Unknown (Pending: m)",
        );
        let certificate = listener("ResolvedRefs", "False", "InvalidCertificateRef");
        let expect = "Degraded: the listener https: ResolvedRefs is False (InvalidCertificateRef: m)";
        check(&accepted, &programmed, &certificate, expect);
        check(&condition("Accepted", "False", "ListenersNotValid", 2), &programmed, &certificate, expect);
        let conflict = listener("Conflicted", "True", "HostnameConflict");
        check(
            &accepted,
            &programmed,
            &conflict,
            "Degraded: the listener https: Conflicted is True (HostnameConflict: m)",
        );
        check(&accepted, &programmed, &listener("Conflicted", "False", "NoConflicts"), "Healthy");
    }

    #[test]
    fn a_gateway_that_nobody_took() {
        check("Gateway.gateway.networking.k8s.io", "{}", "Progressing: no controller has accepted it");
    }

    #[test]
    fn a_route() {
        let parent = |name: &str, conditions: &[String]| {
            format!(
                r#"{{"parentRef": {{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "{name}"}}, "conditions": [{}]}}"#,
                conditions.join(", ")
            )
        };
        let check = |parents: &[String], expect: &str| {
            let json = format!(
                r#"{{"metadata": {{"generation": 2}}, "spec": {{"parentRefs": [{{"name": "a"}}, {{"name": "b"}}]}},
                    "status": {{"parents": [{}]}}}}"#,
                parents.join(", ")
            );
            for kind in ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"] {
                check(&format!("{kind}.gateway.networking.k8s.io"), &json, expect);
            }
        };
        let yes = || condition("Accepted", "True", "Accepted", 2);
        let refs = |status: &str, reason: &str| condition("ResolvedRefs", status, reason, 2);
        let (a, b) = (parent("a", &[yes(), refs("True", "ResolvedRefs")]), parent("b", &[yes()]));
        check(&[a.clone(), b], "Healthy");
        check(&[], "Progressing: a has not reported a status");
        check(std::slice::from_ref(&a), "Progressing: b has not reported a status");
        check(&[a.clone(), parent("b", &[])], "Progressing: b: it has not reported a status");
        let old = parent("b", &[condition("Accepted", "True", "Accepted", 1)]);
        check(&[a.clone(), old], "Progressing: b: Accepted was reported for an older generation");
        let pending = parent("b", &[condition("Accepted", "False", "Pending", 2)]);
        check(&[a.clone(), pending.clone()], "Progressing: b: Accepted is False (Pending: m)");
        let refused = parent("b", &[condition("Accepted", "False", "NotAllowedByListeners", 2)]);
        check(&[pending, refused], "Degraded: b: Accepted is False (NotAllowedByListeners: m)");
        let nowhere = parent("b", &[yes(), refs("False", "BackendNotFound")]);
        let gone = parent("gone", &[condition("Accepted", "False", "NotAllowedByListeners", 1)]);
        check(&[a.clone(), parent("b", &[yes()]), gone], "Healthy");
        check(&[a, nowhere], "Degraded: b: ResolvedRefs is False (BackendNotFound: m)");
    }

    #[test]
    fn a_route_without_parents_waits_for_nobody() {
        check("HTTPRoute.gateway.networking.k8s.io", r#"{"spec": {}}"#, "Healthy");
        check("ReferenceGrant.gateway.networking.k8s.io", "{}", "Healthy");
    }

    #[test]
    fn a_policy() {
        let check =
            |status: &str, expect: &str| check("BackendTLSPolicy.gateway.networking.k8s.io", status, expect);
        let ancestor = |status: &str, reason: &str| {
            let condition = condition("Accepted", status, reason, 2);
            format!(
                r#"{{"status": {{"ancestors": [{{"ancestorRef": {{"name": "a"}}, "conditions": [{condition}]}}]}}}}"#
            )
        };
        check("{}", "Healthy");
        check(&ancestor("True", "Accepted"), "Healthy");
        check(&ancestor("False", "Conflicted"), "Degraded: a: Accepted is False (Conflicted: m)");
    }
}
