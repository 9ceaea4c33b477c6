//! Runs a daemon with the memory limit of the chart.
//!
//! In: a process.
//! Out: a cgroup with a memory limit, and the peak memory of the process.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A cgroup with a memory limit; if none can be created, a test checks only the peak.
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// Moves a process into a new cgroup.
    pub fn around(process: u32, bytes: u64) -> Option<Self> {
        let process = process.to_string();
        let versions = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        versions.into_iter().find_map(|(root, bound)| {
            let group = Self(Path::new(root).join(format!("moorline-bombs-{process}")));
            std::fs::create_dir(&group.0).ok()?;
            std::fs::write(group.0.join(bound), bytes.to_string()).ok()?;
            std::fs::write(group.0.join("cgroup.procs"), &process).ok()?;
            Some(group)
        })
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // The cgroup cannot be removed while a process is in it.
        let end = Instant::now() + Duration::from_secs(5);
        while std::fs::remove_dir(&self.0).is_err() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Peak memory of a process, in MiB; `None` once it has ended.
pub fn peak_mib(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? / 1024)
}
