//! A proxy on the loopback between a daemon and the API server, which does to single requests what networks do.
//!
//! In: a rule that says what becomes of each request. Out: a kubeconfig for the daemon (plain HTTP, so that nothing
//! here needs a certificate; the token passes through), and a log of all requests. Each connection of the daemon
//! has one of its own to the API server, and bodies pass chunk by chunk, so that watches stream.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

pub(crate) use super::asked::Asked;
use super::asked::{answer, line, receive, said};
use super::control_plane::ControlPlane;
use super::stream::{Connector, Stream};

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is answered by the API server.
    Pass,
    /// It is answered with this status, and a `Retry-After` in seconds.
    Answer(u16, Option<u64>),
    /// It is answered with this text.
    Say(&'static str),
    /// The connection is cut before the API server hears of it.
    Drop,
    /// The API server answers, and the connection is cut before the daemon hears of it.
    LoseReply,
    /// It passes after this time.
    Delay(Duration),
    /// The daemon is killed, with `kill -9`, before the API server hears of it.
    KillBefore,
    /// The daemon is killed after the API server has answered, and before it hears of that.
    KillAfter,
    /// The daemon is stopped, with `kill -STOP`, before the API server hears of it, and the connection is cut.
    StopBefore,
}

type Rule = Box<dyn FnMut(&Asked) -> Fate + Send>;

struct Inner {
    rule: Mutex<Rule>,
    log: Mutex<Vec<Asked>>,
    /// The daemon's process.
    victim: Mutex<Option<u32>>,
    /// Whether a request was made that it does not survive.
    doomed: Mutex<bool>,
    /// Both ends of every answer that streams.
    streams: Mutex<Vec<(TcpStream, TcpStream)>>,
    /// Watches that the API server ended because it had forgotten where they were.
    expired: Mutex<usize>,
    /// No answer shows who wrote what.
    hides: AtomicBool,
    server: String,
    /// The server of the watches and lists, if it is another.
    reads: Mutex<Option<String>>,
    connector: Connector,
}

/// A proxy that serves until the test process ends.
pub(crate) struct FaultProxy {
    pub(crate) port: u16,
    inner: Arc<Inner>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FaultProxy {
    /// A proxy that lets everything pass.
    pub(crate) fn start(plane: &ControlPlane) -> Self {
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
                    // The daemon sees its end, whoever else holds the socket.
                    let _ = client.shutdown(Shutdown::Both);
                });
            }
        });
        proxy
    }

    /// A kubeconfig of a user, by which a daemon comes here.
    pub(crate) fn kubeconfig(&self, plane: &ControlPlane, user: &str) -> String {
        plane.kubeconfig(user).replace(&plane.url, &format!("http://127.0.0.1:{}", self.port))
    }

    /// From now on requests are judged by this.
    pub(crate) fn rule(&self, rule: impl FnMut(&Asked) -> Fate + Send + 'static) {
        *lock(&self.inner.rule) = Box::new(rule);
    }

    /// From now on everything passes.
    pub(crate) fn heal(&self) {
        self.rule(|_| Fate::Pass);
    }

    /// The first `count` requests of a kind meet this fate.
    pub(crate) fn first(&self, count: usize, fits: impl Fn(&Asked) -> bool + Send + 'static, fate: Fate) {
        let mut left = count;
        self.rule(move |asked| match left > 0 && fits(asked) {
            true => {
                left -= 1;
                fate
            }
            false => Fate::Pass,
        });
    }

    /// The request with this number, from 0, of a kind meets this fate; those after a death meet nobody.
    pub(crate) fn nth(&self, number: usize, fits: impl Fn(&Asked) -> bool + Send + 'static, fate: Fate) {
        let mut at = 0;
        self.rule(move |asked| {
            at += usize::from(fits(asked));
            if at == number + 1 && fits(asked) { fate } else { Fate::Pass }
        });
    }

    /// From now on watches and lists go to another API server of the same authority, by its URL; writes do not.
    pub(crate) fn read_from(&self, url: &str) {
        *lock(&self.inner.reads) = Some(address(url));
    }

    /// Whom `KillBefore` and the like are about.
    pub(crate) fn victim(&self, process: u32) {
        (*lock(&self.inner.victim), *lock(&self.inner.doomed)) = (Some(process), false);
    }

    /// Whether the victim met its fate, or will in a moment.
    pub(crate) fn is_doomed(&self) -> bool {
        *lock(&self.inner.doomed)
    }

    /// Whether the victim met its fate.
    pub(crate) fn has_struck(&self) -> bool {
        lock(&self.inner.victim).is_none()
    }

    /// Cuts every watch that is open.
    pub(crate) fn cut_watches(&self) -> usize {
        let streams = std::mem::take(&mut *lock(&self.inner.streams));
        for (client, server) in &streams {
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
        streams.len()
    }

    /// Takes the managed fields out of all answers from now on, as some proxies do.
    pub(crate) fn hide_entries(&self) {
        self.inner.hides.store(true, Ordering::Relaxed);
    }

    /// The requests since the last call.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *lock(&self.inner.log))
    }

    /// How often the API server said that it had forgotten where a watch was.
    pub(crate) fn expired(&self) -> usize {
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
                    (&mut &*client).write_all(said("200 OK", "", text).as_bytes())?;
                    continue;
                }
                Fate::Answer(status, retry) => {
                    (&mut &*client).write_all(answer(status, retry).as_bytes())?;
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

    fn address(&self, asked: &Asked) -> String {
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

    /// A part of an answer as the daemon gets it. Its length stays, because it was told already.
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

    /// Passes one answer on, as it comes.
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
            // A daemon that is gone says nothing more, and what it watched is watched for nobody.
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

/// Whether the server has not gone meanwhile: a daemon that is connected to it would have seen that.
fn is_open(server: &Server) -> bool {
    let stream = server.get_ref().socket();
    let _ = stream.set_nonblocking(true);
    let peeked = stream.peek(&mut [0]);
    let _ = stream.set_nonblocking(false);
    peeked.map_or_else(|error| error.kind() == io::ErrorKind::WouldBlock, |count| count > 0)
}
