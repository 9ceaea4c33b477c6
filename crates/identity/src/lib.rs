//! Exchanges of keys and ServiceAccount tokens for short-lived tokens of servers and clouds, and
//! the sign-in of people.
//!
//! In: keys, tokens, names and the time.
//! Out: an [`ExchangeRequest`], and the [`Token`] in its answer. Nothing here reads a clock, a file
//! or a network: the caller sends the request, within its own bounds.
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]
// Nothing panics on input. Tests may panic.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod aws;
pub mod aws_kms;
pub mod azure;
pub mod azure_vault;
mod endpoints;
mod exchange;
pub mod gcp;
pub mod gcp_kms;
pub mod github_app;
pub mod id_token;
pub mod oidc;
mod secret;
mod signing_key;
pub mod sigv4;

pub use endpoints::CloudEndpoints;
pub use exchange::{
    ExchangeError, ExchangeRequest, MAX_ANSWER_BYTES, MAX_LIFETIME, MAX_TOKEN_BYTES, Method, Token, encoded,
    http_date,
};
pub use secret::{SecretBytes, SecretText};
pub use signing_key::SigningKey;
