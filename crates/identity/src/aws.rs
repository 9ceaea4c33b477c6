//! Roles of AWS for a ServiceAccount, and the login of its registry.
//!
//! In: a ServiceAccount's token and the role in its annotation; later the credentials of the role.
//! Out: the requests, and what their answers say.

use jiff::Timestamp;

use crate::endpoints::CloudEndpoints;
use crate::exchange::{self, ExchangeError, ExchangeRequest, Method, Token};
use crate::secret::SecretText;
use crate::sigv4::{self, AwsCredentials, AwsScope};

/// Annotation of a ServiceAccount with the role.
pub const ROLE_ANNOTATION: &str = "eks.amazonaws.com/role-arn";

/// Audience of the ServiceAccount's token.
pub const AUDIENCE: &str = "sts.amazonaws.com";

/// Lifetime that is asked for.
const SESSION_SECONDS: &str = "3600";

/// Maximum number of characters of a session's name.
const MAX_SESSION_LENGTH: usize = 64;

/// Maximum number of characters of a region.
const MAX_REGION_LENGTH: usize = 32;

/// A role and a region, both checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AwsRole {
    arn: Box<str>,
    region: Box<str>,
    /// Domain of the region's services.
    domain: &'static str,
}

impl AwsRole {
    /// Reads the annotation of a ServiceAccount.
    pub fn new(arn: &str, region: &str) -> Result<Self, ExchangeError> {
        let sound = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_region = !region.is_empty() && region.len() <= MAX_REGION_LENGTH && region.bytes().all(sound);
        let (partition, role) = arn
            .strip_prefix("arn:")
            .and_then(|rest| rest.split_once(":iam::"))
            .ok_or(ExchangeError::Input("the role is not the ARN of an IAM role"))?;
        let domain = match (partition, region.starts_with("cn-")) {
            ("aws" | "aws-us-gov", false) => "amazonaws.com",
            ("aws-cn", true) => "amazonaws.com.cn",
            _ => {
                return Err(ExchangeError::Input(
                    "the role and the region are of different partitions of AWS",
                ));
            }
        };
        let is_role = role.split_once(":role/").is_some_and(|(account, name)| {
            let named = |byte: u8| byte.is_ascii_alphanumeric() || b"+=,.@_/-".contains(&byte);
            account.len() == 12
                && account.bytes().all(|byte| byte.is_ascii_digit())
                && !name.is_empty()
                && name.bytes().all(named)
        });
        match is_region && is_role && arn.len() <= 2048 {
            true => Ok(Self { arn: arn.into(), region: region.into(), domain }),
            false if !is_region => Err(ExchangeError::Input("the region is not one such as eu-central-1")),
            false => Err(ExchangeError::Input("the role is not the ARN of an IAM role")),
        }
    }

    /// Returns the region.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Builds the exchange of a ServiceAccount's token for credentials of the role.
    pub fn assume(&self, endpoints: &CloudEndpoints, token: &SecretText, session: &str) -> ExchangeRequest {
        let session = session_name(session);
        let fields = [
            ("Action", "AssumeRoleWithWebIdentity"),
            ("Version", "2011-06-15"),
            ("DurationSeconds", SESSION_SECONDS),
            ("RoleArn", &self.arn),
            ("RoleSessionName", &session),
            ("WebIdentityToken", token.as_str()),
        ];
        ExchangeRequest::form(self.sts(endpoints), &fields)
    }

    /// Builds the exchange of credentials for those of this role.
    pub fn assume_by(
        &self,
        endpoints: &CloudEndpoints,
        credentials: &AwsCredentials,
        session: &str,
        now: Timestamp,
    ) -> Result<ExchangeRequest, ExchangeError> {
        let session = session_name(session);
        let fields = [
            ("Action", "AssumeRole"),
            ("Version", "2011-06-15"),
            ("DurationSeconds", SESSION_SECONDS),
            ("RoleArn", &self.arn),
            ("RoleSessionName", &session),
        ];
        let mut request = ExchangeRequest::form(self.sts(endpoints), &fields);
        let scope = AwsScope { region: &self.region, service: "sts" };
        sigv4::sign(&mut request, credentials, scope, now)?;
        Ok(request)
    }

    /// Returns the ARN of the role.
    pub fn arn(&self) -> &str {
        &self.arn
    }

    fn sts(&self, endpoints: &CloudEndpoints) -> String {
        let public = || format!("https://sts.{}.{}", self.region, self.domain);
        format!("{}/", endpoints.base("aws-sts", public))
    }

    /// Builds the request for a login of the account's registry.
    pub fn registry_login(
        &self,
        endpoints: &CloudEndpoints,
        credentials: &AwsCredentials,
        now: Timestamp,
    ) -> Result<ExchangeRequest, ExchangeError> {
        let public = || format!("https://api.ecr.{}.{}", self.region, self.domain);
        let mut request = ExchangeRequest {
            method: Method::Post,
            url: format!("{}/", endpoints.base("aws-ecr", public)),
            headers: vec![
                ("content-type", "application/x-amz-json-1.1".into()),
                ("x-amz-target", "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken".into()),
            ],
            body: "{}".into(),
        };
        let scope = AwsScope { region: &self.region, service: "ecr" };
        sigv4::sign(&mut request, credentials, scope, now)?;
        Ok(request)
    }
}

/// Returns the region of a registry, such as `123456789012.dkr.ecr.eu-central-1.amazonaws.com`.
pub fn registry_region(host: &str) -> Option<&str> {
    let (account, rest) = host.split_once(".dkr.ecr")?;
    let (_, rest) = rest.strip_prefix("-fips").unwrap_or(rest).split_at_checked(1)?;
    let region = rest.strip_suffix(".amazonaws.com").or_else(|| rest.strip_suffix(".amazonaws.com.cn"))?;
    let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
    (is_account && !region.contains('.')).then_some(region)
}

/// Returns the name of a session, as AWS allows it.
fn session_name(text: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() || "=,.@_-".contains(char) { char } else { '-' };
    text.chars().take(MAX_SESSION_LENGTH).map(plain).collect()
}

/// Reads the credentials of a role, and the time at which they expire.
pub fn read_credentials(status: u16, body: &[u8]) -> Result<(AwsCredentials, Timestamp), ExchangeError> {
    let problem = "AWS does not let the ServiceAccount assume the role; check the trust policy of the role and the OIDC provider of the cluster";
    exchange::accept(status, problem)?;
    let text = std::str::from_utf8(body).map_err(|_| ExchangeError::Answer("sends no XML"))?;
    let answer = element(text, "Credentials").ok_or(ExchangeError::Answer("gives no credentials"))?;
    let field = |name| {
        let value = element(answer, name).filter(|value| exchange::is_token(value));
        value.ok_or(ExchangeError::Answer("gives no credentials that can be used"))
    };
    let credentials = AwsCredentials {
        access_key: field("AccessKeyId")?.to_owned(),
        secret_key: field("SecretAccessKey")?.into(),
        session_token: Some(field("SessionToken")?.into()),
    };
    Ok((credentials, exchange::time(element(answer, "Expiration"))?))
}

/// Reads the login of a registry: the value of a `Basic` login.
pub fn read_registry_login(status: u16, body: &[u8]) -> Result<Token, ExchangeError> {
    let problem = "AWS does not let the role read the registry; it needs ecr:GetAuthorizationToken";
    exchange::accept(status, problem)?;
    let answer = exchange::json(body)?;
    let first = &answer["authorizationData"][0];
    // Seconds with a fraction.
    let seconds = first["expiresAt"].as_f64().filter(|seconds| (0.0..1e12).contains(seconds));
    let expires = seconds.and_then(|seconds| Timestamp::from_second(seconds as i64).ok());
    let expires = expires.ok_or(ExchangeError::Answer("does not say when the token expires"))?;
    Ok(Token { value: exchange::token_field(first, "authorizationToken")?, expires })
}

/// Returns the text of the first element of this name. The answers have no attributes there.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(value, _)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLE: &str = "arn:aws:iam::123456789012:role/team/shop";

    fn answer(key: &str, expires: &str) -> String {
        format!(
            "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\
             <AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>{key}</SecretAccessKey>\
             <SessionToken>session</SessionToken><Expiration>{expires}</Expiration>\
             </Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
        )
    }

    #[test]
    fn a_role_is_assumed_in_its_own_region() {
        let role = AwsRole::new(ROLE, "eu-central-1").unwrap();
        let request = role.assume(&CloudEndpoints::default(), &"a.b.c".into(), "moorline/shop system");
        assert_eq!(request.url, "https://sts.eu-central-1.amazonaws.com/");
        assert_eq!(
            request.body.as_str(),
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&DurationSeconds=3600&\
             RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fteam%2Fshop&\
             RoleSessionName=moorline-shop-system&WebIdentityToken=a.b.c"
        );
        assert!(!format!("{request:?}").contains("a.b.c"));
        let china = AwsRole::new("arn:aws-cn:iam::123456789012:role/a", "cn-north-1").unwrap();
        assert_eq!(
            china.assume(&CloudEndpoints::default(), &"t".into(), "s").url,
            "https://sts.cn-north-1.amazonaws.com.cn/"
        );
    }

    #[test]
    fn the_region_is_a_part_of_a_registrys_name() {
        for (host, expect) in [
            ("123456789012.dkr.ecr.eu-central-1.amazonaws.com", Some("eu-central-1")),
            ("123456789012.dkr.ecr-fips.us-gov-west-1.amazonaws.com", Some("us-gov-west-1")),
            ("123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn", Some("cn-north-1")),
            ("123456789012.dkr.ecr.eu-central-1.amazonaws.com.evil.example", None),
            ("123456789012.dkr.ecr.evil.example", None),
            ("123456789012.dkr.ecr", None),
            ("a.dkr.ecr.eu-central-1.amazonaws.com", None),
            ("123456789012.dkr.ecr.a.b.amazonaws.com", None),
            ("ghcr.io", None),
        ] {
            assert_eq!(registry_region(host), expect, "{host}");
        }
    }

    #[test]
    fn a_role_is_assumed_by_credentials_and_elsewhere_if_the_operator_says_so() {
        let role = AwsRole::new(ROLE, "eu-central-1").unwrap();
        let credentials = AwsCredentials {
            access_key: "AKIA1".to_owned(),
            secret_key: "planted".into(),
            session_token: None,
        };
        let endpoints = CloudEndpoints::new(["aws-sts=https://localhost:8443"]).unwrap();
        let now = "2026-01-02T03:00:00Z".parse().unwrap();
        let request = role.assume_by(&endpoints, &credentials, "moorline", now).unwrap();
        assert_eq!(request.url, "https://localhost:8443/");
        assert!(request.body.as_str().starts_with("Action=AssumeRole&Version="));
        let (_, value) = request.headers.last().unwrap();
        assert!(value.as_str().contains("Credential=AKIA1/20260102/eu-central-1/sts/aws4_request"));
    }

    #[test]
    fn malformed_roles_and_regions_are_refused() {
        for (arn, region, expect) in [
            ("", "eu-central-1", "not the ARN"),
            ("arn:aws:iam::1:role/a", "eu-central-1", "not the ARN"),
            ("arn:aws:iam::123456789012:user/a", "eu-central-1", "not the ARN"),
            ("arn:aws:iam::123456789012:role/", "eu-central-1", "not the ARN"),
            ("arn:aws:iam::123456789012:role/a b", "eu-central-1", "not the ARN"),
            (ROLE, "", "not one such as"),
            (ROLE, "evil.example/x", "not one such as"),
            (ROLE, "cn-north-1", "different partitions"),
            ("arn:aws-iso:iam::123456789012:role/a", "us-iso-east-1", "different partitions"),
        ] {
            let error = AwsRole::new(arn, region).unwrap_err().to_string();
            assert!(error.contains(expect), "{arn} {region}: {error}");
        }
    }

    #[test]
    fn answers_become_credentials_or_sentences() {
        let (credentials, expires) =
            read_credentials(200, answer("secret/+=", "2026-01-02T04:00:00Z").as_bytes()).unwrap();
        assert_eq!(
            (credentials.access_key.as_str(), credentials.secret_key.as_str()),
            ("ASIA1", "secret/+=")
        );
        assert_eq!(expires.to_string(), "2026-01-02T04:00:00Z");
        let role = AwsRole::new(ROLE, "eu-central-1").unwrap();
        let now = "2026-01-02T03:00:00Z".parse().unwrap();
        let request = role.registry_login(&CloudEndpoints::default(), &credentials, now).unwrap();
        let (name, value) = request.headers.last().unwrap();
        let signed = "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, ";
        assert!(*name == "authorization" && value.as_str().contains(signed));

        let login =
            br#"{"authorizationData": [{"authorizationToken": "QVdTOnB3", "expiresAt": 1.7673264E9}]}"#;
        let token = read_registry_login(200, login).unwrap();
        assert_eq!((token.value.as_str(), token.expires.as_second()), ("QVdTOnB3", 1_767_326_400));

        let planted = answer("pla nted", "2026-01-02T04:00:00Z");
        let (late, huge) = (answer("a", "later"), br#"{"authorizationData": [{"expiresAt": 1e300}]}"#);
        for (found, expect) in [
            (read_credentials(400, b"planted").unwrap_err(), "trust policy"),
            (read_credentials(503, b"planted").unwrap_err(), "status 503"),
            (read_credentials(200, b"planted").unwrap_err(), "gives no credentials"),
            (read_credentials(200, planted.as_bytes()).unwrap_err(), "gives no credentials that can be used"),
            (read_credentials(200, late.as_bytes()).unwrap_err(), "when the token expires"),
            (read_registry_login(400, b"planted").unwrap_err(), "ecr:GetAuthorizationToken"),
            (read_registry_login(200, b"{}").unwrap_err(), "when the token expires"),
            (read_registry_login(200, huge).unwrap_err(), "when the token expires"),
        ] {
            let message = found.to_string();
            assert!(message.contains(expect) && !message.contains("planted"), "{expect}: {message}");
        }
    }
}
