//! Sessions across processes: what was ended in one counts in no other.

use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use axum::http::header::{COOKIE, ORIGIN};

use super::{CONSOLE, Console, Provider};
use crate::serve::login::milliseconds;

#[tokio::test]
async fn a_session_that_was_ended_counts_in_no_later_term() {
    let provider = Provider::start().await;
    let (standby, leader) = (Console::new(&provider.url, &[]), Console::new(&provider.url, &[]));
    let session = leader.signed_in(&provider).await;
    let status = async |console: &Console, session: &str| {
        console.get("/", &[(COOKIE.as_str(), session)]).await.status().as_u16()
    };
    // All replicas have one key.
    assert_eq!((status(&leader, &session).await, status(&standby, &session).await), (200, 200));
    let origin = format!("https://{CONSOLE}");
    let lines = [(COOKIE.as_str(), session.as_str()), (ORIGIN.as_str(), origin.as_str())];
    assert_eq!(leader.send(Method::POST, "/logout", &lines).await.status(), 303);
    assert_eq!(status(&leader, &session).await, 303, "the copy of a cookie has ended");

    tokio::time::sleep(Duration::from_millis(5)).await;
    let restarted = Console::new(&provider.url, &[]);
    assert_eq!(status(&restarted, &session).await, 303, "a new process");
    standby.board.send_modify(|board| Arc::make_mut(board).term_began = milliseconds());
    assert_eq!(status(&standby, &session).await, 303, "a new leader");
    for console in [&restarted, &standby] {
        let fresh = console.signed_in(&provider).await;
        assert_eq!(status(console, &fresh).await, 200);
    }
}
