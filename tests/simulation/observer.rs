//! The rules of the simulation: observes every request that the server carries out, and reports
//! each one that breaks a rule.
//!
//! In: requests, commits, specs and approvals, as they happen. Out: a sentence for each broken
//! rule, and the number of requests of each class. Rules about single subjects are in
//! `revisions.rs` (order of revisions), `held.rs` (the revision that the status names), `said.rs`
//! (truth of a status) and `observer/suspensions.rs`; `world/chapters.rs` has the rules of the
//! chapters.

mod daily_round;
mod suspensions;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Method;
use moorline::sandbox::ObservedRequest;
use serde_json::Value;
use tokio::time::Instant;

use super::classes::{class, is_stream};
use super::revisions::Revisions;
pub(crate) use suspensions::HEARD;

/// Time for which a daemon acts on its knowledge: the bound of a pass.
const PATIENCE: Duration = Duration::from_secs(330);

/// Duration of the Lease, and the time for which its holder writes.
pub(crate) const LEASE: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(10));

/// Time for which a pass uses an earlier list, when everything is reported again.
const UNDER_WAY: Duration = Duration::from_secs(60);

const MINUTE: Duration = Duration::from_secs(60);
/// So many requests about one object within a minute are more than anything is worth.
const STORM: u32 = 200;

/// Spec and folder of a Sync at a time.
#[derive(Debug, Clone)]
struct Told {
    /// Desired objects of its folder; none if that cannot be rendered, or holds nothing.
    wanted: Option<BTreeSet<String>>,
    /// Its spec is not refused.
    fits: bool,
    /// Its claims, in whatever state its folder is.
    claims: BTreeSet<String>,
    /// A person has approved what it holds back.
    approved: bool,
    prunes: bool,
    from: Instant,
    until: Option<Instant>,
}

/// The observer; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Observer(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    told: BTreeMap<usize, Vec<Told>>,
    /// The Syncs whose deletion is suspended, since when.
    rests: BTreeMap<usize, Instant>,
    revisions: Revisions,
    /// The objects on which somebody has laid hands.
    meddled: BTreeSet<String>,
    /// Holder of the Lease, and when its last renewal was carried out.
    holder: Option<(String, Instant)>,
    /// The last one that held it, also after it was given back.
    last_holder: String,
    wrong: Vec<String>,
    /// Every Event that was written: its reason and its text.
    events: Vec<(String, String)>,
    counts: BTreeMap<&'static str, u64>,
    /// Collections that each client was given to their end.
    listed: BTreeSet<(String, String)>,
    /// Those that it is given again, since when.
    relisted: BTreeMap<(String, String), Instant>,
    /// Number of requests of each client about each object in the minute that began then.
    asked: BTreeMap<(String, String), (Instant, u32)>,
    /// In a quiet hour: the verifications that the daily round has made.
    round: Option<daily_round::Round>,
    trace: DefaultHasher,
    log: Option<String>,
    began: Option<Instant>,
    stood_still: Option<Instant>,
}

impl Observer {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps every request in words, too.
    pub(crate) fn write_down(&self) {
        self.seen().log = Some(String::new());
    }

    /// Returns the requests that were recorded since the last call.
    pub(crate) fn log(&self) -> String {
        self.seen().log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// From now on this is what a Sync is to hold.
    pub(crate) fn tell(
        &self,
        sync: usize,
        wanted: Option<BTreeSet<String>>,
        claims: BTreeSet<String>,
        (fits, prunes): (bool, bool),
    ) {
        let (mut seen, from) = (self.seen(), Instant::now());
        let all = seen.told.entry(sync).or_default();
        if let Some(last) = all.last_mut() {
            last.until = Some(from);
        }
        all.push(Told { wanted, fits, claims, approved: false, prunes, from, until: None });
    }

    /// A person approves what a Sync holds back.
    pub(crate) fn approves(&self, sync: usize) {
        let last = |all: &mut Vec<Told>| all.last_mut().into_iter().for_each(|told| told.approved = true);
        self.seen().told.get_mut(&sync).into_iter().for_each(last);
    }

    /// From now on these objects are to have these stamps.
    pub(crate) fn commits(&self, stamps: impl Iterator<Item = (String, u64)>) {
        self.seen().revisions.commits(stamps);
    }

    /// The world stands still for so long: what was on its way arrived at once with the deadline that should have ended it.
    pub(crate) fn stands_still(&self, time: Duration) {
        self.seen().stood_still = Some(Instant::now() + time);
    }

    /// Returns the holder of the Lease.
    pub(crate) fn holder(&self) -> Option<String> {
        self.seen().holder.as_ref().map(|(holder, _)| holder.clone())
    }

    /// This one holds the Lease after so long.
    pub(crate) fn passed_on(&self, to: &str, time: Duration) {
        let mut seen = self.seen();
        seen.holder = Some((to.to_owned(), Instant::now() + time));
        to.clone_into(&mut seen.last_holder);
    }

    /// Somebody lays hands on an object.
    pub(crate) fn meddles(&self, name: &str) {
        self.seen().meddled.insert(name.to_owned());
    }

    /// Returns the violations so far.
    pub(crate) fn wrong(&self) -> Vec<String> {
        self.seen().wrong.clone()
    }

    /// True if an Event with this reason tells of this.
    pub(crate) fn has_told(&self, reason: &str, part: &str) -> bool {
        self.seen().events.iter().any(|(known, note)| known == reason && note.contains(part))
    }

    /// Returns the number of requests since the last call, by class.
    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut self.seen().counts)
    }

    /// The same number for the same requests at the same times.
    pub(crate) fn trace(&self) -> u64 {
        self.seen().trace.finish()
    }

    /// Takes in a request.
    pub(crate) fn hear(&self, heard: &ObservedRequest<'_>) {
        self.seen().hear(heard);
    }
}

impl Seen {
    fn hear(&mut self, heard: &ObservedRequest<'_>) {
        let now = Instant::now();
        let began = *self.began.get_or_insert(now);
        (heard.client, heard.uri, heard.code, now - began).hash(&mut self.trace);
        if let Some(log) = &mut self.log {
            let (at, method) = ((now - began).as_secs_f64(), heard.method);
            let sent = heard.sent.saturating_duration_since(began).as_secs_f64();
            let body = String::from_utf8_lossy(heard.body);
            let body: String = body.chars().take(300).collect();
            let _ = writeln!(
                log,
                "{sent:9.3} {at:9.3} {:6} {method} {} -> {} {body}",
                heard.client, heard.uri, heard.code
            );
        }
        if heard.client.is_empty() {
            return;
        }
        let (path, query) = heard.uri.split_once('?').unwrap_or((heard.uri, ""));
        // The same objects under the name of another version.
        let path = &*path.replace("/apis/example.com/v2/", "/apis/example.com/v1/");
        let place = (heard.client.to_owned(), path.to_owned());
        if heard.initial_events_sent {
            self.relisted.remove(&place);
            self.listed.insert(place);
            return;
        }
        let reads = heard.method == Method::GET;
        // A list that comes in pages is not the watch's: it looks where objects of a Sync may be.
        if reads && is_stream(query) {
            self.relisted.entry(place).or_insert(now);
        }
        let class = class(path, reads, query);
        let is_round = class == "object" && self.is_of_the_round(path, heard);
        *self.counts.entry(if is_round { "round" } else { class }).or_default() += 1;
        if class == "object" {
            self.hammered(heard, path, now);
        }
        let done = (200..300).contains(&heard.code);
        if class == "lease" {
            return if done && !reads {
                self.renewed(heard, now)
            };
        }
        if reads {
            return;
        }
        self.under_lease(heard, now);
        if let Some((_, sync)) = path.strip_suffix("/status").and_then(|path| path.rsplit_once("/syncs/"))
            && done
        {
            self.revisions.told(sync, heard.body);
        }
        if class == "event" && done {
            self.reported(heard);
        }
        // Rights are asked for by something that looks like a write.
        if class == "other" && done && !path.ends_with("reviews") {
            self.say("what is nobody's business was written to", heard);
        }
        if class != "object" || !done || query.contains("dryRun") {
            return;
        }
        self.is_ours(path, heard);
        match *heard.method {
            Method::DELETE => self.pruned(path, heard, now),
            Method::PATCH => self.applied(path, heard),
            _ => {}
        }
    }

    /// Nobody asks about one object again and again.
    fn hammered(&mut self, heard: &ObservedRequest<'_>, path: &str, now: Instant) {
        let place = (heard.client.to_owned(), path.to_owned());
        let (since, times) = self.asked.entry(place).or_insert((now, 0));
        if *since + MINUTE < now {
            (*since, *times) = (now, 0);
        }
        *times += 1;
        if *times == STORM {
            self.say(&format!("the {STORM}th request about one object within a minute"), heard);
        }
    }

    fn say(&mut self, what: &str, heard: &ObservedRequest<'_>) {
        self.wrong.push(format!("{what}: {} {} by {}", heard.method, heard.uri, heard.client));
    }

    fn renewed(&mut self, heard: &ObservedRequest<'_>, now: Instant) {
        let lease: Value = serde_json::from_slice(heard.body).unwrap_or_default();
        let holder = lease.pointer("/spec/holderIdentity").and_then(Value::as_str).unwrap_or_default();
        if self.holder.as_ref().is_none_or(|(last, _)| *last != holder) && self.last_holder != holder {
            // Another one held the Lease: what this one was given before says nothing any more.
            self.listed.retain(|(who, _)| who != holder);
            self.relisted.retain(|(who, _), _| who != holder);
        }
        if !holder.is_empty() {
            holder.clone_into(&mut self.last_holder);
        }
        self.holder = (!holder.is_empty()).then(|| (holder.to_owned(), now));
    }

    /// A write is sent by the holder of the Lease alone, and before its deadline, counted from its last renewal at the latest.
    fn under_lease(&mut self, heard: &ObservedRequest<'_>, now: Instant) {
        match &self.holder {
            Some((holder, renewed)) if holder == heard.client => {
                if heard.sent > *renewed + LEASE.1 {
                    let late = heard.sent - (*renewed + LEASE.1);
                    let what = format!("a write that was sent {late:?} after the deadline of the Lease");
                    self.say(&what, heard);
                } else if now > *renewed + LEASE.0 && self.stood_still.is_none_or(|stood| heard.sent > stood)
                {
                    self.say("a write that arrived after the term of the Lease", heard);
                }
            }
            // A request that was sent before the world stood still has arrived while it did.
            _ if self.stood_still.is_some_and(|stood| heard.sent < stood) => {}
            _ => self.say("a write by one who does not hold the Lease", heard),
        }
    }

    fn is_ours(&mut self, path: &str, heard: &ObservedRequest<'_>) {
        let name = path.rsplit('/').next().unwrap_or_default();
        if !(name.starts_with('s') && name.contains('-')) {
            self.say("a foreign object was touched", heard);
        }
    }

    /// No older revision is written after a newer one.
    fn applied(&mut self, path: &str, heard: &ObservedRequest<'_>) {
        if let Some(wrong) = self.revisions.applied(path, heard.body) {
            self.say(&wrong, heard);
        }
    }

    /// Nobody is said to have changed what nobody has changed.
    fn reported(&mut self, heard: &ObservedRequest<'_>) {
        let event: Value = serde_json::from_slice(heard.body).unwrap_or_default();
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let (reason, note) = (text("reason"), text("note"));
        self.events.push((reason.clone(), note.clone()));
        if reason != "DriftRepaired" {
            return;
        }
        for repair in note.split("; ").filter(|repair| repair.len() < note.len() || note.len() < 900) {
            // The last part counts the repairs that are not named.
            if repair.starts_with("and ") {
                continue;
            }
            let id = repair.split(':').next().unwrap_or_default();
            let name = id.rsplit('/').next().unwrap_or_default();
            // A daemon that only knows of a difference names nobody.
            let is_named = !repair.ends_with("changed by an unknown manager");
            if is_named && !self.meddled.contains(name) || repair.contains("changed by moorline") {
                self.say(&format!("a repair of what nobody has changed, {repair:?}"), heard);
            }
        }
    }

    /// Nothing is pruned without proof.
    fn pruned(&mut self, path: &str, heard: &ObservedRequest<'_>, now: Instant) {
        let options: Value = serde_json::from_slice(heard.body).unwrap_or_default();
        let before = heard.before.clone().unwrap_or_default();
        let uid = before["metadata"]["uid"].as_str();
        if uid.is_none() || options["preconditions"]["uid"].as_str() != uid {
            self.say("a prune without the uid that was seen", heard);
        }
        let name = path.rsplit('/').next().unwrap_or_default();
        let identity = before["metadata"]["annotations"]["moorline.dev/id"].as_str().unwrap_or_default();
        if !identity.ends_with(&format!("/{name}")) {
            self.say("a prune of an object whose identity is not its own", heard);
        }
        let (collection, _) = path.rsplit_once('/').unwrap_or_default();
        let everywhere = collection.replace("/namespaces/apps", "");
        let listed = [collection, &everywhere].map(|place| (heard.client.to_owned(), place.to_owned()));
        let is_told = |place: &(String, String)| {
            let begun = self.relisted.get(place).filter(|begun| **begun + UNDER_WAY < heard.sent);
            self.listed.contains(place) && begun.is_none()
        };
        if !listed.iter().any(is_told) {
            self.say("a prune in a collection that was not listed to its end", heard);
        }
        // The identity says to which Sync it belongs: the label, by which it is found, may have been taken off a moment ago.
        let owner = identity.split('|').next().unwrap_or_default();
        let owner = owner.rsplit('-').next().and_then(|number| number.parse::<usize>().ok());
        self.not_suspended(owner, heard);
        let is_late = |told: &&Told| told.until.is_none_or(|until| until + PATIENCE >= now);
        let all: Vec<(usize, &Told)> = self
            .told
            .iter()
            .flat_map(|(sync, told)| told.iter().filter(is_late).map(|told| (*sync, told)))
            .collect();
        let own = || all.iter().filter(|(sync, _)| Some(*sync) == owner).map(|(_, told)| told);
        let is_left_out = |told: &Told| told.wanted.as_ref().is_some_and(|wanted| !wanted.contains(name));
        // While the newest commit or the spec is refused, an approval means what an older commit has left out.
        let is_approved = |told: &Told| {
            told.approved && (told.wanted.is_none() || !told.fits) && !told.claims.contains(name)
        };
        // The commit may be the older one, but of what is asked for something newer is never overlooked. A spec that fits may
        // have come after the commit, and before a newer one is known.
        let asks = |told: &Told, fits: bool| {
            let is_newer = |asked: &Told| asked.until.is_none_or(|until| until >= told.from);
            own().any(|asked| asked.prunes && (asked.fits || !fits) && is_newer(asked))
        };
        let meant =
            own().any(|told| is_left_out(told) && asks(told, true) || is_approved(told) && asks(told, false));
        // An object that one commit moves from one Sync to another is wanted at all times.
        let mut others: BTreeMap<usize, bool> = BTreeMap::new();
        for (sync, told) in all.iter().filter(|(sync, _)| Some(*sync) != owner) {
            *others.entry(*sync).or_insert(true) &= told.claims.contains(name);
        }
        if let Some((sync, _)) = others.iter().find(|(_, always)| **always) {
            self.say(&format!("a prune of what Sync {sync} claims, too"), heard);
        }
        if !meant {
            self.say("a prune that no commit of late has meant", heard);
        }
    }
}
