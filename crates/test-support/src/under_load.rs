//! Time limits on a machine that has other work.
//!
//! In: the limit for an idle machine.
//! Out: the limit for this machine as it is now. Test programs run side by side on few processors,
//! and a process that waits for a processor is late without a fault of its own.

use std::time::Duration;

/// Number of threads that run or wait for a processor or a disk.
const LOAD_FILE: &str = "/proc/loadavg";

/// Extends a limit by the number of threads that share one processor. An idle machine, and one
/// without this number, keeps the limit.
pub fn under_load(idle: Duration) -> Duration {
    let load = std::fs::read_to_string(LOAD_FILE).ok().and_then(|text| parse_load(&text)).unwrap_or(0.0);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    extend(idle, load, processors)
}

fn extend(idle: Duration, load: f64, processors: usize) -> Duration {
    idle.mul_f64((load / processors as f64).max(1.0))
}

/// Parses the load: the mean of the last minute or the number of this moment, if it is higher.
fn parse_load(text: &str) -> Option<f64> {
    let mut fields = text.split_whitespace();
    let mean: f64 = fields.next()?.parse().ok()?;
    let running = fields.nth(2).and_then(|it| it.split('/').next()).and_then(|it| it.parse().ok());
    Some(mean.max(running.unwrap_or(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_higher_load_counts() {
        assert_eq!(parse_load("0.52 0.40 0.30 9/512 4711\n"), Some(9.0));
        assert_eq!(parse_load("12.50 0.40 0.30 2/512 4711\n"), Some(12.5));
        assert_eq!(parse_load("12.50"), Some(12.5));
        assert_eq!(parse_load(""), None);
    }

    #[test]
    fn a_limit_grows_with_the_load_and_never_shrinks() {
        let second = Duration::from_secs(1);
        assert_eq!(extend(second, 0.1, 2), second);
        assert_eq!(extend(second, 2.0, 2), second);
        assert_eq!(extend(second, 9.0, 2), Duration::from_millis(4500));
    }
}
