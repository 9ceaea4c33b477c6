//! Series of Syncs, in little memory.
//!
//! In: figures of each Sync. Out: a collector of their metrics. Each series of the library
//! `prometheus` has a copy of the metric's name and help; with a dozen series for each Sync, that
//! would be more than all the rest of an idle Sync.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType};

use super::table::{self, MetricDef, MetricKind, SYNC};

/// Every metric with a label `sync`.
const ROWS: [MetricDef; 10] = [
    table::READY,
    table::HEALTHY,
    table::REVISION,
    table::LAST_SUCCESS,
    table::OBJECTS,
    table::HELD_OBJECTS,
    table::APPLIED,
    table::DRIFT_REPAIRED,
    table::PRUNED,
    table::COMMIT_TO_APPLIED,
];

/// The series of all Syncs; clones share them.
#[derive(Debug, Clone)]
pub(super) struct SyncSeries(Arc<SeriesState>);

#[derive(Debug)]
struct SeriesState {
    descriptions: Vec<Desc>,
    syncs: Mutex<BTreeMap<Box<str>, SyncFigures>>,
}

/// The series of one Sync.
#[derive(Debug, Default)]
struct SyncFigures {
    values: Vec<Series>,
    /// Times from a commit until it was applied.
    durations: Option<Box<Durations>>,
}

/// One gauge or counter.
#[derive(Debug)]
struct Series {
    metric: &'static str,
    /// Value of its other label; empty without one.
    label: Box<str>,
    value: i64,
}

/// A histogram.
#[derive(Debug, Default)]
struct Durations {
    /// Number of observations up to each bound, without those up to the bound before it.
    counts: Box<[u64]>,
    count: u64,
    sum: f64,
}

impl SyncSeries {
    pub(super) fn new() -> prometheus::Result<Self> {
        let describe = |row: &MetricDef| {
            let labels = row.labels.iter().map(|label| (*label).to_owned()).collect();
            Desc::new(row.name.to_owned(), row.help.to_owned(), labels, Default::default())
        };
        let descriptions = ROWS.iter().map(describe).collect::<Result<_, _>>()?;
        Ok(Self(Arc::new(SeriesState { descriptions, syncs: Mutex::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<str>, SyncFigures>> {
        self.0.syncs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, sync: &str, change: impl FnOnce(&mut SyncFigures) -> T) -> T {
        let mut syncs = self.lock();
        match syncs.get_mut(sync) {
            Some(figures) => change(figures),
            None => change(syncs.entry(sync.into()).or_default()),
        }
    }

    /// Sets a gauge.
    pub(super) fn set(&self, metric: &MetricDef, sync: &str, label: &str, value: i64) {
        self.with(sync, |figures| *figures.value(metric, label) = value);
    }

    /// Adds one to a counter.
    pub(super) fn increment(&self, metric: &MetricDef, sync: &str, label: &str) {
        self.with(sync, |figures| *figures.value(metric, label) += 1);
    }

    /// Removes one series.
    pub(super) fn remove(&self, metric: &MetricDef, sync: &str, label: &str) {
        if let Some(figures) = self.lock().get_mut(sync) {
            figures.values.retain(|series| series.metric != metric.name || *series.label != *label);
        }
    }

    /// Removes the series of a metric whose label has none of these values.
    pub(super) fn retain(&self, metric: &MetricDef, sync: &str, stays: impl Fn(&str) -> bool) {
        if let Some(figures) = self.lock().get_mut(sync) {
            figures.values.retain(|series| series.metric != metric.name || stays(&series.label));
        }
    }

    /// Adds a time to the histogram of a Sync.
    pub(super) fn observe(&self, sync: &str, seconds: f64) {
        let bounds = table::COMMIT_TO_APPLIED.bounds;
        self.with(sync, |figures| {
            let durations = figures.durations.get_or_insert_with(|| {
                Box::new(Durations { counts: vec![0; bounds.len()].into(), ..Durations::default() })
            });
            let bucket = bounds.iter().position(|bound| seconds <= *bound);
            if let Some(count) = bucket.and_then(|at| durations.counts.get_mut(at)) {
                *count += 1;
            }
            (durations.count, durations.sum) = (durations.count + 1, durations.sum + seconds);
        });
    }

    /// Removes all series of a Sync.
    pub(super) fn remove_sync(&self, sync: &str) {
        self.lock().remove(sync);
    }
}

impl SyncFigures {
    /// Returns a value, which begins with 0.
    fn value(&mut self, metric: &MetricDef, label: &str) -> &mut i64 {
        let is_it = |series: &Series| series.metric == metric.name && *series.label == *label;
        let at = self.values.iter().position(is_it).unwrap_or_else(|| {
            self.values.push(Series { metric: metric.name, label: label.into(), value: 0 });
            self.values.len() - 1
        });
        &mut self.values[at].value
    }
}

impl Collector for SyncSeries {
    fn desc(&self) -> Vec<&Desc> {
        self.0.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let syncs = self.lock();
        ROWS.iter().map(|row| family(row, &syncs)).collect()
    }
}

fn family(row: &MetricDef, syncs: &BTreeMap<Box<str>, SyncFigures>) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(row.name.to_owned());
    family.set_help(row.help.to_owned());
    family.set_field_type(match row.kind {
        MetricKind::Counter => MetricType::COUNTER,
        MetricKind::Gauge => MetricType::GAUGE,
        MetricKind::Histogram => MetricType::HISTOGRAM,
    });
    let mut all = Vec::new();
    for (sync, figures) in syncs {
        if row.kind == MetricKind::Histogram {
            all.extend(figures.durations.as_ref().map(|durations| histogram(row, sync, durations)));
            continue;
        }
        let own = figures.values.iter().filter(|series| series.metric == row.name);
        all.extend(own.map(|series| single(row, sync, series)));
    }
    family.set_metric(all);
    family
}

/// Returns a metric with its labels, sorted by name as the library does it.
fn labelled(row: &MetricDef, sync: &str, label: &str) -> Metric {
    let mut pairs: Vec<LabelPair> = row
        .labels
        .iter()
        .map(|name| {
            let mut pair = LabelPair::default();
            pair.set_name((*name).to_owned());
            pair.set_value(if *name == SYNC { sync } else { label }.to_owned());
            pair
        })
        .collect();
    pairs.sort_by(|one, other| one.name().cmp(other.name()));
    let mut metric = Metric::default();
    metric.set_label(pairs);
    metric
}

fn single(row: &MetricDef, sync: &str, series: &Series) -> Metric {
    let mut metric = labelled(row, sync, &series.label);
    if row.kind == MetricKind::Counter {
        let mut counter = Counter::default();
        counter.set_value(series.value as f64);
        metric.set_counter(counter);
    } else {
        let mut gauge = Gauge::default();
        gauge.set_value(series.value as f64);
        metric.set_gauge(gauge);
    }
    metric
}

fn histogram(row: &MetricDef, sync: &str, durations: &Durations) -> Metric {
    let mut below = 0;
    let buckets = row.bounds.iter().zip(&durations.counts).map(|(bound, count)| {
        below += count;
        let mut bucket = Bucket::default();
        bucket.set_upper_bound(*bound);
        bucket.set_cumulative_count(below);
        bucket
    });
    let mut histogram = Histogram::default();
    histogram.set_bucket(buckets.collect());
    histogram.set_sample_count(durations.count);
    histogram.set_sample_sum(durations.sum);
    let mut metric = labelled(row, sync, "");
    metric.set_histogram(histogram);
    metric
}

#[cfg(test)]
mod tests {
    use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder};

    use super::*;

    fn text(collectors: Vec<Box<dyn Collector>>) -> String {
        let registry = Registry::new();
        collectors.into_iter().for_each(|it| registry.register(it).unwrap());
        TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
    }

    #[test]
    fn every_metric_of_a_sync_is_here() {
        let named: Vec<&str> =
            table::TABLE.iter().filter(|row| row.labels.contains(&SYNC)).map(|row| row.name).collect();
        assert!(ROWS.iter().all(|row| named.contains(&row.name)) && ROWS.len() == named.len(), "{named:?}");
        assert!(ROWS.iter().all(|row| row.labels.len() <= 2 && row.labels[0] == SYNC));
    }

    #[test]
    fn the_text_is_that_of_the_library() {
        let opts = |row: &MetricDef| Opts::new(row.name, row.help);
        let gauge = IntGaugeVec::new(opts(&table::OBJECTS), table::OBJECTS.labels).unwrap();
        let counter = IntCounterVec::new(opts(&table::APPLIED), table::APPLIED.labels).unwrap();
        let times = &table::COMMIT_TO_APPLIED;
        let options = HistogramOpts::new(times.name, times.help).buckets(times.bounds.to_vec());
        let seconds = HistogramVec::new(options, times.labels).unwrap();
        let series = SyncSeries::new().unwrap();
        for sync in ["b/x", "a/y", "a/\"z\""] {
            for (state, count) in [("desired", 3), ("applied", 2), ("desired", 4)] {
                gauge.with_label_values(&[sync, state]).set(count);
                series.set(&table::OBJECTS, sync, state, count);
            }
            for outcome in ["created", "updated", "created"] {
                counter.with_label_values(&[sync, outcome]).inc();
                series.increment(&table::APPLIED, sync, outcome);
            }
            for time in [0.1, 0.3, 5.0, 1e6] {
                seconds.with_label_values(&[sync]).observe(time);
                series.observe(sync, time);
            }
        }
        gauge.remove_label_values(&["b/x", "applied"]).unwrap();
        series.remove(&table::OBJECTS, "b/x", "applied");
        let expect = text(vec![Box::new(gauge), Box::new(counter), Box::new(seconds)]);
        assert_eq!(text(vec![Box::new(series.clone())]), expect);
        series.retain(&table::OBJECTS, "a/y", |state| state == "applied");
        series.remove_sync("b/x");
        let left = text(vec![Box::new(series)]);
        assert!(!left.contains("b/x") && left.contains("state=\"applied\",sync=\"a/y\""), "{left}");
        assert!(!left.contains("state=\"desired\",sync=\"a/y\""), "{left}");
    }

    #[test]
    fn a_series_takes_few_bytes() {
        assert!(size_of::<Series>() <= 40 && size_of::<SyncFigures>() <= 32);
    }
}
