//! Authenticates webhook calls.
//!
//! In: headers, the query and the raw body, before anything else is done with them. Out: success,
//! or an error whose message reveals nothing to a stranger. Comparisons take constant time.

use axum::http::HeaderMap;
use ring::hmac;

use super::WebhookKind;

/// The reason why a call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum WebhookAuthError {
    /// The header with the proof is missing.
    #[error("the header {0} is missing: set the daemon's secret on the webhook")]
    Missing(&'static str),
    /// The proof is wrong.
    #[error("the header {0} does not match: the webhook and the daemon have different secrets")]
    Wrong(&'static str),
    /// The token in the URL is missing or wrong.
    #[error(
        "the URL has no token, or a wrong one: docs/webhooks.md says how it is made of the daemon's secret"
    )]
    Token,
}

/// The kind of proof in a header.
enum HeaderProof {
    /// A SHA-256 HMAC of the body in hex digits, after this prefix.
    Hmac(&'static str),
    /// The secret itself, after this prefix.
    Secret(&'static str),
}

/// The headers that may authenticate a call; one is enough.
fn proofs(kind: WebhookKind) -> &'static [(&'static str, HeaderProof)] {
    match kind {
        WebhookKind::Github => &[("X-Hub-Signature-256", HeaderProof::Hmac("sha256="))],
        WebhookKind::Gitlab => &[("X-Gitlab-Token", HeaderProof::Secret(""))],
        WebhookKind::Gitea => &[
            ("X-Gitea-Signature", HeaderProof::Hmac("")),
            ("X-Hub-Signature-256", HeaderProof::Hmac("sha256=")),
        ],
        // An authorization that a person writes down, with or without a scheme.
        WebhookKind::Harbor | WebhookKind::Acr => {
            &[("Authorization", HeaderProof::Secret("Bearer ")), ("Authorization", HeaderProof::Secret(""))]
        }
        // These send no header of ours.
        WebhookKind::DockerHub | WebhookKind::Quay => &[],
        WebhookKind::Bitbucket => &[("X-Hub-Signature", HeaderProof::Hmac("sha256="))],
        WebhookKind::Generic => &[
            ("X-Moorline-Signature", HeaderProof::Hmac("sha256=")),
            ("Authorization", HeaderProof::Secret("Bearer ")),
        ],
    }
}

/// Verifies the proof of a call.
pub(super) fn verify_call(
    kind: WebhookKind,
    (headers, query): (&HeaderMap, &str),
    body: &[u8],
    secret: &[u8],
) -> Result<(), WebhookAuthError> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let Some((first, _)) = proofs(kind).first() else { return verify_token(kind, query, &key) };
    let mut refused = WebhookAuthError::Missing(first);
    for (name, proof) in proofs(kind) {
        let Some(value) = headers.get(*name).map(|value| value.as_bytes()) else { continue };
        let fits = match proof {
            HeaderProof::Hmac(front) => value
                .strip_prefix(front.as_bytes())
                .and_then(digits)
                .is_some_and(|tag| hmac::verify(&key, body, &tag).is_ok()),
            // Compared by their digests, because these have equal length.
            HeaderProof::Secret(front) => value
                .strip_prefix(front.as_bytes())
                .is_some_and(|given| hmac::verify(&key, secret, hmac::sign(&key, given).as_ref()).is_ok()),
        };
        if fits {
            return Ok(());
        }
        refused = WebhookAuthError::Wrong(name);
    }
    Err(refused)
}

/// Verifies the token in a URL: the HMAC of the kind's name. A URL is written to more logs than a
/// header, so it has not the secret itself, and its token opens one kind only.
fn verify_token(kind: WebhookKind, query: &str, key: &hmac::Key) -> Result<(), WebhookAuthError> {
    let name = if kind == WebhookKind::Quay { "quay" } else { "dockerhub" };
    let token = query.split('&').find_map(|part| part.strip_prefix("token="));
    let tag = token.and_then(|token| digits(token.as_bytes()));
    match tag.is_some_and(|tag| hmac::verify(key, name.as_bytes(), &tag).is_ok()) {
        true => Ok(()),
        false => Err(WebhookAuthError::Token),
    }
}

/// Decodes pairs of hex digits.
fn digits(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| Some(digit(pair[0])? * 16 + digit(*pair.get(1)?)?);
    text.chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(kind: WebhookKind, header: &'static str, value: &str) -> Result<(), WebhookAuthError> {
        let mut headers = HeaderMap::new();
        headers.insert(header, value.parse().unwrap());
        verify_call(kind, (&headers, ""), b"Hello, World!", b"It's a Secret to Everybody")
    }

    #[test]
    fn a_call_is_proven_by_what_its_kind_sends() {
        // The example that GitHub documents.
        let tag = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let signed = format!("sha256={tag}");
        assert_eq!(checked(WebhookKind::Github, "X-Hub-Signature-256", &signed), Ok(()));
        assert_eq!(checked(WebhookKind::Gitea, "X-Gitea-Signature", tag), Ok(()));
        assert_eq!(checked(WebhookKind::Gitea, "X-Hub-Signature-256", &signed), Ok(()));
        assert_eq!(checked(WebhookKind::Bitbucket, "X-Hub-Signature", &signed), Ok(()));
        assert_eq!(checked(WebhookKind::Generic, "X-Moorline-Signature", &signed), Ok(()));
        let secret = "It's a Secret to Everybody";
        assert_eq!(checked(WebhookKind::Gitlab, "X-Gitlab-Token", secret), Ok(()));
        assert_eq!(checked(WebhookKind::Generic, "Authorization", &format!("Bearer {secret}")), Ok(()));

        for value in [secret.to_owned(), format!("Bearer {secret}")] {
            for kind in [WebhookKind::Harbor, WebhookKind::Acr] {
                assert_eq!(checked(kind, "Authorization", &value), Ok(()), "{value}");
            }
        }
        assert_eq!(
            checked(WebhookKind::Harbor, "Authorization", "Bearer x"),
            Err(WebhookAuthError::Wrong("Authorization"))
        );

        let wrong = Err(WebhookAuthError::Wrong("X-Hub-Signature-256"));
        for value in ["", "sha256=", "sha256=75", &signed[..70], &signed.replace('7', "8"), tag, "sha256=ü"]
        {
            assert_eq!(checked(WebhookKind::Github, "X-Hub-Signature-256", value), wrong, "{value}");
        }
        assert_eq!(
            checked(WebhookKind::Gitlab, "X-Gitlab-Token", ""),
            Err(WebhookAuthError::Wrong("X-Gitlab-Token"))
        );
        let half = checked(WebhookKind::Gitlab, "X-Gitlab-Token", &secret[..10]);
        assert_eq!(half, Err(WebhookAuthError::Wrong("X-Gitlab-Token")));
        let missing = checked(WebhookKind::Github, "X-Hub-Signature", &signed);
        assert_eq!(missing, Err(WebhookAuthError::Missing("X-Hub-Signature-256")));
    }

    #[test]
    fn a_url_has_a_token_for_one_kind() {
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
        let token = |name: &str| {
            let tag = hmac::sign(&key, name.as_bytes());
            tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let checked = |kind, query: &str| verify_call(kind, (&HeaderMap::new(), query), b"{}", b"secret");
        let (hub, quay) = (token("dockerhub"), token("quay"));
        assert_eq!(checked(WebhookKind::DockerHub, &format!("a=b&token={hub}")), Ok(()));
        assert_eq!(checked(WebhookKind::Quay, &format!("token={quay}")), Ok(()));
        for query in
            ["", "token=", "token=secret", &format!("token={quay}"), &format!("token={}", &hub[..62])]
        {
            assert_eq!(checked(WebhookKind::DockerHub, query), Err(WebhookAuthError::Token), "{query}");
        }
    }
}
