//! Data model of the rules for third-party kinds.
//!
//! In: the documented statuses of a project, written down as a [`KindRule`].
//! Out: a closed set of checks that `evaluate.rs` runs and `describe.rs` documents. So the
//! documentation covers all that a rule can do, and all verdicts of a rule are known before any
//! object is read.
//!
//! A path consists of field names separated by dots, such as `status.phase`. Only annotations and
//! labels have dots in their names, and those have variants of [`Switch`] of their own.

use super::super::Health;
use super::super::live::Live;

/// A project, and its rules in the order in which they are tried.
pub(super) struct Project {
    pub(super) name: &'static str,
    pub(super) rows: &'static [Row],
}

/// Kinds with the same rule.
pub(super) struct Row {
    /// API group, or `*.` with the suffix of all matching groups.
    pub(super) group: &'static str,
    /// Kinds, or `*` with the suffix of all matching kinds.
    pub(super) kinds: &'static [&'static str],
    pub(super) says: Says,
}

pub(super) enum Says {
    /// No controller reports a status, so there is nothing to wait for.
    Nothing,
    /// A controller reports a status; an object may progress for so many minutes without a change.
    Status { rule: Rule, minutes: i64 },
}

/// Way to read a status. All checks run; the worst result counts.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) generation: Generation,
    pub(super) silence: Silence,
    /// Any of these switches suspends the object.
    pub(super) asleep: &'static [Switch],
    /// With any of these switches the controller never reports anything, so the object is healthy.
    pub(super) mute: &'static [Switch],
    pub(super) readings: &'static [Reading],
}

/// Place of the observed generation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    /// Always in `status.observedGeneration`: a status without it counts as missing.
    InStatus,
    /// In the conditions, or in the status of newer versions: it counts if it exists.
    WhereWritten,
    /// Not written at all.
    Nowhere,
}

/// Meaning of a missing status.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Silence {
    /// The controller has not processed the object yet.
    Waits,
    /// Healthy: the controller reports only failures.
    Fine,
    /// As for kinds without a rule: older versions of the project, or other controllers, report
    /// nothing.
    Perhaps,
}

/// Setting by which a person pauses a controller.
#[derive(Clone, Copy)]
pub(super) enum Switch {
    /// The field is true.
    True(&'static str),
    /// The field has this text.
    Is(&'static str, &'static str),
    /// The annotation exists, with any value.
    Noted(&'static str),
    /// The annotation has this value.
    Annotation(&'static str, &'static str),
    /// The label has this value.
    Label(&'static str, &'static str),
}

/// One check of a status.
#[derive(Clone, Copy)]
pub(super) enum Reading {
    /// The condition must exist and be true.
    Needs(&'static str, IfFalse),
    /// The condition must be true if it exists.
    Heeds(&'static str, IfFalse),
    /// Conditions that are true in case of a failure.
    Trouble(&'static [&'static str]),
    /// Optional conditions that are false in case of a failure; the object progresses while one
    /// belongs to an older generation.
    Refused(&'static [&'static str]),
    /// Conditions that are true during an operation.
    Busy(&'static [&'static str]),
    /// Conditions that are true while the controller is paused.
    Rests(&'static [&'static str]),
    /// The value of a field, from a known list.
    Word(Word),
    /// A count that must reach another.
    Count(Count),
    /// A field that must be `true`.
    Flag(&'static str, IfFalse),
    /// A text, or a list of texts, that is set in case of a failure.
    Complaint(&'static str),
    /// A function, for statuses that no other check fits.
    Odd(Odd),
}

/// Meaning of the status False; `Unknown` always means progressing.
#[derive(Clone, Copy)]
pub(super) enum IfFalse {
    /// Progressing.
    Waits,
    /// Degraded.
    Fails,
    /// Degraded, except with these reasons: progressing.
    FailsBut(&'static [&'static str]),
    /// Degraded with a reason of failure (`...Failed`, `...Error`, `Invalid...`), else progressing.
    ByReason,
}

/// Check of a field with a fixed set of values. A value outside of all lists makes the health
/// Unknown: as Progressing it would become Degraded at the deadline, although its meaning is not
/// known.
#[derive(Clone, Copy)]
pub(super) struct Word {
    pub(super) at: &'static str,
    pub(super) well: &'static [&'static str],
    pub(super) busy: &'static [&'static str],
    pub(super) wrong: &'static [&'static str],
    pub(super) asleep: &'static [&'static str],
    /// Path of a message that explains the value.
    pub(super) message: &'static str,
    /// If true, an object without the field is progressing; else the other checks decide.
    pub(super) needed: bool,
    /// If true, values are free text about an operation: any unlisted value means progressing.
    pub(super) open: bool,
}

/// Defaults that fit most kinds.
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

/// Check of two counts, or of the lengths of two lists.
#[derive(Clone, Copy)]
pub(super) struct Count {
    pub(super) have: &'static str,
    /// Path of the wanted count; empty if it is always `default_wanted`.
    pub(super) of: &'static str,
    /// Wanted count if the path `wanted` has no value.
    pub(super) or: u64,
    /// Noun for one of the counted things.
    pub(super) noun: &'static str,
    /// State that the counted things must reach.
    pub(super) be: &'static str,
    /// If true, a missing first count is 0; else the other checks decide.
    pub(super) needed: bool,
}

/// Defaults that fit most kinds.
pub(super) const COUNT: Count = Count {
    have: "status.readyReplicas",
    of: "spec.replicas",
    or: 1,
    noun: "replica",
    be: "ready",
    needed: true,
};

/// Check by a function, with all verdicts that it can give.
#[derive(Clone, Copy)]
pub(super) struct Odd {
    /// Condition for health, as text for the documentation.
    pub(super) words: &'static str,
    pub(super) answers: &'static [Answer],
    /// Returns `None` if the status says nothing about it.
    pub(super) judge: fn(Live<'_>) -> Option<Health>,
}

/// Verdict of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// The object is as it should be.
    Healthy,
    /// The object is not ready yet.
    Progressing,
    /// The object is progressing, because its status belongs to an older generation.
    Stale,
    /// The object failed.
    Degraded,
    /// A person or another tool paused the object.
    Suspended,
    /// The status does not allow a verdict.
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
