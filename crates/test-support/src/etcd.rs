//! Manipulates etcd under a running API server: compacts it, stops it, and restores earlier data.
//!
//! In: the control plane.
//! Out: a shorter history, or a different one, as after a restored backup.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::control_plane::ControlPlane;
use super::server::Server;

/// Index of etcd among the servers, and the indexes of its clients.
const ETCD: [usize; 1] = [0];
const CLIENTS: [usize; 2] = [1, 2];

impl ControlPlane {
    /// Newest revision of etcd.
    pub fn revision(&self) -> i64 {
        let key = STANDARD.encode("/");
        let answer = self.ask_etcd("/v3/kv/range", &json!({"key": key, "limit": "1"}));
        answer["header"]["revision"].as_str().unwrap().parse().unwrap()
    }

    /// Compacts etcd up to its newest revision, and returns this revision.
    pub fn compact(&self) -> i64 {
        let revision = self.revision();
        let forget = json!({"revision": revision.to_string(), "physical": true});
        let answer = self.ask_etcd("/v3/kv/compaction", &forget);
        assert!(answer["header"]["revision"].is_string(), "{answer}");
        revision
    }

    /// Stops all servers, passes etcd's data directory to `act`, and starts them again; returns
    /// when they are ready.
    pub async fn with_etcd_stopped(&self, act: impl FnOnce(&Path)) {
        self.act(&CLIENTS, Server::kill);
        self.act(&ETCD, Server::kill);
        act(&self.directory.join("etcd"));
        self.act(&ETCD, Server::start_again);
        self.act(&CLIENTS, Server::start_again);
        self.until_ready().await;
    }

    /// Copies etcd's data.
    pub async fn snapshot(&self) -> PathBuf {
        let copy = self.directory.join(format!("etcd-at-{}", self.revision()));
        self.with_etcd_stopped(|data| copy_folder(data, &copy)).await;
        copy
    }

    /// Replaces etcd's data by this copy.
    pub async fn restore(&self, copy: &Path) {
        let replace = |data: &Path| {
            std::fs::remove_dir_all(data).unwrap();
            copy_folder(copy, data);
        };
        self.with_etcd_stopped(replace).await;
    }

    /// Writes an object into etcd as an earlier version left it, with its uid, its field managers
    /// and its times.
    pub fn put_object(&self, key: &str, object: &Value) {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            // etcd has its own.
            metadata.remove("resourceVersion");
        }
        let pair = json!({"key": STANDARD.encode(key), "value": STANDARD.encode(object.to_string())});
        let answer = self.ask_etcd("/v3/kv/put", &pair);
        assert!(answer["header"]["revision"].is_string(), "{answer}");
    }

    /// Calls etcd's gRPC gateway, which speaks JSON.
    fn ask_etcd(&self, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let length = body.len();
        let mut stream = TcpStream::connect(self.etcd).unwrap();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let json = answer.find('{').zip(answer.rfind('}')).map(|(from, to)| &answer[from..=to]);
        serde_json::from_str(json.unwrap_or_default()).unwrap_or_else(|error| panic!("{error}: {answer}"))
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}
