//! A loopback ssh server with Git behind it: one user key, one host key, and faults on demand.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use russh::keys::key::safe_rng;
use russh::keys::ssh_key::private::{KeypairData, RsaKeypair};
use russh::keys::ssh_key::{LineEnding, PublicKey};
use russh::keys::{Algorithm, EcdsaCurve, PrivateKey};
use russh::server::{Auth, ChannelOpenHandle, Config, Handler, Msg, Session, VerifiedPublicKey};
use russh::{Channel, ChannelId};

/// Reaction of the server to a command.
#[derive(Debug, Clone, Copy)]
pub enum Mode {
    /// Runs Git, with the requested protocol version.
    Git,
    /// Accepts no environment, like sshd without AcceptEnv.
    Old,
    /// Runs nothing and sends nothing.
    Silence,
    /// Sends this many bytes of Git's output, then nothing.
    Stall(usize),
    /// Sends this many bytes of Git's output, then ends.
    Cut(usize),
    /// Writes a text and ends with a status.
    Say(&'static str, u32),
    /// Refuses to run anything.
    Refuse,
}

/// A running server.
pub struct SshServer {
    pub port: u16,
    pub host_key: PublicKey,
    shared: Arc<Shared>,
}

struct Shared {
    root: PathBuf,
    user_key: Mutex<PublicKey>,
    mode: Mutex<Mode>,
    log: Mutex<Vec<String>>,
}

impl SshServer {
    /// Serves the bare repositories in `root` to the owner of `user_key`.
    pub fn start(root: &Path, host_key: PrivateKey, user_key: &PrivateKey) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let shared = Arc::new(Shared {
            root: root.to_owned(),
            user_key: Mutex::new(user_key.public_key().clone()),
            mode: Mutex::new(Mode::Git),
            log: Mutex::default(),
        });
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            host_key: host_key.public_key().clone(),
            shared: shared.clone(),
        };
        let config = Arc::new(Config {
            keys: vec![host_key],
            auth_rejection_time: Duration::ZERO,
            nodelay: true,
            ..Config::default()
        });
        std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    let client = Client { shared: shared.clone(), asked: Vec::new(), inputs: HashMap::new() };
                    let config = config.clone();
                    tokio::spawn(async move {
                        if let Ok(session) = russh::server::run_stream(config, stream, client).await {
                            drop(session.await);
                        }
                    });
                }
            });
        });
        server
    }

    pub fn mode(&self, mode: Mode) {
        *self.shared.mode.lock().unwrap() = mode;
    }

    /// Accepts the owner of another key from now on.
    pub fn let_in(&self, user_key: &PrivateKey) {
        *self.shared.user_key.lock().unwrap() = user_key.public_key().clone();
    }

    /// Returns the commands since the last call, each with its environment.
    pub fn commands(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.log.lock().unwrap())
    }

    /// Returns the server's line for known_hosts.
    pub fn known(&self) -> String {
        known(self.port, &self.host_key)
    }
}

/// Returns a line for known_hosts for a port of the loopback.
pub fn known(port: u16, key: &PublicKey) -> String {
    format!("[127.0.0.1]:{port} {}", key.to_openssh().unwrap())
}

pub fn ed25519() -> PrivateKey {
    PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).unwrap()
}

pub fn ecdsa(curve: EcdsaCurve) -> PrivateKey {
    PrivateKey::random(&mut safe_rng(), Algorithm::Ecdsa { curve }).unwrap()
}

pub fn rsa() -> PrivateKey {
    let pair = RsaKeypair::random(&mut safe_rng(), 2048).unwrap();
    PrivateKey::new(KeypairData::from(pair), "").unwrap()
}

pub fn pem(key: &PrivateKey) -> String {
    key.to_openssh(LineEnding::LF).unwrap().to_string()
}

/// One connection.
struct Client {
    shared: Arc<Shared>,
    asked: Vec<(String, String)>,
    inputs: HashMap<ChannelId, ChildStdin>,
}

impl Handler for Client {
    type Error = russh::Error;

    async fn auth_publickey(&mut self, user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, russh::Error> {
        let wanted = self.shared.user_key.lock().unwrap().key_data().clone();
        let sha1 = matches!(key.algorithm, Algorithm::Rsa { hash: None });
        let fits = user == "git" && *key.public_key.key_data() == wanted && !sha1;
        Ok(if fits { Auth::Accept } else { Auth::reject() })
    }

    async fn channel_open_session(
        &mut self,
        _: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), russh::Error> {
        reply.accept().await;
        Ok(())
    }

    async fn env_request(
        &mut self,
        channel: ChannelId,
        name: &str,
        value: &str,
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        if matches!(*self.shared.mode.lock().unwrap(), Mode::Old) {
            return session.channel_failure(channel);
        }
        self.asked.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        command: &[u8],
        session: &mut Session,
    ) -> Result<(), russh::Error> {
        let command = String::from_utf8_lossy(command).into_owned();
        let asked: String = self.asked.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        self.shared.log.lock().unwrap().push(format!("{asked}{command}"));
        let mode = *self.shared.mode.lock().unwrap();
        if matches!(mode, Mode::Refuse) {
            return session.channel_failure(channel);
        }
        session.channel_success(channel)?;
        let limit = match mode {
            Mode::Silence => return Ok(()),
            Mode::Say(text, status) => {
                session.data(channel, text.as_bytes().to_vec())?;
                session.extended_data(channel, 1, b"planted words for people\n".to_vec())?;
                session.exit_status_request(channel, status)?;
                session.eof(channel)?;
                return session.close(channel);
            }
            Mode::Stall(limit) | Mode::Cut(limit) => limit,
            Mode::Git | Mode::Old | Mode::Refuse => usize::MAX,
        };
        let path = command.strip_prefix("git-upload-pack '/").and_then(|path| path.strip_suffix('\''));
        let folder = self.shared.root.join(path.unwrap_or("nothing"));
        let mut child = Command::new("git")
            .arg("upload-pack")
            .arg(folder)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .envs(self.asked.iter().map(|(name, value)| (name.as_str(), value.as_str())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        self.inputs.extend(child.stdin.take().map(|input| (channel, input)));
        let mut output = child.stdout.take().unwrap();
        let (handle, runtime) = (session.handle(), tokio::runtime::Handle::current());
        std::thread::spawn(move || {
            let (mut buffer, mut left) = ([0; 30_000], limit);
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                let sent = length.min(left);
                left -= sent;
                drop(runtime.block_on(handle.data(channel, buffer[..sent].to_vec())));
                if left == 0 && matches!(mode, Mode::Cut(_)) {
                    break;
                }
            }
            if matches!(mode, Mode::Stall(_)) {
                return;
            }
            drop(output);
            // A child that is cut off may still be waiting for input from us.
            if left == 0 {
                drop(child.kill());
            }
            let status = child.wait().ok().and_then(|status| status.code()).unwrap_or(1);
            runtime.block_on(async {
                let _ = handle.exit_status_request(channel, status as u32).await;
                let _ = handle.eof(channel).await;
                let _ = handle.close(channel).await;
            });
        });
        Ok(())
    }

    async fn data(&mut self, channel: ChannelId, data: &[u8], _: &mut Session) -> Result<(), russh::Error> {
        if let Some(input) = self.inputs.get_mut(&channel) {
            drop(input.write_all(data));
        }
        Ok(())
    }

    async fn channel_eof(&mut self, channel: ChannelId, _: &mut Session) -> Result<(), russh::Error> {
        self.inputs.remove(&channel);
        Ok(())
    }
}
