//! Results of rules, the position of each error, and that no expression takes long to compile or to
//! evaluate.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::test_fixtures::{body, format_health, kind};

fn rule<'a>(healthy: &'a str, degraded: &'a str, progressing: &'a str) -> RuleSource<'a> {
    let given = |text: &'a str| Some(text).filter(|text| !text.is_empty());
    RuleSource {
        group: "example.com",
        kind: "Database",
        healthy: given(healthy),
        degraded: given(degraded),
        progressing: given(progressing),
    }
}

/// Health of a body by a rule with these expressions.
fn said(written: RuleSource<'_>, json: &str) -> String {
    let rules = Rules::compile(&[written]).unwrap_or_else(|errors| panic!("{errors:?}"));
    format_health(&rules.evaluate(&kind("Database.example.com"), &body(json)).unwrap())
}

/// Errors as a person reads them.
fn refused(written: &[RuleSource<'_>]) -> Vec<String> {
    Rules::compile(written).unwrap_err().iter().map(RuleError::to_string).collect()
}

#[test]
fn the_first_expression_that_is_true_gives_its_name() {
    let (healthy, degraded, progressing) =
        ("object.status.phase == 'up'", "object.status.phase == 'down'", "object.status.phase == 'late'");
    let check = |phase: &str, expect: &str| {
        let json = format!(r#"{{"status": {{"phase": "{phase}"}}}}"#);
        assert_eq!(said(rule(healthy, degraded, progressing), &json), expect, "{phase}");
    };
    check("up", "Healthy");
    check("down", "Degraded: the rule's degraded is true");
    check("late", "Progressing: the rule's progressing is true");
    check("odd", "Progressing: the rule's healthy is not true");
    assert_eq!(said(rule("", degraded, ""), r#"{"status": {"phase": "odd"}}"#), "Healthy");
    assert_eq!(said(rule("true", "true", "true"), "{}"), "Degraded: the rule's degraded is true");
    assert_eq!(said(rule("true", "", "true"), "{}"), "Progressing: the rule's progressing is true");
}

#[test]
fn what_is_not_there_is_not_true() {
    let rules = rule("object.status.phase == 'up'", "object.status.errors[0] == 'a'", "");
    assert_eq!(said(rules, "{}"), "Progressing: the rule's healthy is not true");
    assert_eq!(
        said(rules, r#"{"status": {"phase": "up", "errors": null}}"#),
        "Unknown: the rule's degraded has no value: [ ] does not support the types of its operands"
    );
    assert_eq!(said(rules, r#"{"status": {"phase": "up"}}"#), "Healthy");
    let message = r#"{"status": {"message": "a disk\nis slow"}}"#;
    assert_eq!(said(rules, message), "Progressing: the rule's healthy is not true (a disk is slow)");
    let ready = r#"{"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Waits"}]}}"#;
    assert_eq!(said(rules, ready), "Progressing: the rule's healthy is not true (Waits)");
}

#[test]
fn an_old_status_and_a_deletion_go_before_every_rule() {
    let old = r#"{"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}"#;
    assert_eq!(
        said(rule("true", "true", ""), old),
        "Progressing: the controller has observed generation 1, but the object is at generation 2"
    );
    let deleted = r#"{"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}"#;
    assert_eq!(said(rule("true", "true", ""), deleted), "Progressing: it is being deleted");
}

#[test]
fn a_rule_is_for_its_kind() {
    let rules = Rules::compile(&[rule("true", "", "")]).unwrap();
    assert!(rules.cover(&kind("Database.example.com")));
    for other in ["Database", "Database.example.org", "Table.example.com"] {
        assert!(!rules.cover(&kind(other)));
        assert_eq!(rules.evaluate(&kind(other), &body("{}")), None);
    }
}

#[test]
fn an_error_names_rule_field_and_place() {
    let check = |healthy: &str, expect: &str| {
        let errors = refused(&[
            rule("true", "", ""),
            RuleSource { kind: "Table", healthy: Some(healthy), ..rule("", "", "") },
        ]);
        let [error] = &errors[..] else { panic!("{errors:?}") };
        assert!(
            error.starts_with(&format!("spec.health.rules[1] (Table.example.com) healthy:{expect}")),
            "{error}"
        );
    };
    check("object.status.phase ==", "1:");
    check("object.status.phase = 'up'", "1:21: ");
    check("'ää' = 1", "1:6: ");
    check("true ||\n'ä' = 1", "2:5: ");
    check("true &&\n  objekt.status.ready", "2:3: there is no variable \"objekt\", only \"object\"");
    check("object.status.ok.foo(1)", "1:18: there is no function \"foo\"");
    check("object.name.matches('^(a+)+$')", "1:13: regular expressions are not supported here");
    check("size(1, 2) == 1", "1:1: size takes 1 value, not 2");
    check("object.name.contains()", "1:13: contains takes 2 values, not 1");
    check("{'a': 1}.a == 1", "1:1: map literals are not supported");
    check("[1].all(object, true)", "1:9: the variable of a macro cannot be named \"object\"");
    check("", "1:1: the expression is empty");
    check("  \n", "1:1: the expression is empty");
    check(&"(".repeat(99), "1:17: more than 16 nested brackets");
}

#[test]
fn all_errors_are_reported_at_once() {
    let errors = refused(&[rule("a", "b", "c"), rule("true", "", ""), rule("", "", "")]);
    let expect = [
        "spec.health.rules[0] (Database.example.com) degraded:1:1: there is no variable \"b\", only \"object\"",
        "spec.health.rules[0] (Database.example.com) progressing:1:1: there is no variable \"c\", only \"object\"",
        "spec.health.rules[0] (Database.example.com) healthy:1:1: there is no variable \"a\", only \"object\"",
        "spec.health.rules[1] (Database.example.com): another rule has the same kind",
        "spec.health.rules[2] (Database.example.com): it has no expression: healthy, degraded or progressing",
        "spec.health.rules[2] (Database.example.com): another rule has the same kind",
    ];
    assert_eq!(errors, expect);
    let kinds: Vec<String> = (0..100).map(|at| format!("Kind{at}")).collect();
    let many: Vec<RuleSource<'_>> =
        kinds.iter().map(|kind| RuleSource { kind, ..rule("true", "", "") }).collect();
    assert_eq!(
        refused(&many),
        ["spec.health.rules[64] (Kind64.example.com): a Sync may have at most 64 health rules"]
    );
}

/// Object with every kind of value that an expression can meet.
fn sample() -> Map<String, Value> {
    let sample = json!({
        "metadata": {"name": "web", "generation": 3, "labels": {"app": "shop"}},
        "spec": {"replicas": 3, "weight": 1.5, "large": u64::MAX, "empty": [], "nothing": null, "on": true},
        "status": {
            "replicas": 3, "names": ["a", "bc", "def"], "numbers": [1, 2, 3], "mixed": [1, "a", true],
            "conditions": [
                {"type": "Synced", "status": "True"},
                {"type": "Ready", "status": "False", "reason": "Waits"},
            ],
        },
    });
    sample.as_object().cloned().expect("a literal mapping")
}

/// Expected results by the definition of the language. The evaluator of the crate `cel` agrees for
/// every expression that it supports, which is nearly all of them.
#[test]
fn expressions_mean_what_they_mean_in_cel() {
    let oracle = Oracle::new();
    let check = |text: &str, expect: Result<bool, EvaluationError>| {
        let read = compile_expression(text).unwrap_or_else(|refused| panic!("{text}: {refused:?}"));
        assert_eq!(evaluate_bool(&read, &sample()), expect, "{text}");
        oracle.agrees(text, expect.ok())
    };
    let mut answers = 0;
    for text in TRUE {
        answers += usize::from(check(text, Ok(true)));
        check(&format!("!({text})"), Ok(false));
    }
    // The crate's evaluator reads positive numbers as uint, so it cannot add 1 to a count; in
    // Kubernetes they are int.
    assert_eq!(answers, TRUE.len() - 5);
    let missing = |field: &str| Err(EvaluationError::MissingField(field.into()));
    check("object.status.phase == 'a'", missing("phase"));
    check("object['status']['phase'] == 'a'", missing("phase"));
    check("object.status.conditions.all(c, c.reason == 'Waits')", missing("reason"));
    check("object.status.conditions.exists(c, c.reason == 'Odd')", missing("reason"));
    check("object.status.phase == 'a' && true", missing("phase"));
    check("1 / 0 == 1", Err(EvaluationError::Number(NumberError::ByZero)));
    check("9223372036854775807 + 1 == 1", Err(EvaluationError::Number(NumberError::TooLarge)));
    check("object.status.names[3] == ''", Err(EvaluationError::Number(NumberError::NoIndex(3))));
    check("'a' < 1", Err(EvaluationError::WrongType("a comparison")));
    check("1", Err(EvaluationError::WrongType("the whole expression")));
    check("object.metadata.name.size.x == 1", Err(EvaluationError::WrongType("a field")));
}

const TRUE: [&str; 58] = [
    // An operand that decides the result does so even if another operand has no value.
    "object.status.phase == 'a' || true",
    "!(object.status.phase == 'a' && false)",
    "object.status.conditions.exists(c, c.reason == 'Waits')",
    "!object.status.conditions.all(c, c.reason == 'Odd' && c.type == 'Odd')",
    "true",
    "object.status.replicas == object.spec.replicas",
    "object.metadata.generation >= 3 && object.metadata.generation < 4",
    "object.metadata.name == 'web'",
    "object['metadata']['name'] == \"web\"",
    "object.metadata.name != r'w\\eb'",
    "object.metadata.labels.app in ['shop', 'bar']",
    "'app' in object.metadata.labels",
    "!('apps' in object.metadata.labels)",
    "has(object.metadata.labels)",
    "!has(object.status.phase)",
    "has(object.spec.on) ? object.spec.on : false",
    "object.spec.weight > 1.0",
    "object.spec.weight > 1",
    "object.spec.weight == 1.5",
    "object.spec.large > 1",
    "object.spec.nothing == null",
    "object.spec.replicas == 3u",
    "1 == 1.0",
    "1 != 2 && 'a' != 'b'",
    "object.spec.replicas + 1 == 4",
    "object.spec.replicas - 1 == 2",
    "object.spec.replicas * 2 == 6",
    "7 / 2 == 3",
    "7 % 4 == 3",
    "-object.spec.replicas == -3",
    "2 + 3 * 4 == 14",
    "(2 + 3) * 4 == 20",
    "'ab' + 'c' == 'abc'",
    "[1] + [2, 3] == object.status.numbers",
    "object.status.names[1] == 'bc'",
    "size(object.status.names) == 3",
    "object.status.names.size() == 3",
    "size(object.spec.empty) == 0",
    "size('äöü') == 3",
    "size(object.metadata.labels) == 1",
    "object.metadata.name.startsWith('w')",
    "object.metadata.name.endsWith('eb')",
    "object.metadata.name.contains('e')",
    "int('42') == 42",
    "string(object.spec.replicas) == '3'",
    "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'False')",
    "object.status.conditions.all(c, has(c.type))",
    "!object.status.conditions.all(c, c.status == 'True')",
    "object.status.conditions.exists_one(c, c.type == 'Ready')",
    "object.status.conditions.filter(c, c.type == 'Ready').size() == 1",
    "object.status.conditions.filter(c, c.type == 'Ready')[0].reason == 'Waits'",
    "object.status.names.map(n, size(n)) == [1, 2, 3]",
    "object.status.numbers.map(n, n > 1, n * 2) == [4, 6]",
    "object.status.names.exists(a, object.status.names.exists(b, a != b))",
    "object.metadata.labels.exists(k, k == 'app')",
    "object.spec.empty.all(x, false)",
    "'a' < 'b' && false < true",
    "false || true",
];

/// Missing fields are errors in CEL, and authors avoid them by a second `has`; here the result is
/// false.
#[test]
fn what_has_no_mapping_has_no_field() {
    for text in
        ["!has(object.nowhere.phase)", "!has(object.spec.nothing.phase)", "!has(object.nowhere.at.all)"]
    {
        assert_eq!(evaluate_bool(&compile_expression(text).unwrap(), &sample()), Ok(true), "{text}");
    }
}

/// The crate's own evaluator. It cannot be stopped, so only this test uses it.
struct Oracle(cel::Context<'static, 'static>);

impl Oracle {
    fn new() -> Self {
        let mut context = cel::Context::default();
        context.add_variable("object", Value::Object(sample())).expect("JSON has only known kinds");
        Self(context)
    }

    /// Asserts that the crate gives the same result or none; true if it gives one.
    fn agrees(&self, text: &str, expect: Option<bool>) -> bool {
        let found = cel::Program::compile(text).expect("it was read before").execute(&self.0);
        if let (Ok(cel::Value::Bool(found)), Some(expect)) = (found, expect) {
            assert_eq!(found, expect, "{text}, by the crate");
            return true;
        }
        false
    }
}

/// Expressions that would take forever, or more memory than there is.
fn bombs() -> Vec<String> {
    let all = "object.items";
    let nested = |macros: usize, inner: &str| {
        let mut text = inner.to_owned();
        for at in 0..macros {
            text = format!("{all}.all(x{at}, {text})");
        }
        text
    };
    let mut double = "object.text".to_owned();
    while double.len() < 900 {
        double = format!("({double} + {double})");
    }
    let mut doubled_list = all.to_owned();
    for at in 0..6 {
        doubled_list = format!("{doubled_list}.map(v{at}, {all})");
    }
    vec![
        nested(8, "x0 == x1"),
        nested(3, "true"),
        format!("{all}.map(x, {all}.map(y, {all}.map(z, [x, y, z]))).size() == 1"),
        format!("{all}.all(x, {all} == {all})"),
        format!("{all}.all(x, !object.text.contains('yx'))"),
        format!("{all}.all(x, (object.text + object.text).size() > 1)"),
        format!("{all}.all(x, object == object)"),
        format!("{double}.size() == 1"),
        format!("{doubled_list}.size() == 1"),
        format!("{all}.filter(x, true).filter(x, true).size() == 1"),
        format!("({all} + {all} + {all} + {all}).all(x, {all} + {all} == {all})"),
        format!("{all}.exists(x, x in {all}.map(y, y + 1))"),
    ]
}

/// Object of the maximal size that etcd stores.
fn large() -> Map<String, Value> {
    let large = json!({"items": (0..20_000).collect::<Vec<u32>>(), "text": "x".repeat(1_000_000)});
    large.as_object().cloned().expect("a literal mapping")
}

#[test]
fn a_bomb_is_unknown_within_a_moment() {
    let object = large();
    for bomb in bombs() {
        let rules =
            Rules::compile(&[rule(&bomb, "", "")]).unwrap_or_else(|errors| panic!("{bomb}: {errors:?}"));
        let start = Instant::now();
        let found = rules.evaluate(&kind("Database.example.com"), &object).unwrap();
        let took = start.elapsed();
        let expect = "Unknown: the rule's healthy has no value: its evaluation takes more than 100000 steps for this object";
        assert_eq!(format_health(&found), expect, "{bomb}");
        // In milliseconds; a slow or busy machine gets a hundred times as long.
        assert!(took < Duration::from_secs(1), "{bomb}: {took:?}");
    }
}

/// Longest texts that are still parsed, of each deeply nested shape, on the stack of a runtime
/// thread.
#[test]
fn a_text_is_read_within_a_moment_whatever_it_is() {
    let shapes = [
        "(".repeat(16) + "1" + &")".repeat(16),
        "[".repeat(16) + &"]".repeat(16),
        "!".repeat(90) + "true",
        format!("object{} == 1", ".a".repeat(90)),
        format!("1{} == 1", " + 1".repeat(90)),
        format!("true{}", " && true".repeat(90)),
        format!("{}1", "true ? 1 : ".repeat(16)),
        "[0].all(a, ".repeat(16) + "true" + &")".repeat(16),
        "(object.a.b.c[".repeat(8) + "0" + &"])".repeat(8),
        "[".to_owned() + &"'abcdefgh', ".repeat(160) + "0] == []",
        "true == (".repeat(16) + "true" + &")".repeat(16),
        "'".to_owned() + &"\\u00e4".repeat(300) + "' == ''",
        "\"\"\"".to_owned() + &"(".repeat(2_000),
        "&".repeat(2_000),
        "a ".repeat(1_000),
        "\u{0}\u{1}\u{7f}ä€😀".repeat(100),
    ];
    for shape in shapes {
        let start = Instant::now();
        let read = compile_expression(&shape);
        let took = start.elapsed();
        if let Ok(read) = read {
            let _ = evaluate_bool(&read, &sample());
        }
        assert!(took < Duration::from_secs(5), "{shape}: {took:?}");
    }
}
