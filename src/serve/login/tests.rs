//! Attacks on sign-ins, each a row: a fake provider on loopback, and the router of the page.

mod requests;
mod sessions;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{COOKIE, HOST, HeaderName, LOCATION, SET_COOKIE};
use axum::http::{Method, Response, StatusCode};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http_body_util::BodyExt;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tower::ServiceExt;

use super::names::NameRules;
use super::proxy_headers::ProxyHeaders;
use super::{ProxyConnection, SignIn, TokenReviewRequest, seconds};
use crate::report::board::StatusBoard;
use crate::serve::StatusPage;
use crate::serve::connections::PeerAddress;
use crate::serve::page::form_value;
use crate::serve::rights::ConsoleAccess;
use crate::serve::viewer::{AccessRequest, AccessReviews};
use crate::settings::ConsoleSettings;
use crate::source::{HostPolicy, Repositories};

const CONSOLE: &str = "console.example";
const KEY: &str = "0123456789abcdef0123456789abcdef";

/// Wrong answers of a provider, or of a stranger in its name.
#[derive(Default)]
struct Wrong {
    claims: Value,
    head: Value,
    redirects: bool,
}

struct Provider {
    url: String,
    key: EcdsaKeyPair,
    /// Nonce and challenge of each code.
    codes: Mutex<HashMap<String, (String, String)>>,
    wrong: Mutex<Wrong>,
    redeemed: Mutex<usize>,
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Provider {
    async fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref(), &random).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let provider = Arc::new(Self {
            url,
            key,
            codes: Mutex::default(),
            wrong: Mutex::default(),
            redeemed: Mutex::default(),
        });
        let router = Router::new()
            .route(
                "/.well-known/openid-configuration",
                get(|State(own): State<Arc<Self>>| async move { own.description() }),
            )
            .route("/keys", get(|State(own): State<Arc<Self>>| async move { own.keys() }))
            .route(
                "/token",
                post(|State(own): State<Arc<Self>>, form: String| async move { own.token(&form) }),
            )
            .with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        provider
    }

    fn description(&self) -> String {
        let url = &self.url;
        json!({"issuer": url, "authorization_endpoint": format!("{url}/authorize"),
            "token_endpoint": format!("{url}/token"), "jwks_uri": format!("{url}/keys")})
        .to_string()
    }

    fn keys(&self) -> String {
        let point = self.key.public_key().as_ref();
        let point = json!({"kty": "EC", "crv": "P-256", "kid": "one", "x": encode(&point[1..33]), "y": encode(&point[33..])});
        json!({"keys": [point]}).to_string()
    }

    fn token(&self, form: &str) -> Response<Body> {
        let value = |name| form_value(form, name).unwrap_or_default();
        *self.redeemed.lock().unwrap() += 1;
        let wrong = self.wrong.lock().unwrap();
        let answer =
            |status: u16, text: String| Response::builder().status(status).body(Body::from(text)).unwrap();
        if wrong.redirects {
            let mut elsewhere = answer(302, String::new());
            elsewhere.headers_mut().insert(LOCATION, format!("{}/keys", self.url).parse().unwrap());
            return elsewhere;
        }
        let Some((nonce, challenge)) = self.codes.lock().unwrap().remove(&value("code")) else {
            return answer(400, json!({"error": "invalid_grant"}).to_string());
        };
        let proof = encode(digest(&SHA256, value("code_verifier").as_bytes()));
        assert_eq!((proof, value("client_id")), (challenge, "moorline".to_owned()));
        let mut claims = json!({"iss": self.url, "aud": "moorline", "sub": "ada", "nonce": nonce,
            "groups": ["team-a", "other"], "exp": seconds() + 60, "iat": seconds()});
        let mut head = json!({"alg": "ES256", "kid": "one"});
        for (into, from) in [(&mut claims, &wrong.claims), (&mut head, &wrong.head)] {
            from.as_object().into_iter().flatten().for_each(|(name, value)| into[name] = value.clone());
        }
        let signed = format!("{}.{}", encode(head.to_string()), encode(claims.to_string()));
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        answer(200, json!({"id_token": format!("{signed}.{}", encode(signature))}).to_string())
    }
}

struct Console {
    router: Router,
    sign_in: SignIn,
    reviews: mpsc::Receiver<TokenReviewRequest>,
    _folder: tempfile::TempDir,
    _end: watch::Sender<bool>,
    board: watch::Sender<Arc<StatusBoard>>,
}

impl Console {
    fn new(issuer: &str, more: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let secrets = folder.path().join("secrets");
        std::fs::create_dir(&secrets).unwrap();
        std::fs::write(secrets.join("session-key"), KEY).unwrap();
        let url = format!("https://{CONSOLE}");
        let secrets = secrets.to_str().unwrap().to_owned();
        let mut entries = vec![
            ("url", url.as_str()),
            ("oidcIssuer", issuer),
            ("oidcClientID", "moorline"),
            ("secrets", &secrets),
            ("tokenAudience", "moorline-console"),
        ];
        entries.extend(more);
        let entries = entries.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let network = Repositories::new(folder.path(), None, HostPolicy::allow_all()).unwrap();
        let (review, reviews) = mpsc::channel(4);
        let settings = ConsoleSettings::new(entries).unwrap();
        let mut sign_in = SignIn::new(&settings, review, &network, "moorline").unwrap().unwrap();
        // Its certificate is a header of the tests.
        let names = NameRules { prefix: "proxy:".into(), groups: "".into() };
        let proxy = ProxyHeaders { user: HeaderName::from_static("x-user"), groups: None, names };
        Arc::get_mut(&mut sign_in.0).unwrap().proxy = Some(proxy);
        let (board, newest) = watch::channel(Arc::new(StatusBoard::default()));
        let (end, ending) = watch::channel(false);
        let page = StatusPage::new(newest, mpsc::channel(1).0, ending, true).with_console(granting());
        let page = page.with_sign_in(Some(sign_in.clone()));
        Self { router: page.router(), sign_in, reviews, _folder: folder, _end: end, board }
    }

    async fn send(&self, method: Method, path: &str, lines: &[(&str, &str)]) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        if !lines.iter().any(|(name, _)| *name == HOST.as_str()) {
            request = request.header(HOST, CONSOLE);
        }
        let request = lines.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let mut request = request.body(Body::empty()).unwrap();
        if lines.iter().any(|(name, _)| *name == "x-test-certificate") {
            request.extensions_mut().insert(ProxyConnection);
        }
        if let Some((_, peer)) = lines.iter().find(|(name, _)| *name == "x-test-peer") {
            request.extensions_mut().insert(PeerAddress(peer.parse().unwrap()));
        }
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn get(&self, path: &str, lines: &[(&str, &str)]) -> Response<Body> {
        self.send(Method::GET, path, lines).await
    }

    /// Begins a sign-in that the provider will accept; returns the query of the callback and the
    /// cookie.
    async fn begin(&self, provider: &Provider) -> (String, String) {
        let answer = self.get("/login/start?next=/syncs/a/b", &[]).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        let location = answer.headers()[LOCATION].to_str().unwrap().to_owned();
        let (front, query) = location.split_once('?').unwrap();
        assert_eq!(front, format!("{}/authorize", provider.url));
        let value = |name| form_value(query, name).unwrap();
        assert_eq!(value("redirect_uri"), format!("https://{CONSOLE}/login/callback"));
        let code = value("code_challenge");
        provider.codes.lock().unwrap().insert(code.clone(), (value("nonce"), code.clone()));
        (format!("code={code}&state={}", value("state")), cookie_of(&answer, "__Host-moorline-login"))
    }

    async fn end(&self, query: &str, cookie: &str) -> Response<Body> {
        self.get(&format!("/login/callback?{query}"), &[(COOKIE.as_str(), cookie)]).await
    }

    /// Signs in, and returns the cookie.
    async fn signed_in(&self, provider: &Provider) -> String {
        let (query, cookie) = self.begin(provider).await;
        let answer = self.end(&query, &cookie).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        assert_eq!(answer.headers()[LOCATION], "/syncs/a/b");
        cookie_of(&answer, "__Host-moorline-session")
    }
}

/// Access of people to whom everything is granted.
fn granting() -> ConsoleAccess {
    let (ask, mut questions) = mpsc::channel::<AccessRequest>(4);
    tokio::spawn(async move {
        while let Some(question) = questions.recv().await {
            let _ = question.answer.send(Ok(true));
        }
    });
    ConsoleAccess { reviews: AccessReviews::new(ask), actions: mpsc::channel(1).0 }
}

fn cookie_of(answer: &Response<Body>, name: &str) -> String {
    let all = answer.headers().get_all(SET_COOKIE).iter().map(|value| value.to_str().unwrap());
    let line = all.into_iter().find(|line| line.starts_with(&format!("{name}="))).expect(name);
    for part in ["Path=/", "HttpOnly", "SameSite=Lax", "Secure"] {
        assert!(line.split("; ").any(|known| known == part), "{line}");
    }
    line.split(';').next().unwrap().to_owned()
}

async fn text(answer: Response<Body>) -> String {
    String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn a_person_signs_in_and_nobody_in_their_name() {
    let provider = Provider::start().await;
    let console = Console::new(&provider.url, &[]);
    let session = console.signed_in(&provider).await;
    let with = [(COOKIE.as_str(), session.as_str())];
    let page = text(console.get("/", &with).await).await;
    let form = "<form method=\"post\" action=\"/logout\"";
    assert!(page.contains(form) && page.contains("You are <b>oidc:ada</b>"), "{page}");
    let page = text(console.get("/logout", &with).await).await;
    assert!(page.contains("You are oidc:ada here."), "{page}");

    // Answers of the provider, or of a stranger in its name.
    let groups: Vec<String> = (0..300).map(|number| format!("group-number-{number}")).collect();
    for (claims, head, status, says) in [
        (json!({"nonce": "other"}), Value::Null, 403, "wrong nonce"),
        (json!({"aud": "other"}), Value::Null, 403, "wrong audience"),
        (json!({"iss": "https://evil.example"}), Value::Null, 403, "wrong issuer"),
        (json!({"exp": seconds() - 61}), Value::Null, 403, "not valid at this time"),
        (Value::Null, json!({"alg": "none"}), 403, "not signed by RS256 or ES256"),
        (Value::Null, json!({"alg": "HS256"}), 403, "not signed by RS256 or ES256"),
        (Value::Null, json!({"kid": "two"}), 403, "a key that the provider does not publish"),
        (json!({"sub": "system:admin"}), Value::Null, 403, "begin with system:"),
        (json!({"groups": ["system:masters"]}), Value::Null, 403, "begin with system:"),
        (json!({"sub": 7}), Value::Null, 403, "no claim sub"),
        (json!({"groups": groups}), Value::Null, 403, "more groups than a cookie holds"),
    ] {
        *provider.wrong.lock().unwrap() = Wrong { claims, head, redirects: false };
        let (query, cookie) = console.begin(&provider).await;
        let answer = console.end(&query, &cookie).await;
        let got = (answer.status().as_u16(), answer.headers().get_all(SET_COOKIE).iter().count());
        let page = text(answer).await;
        assert_eq!(got, (status, 1), "{says}");
        assert!(page.contains(says), "{says}: {page}");
    }
    *provider.wrong.lock().unwrap() = Wrong { redirects: true, ..Wrong::default() };
    let (query, cookie) = console.begin(&provider).await;
    assert_eq!(console.end(&query, &cookie).await.status(), 502, "a redirect is not followed");
    let mut statuses = Vec::new();
    for _ in 0..20 {
        statuses.push(console.get("/login/start", &[]).await.status().as_u16());
    }
    assert!(statuses.contains(&303) && statuses.contains(&429), "too many at once are refused: {statuses:?}");
}

#[tokio::test]
async fn a_sign_in_ends_once_and_in_the_browser_that_began_it() {
    let provider = Provider::start().await;
    let console = Console::new(&provider.url, &[]);
    let other = Console::new(&provider.url, &[("oidcPrefix", "sso:")]);
    let (query, cookie) = console.begin(&provider).await;
    let (_, foreign) = console.begin(&provider).await;
    let (_, of_others) = other.begin(&provider).await;
    let state = form_value(&query, "state").unwrap();
    let altered = format!("{}A", &cookie[..cookie.len() - 1]);
    let altered = if altered == cookie { format!("{}B", &cookie[..cookie.len() - 1]) } else { altered };
    for (query, cookie) in [
        (query.as_str(), ""),
        (&query, &altered),
        (&query, &foreign),
        (&query, &of_others),
        (&query, &format!("{cookie}; {cookie}")),
        (&query, &cookie.replace("__Host-moorline-login", "moorline-login")),
        (&query.replace(&state, "other"), &cookie),
        (&query.replace("state", "estate"), &cookie),
    ] {
        assert_eq!(console.end(query, cookie).await.status(), 400, "{query} {cookie}");
    }
    assert_eq!(*provider.redeemed.lock().unwrap(), 0, "no code was sent");
    assert_eq!(console.end(&query, &cookie).await.status(), 303);
    assert_eq!(console.end(&query, &cookie).await.status(), 400, "replayed");
    assert_eq!(*provider.redeemed.lock().unwrap(), 1);
    // A used code is the provider's to refuse; a declined sign-in and another issuer send none.
    let (fresh, cookie) = console.begin(&provider).await;
    let state = form_value(&fresh, "state").unwrap();
    let used = format!("{}&state={state}", query.split('&').next().unwrap());
    assert_eq!(console.end(&used, &cookie).await.status(), 502);
    let (fresh, cookie) = console.begin(&provider).await;
    assert_eq!(console.end(&format!("{fresh}&error=access_denied"), &cookie).await.status(), 403);
    let (fresh, cookie) = console.begin(&provider).await;
    assert_eq!(console.end(&format!("{fresh}&iss=https://evil.example"), &cookie).await.status(), 400);
    assert_eq!(*provider.redeemed.lock().unwrap(), 2);
}
