//! What a rule for another project's kind is made of: data, not code.
//!
//! In: what a project documents of its statuses, written down as a [`Row`]. Out: the closed set of shapes that `reading.rs`
//! reads and `words.rs` puts into words. A row cannot do anything that the documentation of all rows does not say, and
//! whatever a row can answer is known before any object is seen.
//!
//! A place is a path of field names with dots, such as `status.phase`; names that have dots of their own are annotations and
//! labels only, and those have a [`Switch`] for themselves.

use super::super::Health;
use super::super::live::Live;

/// A project, and its kinds in the order in which they are looked for.
pub(super) struct Project {
    pub(super) name: &'static str,
    pub(super) rows: &'static [Row],
}

/// Kinds that report in the same way.
pub(super) struct Row {
    /// A group, or `*.` with the end of all groups that are meant.
    pub(super) group: &'static str,
    /// Kinds, or `*` with the end of all kinds that are meant.
    pub(super) kinds: &'static [&'static str],
    pub(super) says: Says,
}

pub(super) enum Says {
    /// They only say something: nobody reports of them, and nobody has to wait.
    Nothing,
    /// They report, and may be on their way for so many minutes without coming further.
    Status { rule: Rule, minutes: i64 },
}

/// How a status is read. Every reading is asked; the worst answer counts.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) generation: Generation,
    pub(super) silence: Silence,
    /// Any of them on, and the object rests because somebody wishes it.
    pub(super) asleep: &'static [Switch],
    /// Any of them on, and nothing is reported of the object, now or later.
    pub(super) mute: &'static [Switch],
    pub(super) readings: &'static [Reading],
}

/// Where the controller writes the generation that it has seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// In `status.observedGeneration`, always: a status without it is none.
    InStatus,
    /// In its conditions, or in the status of newer versions: where it stands, it counts.
    WhereWritten,
    /// Nowhere.
    Nowhere,
}

/// What it means that an object has no status.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Silence {
    /// Its controller has not looked at it yet.
    Waits,
    /// Nothing: only trouble is reported.
    Fine,
    /// As with a kind that no rule is for: older versions of the project, or other controllers, report nothing.
    Perhaps,
}

/// What somebody sets to stop a controller.
#[derive(Clone, Copy)]
pub(super) enum Switch {
    /// A field is true.
    True(&'static str),
    /// A field is this text.
    Is(&'static str, &'static str),
    /// An annotation is there, whatever its value.
    Noted(&'static str),
    /// An annotation has this value.
    Annotation(&'static str, &'static str),
    /// A label has this value.
    Label(&'static str, &'static str),
}

/// One thing that is read of a status.
#[derive(Clone, Copy)]
pub(super) enum Reading {
    /// A condition that has to be there and true.
    Needs(&'static str, IfFalse),
    /// A condition that has to be true where it is reported.
    Heeds(&'static str, IfFalse),
    /// Conditions that are true when something is wrong.
    Trouble(&'static [&'static str]),
    /// Conditions that are false when something is wrong, and that nobody has to report; one of an older generation is
    /// waited for.
    Refused(&'static [&'static str]),
    /// Conditions that are true while something goes on.
    Busy(&'static [&'static str]),
    /// Conditions that are true while the controller was asked to stop.
    Rests(&'static [&'static str]),
    /// A word of a known list.
    Word(Word),
    /// A count that has to reach another.
    Count(Count),
    /// A field that has to be `true`.
    Flag(&'static str, IfFalse),
    /// A text, or a list of texts, that is there when something is wrong.
    Complaint(&'static str),
    /// What no shape fits.
    Odd(Odd),
}

/// What it means that something is False; `Unknown` always means that it is on its way.
#[derive(Clone, Copy)]
pub(super) enum IfFalse {
    /// It is on its way.
    Waits,
    /// It has failed.
    Fails,
    /// It has failed, but is on its way with these reasons.
    FailsBut(&'static [&'static str]),
    /// It has failed where the reason is one of failure (`...Failed`, `...Error`, `Invalid...`), else it is on its way.
    ByReason,
}

/// A word of the controller. One that stands in no list makes the health Unknown: it may mean anything, and waiting for it
/// would end in the claim that something failed.
#[derive(Clone, Copy)]
pub(super) struct Word {
    pub(super) at: &'static str,
    pub(super) well: &'static [&'static str],
    pub(super) busy: &'static [&'static str],
    pub(super) wrong: &'static [&'static str],
    pub(super) asleep: &'static [&'static str],
    /// Where the controller says more.
    pub(super) message: &'static str,
    /// An object without the word has not come to it yet; else the other readings decide.
    pub(super) needed: bool,
    /// Words are sentences about what goes on, too many to list: any other one is on its way.
    pub(super) open: bool,
}

/// What most words have in common.
pub(super) const WORD: Word = Word {
    at: "status.phase",
    well: &[],
    busy: &[],
    wrong: &[],
    asleep: &[],
    message: "status.message",
    needed: true,
    open: false,
};

/// Two counts, or lengths of lists.
#[derive(Clone, Copy)]
pub(super) struct Count {
    pub(super) have: &'static str,
    /// Empty where always as many are wanted.
    pub(super) of: &'static str,
    /// How many are wanted where `of` does not say it.
    pub(super) or: u64,
    /// One of what is counted.
    pub(super) noun: &'static str,
    /// What it has to be.
    pub(super) be: &'static str,
    /// An object without the first count has none; else the other readings decide.
    pub(super) needed: bool,
}

/// What most counts have in common.
pub(super) const COUNT: Count = Count {
    have: "status.readyReplicas",
    of: "spec.replicas",
    or: 1,
    noun: "replica",
    be: "ready",
    needed: true,
};

/// A function with all that it may answer.
#[derive(Clone, Copy)]
pub(super) struct Odd {
    /// When it finds nothing amiss, in words.
    pub(super) words: &'static str,
    pub(super) answers: &'static [Answer],
    /// None where the status does not say anything of it.
    pub(super) judge: fn(Live<'_>) -> Option<Health>,
}

/// What a rule may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// It is as it should be.
    Healthy,
    /// It is on its way.
    Progressing,
    /// It is on its way, because the status speaks of an older generation.
    Stale,
    /// It failed.
    Degraded,
    /// It was asked to stop.
    Suspended,
    /// Nobody can tell.
    Unknown,
}

pub(super) const fn row(
    group: &'static str,
    kinds: &'static [&'static str],
    minutes: i64,
    rule: Rule,
) -> Row {
    Row { group, kinds, says: Says::Status { rule, minutes } }
}

pub(super) const fn still(group: &'static str, kinds: &'static [&'static str]) -> Row {
    Row { group, kinds, says: Says::Nothing }
}

pub(super) const fn reads(generation: Generation, readings: &'static [Reading]) -> Rule {
    Rule { generation, silence: Silence::Waits, asleep: &[], mute: &[], readings }
}

impl Rule {
    pub(super) const fn asleep(self, asleep: &'static [Switch]) -> Self {
        Self { asleep, ..self }
    }

    pub(super) const fn mute(self, mute: &'static [Switch]) -> Self {
        Self { mute, ..self }
    }

    pub(super) const fn silent(self, silence: Silence) -> Self {
        Self { silence, ..self }
    }
}
