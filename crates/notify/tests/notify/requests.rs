//! The request of every service, byte by byte, as tests/data/requests.txt has it.

use moorline_api::{NotificationRecord, Transition};
use moorline_identity::{SecretBytes, SecretText};
use moorline_notify::{AttemptResult, RequestError, Service, ServiceSecret, build_request, read_answer};
use serde_json::{Value, json};

use super::{compiled, revision, subject};

const FILE: &str = "tests/data/requests.txt";

fn record(transition: Transition, message: &str) -> NotificationRecord {
    serde_json::from_value(json!({
        "notifier": "apps/a", "id": "0123456789abcdef0123456789abcdef", "transition": transition,
        "time": "2026-11-27T10:00:00Z", "state": "Waiting",
        "details": {
            "revision": revision(1), "previousRevision": revision(2), "digest": "v1:aa", "reason": "Applied",
            "message": message, "changes": {"created": 1, "changed": 2}, "objects": 7,
        },
    }))
    .expect("a record")
}

fn secret() -> ServiceSecret {
    ServiceSecret { token: Some("t0k".into()), url: None, hmac: Some(SecretBytes::new(b"key".to_vec())) }
}

fn spec(service: &str, url: &str) -> Value {
    let on = json!(["Applied", "Healthy", "Degraded", "RolledBack", "Recovered"]);
    json!({service: {"url": url, "secretRef": {"name": "s"}}, "transitions": on})
}

#[test]
fn every_service_gets_exactly_these_bytes() {
    let services = [
        ("github", "https://git.example.com/api/v3/"),
        ("gitlab", "https://git.example.com/api/v4"),
        ("gitea", "https://git.example.com/api/v1"),
        ("slack", "https://chat.example.com/hook"),
        ("teams", "https://flows.example.com"),
        ("alertmanager", "https://alerts.example.com"),
        ("webhook", "https://hooks.example.com/in"),
        ("cloudEvents", "https://events.example.com"),
    ];
    let records = [
        record(Transition::Applied, "Sell <b>more</b> & \"better\""),
        record(Transition::Degraded, &"x".repeat(200)),
        record(Transition::RolledBack, "not healthy"),
        record(Transition::Recovered, "it was Degraded"),
    ];
    let mut text = String::new();
    for (service, url) in services {
        for record in &records {
            let notifier = compiled("apps", "a", &spec(service, url)).expect("a Notifier");
            let request = build_request(&notifier, &subject(), record, &secret()).expect("a request");
            text += &format!("# {service} {}\nPOST {}\n", record.transition, request.url);
            for (name, value) in &request.headers {
                text += &format!("{name}: {}\n", value.as_str());
            }
            text += &format!("\n{}\n\n", request.body.as_str());
            assert!(!format!("{request:?}").contains("t0k"), "a token would be printed");
        }
    }
    let place = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var_os("MOORLINE_WRITE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(&place, &text).expect("the file can be written");
    }
    assert_eq!(std::fs::read_to_string(&place).unwrap_or_default(), text, "{FILE}");
    let longest = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let longest = longest.filter_map(|body| Some(body["description"].as_str()?.chars().count())).max();
    assert_eq!(longest, Some(140));
}

#[test]
fn a_secret_leads_nowhere_else() {
    for (base, url, expect) in [
        ("https://chat.example.com", "https://chat.example.com/services/T/B?x=1", true),
        ("https://chat.example.com/", "https://chat.example.com/services", true),
        ("https://chat.example.com/a", "https://chat.example.com/ab", false),
        ("https://chat.example.com", "https://chat.example.com.evil.example/x", false),
        ("https://chat.example.com", "https://chat.example.com@evil.example/x", false),
        ("https://chat.example.com", "https://chat.example.com:8443/x", false),
        ("https://chat.example.com/a", "https://chat.example.com/a/../b", false),
        ("https://chat.example.com/a", "https://chat.example.com/a/%2e%2e/b", false),
        ("https://chat.example.com", "http://chat.example.com/x", false),
    ] {
        let notifier = compiled("apps", "a", &spec("slack", base)).expect("a Notifier");
        let given = ServiceSecret { url: Some(SecretText::new(url.to_owned())), ..ServiceSecret::default() };
        let built = build_request(&notifier, &subject(), &record(Transition::Applied, ""), &given);
        assert_eq!(built.is_ok(), expect, "{url}");
        assert!(expect || built == Err(RequestError::OtherUrl));
    }
    for (service, lacks) in [("github", "token"), ("webhook", "hmac")] {
        let notifier = compiled("apps", "a", &spec(service, "https://git.example.com")).expect("a Notifier");
        let built =
            build_request(&notifier, &subject(), &record(Transition::Applied, ""), &ServiceSecret::default());
        assert_eq!(built, Err(RequestError::NoKey(lacks)));
    }
}

#[test]
fn a_status_that_gitlab_has_already_counts_as_sent() {
    let body = br#"{"message":"Cannot transition status via :enqueue from :pending"}"#;
    let read = |service| read_answer(service, AttemptResult::of_status(400, None), body);
    assert_eq!(read(Service::Gitlab), AttemptResult::Accepted);
    assert_eq!(read(Service::Github), AttemptResult::Refused);
}
