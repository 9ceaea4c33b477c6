//! What a pass came to, taken in.
//!
//! In: the report of a pass. Out: the same beside what is known already: a pass that came to nothing says nothing about objects, and
//! one that changes nothing does not hide what the one before it has changed.

use super::{MAX_REPAIRS, State, now};
use crate::plan::Outcome;
use crate::sync::event::repairs;
use crate::sync::pass::Report;

impl State {
    /// Takes in what a pass came to.
    pub(super) fn passed(&mut self, mut report: Box<Report>) {
        self.request = report.request.clone().or(self.request.take());
        self.repaired.extend(repairs(&report).take(MAX_REPAIRS));
        self.repaired.truncate(MAX_REPAIRS);
        self.scope = report.scope.clone().or_else(|| self.scope.take());
        self.held = report.held.clone().or_else(|| self.held.take());
        self.notes(&report);
        // A pass that came to nothing says nothing about objects.
        if let (Some(_), Some(last)) = (&report.trouble, &mut self.report) {
            report.outcomes = std::mem::take(&mut last.outcomes);
            report.set = last.set.take();
            report.last_hooks = std::mem::take(&mut last.last_hooks);
            report.desired = last.desired;
            report.finished = std::mem::take(&mut last.finished);
        }
        if self.order == Some(report.order) {
            self.asked = None;
        }
        self.posting.passed(&report);
        self.current = Some(now());
        (self.report, self.pending) = (Some(report), None);
    }

    /// Notes that something was changed.
    pub(super) fn notes(&mut self, report: &Report) {
        if report.outcomes.values().any(Outcome::is_change) {
            self.done = Some(now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::object::ObjectId;

    #[test]
    fn a_pass_that_changes_nothing_does_not_hide_the_one_before() {
        let mut state = State::default();
        let report = |outcome| {
            let id = ObjectId::parse("/ConfigMap|shop/a").unwrap();
            Box::new(Report { outcomes: BTreeMap::from([(id, outcome)]), ..Report::default() })
        };
        state.passed(report(Outcome::Kept));
        assert_eq!(state.done, None);
        state.passed(report(Outcome::Created));
        let done = state.done.clone();
        assert!(done.is_some());
        state.passed(report(Outcome::Kept));
        assert_eq!(state.done, done);
    }
}
