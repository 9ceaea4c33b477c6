//! Many people follow one console: nothing is asked of the API server but their rights.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use futures::StreamExt as _;
use moorline::report::board::{DaemonRole, SyncCard};
use moorline::serve::viewer::{Person, Viewer};
use serde_json::Value;
use tower::ServiceExt as _;

use super::Console;

/// People who follow.
const FOLLOWERS: usize = 20;

#[tokio::test]
async fn people_who_follow_cost_the_api_server_nothing_but_reviews() {
    let console = Console::start();
    console.request("GET", "/api/v1/namespaces", &Value::Null).await;
    assert_eq!(console.sandbox.take_requests().len(), 1, "they are counted");
    let mut streams = Vec::new();
    for number in 0..FOLLOWERS {
        let (user, groups, extra) = (format!("person-{number}"), Vec::new(), Default::default());
        let mut request = Request::get("/events").body(Body::empty()).unwrap();
        let person = Person { user, uid: None, groups, extra };
        request.extensions_mut().insert(Viewer::Person(Arc::new(person)));
        request.extensions_mut().insert(console.session.clone());
        let answer = console.page.clone().router().oneshot(request).await.unwrap();
        streams.push(answer.into_body().into_data_stream());
    }
    let mut next = async || {
        let events = futures::future::join_all(streams.iter_mut().map(|stream| stream.next())).await;
        let text =
            |event: Option<Result<_, _>>| String::from_utf8(Vec::from(event.unwrap().unwrap())).unwrap();
        events.into_iter().map(text).collect::<Vec<String>>()
    };
    let first = next().await;
    console.board.send_modify(|board| {
        let board = Arc::make_mut(board);
        board.set_role(DaemonRole::Serving);
        let card = SyncCard::clone(board.card("ops", "base").unwrap());
        board.update_card(SyncCard { status: board.card("ops", "shop").unwrap().status.clone(), ..card });
    });
    let second = next().await;
    assert!(first.iter().zip(&second).all(|(one, other)| one != other), "{second:?}");
    assert_eq!(*console.asked.lock().unwrap(), vec!["get syncs".to_owned(); FOLLOWERS]);
    let sent: Vec<String> = console.sandbox.take_requests().iter().map(|it| format!("{it:?}")).collect();
    assert_eq!(sent, Vec::<String>::new());
}
