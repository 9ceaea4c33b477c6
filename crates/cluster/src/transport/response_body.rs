//! The body of a response over HTTP/2.
//!
//! In: the frames of a stream.
//! Out: its data; each part that was read makes room for more on the stream and the connection.
//! The stream ends with the body: a body that is dropped resets it.

use std::pin::Pin;
use std::task::{Context, Poll};

use h2::{Reason, RecvStream};
use hyper::body::{Body, Bytes, Frame};

use super::BoxError;
use super::http2_connection::StreamSlot;

/// Body of one response.
pub(super) struct Http2Body {
    pub(super) stream: RecvStream,
    /// Dropped after the stream, so that the stream is closed when its room is given to another.
    pub(super) slot: StreamSlot,
}

impl Body for Http2Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match std::task::ready!(self.stream.poll_data(context)) {
            Some(Ok(data)) => {
                // Fails only if the stream has ended meanwhile.
                let _ = self.stream.flow_control().release_capacity(data.len());
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            // A server that has sent everything may close the stream so.
            Some(Err(error)) if error.is_reset() && error.reason() == Some(Reason::NO_ERROR) => {
                Poll::Ready(None)
            }
            Some(Err(error)) => Poll::Ready(Some(Err(self.slot.lost(&error).into()))),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }
}
