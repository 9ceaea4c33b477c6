//! Prints a proposal as text for people, and as a YAML document.
//!
//! In: a proposal. Out: the Sync, the fields that are not carried over, the future of the old
//! tool's objects, the plan as `moorline plan` prints it, and everything that has to change first.

use serde_json::{Value, json};

use super::super::Streams;
use super::super::operate::write;
use super::proposal::{OwnedState, Proposal};
use crate::adopt::FieldRemark;
use crate::object::ObjectId;
use crate::plan::{ColourMode, DetailLevel, Style, format_plan, plan_document};
use crate::yaml;

/// Prints a proposal for people.
pub(super) fn text(
    proposal: &Proposal<'_>,
    paint: ColourMode,
    streams: &mut Streams<'_>,
) -> std::io::Result<()> {
    let gathered = proposal.gathered;
    let existing = if proposal.sync_exists { ", which exists already" } else { "" };
    let mut out = format!("The Sync {} replaces {}{existing}:\n\n", proposal.sync, gathered.display_name());
    for line in yaml::write(&proposal.adoption.sync).lines() {
        out.push_str(&format!("  {line}\n"));
    }
    remarks(&mut out, "Not carried over", '-', &proposal.adoption.lost);
    objects(&mut out, proposal);
    append_leftovers(&mut out, proposal);
    if let Some((plan, preview)) = proposal.planned() {
        write(&format!("{out}\nThe plan\n\n"), streams)?;
        let style = Style { paint, extent: DetailLevel::Brief };
        // The plan has its colours, and it is sanitized already: sanitizing again would remove
        // them.
        streams.data.write_all(format_plan(plan, &preview.differences, style).as_bytes())?;
        out = String::new();
    }
    remarks(&mut out, "Refused", '!', &proposal.adoption.refused);
    if let Some(revision) = &proposal.revision {
        streams.say(&format!("note: this is the plan for {revision}"));
    }
    write(&out, streams)
}

/// Appends remarks, one a line.
pub(super) fn remarks(out: &mut String, title: &str, sign: char, all: &[FieldRemark]) {
    if all.is_empty() {
        return;
    }
    out.push_str(&format!("\n{title} ({})\n", all.len()));
    for remark in all {
        out.push_str(&format!("  {sign} {}: {}\n", remark.field, remark.why));
    }
}

/// Appends the objects that the old tool owns. Those that are adopted are in the plan one by one.
fn objects(out: &mut String, proposal: &Proposal<'_>) {
    if proposal.planned().is_none() {
        return;
    }
    let tool = proposal.gathered.tool.name();
    let in_git =
        proposal.owned.iter().filter(|(_, it)| matches!(it, OwnedState::InGit | OwnedState::Shared(_)));
    let count = proposal.owned.len();
    out.push_str(&format!("\nOwned by {tool} ({count}): Git has {} of them\n", in_git.count()));
    for (id, standing) in &proposal.owned {
        let told = match standing {
            OwnedState::InGit | OwnedState::Gone => continue,
            OwnedState::NotInGit => "not in Git: it stays unchanged, and no Sync owns it".to_owned(),
            OwnedState::Shared(other) => {
                format!("{other} owns it as well: adopt that, too, or remove the object from it")
            }
        };
        out.push_str(&format!("  ! {id}: {told}\n"));
    }
    if proposal.unparsed_entries > 0 {
        out.push_str(&format!("  ! {} entries of its status name no object\n", proposal.unparsed_entries));
    }
}

/// The most fields that are listed for one object; the rest is counted.
const MAX_FIELDS: usize = 12;

/// Appends the fields that stay although Git does not have them.
fn append_leftovers(out: &mut String, proposal: &Proposal<'_>) {
    if proposal.leftovers.is_empty() {
        return;
    }
    let tool = proposal.gathered.tool.name();
    out.push_str(&format!(
        "\nSet by {tool}, and not in Git ({}): these fields stay until you remove them\n",
        proposal.leftovers.len()
    ));
    for (id, fields) in &proposal.leftovers {
        let more = fields.len().saturating_sub(MAX_FIELDS);
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        let shown: Vec<&str> = fields.iter().take(MAX_FIELDS).map(String::as_str).collect();
        out.push_str(&format!("  ! {id}: {}{more}\n", shown.join(", ")));
    }
}

/// Returns remarks as a document.
pub(super) fn told(all: &[FieldRemark]) -> Vec<Value> {
    all.iter().map(|remark| json!({"field": remark.field, "message": remark.why})).collect()
}

/// Prints a proposal as a document.
pub(super) fn yaml(proposal: &Proposal<'_>, streams: &mut Streams<'_>) -> std::io::Result<()> {
    let ids = |fits: fn(&OwnedState) -> bool| -> Vec<&str> {
        let fitting = proposal.owned.iter().filter(|(_, standing)| fits(standing));
        fitting.map(|(id, _): &(ObjectId, OwnedState)| id.as_str()).collect()
    };
    let shared = proposal.owned.iter().filter_map(|(id, standing)| match standing {
        OwnedState::Shared(other) => Some(json!({"id": id.as_str(), "with": other})),
        OwnedState::InGit | OwnedState::NotInGit | OwnedState::Gone => None,
    });
    let left = proposal.leftovers.iter().map(|(id, fields)| json!({"id": id.as_str(), "fields": fields}));
    let plan = proposal.planned().map(|(plan, preview)| plan_document(plan, &preview.differences));
    let whole = json!({
        "sync": proposal.adoption.sync,
        "lost": told(&proposal.adoption.lost),
        "refused": told(&proposal.adoption.refused),
        "owned": {
            "inGit": ids(|it| matches!(it, OwnedState::InGit | OwnedState::Shared(_))),
            "notInGit": ids(|it| *it == OwnedState::NotInGit),
            "gone": ids(|it| *it == OwnedState::Gone),
            "shared": shared.collect::<Vec<_>>(),
        },
        "left": left.collect::<Vec<_>>(),
        "revision": proposal.revision,
        "plan": plan,
    });
    streams.data.write_all(yaml::write(&whole).as_bytes())?;
    streams.data.flush()
}
