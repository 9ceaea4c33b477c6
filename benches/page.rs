//! Cost of the status page: time to the first byte and size of the pages of Syncs with 1,000 and
//! 10,000 objects, and of 1,000 Syncs, over HTTP on the loopback. `cargo bench --bench page` prints
//! a table.
//!
//! Limits: with 1,000 objects or 1,000 Syncs the first byte arrives within 20 ms, and a page is
//! smaller than 100 kB. With 10,000 objects the size is the same, and the time 100 ms. 200 people
//! who follow add less than 50 MB, and cause no request to the API server but reviews of rights.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use moorline::report::board::StatusBoard;
use moorline::serve::{StatusPage, serve_page};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};

#[path = "../tests/page/board.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod board;
#[path = "page/viewers.rs"]
mod viewers;

const ROUNDS: usize = 51;
/// Limits: objects, time to the first byte, bytes.
const BARS: [(usize, Duration, usize); 2] =
    [(1_000, Duration::from_millis(20), 100_000), (10_000, Duration::from_millis(100), 100_000)];

fn main() {
    println!("| what | first byte, median | slowest of {ROUNDS} | bytes |");
    println!("|---|---|---|---|");
    for (count, most, bytes) in BARS {
        let sync = "/syncs/ops/many";
        let paths = [
            ("all Syncs", "/".to_owned()),
            ("the Sync", sync.to_owned()),
            ("its last page", format!("{sync}?page=100000")),
            ("its objects that need attention", format!("{sync}?state=attention")),
            ("one found by its name", format!("{sync}?q=application-00777")),
            ("its timeline", format!("{sync}/timeline")),
            ("its plan", format!("{sync}/plan")),
            ("the Sync as JSON", format!("/api/v1{sync}")),
        ];
        measure(board::many(count), &format!("{count} objects"), &paths, (most, bytes));
    }
    let paths = [
        ("the overview", "/".to_owned()),
        ("its last page", "/?page=100000".to_owned()),
        ("by namespace", "/?group=namespace&sort=name".to_owned()),
        ("by last change", "/?sort=changed".to_owned()),
        ("those that need attention", "/?state=attention".to_owned()),
        ("one found by its name", "/?q=app-777".to_owned()),
        ("one Sync", "/syncs/team-0/app-007".to_owned()),
    ];
    let (_, most, bytes) = BARS[0];
    measure(board::many_syncs(1000), "1000 Syncs", &paths, (most, bytes));
    viewers::measure(board::many_syncs(1000));
}

/// Prints a row for each path, and holds it against the bars.
fn measure(board: StatusBoard, of: &str, paths: &[(&str, String)], (most, bytes): (Duration, usize)) {
    let runtime = Runtime::new().expect("a runtime");
    let address = served(&runtime, board);
    for (what, path) in paths {
        let mut asked: Vec<(Duration, usize)> = (0..ROUNDS).map(|_| ask(address, path)).collect();
        asked.sort();
        let (median, size) = asked[ROUNDS / 2];
        let (slowest, _) = asked[ROUNDS - 1];
        println!("| {what}, of {of} | {median:.1?} | {slowest:.1?} | {size} |");
        // Without optimisation the times are meaningless.
        assert!(cfg!(debug_assertions) || median < most, "{path}: over the bar of {most:?}");
        assert!(size < bytes, "{path}: over the bar of {bytes} bytes");
    }
}

fn served(runtime: &Runtime, board: StatusBoard) -> SocketAddr {
    let (_, newest) = watch::channel(Arc::new(board));
    let (want, _) = mpsc::channel(1);
    let (end, ending) = watch::channel(false);
    // The server runs until the process ends.
    std::mem::forget(end);
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
    let address = listener.local_addr().expect("an address");
    runtime.spawn(serve_page(listener, StatusPage::new(newest, want, ending, true), std::future::pending()));
    address
}

/// Time from the connection to the first byte of the response, and the number of bytes of its body.
fn ask(address: SocketAddr, path: &str) -> (Duration, usize) {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request is sent");
    let mut answer = vec![0];
    stream.read_exact(&mut answer).expect("an answer");
    let first = begun.elapsed();
    stream.read_to_end(&mut answer).expect("all of it");
    let text = String::from_utf8(answer).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
    (first, body.len())
}
