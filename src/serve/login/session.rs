//! The session of a person: its end, and the token that protects its forms.
//!
//! In: the way in which a request was signed in. Out: a [`Session`] beside the viewer. A form of
//! the console has the token of [`csrf_token`], and is accepted only with it.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

use super::ended_sessions::SessionEnd;

/// The way in which a request was signed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInWay {
    /// A bearer token, which no browser sends by itself.
    Token,
    /// A cookie of a sign-in at an OpenID Connect provider.
    Cookie,
    /// An authenticating proxy.
    Proxy,
    /// The cookie of a console on this machine.
    Local,
}

/// The session of a request.
#[derive(Debug, Clone)]
pub struct Session {
    /// Id, which differs from that of each other session or person.
    pub(super) id: String,
    /// The way of the sign-in.
    pub way: SignInWay,
    /// The end, at which the viewer has to be known again: streams and followed logs end then.
    pub end: SessionEnd,
    pub(super) key: Arc<hmac::Key>,
}

impl Session {
    /// The session of a console on this machine, which has one. It ends with the process.
    pub fn local(secret: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        Self { id: "local".to_owned(), way: SignInWay::Local, end: SessionEnd::default(), key: Arc::new(key) }
    }

    /// True if browsers sign the person in by themselves, also for another website's request.
    fn is_ambient(&self) -> bool {
        self.way != SignInWay::Token
    }

    fn proof(&self, purpose: &str) -> String {
        URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, format!("{purpose}\0{}", self.id).as_bytes()))
    }
}

/// Returns the token that the forms of a session have.
pub fn csrf_token(session: &Session) -> String {
    session.proof("form")
}

/// True if a form has the token of the session, or needs none: no website makes a browser send a
/// bearer token. The comparison takes constant time.
pub fn verify_csrf(session: &Session, token: &str) -> bool {
    if !session.is_ambient() {
        return true;
    }
    let tag = URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
    hmac::verify(&session.key, format!("form\0{}", session.id).as_bytes(), &tag).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_of_one_session() {
        let key = |text: &str| Arc::new(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes()));
        let session = |id: &str, text: &str| Session {
            id: id.to_owned(),
            way: SignInWay::Cookie,
            end: SessionEnd::default(),
            key: key(text),
        };
        let (own, other, elsewhere) = (session("a", "k"), session("b", "k"), session("a", "l"));
        assert!(verify_csrf(&own, &csrf_token(&own)));
        for wrong in [csrf_token(&other), csrf_token(&elsewhere), own.proof("tag"), String::new()] {
            assert!(!verify_csrf(&own, &wrong), "{wrong}");
        }
        let [one, two] = ["one", "two"].map(Session::local);
        assert!(verify_csrf(&one, &csrf_token(&one)) && !verify_csrf(&one, &csrf_token(&two)));
        assert!(verify_csrf(&Session { way: SignInWay::Token, ..own }, ""));
    }
}
