//! The signals by which a person or a supervisor ends this process.
//!
//! In: SIGTERM, SIGINT and SIGHUP. Out: a future that ends with the first of them.

/// Waits until somebody asks this process to end, or closes the terminal in which it was started. From the call on nobody
/// ends it otherwise, so that whoever leaves something behind calls it first.
pub(super) fn interrupted() -> impl Future<Output = ()> {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let hangup = if outlives_its_terminal() { None } else { signal(SignalKind::hangup()).ok() };
    async {
        let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
            return std::future::pending().await;
        };
        let hung_up = async {
            match hangup {
                Some(mut hangup) => drop(hangup.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = hung_up => {}
        }
    }
}

/// True if it was started to go on without a terminal, as `nohup` does: SIGHUP, the first of the signals, is ignored.
fn outlives_its_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
