//! The comment of a Notifier on a pull request: the plans of all Syncs that it touches.
//!
//! In: the plan of each Sync, as a section. Out: one comment below the limit of each Git host, and
//! its record. Long sections are cut first, so that each Sync has its part.

use std::fmt::Write as _;

use super::comment::{
    MAX_COMMENT_BYTES, WITHOUT_SECRETS, marker, plan_summary, rest, write_changes, write_problems,
};
use super::comparison::PullRequestPlan;
use super::markdown::name;
use super::plan_record::{PlanRecord, with_record};

/// Most bytes that the headings of the sections take; the other Syncs are counted.
const MAX_HEADING_BYTES: usize = 40_000;
/// Minimum number of bytes of a section, also with many Syncs.
const LEAST_SECTION_BYTES: usize = 8_000;

/// The Notifier that has a comment, and the commit that it is about.
#[derive(Debug, Clone, Copy)]
pub struct GroupSubject<'a> {
    /// Name of the cluster.
    pub cluster: &'a str,
    /// Namespace of the Notifier.
    pub namespace: &'a str,
    /// Name of the Notifier.
    pub notifier: &'a str,
    /// The proposed commit.
    pub head: &'a str,
}

/// The part of a comment that is about one Sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanSection {
    /// The Sync, as namespace/name.
    sync: Box<str>,
    /// The revision that is applied.
    base: Box<str>,
    /// The result in one line.
    result: String,
    /// The changed objects, or the problems.
    body: String,
    /// The number of objects that are left out already.
    left_out: usize,
    /// The page of the Sync.
    link: Option<Box<str>>,
}

impl PlanSection {
    /// Returns the section of a plan; `syncs` is the number of Syncs that may have one.
    pub fn planned(
        (sync, base, link): (&str, &str, Option<&str>),
        plan: &PullRequestPlan,
        syncs: usize,
    ) -> Self {
        let whole = plan_summary(plan);
        let (counts, same) = whole.rsplit_once(", ").unwrap_or((&whole, ""));
        let mut body = String::new();
        let most = (MAX_COMMENT_BYTES / syncs.max(1)).max(LEAST_SECTION_BYTES);
        let left_out = write_changes(&mut body, plan, most);
        Self { result: format!("**{counts}**, {same}."), body, left_out, ..Self::pending(sync, base, link) }
    }

    /// Returns the section about a commit that cannot be planned.
    pub fn refused((sync, base, link): (&str, &str, Option<&str>), problems: &[String]) -> Self {
        let mut body = String::from("\n");
        write_problems(&mut body, problems);
        let result = "This commit cannot be planned:".to_owned();
        Self { result, body, ..Self::pending(sync, base, link) }
    }

    /// Returns the section of a Sync that could not be planned yet.
    pub fn pending(sync: &str, base: &str, link: Option<&str>) -> Self {
        Self {
            sync: sync.into(),
            base: base.into(),
            result: "There is no plan yet; it is tried again.".to_owned(),
            body: String::new(),
            left_out: 0,
            link: link.map(Box::from),
        }
    }

    fn heading(&self, has_base: bool) -> String {
        let mut text = format!("\n#### Sync {}\n\n", name(&self.sync));
        if has_base && !self.base.is_empty() {
            let _ = write!(text, "Against {}: ", name(&self.base));
        }
        let _ = writeln!(text, "{}", self.result);
        text
    }

    /// Returns the whole objects that fit, and the number of the others.
    fn body_within(&self, most: usize) -> (&str, usize) {
        if self.body.len() <= most {
            return (&self.body, self.left_out);
        }
        let starts = self.body.match_indices("\n- ").map(|(at, _)| at + 1);
        let end = starts.take_while(|at| *at <= most).last().unwrap_or_default();
        let (kept, cut) = self.body.split_at(end);
        (kept, self.left_out + cut.lines().filter(|line| line.starts_with("- ")).count())
    }
}

/// Returns the first line of the comment of a Notifier.
pub fn group_marker(subject: &GroupSubject<'_>) -> String {
    marker("moorline-plans", [subject.cluster, subject.namespace, subject.notifier])
}

/// Returns the comment with all sections, and its record.
pub fn group_comment(subject: &GroupSubject<'_>, sections: &[PlanSection]) -> (String, PlanRecord) {
    let record = PlanRecord::new(subject.head, &compose(subject, sections, false));
    (with_record(&compose(subject, sections, true), &record), record)
}

fn compose(subject: &GroupSubject<'_>, sections: &[PlanSection], has_base: bool) -> String {
    let (marker, head, cluster) = (group_marker(subject), name(subject.head), name(subject.cluster));
    let mut text = format!("{marker}\n### Plan of {head} on {cluster}\n");
    // A heading, and the last lines of its section.
    let fixed = |section: &PlanSection| {
        section.heading(has_base).len() + rest(usize::MAX, section.link.as_deref()).len()
    };
    let mut taken = 0;
    let shown = sections.iter().take_while(|section| {
        taken += fixed(section);
        taken <= MAX_HEADING_BYTES
    });
    let shown: Vec<&PlanSection> = shown.collect();
    let headings: usize = shown.iter().map(|section| fixed(section)).sum();
    let more = match sections.len() - shown.len() {
        0 => String::new(),
        more => format!("\nAnd {more} more Syncs: each has a status on the commit.\n"),
    };
    let room =
        MAX_COMMENT_BYTES.saturating_sub(text.len() + headings + more.len() + WITHOUT_SECRETS.len() + 1);
    let most = fair_share(room, shown.iter().map(|section| section.body.len()).collect());
    for section in shown {
        let (body, left_out) = section.body_within(most);
        text.push_str(&section.heading(has_base));
        text.push_str(body);
        text.push_str(&rest(left_out, section.link.as_deref()));
    }
    format!("{text}{more}\n{WITHOUT_SECRETS}")
}

/// Returns the bytes that each may have: short ones leave theirs to the others.
fn fair_share(mut room: usize, mut lengths: Vec<usize>) -> usize {
    lengths.sort_unstable();
    let count = lengths.len();
    for (at, length) in lengths.into_iter().enumerate() {
        let share = room / (count - at);
        if length > share {
            return share;
        }
        room -= length;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::super::{ObjectChange, PlannedVerb};
    use super::*;
    use crate::object::ObjectId;

    fn plan(objects: usize) -> PullRequestPlan {
        let change = |at: usize| ObjectChange {
            id: ObjectId::new("", "ConfigMap", "shop", &format!("map-{at}")).unwrap(),
            verb: PlannedVerb::Create,
            fields: Vec::new(),
            more: 0,
        };
        PullRequestPlan { changes: (0..objects).map(change).collect(), same: 3 }
    }

    const SUBJECT: GroupSubject<'_> =
        GroupSubject { cluster: "prod", namespace: "shop", notifier: "github", head: "8c5d" };

    #[test]
    fn one_comment_has_the_plans_of_all_syncs() {
        let section = |base| {
            [
                PlanSection::planned(("shop/web", base, Some("https://host/web")), &plan(1), 3),
                PlanSection::refused(("shop/api", base, None), &["`@all` is invalid".to_owned()]),
                PlanSection::pending("shop/db", base, None),
            ]
        };
        let (text, record) = group_comment(&SUBJECT, &section("main@1f0c"));
        let expect = "### Plan of `8c5d` on `prod`

#### Sync `shop/web`

Against `main@1f0c`: **1 to create**, 3 as before.

**Create**

- `ConfigMap shop/map-0`

[The Sync](https://host/web)


#### Sync `shop/api`

Against `main@1f0c`: This commit cannot be planned:

- `` `@all` is invalid ``


#### Sync `shop/db`

Against `main@1f0c`: There is no plan yet; it is tried again.


_Rendered without Secrets";
        let (first, after) = text.split_once('\n').unwrap();
        assert_eq!(first, group_marker(&SUBJECT));
        assert!(after.starts_with(expect), "{after}");
        // Another base is no other plan, and another plan is.
        assert_eq!(group_comment(&SUBJECT, &section("main@2222")).1, record);
        assert_ne!(group_comment(&SUBJECT, &section("main@1f0c")[..2]).1, record);
    }

    #[test]
    fn a_comment_of_many_plans_stays_below_the_limit() {
        for (syncs, objects, shows_all) in
            [(1, 5000, true), (2, 5000, true), (60, 200, true), (2000, 3, false)]
        {
            let link = Some("https://host/");
            let section = |at: usize| {
                let sync = format!("shop/sync-{at}");
                // Every second plan is short.
                let plan = plan(if at.is_multiple_of(2) { objects } else { 1 });
                PlanSection::planned((&sync, "main@1f0c", link), &plan, syncs)
            };
            let sections: Vec<PlanSection> = (0..syncs).map(section).collect();
            let (text, _) = group_comment(&SUBJECT, &sections);
            assert!(text.len() < MAX_COMMENT_BYTES + 200, "{syncs}: {}", text.len());
            assert!(text.len() > MAX_COMMENT_BYTES / 2, "{syncs}: {}", text.len());
            let shown = text.matches("#### Sync").count();
            assert_eq!(shown == syncs, shows_all, "{shown} of {syncs}");
            let objects_of: usize = text
                .lines()
                .filter_map(|line| {
                    line.strip_prefix("And ")?.strip_suffix(" objects more.")?.parse::<usize>().ok()
                })
                .sum();
            let listed = text.matches("- `ConfigMap").count();
            let all: usize = (0..shown).map(|at| if at.is_multiple_of(2) { objects } else { 1 }).sum();
            assert_eq!(listed + objects_of, all, "{syncs}");
            if !shows_all {
                assert!(text.contains(&format!("And {} more Syncs", syncs - shown)), "{text}");
            }
        }
    }
}
