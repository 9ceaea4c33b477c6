//! Resource usage of the daemon: CPU time and memory by the kernel's counters, requests by the
//! daemon's own.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// The kernel reports times in hundredths of a second, regardless of its own tick rate.
const TICKS_PER_SECOND: f64 = 100.0;

/// CPU time of a process so far, in seconds.
pub(crate) fn cpu_seconds(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The second field is the program's name in brackets, which may contain any characters.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_PER_SECOND
}

/// Peak resident memory of a process, in millions of bytes.
pub(crate) fn peak_megabytes(process: u32) -> f64 {
    memory(process, "VmHWM:")
}

/// Resident memory of a process now, in millions of bytes.
pub(crate) fn resident_megabytes(process: u32) -> f64 {
    memory(process, "VmRSS:")
}

fn memory(process: u32, field: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or_default() * 1024.0 / 1e6
}

/// Requests by class, from the daemon's metrics; `None` if it serves none.
pub(crate) fn classes(port: u16) -> Option<BTreeMap<String, f64>> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let mut classes = BTreeMap::new();
    for line in text.lines() {
        let Some(labels) = line.strip_prefix("moorline_requests_total{") else { continue };
        let class = labels.split_once("class=\"").and_then(|(_, rest)| rest.split('"').next());
        let count = line.rsplit(' ').next().and_then(|count| count.parse::<f64>().ok());
        if let (Some(class), Some(count)) = (class, count) {
            *classes.entry(class.to_owned()).or_default() += count;
        }
    }
    Some(classes)
}
