//! Stops the control plane when the test process is gone, however it went.
//!
//! A libtest binary ends without running the destructors of statics, and a killed one runs nothing at all. So a
//! small shell waits at the end of a pipe that only the test process holds open: at its end of file, which the
//! kernel delivers in every case, it kills what it was told of and removes the directory. It knows nothing of
//! the servers, so it serves those of `KUBEBUILDER_ASSETS` as well, and any daemon that a test starts.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Signals that end a whole group (Ctrl-C) must not end it before its work is done. Servers that are dying may
/// still create a file in the directory, so that removing it is tried again.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
processes=' '
while read -r what process; do
    case $what in
        started) processes="$processes$process " ;;
        ended)
            # One that ended twice would double the list.
            case $processes in
                *" $process "*) processes="${processes%% $process *} ${processes#* $process }" ;;
            esac ;;
    esac
done
for process in $processes; do
    kill -9 "$process"
done
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf "$1" && exit
    sleep 0.2
done
"#;

/// Kills the processes that it was told of, and removes its directory, when it is dropped or the process ends.
pub(crate) struct Reaper {
    orders: Mutex<ChildStdin>,
    shell: Child,
}

impl Reaper {
    /// A reaper in charge of `directory`.
    pub(crate) fn of(directory: &Path) -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "reaper"])
            .arg(directory)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A test runner that kills the group of a test must leave this process to clean up after it.
            .process_group(0)
            .spawn()?;
        let orders = shell.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { orders: Mutex::new(orders), shell })
    }

    /// From now on this process ends with ours.
    pub(crate) fn started(&self, process: u32) -> io::Result<()> {
        self.order("started", process)
    }

    /// The process was seen to end, and its number may soon be another's.
    pub(crate) fn ended(&self, process: u32) -> io::Result<()> {
        self.order("ended", process)
    }

    fn order(&self, what: &str, process: u32) -> io::Result<()> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.write_all(format!("{what} {process}\n").as_bytes())
    }
}
