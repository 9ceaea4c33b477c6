//! Entry points for fuzzing the parsers of untrusted input.
//!
//! In: any bytes.
//! Out: nothing. A parser may refuse its input, but must neither panic nor run without end. Fuzz
//! targets and their test call these functions; the daemon does not.

use std::path::Path;
use std::time::{Duration, Instant};

use super::artifact;
use super::chart;
use super::docker_login::{LoginTarget, registry_login};
use super::known_hosts::KnownHosts;
use super::memory::Memory;
use super::store;
use crate::pkt_line::PktLineReader;
use crate::upload_pack;
use moorline_core::tree::MemoryLimit;

/// Time limit for one input.
const SPAN: Duration = Duration::from_secs(30);

/// Memory limit of the daemon in the chart.
const BYTES: u64 = 512 * 1024 * 1024;

/// Indexes a pack, in an empty folder.
pub fn pack(bytes: &[u8], folder: &Path) {
    let (memory, by) = (Memory::new(Some(BYTES)), Instant::now() + SPAN);
    let Ok(store) = store::begin(folder, 1) else { return };
    let taken = store.add((&memory, by), |pack| {
        pack.write_all(bytes).map_err(|_| super::Error::Corrupt { what: "a pack cannot be read" })
    });
    drop(taken);
    store.discard();
}

/// Reads the packets of a response, as refs and as objects.
pub fn frames(bytes: &[u8]) {
    drop(upload_pack::refs(&mut PktLineReader::new(bytes, BYTES)));
    for version in [upload_pack::ProtocolVersion::One, upload_pack::ProtocolVersion::Two] {
        let greeting = upload_pack::ServerCapabilities { version, shallow: true, filter: true };
        for deepened in [true, false] {
            let mut packets = PktLineReader::new(bytes, BYTES);
            drop(upload_pack::objects(&mut packets, &greeting, deepened, &mut std::io::sink()));
        }
    }
}

/// Unpacks a chart.
pub fn archive(bytes: &[u8]) {
    drop(chart::unpack(bytes, &MemoryLimit::with_bytes(BYTES)));
}

/// Reads the manifest of an artifact, the archive of its layer, and a file of logins.
pub fn artifact(bytes: &[u8]) {
    artifact::read_any(bytes, BYTES);
    drop(registry_login(bytes, &LoginTarget::new("host", "a")));
}

/// Parses a known_hosts file, and looks up some hosts in it.
pub fn known_hosts(text: &str) {
    let Ok(known) = KnownHosts::parse(text) else { return };
    for (host, port) in [("example.com", 22), ("[::1]", 2222), ("*", 0)] {
        known.kinds(host, port);
        drop(known.judge(host, port, text.as_bytes()));
    }
}
