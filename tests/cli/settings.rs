//! The daemon's settings from outside: where values come from, what is refused, and the annotated defaults.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use moorline::settings::{LogFormat, LogLevel, Setting, Settings, SettingsError, TABLE};
use moorline::yaml::{self, Dialect};
use serde_json::{Value, json};

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The settings, or what is wrong, a line each.
fn read(file: Value, environment: &[(&str, &str)], flags: &[(&str, &str)]) -> Result<Settings, Vec<String>> {
    let errors = |errors: Vec<SettingsError>| errors.iter().map(ToString::to_string).collect();
    Settings::from_sources(Some(&file), pairs(environment), pairs(flags)).map_err(errors)
}

fn refused(file: Value, environment: &[(&str, &str)], flags: &[(&str, &str)], expect: &[&str]) {
    let errors = read(file, environment, flags).map(|_| ()).unwrap_err();
    assert_eq!(errors, expect);
}

#[test]
fn the_annotated_file_has_the_defaults_and_nothing_else() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/daemon.yaml");
    let text = fs::read_to_string(place).expect("config/daemon.yaml is compared with the settings");
    let documents = yaml::read("config/daemon.yaml", text.as_bytes(), Dialect::Kubectl).expect("it is YAML");
    let [document] = &documents[..] else { panic!("{} documents", documents.len()) };
    let expect: serde_json::Map<_, _> =
        TABLE.iter().map(|row| (row.name.to_owned(), row.value(&Settings::default()))).collect();
    assert_eq!(document.value, Value::Object(expect));
    assert_eq!(read(document.value.clone(), &[], &[]), Ok(Settings::default()));

    let blocks = text.split("\n\n").skip(1).map(str::trim_end);
    let expect = TABLE.iter().map(|row| {
        let line = text.lines().find(|line| line.starts_with(&format!("{}:", row.name)));
        format!("# {}\n{}", row.description(), line.unwrap_or_default())
    });
    assert_eq!(blocks.collect::<Vec<_>>(), expect.collect::<Vec<_>>());
}

/// Each setting is one more that people have to read about and that has to go together with all others.
#[test]
fn there_are_not_too_many_of_them() {
    assert!(TABLE.len() <= 40, "{} settings; which of them could be a constant?", TABLE.len());
}

#[test]
fn names_have_three_spellings_that_differ() {
    let name = |row: &Setting| row.name.to_owned();
    for spelling in [name, Setting::env_name, Setting::flag_name] {
        let names: BTreeSet<String> = TABLE.iter().map(spelling).collect();
        assert_eq!(names.len(), TABLE.len());
    }
    let row = TABLE.iter().find(|row| row.name == "daemonIdentityNamespaces").unwrap();
    assert_eq!(row.env_name(), "MOORLINE_DAEMON_IDENTITY_NAMESPACES");
    assert_eq!(row.flag_name(), "daemon-identity-namespaces");
}

#[test]
fn without_anything_all_is_default() {
    assert_eq!(Settings::from_sources(None, [], []), Ok(Settings::default()));
    assert_eq!(
        read(json!({"qps": null, "listen": null}), &[("HOME", "x"), ("MOOR", "y")], &[]),
        Ok(Settings::default())
    );
}

#[test]
fn every_value_can_be_set_in_every_place() {
    let all = [
        ("dataDir", json!("/data"), "/data"),
        ("dataQuota", json!("3Gi"), "3Gi"),
        ("memory", json!("512Mi"), "512Mi"),
        ("listen", json!("[::]:9090"), "[::]:9090"),
        ("probes", json!("[::]:9092"), "[::]:9092"),
        ("page", json!("[::1]:9091"), "[::1]:9091"),
        ("console", json!({"url": "https://a", "tokenAudience": "b"}), "url=https://a, tokenAudience=b"),
        ("logFormat", json!("json"), "json"),
        ("logLevel", json!("debug"), "debug"),
        ("clusterName", json!("prod-eu"), "prod-eu"),
        (
            "journal",
            json!(["stdout", "/var/log/journal", "otlp:https://a:4318"]),
            "stdout,/var/log/journal,otlp:https://a:4318",
        ),
        ("instance", json!("blue"), "blue"),
        ("keySecret", json!("keys"), "keys"),
        ("daemonIdentityNamespaces", json!(["infra", "apps"]), "infra, apps"),
        ("proxy", json!("http://user:planted@proxy:3128"), "http://user:planted@proxy:3128"),
        ("proxyDirect", json!([".svc", "10.0.0.1"]), ".svc,10.0.0.1"),
        ("allowedHosts", json!(["*", "10.0.0.0/8"]), "*, 10.0.0.0/8"),
        ("remoteBases", json!(["https://example.com/a", "http://b"]), "https://example.com/a,http://b"),
        ("vaultAddresses", json!(["https://a", "https://b:8200"]), "https://a,https://b:8200"),
        (
            "registryMirrors",
            json!({"docker.io": ["a/b", "c:5000"], "ghcr.io": ["a"]}),
            "docker.io=a/b,docker.io=c:5000, ghcr.io=a",
        ),
        ("cloudEndpoints", json!(["aws-sts=https://a"]), "aws-sts=https://a"),
        ("webhookSecretFile", json!("/etc/secret"), "/etc/secret"),
        ("helm", json!("/opt/helm"), "/opt/helm"),
        ("helmFence", json!("bestEffort"), "bestEffort"),
        ("concurrency", json!(8), "8"),
        ("qps", json!(50), "50"),
        ("burst", json!(7), "7"),
        ("http2", json!(true), "true"),
        ("requestTimeout", json!("9s"), "9s"),
        ("watchTimeoutMin", json!("1m"), "1m"),
        ("watchTimeoutMax", json!("90s"), "90s"),
        ("retryBase", json!("100ms"), "100ms"),
        ("retryCap", json!("5m"), "5m"),
        ("manifestRetry", json!("1h"), "1h"),
        ("claimTimeout", json!("2m"), "2m"),
        ("verifyEvery", json!("48h"), "48h"),
        ("verifyRate", json!(10), "10"),
        ("leaseDuration", json!("60s"), "60s"),
        ("leaseRenewDeadline", json!("40s"), "40s"),
        ("leaseRetryPeriod", json!("5s"), "5s"),
    ];
    let row = |name: &str| TABLE.iter().find(|row| row.name == name).expect(name);
    let file = all.iter().map(|(name, value, _)| ((*name).to_owned(), value.clone())).collect();
    let environment: Vec<_> =
        all.iter().map(|(name, _, text)| (row(name).env_name(), (*text).to_owned())).collect();
    let flags: Vec<_> =
        all.iter().map(|(name, _, text)| (row(name).flag_name(), (*text).to_owned())).collect();

    let by_file = read(Value::Object(file), &[], &[]).expect("all of it is sound");
    assert_eq!(Settings::from_sources(None, environment, []).as_ref(), Ok(&by_file));
    assert_eq!(Settings::from_sources(None, [], flags).as_ref(), Ok(&by_file));
    for row in TABLE {
        assert_ne!(row.value(&by_file), row.value(&Settings::default()), "{} is not tried here", row.name);
    }
    assert_eq!(by_file.log_format, LogFormat::Json);
    assert_eq!(by_file.watch_timeout_max, Duration::from_secs(90));
    assert_eq!(by_file.proxy.as_ref().map(|url| url.reveal()), Some("http://user:planted@proxy:3128"));
    let printed = format!("{by_file:?}{}", row("proxy").value(&by_file));
    assert!(!printed.contains("planted"), "{printed}");
}

#[test]
fn the_collector_of_the_journal_is_an_address_without_a_login() {
    for (place, expect) in [
        ("otlp:https://otel.example", Some("https://otel.example/v1/logs")),
        ("otlp:https://otel.example:4318/", Some("https://otel.example:4318/v1/logs")),
        ("otlp:http://[::1]:4318/own/path", Some("http://[::1]:4318/own/path")),
        ("otlp:grpc://otel.example", None),
        ("otlp:https://", None),
        ("otlp:https:///v1/logs", None),
        ("otlp:https://user:planted@otel.example", None),
        ("otlp:https://otel.example/?key=planted", None),
        ("otlp:https://otel.example/#a", None),
        ("otlp:", None),
        ("https://otel.example", None),
    ] {
        let settings = read(json!({"journal": [place]}), &[], &[]);
        assert_eq!(settings.is_ok(), expect.is_some(), "{place}");
        let Ok(settings) = settings else { continue };
        assert_eq!((settings.journal_collector().as_deref(), settings.journal_file()), (expect, None));
    }
    for twice in [["otlp:https://a", "otlp:https://b"], ["/a", "/b"]] {
        assert!(read(json!({"journal": twice}), &[], &[]).is_err(), "{twice:?}");
    }
}

#[test]
fn a_flag_counts_more_than_a_variable_and_that_more_than_the_file() {
    let environment = [("MOORLINE_LOG_LEVEL", "debug"), ("MOORLINE_QPS", "20"), ("MOORLINE_INSTANCE", "")];
    let file = json!({"logLevel": "warn", "qps": 10, "burst": 5, "instance": "blue"});
    let settings = read(file, &environment, &[("log-level", "error")]).expect("all of it is sound");
    assert_eq!((settings.log_level, settings.qps, settings.burst), (LogLevel::Error, 20, 5));
    assert_eq!(settings.instance, None, "an empty variable takes the file's value away");
}

#[test]
fn a_wrong_value_is_reported_with_its_origin_and_the_valid_ones() {
    let number = "it must be a whole number from 1 to 256";
    refused(
        json!({"concurrency": "many"}),
        &[("MOORLINE_CONCURRENCY", "0")],
        &[("concurrency", "-1")],
        &[
            &format!("concurrency is `\"many\"` (from the settings file); {number}"),
            &format!("concurrency is `0` (from the environment variable MOORLINE_CONCURRENCY); {number}"),
            &format!("concurrency is `-1` (from the flag --concurrency); {number}"),
        ],
    );
    let base = "it must be a duration from 10ms to 10m, such as 1m30s";
    for given in [json!(5), json!("5"), json!("9ms"), json!("11m"), json!(true), json!({})] {
        let expect = format!("retryBase is `{given}` (from the settings file); {base}");
        refused(json!({ "retryBase": given }), &[], &[], &[&expect]);
    }
    refused(
        json!([1]),
        &[
            ("MOORLINE_LOG_FORMAT", "xml\u{1b}[31m"),
            ("MOORLINE_LISTEN", "8080"),
            ("MOORLINE_DATA_DIR", "data"),
        ],
        &[("daemon-identity-namespaces", "infra,Apps")],
        &[
            "the settings file is `[1]`; it must be a map of settings and their values",
            "logFormat is `xml\u{fffd}[31m` (from the environment variable MOORLINE_LOG_FORMAT); it must be one of text, json",
            "listen is `8080` (from the environment variable MOORLINE_LISTEN); it must be an address and a port, such as 0.0.0.0:8080 or [::]:8080",
            "dataDir is `data` (from the environment variable MOORLINE_DATA_DIR); it must be an absolute path, such as /var/lib/moorline",
            "daemonIdentityNamespaces is `infra,Apps` (from the flag --daemon-identity-namespaces); it must be a list of at most 1000 entries, each a name of lower-case letters, digits and dashes, at most 63 characters",
        ],
    );
    let long = "x".repeat(100);
    let expect = format!(
        "logLevel is `{}…` (from the flag --log-level); it must be one of error, warn, info, debug, trace",
        &long[..60]
    );
    refused(json!({}), &[], &[("log-level", &long)], &[&expect]);
}

#[test]
fn addresses_are_looked_at_for_their_shape() {
    for good in ["127.0.0.1:0", "[::1]:8080", "[fe80::1]:1"] {
        assert!(read(json!({ "listen": good }), &[], &[]).is_ok(), "{good}");
    }
    for bad in ["", ":8080", "localhost:8080", "::1:8080", "[::1]", "0.0.0.0:65536", "[]:1", "0.0.0.0:"] {
        assert!(read(json!({ "listen": bad }), &[], &[]).is_err(), "{bad}");
    }
}

#[test]
fn the_password_of_a_proxy_is_never_shown() {
    let expect = "proxy is (not shown) (from the environment variable MOORLINE_PROXY); it must be a URL such as http://proxy:3128";
    for url in [
        "https://user:planted@proxy",
        "user:planted@proxy:1",
        "http://",
        "http://user:planted@",
        "http://planted b",
    ] {
        refused(json!({}), &[("MOORLINE_PROXY", url)], &[], &[expect]);
    }
}

#[test]
fn unknown_names_are_refused_with_what_was_meant() {
    refused(
        json!({"retrybase": "1s", "replicas": 2}),
        &[("MOORLINE_RETRY_BSAE", "1s"), ("MOORLINE_X", "1")],
        &[("log-levle", "info")],
        &[
            "there is no setting `replicas` (from the settings file)",
            "there is no setting `retrybase` (from the settings file); did you mean retryBase?",
            "there is no setting `MOORLINE_RETRY_BSAE` (from the environment variable MOORLINE_RETRY_BSAE); did you mean MOORLINE_RETRY_BASE?",
            "there is no setting `MOORLINE_X` (from the environment variable MOORLINE_X)",
            "there is no setting `--log-levle` (from the flag --log-levle); did you mean --log-level?",
        ],
    );
}

#[test]
fn variables_that_kubernetes_sets_for_services_are_none_of_ours() {
    let of_services = [
        ("MOORLINE_SERVICE_HOST", "10.0.0.1"),
        ("MOORLINE_SERVICE_PORT", "8080"),
        ("MOORLINE_SERVICE_PORT_HTTP", "8080"),
        ("MOORLINE_PORT", "tcp://10.0.0.1:8080"),
        ("MOORLINE_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
        ("MOORLINE_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("MOORLINE_WEB_HOOKS_SERVICE_HOST", "10.0.0.1"),
        ("MOORLINE_WEB_HOOKS_PORT_443_TCP_PROTO", "tcp"),
    ];
    assert_eq!(read(json!({}), &of_services, &[]), Ok(Settings::default()));
    for row in TABLE {
        let variable = row.env_name();
        let taken = variable.contains("_PORT") || variable.contains("_SERVICE");
        assert!(!taken, "a Service could make {variable}");
    }
}

#[test]
fn values_that_contradict_each_other_are_reported_with_both_origins() {
    refused(
        json!({"retryCap": "500ms", "leaseDuration": "10s"}),
        &[("MOORLINE_LEASE_RETRY_PERIOD", "10s")],
        &[("watch-timeout-min", "285s"), ("watch-timeout-max", "4m")],
        &[
            "retryBase is 1s (the default); it must be at most retryCap, which is 500ms (from the settings file)",
            "watchTimeoutMin is 4m45s (from the flag --watch-timeout-min); it must be at most watchTimeoutMax, which is 4m (from the flag --watch-timeout-max)",
            "leaseRenewDeadline is 10s (the default); it must be less than leaseDuration, which is 10s (from the settings file)",
            "leaseRetryPeriod is 10s (from the environment variable MOORLINE_LEASE_RETRY_PERIOD); it must be less than leaseRenewDeadline, which is 10s (the default)",
        ],
    );
    // One refused value is reported once.
    assert_eq!(
        read(json!({"retryCap": "0s"}), &[], &[("retry-base", "2m")]).map(|_| ()).unwrap_err().len(),
        1
    );
}
