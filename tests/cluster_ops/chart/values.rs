//! The chart's values: the settings among them are the daemon's, and what is wrong is refused.

use moorline::settings::{ConsoleSettings, Settings, TABLE};
use serde_json::{Value, json};

use super::programs::{Helm, documents, text};

fn values() -> Value {
    documents("values.yaml", &text("charts/moorline/values.yaml")).remove(0)
}

fn schema() -> Value {
    serde_json::from_str(&text("charts/moorline/values.schema.json")).expect("the schema is JSON")
}

#[test]
fn the_settings_are_the_daemon_s() {
    let settings = values()["settings"].take();
    let expect: serde_json::Map<_, _> =
        TABLE.iter().map(|row| (row.name.to_owned(), row.value(&Settings::default()))).collect();
    assert_eq!(settings, Value::Object(expect));
    let shown = text("charts/moorline/values.yaml");
    let schema = schema();
    let schema = &schema["properties"]["settings"];
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"].as_object().expect("properties").len(), TABLE.len());
    for row in TABLE {
        let above = format!("  # {}\n  {}:", row.description(), row.name);
        assert!(shown.contains(&above), "values.yaml does not explain {} with\n{above}", row.name);
        let property = &schema["properties"][row.name];
        assert_eq!(property["description"], row.description(), "{}", row.name);
        let expect = match row.value(&Settings::default()) {
            Value::Number(_) => json!("integer"),
            Value::Array(_) => json!("array"),
            Value::Object(_) => json!("object"),
            Value::Bool(_) => json!("boolean"),
            Value::Null => json!(["string", "null"]),
            _ => json!("string"),
        };
        assert_eq!(property["type"], expect, "{}", row.name);
    }
}

#[test]
fn the_daemon_begins_anew_with_what_it_reads_at_the_start_only() {
    let Some(helm) = Helm::here() else { return };
    let annotation = |setting: &str| {
        let mut objects = helm.objects(&["--set-json", setting]);
        let deployment = objects.iter_mut().find(|object| object["kind"] == "Deployment").expect("one");
        deployment["spec"]["template"]["metadata"]["annotations"]["moorline.dev/settings"].take()
    };
    let before = annotation("settings.qps=0");
    for row in TABLE {
        let other = match (row.name, row.value(&Settings::default())) {
            (_, Value::Number(number)) => json!(number.as_u64().expect("a number") + 1),
            (_, Value::Bool(flag)) => json!(!flag),
            ("remoteBases" | "vaultAddresses", _) => json!(["https://other"]),
            ("cloudEndpoints", _) => json!(["aws-sts=https://other"]),
            ("journal", _) => json!(["stdout"]),
            (_, Value::Array(_)) => json!(["other"]),
            ("console", _) => json!({"tokenAudience": "other"}),
            (_, Value::Object(_)) => json!({"docker.io": ["other"]}),
            ("dataDir" | "webhookSecretFile" | "helm", _) => json!("/other"),
            ("listen" | "probes" | "page", _) => json!("0.0.0.0:80"),
            ("dataQuota" | "memory", _) => json!("7Gi"),
            ("logFormat", _) => json!("json"),
            ("helmFence", _) => json!("bestEffort"),
            ("logLevel", _) => json!("debug"),
            ("instance" | "keySecret", _) => json!("other"),
            ("proxy", _) => json!("http://other"),
            _ => json!("7m"),
        };
        let changes = annotation(&format!("settings.{}={other}", row.name)) != before;
        assert_eq!(changes, !row.is_live(), "{}", row.name);
    }
}

#[test]
fn the_bounds_of_the_schema_are_the_daemon_s() {
    let schema = schema();
    for (name, property) in schema["properties"]["settings"]["properties"].as_object().expect("properties") {
        let reads = |value: i64| Settings::from_sources(Some(&json!({name: value})), [], []).is_ok();
        if let (Some(least), Some(most)) = (property["minimum"].as_i64(), property["maximum"].as_i64()) {
            let read = [least - 1, least, most, most + 1].map(reads);
            assert_eq!(read, [false, true, true, false], "{name}");
        }
        for word in property["enum"].as_array().into_iter().flatten() {
            assert!(Settings::from_sources(Some(&json!({name: word})), [], []).is_ok(), "{name}: {word}");
        }
    }
}

#[test]
fn every_value_is_in_the_schema() {
    let (values, schema) = (values(), schema());
    let mut open = vec![(String::new(), &values, &schema)];
    while let Some((path, value, schema)) = open.pop() {
        let Some(properties) = schema["properties"].as_object() else { continue };
        assert_eq!(schema["additionalProperties"], false, "{path}");
        let named: Vec<&String> = properties.keys().filter(|name| *name != "global").collect();
        let given: Vec<&String> = value.as_object().expect("a map").keys().collect();
        assert_eq!(given, named, "{path}");
        open.extend(
            named.into_iter().map(|name| (format!("{path}/{name}"), &value[name], &properties[name])),
        );
    }
}

#[test]
fn the_daemon_reads_the_rendered_settings() {
    let Some(helm) = Helm::here() else { return };
    let read = |values: &[&str]| {
        let objects = helm.objects(values);
        let file = objects.iter().find(|object| object["kind"] == "ConfigMap").expect("a ConfigMap");
        let file = file["data"]["daemon.yaml"].as_str().expect("a file").to_owned();
        Settings::from_sources(Some(&documents("daemon.yaml", &file).remove(0)), [], [])
    };
    assert_eq!(read(&[]), Ok(Settings::default()));
    let values = "settings.qps=10000,settings.instance=blue,settings.proxyDirect={a,b},webhookSecret=hooks,\
         settings.console.tokenAudience=a,page.secret=b,page.tlsSecret=c";
    let console =
        [("tokenAudience", "a"), ("secrets", "/etc/moorline/console"), ("tls", "/etc/moorline/tls")];
    let console = console.map(|(name, value)| (name.into(), value.into()));
    let expect = Settings {
        qps: 10_000,
        instance: Some("blue".into()),
        proxy_direct: vec!["a".into(), "b".into()],
        webhook_secret_file: Some("/etc/moorline/webhook/secret".into()),
        console: ConsoleSettings::new(console.into()).expect("a way to sign in"),
        ..Settings::default()
    };
    assert_eq!(read(&["--set", values]), Ok(expect));
}

#[test]
fn what_is_wrong_with_a_value_is_said() {
    let Some(helm) = Helm::here() else { return };
    let of_schema = |what: &str| {
        format!(
            "Error: values don't meet the specifications of the schema(s) in the following chart(s):\nmoorline:\n- {what}"
        )
    };
    for (values, expect) in [
        ("settings.concurrency=many", of_schema("at '/settings/concurrency': got string, want integer")),
        (
            "settings.concurency=4",
            of_schema("at '/settings': additional properties 'concurency' not allowed"),
        ),
        ("settings.retryBase=5", of_schema("at '/settings/retryBase': got number, want string")),
        ("replicas=3", of_schema("at '/replicas': maximum: got 3, want 2")),
        (
            "rbac.grant=admin",
            of_schema("at '/rbac/grant': value must be one of 'none', 'namespaceAdmin', 'clusterAdmin'"),
        ),
        (
            "identity.serviceAccounts[0].namespace=a",
            of_schema("at '/identity/serviceAccounts/0': missing property 'names'"),
        ),
        ("tenants[0].namespace=a", of_schema("at '/tenants/0': missing property 'serviceAccounts'")),
    ] {
        let error = helm.template(&["--set", values]).expect_err("it is refused");
        match helm.words_as_today() {
            true => assert_eq!(error.trim_end(), expect, "{values}"),
            false => assert!(error.contains("specifications of the schema"), "{values}: {error}"),
        }
    }
    let unchecked =
        ["--skip-schema-validation", "--set", "tenants[0].namespace=a,tenants[0].serviceAccounts=null"];
    let error = helm.template(&unchecked).expect_err("no names would mean all names");
    assert!(error.contains("tenants: the namespace a lists no serviceAccounts"), "{error}");
    let unset = helm.template_without_image(&[]).expect_err("an image that nobody can pull is no default");
    let expect = "image.repository is not set: make the image (make dist image), push it to a registry that the cluster \
                  pulls from, and say where it is with --set image.repository=registry.example.com/moorline";
    assert!(unset.contains(expect), "{unset}");
    for (values, expect) in [
        ("sync.path=a", "sync.path is set and sync.url is not: set sync.url, or write both into sync.spec"),
        (
            "sync.spec.deletionPolicy=Delete",
            "sync.spec.deletionPolicy is Delete: `helm uninstall` takes the daemon with it, which would have to delete \
             the objects; leave it out here, or create the Sync with kubectl",
        ),
        (
            "serviceAccount.create=false",
            "serviceAccount.create is false: serviceAccount.name must say which ServiceAccount there is",
        ),
    ] {
        let error = helm.template(&["--set", values]).expect_err("it is refused");
        assert!(error.contains(expect), "{values}: {error}");
    }
}
