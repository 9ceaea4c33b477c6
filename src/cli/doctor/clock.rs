//! Checks the clock of this machine against that of the API server.
//!
//! In: the `Date` header of a response, which has whole seconds. Out: a finding about the server,
//! and one about the clocks. The daemon does not depend on either clock: Leases are judged by
//! durations. A wrong clock makes the ages in the output wrong, and certificates and tokens
//! invalid.

use jiff::Timestamp;

use super::finding::Finding;
use crate::cluster::Connection;

/// Difference in seconds up to which clocks count as equal.
const MAX_SKEW: i64 = 5;

/// Reads the server's version and clock; the error says why that is not possible.
pub(super) async fn check(connection: &Connection) -> Result<(Finding, Finding), Box<str>> {
    let before = Timestamp::now();
    let server = connection.server_info().await?;
    let after = Timestamp::now();
    let found = Finding::ok("cluster", format!("the API server is {}", server.version));
    Ok((found, judge(before, server.time, after)))
}

/// Judges the server's time, which was read between two times of this machine.
fn judge(before: Timestamp, server: Option<Timestamp>, after: Timestamp) -> Finding {
    let Some(server) = server else {
        return Finding::unknown(
            "clock",
            "the API server does not say its time",
            "compare the clocks by hand",
        );
    };
    let server = server.as_second();
    // The server's time is between these two, up to the second that its header cuts off.
    let skew = match (before.as_second(), after.as_second()) {
        (before, _) if server + 1 < before => before - server - 1,
        (_, after) if server > after => after - server,
        _ => 0,
    };
    match skew {
        skew if skew.abs() <= MAX_SKEW => {
            Finding::ok("clock", "the clocks of this machine and of the API server agree")
        }
        skew => {
            let side = if skew > 0 { "ahead of" } else { "behind" };
            let message =
                format!("the clock of this machine is {} s {side} that of the API server", skew.abs());
            let remedy = "synchronize both (NTP): ages in the output are wrong by this, and certificates and tokens may be \
                          refused";
            Finding::warning("clock", message, remedy)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_difference_is_what_neither_the_request_nor_the_header_explains() {
        let second = |second| Timestamp::from_second(second).unwrap();
        let check = |before: i64, server: i64, after: i64, level: Level, part: &str| {
            let found = judge(second(before), Some(second(server)), second(after));
            assert!(found.level == level && found.message.contains(part), "{found:?}");
        };
        check(100, 100, 100, Level::Ok, "agree");
        check(100, 99, 100, Level::Ok, "agree");
        check(100, 109, 110, Level::Ok, "agree");
        check(100, 94, 100, Level::Ok, "agree");
        check(100, 39, 100, Level::Warning, "60 s ahead of");
        check(100, 400, 101, Level::Warning, "299 s behind");
        assert_eq!(judge(second(1), None, second(1)).level, Level::Unknown);
    }
}
