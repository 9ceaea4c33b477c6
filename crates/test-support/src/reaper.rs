//! Stops the control plane after the end of the test process, even if it was killed.
//!
//! A libtest binary ends without running the destructors of statics, and a killed one runs nothing
//! at all. So a small shell waits at the end of a pipe that only the test process holds open: at
//! end of file, which the kernel delivers in every case, it kills the registered processes and
//! removes the directory. It does not depend on the kind of process, so it also works for the
//! servers of `KUBEBUILDER_ASSETS` and for any daemon that a test starts.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Script of the shell. It ignores signals to the whole process group (Ctrl-C), which would end it
/// too early. Dying servers may still create a file in the directory, so removing it is retried.
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

/// Kills the registered processes and removes its directory, on drop or at the end of the process.
pub struct Reaper {
    orders: Mutex<ChildStdin>,
    _shell: Child,
}

impl Reaper {
    /// Starts a reaper for `directory`.
    pub fn for_directory(directory: &Path) -> io::Result<Self> {
        let mut shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "reaper"])
            .arg(directory)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A test runner that kills the group of a test must not kill this process, which cleans
            // up afterwards.
            .process_group(0)
            .spawn()?;
        let orders = shell.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { orders: Mutex::new(orders), _shell: shell })
    }

    /// Registers a process: it is killed at our end.
    pub fn register(&self, process: u32) -> io::Result<()> {
        self.order("started", process)
    }

    /// Unregisters a process that has ended: its id may soon belong to another one.
    pub fn unregister(&self, process: u32) -> io::Result<()> {
        self.order("ended", process)
    }

    fn order(&self, what: &str, process: u32) -> io::Result<()> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.write_all(format!("{what} {process}\n").as_bytes())
    }
}
