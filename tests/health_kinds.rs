//! Other projects' kinds: for everything that a row of the table can answer there is an object, as its controller writes
//! it, and the answer is that one.
//!
//! `tests/health_kinds/` has a file for a project or a few: documents with `kinds` and `cases`, each case a `body` and what
//! is to be said of it.

use std::collections::{BTreeMap, BTreeSet};

use moorline::health::rules::{Rules, Written};
use moorline::health::{Answer, Context, Health, Known, Reports, deadline, health, known, may_report};
use moorline::object::GroupKind;
use serde_json::{Map, Value, json};

mod health_kinds {
    pub(crate) mod fixtures;
}

use health_kinds::fixtures::{Fixture, all};

fn told(health: &Health) -> String {
    match health.why() {
        Some(why) => format!("{}: {why}", health.word()),
        None => health.word().to_owned(),
    }
}

/// Which answer of a rule an expectation is.
fn answer(expect: &str) -> Answer {
    let generations = ["has seen generation", "of an older generation", "has not seen it yet"];
    match expect.split(':').next() {
        Some("Healthy") => Answer::Healthy,
        Some("Progressing") if generations.iter().any(|words| expect.contains(words)) => Answer::Stale,
        Some("Progressing") => Answer::Progressing,
        Some("Degraded") => Answer::Degraded,
        Some("Suspended") => Answer::Suspended,
        Some("Unknown") => Answer::Unknown,
        _ => panic!("{expect:?} is no health"),
    }
}

/// A kind that a row names; for one with a star, any that fits.
fn example(row: &Known, kind: &str) -> GroupKind {
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
    let rows = known();
    let mut shown: BTreeMap<(usize, &str), BTreeSet<Answer>> = BTreeMap::new();
    for fixture in all() {
        let row = rows.iter().enumerate().find_map(|(at, row)| Some((at, row.names(&fixture.kind)?)));
        let Some(place) = row else { panic!("{}: no row is for {}", fixture.place, fixture.kind) };
        // What would be said of an object without any status shows nothing.
        let is_silent = fixture.body.get("status").and_then(Value::as_object).is_none_or(Map::is_empty);
        let answer = answer(&fixture.expect);
        if answer != Answer::Progressing || !is_silent {
            shown.entry(place).or_default().insert(answer);
        }
    }
    let mut missing = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let Some(status) = &row.status else { continue };
        for kind in row.kinds {
            let shown = shown.remove(&(at, kind)).unwrap_or_default();
            if shown != status.answers {
                let (has, needs) = (format!("{shown:?}"), format!("{:?}", status.answers));
                missing.push(format!("{kind}.{}: the rule gives {needs}, the fixtures {has}", row.group));
            }
        }
    }
    assert!(missing.is_empty(), "{} kinds:\n{}", missing.len(), missing.join("\n"));
}

#[test]
fn there_are_enough_kinds_of_enough_projects() {
    let rows = known();
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
    for row in known() {
        for kind in row.kinds {
            let example = example(&row, kind);
            assert_eq!(row.names(&example), Some(*kind), "an earlier row is for {example}");
        }
    }
}

#[test]
fn silence_and_deadlines_are_those_of_the_row() {
    let perhaps = Context { reports: Reports::Perhaps, binding: None };
    let has_none = |fixture: &Fixture| !fixture.body.contains_key("status") && fixture.expect == "Healthy";
    let silent_ones: BTreeSet<GroupKind> = all().into_iter().filter(has_none).map(|it| it.kind).collect();
    for row in known() {
        for kind in row.kinds {
            let kind = example(&row, kind);
            let silent = told(&health(&kind, &Map::new(), &perhaps));
            assert_eq!(may_report(&kind), row.status.is_some(), "{kind}");
            let Some(status) = &row.status else {
                assert_eq!(silent, "Healthy", "{kind}");
                continue;
            };
            assert_eq!(deadline(&kind, &Map::new()), status.minutes * 60_000, "{kind}");
            assert!(status.healthy.contains('`'), "{kind}: {}", status.healthy);
            match &*silent {
                "Progressing: its controller has reported nothing yet" => {}
                "Healthy" => {
                    assert!(silent_ones.contains(&kind), "{kind} is healthy in silence, without a fixture")
                }
                other => panic!("{kind}: {other}"),
            }
        }
    }
}

#[test]
fn a_sync_s_own_rule_goes_first() {
    let (mut tried, mut statuses) = (0, 0);
    for row in known() {
        for name in row.kinds {
            let kind = example(&row, name);
            let degraded = Some("object.spec.size == 3");
            let written = Written {
                group: &kind.group,
                kind: &kind.kind,
                healthy: Some("true"),
                degraded,
                progressing: None,
            };
            let rules = Rules::compile(&[written]).unwrap_or_else(|errors| panic!("{kind}: {errors:?}"));
            assert!(rules.cover(&kind));
            for (size, expect) in [(3, "Degraded: the rule's degraded is true"), (2, "Healthy")] {
                let Value::Object(body) = json!({"spec": {"size": size}}) else { continue };
                let own =
                    rules.judge(&kind, &body).unwrap_or_else(|| health(&kind, &body, &Context::default()));
                assert_eq!(told(&own), expect, "{kind}");
                statuses += usize::from(told(&own) != told(&health(&kind, &body, &Context::default())));
            }
            tried += 1;
        }
    }
    assert!(tried > 60 && statuses > 60, "{tried} kinds, {statuses} answers that are another one's");
}
