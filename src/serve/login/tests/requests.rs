//! Attacks on requests: without a person, for other hosts, from other websites, and with tokens.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::Method;
use axum::http::header::{COOKIE, HOST, LOCATION, ORIGIN};
use futures::StreamExt as _;
use serde_json::json;
use tokio::sync::mpsc;

use super::{CONSOLE, Console, Provider, text};
use crate::serve::login::sealed_cookie::CookieKind;
use crate::serve::login::{SESSION_SECONDS, TokenReviewRequest, milliseconds, seconds};
use crate::serve::viewer::Person;

#[tokio::test]
async fn nothing_is_served_without_a_person() {
    let provider = Provider::start().await;
    let console = Console::new(&provider.url, &[]);
    let session = console.signed_in(&provider).await;
    let keys = &console.sign_in.0.keys;
    let sealed = |kind, ends: i64| {
        let value = json!({"id": "a", "user": "ada", "groups": [], "begun": milliseconds(), "ends": ends, "state": "s"});
        format!("__Host-moorline-session={}", keys.seal(kind, &value).unwrap())
    };
    let value = session.split_once('=').unwrap().1;
    let other = Console::new(&provider.url, &[("oidcPrefix", "sso:")]);
    assert_eq!(
        console.get("/", &[(COOKIE.as_str(), &sealed(CookieKind::Session, seconds() + 9))]).await.status(),
        200
    );
    for (cookie, why) in [
        (String::new(), "none"),
        (format!("__Host-moorline-session=A{}", &value[1..]), "altered"),
        (format!("moorline-session={value}"), "another name"),
        (format!("{session}; {session}"), "twice"),
        (sealed(CookieKind::Session, seconds()), "expired"),
        (sealed(CookieKind::SignIn, seconds() + SESSION_SECONDS), "another kind"),
        // Its session key and its provider are the same.
        (other.signed_in(&provider).await, "another prefix of names"),
    ] {
        for (path, status) in [("/", 303), ("/syncs/a/b", 303), ("/api/v1/syncs", 401), ("/events", 401)] {
            let answer = console.get(path, &[(COOKIE.as_str(), &cookie)]).await;
            assert_eq!(answer.status(), status, "{why} {path}");
        }
    }
    let answer = console.get("/syncs/a/b?q=1", &[]).await;
    assert_eq!(answer.headers()[LOCATION], "/login?next=/syncs/a/b%3Fq%3D1");
    let page = console.get("/login?next=//evil.example", &[]).await;
    assert!(page.headers()["content-security-policy"].to_str().unwrap().contains("frame-ancestors 'none'"));
    let page = text(page).await;
    assert!(page.contains("/login/start?next=%2F\"") && !page.contains("evil"), "{page}");
    for file in ["/page.css", "/page.js", "/icon.svg"] {
        assert_eq!(console.get(file, &[]).await.status(), 200, "{file}");
    }

    let with = (COOKIE.as_str(), session.as_str());
    let mut stream = console.get("/events", &[with]).await.into_body().into_data_stream();
    assert!(stream.next().await.unwrap().unwrap().starts_with(b"event: version\n"));
    let stream = tokio::spawn(stream.collect::<Vec<_>>());
    // It waits before the session ends.
    tokio::task::yield_now().await;
    let origin = ORIGIN.as_str();
    let own = format!("https://{CONSOLE}");
    for (method, path, lines, status) in [
        (Method::GET, "/", vec![with, (HOST.as_str(), "evil.example")], 421),
        (Method::GET, "/", vec![with, (HOST.as_str(), "console.example.evil")], 421),
        (Method::GET, "/login", vec![(HOST.as_str(), "evil.example")], 421),
        (Method::GET, "/?access_token=planted", vec![with], 400),
        (Method::GET, "/events?token=planted", vec![with], 400),
        (Method::POST, "/", vec![with], 403),
        (Method::POST, "/", vec![with, (origin, "https://evil.example")], 403),
        (Method::POST, "/", vec![with, (origin, "null")], 403),
        (Method::POST, "/", vec![with, (origin, own.as_str())], 405),
        (Method::POST, "/", vec![(origin, own.as_str())], 401),
        (Method::POST, "/mcp", vec![], 401),
        (Method::POST, "/mcp", vec![with, (origin, own.as_str())], 403),
        (Method::POST, "/login/callback", vec![(origin, own.as_str())], 405),
        (Method::POST, "/logout", vec![with, (origin, "https://evil.example")], 403),
        (Method::GET, "/logout", vec![with], 200),
        (Method::GET, "/", vec![with], 200),
        (Method::POST, "/logout", vec![with, (origin, own.as_str())], 303),
        (Method::GET, "/", vec![with], 303),
    ] {
        let answer = console.send(method.clone(), path, &lines).await;
        assert_eq!(answer.status(), status, "{method} {path} {lines:?}");
        let caching = answer.headers()["cache-control"].to_str().unwrap();
        assert_eq!(caching, "no-store", "{path}");
    }
    let rest = tokio::time::timeout(Duration::from_secs(2), stream).await;
    assert!(rest.expect("it ends with the sign-out").unwrap().is_empty());
}

/// Answers reviews: one token is known. Returns their number.
fn answer_reviews(mut reviews: mpsc::Receiver<TokenReviewRequest>) -> Arc<Mutex<usize>> {
    let number = Arc::new(Mutex::new(0));
    let counted = number.clone();
    tokio::spawn(async move {
        while let Some(request) = reviews.recv().await {
            *counted.lock().unwrap() += 1;
            assert_eq!(&*request.audience, "moorline-console");
            assert!(!format!("{request:?}").contains("planted"));
            let person = |user: &str| {
                let user = user.to_owned();
                Person { user, uid: None, groups: Vec::new(), extra: Default::default() }
            };
            let answer = match request.token.as_str() {
                "planted.token" => Ok(Some(person("system:serviceaccount:shop:robot"))),
                "away" => Err("the API server is away".to_owned()),
                _ => Ok(None),
            };
            let _ = request.answer.send(answer);
        }
    });
    number
}

#[tokio::test(start_paused = true)]
async fn a_token_is_reviewed_every_ten_seconds_and_shown_to_nobody() {
    let mut console = Console::new("http://127.0.0.1:9", &[]);
    let reviews = std::mem::replace(&mut console.reviews, mpsc::channel(1).1);
    let number = answer_reviews(reviews);
    let get =
        async |value: &str| console.get("/api/v1/syncs", &[("authorization", value)]).await.status().as_u16();
    assert_eq!((get("Bearer planted.token").await, get("bearer planted.token").await), (200, 200));
    assert_eq!(*number.lock().unwrap(), 1);
    tokio::time::advance(Duration::from_secs(11)).await;
    assert_eq!(get("Bearer planted.token").await, 200);
    assert_eq!(*number.lock().unwrap(), 2);
    assert_eq!((get("Bearer other").await, get("Bearer other").await), (401, 401));
    assert_eq!(get("Bearer away").await, 503);
    assert_eq!(*number.lock().unwrap(), 4);
    for wrong in
        ["Basic planted.token", "Bearer", "Bearer ", "Bearer a b", "Bearer \"planted\"", "planted.token"]
    {
        assert_eq!(get(wrong).await, 401, "{wrong}");
    }
    assert_eq!(*number.lock().unwrap(), 4, "no request for what is no token");
    let answer = console.get("/api/v1/syncs", &[]).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["www-authenticate"]),
        (401, &"Bearer".parse().unwrap())
    );
    // A flood of wrong tokens from one address: few are reviewed, and nobody else is refused.
    let from = async |peer: &str, token: &str| {
        let lines = [("authorization", token), ("x-test-peer", peer)];
        console.get("/api/v1/syncs", &lines).await.status().as_u16()
    };
    let mut statuses = std::collections::BTreeMap::<u16, usize>::new();
    for wrong in 0..1024 {
        *statuses.entry(from("10.0.0.9", &format!("Bearer wrong-{wrong}")).await).or_default() += 1;
    }
    assert_eq!(statuses, [(401, 20), (429, 1004)].into());
    assert_eq!(*number.lock().unwrap(), 24);
    tokio::time::advance(Duration::from_secs(9)).await;
    assert_eq!(from("10.0.0.9", "Bearer wrong").await, 429);
    assert_eq!(from("10.0.0.8", "Bearer wrong").await, 401, "another address");
    tokio::time::advance(Duration::from_secs(3)).await;
    for wrong in 0..20 {
        from("10.0.0.9", &format!("Bearer wrong-{wrong}")).await;
    }
    assert_eq!(from("10.0.0.9", "Bearer new").await, 429);
    assert_eq!(from("10.0.0.9", "Bearer planted.token").await, 200, "it was accepted before");
    // No browser sends a token by itself.
    let post = async |lines: &[(&str, &str)]| console.send(Method::POST, "/", lines).await.status().as_u16();
    let token = ("authorization", "Bearer planted.token");
    assert_eq!((post(&[token]).await, post(&[token, ("origin", "https://evil.example")]).await), (405, 403));
    // A stream ends when the token has to be reviewed again.
    let began = tokio::time::Instant::now();
    let events = text(console.get("/events", &[token]).await).await;
    assert!(events.starts_with("event: version\n"), "{events}");
    assert_eq!(began.elapsed().as_secs(), 60);
    // Headers and a cookie that are accepted alone do not replace a token that is wrong.
    let value =
        json!({"id": "a", "user": "ada", "groups": [], "begun": milliseconds(), "ends": seconds() + 60});
    let cookie = console.sign_in.0.keys.seal(CookieKind::Session, &value).unwrap();
    let cookie = format!("__Host-moorline-session={cookie}");
    for mut lines in [vec![(COOKIE.as_str(), &*cookie)], vec![("x-user", "ada"), ("x-test-certificate", "")]]
    {
        assert_eq!(console.get("/", &lines).await.status(), 200, "{lines:?}");
        lines.push(("authorization", "Bearer other"));
        assert_eq!(console.get("/", &lines).await.status(), 401, "{lines:?}");
    }
}
