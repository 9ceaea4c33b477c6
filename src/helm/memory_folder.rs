//! Folder in memory for the files of a run with values of decrypted files, which must not reach a
//! disk.
//!
//! In: the folder on disk that other runs use. Out: the place of its counterparts in `/dev/shm`,
//! or the reason why there is none.

use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::error::HelmError;
use super::process::WorkPlace;

/// Folder that Linux and container runtimes mount in memory.
const SHARED_MEMORY: &str = "/dev/shm";
/// List of the mounts of this process.
const MOUNTS: &str = "/proc/self/mountinfo";
/// Number of hash bytes in the folder's name.
const NAME: usize = 8;

/// Returns the place for folders, once it is certain that it is in memory.
pub(super) fn find(work: &Path) -> Result<WorkPlace, HelmError> {
    let mounts = std::fs::read_to_string(MOUNTS).unwrap_or_default();
    match is_in_memory(&mounts, SHARED_MEMORY) {
        true => Ok(place(work)),
        false => Err(HelmError::Unfenced {
            why: format!(
                "helm gets values of decrypted files in memory only, and {SHARED_MEMORY} is no tmpfs; mount one there"
            )
            .into(),
        }),
    }
}

/// Returns the place for folders. Each folder on disk has names of its own.
pub(super) fn place(work: &Path) -> WorkPlace {
    let digest = Sha256::digest(work.as_os_str().as_encoded_bytes());
    let name: String = digest[..NAME].iter().map(|byte| format!("{byte:02x}")).collect();
    WorkPlace { parent: SHARED_MEMORY.into(), prefix: format!("moorline-{name}-") }
}

/// True if a tmpfs is mounted at a path; the last mount at it counts.
fn is_in_memory(mounts: &str, path: &str) -> bool {
    let kind = |line: &str| {
        let (mount, source) = line.split_once(" - ")?;
        let is_it = mount.split(' ').nth(4) == Some(path);
        is_it.then(|| source.split(' ').next() == Some("tmpfs"))
    };
    mounts.lines().filter_map(kind).next_back().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_tmpfs_is_in_memory() {
        let line =
            |at: &str, kind: &str| format!("31 25 0:27 / {at} rw,nosuid - {kind} shm rw,size=65536k\n");
        assert!(is_in_memory(&line("/dev/shm", "tmpfs"), "/dev/shm"));
        assert!(!is_in_memory(&line("/dev/shm", "ext4"), "/dev/shm"));
        assert!(!is_in_memory(&line("/dev", "tmpfs"), "/dev/shm"));
        let over = line("/dev/shm", "tmpfs") + &line("/dev/shm", "overlay");
        assert!(!is_in_memory(&over, "/dev/shm"));
        assert!(!is_in_memory("", "/dev/shm"));
    }

    #[test]
    fn each_daemon_has_names_of_its_own() {
        assert_ne!(place(Path::new("/a")), place(Path::new("/b")));
        assert_eq!(place(Path::new("/a")).parent, Path::new("/dev/shm"));
    }
}
