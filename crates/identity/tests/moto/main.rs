//! Requests to AWS, sent to moto, an emulation of AWS that checks signatures.
//!
//! In: `MOORLINE_MOTO`, the host and port of `moto_server`, started with
//! `INITIAL_NO_AUTH_ACTION_COUNT=5`, by which it checks all signatures after the first requests.
//! Out: nothing; the test is ignored unless it is asked for. `sh tests/oracles.sh moto` starts the
//! server, and asks for it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use moorline_identity::aws::{AwsRole, read_credentials, read_registry_login};
use moorline_identity::aws_kms::AwsKey;
use moorline_identity::sigv4::{AwsCredentials, AwsScope, sign};
use moorline_identity::{CloudEndpoints, ExchangeRequest, Method, SecretText};
use serde_json::{Value, json};

/// Requests that need no signature: the setup, and the exchange itself.
const SETUP_REQUESTS: usize = 5;

fn server() -> String {
    std::env::var("MOORLINE_MOTO").expect("MOORLINE_MOTO is the host and port of moto_server")
}

/// Sends a request to moto as if it was sent to AWS; returns status and body.
fn send(request: &ExchangeRequest) -> (u16, Vec<u8>) {
    let rest = request.url.strip_prefix("https://").unwrap();
    let (host, target) = rest.split_once('/').unwrap();
    let method = if request.method == Method::Get { "GET" } else { "POST" };
    let mut text = format!("{method} /{target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in &request.headers {
        text.push_str(&format!("{name}: {}\r\n", value.as_str()));
    }
    let body = request.body.as_str();
    text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let mut stream = TcpStream::connect(server()).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, answer.split_off(end + 4))
}

fn iam(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut all = vec![("Version", "2010-05-08")];
    all.extend(fields);
    let mut request = ExchangeRequest::form("https://iam.amazonaws.com/".to_owned(), &all);
    // By the signature, which is not checked yet, moto knows the service.
    let nobody =
        AwsCredentials { access_key: "AKIA1".to_owned(), secret_key: "none".into(), session_token: None };
    let scope = AwsScope { region: "us-east-1", service: "iam" };
    sign(&mut request, &nobody, scope, Timestamp::now()).unwrap();
    let (status, body) = send(&request);
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    body
}

#[test]
#[ignore = "needs moto_server at MOORLINE_MOTO"]
fn moto_accepts_what_is_sent_to_aws() {
    let allow = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}"#;
    iam(&[("Action", "CreateRole"), ("RoleName", "shop"), ("AssumeRolePolicyDocument", allow)]);
    iam(&[
        ("Action", "PutRolePolicy"),
        ("RoleName", "shop"),
        ("PolicyName", "all"),
        ("PolicyDocument", allow),
    ]);
    let role = AwsRole::new("arn:aws:iam::123456789012:role/shop", "eu-central-1").unwrap();
    let mut last = None;
    for _ in 2..SETUP_REQUESTS {
        let (status, body) = send(&role.assume(&CloudEndpoints::default(), &"a.b.c".into(), "moorline"));
        last = Some(read_credentials(status, &body).unwrap());
    }
    let (credentials, expires) = last.unwrap();
    let left = expires.as_second() - Timestamp::now().as_second();
    assert!((3500..=3600).contains(&left), "{left} s");

    let (status, body) =
        send(&role.registry_login(&CloudEndpoints::default(), &credentials, Timestamp::now()).unwrap());
    let login = read_registry_login(status, &body).unwrap();
    // In moto, it expired years ago.
    assert!(!login.value.as_str().is_empty());

    let other = AwsCredentials { secret_key: "wrong".into(), ..credentials.clone() };
    let (status, body) =
        send(&role.registry_login(&CloudEndpoints::default(), &other, Timestamp::now()).unwrap());
    assert!(status >= 400, "another key is refused: {}", String::from_utf8_lossy(&body));

    decrypts_a_data_key(&credentials);
}

/// Sends a signed request to KMS, and returns the answer.
fn kms(credentials: &AwsCredentials, action: &str, body: &Value) -> Value {
    let mut request = ExchangeRequest {
        method: Method::Post,
        url: "https://kms.eu-central-1.amazonaws.com/".to_owned(),
        headers: vec![
            ("content-type", "application/x-amz-json-1.1".into()),
            ("x-amz-target", SecretText::new(format!("TrentService.{action}"))),
        ],
        body: SecretText::new(body.to_string()),
    };
    let scope = AwsScope { region: "eu-central-1", service: "kms" };
    sign(&mut request, credentials, scope, Timestamp::now()).unwrap();
    let (status, body) = send(&request);
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

/// A data key that moto encrypted is decrypted, with its context and by its key alone.
fn decrypts_a_data_key(credentials: &AwsCredentials) {
    let [arn, other] = [(); 2].map(|()| {
        let created = kms(credentials, "CreateKey", &json!({}));
        created["KeyMetadata"]["Arn"].as_str().unwrap().to_owned()
    });
    let context = BTreeMap::from([("app".to_owned(), "shop".to_owned())]);
    let plain = json!({"KeyId": arn, "Plaintext": STANDARD.encode([7; 32]), "EncryptionContext": context});
    let encrypted = kms(credentials, "Encrypt", &plain);
    let encrypted = encrypted["CiphertextBlob"].as_str().unwrap();
    let ask = |arn: &str, context: &BTreeMap<String, String>| {
        let key = AwsKey::new(arn).unwrap();
        let public = CloudEndpoints::default();
        let request = key.decrypt(&public, (encrypted, context), credentials, Timestamp::now()).unwrap();
        let (status, body) = send(&request);
        key.read_data_key(status, &body)
    };
    assert_eq!(ask(&arn, &context).unwrap().as_bytes(), &[7; 32]);
    assert!(ask(&arn, &BTreeMap::new()).is_err(), "without its context");
    assert!(ask(&other, &context).is_err(), "by another key");
}
