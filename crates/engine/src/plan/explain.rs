//! Text form of a plan, for people: grouped by action, in the order of execution.
//!
//! Values of Secrets are never shown, only that a field of one changes.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::difference::{Difference, HIDDEN};
use super::{Action, Change, Hold, Plan, Step};
use crate::diff::{Bounds, Line, brief, diff, truncate};
use moorline_api::APPROVE_ANNOTATION;
use moorline_core::grammar;
use moorline_core::object::ObjectId;
use moorline_core::sanitize::sanitize;

/// Maximum width of a value that is shown on the line of its field.
const MAX_BRIEF: usize = 60;

/// Maximum number of fields of one object that are listed; the rest is counted.
const MAX_SHOWN_FIELDS: usize = 12;

/// Maximum number of lines of the diff of one field, and of characters of a line.
const SHOWN: Bounds = Bounds { lines: 60, width: 200 };

/// The same bounds when everything is requested.
const ALL_SHOWN: Bounds = Bounds { lines: usize::MAX, width: 1 << 16 };

/// Use of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColourMode {
    /// Terminal colours.
    Colours,
    /// Plain text.
    Plain,
}

/// Amount of detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DetailLevel {
    /// The first fields of each object and the first lines of each field; the rest is counted.
    Brief,
    /// Everything.
    All,
}

/// Style of the text form of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Use of colours.
    pub paint: ColourMode,
    /// Amount of detail.
    pub extent: DetailLevel,
}

/// Formats a plan as text. `differences` holds the fields of updated objects, where they are known,
/// and the whole bodies of created objects, where these are requested.
pub fn format_plan(plan: &Plan, differences: &BTreeMap<ObjectId, Vec<Difference>>, style: Style) -> String {
    let mut text = TextWriter { out: String::new(), style };
    for verb in ["create", "adopt", "update", "hand over", "prune"] {
        let steps: Vec<&Step> = plan.steps().filter(|step| step.action.verb() == verb).collect();
        text.group(verb, steps.len());
        for step in steps {
            text.step(step, differences.get(&step.id).map(Vec::as_slice).unwrap_or_default());
        }
    }
    text.group("held", plan.held.len());
    for (id, hold) in &plan.held {
        text.line('!', id, &hold.to_string());
        if let Hold::DriftReported(drift) = hold {
            text.fields(id, differences.get(id).map(Vec::as_slice).unwrap_or_default(), &drift.fields);
        }
    }
    if let Some(approval) = &plan.approval {
        let count = plan.pending_prunes().len();
        let (objects, them) =
            if count == 1 { ("object to prune waits", "it") } else { ("objects to prune wait", "them") };
        let _ = writeln!(
            text.out,
            "\n{count} {objects} for approval. To prune {them}, annotate the Sync: {APPROVE_ANNOTATION}: {approval:?}"
        );
    }
    let _ = writeln!(text.out, "{}{}", if text.out.is_empty() { "" } else { "\n" }, summary(plan));
    text.out
}

/// Formats a plan in one line.
pub fn summary(plan: &Plan) -> String {
    let count = |verb| plan.steps().filter(|step| step.action.verb() == verb).count();
    let mut parts: Vec<String> = ["create", "adopt", "update", "hand over", "prune"]
        .into_iter()
        .map(|verb| (verb, count(verb)))
        .filter(|(_, count)| *count > 0)
        .map(|(verb, count)| format!("{count} to {verb}"))
        .collect();
    if !plan.held.is_empty() {
        parts.push(format!("{} held", plan.held.len()));
    }
    match (parts.is_empty(), plan.kept.len()) {
        (true, kept) => format!(
            "Nothing to do: {kept} {} as in Git.",
            if kept == 1 { "object is" } else { "objects are" }
        ),
        (false, kept) => format!("{}, {kept} as in Git.", parts.join(", ")),
    }
}

struct TextWriter {
    out: String,
    style: Style,
}

impl TextWriter {
    fn group(&mut self, verb: &str, count: usize) {
        if count == 0 {
            return;
        }
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        let title = format!("{}{} ({count})", verb[..1].to_uppercase(), &verb[1..]);
        let _ = writeln!(self.out, "{}", self.painted(&title, "1"));
    }

    fn step(&mut self, step: &Step, differences: &[Difference]) {
        let (sign, reason) = match &step.action {
            Action::Create => ('+', String::new()),
            Action::ReplaceHookRuns { runs } => {
                let runs: Vec<String> = runs.iter().map(|run| sanitize(&run.to_string())).collect();
                ('+', format!("after its earlier run is deleted: {}", runs.join(", ")))
            }
            Action::Adopt { managers } if managers.is_empty() => ('+', "it exists already".to_owned()),
            Action::Adopt { managers } => ('+', format!("currently managed by {}", managers.join(", "))),
            Action::Update(Change::Committed) => ('~', "changed in Git".to_owned()),
            Action::Update(Change::Drifted(drift)) => ('~', format!("changed live by {}", drift.author())),
            Action::Update(Change::EntryLost) => ('~', "our entry in managedFields is missing".to_owned()),
            Action::Update(Change::Unverified) => ('~', "not verified since the daemon started".to_owned()),
            Action::Update(Change::MaybeDrifted) => {
                ('~', "changed live; the fields in Git are verified".to_owned())
            }
            Action::Update(Change::RerunHook) => {
                ('~', "it runs again: other objects of the render have changed".to_owned())
            }
            Action::HandOver { to } => ('>', format!("to the Sync {to}")),
            Action::Prune { .. } => {
                ('-', "no longer in Git; the daemon checks the proof before it deletes".to_owned())
            }
        };
        self.line(sign, &step.id, &reason);
        let known = match &step.action {
            Action::Update(Change::Drifted(drift)) => drift.fields.as_slice(),
            Action::Update(
                Change::Committed
                | Change::EntryLost
                | Change::Unverified
                | Change::MaybeDrifted
                | Change::RerunHook,
            )
            | Action::Create
            | Action::ReplaceHookRuns { .. }
            | Action::Adopt { .. }
            | Action::HandOver { .. }
            | Action::Prune { .. } => &[],
        };
        self.fields(&step.id, differences, known);
    }

    fn line(&mut self, sign: char, id: &ObjectId, note: &str) {
        let colour = match sign {
            '+' => "32",
            '-' => "31",
            _ => "33",
        };
        let painted = self.painted(&format!("{sign} {}", sanitize(&id.to_string())), colour);
        let _ = match note {
            "" => writeln!(self.out, "  {painted}"),
            note => writeln!(self.out, "  {painted}: {}", sanitize(note)),
        };
    }

    /// Prints the fields of an object with their differences; where bodies were not compared, only
    /// the known paths.
    fn fields(&mut self, id: &ObjectId, differences: &[Difference], known: &[String]) {
        let most = match self.style.extent {
            DetailLevel::Brief => MAX_SHOWN_FIELDS,
            DetailLevel::All => usize::MAX,
        };
        let count = if differences.is_empty() { known.len() } else { differences.len() };
        if differences.is_empty() {
            for path in known.iter().take(most) {
                let _ = writeln!(self.out, "      {}", sanitize(path));
            }
        }
        differences.iter().take(most).for_each(|found| self.field(id, found));
        if let Some(more @ 1..) = count.checked_sub(most) {
            let _ = writeln!(self.out, "      and {}", grammar::more(more, "field"));
        }
    }

    fn field(&mut self, id: &ObjectId, found: &Difference) {
        let title = match found.path.as_str() {
            "" => String::new(),
            path => format!("{}: ", sanitize(path)),
        };
        let Some((live, wanted)) = found.values(id) else {
            let _ = writeln!(self.out, "      {title}{HIDDEN}");
            return;
        };
        if let Some(brief) = brief(live, wanted, MAX_BRIEF) {
            let _ = writeln!(self.out, "      {title}{}", sanitize(&brief));
            return;
        }
        if !title.is_empty() {
            let _ = writeln!(self.out, "      {}", title.trim_end());
        }
        let bounds = if self.style.extent == DetailLevel::All { ALL_SHOWN } else { SHOWN };
        let fitted = truncate(&diff(live, wanted), bounds);
        // The header of the only hunk of an addition or a removal carries no information.
        let is_change = live.is_some() && wanted.is_some();
        for line in fitted.lines.iter().filter(|line| is_change || !matches!(line, Line::Hunk(_))) {
            let text = sanitize(&line.to_string());
            let painted = match line {
                Line::Hunk(_) => self.painted(&text, "36"),
                Line::Removed(_) => self.painted(&text, "31"),
                Line::Added(_) => self.painted(&text, "32"),
                Line::Same(_) | Line::NoBreak => text,
            };
            let _ = writeln!(self.out, "        {painted}");
        }
        if fitted.more > 0 {
            let _ = writeln!(self.out, "        and {}", grammar::more(fitted.more, "line"));
        }
    }

    fn painted(&self, text: &str, colour: &str) -> String {
        match self.style.paint {
            ColourMode::Colours => format!("\u{1b}[{colour}m{text}\u{1b}[0m"),
            ColourMode::Plain => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Stage;
    use super::super::order::stage_of;
    use super::*;
    use crate::desired::PhaseWave;
    use crate::observed::Drift;
    use crate::plan::test_fixtures::id;

    fn step(text: &str, action: Action) -> (Stage, Vec<Step>) {
        let prune = matches!(action, Action::Prune { .. });
        (stage_of(&id(text), PhaseWave::default(), prune), vec![Step { id: id(text), action }])
    }

    fn only(stages: Vec<(Stage, Vec<Step>)>, held: Vec<(&str, Hold)>) -> Plan {
        let held = held.into_iter().map(|(text, hold)| (id(text), hold)).collect();
        Plan { stages, held, kept: Vec::new(), approval: None, consented: BTreeMap::new() }
    }

    fn found(path: &str, live: Option<Value>, wanted: Value) -> Difference {
        Difference { path: path.to_owned(), live, desired: Some(wanted), secret: false }
    }

    const PLAIN: Style = Style { paint: ColourMode::Plain, extent: DetailLevel::Brief };

    fn check(plan: &Plan, differences: &[(&str, Vec<Difference>)], expect: &[&str]) {
        let differences = differences.iter().map(|(text, found)| (id(text), found.clone())).collect();
        let text = format_plan(plan, &differences, PLAIN);
        assert_eq!(text.lines().collect::<Vec<_>>(), expect);
    }

    fn drift(fields: &[&str], manager: Option<&str>, time: Option<&str>) -> Box<Drift> {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        Box::new(Drift { fields, manager: manager.map(str::to_owned), time: time.map(str::to_owned) })
    }

    #[test]
    fn a_plan_is_read_in_the_order_in_which_it_is_carried_out() {
        let time = Some("2026-01-02T03:04:05Z");
        let prune = Action::Prune { uid: "1".into(), resource_version: "2".into() };
        let drifted = Change::Drifted(drift(&["spec.replicas"], Some("kubectl"), None));
        let plan = Plan {
            stages: vec![
                step("/Namespace|/shop", Action::Create),
                step("/ConfigMap|shop/a", Action::Adopt { managers: vec![] }),
                step("/ConfigMap|shop/b", Action::Adopt { managers: vec!["kubectl".into(), "helm".into()] }),
                step("apps/Deployment|shop/a", Action::Update(Change::Committed)),
                step("apps/Deployment|shop/b", Action::Update(drifted)),
                step("apps/Deployment|shop/c", Action::Update(Change::Drifted(drift(&[], None, None)))),
                step("apps/Deployment|shop/d", Action::Update(Change::EntryLost)),
                step("apps/Deployment|shop/e", Action::Update(Change::Unverified)),
                step("apps/Deployment|shop/f", Action::Update(Change::MaybeDrifted)),
                step("/ConfigMap|shop/c", Action::HandOver { to: "ops/other".into() }),
                step("/ConfigMap|shop/d", prune),
            ],
            held: vec![
                (
                    id("/ConfigMap|shop/e"),
                    Hold::DriftReported(drift(&["data.a"], Some("kubectl-edit"), time)),
                ),
                (id("/ConfigMap|shop/f"), Hold::PruneBudgetExceeded { prunes: 11, owned: 20 }),
            ],
            kept: vec![id("/ConfigMap|shop/g")],
            approval: Some("0123".to_owned()),
            consented: BTreeMap::new(),
        };
        let replicas =
            vec![found("spec.replicas", Some(json!(5)), json!(3)), found("spec.paused", None, json!(true))];
        check(
            &plan,
            &[("apps/Deployment|shop/a", replicas)],
            &[
                "Create (1)",
                "  + Namespace shop",
                "",
                "Adopt (2)",
                "  + ConfigMap shop/a: it exists already",
                "  + ConfigMap shop/b: currently managed by kubectl, helm",
                "",
                "Update (6)",
                "  ~ Deployment.apps shop/a: changed in Git",
                "      spec.replicas: 5 -> 3",
                "      spec.paused: (not set) -> true",
                "  ~ Deployment.apps shop/b: changed live by kubectl",
                "      spec.replicas",
                "  ~ Deployment.apps shop/c: changed live by an unknown manager",
                "  ~ Deployment.apps shop/d: our entry in managedFields is missing",
                "  ~ Deployment.apps shop/e: not verified since the daemon started",
                "  ~ Deployment.apps shop/f: changed live; the fields in Git are verified",
                "",
                "Hand over (1)",
                "  > ConfigMap shop/c: to the Sync ops/other",
                "",
                "Prune (1)",
                "  - ConfigMap shop/d: no longer in Git; the daemon checks the proof before it deletes",
                "",
                "Held (2)",
                "  ! ConfigMap shop/e: changed by kubectl-edit at 2026-01-02T03:04:05Z, and only reported",
                "      data.a",
                "  ! ConfigMap shop/f: no longer in Git, but 11 of 20 objects would be pruned",
                "",
                "1 object to prune waits for approval. To prune it, annotate the Sync: moorline.dev/approve: \"0123\"",
                "",
                "1 to create, 2 to adopt, 6 to update, 1 to hand over, 1 to prune, 2 held, 1 as in Git.",
            ],
        );
    }

    #[test]
    fn nothing_to_do_is_one_line() {
        let mut plan = only(vec![], vec![]);
        check(&plan, &[], &["Nothing to do: 0 objects are as in Git."]);
        plan.kept.push(id("/ConfigMap|a/a"));
        check(&plan, &[], &["Nothing to do: 1 object is as in Git."]);
    }

    #[test]
    fn values_of_secrets_are_not_shown() {
        let plan = only(vec![step("/Secret|a/a", Action::Update(Change::Committed))], vec![]);
        let secret = || json!("aHVudGVyMg==");
        let copy = "metadata.annotations[\"kubectl.kubernetes.io/last-applied-configuration\"]";
        let differences = vec![
            found("data.a", Some(secret()), secret()),
            found("data.b", None, secret()),
            found(copy, Some(secret()), secret()),
        ];
        let hidden = HIDDEN;
        check(
            &plan,
            &[("/Secret|a/a", differences)],
            &[
                "Update (1)",
                "  ~ Secret a/a: changed in Git",
                &format!("      data.a: {hidden}"),
                &format!("      data.b: {hidden}"),
                &format!("      {copy}: {hidden}"),
                "",
                "1 to update, 0 as in Git.",
            ],
        );
    }

    #[test]
    fn a_terminal_is_not_obeyed_by_what_a_cluster_says() {
        let evil = "\u{1b}[2J\u{9b}31m\r\u{202e}";
        let adopt = Action::Adopt { managers: vec![evil.into()] };
        let drift =
            Drift { fields: vec![format!("data.{evil}")], manager: Some(evil.to_owned()), time: None };
        let (steps, held) = (
            vec![step("/ConfigMap|a/a", adopt)],
            vec![("/ConfigMap|a/b", Hold::DriftReported(Box::new(drift)))],
        );
        let mut plan = only(steps, held);
        plan.stages.push(step("/ConfigMap|a/c", Action::Update(Change::Committed)));
        let path = format!("data.{evil}");
        let values =
            BTreeMap::from([(id("/ConfigMap|a/c"), vec![found(&path, Some(json!(evil)), json!("\u{7f}"))])]);
        let text = format_plan(&plan, &values, PLAIN);
        let unsafe_char = |char: char| char != '\n' && (char.is_control() || char == '\u{202e}');
        assert!(!text.contains(unsafe_char), "{text:?}");
        assert!(text.contains("currently managed by \u{fffd}[2J\u{fffd}31m\u{fffd}\u{fffd}\n"), "{text:?}");
    }

    #[test]
    fn fields_and_lines_beyond_the_bounds_are_counted() {
        let plan = only(vec![step("/ConfigMap|a/a", Action::Update(Change::Committed))], vec![]);
        let many = (0..14).map(|at| found(&format!("data.k{at}"), None, json!("é".repeat(300)))).collect();
        let long: String = (0..70).map(|at| format!("{at}\n")).collect();
        let differences = |found| BTreeMap::from([(id("/ConfigMap|a/a"), found)]);
        let text = format_plan(&plan, &differences(many), PLAIN);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[2..4], ["      data.k0:".to_owned(), format!("        +{}…", "é".repeat(200))]);
        assert_eq!(lines[26], "      and 2 more fields");
        let long = differences(vec![found("data.f", None, json!(long))]);
        let text = format_plan(&plan, &long, PLAIN);
        assert!(text.contains("        +58\n        and 11 more lines\n"), "{text}");
        let text = format_plan(&plan, &long, Style { extent: DetailLevel::All, ..PLAIN });
        assert!(text.contains("        +69\n") && !text.contains("more"), "{text}");
    }

    #[test]
    fn one_changed_line_of_many_is_shown_with_its_neighbours() {
        let plan = only(vec![step("/ConfigMap|a/a", Action::Update(Change::Committed))], vec![]);
        let text: String =
            (0..63).map(|at| format!("  location /p{at} {{ proxy_pass http://x; }}\n")).collect();
        let changed = text.replace("/p30 { proxy_pass http://x", "/p30 { proxy_pass http://y");
        let item = json!({"name": "side", "image": "b"});
        let removed = Difference {
            live: Some(item.clone()),
            desired: None,
            ..found("spec.c[name=old]", None, json!(0))
        };
        check(
            &plan,
            &[(
                "/ConfigMap|a/a",
                vec![
                    found("data.f", Some(json!(text)), json!(changed)),
                    found("spec.c[name=side]", None, item),
                    removed,
                ],
            )],
            &[
                "Update (1)",
                "  ~ ConfigMap a/a: changed in Git",
                "      data.f:",
                "        @@ -28,7 +28,7 @@",
                "           location /p27 { proxy_pass http://x; }",
                "           location /p28 { proxy_pass http://x; }",
                "           location /p29 { proxy_pass http://x; }",
                "        -  location /p30 { proxy_pass http://x; }",
                "        +  location /p30 { proxy_pass http://y; }",
                "           location /p31 { proxy_pass http://x; }",
                "           location /p32 { proxy_pass http://x; }",
                "           location /p33 { proxy_pass http://x; }",
                "      spec.c[name=side]:",
                "        +image: b",
                "        +name: side",
                "      spec.c[name=old]:",
                "        -image: b",
                "        -name: side",
                "",
                "1 to update, 0 as in Git.",
            ],
        );
    }

    #[test]
    fn an_object_that_is_created_is_shown_in_full_and_a_secret_is_not() {
        let plan =
            only(vec![step("/ConfigMap|a/a", Action::Create), step("/Secret|a/b", Action::Create)], vec![]);
        let whole = || vec![found("", None, json!({"data": {"a": "hunter2"}}))];
        check(
            &plan,
            &[("/ConfigMap|a/a", whole()), ("/Secret|a/b", whole())],
            &[
                "Create (2)",
                "  + ConfigMap a/a",
                "        +data:",
                "        +  a: hunter2",
                "  + Secret a/b",
                "      hidden: may contain Secret values",
                "",
                "2 to create, 0 as in Git.",
            ],
        );
    }

    const COLOURS: Style = Style { paint: ColourMode::Colours, ..PLAIN };

    #[test]
    fn colours_are_only_in_colour() {
        let plan = only(vec![step("/ConfigMap|a/a", Action::Create)], vec![]);
        let text = format_plan(&plan, &BTreeMap::new(), COLOURS);
        assert!(
            text.starts_with("\u{1b}[1mCreate (1)\u{1b}[0m\n  \u{1b}[32m+ ConfigMap a/a\u{1b}[0m\n"),
            "{text:?}"
        );
    }

    #[test]
    fn every_hold_says_why() {
        let check = |hold: Hold, expect: &str| assert_eq!(hold.to_string(), expect);
        check(Hold::WaitsFor(id("/Namespace|/a")), "it waits for Namespace a");
        check(
            Hold::NotEmpty(id("/ConfigMap|a/x")),
            "no longer in Git, but ConfigMap a/x would be deleted with it",
        );
        check(Hold::DuplicateOf(id("g/K|a/x")), "it is K.g a/x under another name, which is in Git");
        check(Hold::OwnedBy("ops/other".into()), "the Sync ops/other owns it");
        check(Hold::ClaimedBy("ops/other".into()), "the Sync ops/other claims it and cannot adopt it now");
        check(
            Hold::PossiblyClaimed("ops/other".into()),
            "no longer in Git here, but the Sync ops/other follows the same repository, has not rendered this commit and may claim it",
        );
        check(
            Hold::AwaitsMoveTarget("ops/other".into()),
            "no longer in Git here, but moorline.dev/moves-to names ops/other, which has not polled and rendered its repository since",
        );
        let no_name = "no longer in Git here, but moorline.dev/moves-to is \"An other\", which does not name another Sync";
        check(Hold::AwaitsMoveTarget("\"An other\"".into()), no_name);
        check(
            Hold::ClaimOverdue("\"An other\"".into()),
            &format!("{no_name}; correct it, or approve the deletion"),
        );
        check(
            Hold::AutoscalerUnknown("the server answered 500".into()),
            "an autoscaler may scale it, which cannot be checked now: the server answered 500",
        );
        check(Hold::ReconcileDisabled, "moorline.dev/reconcile is disabled");
    }
}
