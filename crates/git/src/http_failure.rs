//! Converts failed requests and damaged responses to errors.
//!
//! In: an error of the HTTP client, or a fault in a response, and the server.
//! Out: an [`Error`] that names the server.

use std::io;

use super::error::Error;
use super::hosts::HostRefused;
use crate::pack_inspection::PackError;
use crate::pkt_line::ProtocolError;

/// Converts the error of a request.
pub(super) fn failure(server: &str, error: &ureq::Error) -> Error {
    let server: Box<str> = server.into();
    match error {
        ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
            Error::Timeout { server, what: "accept a connection" }
        }
        ureq::Error::Timeout(_) => Error::Timeout { server, what: "answer" },
        ureq::Error::Other(cause) if let Some(HostRefused(why)) = cause.downcast_ref() => {
            Error::NotAllowed { server, why }
        }
        ureq::Error::HostNotFound => {
            Error::Unreachable { server, cause: "its name cannot be resolved".into() }
        }
        ureq::Error::Io(cause) => input_failure(server, cause),
        ureq::Error::Rustls(cause) => Error::Untrusted { server, cause: distrust(cause) },
        ureq::Error::Tls(cause) => Error::Untrusted { server, cause: (*cause).into() },
        ureq::Error::ConnectionFailed | ureq::Error::ConnectProxyFailed(_) => {
            Error::Unreachable { server, cause: "no connection, directly or through the proxy".into() }
        }
        _ => Error::InvalidResponse { server, what: "it does not speak HTTP" },
    }
}

/// Formats the reason for which a certificate is not trusted.
fn distrust(error: &rustls::Error) -> Box<str> {
    let text = error.to_string();
    match text.contains("CaUsedAsEndEntity") {
        true => SELF_SIGNED.into(),
        false => text.into(),
    }
}

/// By default `openssl req -x509` marks its certificate as an authority, not as a server.
const SELF_SIGNED: &str = "the server shows a certificate that is marked as an authority (CA:TRUE), as a self-signed one often is: create it again with basicConstraints=CA:FALSE (openssl req -x509 -addext basicConstraints=critical,CA:FALSE), or sign the server's certificate with that authority";

fn input_failure(server: Box<str>, cause: &io::Error) -> Error {
    let inner = cause.get_ref();
    if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<ureq::Error>()) {
        return failure(&server, error);
    }
    if let Some(error) = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        return Error::Untrusted { server, cause: distrust(error) };
    }
    match cause.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Error::Timeout { server, what: "answer" },
        io::ErrorKind::UnexpectedEof => {
            Error::InvalidResponse { server, what: "it ends in the middle of an answer" }
        }
        _ => Error::Unreachable { server, cause: cause.to_string().into() },
    }
}

/// Converts a fault in a response of `server`; `what` names the content.
pub(super) fn fault(server: &str, what: &'static str, fault: ProtocolError) -> Error {
    let server: Box<str> = server.into();
    match fault {
        ProtocolError::Input(cause) => input_failure(server, &cause),
        ProtocolError::Output(cause) => match cause.get_ref() {
            Some(inner) if inner.is::<git2::Error>() => {
                Error::InvalidResponse { server, what: "its pack is damaged" }
            }
            Some(inner) => match inner.downcast_ref::<PackError>() {
                Some(PackError::Damaged(what)) => Error::InvalidResponse { server, what },
                Some(PackError::TooLarge { what, limit }) => Error::TooLarge { server, what, limit: *limit },
                Some(PackError::Crowded) => Error::NoMemory,
                None => Error::Disk { what: "write a pack", cause: cause.to_string().into() },
            },
            None => Error::Disk { what: "write a pack", cause: cause.to_string().into() },
        },
        ProtocolError::Bad(what) => Error::InvalidResponse { server, what },
        ProtocolError::TooLarge(limit) => Error::TooLarge { server, what, limit },
        ProtocolError::Refused => Error::InvalidResponse { server, what: "it reports an error of its own" },
        ProtocolError::NotGiven => Error::NoCommit { commit: "".into() },
    }
}
