//! A batch of lines as the body of a request to `/v1/logs`, in OTLP over HTTP with JSON.
//!
//! In: lines with their place in the chain. Out: the body, and what an answer to it means. Each
//! record has the whole line as its body, so a collector can give the lines to `audit verify`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::chain::Head;
use crate::entry::Entry;

/// Severity of every record: INFO.
const SEVERITY: (u32, &str) = (9, "INFO");
/// Name of the scope of every record.
const SCOPE: &str = "moorline.journal";

/// Attempts to send a batch, the first one included.
pub(crate) const MAX_ATTEMPTS: u32 = 8;
/// Pause after the first failed attempt.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// A line that is exported.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExportedLine {
    /// The line as it is in a file, without its line break.
    pub(crate) text: String,
    /// Its place in the chain.
    pub(crate) place: Head,
    /// Its content.
    pub(crate) entry: Entry,
}

/// The process that exports, as every batch names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) daemon: String,
    pub(crate) program: String,
}

/// Builds the body for a batch.
pub(crate) fn batch_body(lines: &[ExportedLine], origin: &Origin) -> Vec<u8> {
    let records: Vec<Value> = lines.iter().map(record).collect();
    let resource = [
        ("service.name", "moorline"),
        ("service.version", origin.program.as_str()),
        ("service.instance.id", origin.daemon.as_str()),
    ];
    let attributes: Vec<Value> = resource.iter().map(|(key, value)| text_attribute(key, value)).collect();
    let scope = json!({"name": SCOPE, "version": origin.program});
    let body = json!({"resourceLogs": [{
        "resource": {"attributes": attributes},
        "scopeLogs": [{"scope": scope, "logRecords": records}],
    }]});
    body.to_string().into_bytes()
}

fn record(line: &ExportedLine) -> Value {
    let entry = &line.entry;
    let change = entry.change.map(|change| format!("{change:?}"));
    let (reason, hash) = (format!("{:?}", entry.reason), line.place.hash.to_string());
    let texts = [
        ("moorline.cluster", entry.cluster.as_deref()),
        ("moorline.sync", entry.sync.as_deref()),
        ("moorline.reason", Some(&*reason)),
        ("moorline.object", entry.object.as_deref()),
        ("moorline.change", change.as_deref()),
        ("moorline.revision", entry.revision.as_deref()),
        ("moorline.journal.hash", Some(&*hash)),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some(text_attribute(key, value?)));
    let seq = json!({"key": "moorline.journal.seq", "value": {"intValue": line.place.seq.to_string()}});
    let attributes: Vec<Value> = texts.chain([seq]).collect();
    let mut record = json!({
        "severityNumber": SEVERITY.0, "severityText": SEVERITY.1,
        "body": {"stringValue": line.text}, "attributes": attributes,
    });
    let time = entry.time.as_deref().and_then(|time| time.parse::<jiff::Timestamp>().ok());
    if let Some(time) = time {
        // 64-bit numbers are texts in the JSON of protobuf.
        record["timeUnixNano"] = time.as_nanosecond().to_string().into();
        record["observedTimeUnixNano"] = record["timeUnixNano"].clone();
    }
    record
}

fn text_attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// Answer of an endpoint to a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportAnswer {
    /// The endpoint answered with this status and the first bytes of a body.
    Status(u16, Vec<u8>),
    /// There was no answer; the text says why.
    Silence(String),
}

/// Decision after an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub(crate) enum NextStep {
    /// The endpoint has taken the batch but for so many lines.
    Done { rejected: u64 },
    /// The batch is sent again after this pause.
    Retry(Duration),
    /// The batch is dropped.
    GiveUp,
}

/// Decides after an attempt; `attempt` counts from 1.
pub(crate) fn next_step(attempt: u32, answer: &ExportAnswer) -> NextStep {
    let may_pass = match answer {
        ExportAnswer::Status(200..=299, body) => return NextStep::Done { rejected: rejected(body) },
        ExportAnswer::Status(429 | 502 | 503 | 504, _) | ExportAnswer::Silence(_) => true,
        // The protocol says that these do not pass by themselves.
        ExportAnswer::Status(..) => false,
    };
    match may_pass && attempt < MAX_ATTEMPTS {
        true => NextStep::Retry(FIRST_PAUSE.saturating_mul(1 << (attempt - 1).min(16)).min(MAX_PAUSE)),
        false => NextStep::GiveUp,
    }
}

/// The number of lines that the endpoint says it has not taken.
fn rejected(body: &[u8]) -> u64 {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let count = &answer["partialSuccess"]["rejectedLogRecords"];
    count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Chain;
    use crate::entry::{Change, Reason};

    #[test]
    fn a_batch_is_written_byte_for_byte() {
        let mut chain = Chain::default();
        let entry = Entry {
            reason: Reason::DriftRepaired,
            time: Some("2026-01-02T03:04:05.678Z".to_owned()),
            cluster: Some("api:443".to_owned()),
            sync: Some("shop/web".to_owned()),
            change: Some(Change::Updated),
            object: Some("apps/Deployment|shop/web".to_owned()),
            ..Entry::default()
        };
        let text = chain.append(&entry);
        let place = chain.head();
        let quoted = serde_json::to_string(&text).unwrap();
        let line = ExportedLine { text, place, entry };
        let origin = Origin { daemon: "pod-1".to_owned(), program: "0.1.0".to_owned() };
        let body = String::from_utf8(batch_body(&[line], &origin)).unwrap();
        let text =
            |key: &str, value: &str| format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#);
        let attributes = [
            text("moorline.cluster", "api:443"),
            text("moorline.sync", "shop/web"),
            text("moorline.reason", "DriftRepaired"),
            text("moorline.object", "apps/Deployment|shop/web"),
            text("moorline.change", "Updated"),
            text("moorline.journal.hash", &place.hash.to_string()),
            r#"{"key":"moorline.journal.seq","value":{"intValue":"1"}}"#.to_owned(),
        ];
        let resource = [
            text("service.name", "moorline"),
            text("service.version", "0.1.0"),
            text("service.instance.id", "pod-1"),
        ];
        let expect = format!(
            r#"{{"resourceLogs":[{{"resource":{{"attributes":[{}]}},"scopeLogs":[{{"logRecords":[{{"attributes":[{}],"body":{{"stringValue":{quoted}}},"observedTimeUnixNano":"1767323045678000000","severityNumber":9,"severityText":"INFO","timeUnixNano":"1767323045678000000"}}],"scope":{{"name":"moorline.journal","version":"0.1.0"}}}}]}}]}}"#,
            resource.join(","),
            attributes.join(","),
        );
        assert_eq!(body, expect);
    }

    #[test]
    fn an_endpoint_is_asked_again_only_if_that_can_help() {
        let status = |code| ExportAnswer::Status(code, Vec::new());
        let silence = || ExportAnswer::Silence("late".to_owned());
        let partly = |body: &str| ExportAnswer::Status(200, body.as_bytes().to_vec());
        let seconds = |count| NextStep::Retry(Duration::from_secs(count));
        for (attempt, answer, expect) in [
            (1, status(200), NextStep::Done { rejected: 0 }),
            (1, partly(r#"{"partialSuccess":{"rejectedLogRecords":"2"}}"#), NextStep::Done { rejected: 2 }),
            (1, partly(r#"{"partialSuccess":{"rejectedLogRecords":3}}"#), NextStep::Done { rejected: 3 }),
            (1, partly("<html>"), NextStep::Done { rejected: 0 }),
            (1, status(503), seconds(1)),
            (2, status(429), seconds(2)),
            (5, silence(), seconds(16)),
            (7, silence(), seconds(60)),
            (MAX_ATTEMPTS, silence(), NextStep::GiveUp),
            (1, status(400), NextStep::GiveUp),
            (1, status(404), NextStep::GiveUp),
            (1, status(302), NextStep::GiveUp),
            (1, status(500), NextStep::GiveUp),
        ] {
            assert_eq!(next_step(attempt, &answer), expect, "{attempt} {answer:?}");
        }
    }
}
