//! Bearer tokens: reviewed by the API server for an audience of our own.
//!
//! In: a token from the header `Authorization`. Out: the person. Decisions are kept for
//! [`KEPT_FOR`], under a keyed hash of the token: the token itself is kept nowhere.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use ring::hmac;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::review_shares::ReviewShares;
use crate::cluster::Cluster;
use crate::cluster::viewer::{ReviewedUser, review_token};
use crate::serve::viewer::Person;
use crate::source::SecretText;

/// Time for which a decision is kept.
pub const KEPT_FOR: Duration = Duration::from_secs(10);
/// The longest wait for a decision.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(5);
/// The most decisions that are kept.
const MAX_KEPT: usize = 1024;
/// The most reviews that wait; further ones are refused.
pub const MAX_REVIEWS: usize = 16;
/// The most concurrent reviews.
const MAX_CONCURRENT: usize = 4;
/// The most characters of a token.
const MAX_TOKEN: usize = 12 * 1024;

/// A request for the review of a token.
#[derive(Debug)]
pub struct TokenReviewRequest {
    /// The token, which cannot be formatted.
    pub token: SecretText,
    /// The audience that it has to be for.
    pub audience: Box<str>,
    /// Receives the person, none if the token is not accepted, or why there is no decision.
    pub answer: oneshot::Sender<Result<Option<Person>, String>>,
}

/// A decision and its time: the person, none if the token is not accepted.
type Decision = (Instant, Option<Arc<Person>>);

/// The bearer tokens of a console.
#[derive(Debug)]
pub(super) struct BearerTokens {
    audience: Box<str>,
    reviews: mpsc::Sender<TokenReviewRequest>,
    known: Mutex<HashMap<[u8; 32], Decision>>,
    shares: ReviewShares,
}

/// The reason why a token gives no person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenError {
    /// The API server does not accept it.
    Refused,
    /// There is no decision now.
    Undecided,
    /// Too many unknown tokens come from its address, or from everywhere.
    TooMany,
}

impl BearerTokens {
    pub(super) fn new(audience: &str, reviews: mpsc::Sender<TokenReviewRequest>) -> Self {
        Self { audience: audience.into(), reviews, known: Mutex::default(), shares: ReviewShares::default() }
    }

    /// Returns the person of a token, and the hash of the token. `peer` is the client's address.
    pub(super) async fn person(
        &self,
        token: &str,
        key: &hmac::Key,
        peer: IpAddr,
    ) -> Result<(Arc<Person>, [u8; 32]), TokenError> {
        let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        if token.is_empty() || token.len() > MAX_TOKEN || !token.bytes().all(is_sound) {
            return Err(TokenError::Refused);
        }
        let hash = hmac::sign(key, format!("token\0{token}").as_bytes());
        let hash: [u8; 32] = hash.as_ref().try_into().map_err(|_| TokenError::Refused)?;
        let known = match self.kept(&hash) {
            Some(known) => known,
            None => {
                let turn = self.shares.take(peer, hash).ok_or(TokenError::TooMany)?;
                let reviewed = self.review(token).await?.map(Arc::new);
                turn.decided(reviewed.is_some());
                self.keep(hash, reviewed.clone());
                reviewed
            }
        };
        known.map(|person| (person, hash)).ok_or(TokenError::Refused)
    }

    fn kept(&self, hash: &[u8; 32]) -> Option<Option<Arc<Person>>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(hash).filter(|(since, _)| since.elapsed() < KEPT_FOR).map(|(_, person)| person.clone())
    }

    fn keep(&self, hash: [u8; 32], person: Option<Arc<Person>>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KEPT {
            known.retain(|_, (since, _)| since.elapsed() < KEPT_FOR);
        }
        // Refused tokens take half of the places, so that a flood of them leaves room for people.
        let most = if person.is_some() { MAX_KEPT } else { MAX_KEPT / 2 };
        if known.len() < most {
            known.insert(hash, (Instant::now(), person));
        }
    }

    async fn review(&self, token: &str) -> Result<Option<Person>, TokenError> {
        let (answer, decision) = oneshot::channel();
        let request = TokenReviewRequest { token: token.into(), audience: self.audience.clone(), answer };
        self.reviews.try_send(request).map_err(|_| TokenError::Undecided)?;
        match timeout(REVIEW_TIMEOUT, decision).await {
            Ok(Ok(Ok(person))) => Ok(person),
            Ok(Ok(Err(_)) | Err(_)) | Err(_) => Err(TokenError::Undecided),
        }
    }
}

/// Reviews tokens at the API server until nobody asks any more.
pub async fn serve_token_reviews(cluster: Cluster, requests: mpsc::Receiver<TokenReviewRequest>) {
    let requests = futures::stream::unfold(requests, |mut requests| async move {
        let request = requests.recv().await?;
        Some((request, requests))
    });
    let reviewed = requests.for_each_concurrent(MAX_CONCURRENT, |request| async {
        let TokenReviewRequest { token, audience, answer } = request;
        let review = timeout(REVIEW_TIMEOUT, review_token(&cluster, token.as_str(), &audience));
        let decision = match review.await {
            Ok(Ok(user)) => Ok(user.map(person)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("the API server did not answer in time".to_owned()),
        };
        if let Err(error) = &decision {
            tracing::warn!(error, "a token could not be reviewed");
        }
        // The request may have ended meanwhile.
        let _ = answer.send(decision);
    });
    reviewed.await;
}

fn person(user: ReviewedUser) -> Person {
    Person { user: user.name, uid: user.uid, groups: user.groups, extra: user.extra }
}
