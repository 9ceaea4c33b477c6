//! Reports Syncs that no daemon serves any more.
//!
//! In: Syncs that name the Lease of their daemon. Out: a line for each Lease that is not renewed,
//! and false if there is one.

use std::collections::BTreeSet;

use super::super::Streams;
use crate::cluster::{Connection, Heartbeat, SyncResource};

/// True unless the daemon of one of these Syncs is known to be gone.
pub(super) async fn are_all_served(
    all: &[SyncResource],
    connection: &Connection,
    streams: &mut Streams<'_>,
) -> bool {
    let leases: BTreeSet<&str> = all.iter().filter_map(|sync| sync.status.held_by.as_deref()).collect();
    let mut served = true;
    for lease in leases {
        let heartbeat = connection.heartbeat(lease).await;
        served &= matches!(heartbeat, Heartbeat::Alive | Heartbeat::Unknown);
        if let Some(line) = describe_heartbeat(heartbeat, lease, "this") {
            streams.say(&line);
        }
    }
    served
}

/// The line about a daemon that does not serve something, unless it does.
pub(in super::super) fn describe_heartbeat(
    heartbeat: Heartbeat,
    lease: &str,
    served: &str,
) -> Option<String> {
    match heartbeat {
        Heartbeat::Alive => None,
        Heartbeat::Silent(age) => {
            let seconds = age.as_secs();
            let age = match seconds {
                0..120 => format!("{seconds} s"),
                120..7200 => format!("{} min", seconds / 60),
                _ => format!("{} h", seconds / 3600),
            };
            Some(format!("no daemon has served {served} for {age}: the Lease {lease} is not renewed"))
        }
        Heartbeat::Missing => Some(format!("no daemon serves {served}: there is no Lease {lease}")),
        Heartbeat::Unknown => {
            Some(format!("cannot tell if a daemon serves {served}: the Lease {lease} cannot be read"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_age_of_a_silence_is_said_in_one_unit() {
        let said = |seconds| {
            describe_heartbeat(Heartbeat::Silent(Duration::from_secs(seconds)), "a/b", "this").unwrap()
        };
        assert!(said(20).contains("for 20 s: the Lease a/b is not renewed"));
        assert!(said(250).contains("for 4 min:"));
        assert!(said(90_000).contains("for 25 h:"));
    }
}
