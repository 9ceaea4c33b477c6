//! A blocking ssh session with one remote program.
//!
//! In: an address, a login, a command.
//! Out: an [`SshSession`]: bytes in, bytes out, and a deadline for every wait. russh is
//! asynchronous, so each session has a small runtime of its own, which runs on the calling thread
//! and only during calls; dropping the session closes the connection. Error output of the server is
//! discarded.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use russh::client::{self, Handle, Msg};
use russh::keys::{Algorithm, HashAlg, PrivateKeyWithHashAlg, PublicKeyOrCertificate};
use russh::{Channel, ChannelMsg, Disconnect, Preferred};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use super::address::SshAddress;
use super::error::Error;
use super::hosts::{HostPolicy, HostRefused};
use super::http::{CONNECT_TIMEOUT, SILENCE_TIMEOUT};
use super::known_hosts::KnownHosts;
use crate::resolver::{MAX_ADDRESSES, ResolveError, resolved};
use crate::ssh_transport::SshLogin;
use moorline_runtime::clock;

/// Maximum time for closing a connection. A failed close costs the server a log line.
const END_TIMEOUT: Duration = Duration::from_millis(500);

/// Time for a program that has ended to report its exit status.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Receive window: bytes that the server may send before we have read them.
const WINDOW_BYTES: u32 = 2 * 1024 * 1024;

/// A program running on a server.
pub(super) struct SshSession {
    /// None only during drop.
    runtime: Option<Runtime>,
    server: Box<str>,
    handle: Handle<HostKeyCheck>,
    channel: Channel<Msg>,
    /// Received bytes that were not read yet.
    waiting: Vec<u8>,
    taken: usize,
    has_spoken: bool,
    has_ended: bool,
    exit: Option<u32>,
}

impl SshSession {
    /// Connects, checks the host key, logs in and runs `command`.
    pub(super) fn open(
        address: &SshAddress,
        login: &SshLogin,
        hosts: &HostPolicy,
        command: String,
        by: Instant,
    ) -> Result<Self, Error> {
        let server: Box<str> = address.server().into();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|_| Error::Stopped)?;
        let opened = addresses(address, hosts).and_then(|places| {
            let connect = connect(&server, &places);
            let stream = within(&runtime, &server, "accept a connection", by, CONNECT_TIMEOUT, connect)?;
            let begin = begin(&server, address, login, stream, command);
            within(&runtime, &server, "finish the ssh login", by, SILENCE_TIMEOUT, begin)
        });
        match opened {
            Ok((handle, channel)) => Ok(Self {
                runtime: Some(runtime),
                server,
                handle,
                channel,
                waiting: Vec::new(),
                taken: 0,
                has_spoken: false,
                has_ended: false,
                exit: None,
            }),
            Err(error) => {
                runtime.shutdown_background();
                Err(error)
            }
        }
    }

    /// Sends all of `bytes`.
    pub(super) fn send(&mut self, bytes: Vec<u8>, by: Instant) -> Result<(), Error> {
        let runtime = self.runtime.as_ref().ok_or(Error::Stopped)?;
        let lost =
            || Error::Unreachable { server: self.server.clone(), cause: "it closed the connection".into() };
        within(runtime, &self.server, "take a request", by, SILENCE_TIMEOUT, async {
            self.channel.data_bytes(bytes).await.map_err(|_| lost())
        })
    }

    /// Returns a reader of the program's output, with a deadline.
    pub(super) fn answer(&mut self, by: Instant) -> impl Read + '_ {
        OutputReader { session: self, by }
    }

    /// True once the program has written anything.
    pub(super) fn has_said_something(&self) -> bool {
        self.has_spoken
    }

    /// Returns the exit status of the program, if the server reports it.
    pub(super) fn exit(&mut self, by: Instant) -> Option<u32> {
        let by = by.min(clock::now() + EXIT_TIMEOUT);
        while self.exit.is_none() {
            match self.message(by) {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        self.exit
    }

    /// Ends the program and closes the connection cleanly.
    pub(super) fn close(mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let end = async {
            // A flush instead of a request ends Git's protocol.
            let flushed = self.channel.data_bytes(&b"0000"[..]).await;
            let disconnected = self.handle.disconnect(Disconnect::ByApplication, "", "").await;
            if flushed.is_ok() && disconnected.is_ok() {
                drop((&mut self.handle).await);
            }
        };
        // If this fails, the server notices the end of the connection.
        drop(runtime.block_on(async { tokio::time::timeout(END_TIMEOUT, end).await }));
        runtime.shutdown_background();
    }

    /// Returns the next message of the server; none after the last one.
    fn message(&mut self, by: Instant) -> io::Result<Option<ChannelMsg>> {
        let Some(runtime) = &self.runtime else { return Ok(None) };
        let until = by.min(clock::now() + SILENCE_TIMEOUT);
        let channel = &mut self.channel;
        let message = runtime.block_on(async { tokio::time::timeout_at(until.into(), channel.wait()).await });
        let message = message.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        if let Some(ChannelMsg::ExitStatus { exit_status }) = message {
            self.exit = Some(exit_status);
        }
        Ok(message)
    }
}

impl Drop for SshSession {
    fn drop(&mut self) {
        // The default drop of a runtime waits for its tasks; this one does not, and is allowed in
        // any context.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct OutputReader<'a> {
    session: &'a mut SshSession,
    by: Instant,
}

impl Read for OutputReader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let session = &mut *self.session;
        while session.taken == session.waiting.len() && !session.has_ended {
            match session.message(self.by)? {
                Some(ChannelMsg::Data { data }) => {
                    session.has_spoken |= !data.is_empty();
                    session.waiting.clear();
                    session.waiting.extend_from_slice(&data);
                    session.taken = 0;
                }
                Some(ChannelMsg::Eof | ChannelMsg::Close) | None => session.has_ended = true,
                Some(_) => {}
            }
        }
        let waiting = session.waiting.get(session.taken..).unwrap_or_default();
        let length = waiting.len().min(out.len());
        out[..length].copy_from_slice(&waiting[..length]);
        session.taken += length;
        Ok(length)
    }
}

/// Resolves the host on this thread: the runtime would start another one for it.
fn addresses(address: &SshAddress, hosts: &HostPolicy) -> Result<Vec<SocketAddr>, Error> {
    let host = address.host.trim_start_matches('[').trim_end_matches(']');
    let server = || address.server().into();
    let mut found = resolved(hosts, host, address.port).map_err(|error| match error {
        ResolveError::Unknown => {
            Error::Unreachable { server: server(), cause: "its name cannot be resolved".into() }
        }
        ResolveError::Refused(HostRefused(why)) => Error::NotAllowed { server: server(), why },
    })?;
    found.truncate(MAX_ADDRESSES);
    Ok(found)
}

/// Waits for `work`, at most `longest` and until `by`.
fn within<T>(
    runtime: &Runtime,
    server: &str,
    what: &'static str,
    by: Instant,
    longest: Duration,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let until = by.min(clock::now() + longest);
    let done = runtime.block_on(async { tokio::time::timeout_at(until.into(), work).await });
    done.unwrap_or_else(|_| Err(Error::Timeout { server: server.into(), what }))
}

async fn connect(server: &str, places: &[SocketAddr]) -> Result<TcpStream, Error> {
    let mut cause = io::Error::from(io::ErrorKind::NotFound);
    for place in places {
        match TcpStream::connect(place).await {
            Ok(stream) => {
                // Requests are small; with Nagle's algorithm one could wait for the response to
                // another.
                drop(stream.set_nodelay(true));
                return Ok(stream);
            }
            Err(error) => cause = error,
        }
    }
    Err(Error::Unreachable { server: server.into(), cause: cause.to_string().into() })
}

/// Checks the host key, logs in and runs `command`.
async fn begin(
    server: &str,
    address: &SshAddress,
    login: &SshLogin,
    stream: TcpStream,
    command: String,
) -> Result<(Handle<HostKeyCheck>, Channel<Msg>), Error> {
    let guard = HostKeyCheck { host: address.host.clone(), port: address.port, known: login.known.clone() };
    let config = Arc::new(config(&login.known.kinds(&address.host, address.port)));
    let connected = client::connect_stream(config, stream, guard).await;
    let mut handle = connected.map_err(|stop| stopped(server, stop))?;
    let failed = |error| stopped(server, Stop::Library(error));
    let key = login.key.reveal().clone();
    let hash = match key.algorithm() {
        // Never SHA-1, which would be the default for a server that does not announce its
        // algorithms.
        Algorithm::Rsa { .. } => {
            let best = handle.best_supported_rsa_hash().await.map_err(failed)?;
            Some(best.flatten().unwrap_or(HashAlg::Sha512))
        }
        _ => None,
    };
    let key = PrivateKeyWithHashAlg::new(key, hash);
    let answer = handle.authenticate_publickey(&*address.user, key).await.map_err(failed)?;
    if !answer.success() {
        return Err(Error::KeyRefused { server: server.into() });
    }
    let mut channel = handle.channel_open_session().await.map_err(failed)?;
    // A server that rejects it uses an older protocol version, which is supported.
    channel.set_env(false, "GIT_PROTOCOL", "version=2").await.map_err(failed)?;
    channel.exec(true, command).await.map_err(failed)?;
    let bad = |what| Error::InvalidResponse { server: server.into(), what };
    loop {
        match channel.wait().await {
            Some(ChannelMsg::Success) => return Ok((handle, channel)),
            Some(ChannelMsg::Failure) => return Err(bad("it does not run git-upload-pack")),
            Some(ChannelMsg::Data { .. }) => return Err(bad("it sends data before the request")),
            Some(ChannelMsg::Close) | None => return Err(bad("it ends the connection without an answer")),
            Some(_) => {}
        }
    }
}

/// Allows safe algorithms only, and no compression, because packs are compressed. Types of known
/// keys come first, so that a server with several keys presents a known one.
fn config(known: &[&str]) -> client::Config {
    let mut kinds: Vec<Algorithm> = Preferred::DEFAULT.key.to_vec();
    kinds.retain(|kind| !matches!(kind, Algorithm::Rsa { hash: None }));
    let name = |kind: &Algorithm| match kind {
        Algorithm::Rsa { .. } => "ssh-rsa".to_owned(),
        other => other.to_string(),
    };
    kinds.sort_by_key(|kind| !known.contains(&name(kind).as_str()));
    client::Config {
        client_id: russh::SshId::Standard(concat!("SSH-2.0-moorline_", env!("CARGO_PKG_VERSION")).into()),
        preferred: Preferred { key: kinds.into(), ..Preferred::DEFAULT },
        window_size: WINDOW_BYTES,
        ..client::Config::default()
    }
}

/// Checks the host key of a connection.
struct HostKeyCheck {
    host: Box<str>,
    port: u16,
    known: Arc<KnownHosts>,
}

/// Reason for not opening a connection.
#[derive(Debug)]
enum Stop {
    Host(Box<str>),
    Library(russh::Error),
}

impl From<russh::Error> for Stop {
    fn from(error: russh::Error) -> Self {
        Self::Library(error)
    }
}

impl client::Handler for HostKeyCheck {
    type Error = Stop;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, Stop> {
        let unreadable = |_| Stop::Host("it shows a key that cannot be read".into());
        let key = match shown {
            PublicKeyOrCertificate::PublicKey { key, .. } => key.to_bytes().map_err(unreadable)?,
            PublicKeyOrCertificate::Certificate(_) => {
                return Err(Stop::Host("it shows a certificate, which was not asked for".into()));
            }
        };
        let judged = self.known.judge(&self.host, self.port, &key);
        judged.map(|()| true).map_err(|doubt| Stop::Host(doubt.to_string().into()))
    }
}

/// Converts the error of a connection. russh's own message may contain text of the server.
fn stopped(server: &str, stop: Stop) -> Error {
    use russh::Error as E;

    let server: Box<str> = server.into();
    let untrusted = |cause: &str| Error::Untrusted { server: server.clone(), cause: cause.into() };
    let bad = |what| Error::InvalidResponse { server: server.clone(), what };
    match stop {
        Stop::Host(cause) => Error::Untrusted { server, cause },
        Stop::Library(E::NoCommonAlgo { kind: russh::AlgorithmKind::Key, .. }) => {
            untrusted("it has no host key of a kind that is safe (ed25519, ecdsa, or rsa with SHA-2)")
        }
        Stop::Library(E::NoCommonAlgo { .. }) => bad("it offers only insecure encryption"),
        Stop::Library(E::WrongServerSig | E::Signature(_)) => {
            untrusted("it does not own the host key it shows")
        }
        Stop::Library(E::UnknownKey) => untrusted("its host key is not known"),
        Stop::Library(E::IO(cause)) if cause.kind() != io::ErrorKind::UnexpectedEof => {
            Error::Unreachable { server, cause: cause.kind().to_string().into() }
        }
        Stop::Library(E::IO(_) | E::HUP | E::Disconnect | E::SendError | E::RecvError) => {
            bad("it ends the connection during the ssh login")
        }
        Stop::Library(E::ChannelOpenFailure(_) | E::RequestDenied) => bad("it opens no ssh session"),
        Stop::Library(_) => bad("it does not speak ssh as it should"),
    }
}
