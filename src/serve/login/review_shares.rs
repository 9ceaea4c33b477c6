//! Shares of the token reviews: a flood of wrong tokens takes no turn of other addresses.
//!
//! In: the address of a client, and the hash of a token that nobody has decided about. Out: a
//! [`ReviewTurn`], or a refusal. A token that was accepted within [`TRUSTED_FOR`] always gets one.
//! Of all others, an address has [`MAX_WAITING`] at a time, and none for a while after
//! [`MAX_FAILURES`] wrong ones; together they leave some reviews to the accepted ones.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::bearer_token::MAX_REVIEWS;

/// The most reviews of unknown tokens that wait for one address.
const MAX_WAITING: usize = 4;
/// The most reviews of unknown tokens that wait for all addresses.
const MAX_STRANGERS: usize = MAX_REVIEWS - MAX_WAITING;
/// Number of wrong tokens after which an address gets no turn until the window ends.
const MAX_FAILURES: u32 = 20;
/// Time over which wrong tokens are counted.
pub(super) const WINDOW: Duration = Duration::from_secs(10);
/// Time for which an accepted token always gets a turn.
const TRUSTED_FOR: Duration = Duration::from_secs(3600);
/// The most addresses that are counted apart, and the most accepted tokens that are remembered.
const MAX_KEPT: usize = 4096;

/// Shares of all addresses.
#[derive(Debug, Default)]
pub(super) struct ReviewShares(Mutex<Shares>);

#[derive(Debug, Default)]
struct Shares {
    by_address: HashMap<IpAddr, AddressShare>,
    /// Times at which tokens were accepted last, by hash.
    accepted: HashMap<[u8; 32], Instant>,
    strangers: usize,
}

/// The use of one address.
#[derive(Debug)]
struct AddressShare {
    since: Instant,
    failures: u32,
    waiting: usize,
}

/// A turn of one token; it ends when it is dropped.
#[derive(Debug)]
pub(super) struct ReviewTurn<'a> {
    shares: &'a ReviewShares,
    hash: [u8; 32],
    /// The address, unless the token was accepted before.
    stranger: Option<IpAddr>,
}

impl ReviewShares {
    /// Takes a turn; `None` if the address has used its share.
    pub(super) fn take(&self, address: IpAddr, hash: [u8; 32]) -> Option<ReviewTurn<'_>> {
        let (now, mut shares) = (Instant::now(), self.lock());
        let is_trusted = |at: &Instant| now.duration_since(*at) < TRUSTED_FOR;
        if shares.accepted.get(&hash).is_some_and(is_trusted) {
            return Some(ReviewTurn { shares: self, hash, stranger: None });
        }
        if shares.strangers >= MAX_STRANGERS {
            return None;
        }
        let address = shares.place_of(network_of(address), now);
        let share =
            shares.by_address.entry(address).or_insert(AddressShare { since: now, failures: 0, waiting: 0 });
        if now.duration_since(share.since) >= WINDOW {
            (share.since, share.failures) = (now, 0);
        }
        if share.waiting >= MAX_WAITING || share.failures >= MAX_FAILURES {
            return None;
        }
        share.waiting += 1;
        shares.strangers += 1;
        Some(ReviewTurn { shares: self, hash, stranger: Some(address) })
    }

    fn lock(&self) -> MutexGuard<'_, Shares> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shares {
    /// The address under which a client is counted: one for all, if there are too many.
    fn place_of(&mut self, address: IpAddr, now: Instant) -> IpAddr {
        if self.by_address.len() >= MAX_KEPT && !self.by_address.contains_key(&address) {
            self.by_address.retain(|_, share| share.waiting > 0 || now.duration_since(share.since) < WINDOW);
        }
        let has_room = self.by_address.len() < MAX_KEPT || self.by_address.contains_key(&address);
        if has_room { address } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) }
    }

    fn accept(&mut self, hash: [u8; 32], now: Instant) {
        if self.accepted.len() >= MAX_KEPT {
            self.accepted.retain(|_, at| now.duration_since(*at) < TRUSTED_FOR);
        }
        if self.accepted.len() < MAX_KEPT {
            self.accepted.insert(hash, now);
        }
    }
}

impl ReviewTurn<'_> {
    /// Records the decision.
    pub(super) fn decided(&self, is_accepted: bool) {
        let mut shares = self.shares.lock();
        if is_accepted {
            return shares.accept(self.hash, Instant::now());
        }
        shares.accepted.remove(&self.hash);
        let share = self.stranger.and_then(|address| shares.by_address.get_mut(&address));
        if let Some(share) = share {
            share.failures += 1;
        }
    }
}

impl Drop for ReviewTurn<'_> {
    fn drop(&mut self) {
        let Some(address) = self.stranger else { return };
        let mut shares = self.shares.lock();
        shares.strangers = shares.strangers.saturating_sub(1);
        if let Some(share) = shares.by_address.get_mut(&address) {
            share.waiting = share.waiting.saturating_sub(1);
        }
    }
}

/// The network of an address: clients choose among the addresses of an IPv6 /64 as they like.
fn network_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: usize) -> [u8; 32] {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&number.to_be_bytes());
        hash
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_wrong_tokens_takes_no_turn_of_others() {
        let shares = ReviewShares::default();
        let at = |last: u16| IpAddr::from([10, 0, (last >> 8) as u8, last as u8]);
        let (flood, own, ada) = (at(1), at(2), hash(0));
        shares.take(own, ada).unwrap().decided(true);
        // Those that wait: a few of an address, and not all of several.
        let mut waiting: Vec<_> = (1..1024).filter_map(|number| shares.take(flood, hash(number))).collect();
        assert_eq!(waiting.len(), MAX_WAITING);
        waiting.extend(
            (3..9)
                .flat_map(|last| (1..9).map(move |it| (last, it)))
                .filter_map(|(last, it)| shares.take(at(last), hash(usize::from(last) * 100 + it))),
        );
        assert_eq!(waiting.len(), MAX_STRANGERS);
        assert!(shares.take(own, hash(7777)).is_none(), "an unknown token waits");
        assert!(shares.take(flood, ada).is_some(), "a token that was accepted has a turn everywhere");
        drop(waiting);
        assert!(shares.take(own, hash(7777)).is_some());
        // Those that failed.
        let failed = (1..1024).filter_map(|number| shares.take(flood, hash(number)));
        let count = failed.map(|turn| turn.decided(false)).count();
        assert_eq!(count, MAX_FAILURES as usize);
        assert!(shares.take(flood, hash(7777)).is_none() && shares.take(flood, ada).is_some());
        assert!(shares.take(own, hash(7777)).is_some(), "another address");
        tokio::time::advance(WINDOW).await;
        assert!(shares.take(flood, hash(7777)).is_some(), "after the window");
        // A token that is accepted no more is a stranger again.
        shares.take(flood, ada).unwrap().decided(false);
        let failed = (1..1024).filter_map(|number| shares.take(flood, hash(number)));
        failed.for_each(|turn| turn.decided(false));
        assert!(shares.take(flood, ada).is_none());
        // Addresses are bounded.
        (0..2 * MAX_KEPT).for_each(|it| drop(shares.take(at(u16::try_from(it).unwrap()), hash(it))));
        assert!(shares.lock().by_address.len() <= MAX_KEPT + 1);
        let v6 = |last: u16| IpAddr::from([0xfd00, 0, 0, 1, 0, 0, 0, last]);
        assert_eq!(network_of(v6(1)), network_of(v6(2)));
    }
}
