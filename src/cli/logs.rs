//! Logging: turns events of the program into lines on standard error, for people or for collectors.
//!
//! One event is always one line: names and messages of other parties reach the logs, and must not
//! be able to forge lines. There are no colours; times are UTC.

use std::fmt;
use std::io;

use anyhow::Context;
use tracing::field::Field;
use tracing::level_filters::LevelFilter;
use tracing::{Dispatch, dispatcher};
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{self as lines, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Registry, registry, reload};

use crate::sanitize::sanitize;
use crate::settings::{LogFormat, LogLevel};

/// Target of our events that only the level trace shows. They are of the level debug: a release has
/// none of the level trace.
const TRACE: &str = "moorline_trace";

/// Target under which kube's client logs every request that fails.
const CLIENT: &str = "kube_client::client::builder";

/// Handle that changes the log level while the program runs.
#[derive(Clone)]
pub struct LogLevelHandle(reload::Handle<Targets, Registry>);

impl LogLevelHandle {
    /// Changes the log level.
    pub fn set(&self, level: LogLevel) {
        // It fails only after the subscriber is gone.
        let _ = self.0.reload(targets(level));
    }
}

/// Starts logging to standard error; must be called once.
pub fn init(format: LogFormat, level: LogLevel) -> anyhow::Result<LogLevelHandle> {
    let (dispatch, level) = build_dispatch(format, level, io::stderr);
    dispatcher::set_global_default(dispatch).context("logging is already initialized")?;
    Ok(level)
}

fn targets(level: LogLevel) -> Targets {
    // Library logs only help to find a fault in a library.
    let libraries = match level {
        LogLevel::Trace => LevelFilter::DEBUG,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn | LogLevel::Info | LogLevel::Debug => LevelFilter::WARN,
    };
    // A failed request is logged by its sender with the Sync and the object; the client knows
    // neither.
    let requests = match level {
        LogLevel::Trace => libraries,
        _ => LevelFilter::OFF,
    };
    let every_step = match level {
        LogLevel::Trace => LevelFilter::DEBUG,
        _ => LevelFilter::OFF,
    };
    Targets::new()
        .with_target(TRACE, every_step)
        .with_target(CLIENT, requests)
        .with_default(libraries)
        .with_target(env!("CARGO_CRATE_NAME"), filter(level))
}

fn build_dispatch<W>(format: LogFormat, level: LogLevel, to: W) -> (Dispatch, LogLevelHandle)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let (wanted, handle) = reload::Layer::new(targets(level));
    // If standard error is closed, the failure cannot be reported anywhere.
    let layer = lines::layer().with_writer(to).with_timer(Utc).with_ansi(false).log_internal_errors(false);
    let dispatch = match format {
        LogFormat::Text => {
            let layer = layer.fmt_fields(debug_fn(write_field).delimited(" "));
            registry().with(wanted).with(layer).into()
        }
        LogFormat::Json => registry().with(wanted).with(layer.json().flatten_event(true)).into(),
    };
    (dispatch, LogLevelHandle(handle))
}

const fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug | LogLevel::Trace => LevelFilter::DEBUG,
    }
}

/// Writes the message without and all other fields with their name. The default formatter would
/// break lines at line breaks in values.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let text = sanitize(&format!("{value:?}").replace('\n', "\\n"));
    match field.name() {
        "message" => writer.write_str(&text),
        name => write!(writer, "{name}={text}"),
    }
}

/// The time of an event in RFC 3339, to the millisecond.
#[derive(Debug, Clone, Copy)]
struct Utc;

impl FormatTime for Utc {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(writer, "{:.3}", jiff::Timestamp::now())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The log lines of some events.
    fn written(format: LogFormat, level: LogLevel, events: impl FnOnce()) -> Vec<String> {
        let page = Page::default();
        let to = page.clone();
        dispatcher::with_default(&build_dispatch(format, level, move || to.clone()).0, events);
        let bytes = page.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    fn hostile() {
        let span = tracing::info_span!("sync", name = %"shop/\u{1b}[2Jweb\nERROR");
        let _inside = span.enter();
        tracing::info!(path = "a\nb", cause = %"one\r\ntwo\u{202e}", count = 3, "said {}", "x\ny\u{1b}[31m");
    }

    #[test]
    fn an_event_is_one_line_for_people() {
        let lines = written(LogFormat::Text, LogLevel::Info, hostile);
        let [line] = &lines[..] else { panic!("{lines:?}") };
        let (time, rest) = line.split_once(' ').unwrap();
        assert!(
            time.parse::<jiff::Timestamp>().is_ok() && time.len() == "2026-01-01T00:00:00.000Z".len(),
            "{time}"
        );
        let expect = " INFO sync{name=shop/\u{fffd}[2Jweb\\nERROR}: moorline::cli::logs::tests: said x\\ny\u{fffd}[31m path=\"a\\nb\" cause=one\u{fffd}\\ntwo\u{fffd} count=3";
        assert_eq!(rest, expect);
    }

    #[test]
    fn an_event_is_one_json_object_for_collectors() {
        let lines = written(LogFormat::Json, LogLevel::Info, hostile);
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert!(!line.contains('\u{1b}'), "{line}");
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{event}");
        assert_eq!(event["level"], "INFO");
        assert_eq!(event["target"], "moorline::cli::logs::tests");
        assert_eq!(event["message"], "said x\ny\u{1b}[31m");
        assert_eq!(event["path"], "a\nb");
        assert_eq!(event["count"], 3);
        assert_eq!(event["span"]["name"], "sync");
    }

    #[test]
    fn libraries_are_heard_when_something_is_wrong() {
        let check = |level, expect: &[&str]| {
            let lines = written(LogFormat::Text, level, || {
                tracing::debug!("ours debug");
                tracing::debug!(target: "moorline_trace", "ours trace");
                tracing::info!("ours info");
                tracing::error!("ours error");
                tracing::debug!(target: "kube", "theirs debug");
                tracing::info!(target: "kube", "theirs info");
                tracing::warn!(target: "kube", "theirs warn");
                tracing::error!(target: "kube_client::client::builder", "theirs failed");
            });
            let said: Vec<_> =
                lines.iter().filter_map(|line| line.rsplit_once(": ")).map(|(_, said)| said).collect();
            assert_eq!(said, expect, "{level:?}");
        };
        check(LogLevel::Error, &["ours error"]);
        check(LogLevel::Info, &["ours info", "ours error", "theirs warn"]);
        check(LogLevel::Debug, &["ours debug", "ours info", "ours error", "theirs warn"]);
        check(
            LogLevel::Trace,
            &[
                "ours debug",
                "ours trace",
                "ours info",
                "ours error",
                "theirs debug",
                "theirs info",
                "theirs warn",
                "theirs failed",
            ],
        );
    }
}
