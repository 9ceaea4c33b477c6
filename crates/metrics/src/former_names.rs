//! Metrics under the names of the previous release, so that dashboards and alerts of users keep
//! working for one release after a rename.
//!
//! In: the families that the registry returns.
//! Out: a copy of each renamed one, with its former name and labels.

use moorline_api::FORMER_REASONS;
use prometheus::proto::MetricFamily;

use crate::table::{GIT_ERRORS, GIT_SECONDS, HELD_OBJECTS, MetricDef, WATCH_RELISTS};

/// A renamed metric.
#[derive(Debug)]
pub struct FormerName {
    /// Its former name.
    pub name: &'static str,
    /// The metric now.
    pub now: MetricDef,
    /// Its renamed labels, as they were and as they are.
    labels: &'static [(&'static str, &'static str)],
    /// A label with renamed values, and the values as they were and as they are.
    values: Option<(&'static str, &'static [(&'static str, &'static str)])>,
}

/// Every renamed metric.
pub const FORMER_NAMES: &[FormerName] = &[
    FormerName {
        name: "moorline_holds",
        now: HELD_OBJECTS,
        labels: &[],
        values: Some(("reason", FORMER_REASONS)),
    },
    FormerName {
        name: "moorline_watch_restarts_total",
        now: WATCH_RELISTS,
        labels: &[("why", "reason")],
        values: None,
    },
    FormerName {
        name: "moorline_git_seconds",
        now: GIT_SECONDS,
        labels: &[("what", "operation")],
        values: Some(("operation", &[("look", "resolve")])),
    },
    FormerName {
        name: "moorline_git_errors_total",
        now: GIT_ERRORS,
        labels: &[("what", "operation")],
        values: Some(("operation", &[("look", "resolve")])),
    },
];

/// Returns a copy of each renamed family under its former name.
pub(crate) fn copies(families: &[MetricFamily]) -> Vec<MetricFamily> {
    let renamed = |former: &FormerName| {
        let now = families.iter().find(|family| family.name() == former.now.name)?;
        let mut copy = now.clone();
        copy.set_name(former.name.to_owned());
        copy.set_help(format!("Deprecated, until the next release: use {}.", former.now.name));
        for label in copy.mut_metric().iter_mut().flat_map(|metric| metric.mut_label()) {
            if let Some((_, values)) = former.values.filter(|(renamed, _)| *renamed == label.name())
                && let Some((was, _)) = values.iter().find(|(_, now)| *now == label.value())
            {
                label.set_value((*was).to_owned());
            }
            if let Some((was, _)) = former.labels.iter().find(|(_, now)| *now == label.name()) {
                label.set_name((*was).to_owned());
            }
        }
        Some(copy)
    };
    FORMER_NAMES.iter().filter_map(renamed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TABLE;

    #[test]
    fn former_names_are_not_in_the_table_and_their_labels_are() {
        for former in FORMER_NAMES {
            assert!(TABLE.iter().all(|row| row.name != former.name), "{}", former.name);
            for (was, now) in former.labels {
                assert!(former.now.labels.contains(now) && !former.now.labels.contains(was), "{was} {now}");
            }
        }
    }

    #[test]
    fn held_objects_keep_their_former_reasons_under_the_former_name() {
        use prometheus::core::Collector as _;
        let labels = HELD_OBJECTS.labels;
        let gauge =
            prometheus::IntGaugeVec::new(prometheus::Opts::new(HELD_OBJECTS.name, "help"), labels).unwrap();
        let values: Vec<&str> =
            labels.iter().map(|label| if *label == "reason" { "PruneBudgetExceeded" } else { "x" }).collect();
        gauge.with_label_values(&values).set(1);
        let copies = copies(&gauge.collect());
        let labels: Vec<&str> = copies
            .iter()
            .flat_map(|copy| copy.get_metric())
            .flat_map(|it| it.get_label())
            .map(|it| it.value())
            .collect();
        assert!(labels.contains(&"OverBudget") && !labels.contains(&"PruneBudgetExceeded"), "{labels:?}");
    }
}
