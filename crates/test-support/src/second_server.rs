//! A second API server on the same etcd, which may lag behind the first.
//!
//! In: the control plane, and additional arguments of the second server.
//! Out: its URL, with the authority of the first. It connects to etcd through a relay that can be
//! held: then it answers from its cache, like a server with a slow connection to etcd.

use std::collections::BTreeSet;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

use super::control_plane::ControlPlane;
use super::daemon::until;
use super::server::Server;
use super::start::free_ports;

/// A running second API server; killed on drop.
pub struct SecondServer {
    pub url: String,
    relay: Arc<Relay>,
    server: Server,
}

impl SecondServer {
    /// Starts the server, and waits until it is ready.
    pub async fn start(plane: &ControlPlane, more: &[&str]) -> Self {
        let relay = Arc::<Relay>::default();
        let etcd = Relay::listen(&relay, plane.etcd).unwrap();
        let [port, ..] = free_ports().unwrap();
        let directory = plane.directory.join(format!("second-{port}"));
        std::fs::create_dir_all(&directory).unwrap();
        let certificates = plane.directory.join("certificates");
        let own = [
            format!("--etcd-servers=http://127.0.0.1:{etcd}"),
            format!("--secure-port={port}"),
            format!("--audit-log-path={}", directory.join("audit.log").display()),
            format!("--tls-cert-file={}", certificates.join("apiserver.crt").display()),
            format!("--tls-private-key-file={}", certificates.join("apiserver.key").display()),
        ];
        // For most arguments the last occurrence wins, but those for the etcd servers would
        // accumulate.
        let (program, arguments) = &plane.api_server;
        let first = arguments.iter().filter(|one| !one.starts_with("--etcd-servers"));
        let more = more.iter().map(|&one| one.to_owned());
        let arguments: Vec<String> = first.cloned().chain(own).chain(more).collect();
        let server = Server::start(program, &arguments, &directory, &plane.reaper).unwrap();
        let url = format!("https://127.0.0.1:{port}");
        let this = Self { url, relay, server };
        until("the second API server answers", async || this.ask(plane, "/readyz").await.ok()).await;
        this
    }

    /// Names in a collection by the server's watch cache. The server refuses the request while it
    /// rebuilds its cache, as it does after a long interruption of etcd.
    pub async fn names(&self, plane: &ControlPlane, collection: &str) -> Result<BTreeSet<String>, String> {
        let text = self.ask(plane, &format!("{collection}?resourceVersion=0")).await?;
        let list: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(items.iter().filter_map(|item| item["metadata"]["name"].as_str()).map(str::to_owned).collect())
    }

    async fn ask(&self, plane: &ControlPlane, uri: &str) -> Result<String, String> {
        let kubeconfig = plane.kubeconfig(super::credentials::ADMIN).replace(&plane.url, &self.url);
        let admin = super::control_plane::client_of(&kubeconfig, "second").await?;
        let request = http::Request::get(uri).body(Vec::new()).unwrap();
        admin.request_text(request).await.map_err(|error| error.to_string())
    }

    /// Holds the connection to etcd, or releases it with everything that was held back.
    pub fn hold(&self, held: bool) {
        *self.relay.held.lock().unwrap_or_else(PoisonError::into_inner) = held;
        self.relay.freed.notify_all();
    }
}

impl Drop for SecondServer {
    fn drop(&mut self) {
        let _ = self.server.kill();
    }
}

/// Passes bytes between the second server and etcd.
#[derive(Default)]
struct Relay {
    held: Mutex<bool>,
    freed: Condvar,
}

impl Relay {
    fn listen(this: &Arc<Self>, etcd: (&'static str, u16)) -> io::Result<u16> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        let this = this.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(etcd) else { continue };
                let ends = (client.try_clone(), server.try_clone());
                let (Ok(from), Ok(to)) = ends else { continue };
                thread::spawn(move || pass(from, to, || {}));
                let this = this.clone();
                thread::spawn(move || pass(server, client, || this.wait()));
            }
        });
        Ok(port)
    }

    fn wait(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while *held {
            held = self.freed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, wait: impl Fn()) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        wait();
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
}
