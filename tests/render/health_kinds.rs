//! Other projects' kinds: for everything that a row of the table can answer there is an object, as its controller writes
//! it, and the answer is that one.
//!
//! `tests/health_kinds/` has a file for a project or a few: documents with `kinds` and `cases`, each case a `body` and what
//! is to be said of it.

use std::collections::{BTreeMap, BTreeSet};

use moorline::health::rules::{RuleSource, Rules};
use moorline::health::{
    Context, DocumentedRule, Health, HealthSummary, JudgementInputs, Reports, Verdict, Watchlist,
    deadline_for, documented_rules, health, may_report,
};
use moorline::object::{GroupKind, ObjectId};
use serde_json::{Map, Value, json};

pub(crate) mod fixtures;

use fixtures::{Fixture, all};

fn told(health: &Health) -> String {
    match health.message() {
        Some(why) => format!("{}: {why}", health.name()),
        None => health.name().to_owned(),
    }
}

/// Returns the rule's answer that an expectation names.
fn answer(expect: &str) -> Verdict {
    let generations = ["has observed generation", "older generation", "has not observed it yet"];
    match expect.split(':').next() {
        Some("Healthy") => Verdict::Healthy,
        Some("Progressing") if generations.iter().any(|words| expect.contains(words)) => Verdict::Stale,
        Some("Progressing") => Verdict::Progressing,
        Some("Degraded") => Verdict::Degraded,
        Some("Suspended") => Verdict::Suspended,
        Some("Unknown") => Verdict::Unknown,
        _ => panic!("{expect:?} is no health"),
    }
}

/// A kind that a row names; for one with a star, any that fits.
fn example(row: &DocumentedRule, kind: &str) -> GroupKind {
    GroupKind::new(&row.group.replace("*.", "any."), &kind.replace('*', "Any"))
}

#[test]
fn every_object_is_judged_as_its_fixture_says() {
    let mut wrong = Vec::new();
    for Fixture { place, kind, body, expect } in all() {
        let found = told(&health(&kind, &body, &Context::default()));
        if found != expect {
            wrong.push(format!("{place} {kind}\n    expected {expect}\n    found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of the fixtures:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_answer_of_every_kind_has_a_fixture() {
    let rows = documented_rules();
    let mut shown: BTreeMap<(usize, &str), BTreeSet<Verdict>> = BTreeMap::new();
    for fixture in all() {
        let row = rows.iter().enumerate().find_map(|(at, row)| Some((at, row.matching_kind(&fixture.kind)?)));
        let Some(place) = row else { panic!("{}: no row is for {}", fixture.place, fixture.kind) };
        // The verdict of an object without any status shows nothing.
        let is_silent = fixture.body.get("status").and_then(Value::as_object).is_none_or(Map::is_empty);
        let answer = answer(&fixture.expect);
        if answer != Verdict::Progressing || !is_silent {
            shown.entry(place).or_default().insert(answer);
        }
    }
    let mut missing = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let Some(status) = &row.status else { continue };
        for kind in row.kinds {
            let shown = shown.remove(&(at, kind)).unwrap_or_default();
            if shown != status.verdicts {
                let (has, needs) = (format!("{shown:?}"), format!("{:?}", status.verdicts));
                missing.push(format!("{kind}.{}: the rule gives {needs}, the fixtures {has}", row.group));
            }
        }
    }
    assert!(missing.is_empty(), "{} kinds:\n{}", missing.len(), missing.join("\n"));
}

#[test]
fn there_are_enough_kinds_of_enough_projects() {
    let rows = documented_rules();
    let reading = || rows.iter().filter(|row| row.status.is_some());
    let kinds = reading().map(|row| row.kinds.len()).sum::<usize>();
    let projects = reading().map(|row| row.project).collect::<BTreeSet<_>>().len();
    let still: usize = rows.iter().filter(|row| row.status.is_none()).map(|row| row.kinds.len()).sum();
    println!(
        "{kinds} kinds of {projects} projects by their statuses, {still} that only say something, {} fixtures",
        all().len()
    );
    // The README names these numbers.
    assert!(kinds >= 400 && projects > 90, "{kinds} kinds of {projects} projects");
}

#[test]
fn no_row_hides_another() {
    for row in documented_rules() {
        for kind in row.kinds {
            let example = example(&row, kind);
            assert_eq!(row.matching_kind(&example), Some(*kind), "an earlier row is for {example}");
        }
    }
}

#[test]
fn silence_and_deadlines_are_those_of_the_row() {
    let perhaps = Context { reports: Reports::Perhaps, binding: None };
    let has_none = |fixture: &Fixture| !fixture.body.contains_key("status") && fixture.expect == "Healthy";
    let silent_ones: BTreeSet<GroupKind> = all().into_iter().filter(has_none).map(|it| it.kind).collect();
    for row in documented_rules() {
        for kind in row.kinds {
            let kind = example(&row, kind);
            let silent = told(&health(&kind, &Map::new(), &perhaps));
            assert_eq!(may_report(&kind), row.status.is_some(), "{kind}");
            let Some(status) = &row.status else {
                assert_eq!(silent, "Healthy", "{kind}");
                continue;
            };
            assert_eq!(deadline_for(&kind, &Map::new()), status.minutes * 60_000, "{kind}");
            assert!(status.healthy.contains('`'), "{kind}: {}", status.healthy);
            match &*silent {
                "Progressing: its controller has not reported a status yet" => {}
                "Healthy" => {
                    assert!(silent_ones.contains(&kind), "{kind} is healthy in silence, without a fixture")
                }
                other => panic!("{kind}: {other}"),
            }
        }
    }
}

/// Through the list that a Sync keeps of its objects: what its own rule says of a kind counts, and not what the row says.
#[test]
fn a_sync_s_own_rule_goes_first() {
    let mut others = 0;
    for row in documented_rules() {
        for name in row.kinds {
            let kind = example(&row, name);
            let written = RuleSource {
                group: &kind.group,
                kind: &kind.kind,
                healthy: Some("true"),
                degraded: Some("object.spec.size == 3"),
                progressing: None,
            };
            let own = Rules::compile(&[written]).unwrap_or_else(|errors| panic!("{kind}: {errors:?}"));
            assert!(own.cover(&kind), "{kind} is not read");
            for (size, expect) in [(3, 1), (2, 0)] {
                let summary = |rules: &Rules| seen(&kind, &json!({"spec": {"size": size}}), rules);
                let found = summary(&own);
                assert_eq!(
                    (found.degraded, found.progressing, found.unknown),
                    (expect, 0, 0),
                    "{kind}: {found:?}"
                );
                others += usize::from(summary(&Rules::default()) != found);
            }
        }
    }
    assert!(others > 400, "only {others} answers of rows differ from those of the rule");
}

/// Returns the summary of a list that has read this one object.
fn seen(kind: &GroupKind, body: &Value, rules: &Rules) -> HealthSummary {
    let id = ObjectId::new(&kind.group, &kind.kind, "shop", "web").expect("an id");
    let mut list = Watchlist::default();
    list.on_changed(&id, 0);
    assert_eq!(list.take_due(1_000).objects, std::slice::from_ref(&id));
    let context = Context { reports: Reports::Yes, binding: None };
    let of = JudgementInputs { rules, timeout: None, context, unix_millis: 0, runs_to_completion: false };
    list.on_read(&id, body.as_object().expect("a mapping"), None, &of, 1_000);
    list.summary()
}

/// Every field of every object, turned into something that no controller writes.
#[test]
fn no_change_of_a_field_is_too_odd() {
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(u64::MAX),
        json!(""),
        json!("a\u{1b}\n b"),
        json!("\u{1b}"),
        json!([]),
        json!([1]),
        json!({}),
    ];
    let mut seen = BTreeSet::new();
    // Kinds of one row have the same objects: the first will do.
    for Fixture { kind, body, place, .. } in
        all().into_iter().filter(|fixture| seen.insert(fixture.place.clone()))
    {
        let body = Value::Object(body);
        let mut places = Vec::new();
        places_of(&body, String::new(), &mut places);
        for (at, value) in places.iter().flat_map(|at| odd.iter().map(move |value| (at, value))) {
            let mut changed = body.clone();
            *changed.pointer_mut(at).expect("a place of this object") = value.clone();
            let Value::Object(changed) = changed else { continue };
            let found = health(&kind, &changed, &Context::default());
            let is_line =
                |why: &str| !why.is_empty() && why.len() < 2_000 && !why.chars().any(char::is_control);
            assert!(found.message().is_none_or(is_line), "{place} with {at} {value}: {found:?}");
        }
    }
}

/// Every place below the top, as JSON pointers.
fn places_of(value: &Value, at: String, found: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(map) => {
            map.iter().map(|(key, value)| (key.replace('~', "~0").replace('/', "~1"), value)).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
    };
    for (key, value) in inner {
        let at = format!("{at}/{key}");
        places_of(value, at.clone(), found);
        found.push(at);
    }
}
