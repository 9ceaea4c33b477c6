//! Whether a Sync may depend on those that it names.
//!
//! In: what the Sync asks for. Out: nothing, or what is missing. Whoever waits for another Sync learns how that one does, so
//! that a Sync of a team may name those of other namespaces that the team's ServiceAccount may read.

use std::time::{Duration, Instant};

use super::super::prepare::of_failure;
use super::super::wish::Wish;
use super::Keeper;
use crate::api::SyncName;
use crate::clock;
use crate::cluster::Cluster;
use crate::report::Trouble;

/// So long an answer stands: a Sync is read again with each of its events.
const STANDS: Duration = Duration::from_secs(60);

/// Syncs that somebody was found to be able to read.
#[derive(Debug)]
pub(super) struct Readable {
    account: Box<str>,
    syncs: Vec<SyncName>,
    at: Instant,
}

impl Keeper {
    pub(super) async fn may_depend(&mut self, wish: &Wish, cluster: &Cluster) -> Result<(), Trouble> {
        // The daemon itself reads all of them.
        let Some(account) = &wish.service_account else { return Ok(()) };
        let elsewhere = wish.depends_on.iter().filter(|other| other.namespace != self.name.namespace);
        let syncs: Vec<SyncName> = elsewhere.cloned().collect();
        let stands = |known: &Readable| {
            (&known.account, &known.syncs) == (account, &syncs) && clock::since(known.at) < STANDS
        };
        if syncs.is_empty() || self.readable.as_ref().is_some_and(stands) {
            return Ok(());
        }
        for other in &syncs {
            let may = cluster.may_read_sync(&other.namespace, &other.name).await;
            if !may.map_err(|failure| of_failure(&failure))? {
                return Err(forbidden(other, account));
            }
        }
        self.readable = Some(Readable { account: account.clone(), syncs, at: clock::now() });
        Ok(())
    }
}

fn forbidden(other: &SyncName, account: &str) -> Trouble {
    let message = format!(
        "spec.dependsOn names the Sync {other}, which the ServiceAccount {account} may not read: let it get \
         syncs.moorline.dev in {}, or depend on Syncs of the own namespace",
        other.namespace
    );
    Trouble { reason: "RightsMissing", message, problems: Vec::new(), lasting: false }
}
