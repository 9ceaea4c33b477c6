//! Names that the program of an image looks up: search lists, long answers, addresses of both
//! kinds, and a server that fails.
//!
//! In: a name server of this test on loopback, and `/etc/resolv.conf` in the root. Out: that the
//! daemon reaches the repository.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::images::assembled;
use crate::root::{Image, Running, SCRATCH, add_libraries, daemon};
use crate::support::{ARCHITECTURE, binary, folder};

/// Time until the daemon has asked for the repository.
const LIMIT: Duration = Duration::from_secs(30);

/// Types of records.
const A: u16 = 1;
const AAAA: u16 = 28;

/// Name that the server knows, and how it answers.
#[derive(Clone, Copy)]
struct Known {
    name: &'static str,
    /// Number of further addresses in an answer, none of which is served.
    more: usize,
}

/// Names that were asked for, with the type of the record.
type Asked = Arc<Mutex<Vec<(String, u16)>>>;

#[test]
fn a_short_name_is_found_by_the_search_list_of_a_cluster() {
    check(1, "git.shop", Known { name: "git.shop.svc.cluster.local", more: 0 }, false);
}

#[test]
fn an_answer_that_does_not_fit_into_a_packet_is_read() {
    check(2, "git.example.com", Known { name: "git.example.com", more: 60 }, false);
}

#[test]
fn the_second_name_server_is_asked_when_the_first_fails() {
    check(3, "git.example.com", Known { name: "git.example.com", more: 0 }, true);
}

/// Starts a daemon in the root of the image that follows a repository of this name, and waits until
/// it is asked for. Each test has name servers of its own; the first of them may fail each request.
fn check(test: u8, host: &str, known: Known, first_fails: bool) {
    let (Some((layout, _)), Some(binary)) = (assembled(&format!("names-{test}")), binary()) else { return };
    let root = folder(&format!("names-root-{test}"));
    let image = Image::of(&layout, ARCHITECTURE);
    image.unpack(&root);
    add_libraries(&root, binary);
    fs::create_dir(root.join(SCRATCH)).expect("a folder");
    fs::set_permissions(root.join(SCRATCH), fs::Permissions::from_mode(0o777)).expect("a folder for all");
    let (failing, server) = (Ipv4Addr::new(127, 53, test, 1), Ipv4Addr::new(127, 53, test, 2));
    write_configuration(&root, &[failing, server][usize::from(!first_fails)..]);

    let Some(mut command) = daemon(&root, &image) else { return };

    let asked = Asked::default();
    serve(server, known, &asked);
    if first_fails {
        serve(failing, Known { name: "", ..known }, &Asked::default());
    }
    let repository = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = repository.local_addr().expect("an address");
    let url = format!("http://{host}:{}/shop.git", address.port());
    let arguments =
        ["run", "--sandbox", "--data-dir", "/scratch/data", "--page", "", "--listen", "127.0.0.1:0"];
    command.args(arguments).args(["--allowed-hosts", "*,127.0.0.0/8", "--url", &url]);
    let log = fs::File::create(root.join("log")).expect("a log");
    let running = Running(command.stdout(Stdio::null()).stderr(log).spawn().expect("the daemon starts"));
    let reached = accept(&repository, LIMIT);
    drop(running);
    let log = fs::read_to_string(root.join("log")).unwrap_or_default();
    let asked = asked.lock().expect("no thread panicked").clone();
    let request = reached.unwrap_or_else(|| panic!("the repository was not asked for: {asked:?}\n{log}"));
    assert!(request.contains(&format!("{host}:{}", address.port())), "{request}");
    for kind in [A, AAAA] {
        assert!(asked.contains(&(known.name.to_owned(), kind)), "{asked:?}");
    }
}

/// Writes what a Pod finds in its root.
fn write_configuration(root: &Path, servers: &[Ipv4Addr]) {
    let servers: String = servers.iter().map(|server| format!("nameserver {server}\n")).collect();
    let search = "search shop.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5 timeout:1 attempts:2\n";
    fs::write(root.join("etc/resolv.conf"), servers + search).expect("a configuration");
}

/// Waits for a connection, and returns what was asked.
fn accept(listener: &TcpListener, limit: Duration) -> Option<String> {
    listener.set_nonblocking(true).expect("a listener");
    let end = Instant::now() + limit;
    while Instant::now() < end {
        if let Ok((mut stream, _)) = listener.accept() {
            stream.set_nonblocking(false).expect("a stream");
            let mut bytes = [0; 4096];
            let size = stream.read(&mut bytes).unwrap_or(0);
            _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            return Some(String::from_utf8_lossy(&bytes[..size]).into_owned());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

/// Serves names over UDP and TCP until the process ends.
fn serve(address: Ipv4Addr, known: Known, asked: &Asked) {
    let address = SocketAddr::from((address, 53));
    let udp = UdpSocket::bind(address).unwrap_or_else(|error| panic!("{address}: {error}"));
    let tcp = TcpListener::bind(address).unwrap_or_else(|error| panic!("{address}: {error}"));
    let (asked_udp, asked_tcp) = (Arc::clone(asked), Arc::clone(asked));
    std::thread::spawn(move || {
        let mut bytes = [0; 1024];
        while let Ok((size, from)) = udp.recv_from(&mut bytes) {
            let mut answer = answer(&bytes[..size], known, &asked_udp);
            if answer.len() > 512 {
                answer = truncated(&answer);
            }
            _ = udp.send_to(&answer, from);
        }
    });
    std::thread::spawn(move || {
        for stream in tcp.incoming().map_while(Result::ok) {
            answer_stream(stream, known, &asked_tcp);
        }
    });
}

fn answer_stream(mut stream: TcpStream, known: Known, asked: &Asked) {
    stream.set_read_timeout(Some(Duration::from_secs(2))).expect("a limit");
    let mut size = [0; 2];
    // Several questions may come over one connection.
    while stream.read_exact(&mut size).is_ok() {
        let mut question = vec![0; usize::from(u16::from_be_bytes(size))];
        if stream.read_exact(&mut question).is_err() {
            return;
        }
        let answer = answer(&question, known, asked);
        let mut message = u16::try_from(answer.len()).expect("an answer fits").to_be_bytes().to_vec();
        message.extend(answer);
        if stream.write_all(&message).is_err() {
            return;
        }
    }
}

/// Answers a question: the addresses of the known name, no such name for others, and a failure if
/// no name is known.
fn answer(question: &[u8], known: Known, asked: &Asked) -> Vec<u8> {
    let Some((name, kind, end)) = read_question(question) else { return Vec::new() };
    asked.lock().expect("no thread panicked").push((name.clone(), kind));
    let (code, count) = match name == known.name {
        _ if known.name.is_empty() => (2, 0),
        true if kind == A => (0, 1 + known.more),
        true => (0, 0),
        false => (3, 0),
    };
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, 0x80 | code, 0, 1]);
    answer.extend(u16::try_from(count).expect("few").to_be_bytes());
    answer.extend([0; 4]);
    answer.extend(&question[12..end]);
    for at in 0..count {
        // A pointer to the name of the question, type A, class IN, a minute, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(if at == 0 { [127, 0, 0, 1] } else { [127, 0, 1, u8::try_from(at).expect("few")] });
    }
    answer
}

/// The beginning of an answer that is too long, with the bit that says so.
fn truncated(answer: &[u8]) -> Vec<u8> {
    let (_, _, end) = read_question(answer).expect("an answer repeats its question");
    let mut short = answer[..end].to_vec();
    short[2] |= 2;
    short[6..8].copy_from_slice(&[0, 0]);
    short
}

/// Name and type of a question, and where it ends.
fn read_question(message: &[u8]) -> Option<(String, u16, usize)> {
    let (mut at, mut labels) = (12, Vec::new());
    loop {
        let size = usize::from(*message.get(at)?);
        at += 1;
        if size == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(message.get(at..at + size)?).to_lowercase());
        at += size;
    }
    let kind = message.get(at..at + 2)?;
    Some((labels.join("."), u16::from_be_bytes([kind[0], kind[1]]), at + 4))
}
