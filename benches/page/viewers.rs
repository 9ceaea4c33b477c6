//! Cost of 200 people who follow the overview of a console: memory, and requests to the API server.
//!
//! In: a board of 1,000 Syncs, the sandbox as the API server, and one person for each stream.
//! Out: a table. The memory is that of this process, which has both ends of each stream.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use moorline::cluster::lease::WritePermit;
use moorline::cluster::{Cluster, Connection};
use moorline::controller::console::{ConsoleWork, serve_console_work};
use moorline::metrics::Metrics;
use moorline::report::board::{StatusBoard, SyncCard};
use moorline::sandbox::{Options, Sandbox};
use moorline::serve::login::Session;
use moorline::serve::rights::ConsoleAccess;
use moorline::serve::viewer::{AccessReviews, Person, Viewer};
use moorline::serve::{StatusPage, serve_console};
use moorline::settings::Settings;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};

/// People who follow.
const FOLLOWERS: usize = 200;
/// Changes that each of them sees.
const CHANGES: usize = 10;
/// Limit of the memory that they add, in bytes.
const BAR: u64 = 50_000_000;

/// Opens the streams, changes the board, and prints what it costs.
pub(crate) fn measure(board: StatusBoard) {
    let runtime = Runtime::new().expect("a runtime");
    let options = Options { record_requests: true, ..Options::default() };
    let sandbox = runtime.block_on(async { Arc::new(Sandbox::new(&options)) });
    let (board, newest) = watch::channel(Arc::new(board));
    let address = runtime.block_on(serve(&sandbox, newest));
    let mut first = follow(address, "warm-up");
    next(&mut first);
    sandbox.take_requests();
    let before = resident();
    let mut streams: Vec<_> =
        (0..FOLLOWERS).map(|number| follow(address, &format!("person-{number}"))).collect();
    streams.iter_mut().for_each(|stream| drop(next(stream)));
    let mut slowest = Duration::ZERO;
    for _ in 0..CHANGES {
        std::thread::sleep(Duration::from_millis(600));
        let begun = Instant::now();
        board.send_modify(change);
        streams.iter_mut().for_each(|stream| drop(next(stream)));
        slowest = slowest.max(begun.elapsed());
    }
    let added = resident().saturating_sub(before);
    let requests = sandbox.take_requests();
    let is_review = |path: &str| path.contains("accessreviews");
    let reviews = requests.iter().filter(|request| is_review(&request.uri)).count();
    let others = requests.len() - reviews;
    println!();
    println!("| {FOLLOWERS} people follow 1000 Syncs | |");
    println!("|---|---|");
    println!(
        "| memory that they add, with the browsers' ends of the streams | {:.1} MB |",
        added as f64 / 1e6
    );
    println!("| slowest of {CHANGES} changes on all {FOLLOWERS} | {slowest:.1?} |");
    println!("| reviews of rights | {reviews} |");
    println!("| other requests to the API server | {others} |");
    assert!(added < BAR, "over the bar of {BAR} bytes");
    assert!(reviews >= FOLLOWERS, "the requests are counted");
    assert_eq!(others, 0, "over the bar of 0 requests");
    // The server and its clients end with the process.
    std::mem::forget((runtime, streams));
}

async fn serve(sandbox: &Arc<Sandbox>, board: watch::Receiver<Arc<StatusBoard>>) -> std::net::SocketAddr {
    let connection = Connection::from_client(sandbox.client(), "ops");
    let (metrics, settings) = (Metrics::new().expect("metrics"), Settings::default());
    let cluster = Cluster::new(connection, metrics, WritePermit::unlimited(), &settings);
    let (ask, questions) = mpsc::channel(64);
    let (act, actions) = mpsc::channel(8);
    let work = ConsoleWork { cluster, board: board.clone(), identity: Arc::new(|_| None) };
    tokio::spawn(serve_console_work(work, questions, actions));
    let access = ConsoleAccess { reviews: AccessReviews::new(ask), actions: act };
    let (end, ending) = watch::channel(false);
    std::mem::forget(end);
    let page = StatusPage::new(board, mpsc::channel(1).0, ending, false).with_console(access);
    let router = page.router().layer(from_fn(sign_in));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(serve_console(listener, router, std::future::pending()));
    address
}

/// Takes the person from a header.
async fn sign_in(mut request: Request, next: Next) -> axum::response::Response {
    let user = request.headers().get("x-person").and_then(|user| user.to_str().ok());
    let user = user.unwrap_or_default().to_owned();
    let person = Person { user, uid: None, groups: Vec::new(), extra: Default::default() };
    request.extensions_mut().insert(Viewer::Person(Arc::new(person)));
    request.extensions_mut().insert(Session::local("bench"));
    next.run(request).await
}

/// Opens the event stream of a person.
fn follow(address: std::net::SocketAddr, person: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET /events HTTP/1.1\r\nHost: {address}\r\nX-Person: {person}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request is sent");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    BufReader::new(stream)
}

/// Waits for the next version.
fn next(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    while !line.starts_with("data: ") {
        line.clear();
        assert_ne!(stream.read_line(&mut line).expect("an event"), 0, "the stream has ended");
    }
    line
}

/// Gives one Sync a new version.
fn change(board: &mut Arc<StatusBoard>) {
    let board = Arc::make_mut(board);
    let card = board.cards.values().next().map(|card| SyncCard::clone(card)).expect("a Sync");
    let mut status = moorline::api::SyncStatus::clone(&card.status);
    status.observed_generation = Some(status.observed_generation.unwrap_or_default() + 1);
    board.update_card(SyncCard { status: Arc::new(status), ..card });
}

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}
