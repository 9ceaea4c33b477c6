//! Installation tokens of a GitHub App.
//!
//! In: the App, its installation and its key; the address of the API; the time.
//! Out: the requests that find the installation and create a token, and what their answers say.
//! The App proves itself by a JSON web token that it signs, and that is valid for minutes.

use jiff::Timestamp;
use serde_json::json;

use crate::exchange::{self, ExchangeError, ExchangeRequest, Method, Token};
use crate::secret::SecretText;
use crate::signing_key::SigningKey;

/// Time by which the claim `iat` lies in the past, for a clock that is ahead of GitHub's.
const ISSUED_BEFORE_SECONDS: i64 = 60;

/// Time from now to the claim `exp`. GitHub refuses more than ten minutes, also from `iat`.
const EXPIRES_AFTER_SECONDS: i64 = 540;

/// Maximum number of characters of an id or an owner.
const MAX_NAME_LENGTH: usize = 100;

/// Version of the API; GitHub answers in this form for years.
const API_VERSION: &str = "2022-11-28";

/// A GitHub App that is installed for an organization or a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GithubApp {
    id: Box<str>,
    installation: Installation,
    key: SigningKey,
}

/// The installation whose repositories are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Installation {
    /// By its number.
    Id(Box<str>),
    /// By the organization or user that it belongs to.
    Owner(Box<str>),
}

/// A form of account, which GitHub has different addresses for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerForm {
    /// An organization.
    Organization,
    /// A user.
    User,
}

impl GithubApp {
    /// Creates an App. The error is the rest of a sentence about its id or installation.
    pub fn new(id: &str, installation: Installation, key: SigningKey) -> Result<Self, &'static str> {
        let is_plain = |text: &str| {
            let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            !text.is_empty() && text.len() <= MAX_NAME_LENGTH && text.bytes().all(sound)
        };
        if !is_plain(id) {
            return Err("githubAppID is neither the number nor the client ID of an App");
        }
        match &installation {
            Installation::Id(id) if !id.bytes().all(|byte| byte.is_ascii_digit()) || !is_plain(id) => {
                Err("githubAppInstallationID is not a number; it is the end of the installation's URL")
            }
            Installation::Owner(owner) if !is_plain(owner) || owner.starts_with('.') => {
                Err("githubAppInstallationOwner is not the name of an organization or a user")
            }
            _ => Ok(Self { id: id.into(), installation, key }),
        }
    }

    /// Returns the installation.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// Returns what a token depends on, for the key of a cache.
    pub fn identity(&self) -> [&[u8]; 4] {
        let (form, name) = match &self.installation {
            Installation::Id(id) => ("id", id),
            Installation::Owner(owner) => ("owner", owner),
        };
        [self.id.as_bytes(), form.as_bytes(), name.as_bytes(), self.key.fingerprint()]
    }

    /// Builds the request for the installation of an owner.
    pub fn find_installation(
        &self,
        base: &str,
        owner: &str,
        form: OwnerForm,
        now: Timestamp,
    ) -> Result<ExchangeRequest, ExchangeError> {
        let folder = match form {
            OwnerForm::Organization => "orgs",
            OwnerForm::User => "users",
        };
        let url = format!("{base}/{folder}/{owner}/installation");
        Ok(ExchangeRequest { method: Method::Get, url, headers: self.headers(now)?, body: "".into() })
    }

    /// Builds the request for a token that may read the contents of repositories, and nothing else.
    pub fn create_token(
        &self,
        base: &str,
        installation: &str,
        now: Timestamp,
    ) -> Result<ExchangeRequest, ExchangeError> {
        let mut headers = self.headers(now)?;
        headers.push(("content-type", "application/json".into()));
        Ok(ExchangeRequest {
            method: Method::Post,
            url: format!("{base}/app/installations/{installation}/access_tokens"),
            headers,
            body: r#"{"permissions":{"contents":"read"}}"#.into(),
        })
    }

    fn headers(&self, now: Timestamp) -> Result<Vec<(&'static str, SecretText)>, ExchangeError> {
        let now = now.as_second();
        let claims = json!({
            "iat": now.saturating_sub(ISSUED_BEFORE_SECONDS),
            "exp": now.saturating_add(EXPIRES_AFTER_SECONDS),
            "iss": self.id,
        });
        let proof = self.key.sign(&claims)?;
        Ok(vec![
            ("authorization", SecretText::new(format!("Bearer {}", proof.as_str()))),
            ("accept", "application/vnd.github+json".into()),
            ("x-github-api-version", API_VERSION.into()),
        ])
    }
}

/// Reads the number of an installation; `None` if there is no account of that form with one.
pub fn read_installation(status: u16, body: &[u8]) -> Result<Option<Box<str>>, ExchangeError> {
    match status {
        200 => {
            let id = exchange::json(body)?["id"].as_u64();
            id.map(|id| Some(id.to_string().into()))
                .ok_or(ExchangeError::Answer("does not say which installation the owner has"))
        }
        404 => Ok(None),
        status => Err(refusal(status)),
    }
}

/// Reads an installation token.
pub fn read_token(status: u16, body: &[u8]) -> Result<Token, ExchangeError> {
    match status {
        200 | 201 => {
            let answer = exchange::json(body)?;
            let expires = exchange::time(answer["expires_at"].as_str())?;
            Ok(Token { value: exchange::token_field(&answer, "token")?, expires })
        }
        404 => Err(NO_INSTALLATION),
        status => Err(refusal(status)),
    }
}

/// The App is not installed there.
pub const NO_INSTALLATION: ExchangeError = ExchangeError::Refused {
    status: 404,
    problem: "the App has no such installation; install it for the owner of the repository, and compare githubAppInstallationID or githubAppInstallationOwner",
};

/// Returns the error of a status that has no answer.
fn refusal(status: u16) -> ExchangeError {
    let problem = match status {
        401 => {
            "it does not accept the App's signature; compare githubAppID and githubAppPrivateKey with the settings of the App"
        }
        403 => "it forbids the App; its installation may be suspended",
        422 => {
            "the installation does not grant the permission Contents: read; grant it in the settings of the App"
        }
        300..=399 => "it redirects elsewhere, which is not followed; compare githubAppBaseURL",
        400..=499 if status != exchange::TOO_MANY => {
            "it does not understand the request; compare githubAppBaseURL"
        }
        _ => return ExchangeError::Unavailable(status),
    };
    ExchangeError::Refused { status, problem }
}
