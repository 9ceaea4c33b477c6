//! The signals that end this process.
//!
//! In: SIGTERM, SIGINT and SIGHUP. Out: a future that completes with the first of them.

/// Waits for SIGTERM, SIGINT, or the end of the terminal. From the call on, these signals no longer
/// kill the process, so call it before creating anything that needs a cleanup.
pub(super) fn shutdown_signal() -> impl Future<Output = ()> {
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

/// True if the process ignores SIGHUP (the first signal in the mask), as under `nohup`.
fn outlives_its_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
