//! Rules in small schemas. `tests/parity/rules.txt` compares the same with a real server.

use serde_json::json;

use super::*;

/// Returns the violations and warnings for an object with this `spec` and the given old one.
fn said(spec: &Value, old: Option<Value>, new: Value) -> (Vec<String>, Vec<String>) {
    let rules = CelRules::new(&json!({"type": "object", "properties": {"spec": spec}}));
    let object = |spec: Value| json!({"metadata": {"name": "a"}, "spec": spec});
    let broken = rules.evaluate(old.map(object).as_ref(), &object(new));
    let told = |it: &Problem| format!("{}: {}", it.field, it.message);
    (broken.problems.iter().map(told).collect(), broken.warnings)
}

fn text(rule: &str) -> Value {
    json!({"type": "string", "x-kubernetes-validations": [{"rule": rule, "message": "no"}]})
}

#[test]
fn a_rule_is_asked_at_each_value_that_it_is_for() {
    let spec = json!({"type": "object", "properties": {
        "list": {"type": "array", "items": text("self != 'bad'")},
        "map": {"type": "object", "additionalProperties": text("self != 'bad'")},
    }});
    let new = json!({"list": ["good", "bad", null], "map": {"a": "bad", "b": "good"}});
    let expect = [r#"spec.list[1]: Invalid value: "bad": no"#, r#"spec.map[a]: Invalid value: "bad": no"#]
        .map(String::from);
    assert_eq!(said(&spec, None, new), (expect.to_vec(), vec![]));
}

#[test]
fn an_error_that_was_there_before_is_only_a_warning() {
    let spec = json!({"type": "object", "properties": {"a": text("self != 'bad'"), "b": text("true")}});
    let old = json!({"a": "bad", "b": "x"});
    let told = r#"spec.a: Invalid value: "bad": no"#.to_owned();
    let stays = said(&spec, Some(old), json!({"a": "bad", "b": "y"}));
    assert_eq!(stays, (vec![], vec![told.clone()]));
    let comes = said(&spec, Some(json!({"b": "x"})), json!({"a": "bad", "b": "x"}));
    assert_eq!(comes, (vec![told], vec![]));
}

#[test]
fn what_a_value_was_is_asked_for_where_that_is_known() {
    let keyed = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "properties": {"name": {"type": "string"}, "value": text("self == oldSelf")}},
    });
    let spec = json!({"type": "object", "properties": {"keyed": keyed}});
    let old = json!({"keyed": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]});
    let new = json!({"keyed": [{"name": "b", "value": "3"}, {"name": "c", "value": "4"}, {"name": "a", "value": "1"}]});
    let expect = vec![r#"spec.keyed[0].value: Invalid value: "3": no"#.to_owned()];
    assert_eq!(said(&spec, Some(old), new.clone()), (expect, vec![]));
    assert_eq!(said(&spec, None, new), (vec![], vec![]));
}

#[test]
fn all_rules_together_end_soon() {
    let rule = json!([{"rule": "self.all(a, self.all(b, a + b >= 0))"}]);
    let spec = json!({"type": "array", "items": {
        "type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rule,
    }});
    let start = std::time::Instant::now();
    let (problems, _) = said(&spec, None, json!(vec![vec![1; 60]; 1_000]));
    let [problem] = &problems[..] else { panic!("{problems:?}") };
    assert!(problem.contains("actual cost limit exceeded") && !problem.starts_with("spec[0]"), "{problem}");
    // The limit of a single rule is lower than that of all rules together.
    let (problems, _) = said(&spec, None, json!([vec![1; 1_000], vec![1; 1_000]]));
    assert!(matches!(&problems[..], [only] if only.starts_with("spec[0]")), "{problems:?}");
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn a_definition_with_a_function_that_is_not_known_here_is_refused() {
    let refused = |rule: &str| {
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": text(rule)}}});
        validate_definition(&json!({"spec": {"versions": [{"schema": schema}]}}))
    };
    let [problem] = &refused("isSemver(self)")[..] else { panic!("one problem") };
    assert_eq!(
        problem.field,
        "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
    );
    let expect = "ERROR: <input>:1:1: the sandbox does not support the function \"isSemver\" of Kubernetes\n | isSemver(self)\n | ^";
    assert!(problem.message.ends_with(expect), "{}", problem.message);
    assert_eq!(refused("self.matches('^a') || self.format([1]) == ''"), []);
}
