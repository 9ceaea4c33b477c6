//! Table of all settings: name, meaning, validation and display.
//!
//! In: nothing.
//! Out: [`TABLE`]. A setting has one name in three spellings: `retryBase` in the file,
//! `MOORLINE_RETRY_BASE` in the environment and `--retry-base` on the command line.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde_json::{Value, json};

use super::{ConsoleSettings, HelmFence, LogFormat, LogLevel, ProxyUrl, Settings};
use crate::byte_size;
use crate::raw_value::{RawValue, ValueError};
use moorline_core::duration;
use moorline_core::name_rules::is_dns_label;

/// Prefix of all our environment variables.
pub(super) const VARIABLES: &str = "MOORLINE_";

const FORMATS: [(&str, LogFormat); 2] = [("text", LogFormat::Text), ("json", LogFormat::Json)];
const FENCES: [(&str, HelmFence); 2] =
    [("required", HelmFence::Required), ("bestEffort", HelmFence::BestEffort)];
const LEVELS: [(&str, LogLevel); 5] = [
    ("error", LogLevel::Error),
    ("warn", LogLevel::Warn),
    ("info", LogLevel::Info),
    ("debug", LogLevel::Debug),
    ("trace", LogLevel::Trace),
];

/// The settings that can change while the daemon runs.
const LIVE: [&str; 10] = [
    "logLevel",
    "daemonIdentityNamespaces",
    "qps",
    "burst",
    "retryBase",
    "retryCap",
    "manifestRetry",
    "claimTimeout",
    "verifyEvery",
    "verifyRate",
];

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name in the settings file.
    pub name: &'static str,
    /// Description for users.
    pub meaning: &'static str,
    /// True if its value may contain a password, which no message repeats.
    pub(super) secret: bool,
    pub(super) read: fn(&mut Settings, RawValue<'_>) -> Result<(), ValueError>,
    pub(super) show: fn(&Settings) -> Value,
}

impl Setting {
    /// Returns its name in the environment.
    pub fn env_name(&self) -> String {
        VARIABLES.to_owned() + &self.words('_').to_ascii_uppercase()
    }

    /// Returns its name on the command line, without the leading dashes.
    pub fn flag_name(&self) -> String {
        self.words('-')
    }

    /// True if a change takes effect while the daemon runs.
    pub fn is_live(&self) -> bool {
        LIVE.contains(&self.name)
    }

    /// Returns its description, and the time at which a change takes effect.
    pub fn description(&self) -> String {
        let when = if self.is_live() { " A change takes effect at once." } else { "" };
        format!("{}{when}", self.meaning)
    }

    /// Returns its value as in the settings file; a value that may contain a password is not shown.
    pub fn value(&self, settings: &Settings) -> Value {
        (self.show)(settings)
    }

    /// Returns the name in lower case, with a separator between its words.
    fn words(&self, between: char) -> String {
        let mut words = String::new();
        for char in self.name.chars() {
            if char.is_ascii_uppercase() {
                words.push(between);
            }
            words.push(char.to_ascii_lowercase());
        }
        words
    }
}

const fn ms(least: u64, most: u64) -> RangeInclusive<Duration> {
    Duration::from_millis(least)..=Duration::from_millis(most)
}

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

macro_rules! row {
    ($name:literal $meaning:literal $field:ident = $value:ident => $read:expr, $shown:ident => $show:expr $(, $secret:literal)?) => {
        Setting {
            name: $name,
            meaning: $meaning,
            secret: false $(|| $secret)?,
            read: |settings, $value| {
                settings.$field = $read;
                Ok(())
            },
            show: |settings| {
                let $shown = &settings.$field;
                $show
            },
        }
    };
}

/// Setting with a duration within bounds.
macro_rules! time {
    ($name:literal $meaning:literal $field:ident $least:expr, $most:expr) => {
        row!($name $meaning $field = given => given.duration(ms($least, $most))?, time => json!(duration::format(*time)))
    };
}

/// Setting with a whole number within bounds.
macro_rules! number {
    ($name:literal $meaning:literal $field:ident $range:expr) => {
        row!($name $meaning $field = given => given.number($range)?, number => json!(number))
    };
}

/// All settings, in the order of `config/daemon.yaml`.
#[rustfmt::skip]
pub const TABLE: &[Setting] = &[
    row!("dataDir" "Folder for mirrors of repositories and for rendered charts; without it both are created again, and charts generate new random values."
        data_dir = given => given.text("an absolute path, such as /var/lib/moorline", is_absolute)?.into_string().into(),
        path => json!(path.to_string_lossy())),
    row!("dataQuota" "Maximum size of mirrors and charts in dataDir; beyond it the least recently used ones are deleted, and fetched again when needed."
        data_quota = given => given.text(AMOUNT, is_amount)?, amount => json!(amount)),
    row!("memory" "Maximum memory of the daemon and of helm; empty: the limit of the daemon's cgroup. A commit that can never fit into it is refused; others wait for free memory."
        memory = given => given.optional(AMOUNT, is_amount)?, amount => json!(amount)),
    row!("listen" "Address and port of /healthz, /readyz, /metrics and /hooks/."
        listen = given => given.text("an address and a port, such as 0.0.0.0:8080 or [::]:8080", is_address)?,
        address => json!(address)),
    row!("probes" "Address and port of /healthz and /readyz alone, where other clients cannot delay them; empty: only `listen` serves them."
        probes = given => given.optional("an address and a port, such as 0.0.0.0:8082 or [::]:8082", is_address)?, address => json!(address)),
    row!("page" "Address and port of the status page and its JSON, which show everything except the content of Secrets; empty: disabled."
        page = given => given.optional("an address and a port, such as 127.0.0.1:8081 or [::1]:8081", is_address)?, address => json!(address)),
    row!("console" "Ways to sign in to the page, by name: tokenAudience, oidcIssuer or proxyUserHeader, and what belongs to them; empty: everyone who reaches the page can read it."
        console = given => ConsoleSettings::new(given.texts()?).map_err(|problem| ValueError(problem.to_owned()))?,
        console => json!(console.entries())),
    row!("logFormat" "Log format: text for people, json for collectors."
        log_format = given => given.one_of(&FORMATS)?, format => word(&FORMATS, *format)),
    row!("logLevel" "Log level: error, warn, info, debug or trace."
        log_level = given => given.one_of(&LEVELS)?, level => word(&LEVELS, *level)),
    row!("journal" "Places for one line of JSON for each change of an object: stdout, the absolute path of one file, and the address of one OTLP collector, as otlp:https://collector:4318; empty: no journal is written."
        journal = given => one_of_each(given.list(JOURNAL, is_journal_place)?)?, places => json!(places)),
    row!("clusterName" "Name of the cluster in notifications: statuses of commits carry it, so that clusters do not overwrite each other's; empty: default."
        cluster_name = given => given.optional(LABEL, is_dns_label)?, name => json!(name)),
    row!("instance" "Serves only the Syncs labelled moorline.dev/instance with this value; empty: those without the label."
        instance = given => given.optional(LABEL, is_dns_label)?, name => json!(name)),
    row!("keySecret" "Secret in the daemon's own namespace with the keys for proofs of ownership; empty: the name of the Lease with -key. Instances may share one."
        key_secret = given => given.optional(LABEL, is_dns_label)?, name => json!(name)),
    row!("daemonIdentityNamespaces" "Namespaces whose Syncs may use the daemon's own permissions and cloud identity, beside the daemon's own namespace."
        daemon_identity_namespaces = given => given.list(LABEL, is_dns_label)?, names => json!(names)),
    row!("proxy" "Proxy for connections to repositories, such as http://proxy:3128; it may have a user and a password."
        proxy = given => given.optional("a URL such as http://proxy:3128", is_proxy)?.map(ProxyUrl),
        url => json!(url.as_ref().map(|_| HIDDEN)), true),
    row!("proxyDirect" "Hosts that are reached without the proxy: a name matches itself and its subdomains."
        proxy_direct = given => given.list("a host name", is_host)?, hosts => json!(hosts)),
    row!("allowedHosts" "Hosts of repositories and charts: a name matches itself and its subdomains, * matches all; an address or a network such as 10.0.0.0/8 is allowed without further checks. Empty: all except loopback, link-local and cloud metadata addresses and the API server."
        allowed_hosts = given => given.list("a host name, *, an address or a network such as 10.0.0.0/8", is_host_or_network)?, hosts => json!(hosts)),
    row!("remoteBases" "URL prefixes of allowed remote bases of kustomizations, such as https://example.com/group; empty: no remote base is fetched."
        remote_bases = given => given.list("a prefix of URLs, such as https://example.com/group, without a user", is_prefix)?, prefixes => json!(prefixes), true),
    row!("vaultAddresses" "Addresses of Vault and OpenBao that may be asked for data keys of encrypted files, such as https://vault.example.com; empty: none is asked."
        vault_addresses = given => given.list("an address such as https://vault.example.com:8200, without a user", is_tls_prefix)?, addresses => json!(addresses), true),
    row!("registryMirrors" "Mirrors of registries, by the host of the registry, such as docker.io: [mirror.example.com/docker-hub]; artifacts and charts are asked for there first, in order and without the login of the registry, then at the registry itself."
        registry_mirrors = given => given.lists("mirrors by registry, such as {docker.io: [mirror.example.com/docker-hub]}, contacted over https, without a scheme or a user", is_mirror)?, mirrors => json!(mirrors)),
    row!("cloudEndpoints" "Addresses and names in clouds that differ from the public ones, such as aws-sts=https://sts.example.com or gcp-provider=projects/1/locations/global/workloadIdentityPools/POOL/providers/NAME; empty: the public ones."
        cloud_endpoints = given => given.list("a name and its value, such as aws-sts=https://sts.example.com", is_endpoint)?, endpoints => json!(endpoints)),
    row!("webhookSecretFile" "File with the secret that signs webhook calls to /hooks/; empty: /hooks/ is disabled."
        webhook_secret_file = given => given.optional("an absolute path, such as /etc/moorline/webhook/secret", is_absolute)?.map(|path| path.into_string().into()),
        path => json!(path.as_ref().map(|path: &std::path::PathBuf| path.to_string_lossy()))),
    row!("helm" "Program that renders charts: a name on PATH or an absolute path. It is started only for Helm charts."
        helm = given => given.text("the name of a program, such as helm, or an absolute path", is_program)?.into_string().into(),
        path => json!(path.to_string_lossy())),
    row!("helmFence" "Isolation of helm. required: files and system calls are isolated, or no chart is rendered; bestEffort: as much as the kernel supports, and the status reports what is missing."
        helm_fence = given => given.one_of(&FENCES)?, fence => word(&FENCES, *fence)),
    row!("concurrency" "Maximum number of concurrent writes to the API server, for each user that the daemon impersonates."
        concurrency = given => given.number(1..=256)? as usize, number => json!(number)),
    number!("qps" "Writes to the API server per second; 0: unlimited." qps 0..=10_000),
    number!("burst" "Writes that may be sent at once before qps applies." burst 1..=10_000),
    row!("http2" "Offers HTTP/2 to API servers, of the home cluster and of others, so that watches share connections; false: only HTTP/1.1."
        http2 = given => given.boolean()?, offered => json!(offered)),
    time!("requestTimeout" "Timeout of a request to the API server; it is shorter if the Lease expires earlier." request_timeout SECOND, 5 * MINUTE),
    time!("watchTimeoutMin" "Minimum time before a watch is renewed by a new request." watch_timeout_min 10 * SECOND, 290 * SECOND),
    // The client library rejects 295 s and more.
    time!("watchTimeoutMax" "Maximum time before a watch is renewed by a new request." watch_timeout_max 10 * SECOND, 290 * SECOND),
    time!("retryBase" "Delay before a write that the cluster rejected twice is retried; the first retry is immediate, and each further delay is twice as long." retry_base 10, 10 * MINUTE),
    time!("retryCap" "Maximum delay before a rejected write is retried." retry_cap 10, HOUR),
    time!("manifestRetry" "Delay before an object with a rejected manifest is retried unchanged." manifest_retry 10 * SECOND, 24 * HOUR),
    time!("claimTimeout" "Time for which a deletion waits for another Sync that may claim the object; after it, the deletion needs approval." claim_timeout SECOND, HOUR),
    time!("verifyEvery" "Interval at which every object is verified even if no event indicates a change." verify_every HOUR, 30 * 24 * HOUR),
    number!("verifyRate" "Maximum number of objects verified per second." verify_rate 1..=1000),
    time!("leaseDuration" "Time for which a Lease is valid without renewal." lease_duration 2 * SECOND, 10 * MINUTE),
    time!("leaseRenewDeadline" "Time for which a leader that cannot renew its Lease continues to write." lease_renew_deadline SECOND, 10 * MINUTE),
    time!("leaseRetryPeriod" "Interval at which the leader renews the Lease." lease_retry_period 100, 5 * MINUTE),
];

/// Replacement of a value that is not shown.
pub(super) const HIDDEN: &str = "(not shown)";

/// Place of the journal that is standard output.
pub(super) const STDOUT: &str = "stdout";
const JOURNAL: &str = "stdout, an absolute path, such as /var/log/moorline/journal, or otlp: and a URL, such as otlp:https://collector:4318";

/// Prefix of the place of the journal that is a collector.
const COLLECTOR: &str = "otlp:";
/// Path of the endpoint for logs, where the URL has none.
const LOGS_PATH: &str = "/v1/logs";

fn is_journal_place(place: &str) -> bool {
    place == STDOUT || is_absolute(place) || collector_url(place).is_some()
}

/// Returns the URL of a place that is a collector. Logins, queries and fragments are refused: the
/// setting is shown to everybody who may read settings.
pub(super) fn collector_url(place: &str) -> Option<String> {
    let url = place.strip_prefix(COLLECTOR)?;
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/[]".contains(&byte);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let has_host = host.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'[');
    let path = if path.trim_end_matches('/').is_empty() { LOGS_PATH } else { path };
    let scheme = url.strip_suffix(rest)?;
    (has_host && rest.bytes().all(is_plain)).then(|| format!("{scheme}{host}{path}"))
}

/// Checks that a journal has at most one file and one collector.
fn one_of_each(places: Vec<Box<str>>) -> Result<Vec<Box<str>>, ValueError> {
    let count = |is_it: fn(&str) -> bool| places.iter().filter(|place| is_it(place)).count();
    match (count(is_absolute), count(|place| place.starts_with(COLLECTOR))) {
        (0 | 1, 0 | 1) => Ok(places),
        _ => Err(ValueError("stdout, at most one file and at most one collector".to_owned())),
    }
}

const AMOUNT: &str = "an amount of bytes, such as 512Mi or 8Gi";

fn is_amount(text: &str) -> bool {
    byte_size::parse_bytes(text).is_some()
}

const LABEL: &str = "a name of lower-case letters, digits and dashes, at most 63 characters";

fn word<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> Value {
    json!(words.iter().find(|(_, other)| *other == value).map(|(word, _)| word))
}

fn is_absolute(path: &str) -> bool {
    path.starts_with('/') && !path.contains('\0')
}

fn is_program(text: &str) -> bool {
    is_absolute(text) || (!text.is_empty() && !text.contains(['/', '\0']) && !text.starts_with('-'))
}

/// Checks only the form; binding the listener finds out if the address can be used.
fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| {
        let bracketed = host.starts_with('[') && host.ends_with(']');
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let hex = host.chars().all(|char| char.is_ascii_hexdigit() || ":.".contains(char));
        !host.is_empty() && hex && bracketed == host.contains(':') && port.parse::<u16>().is_ok()
    })
}

fn is_host(text: &str) -> bool {
    let allowed = |char: char| char.is_ascii_alphanumeric() || "-_.:[]*".contains(char);
    (1..=255).contains(&text.len()) && text.chars().all(allowed)
}

/// Checks only the form, like `is_prefix`.
fn is_mirror(registry: &str, mirror: &str) -> bool {
    let (host, path) = mirror.split_once('/').unwrap_or((mirror, ""));
    is_host(registry) && is_host(host) && !path.contains(['@', '?', '#', ' ', ','])
}

/// Checks only the form, like `is_prefix`.
fn is_host_or_network(text: &str) -> bool {
    is_host(text.split_once('/').map_or(text, |(address, bits)| if is_number(bits) { address } else { "" }))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Checks only the form; the rest is validated when the allow list is built.
fn is_prefix(text: &str) -> bool {
    ["https://", "http://"].iter().any(|scheme| text.starts_with(scheme)) && !text.contains('@')
}

fn is_tls_prefix(text: &str) -> bool {
    text.starts_with("https://") && is_prefix(text)
}

/// Checks only the form; the names are known where the values are used.
fn is_endpoint(text: &str) -> bool {
    let named = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/".contains(&byte);
    let parts = text.split_once('=');
    parts
        .is_some_and(|(name, value)| name.bytes().all(named) && !value.is_empty() && value.bytes().all(plain))
}

fn is_proxy(text: &str) -> bool {
    let host = text.strip_prefix("http://").and_then(|rest| rest.rsplit('@').next());
    host.is_some_and(|host| is_host(host.trim_end_matches('/')))
        && text.chars().all(|char| char.is_ascii_graphic())
}
