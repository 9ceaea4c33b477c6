//! A stub of three clouds for tests, over TLS: exchanges, logins of registries, data keys.
//!
//! In: the requests of the program under test.
//! Out: the tokens that it sent, and the number of requests by service. All that a cloud gives has
//! a mark that no output of the program has.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

use super::artifact_registry::RegistryLogin;
use super::authority::Authority;
use super::git_server::{GitServer, Reply, Request};
use super::sops::DATA_KEY;

/// Part of everything that a cloud gives.
pub const MARK: &str = "plantedcloud";

/// ARN of a key of AWS.
pub const AWS_KEY: &str = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab";

/// Role of AWS.
pub const AWS_ROLE: &str = "arn:aws:iam::123456789012:role/shop";

/// Key of Google Cloud.
pub const GCP_KEY: &str = "projects/shop/locations/global/keyRings/a/cryptoKeys/b";

/// Provider of a workload identity pool.
pub const GCP_PROVIDER: &str = "projects/1/locations/global/workloadIdentityPools/pool/providers/cluster";

/// Account of Google.
pub const GCP_ACCOUNT: &str = "shop@team.iam.gserviceaccount.com";

/// Client and tenant of Azure.
pub const AZURE_CLIENT: &str = "11111111-2222-3333-4444-555555555555";
pub const AZURE_TENANT: &str = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee";

/// Secret of an application of Azure, and id of an access key of AWS.
pub const SECRET: &str = "plantedcloud-secret";
pub const ACCESS_KEY: &str = "ASIA1";

/// Misbehaviour of the clouds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CloudFault {
    #[default]
    None,
    /// Exchanges of tokens are refused.
    RefuseExchange,
    /// Exchanges of tokens redirect to the address of a machine's metadata.
    RedirectExchange,
    /// Key services answer with another key.
    OtherKey,
    /// Key services redirect.
    RedirectKeys,
    /// Key services refuse.
    RefuseKeys,
}

#[derive(Default)]
struct CloudState {
    fault: CloudFault,
    counts: BTreeMap<&'static str, usize>,
    tokens: Vec<String>,
    bodies: Vec<String>,
}

/// Clouds that end with the test.
pub struct Clouds {
    pub server: GitServer,
    pub authority: Authority,
    state: Arc<Mutex<CloudState>>,
}

impl Clouds {
    /// Starts the clouds; `root` is a folder.
    pub fn start(root: &Path) -> Self {
        let authority = Authority::new();
        let server = GitServer::start_with(root, Some(authority.server(None)));
        let state = Arc::<Mutex<CloudState>>::default();
        let (shared, port) = (state.clone(), server.port);
        server.rule(move |request| answer(&mut shared.lock().unwrap(), request, port));
        Self { server, authority, state }
    }

    /// Value of the setting `cloudEndpoints`; `registry` is the registry of each cloud.
    pub fn endpoints(&self, registry: &str) -> String {
        let own = [
            "aws-sts",
            "aws-ecr",
            "aws-kms",
            "gcp-sts",
            "gcp-iamcredentials",
            "gcp-oauth",
            "gcp-kms",
            "azure-login",
        ];
        let own = own.map(|service| format!("{service}=https://{}", self.host()));
        let registries = ["aws-registry", "gcp-registry", "azure-registry"];
        let registries = registries.map(|kind| format!("{kind}=https://{registry}"));
        let vault = format!("azure-vault={}", self.host());
        [own.as_slice(), &registries, &[vault]].concat().join(",")
    }

    /// Host and port, also of the vault of Azure.
    pub fn host(&self) -> String {
        format!("localhost:{}", self.server.port)
    }

    /// Makes the clouds misbehave.
    pub fn fault(&self, fault: CloudFault) {
        self.state().fault = fault;
    }

    /// Number of requests by service since the last call.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        std::mem::take(&mut self.state().counts)
    }

    /// Tokens of ServiceAccounts that were sent.
    pub fn tokens(&self) -> Vec<String> {
        self.state().tokens.clone()
    }

    /// Bodies of the requests for data keys.
    pub fn bodies(&self) -> Vec<String> {
        self.state().bodies.clone()
    }

    /// Metadata of files that are encrypted for the key of one cloud.
    pub fn metadata(&self, cloud: &str) -> Value {
        let created = "2026-01-02T03:04:05Z";
        match cloud {
            "AWS" => json!({"kms": [{"arn": AWS_KEY, "created_at": created, "enc": "AQIC", "aws_profile": "",
                "context": {"app": "shop"}}]}),
            "GCP" => json!({"gcp_kms": [{"resource_id": GCP_KEY, "created_at": created, "enc": "CiQA"}]}),
            _ => json!({"azure_kv": [{"vault_url": format!("https://{}", self.host()), "name": "sops",
                "version": "0a1b", "created_at": created, "enc": "abc-_"}]}),
        }
    }

    /// Annotations of a ServiceAccount of one cloud.
    pub fn annotations(cloud: &str) -> Value {
        match cloud {
            "AWS" => json!({"eks.amazonaws.com/role-arn": AWS_ROLE}),
            "GCP" => json!({"iam.gke.io/gcp-service-account": GCP_ACCOUNT,
                "cloud.google.com/workload-identity-provider": GCP_PROVIDER}),
            _ => json!({"azure.workload.identity/client-id": AZURE_CLIENT,
                "azure.workload.identity/tenant-id": AZURE_TENANT}),
        }
    }

    /// Login that the registry of a cloud asks for.
    pub fn login(cloud: &str) -> RegistryLogin {
        match cloud {
            "AWS" => RegistryLogin::Pair("AWS", "plantedcloud-ecr"),
            "GCP" => RegistryLogin::Pair("oauth2accesstoken", "plantedcloud-gcp-account"),
            _ => RegistryLogin::Pair("00000000-0000-0000-0000-000000000000", "plantedcloud-azure-refresh"),
        }
    }

    fn state(&self) -> MutexGuard<'_, CloudState> {
        self.state.lock().unwrap()
    }
}

/// Claims of a token, which is not verified here.
pub fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).unwrap_or_default();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap_or_default()).unwrap_or_default()
}

fn answer(state: &mut CloudState, request: &Request, port: u16) -> Reply {
    let body = String::from_utf8_lossy(&request.body).into_owned();
    let service = service(request, &body);
    *state.counts.entry(service).or_default() += 1;
    let redirect = || Reply::Raw(307, "Location: https://169.254.169.254/latest\r\n", b"planted".to_vec());
    let is_key = service.ends_with("-key");
    if is_key {
        state.bodies.push(body.clone());
    }
    match (state.fault, is_key) {
        (CloudFault::RefuseExchange, false) | (CloudFault::RefuseKeys, true) => {
            return Reply::Raw(403, "", b"planted".to_vec());
        }
        (CloudFault::RedirectExchange, false) | (CloudFault::RedirectKeys, true) => return redirect(),
        _ => {}
    }
    let is_other = state.fault == CloudFault::OtherKey;
    let field = |name: &str| field(&body, name);
    let bearer = request.header("authorization").unwrap_or_default().to_owned();
    let hour = Timestamp::now() + 1.hour();
    let body = match service {
        "aws-exchange" => {
            state.tokens.push(field("WebIdentityToken"));
            format!(
                "<R><Credentials><AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>{MARK}-aws-key</SecretAccessKey>\
                 <SessionToken>{MARK}-aws-session</SessionToken><Expiration>{hour}</Expiration></Credentials></R>"
            )
        }
        "aws-login" => {
            let token = STANDARD.encode(format!("AWS:{MARK}-ecr"));
            let data = json!([{"authorizationToken": token, "expiresAt": hour.as_second()}]);
            json!({"authorizationData": data}).to_string()
        }
        "aws-key" if bearer.contains("Credential=ASIA1/") => {
            let key = if is_other { AWS_KEY.replace("1234abcd", "ffffffff") } else { AWS_KEY.to_owned() };
            json!({"KeyId": key, "Plaintext": STANDARD.encode(DATA_KEY)}).to_string()
        }
        "gcp-exchange" => {
            let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
            state.tokens.push(asked["subjectToken"].as_str().unwrap_or_default().to_owned());
            json!({"access_token": format!("{MARK}-gcp-first"), "expires_in": 3600}).to_string()
        }
        "gcp-account" if bearer == format!("Bearer {MARK}-gcp-first") => {
            json!({"accessToken": format!("{MARK}-gcp-account"), "expireTime": hour.to_string()}).to_string()
        }
        "gcp-key" if bearer == format!("Bearer {MARK}-gcp-account") => {
            let key = if is_other { [8; 32] } else { DATA_KEY };
            json!({"plaintext": STANDARD.encode(key)}).to_string()
        }
        // The key of an account, and the secret of an application, of a Secret.
        "gcp-oauth" if !field("assertion").is_empty() => {
            json!({"access_token": format!("{MARK}-gcp-account"), "expires_in": 3600}).to_string()
        }
        "azure-exchange" => {
            if field("client_secret") != SECRET {
                state.tokens.push(field("client_assertion"));
            }
            json!({"access_token": format!("{MARK}-azure-access"), "expires_in": 3600}).to_string()
        }
        "azure-key" if bearer == format!("Bearer {MARK}-azure-access") => {
            let name = if is_other { "other" } else { "sops" };
            let kid = format!("https://localhost:{port}/keys/{name}/0a1b");
            json!({"kid": kid, "value": URL_SAFE_NO_PAD.encode(DATA_KEY)}).to_string()
        }
        _ => return Reply::Raw(404, "", b"planted".to_vec()),
    };
    Reply::Raw(200, "", body.into_bytes())
}

/// Names the service that a request is for.
fn service(request: &Request, body: &str) -> &'static str {
    let target = request.header("x-amz-target").unwrap_or_default();
    match &*request.path {
        _ if target.ends_with(".GetAuthorizationToken") => "aws-login",
        _ if target == "TrentService.Decrypt" => "aws-key",
        _ if body.contains("Action=AssumeRoleWithWebIdentity") => "aws-exchange",
        "/v1/token" => "gcp-exchange",
        "/token" => "gcp-oauth",
        path if path.ends_with(":generateAccessToken") => "gcp-account",
        path if path.ends_with(":decrypt") => "gcp-key",
        path if path.ends_with("/oauth2/v2.0/token") => "azure-exchange",
        path if path.ends_with("/decrypt") => "azure-key",
        _ => "unknown",
    }
}

/// Value of a field of a form; tokens need no decoding.
fn field(body: &str, name: &str) -> String {
    let fields = body.split('&').filter_map(|field| field.split_once('='));
    fields.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).next().unwrap_or_default()
}

/// Gives the password of a registry of Azure for an access token.
pub(super) fn exchange_registry(request: &Request) -> Reply {
    let is_known = request.body.ends_with(format!("&access_token={MARK}-azure-access").as_bytes());
    let answer = format!(r#"{{"refresh_token": "{MARK}-azure-refresh"}}"#);
    Reply::Raw(if is_known { 200 } else { 401 }, "", answer.into_bytes())
}
