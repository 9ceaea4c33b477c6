//! Tests of the Kubernetes language: errors, missing values, and that nothing takes long. Results
//! of expressions are compared with a real server in `tests/parity/rules.txt`; the tests of the
//! small language are in the health crate, which uses it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;

fn read_it(text: &str) -> Result<Expression, String> {
    let variables = [Variable { name: "self", kind: Kind::Any }];
    match read(text, Language::Kubernetes, &variables) {
        Ok((expression, _)) => Ok(expression),
        Err(refused) => Err(refused
            .iter()
            .map(|it| format!("{}: {}", it.offset, it.problem))
            .collect::<Vec<_>>()
            .join("; ")),
    }
}

fn value_of(text: &str, object: &Value, steps: usize) -> Result<bool, EvaluationError> {
    let expression = read_it(text).unwrap_or_else(|refused| panic!("{text}: {refused}"));
    let variables = [CelValue::from_json(object, &Kind::Any)];
    evaluate(&expression, &variables, false, &mut StepBudget::new(steps))?.into_bool("all of it")
}

#[test]
fn a_meaningless_expression_is_reported_with_its_position() {
    let check = |text: &str, expect: &str| assert_eq!(read_it(text).unwrap_err(), expect, "{text}");
    check("selv.a == 1", "0: there is no variable \"selv\", only \"self\"");
    check(
        "'selv' == selv && foo(self)",
        "10: there is no variable \"selv\", only \"self\"; 21: there is no function \"foo\"",
    );
    check(
        "[1, 2].all(x, x == 'a' || x.y)",
        "16: _==_ does not support (int, string); 27: type 'int' does not support field selection",
    );
    check("semver(self) == self", "0: the function \"semver\" is not supported here");
    check("'a'.charAt('b') == ''", "10: charAt does not support string.(string)");
    check("self.all(1, 2, 3)", "4: the variable of a macro must be a name");
    check("self.matches('(')", "13: invalid matches argument");
    check("duration('1 hour') > duration('1s')", "9: invalid duration argument");
}

#[test]
fn what_has_no_mapping_has_no_field_only_in_the_small_language() {
    let object = json!({"a": {}, "n": null});
    let missing = |name: &str| Err(EvaluationError::MissingField(name.into()));
    assert_eq!(value_of("has(self.a.b)", &object, 100), Ok(false));
    assert_eq!(value_of("has(self.b.c)", &object, 100), missing("b"));
    assert_eq!(value_of("has(self.n.c)", &object, 100), Err(EvaluationError::WrongType("has")));
    assert_eq!(value_of("self[?'b'].hasValue() || self.?b.?c.hasValue()", &object, 100), Ok(false));
    assert_eq!(value_of("self.?b.value() == 1", &object, 100), missing("optional.none() dereference"));
    assert_eq!(value_of("'%e'.format([1.5]) == ''", &object, 100), Err(EvaluationError::Unsupported));
}

/// Longest texts of each deeply nested shape, on the stack of a runtime thread.
#[test]
fn a_text_is_read_within_a_moment_whatever_it_is() {
    let shapes = [
        "!".repeat(380) + "true",
        "-".repeat(380) + "1 == 1",
        format!("self{} == 1", ".a".repeat(380)),
        format!("self{} == 1", "[0]".repeat(190)),
        format!("1{} == 1", " + 1".repeat(380)),
        format!("true{}", " && true".repeat(380)),
        format!("true{}", " || self.a == 1".repeat(120)),
        format!("{}1", "true ? 1 : ".repeat(48)),
        format!("{}1{}", "true ? ".repeat(48), " : 1".repeat(48)),
        format!("1{} == 1", " + (has(self.a) ? 1 : 0)".repeat(48)),
        format!("self{}", ".optMap(a, a)".repeat(180)),
        "self.all(a, b, ".repeat(16) + "true" + &")".repeat(16),
        "(self.a.b.c[".repeat(8) + "0" + &"])".repeat(8),
        "{'a': ".repeat(16) + "1" + &"}".repeat(16),
    ];
    for shape in shapes {
        let start = Instant::now();
        if read_it(&shape).is_ok() {
            let _ = value_of(&shape, &json!({"a": 1}), 100_000);
        }
        assert!(start.elapsed() < Duration::from_secs(5), "{shape}: {:?}", start.elapsed());
    }
    assert!(read_it(&format!("true{}", " || self.a == 1".repeat(120))).is_ok());
    assert!(read_it(&format!("1{} == 1", " + (has(self.a) ? 1 : 0)".repeat(40))).is_ok());
}

/// Every created value costs steps.
#[test]
fn nothing_takes_long() {
    let object = json!({"items": (0..20_000).collect::<Vec<u32>>(), "text": "x".repeat(1_000_000)});
    let all = "self.items";
    let bombs = [
        format!("{all}.distinct().size() == 1"),
        format!("{all}.all(i, v, {all}.exists(w, w == v + 1))"),
        format!("{all}.transformList(i, v, {all}).flatten().size() == 1"),
        format!("{all}.transformMap(i, v, v) == {all}.transformMap(i, v, v)"),
        format!("{all}.map(v, {{v: v}}).transformMapEntry(i, v, v).size() == 1"),
        format!("sets.equivalent({all}, {all})"),
        format!("{all}.all(v, self.text.split('').size() == 1)"),
        format!("{all}.all(v, self.text.replace('x', self.text).size() > 1)"),
        format!("{all}.all(v, '%s%s'.format([self.text, {all}]).size() > 1)"),
        format!("{all}.all(v, self.text.findAll('x').size() > 1)"),
        format!("{all}.sortBy(v, self.text + string(v)).size() == 1"),
        format!("{all}.all(v, lists.range(100000).size() > 1)"),
        format!("self.text{}.size() == 1", ".replace('x', 'xx')".repeat(30)),
        format!("[{all}]{}.size() == 1", ".map(a, a)".repeat(10))
            + &format!(" && {all}.all(v, {all} == {all})"),
    ];
    for bomb in bombs {
        let start = Instant::now();
        let found = value_of(&bomb, &object, 1_000_000);
        assert!(matches!(found, Err(EvaluationError::OutOfSteps)) || found == Ok(false), "{bomb}: {found:?}");
        assert!(start.elapsed() < Duration::from_secs(5), "{bomb}: {:?}", start.elapsed());
    }
}

#[test]
fn a_list_with_nan_is_sorted_and_never_panics() {
    let items: Vec<u32> = (0..400).map(|at| at * 7919 % 401).collect();
    let rule = "self.items.sortBy(v, v % 3 == 0 ? double('NaN') : double(v)).size() == 400";
    assert_eq!(value_of(rule, &json!({"items": items}), 1_000_000), Ok(true));
    let last = "[double('NaN'), 2.0, 1.0].sort()[0] == 1.0 && ![double('NaN'), 2.0, 1.0].sort().isSorted()";
    assert_eq!(value_of(last, &json!({}), 1_000), Ok(true));
}
