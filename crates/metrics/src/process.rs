//! Figures of this process, from `/proc` of Linux.
//!
//! In: the text of `/proc/self/status`, `/proc/self/stat` and `/proc/stat`, and the number of open
//! files.
//! Out: figures, each of which may be missing: an unreadable value is not reported, rather than
//! reported as 0. `docs/decisions/other-choices.md` says why the collector of the library
//! `prometheus` is not used.

use std::fs;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Gauge, Metric, MetricFamily, MetricType};

use super::table::{self, MetricDef, MetricKind};

/// Unit of processor time in `/proc`, the same on every supported architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// Figures of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct ProcessFigures {
    cpu_seconds: Option<f64>,
    memory: Option<f64>,
    peak_memory: Option<f64>,
    open_files: Option<f64>,
    threads: Option<f64>,
    start: Option<f64>,
}

impl ProcessFigures {
    fn of_this_process() -> Self {
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        let mut figures =
            Self::parse(&text("/proc/self/status"), &text("/proc/self/stat"), &text("/proc/stat"));
        // One of them is the directory handle of this read.
        figures.open_files = fs::read_dir("/proc/self/fd").ok().map(|files| (files.count() - 1) as f64);
        figures
    }

    fn parse(status: &str, stat: &str, system: &str) -> Self {
        let of_status = |key: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
            value.split_whitespace().next()?.parse::<f64>().ok()
        };
        let kibibytes = |key| of_status(key).map(|value| value * 1024.0);
        // The second field is the program's name in parentheses, which may contain blanks and
        // parentheses.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ticks = |number: usize| {
            let field = fields.split_whitespace().nth(number - 3)?;
            Some(field.parse::<f64>().ok()? / TICKS_PER_SECOND)
        };
        let booted = system.lines().find_map(|line| line.strip_prefix("btime "));
        let booted = booted.and_then(|seconds| seconds.trim().parse::<f64>().ok());
        Self {
            cpu_seconds: ticks(14).zip(ticks(15)).map(|(user, kernel)| user + kernel),
            memory: kibibytes("VmRSS"),
            peak_memory: kibibytes("VmHWM"),
            open_files: None,
            threads: of_status("Threads"),
            start: booted.zip(ticks(22)).map(|(booted, after)| booted + after),
        }
    }

    fn rows(&self) -> [(MetricDef, Option<f64>); 6] {
        [
            (table::CPU, self.cpu_seconds),
            (table::MEMORY, self.memory),
            (table::PEAK_MEMORY, self.peak_memory),
            (table::OPEN_FILES, self.open_files),
            (table::THREADS, self.threads),
            (table::START, self.start),
        ]
    }
}

/// Collector that reads the figures at every scrape.
#[derive(Debug, Clone)]
pub(super) struct ProcessCollector {
    descriptions: Vec<Desc>,
}

impl ProcessCollector {
    pub(super) fn new() -> prometheus::Result<Self> {
        let describe = |(row, _): (MetricDef, Option<f64>)| {
            Desc::new(row.name.to_owned(), row.help.to_owned(), Vec::new(), Default::default())
        };
        let descriptions =
            ProcessFigures::default().rows().into_iter().map(describe).collect::<Result<_, _>>()?;
        Ok(Self { descriptions })
    }
}

impl Collector for ProcessCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let figures = ProcessFigures::of_this_process().rows().into_iter();
        figures.filter_map(|(row, value)| Some(family(&row, value?))).collect()
    }
}

fn family(row: &MetricDef, value: f64) -> MetricFamily {
    let (mut family, mut metric) = (MetricFamily::default(), Metric::default());
    family.set_name(row.name.to_owned());
    family.set_help(row.help.to_owned());
    if row.kind == MetricKind::Counter {
        let mut counter = Counter::default();
        counter.set_value(value);
        metric.set_counter(counter);
        family.set_field_type(MetricType::COUNTER);
    } else {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        metric.set_gauge(gauge);
        family.set_field_type(MetricType::GAUGE);
    }
    family.set_metric(vec![metric]);
    family
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_read() {
        let status = "Name:\tmoorline\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t5\n";
        let stat = "7 (a) b ( c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 5 0 4200 1 2 3";
        let system = "cpu  1 2 3\nbtime 1700000000\nprocesses 9\n";
        let expect = ProcessFigures {
            cpu_seconds: Some(3.0),
            memory: Some(1_048_576.0),
            peak_memory: Some(2_097_152.0),
            open_files: None,
            threads: Some(5.0),
            start: Some(1_700_000_042.0),
        };
        assert_eq!(ProcessFigures::parse(status, stat, system), expect);
        assert_eq!(ProcessFigures::parse("", "", ""), ProcessFigures::default());
        assert_eq!(
            ProcessFigures::parse("VmRSS: x kB\nVmRSSes: 1 kB", "7 (a) S 1", "btime\n"),
            ProcessFigures::default()
        );
    }

    #[test]
    fn this_process_has_all_figures() {
        let figures = ProcessFigures::of_this_process();
        assert!(figures.rows().iter().all(|(_, value)| value.is_some()), "{figures:?}");
        assert!(figures.memory <= figures.peak_memory && figures.threads >= Some(1.0), "{figures:?}");
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        let age = now - figures.start.unwrap();
        assert!((-2.0..3600.0).contains(&age), "the process started {age} seconds ago");
    }
}
