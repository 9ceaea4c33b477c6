//! Changed documents, judged by this crate and by the libraries of Sigstore.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use moorline_cosign::Document;
use serde_json::{Value, json};

use crate::vectors::{Vector, vectors};

/// Changes of each document.
const CHANGES: u64 = 1000;

/// The oracle, which answers until it is dropped.
struct Oracle {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    fn start() -> Self {
        let program =
            std::env::var("MOORLINE_COSIGN_ORACLE").expect("MOORLINE_COSIGN_ORACLE names the oracle");
        let mut command = Command::new(program);
        command.arg("judge").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("the oracle starts");
        let questions = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, questions, answers }
    }

    /// Returns the reason of a refusal.
    fn judge(&mut self, vector: &Vector, document: &Document) -> Option<String> {
        let mut question = json!({"digest": vector.value["artifact"], "policy": vector.value["policy"]});
        match document {
            Document::Bundle(bundle) => question["bundle"] = STANDARD.encode(bundle).into(),
            Document::SimpleSigning { payload, annotations } => {
                question["payload"] = STANDARD.encode(payload).into();
                question["annotations"] = json!(annotations);
            }
        }
        writeln!(self.questions, "{question}").unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        answer["refused"].as_str().map(str::to_owned)
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Random numbers by a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound).unwrap()).unwrap()
    }
}

/// Changes one text in a value: a bit of its bytes if it is base64, or a character.
fn change(value: &mut Value, chance: &mut Chance) {
    match value {
        Value::Object(fields) => {
            let chosen = chance.below(fields.len().max(1));
            if let Some((_, field)) = fields.iter_mut().nth(chosen) {
                change(field, chance);
            }
        }
        Value::Array(items) => {
            let chosen = chance.below(items.len().max(1));
            if let Some(item) = items.get_mut(chosen) {
                change(item, chance);
            }
        }
        Value::String(text) => *text = changed(text, chance),
        Value::Number(_) => *value = json!(chance.below(1 << 40)),
        _ => {}
    }
}

fn changed(text: &str, chance: &mut Chance) -> String {
    if let Ok(nested) = serde_json::from_str::<Value>(text)
        .map_err(drop)
        .and_then(|value| value.is_object().then_some(value).ok_or(()))
    {
        let mut nested = nested;
        change(&mut nested, chance);
        return nested.to_string();
    }
    let flip = |bytes: &[u8], chance: &mut Chance| {
        let mut bytes = bytes.to_vec();
        if !bytes.is_empty() {
            let bit = chance.below(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        bytes
    };
    match STANDARD.decode(text) {
        Ok(bytes) if bytes.len() > 8 => STANDARD.encode(flip(&bytes, chance)),
        _ => String::from_utf8(flip(text.as_bytes(), chance)).unwrap_or_else(|_| text.to_owned()),
    }
}

fn change_document(document: &Document, chance: &mut Chance) -> Document {
    match document {
        Document::Bundle(bundle) => {
            let mut bundle: Value = serde_json::from_slice(bundle).unwrap();
            change(&mut bundle, chance);
            Document::Bundle(bundle.to_string().into_bytes())
        }
        Document::SimpleSigning { payload, annotations } => {
            let mut value = json!(annotations);
            change(&mut value, chance);
            let text = |(name, text): (&String, &Value)| (name.clone(), text.as_str().unwrap().to_owned());
            let annotations = value.as_object().unwrap().iter().map(text).collect();
            Document::SimpleSigning { payload: payload.clone(), annotations }
        }
    }
}

#[test]
#[ignore = "needs the program of crates/cosign/tests/oracle in MOORLINE_COSIGN_ORACLE"]
fn changed_documents_are_judged_alike() {
    let mut oracle = Oracle::start();
    let (mut alike, mut stricter, mut looser) = (0, BTreeSet::new(), BTreeSet::new());
    for vector in ["keyless-", "virtual-", "key-cosign", "key-library-ed25519"].into_iter().flat_map(vectors)
    {
        for document in vector.documents() {
            for seed in 1..=CHANGES {
                let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                let changed = change_document(&document, &mut chance);
                match (vector.verify(changed.clone()), oracle.judge(&vector, &changed)) {
                    (Ok(_), None) | (Err(_), Some(_)) => alike += 1,
                    (Err(reason), None) => _ = stricter.insert(format!("{}: {reason}", vector.name)),
                    (Ok(_), Some(reason)) => _ = looser.insert(format!("{}, {seed}: {reason}", vector.name)),
                }
            }
        }
    }
    // Nothing proves this time, so it is not read here.
    looser.retain(|verdict: &String| !verdict.contains("integrated time outside certificate validity"));
    let lines = |verdicts: BTreeSet<String>| verdicts.into_iter().collect::<Vec<_>>().join("\n");
    println!("{alike} verdicts alike; refused only here:\n{}", lines(stricter));
    assert!(looser.is_empty(), "refused only by them:\n{}", lines(looser));
}
