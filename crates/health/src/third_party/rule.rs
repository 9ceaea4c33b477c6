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
use crate::object_view::ObjectView;

/// A project, and its rules in the order in which they are tried.
pub(super) struct Project {
    pub(super) name: &'static str,
    pub(super) rows: &'static [KindRule],
}

/// Kinds with the same rule.
pub(super) struct KindRule {
    /// API group, or `*.` with the suffix of all matching groups.
    pub(super) group: &'static str,
    /// Kinds, or `*` with the suffix of all matching kinds.
    pub(super) kinds: &'static [&'static str],
    pub(super) reporting: Reporting,
}

pub(super) enum Reporting {
    /// No controller reports a status, so there is nothing to wait for.
    Never,
    /// A controller reports a status; an object may progress for so many minutes without a change.
    Status { rule: Rule, minutes: i64 },
}

/// Way to read a status. All checks run; the worst result counts.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) generation: Generation,
    pub(super) missing_status: MissingStatus,
    /// Any of these switches suspends the object.
    pub(super) suspended_by: &'static [Switch],
    /// With any of these switches the controller never reports anything, so the object is healthy.
    pub(super) unreported_with: &'static [Switch],
    pub(super) checks: &'static [Check],
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
pub(super) enum MissingStatus {
    /// The controller has not processed the object yet.
    Progressing,
    /// Healthy: the controller reports only failures.
    Healthy,
    /// As for kinds without a rule: older versions of the project, or other controllers, report
    /// nothing.
    ByKind,
}

/// Setting by which a person pauses a controller.
#[derive(Clone, Copy)]
pub(super) enum Switch {
    /// The field is true.
    True(&'static str),
    /// The field has this text.
    Is(&'static str, &'static str),
    /// The annotation exists, with any value.
    HasAnnotation(&'static str),
    /// The annotation has this value.
    Annotation(&'static str, &'static str),
    /// The label has this value.
    Label(&'static str, &'static str),
}

/// One check of a status.
#[derive(Clone, Copy)]
pub(super) enum Check {
    /// The condition must exist and be true.
    Required(&'static str, IfFalse),
    /// The condition must be true if it exists.
    IfReported(&'static str, IfFalse),
    /// Conditions that are true in case of a failure.
    FailedIfTrue(&'static [&'static str]),
    /// Optional conditions that are false in case of a failure; the object progresses while one
    /// belongs to an older generation.
    FailedIfFalse(&'static [&'static str]),
    /// Conditions that are true during an operation.
    ProgressingIfTrue(&'static [&'static str]),
    /// Conditions that are true while the controller is paused.
    SuspendedIfTrue(&'static [&'static str]),
    /// The value of a field, from a known list.
    Phase(PhaseCheck),
    /// A count that must reach another.
    Reached(CountCheck),
    /// A field that must be `true`.
    BoolField(&'static str, IfFalse),
    /// A text, or a list of texts, that is set in case of a failure.
    ErrorText(&'static str),
    /// A function, for statuses that no other check fits.
    Custom(CustomCheck),
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
pub(super) struct PhaseCheck {
    pub(super) path: &'static str,
    pub(super) healthy: &'static [&'static str],
    pub(super) progressing: &'static [&'static str],
    pub(super) failed: &'static [&'static str],
    pub(super) suspended: &'static [&'static str],
    /// Path of a message that explains the value.
    pub(super) message: &'static str,
    /// If true, an object without the field is progressing; else the other checks decide.
    pub(super) needed: bool,
    /// If true, values are free text about an operation: any unlisted value means progressing.
    pub(super) is_free_text: bool,
}

/// Defaults that fit most kinds.
pub(super) const PHASE_DEFAULTS: PhaseCheck = PhaseCheck {
    path: "status.phase",
    healthy: &[],
    progressing: &[],
    failed: &[],
    suspended: &[],
    message: "status.message",
    needed: true,
    is_free_text: false,
};

/// Check of two counts, or of the lengths of two lists.
#[derive(Clone, Copy)]
pub(super) struct CountCheck {
    pub(super) actual: &'static str,
    /// Path of the wanted count; empty if it is always `default_wanted`.
    pub(super) wanted: &'static str,
    /// Wanted count if the path `wanted` has no value.
    pub(super) default_wanted: u64,
    /// Noun for one of the counted things.
    pub(super) noun: &'static str,
    /// State that the counted things must reach.
    pub(super) be: &'static str,
    /// If true, a missing first count is 0; else the other checks decide.
    pub(super) needed: bool,
}

/// Defaults that fit most kinds.
pub(super) const COUNT_DEFAULTS: CountCheck = CountCheck {
    actual: "status.readyReplicas",
    wanted: "spec.replicas",
    default_wanted: 1,
    noun: "replica",
    be: "ready",
    needed: true,
};

/// Check by a function, with all verdicts that it can give.
#[derive(Clone, Copy)]
pub(super) struct CustomCheck {
    /// Condition for health, as text for the documentation.
    pub(super) description: &'static str,
    pub(super) verdicts: &'static [Verdict],
    /// Returns `None` if the status says nothing about it.
    pub(super) judge: fn(ObjectView<'_>) -> Option<Health>,
}

/// Verdict of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
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

pub(super) const fn kind_rule(
    group: &'static str,
    kinds: &'static [&'static str],
    minutes: i64,
    rule: Rule,
) -> KindRule {
    KindRule { group, kinds, reporting: Reporting::Status { rule, minutes } }
}

pub(super) const fn no_status(group: &'static str, kinds: &'static [&'static str]) -> KindRule {
    KindRule { group, kinds, reporting: Reporting::Never }
}

pub(super) const fn status_rule(generation: Generation, readings: &'static [Check]) -> Rule {
    Rule {
        generation,
        missing_status: MissingStatus::Progressing,
        suspended_by: &[],
        unreported_with: &[],
        checks: readings,
    }
}

impl Rule {
    pub(super) const fn with_suspended_by(self, asleep: &'static [Switch]) -> Self {
        Self { suspended_by: asleep, ..self }
    }

    pub(super) const fn with_unreported(self, mute: &'static [Switch]) -> Self {
        Self { unreported_with: mute, ..self }
    }

    pub(super) const fn with_missing_status(self, silence: MissingStatus) -> Self {
        Self { missing_status: silence, ..self }
    }
}
