//! The request of every service as it arrives: written by hand from the documentation of each, not
//! recorded.

use std::fmt::Write as _;

use moorline_test_support::git_server::Request;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Services beside the two that the scene has anyway, by the field of the spec, and their paths.
pub(crate) const OTHERS: [(&str, &str); 6] = [
    ("github", "/api/v3"),
    ("gitlab", "/api/v4"),
    ("slack", "/chat"),
    ("teams", "/cards"),
    ("alertmanager", "/alerts"),
    ("cloudEvents", "/events"),
];

/// Headers of HTTP itself.
const OF_HTTP: [&str; 3] = ["host", "content-length", "user-agent"];

/// Parts of requests that differ from run to run.
pub(crate) struct WireFacts<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) commit: &'a str,
    /// `status.notifications`, with ids and times.
    pub(crate) records: &'a Value,
}

/// An expected request: the Notifier, the path, headers, and the body. Words in capitals stand for
/// parts that differ from run to run.
type Expected = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

const JSON: (&str, &str) = ("content-type", "application/json");
const ANY: (&str, &str) = ("accept", "application/json");
const BEARER: (&str, &str) = ("authorization", "Bearer planted-token");

const TABLE: [Expected; 8] = [
    (
        "github",
        "/api/v3/repos/team/repository/statuses/COMMIT",
        &[BEARER, ("accept", "application/vnd.github+json"), JSON, ("x-github-api-version", "2022-11-28")],
        r#"{"context":"moorline/lab/NAMESPACE/shop","description":"SENTENCE","state":"success"}"#,
    ),
    (
        "gitlab",
        "/api/v4/projects/team%2Frepository/statuses/COMMIT",
        &[("private-token", "planted-token"), ANY, JSON],
        r#"{"description":"SENTENCE","name":"moorline/lab/NAMESPACE/shop","state":"success"}"#,
    ),
    (
        "status",
        "/api/v1/repos/team/repository/statuses/COMMIT",
        &[("authorization", "token planted-token"), ANY, JSON],
        r#"{"context":"moorline/lab/NAMESPACE/shop","description":"SENTENCE","state":"pending"}"#,
    ),
    (
        "slack",
        "/chat",
        &[BEARER, ANY, JSON],
        "{\"mrkdwn\":false,\"text\":\"NAMESPACE/shop in lab: main@SHORT is applied (1 created): Sell \\\"more\\\" \
         &lt;@\u{200b}all&gt; [now]\u{200b}(https://evil.example)\"}",
    ),
    (
        "teams",
        "/cards",
        &[BEARER, ANY, JSON],
        concat!(
            r#"{"attachments":[{"content":{"$schema":"http://adaptivecards.io/schemas/adaptive-card.json","body":["#,
            r#"{"color":"good","text":"Applied","type":"TextBlock","weight":"bolder"},"#,
            r#"{"inlines":[{"text":"NAMESPACE/shop in lab: SENTENCE","type":"TextRun"}],"type":"RichTextBlock"},"#,
            r#"{"facts":[{"title":"Cluster","value":"lab"},{"title":"Sync","value":"NAMESPACE/shop"},"#,
            r#"{"title":"Revision","value":"main@SHORT"}],"type":"FactSet"}],"type":"AdaptiveCard","version":"1.4"},"#,
            r#""contentType":"application/vnd.microsoft.card.adaptive","contentUrl":null}],"type":"message"}"#,
        ),
    ),
    (
        "alertmanager",
        "/alerts/api/v2/alerts",
        &[BEARER, ANY, JSON],
        concat!(
            r#"[{"annotations":{"reason":"Applied","revision":"main@COMMIT","summary":"NAMESPACE/shop in lab: SENTENCE"},"#,
            r#""endsAt":"LATER","labels":{"alertname":"MoorlineSyncApplied","cluster":"lab","namespace":"NAMESPACE","#,
            r#""severity":"info","sync":"shop"},"startsAt":"TIME"}]"#,
        ),
    ),
    (
        "hook",
        "/hook",
        &[BEARER, ANY, JSON, ("x-moorline-id", "ID"), ("x-moorline-signature", "SIGNATURE")],
        "DATA",
    ),
    (
        "cloudevents",
        "/events",
        &[
            BEARER,
            ANY,
            ("ce-id", "ID"),
            ("ce-source", "/moorline/lab"),
            ("ce-specversion", "1.0"),
            ("ce-subject", "NAMESPACE/shop"),
            ("ce-time", "TIME"),
            ("ce-type", "dev.cdevents.service.deployed.0.2.0"),
            JSON,
        ],
        concat!(
            r#"{"context":{"id":"ID","source":"/moorline/lab","timestamp":"TIME","type":"dev.cdevents.service.deployed.0.2.0","#,
            r#""version":"0.4.1"},"customData":DATA,"customDataContentType":"application/json","subject":{"content":{"#,
            r#""artifactId":"pkg:generic/shop@main%40COMMIT","environment":{"id":"lab","source":"/moorline/lab"}},"#,
            r#""id":"NAMESPACE/shop","source":"/moorline/lab","type":"service"}}"#,
        ),
    ),
];

/// The data of a webhook, and those of CloudEvents.
const DATA: &str = concat!(
    r#"{"cluster":"lab","counts":{"changed":0,"created":1,"objects":1,"pruned":0,"repaired":0},"id":"ID","#,
    r#""message":"SUBJECT","previousRevision":"","reason":"Applied","revision":"main@COMMIT","#,
    r#""sync":{"labels":{},"name":"shop","namespace":"NAMESPACE","uid":"UID"},"#,
    r#""text":"NAMESPACE/shop in lab: SENTENCE","time":"TIME","transition":"Applied"}"#,
);
const SENTENCE: &str = "main@SHORT is applied (1 created): SUBJECT";
const SUBJECT: &str = r#"Sell \"more\" <@all> [now](https://evil.example)"#;

/// Asserts that each service has got exactly one request of its table row first.
pub(crate) fn assert_wire(heard: &[Request], facts: &WireFacts<'_>) {
    for (notifier, path, headers, body) in TABLE {
        let key = format!("{}/{notifier}", facts.namespace);
        let records = facts.records.as_array().into_iter().flatten();
        // The record of the commit status is followed by that of Healthy.
        let record = records.clone().find(|record| record["notifier"] == *key).unwrap();
        let time: jiff::Timestamp = record["time"].as_str().unwrap().parse().unwrap();
        let later = time.checked_add(jiff::SignedDuration::from_mins(5)).unwrap().to_string();
        let filled = |text: &str| {
            text.replace("DATA", DATA)
                .replace("SENTENCE", SENTENCE)
                .replace("SUBJECT", SUBJECT)
                .replace("NAMESPACE", facts.namespace)
                .replace("COMMIT", facts.commit)
                .replace("SHORT", &facts.commit[..8])
                .replace("UID", facts.uid)
                .replace("ID", record["id"].as_str().unwrap())
                .replace("TIME", &time.to_string())
                .replace("LATER", &later)
        };
        let (path, body) = (filled(path), filled(body));
        let request = heard.iter().find(|request| request.path == path);
        let request = request.unwrap_or_else(|| panic!("{notifier}: nothing came to {path}"));
        assert_eq!((&*request.method, &*request.query), ("POST", ""), "{notifier}");
        assert_eq!(String::from_utf8_lossy(&request.body), body, "{notifier}");
        let signature = format!("sha256={}", hmac(b"planted-key", body.as_bytes()));
        let mut expect: Vec<(String, String)> = headers
            .iter()
            .map(|(name, value)| {
                ((*name).to_owned(), if *value == "SIGNATURE" { signature.clone() } else { filled(value) })
            })
            .collect();
        let mut found: Vec<_> =
            request.headers.iter().filter(|(name, _)| !OF_HTTP.contains(&&**name)).cloned().collect();
        expect.sort();
        found.sort();
        assert_eq!(found, expect, "{notifier}");
        assert_eq!(request.header("content-length"), Some(&*body.len().to_string()), "{notifier}");
    }
}

/// HMAC-SHA-256 as RFC 2104 has it, for a key that is shorter than a block.
fn hmac(key: &[u8], text: &[u8]) -> String {
    let padded = |pad: u8| (0..64).map(|at| key.get(at).copied().unwrap_or(0) ^ pad).collect::<Vec<u8>>();
    let inner = Sha256::digest([&padded(0x36), text].concat());
    let outer = Sha256::digest([&padded(0x5c), &inner[..]].concat());
    outer.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
