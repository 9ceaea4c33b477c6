//! Errors of connections and requests over HTTP/2.
//!
//! In: errors of the network, of TLS and of HTTP/2.
//! Out: [`TransportError`], which says if the server may have processed a request.

use std::time::Duration;

use h2::Reason;

/// Error of a connection or of a request.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum TransportError {
    /// There is no connection, and nothing was sent.
    #[error("{0}")]
    NotConnected(Box<str>),
    /// The server does not speak HTTP/2, and nothing was sent.
    #[error("the API server does not speak HTTP/2")]
    NotSpoken {
        /// Time in which HTTP/2 is not tried again.
        avoid_for: Duration,
    },
    /// The server has not processed the request, and will not.
    #[error("the API server did not accept the request: {0}")]
    Unprocessed(Box<str>),
    /// The connection or the stream broke: the server may have processed the request.
    #[error("{0}")]
    Lost(Box<str>),
    /// The server does not answer any more, not even a ping.
    #[error("the connection was silent, and a ping was not answered within {} s", .0.as_secs())]
    Silent(Duration),
}

impl TransportError {
    /// Judges the error of a request that was handed to a connection.
    pub(super) fn of_request(error: &h2::Error) -> Self {
        let text = error.to_string().into();
        match is_unprocessed(error) {
            true => Self::Unprocessed(text),
            false => Self::Lost(text),
        }
    }
}

/// True if the server says that it has not processed the request: it refused the stream, or its
/// GOAWAY names an earlier stream as the last one. `h2` gives a remote GOAWAY as the error of a
/// stream only in this case; all others end by an error of the connection.
fn is_unprocessed(error: &h2::Error) -> bool {
    let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
    error.is_remote() && (refused || error.is_go_away())
}

/// Returns the text of the innermost cause, which names the problem; the outer ones only say that
/// there is one.
pub(crate) fn innermost_cause(error: &(dyn std::error::Error + 'static)) -> Box<str> {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string().into()
}
