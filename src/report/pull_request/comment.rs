//! The comment on a pull request.
//!
//! In: a plan, or the reason why there is none, and the Sync that it is of.
//! Out: Markdown below the limit of each Git host. The first line is a marker, by which the comment
//! is found again and edited.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::comparison::{FieldChange, ObjectChange, PlannedVerb, PullRequestPlan};
use super::markdown::{name, value};

/// Most bytes of a comment: GitHub takes 65,536 characters, the other hosts more.
pub(super) const MAX_COMMENT_BYTES: usize = 65_000;

/// Most problems of a commit that cannot be rendered.
const MAX_PROBLEMS: usize = 10;

/// Most characters of each part of a marker.
const MAX_MARKER_PART: usize = 80;

/// Bytes of the hash in a marker.
const MARKER_HASH_BYTES: usize = 8;

/// The last line of each comment.
pub(super) const WITHOUT_SECRETS: &str =
    "_Rendered without Secrets: variables stand by their names, and encrypted values are not decrypted._\n";

/// The Sync that a plan is of, and its commits.
#[derive(Debug, Clone, Copy)]
pub struct CommentSubject<'a> {
    /// Name of the cluster.
    pub cluster: &'a str,
    /// Namespace of the Sync.
    pub namespace: &'a str,
    /// Name of the Sync.
    pub sync: &'a str,
    /// The revision that is applied.
    pub base: &'a str,
    /// The proposed commit.
    pub head: &'a str,
    /// The page with the whole plan, if there is one. It comes from the settings of the daemon.
    pub link: Option<&'a str>,
}

/// Returns the first line of each comment about a Sync.
pub fn comment_marker(subject: &CommentSubject<'_>) -> String {
    marker("moorline-plan", [subject.cluster, subject.namespace, subject.sync])
}

/// Returns a marker with three names for people, and their hash, because other names may look the
/// same.
pub(super) fn marker(kind: &str, names: [&str; 3]) -> String {
    let part = |text: &str| -> String {
        let fits = |char: &char| char.is_ascii_alphanumeric() || "._:".contains(*char);
        // Two dashes would end the HTML comment.
        text.chars()
            .map(|char| if fits(&char) { char } else { '-' })
            .take(MAX_MARKER_PART)
            .collect::<String>()
    };
    let mut whole = names.map(part).join("/");
    while whole.contains("--") {
        whole = whole.replace("--", "-");
    }
    let mut digest = Sha256::new();
    for name in names {
        digest.update((name.len() as u64).to_be_bytes());
        digest.update(name.as_bytes());
    }
    let digest = digest.finalize();
    let hash: String = digest.iter().take(MARKER_HASH_BYTES).map(|byte| format!("{byte:02x}")).collect();
    format!("<!-- {kind}: {whole} {hash} -->")
}

/// Returns the comment with a plan.
pub fn comment(subject: &CommentSubject<'_>, plan: &PullRequestPlan) -> String {
    let mut text = heading(subject);
    let whole = plan_summary(plan);
    let (counts, same) = whole.rsplit_once(", ").unwrap_or((&whole, ""));
    let _ = writeln!(text, "**{counts}**, {same}.\n");
    // The last lines need room as well.
    let left_out = write_changes(&mut text, plan, MAX_COMMENT_BYTES - 2 * footer(subject, usize::MAX).len());
    text.push_str(&footer(subject, left_out));
    text
}

/// Writes the changes of a plan until the text is as long as it may be. Returns the number of those
/// that are left out.
pub(super) fn write_changes(text: &mut String, plan: &PullRequestPlan, most: usize) -> usize {
    let mut left_out = 0;
    let mut last = None;
    for change in &plan.changes {
        let mut part = String::new();
        if last != Some(change.verb) {
            let _ = write!(part, "\n**{}**\n\n", title(change.verb));
        }
        write_change(&mut part, change);
        if left_out > 0 || text.len() + part.len() > most {
            left_out += 1;
            continue;
        }
        last = Some(change.verb);
        text.push_str(&part);
    }
    left_out
}

/// Returns the comment about a commit that cannot be planned.
pub fn refusal_comment(subject: &CommentSubject<'_>, problems: &[String]) -> String {
    let mut text = heading(subject);
    text.push_str("This commit cannot be planned:\n\n");
    write_problems(&mut text, problems);
    text.push_str(&footer(subject, 0));
    text
}

/// Writes the problems of a commit that cannot be planned.
pub(super) fn write_problems(text: &mut String, problems: &[String]) {
    for problem in problems.iter().take(MAX_PROBLEMS) {
        let _ = writeln!(text, "- {}", name(problem));
    }
    if problems.len() > MAX_PROBLEMS {
        let _ = writeln!(text, "- and {} more", problems.len() - MAX_PROBLEMS);
    }
}

fn heading(subject: &CommentSubject<'_>) -> String {
    let CommentSubject { cluster, namespace, sync, base, head, .. } = subject;
    let sync = name(&format!("{namespace}/{sync}"));
    format!(
        "{}\n### Plan of Sync {sync} on {}\n\n{} against {}: ",
        comment_marker(subject),
        name(cluster),
        name(head),
        name(base)
    )
}

/// Returns the number of objects by verb, in one line.
pub fn plan_summary(plan: &PullRequestPlan) -> String {
    let verbs = [
        (PlannedVerb::Create, "to create"),
        (PlannedVerb::Adopt, "to adopt"),
        (PlannedVerb::Update, "to update"),
        (PlannedVerb::Prune, "to prune"),
        (PlannedVerb::PruneByApproval, "to prune by approval"),
        (PlannedVerb::Keep, "no longer in Git"),
        (PlannedVerb::Hold, "held (another Sync owns it)"),
    ];
    let count = |verb| plan.changes.iter().filter(|change| change.verb == verb).count();
    let mut parts: Vec<String> = verbs
        .into_iter()
        .map(|(verb, words)| (count(verb), words))
        .filter(|(count, _)| *count > 0)
        .map(|(count, words)| format!("{count} {words}"))
        .collect();
    if parts.is_empty() {
        parts.push("nothing changes".to_owned());
    }
    format!("{}, {} as before", parts.join(", "), plan.same)
}

fn title(verb: PlannedVerb) -> &'static str {
    match verb {
        PlannedVerb::Prune => "Prune",
        PlannedVerb::PruneByApproval => "Prune, after an approval",
        PlannedVerb::Keep => "No longer in Git, and kept",
        PlannedVerb::Hold => "Held: another Sync owns it",
        PlannedVerb::Adopt => "Adopt",
        PlannedVerb::Create => "Create",
        PlannedVerb::Update => "Update",
    }
}

fn write_change(text: &mut String, change: &ObjectChange) {
    let _ = writeln!(text, "- {}", name(&change.id.to_string()));
    for FieldChange { path, values, live } in &change.fields {
        let _ = match values {
            None => writeln!(text, "  - {}: values are not shown", name(path)),
            Some((before, after)) => {
                let live = live.as_ref().map(|live| format!(" (live: {})", value(Some(live))));
                let (before, after) = (value(before.as_ref()), value(after.as_ref()));
                writeln!(text, "  - {}: {before} → {after}{}", name(path), live.unwrap_or_default())
            }
        };
    }
    if change.more > 0 {
        let _ = writeln!(text, "  - and {} fields more", change.more);
    }
}

/// The last lines: what is left out, and what a plan of a pull request does not know.
fn footer(subject: &CommentSubject<'_>, left_out: usize) -> String {
    let mut text = rest(left_out, subject.link);
    text.push_str(WITHOUT_SECRETS);
    text
}

/// The number of objects that are left out, and the page with all of them.
pub(super) fn rest(left_out: usize, link: Option<&str>) -> String {
    let mut text = String::from("\n");
    if left_out > 0 {
        let _ = writeln!(text, "And {left_out} objects more.\n");
    }
    if let Some(link) = link.filter(|link| is_plain_link(link)) {
        let _ = writeln!(text, "[The Sync]({link})\n");
    }
    text
}

/// True for a link without a character that would end it.
fn is_plain_link(link: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_graphic() && !"()<>[]\\`".contains(char);
    (link.starts_with("https://") || link.starts_with("http://")) && link.chars().all(is_plain)
}
