//! Settings of the daemon itself; settings of a Sync are in the Sync.
//!
//! In: the settings file as a value, the environment, the flags.
//! Out: [`Settings`] with every value validated, or all errors at once. A flag overrides a
//! variable, and a variable overrides the file. An overridden value is validated as well, because
//! it takes effect as soon as the other is removed.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input. Tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod byte_size;
mod console;
mod error;
mod raw_value;
mod table;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

pub use crate::byte_size::parse_bytes;
pub use crate::console::ConsoleSettings;
use crate::raw_value::RawValue;
pub use error::{Origin, SettingsError};
use moorline_core::did_you_mean::nearest_name;
use moorline_core::sanitize::sanitize;
pub use table::{Setting, TABLE};

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One line of text, for people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The required isolation of helm before a chart is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelmFence {
    /// Isolation of files and system calls is required.
    Required,
    /// Use the isolation that the kernel supports; the status reports the missing parts.
    BestEffort,
}

/// The least important messages that are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Failures only.
    Error,
    /// Also warnings.
    Warn,
    /// Also actions.
    Info,
    /// Also the reasons of actions.
    Debug,
    /// Also messages of libraries.
    Trace,
}

/// URL of a proxy, which may contain a password and is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyUrl(Box<str>);

impl ProxyUrl {
    /// Returns the URL, including the password.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(table::HIDDEN)
    }
}

/// The settings of the daemon. [`TABLE`] explains each.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "the table explains each field, and a test compares it with config/daemon.yaml"
)]
pub struct Settings {
    pub data_dir: PathBuf,
    pub data_quota: Box<str>,
    pub memory: Option<Box<str>>,
    pub listen: Box<str>,
    pub probes: Option<Box<str>>,
    pub page: Option<Box<str>>,
    pub console: ConsoleSettings,
    pub log_format: LogFormat,
    pub log_level: LogLevel,
    pub journal: Vec<Box<str>>,
    pub cluster_name: Option<Box<str>>,
    pub instance: Option<Box<str>>,
    pub key_secret: Option<Box<str>>,
    pub daemon_identity_namespaces: Vec<Box<str>>,
    pub proxy: Option<ProxyUrl>,
    pub proxy_direct: Vec<Box<str>>,
    pub allowed_hosts: Vec<Box<str>>,
    pub remote_bases: Vec<Box<str>>,
    pub vault_addresses: Vec<Box<str>>,
    pub registry_mirrors: BTreeMap<Box<str>, Vec<Box<str>>>,
    pub cloud_endpoints: Vec<Box<str>>,
    pub webhook_secret_file: Option<PathBuf>,
    pub helm: PathBuf,
    pub helm_fence: HelmFence,
    pub concurrency: usize,
    pub qps: u32,
    pub burst: u32,
    pub http2: bool,
    pub request_timeout: Duration,
    pub watch_timeout_min: Duration,
    pub watch_timeout_max: Duration,
    pub retry_base: Duration,
    pub retry_cap: Duration,
    pub manifest_retry: Duration,
    /// Time that a deletion waits for another Sync that may claim the object, before it asks for
    /// approval.
    pub claim_timeout: Duration,
    pub verify_every: Duration,
    pub verify_rate: u32,
    pub lease_duration: Duration,
    pub lease_renew_deadline: Duration,
    pub lease_retry_period: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            data_dir: "/var/lib/moorline".into(),
            data_quota: "8Gi".into(),
            memory: None,
            listen: "0.0.0.0:8080".into(),
            probes: None,
            page: Some("127.0.0.1:8081".into()),
            console: ConsoleSettings::default(),
            log_format: LogFormat::Text,
            log_level: LogLevel::Info,
            journal: Vec::new(),
            cluster_name: None,
            instance: None,
            key_secret: None,
            daemon_identity_namespaces: Vec::new(),
            proxy: None,
            proxy_direct: Vec::new(),
            allowed_hosts: Vec::new(),
            remote_bases: Vec::new(),
            vault_addresses: Vec::new(),
            registry_mirrors: BTreeMap::new(),
            cloud_endpoints: Vec::new(),
            webhook_secret_file: None,
            helm: "helm".into(),
            helm_fence: HelmFence::Required,
            concurrency: 16,
            qps: 0,
            burst: 100,
            http2: false,
            request_timeout: Duration::from_secs(30),
            watch_timeout_min: Duration::from_secs(120),
            watch_timeout_max: Duration::from_secs(290),
            retry_base: Duration::from_secs(1),
            retry_cap: Duration::from_secs(60),
            manifest_retry: Duration::from_secs(600),
            claim_timeout: Duration::from_secs(60),
            verify_every: Duration::from_secs(24 * 3600),
            verify_rate: 100,
            lease_duration: Duration::from_secs(15),
            lease_renew_deadline: Duration::from_secs(10),
            lease_retry_period: Duration::from_secs(2),
        }
    }
}

impl Settings {
    /// True if the journal goes to standard output.
    pub fn prints_journal(&self) -> bool {
        self.journal.iter().any(|place| &**place == table::STDOUT)
    }

    /// Returns the file of the journal.
    pub fn journal_file(&self) -> Option<PathBuf> {
        self.journal.iter().find(|place| place.starts_with('/')).map(|place| PathBuf::from(&**place))
    }

    /// Returns the URL of the collector of the journal, as it is posted to.
    pub fn journal_collector(&self) -> Option<String> {
        self.journal.iter().find_map(|place| table::collector_url(place))
    }

    /// Merges and validates the file, the whole environment, and the flags (names without the
    /// leading dashes).
    pub fn from_sources(
        file: Option<&Value>,
        environment: impl IntoIterator<Item = (String, String)>,
        flags: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Vec<SettingsError>> {
        let mut reading = SettingsReader::default();
        if let Some(file) = file {
            reading.file(file);
        }
        for (name, value) in environment {
            reading.variable(&name, &value);
        }
        for (name, value) in flags {
            reading.flag(&name, &value);
        }
        reading.check_pairs();
        if reading.errors.is_empty() { Ok(reading.settings) } else { Err(reading.errors) }
    }
}

/// Settings while they are being read.
#[derive(Default)]
struct SettingsReader {
    settings: Settings,
    /// Origin of each effective value.
    origins: BTreeMap<&'static str, Origin>,
    errors: Vec<SettingsError>,
}

impl SettingsReader {
    fn file(&mut self, file: &Value) {
        let Value::Object(entries) = file else {
            let given = RawValue::Json(file).display().into();
            return self.errors.push(SettingsError::NotAMap { given });
        };
        for (name, value) in entries {
            match TABLE.iter().find(|row| row.name == name) {
                // A name with a null value sets nothing.
                Some(_) if value.is_null() => {}
                Some(row) => self.value(row, RawValue::Json(value), Origin::File),
                None => {
                    self.unknown(name, nearest_name(name, TABLE.iter().map(|row| row.name)), Origin::File)
                }
            }
        }
    }

    fn variable(&mut self, name: &str, value: &str) {
        let Some(own) = name.strip_prefix(table::VARIABLES).filter(|own| !is_of_a_service(own)) else {
            return;
        };
        let origin = Origin::Variable(sanitize(name).into());
        match TABLE.iter().find(|row| row.env_name() == name) {
            Some(row) => self.value(row, RawValue::Text(value), origin),
            None => {
                // Compared without the common prefix, which would make all names similar.
                let known: Vec<_> = TABLE.iter().map(Setting::env_name).collect();
                let known = known.iter().filter_map(|known| known.strip_prefix(table::VARIABLES));
                let found = nearest_name(own, known).map(|found| format!("{}{found}", table::VARIABLES));
                self.unknown(name, found.as_deref(), origin);
            }
        }
    }

    fn flag(&mut self, name: &str, value: &str) {
        let origin = Origin::Flag(sanitize(&format!("--{name}")).into());
        match TABLE.iter().find(|row| row.flag_name() == name) {
            Some(row) => self.value(row, RawValue::Text(value), origin),
            None => {
                let known: Vec<_> = TABLE.iter().map(Setting::flag_name).collect();
                let found =
                    nearest_name(name, known.iter().map(String::as_str)).map(|found| format!("--{found}"));
                self.unknown(&format!("--{name}"), found.as_deref(), origin);
            }
        }
    }

    fn value(&mut self, row: &'static Setting, given: RawValue<'_>, origin: Origin) {
        match (row.read)(&mut self.settings, given) {
            Ok(()) => drop(self.origins.insert(row.name, origin)),
            Err(refused) => {
                let shown = if row.secret { table::HIDDEN.to_owned() } else { given.display() };
                self.errors.push(SettingsError::InvalidValue {
                    setting: row.name,
                    given: shown.into(),
                    allowed: refused.0.into(),
                    origin,
                });
            }
        }
    }

    fn unknown(&mut self, name: &str, nearest: Option<&str>, origin: Origin) {
        let name = RawValue::Text(name).display().into();
        self.errors.push(SettingsError::Unknown { name, nearest: nearest.map(Into::into), origin });
    }

    /// Reports values that are valid alone but contradict each other.
    fn check_pairs(&mut self) {
        let now = &self.settings;
        let pairs = [
            ("retryBase", now.retry_base <= now.retry_cap, "at most", "retryCap"),
            ("watchTimeoutMin", now.watch_timeout_min <= now.watch_timeout_max, "at most", "watchTimeoutMax"),
            (
                "leaseRenewDeadline",
                now.lease_renew_deadline < now.lease_duration,
                "less than",
                "leaseDuration",
            ),
            (
                "leaseRetryPeriod",
                now.lease_retry_period < now.lease_renew_deadline,
                "less than",
                "leaseRenewDeadline",
            ),
        ];
        for (setting, sound, rule, other) in pairs {
            let refused = |name| {
                let of_it = |error: &SettingsError| matches!(error, SettingsError::InvalidValue { setting, .. } if *setting == name);
                self.errors.iter().any(of_it)
            };
            // If one of the two was rejected, its effective value is unknown.
            if sound || refused(setting) || refused(other) {
                continue;
            }
            let (given, origin) = self.effective_value(setting);
            let (limit, other_origin) = self.effective_value(other);
            self.errors.push(SettingsError::Contradiction {
                setting,
                given,
                origin,
                rule,
                other,
                limit,
                other_origin,
            });
        }
    }

    /// Returns the effective value of a setting and its origin, for a message.
    fn effective_value(&self, name: &'static str) -> (Box<str>, Origin) {
        let value = TABLE.iter().find(|row| row.name == name).map(|row| row.value(&self.settings));
        let value = value.as_ref().and_then(Value::as_str).unwrap_or_default();
        (value.into(), self.origins.get(name).cloned().unwrap_or(Origin::Default))
    }
}

/// True for a variable that Kubernetes set. It sets some in every pod for every Service of the
/// namespace: a Service named `moorline` makes `MOORLINE_SERVICE_HOST`, `MOORLINE_PORT` and
/// `MOORLINE_PORT_8080_TCP_ADDR`, one named `moorline-hooks` the same with a longer prefix. `own`
/// is the name after our prefix.
fn is_of_a_service(own: &str) -> bool {
    let words: Vec<&str> = own.split('_').collect();
    let port = words.iter().rposition(|word| *word == "PORT");
    let service = words.iter().rposition(|word| *word == "SERVICE");
    let behind = |at: Option<usize>| at.map(|at| &words[at + 1..]);
    let digits = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let of_port = behind(port).is_some_and(|behind| behind.first().is_none_or(digits));
    let of_service = behind(service).is_some_and(|behind| matches!(behind, ["HOST"] | ["PORT", ..]));
    of_port || of_service
}
