//! A loopback proxy between a daemon and the API server that injects network faults into single
//! requests.
//!
//! In: a rule that decides the fate of each request.
//! Out: a kubeconfig for the daemon (plain HTTP, so that no certificate is needed; the token is
//! passed on), and a log of all requests. Each connection of the daemon has its own connection to
//! the API server, and bodies are passed on chunk by chunk, so that watches stream.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

pub use super::asked::RecordedRequest;
use super::asked::{error_response, http_response, line, receive};
use super::control_plane::ControlPlane;
use super::stream::{Connector, Stream};

/// Fate of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The API server answers it.
    Pass,
    /// The proxy answers with this status, and a `Retry-After` in seconds.
    Answer(u16, Option<u64>),
    /// The proxy answers with this text.
    Say(&'static str),
    /// The connection is cut before the request reaches the API server.
    Drop,
    /// The API server answers, but the connection is cut before the response reaches the daemon.
    LoseReply,
    /// The request is passed on after this delay.
    Delay(Duration),
    /// The daemon is killed, by `kill -9`, before the request reaches the API server.
    KillBefore,
    /// The daemon is killed after the API server has answered, before the response reaches it.
    KillAfter,
    /// The daemon is stopped, by `kill -STOP`, before the request reaches the API server, and the
    /// connection is cut.
    StopBefore,
}

type Rule = Box<dyn FnMut(&RecordedRequest) -> Fate + Send>;

struct Inner {
    rule: Mutex<Rule>,
    log: Mutex<Vec<RecordedRequest>>,
    /// Process id of the daemon.
    victim: Mutex<Option<u32>>,
    /// True once a fatal request was received.
    doomed: Mutex<bool>,
    /// Both ends of every streaming response.
    streams: Mutex<Vec<(TcpStream, TcpStream)>>,
    /// Number of watches that the API server ended because their revision was compacted.
    expired: Mutex<usize>,
    /// True if responses are stripped of managed fields.
    hides: AtomicBool,
    server: String,
    /// Server for watches and lists, if it is a different one.
    reads: Mutex<Option<String>>,
    connector: Connector,
}

/// A proxy that runs until the test process ends.
pub struct FaultProxy {
    pub port: u16,
    inner: Arc<Inner>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FaultProxy {
    /// Starts a proxy that passes everything on.
    pub fn start(plane: &ControlPlane) -> Self {
        let inner = Arc::new(Inner {
            rule: Mutex::new(Box::new(|_| Fate::Pass)),
            log: Mutex::default(),
            victim: Mutex::default(),
            doomed: Mutex::default(),
            streams: Mutex::default(),
            expired: Mutex::default(),
            hides: AtomicBool::new(false),
            reads: Mutex::default(),
            server: address(&plane.url),
            connector: Connector::new(&plane.authority),
        });
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let proxy = Self { port: listener.local_addr().unwrap().port(), inner: inner.clone() };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let inner = inner.clone();
                thread::spawn(move || {
                    let _ = inner.serve(&client);
                    // The daemon sees the end of the connection even if another thread holds the
                    // socket.
                    let _ = client.shutdown(Shutdown::Both);
                });
            }
        });
        proxy
    }

    /// Returns a kubeconfig of a user that connects through this proxy.
    pub fn kubeconfig(&self, plane: &ControlPlane, user: &str) -> String {
        plane.kubeconfig(user).replace(&plane.url, &format!("http://127.0.0.1:{}", self.port))
    }

    /// Sets the rule for further requests.
    pub fn rule(&self, rule: impl FnMut(&RecordedRequest) -> Fate + Send + 'static) {
        *lock(&self.inner.rule) = Box::new(rule);
    }

    /// Passes everything on from now on.
    pub fn heal(&self) {
        self.rule(|_| Fate::Pass);
    }

    /// Sets the fate of the first `count` matching requests.
    pub fn first(&self, count: usize, fits: impl Fn(&RecordedRequest) -> bool + Send + 'static, fate: Fate) {
        let mut left = count;
        self.rule(move |asked| match left > 0 && fits(asked) {
            true => {
                left -= 1;
                fate
            }
            false => Fate::Pass,
        });
    }

    /// Sets the fate of the matching request with this number, from 0; all others are passed on.
    pub fn nth(&self, number: usize, fits: impl Fn(&RecordedRequest) -> bool + Send + 'static, fate: Fate) {
        let mut at = 0;
        self.rule(move |asked| {
            at += usize::from(fits(asked));
            if at == number + 1 && fits(asked) { fate } else { Fate::Pass }
        });
    }

    /// Sends watches and lists to another API server with the same authority from now on, by its
    /// URL; writes are not affected.
    pub fn read_from(&self, url: &str) {
        *lock(&self.inner.reads) = Some(address(url));
    }

    /// Sets the process that `KillBefore` and similar fates apply to.
    pub fn victim(&self, process: u32) {
        (*lock(&self.inner.victim), *lock(&self.inner.doomed)) = (Some(process), false);
    }

    /// True if the process was killed or stopped, or will be in a moment.
    pub fn is_doomed(&self) -> bool {
        *lock(&self.inner.doomed)
    }

    /// True if the process was killed or stopped.
    pub fn has_struck(&self) -> bool {
        lock(&self.inner.victim).is_none()
    }

    /// Cuts every open watch.
    pub fn cut_watches(&self) -> usize {
        let streams = std::mem::take(&mut *lock(&self.inner.streams));
        for (client, server) in &streams {
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
        streams.len()
    }

    /// Removes the managed fields from all responses from now on, as some proxies do.
    pub fn hide_entries(&self) {
        self.inner.hides.store(true, Ordering::Relaxed);
    }

    /// Returns the requests since the last call.
    pub fn take_requests(&self) -> Vec<RecordedRequest> {
        std::mem::take(&mut *lock(&self.inner.log))
    }

    /// Returns the number of watches that failed because their revision was compacted.
    pub fn expired(&self) -> usize {
        *lock(&self.inner.expired)
    }
}

type Server = BufReader<Stream>;

/// Host and port of a URL.
fn address(url: &str) -> String {
    url.trim_start_matches("https://").trim_start_matches("http://").to_owned()
}

impl Inner {
    fn serve(&self, client: &TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        let mut input = BufReader::new(client.try_clone()?);
        let mut server: Option<(String, Server)> = None;
        loop {
            let asked = receive(&mut input)?;
            lock(&self.log).push(asked.clone());
            let fate = lock(&self.rule)(&asked);
            if matches!(fate, Fate::KillBefore | Fate::KillAfter | Fate::StopBefore) {
                *lock(&self.doomed) = true;
            }
            match fate {
                Fate::Pass | Fate::LoseReply | Fate::KillAfter => {}
                Fate::Delay(time) => thread::sleep(time),
                Fate::Drop => return Ok(()),
                Fate::KillBefore => return self.strike("KILL"),
                Fate::StopBefore => return self.strike("STOP"),
                Fate::Say(text) => {
                    (&mut &*client).write_all(http_response("200 OK", "", text).as_bytes())?;
                    continue;
                }
                Fate::Answer(status, retry) => {
                    (&mut &*client).write_all(error_response(status, retry).as_bytes())?;
                    continue;
                }
            }
            let address = self.address(&asked);
            let (_, server) = match &mut server {
                Some(server) if server.0 == address && is_open(&server.1) => server,
                none => none.insert((address.clone(), self.connect(&address)?)),
            };
            server.get_mut().write_all(asked.head.as_bytes())?;
            server.get_mut().write_all(&asked.body)?;
            server.get_mut().flush()?;
            match fate {
                Fate::LoseReply | Fate::KillAfter => {
                    self.relay(server, &mut io::sink(), None)?;
                    return if fate == Fate::KillAfter { self.strike("KILL") } else { Ok(()) };
                }
                _ => self.relay(server, &mut &*client, asked.is_watch().then_some(client))?,
            }
        }
    }

    fn address(&self, asked: &RecordedRequest) -> String {
        let reads = lock(&self.reads);
        let reads = reads.as_ref().filter(|_| asked.is_watch() || asked.lists());
        reads.unwrap_or(&self.server).clone()
    }

    fn connect(&self, address: &str) -> io::Result<Server> {
        self.connector.connect(address).map(BufReader::new)
    }

    fn strike(&self, signal: &str) -> io::Result<()> {
        if let Some(process) = lock(&self.victim).take() {
            Command::new("kill").arg(format!("-{signal}")).arg(process.to_string()).status()?;
        }
        Ok(())
    }

    /// Changes a part of a response for the daemon. Its length is kept, because the header with it
    /// was sent already.
    fn shown(&self, mut part: Vec<u8>) -> Vec<u8> {
        const FIELD: &[u8] = b"\"managedFields\":";
        if self.hides.load(Ordering::Relaxed) {
            let found: Vec<usize> = part
                .windows(FIELD.len())
                .enumerate()
                .filter(|(_, it)| *it == FIELD)
                .map(|(at, _)| at)
                .collect();
            found.into_iter().for_each(|at| part[at + 1..at + 3].copy_from_slice(b"no"));
        }
        part
    }

    /// Passes one response on while it arrives.
    fn relay(&self, server: &mut Server, to: &mut impl Write, watch: Option<&TcpStream>) -> io::Result<()> {
        let (mut head, mut length, mut chunked) = (String::new(), None, false);
        loop {
            let line = line(server)?;
            head.push_str(&line);
            let header = line.trim_end().to_ascii_lowercase();
            if let Some(number) = header.strip_prefix("content-length: ") {
                length = number.parse::<u64>().ok();
            }
            chunked |= header == "transfer-encoding: chunked";
            if header.is_empty() {
                break;
            }
        }
        if watch.is_some() && head.starts_with("HTTP/1.1 410") {
            *lock(&self.expired) += 1;
        }
        to.write_all(head.as_bytes())?;
        if let (Some(client), true) = (watch, chunked) {
            let tcp = server.get_ref().socket().try_clone()?;
            // Ends the upstream watch once the daemon has closed its connection; no other client
            // reads it.
            let (peeked, upstream) = (client.try_clone()?, tcp.try_clone()?);
            thread::spawn(move || {
                let _ = peeked.peek(&mut [0]);
                let _ = upstream.shutdown(Shutdown::Both);
            });
            lock(&self.streams).push((client.try_clone()?, tcp));
        }
        if !chunked {
            let mut body = Vec::new();
            server.take(length.unwrap_or(0)).read_to_end(&mut body)?;
            to.write_all(&self.shown(body))?;
            return to.flush();
        }
        loop {
            let size = line(server)?;
            let count = usize::from_str_radix(size.trim_end(), 16).map_err(io::Error::other)?;
            let mut chunk = vec![0; count + 2];
            server.read_exact(&mut chunk)?;
            if watch.is_some() && chunk.starts_with(b"{\"type\":\"ERROR\"") {
                *lock(&self.expired) += usize::from(String::from_utf8_lossy(&chunk).contains("\"code\":410"));
            }
            to.write_all(size.as_bytes())?;
            to.write_all(&self.shown(chunk))?;
            to.flush()?;
            if count == 0 {
                return Ok(());
            }
        }
    }
}

/// True if the server has not closed the connection meanwhile: a directly connected daemon would
/// have noticed that.
fn is_open(server: &Server) -> bool {
    let stream = server.get_ref().socket();
    let _ = stream.set_nonblocking(true);
    let peeked = stream.peek(&mut [0]);
    let _ = stream.set_nonblocking(false);
    peeked.map_or_else(|error| error.kind() == io::ErrorKind::WouldBlock, |count| count > 0)
}
