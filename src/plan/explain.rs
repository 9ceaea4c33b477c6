//! A plan as people read it: grouped by what is done, in the order in which it is done.
//!
//! Values of Secrets are never shown; that a field of one changes is.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;

use super::difference::Difference;
use super::{Action, Change, Hold, Plan, Step};
use crate::api::APPROVE_ANNOTATION;
use crate::object::ObjectId;

/// Longer values are cut: a plan is read, not stored.
const MAX_SHOWN_VALUE: usize = 60;

/// More fields of one object are counted, not listed.
const MAX_SHOWN_FIELDS: usize = 12;

/// How a plan is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// With the colours of a terminal.
    Colours,
    /// As plain text.
    Plain,
}

/// The text of a plan. `differences` names the fields of the objects that are updated, where they are known.
pub fn explain(plan: &Plan, differences: &BTreeMap<ObjectId, Vec<Difference>>, paint: Paint) -> String {
    let mut text = Text { out: String::new(), paint };
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
        let count = plan.waiting().len();
        let (objects, them) = if count == 1 { ("object", "it") } else { ("objects", "them") };
        let _ = writeln!(
            text.out,
            "\n{count} {objects} to prune wait for approval. To prune {them}, annotate the Sync: {APPROVE_ANNOTATION}: {approval:?}"
        );
    }
    let _ = writeln!(text.out, "{}{}", if text.out.is_empty() { "" } else { "\n" }, summary(plan));
    text.out
}

/// The plan in one line.
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

struct Text {
    out: String,
    paint: Paint,
}

impl Text {
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
            Action::Adopt { managers } if managers.is_empty() => {
                ('+', "it is there, and nobody's".to_owned())
            }
            Action::Adopt { managers } => ('+', format!("so far written by {}", managers.join(", "))),
            Action::Update(Change::Committed) => ('~', "changed in Git".to_owned()),
            Action::Update(Change::Drifted(drift)) => {
                ('~', format!("changed live by {}", drift.manager.as_deref().unwrap_or("somebody")))
            }
            Action::Update(Change::EntryLost) => ('~', "the record of what we applied is gone".to_owned()),
            Action::Update(Change::Unverified) => ('~', "not looked at since the start".to_owned()),
            Action::HandOver { to } => ('>', format!("to the Sync {to}")),
            Action::Prune { .. } => ('-', "no longer in Git".to_owned()),
        };
        self.line(sign, &step.id, &reason);
        let known = match &step.action {
            Action::Update(Change::Drifted(drift)) => drift.fields.as_slice(),
            Action::Update(Change::Committed | Change::EntryLost | Change::Unverified)
            | Action::Create
            | Action::Adopt { .. }
            | Action::HandOver { .. }
            | Action::Prune { .. } => &[],
        };
        self.fields(&step.id, differences, known);
    }

    fn line(&mut self, sign: char, id: &ObjectId, reason: &str) {
        let colour = match sign {
            '+' => "32",
            '-' => "31",
            _ => "33",
        };
        let painted = self.painted(&format!("{sign} {}", harmless(&id.to_string())), colour);
        let _ = match reason {
            "" => writeln!(self.out, "  {painted}"),
            reason => writeln!(self.out, "  {painted}: {}", harmless(reason)),
        };
    }

    /// The fields of an object, with their values where both are known and no secret.
    fn fields(&mut self, id: &ObjectId, differences: &[Difference], known: &[String]) {
        let secret = id.is("", "Secret");
        let values = |found: &Difference| match (secret, &found.live) {
            (true, _) => format!("{}: (values of Secrets are not shown)", found.path),
            (false, None) => format!("{}: {} is missing", found.path, shown(&found.wanted)),
            (false, Some(live)) => format!("{}: {} -> {}", found.path, shown(live), shown(&found.wanted)),
        };
        let lines: Vec<String> = match differences {
            [] => known.to_vec(),
            found => found.iter().map(values).collect(),
        };
        for line in lines.iter().take(MAX_SHOWN_FIELDS) {
            let _ = writeln!(self.out, "      {}", harmless(line));
        }
        if lines.len() > MAX_SHOWN_FIELDS {
            let _ = writeln!(self.out, "      and {} more fields", lines.len() - MAX_SHOWN_FIELDS);
        }
    }

    fn painted(&self, text: &str, colour: &str) -> String {
        match self.paint {
            Paint::Colours => format!("\u{1b}[{colour}m{text}\u{1b}[0m"),
            Paint::Plain => text.to_owned(),
        }
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_SHOWN_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Text of a cluster without what a terminal would obey.
fn harmless(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}
