//! The library of SOPS, by a program that runs beside the tests.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use moorline_sops::Format;
use moorline_yaml::{Dialect, read};
use serde_json::{Value, json};

/// Variable with the path of the program.
const PROGRAM: &str = "MOORLINE_SOPS_ORACLE";

/// Identities of the tests with their recipients; they open nothing but files of the tests.
pub(crate) const IDENTITIES: [(&str, &str); 3] = [
    (
        "AGE-SECRET-KEY-1QYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZ9K4CN",
        "age15nsf9y4k28p83wth93tf7hafhvfajp45d2mge80ems45gz0c5gys3me64l",
    ),
    (
        "AGE-SECRET-KEY-1QGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQYQSZQGPQ0N3JDM",
        "age1e6xn45wvkce7c7msc9upffw8dmxs9959q5xng369hgzcwrjc04vszex59m",
    ),
    (
        "AGE-SECRET-KEY-1QVPSXQCRQVPSXQCRQVPSXQCRQVPSXQCRQVPSXQCRQVPSXQCRQVPS2PGGME",
        "age1thld6wmt63lklg5wu9wed82mkr49xa6dfz9a47wlr3hqzf9nau3qqx6458",
    ),
];

/// An RSA key of ssh, and its recipient.
pub(crate) const RSA: (&str, &str) = (include_str!("ssh/rsa.key"), include_str!("ssh/rsa.pub"));

/// The running program.
pub(crate) struct Library {
    program: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Library {
    /// Starts the program, with identities of age and the RSA key of ssh.
    pub(crate) fn start(identities: &str) -> Self {
        let path = std::env::var(PROGRAM).unwrap_or_else(|_| panic!("{PROGRAM} names no program"));
        let mut program = Command::new(path)
            .env("SOPS_AGE_KEY", identities)
            .env(
                "SOPS_AGE_SSH_PRIVATE_KEY_FILE",
                concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files/ssh/rsa.key"),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let requests = program.stdin.take().expect("has an input");
        let answers = BufReader::new(program.stdout.take().expect("has an output"));
        Self { program, requests, answers }
    }

    /// Asks for one operation.
    pub(crate) fn ask(&mut self, mut request: Value, data: &[u8]) -> Result<Vec<u8>, String> {
        request["data"] = BASE64.encode(data).into();
        writeln!(self.requests, "{request}").expect("the program reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the program answers");
        let answer: Value = serde_json::from_str(&line).expect("the answer is JSON");
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(BASE64.decode(answer["data"].as_str().unwrap_or_default()).expect("is base64")),
        }
    }

    /// Returns the values of the documents of an encrypted file.
    pub(crate) fn values(&mut self, format: Format, data: &[u8]) -> Result<Vec<Value>, String> {
        let lines = self.ask(json!({"op": "values", "format": name(format)}), data)?;
        let lines = String::from_utf8(lines).expect("is text");
        Ok(lines.lines().map(|line| serde_json::from_str(line).expect("is JSON")).collect())
    }

    pub(crate) fn decrypt(&mut self, format: Format, data: &[u8]) -> Result<Vec<u8>, String> {
        self.ask(json!({"op": "decrypt", "format": name(format)}), data)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// Returns a format's name.
pub(crate) fn name(format: Format) -> &'static str {
    match format {
        Format::Yaml => "yaml",
        Format::Json => "json",
        Format::Dotenv => "dotenv",
        Format::Ini => "ini",
        Format::Binary => "binary",
    }
}

/// Returns the values of the documents of a file.
pub(crate) fn values(text: &str, dialect: Dialect) -> Vec<Value> {
    let documents = read("f.yaml", text.as_bytes(), dialect);
    let documents = documents.unwrap_or_else(|error| panic!("{error}\n{text}"));
    documents.into_iter().map(|document| document.value).collect()
}

/// Compares the values of a file in both dialects.
pub(crate) fn assert_has_values(found: &str, expect: &[Value], file: &str) {
    for dialect in [Dialect::Kubectl, Dialect::Kustomize] {
        assert_eq!(values(found, dialect), expect, "{dialect:?}\n{found}\n---- file\n{file}");
    }
}
