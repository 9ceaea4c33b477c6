//! Requests of the daily round: a believed object is verified at its turn, also in a quiet hour.
//!
//! In: requests about objects in an hour in which nothing changes. Out: true for the one apply, or
//! the one read with its dry run, of an object whose turn has just come.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use moorline::clock;
use moorline::controller::until_turn;
use moorline::object::ObjectId;
use moorline::sandbox::ObservedRequest;
use moorline::settings::Settings;

use super::super::objects::id_of;
use super::{Observer, Seen};

/// So long after its turn an object has been verified: a Sync looks once a minute.
const LATE: Duration = Duration::from_secs(90);

/// The requests of the daily round so far: method and path.
pub(super) type Round = BTreeSet<(String, String)>;

impl Observer {
    /// From now on nothing changes, or something does again.
    pub(crate) fn is_quiet(&self, quiet: bool) {
        self.seen().round = quiet.then(Round::new);
    }
}

impl Seen {
    /// True for a verification that is due by the daily round, once for each object.
    pub(super) fn is_of_the_round(&mut self, path: &str, heard: &ObservedRequest<'_>) -> bool {
        let Some(round) = &mut self.round else { return false };
        let is_due = id_of(path).is_some_and(|id| has_its_turn(&id, clock::wall()));
        let verifies = *heard.method == Method::PATCH || *heard.method == Method::GET;
        is_due && verifies && round.insert((heard.method.to_string(), path.to_owned()))
    }
}

fn has_its_turn(id: &ObjectId, wall: Duration) -> bool {
    let every = Settings::default().verify_every;
    until_turn(id, wall.saturating_sub(LATE), every) <= LATE
}

#[test]
fn only_what_is_due_belongs_to_the_round() {
    let id = id_of("/apis/apps/v1/namespaces/apps/deployments/s0-3").unwrap();
    assert_eq!(id.as_str(), "apps/Deployment|apps/s0-3");
    let turn = until_turn(&id, Duration::ZERO, Settings::default().verify_every);
    let late = |seconds: u64| has_its_turn(&id, turn + Duration::from_secs(seconds));
    assert!(late(0) && late(90) && !late(91) && !late(3600));
    assert!(!has_its_turn(&id, turn - Duration::from_secs(1)), "before its turn");
}
