//! The world of a story: a server, a repository, two daemons, and people who change objects and
//! Syncs.
//!
//! In: steps. Out: their effects. Commits and changes of a Sync's spec go to the observer at the
//! same moment.

pub(crate) mod chapters;
mod deletions;
mod hands;
mod network;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use moorline::api;
use moorline::controller::CacheKind;
use moorline::sandbox::{FaultRates, Options, Sandbox};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::charge::Charge;
use super::dice::Dice;
use super::foreign::Foreign;
use super::held::{Folders, Held};
use super::objects::{self, Id, OBJECTS, STAMP};
use super::observer::{LEASE, Observer};
use super::past::Past;
use super::replica::{NAMESPACE, Replica};
use super::repository::Books;
use super::said::Said;
use super::steps::{Act, SYNCS, Step, storm};

/// Path of definitions.
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The Lease of both replicas.
const THE_LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/moorline/leases/moorline";
/// Path of Syncs.
const PLACE: &str = "/apis/moorline.dev/v1alpha1/namespaces/moorline/syncs";

/// The world.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) observer: Observer,
    books: Books,
    past: Past,
    said: Said,
    pub(crate) held: Held,
    /// The objects of each folder, as the next commit has them.
    folders: Folders,
    charges: Vec<Charge>,
    replicas: Vec<Replica>,
    /// The faults that there are now.
    rates: FaultRates,
    stamp: u64,
    hands: u64,
    foreign: Vec<Foreign>,
    /// Widgets are served in two versions.
    two_versions: bool,
    /// Object that was wrong at the last check.
    amiss: Cell<Option<Id>>,
    pub(crate) happened: BTreeMap<&'static str, u64>,
}

impl World {
    /// A server with three Syncs, and things that are nobody's business.
    pub(crate) fn new(seed: u64, folder: &Path, observer: Observer) -> Self {
        let sandbox =
            Sandbox::new(&Options { seed, readiness: Some(Duration::from_secs(2)), ..Options::default() });
        let listening = observer.clone();
        let said = Said::default();
        let (writers, held) = (said.writers.clone(), Held::default());
        let rules = held.clone();
        sandbox.tap(move |heard| {
            writers.hear(heard);
            rules.hear(heard);
            listening.hear(heard);
        });
        let began = Instant::now();
        let replicas = ["a", "b"].map(|name| Replica::new(name, &sandbox, folder, began));
        let mut world = Self {
            sandbox,
            observer,
            books: Books::new(&folder.join("books")),
            past: Past::default(),
            said,
            held,
            folders: Folders::new(),
            charges: (0..SYNCS).map(Charge::new).collect(),
            replicas: replicas.into(),
            rates: FaultRates::default(),
            stamp: 1,
            hands: 0,
            foreign: Vec::new(),
            two_versions: false,
            amiss: Cell::new(None),
            happened: BTreeMap::new(),
        };
        world.found();
        world
    }

    fn found(&mut self) {
        let put = |place: &str, object: &Value| self.sandbox.apply(place, object, "person").unwrap();
        put(DEFINITIONS, &api::definition().unwrap());
        put(DEFINITIONS, &objects::widgets(false));
        for name in [NAMESPACE, objects::NAMESPACE] {
            put(
                "/api/v1/namespaces",
                &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
            );
        }
        for number in 0..8 {
            let name = format!("foreign-{number}");
            put(&objects::collection(number), &objects::manifest(&name, number, 0));
            let path = format!("{}/{name}", objects::collection(number));
            self.foreign.push(Foreign::new(path));
        }
        // One that bears the marks of another, as a copy does.
        let mut copy = objects::manifest("copy-0", 0, 0);
        copy["metadata"]["labels"] = json!({"moorline.dev/sync": "moorline.sync-0"});
        copy["metadata"]["annotations"]["moorline.dev/id"] = "moorline/sync-0|/ConfigMap|apps/s0-0".into();
        put(&objects::collection(0), &copy);
        self.foreign.push(Foreign::new(format!("{}/copy-0", objects::collection(0))));
        for foreign in &mut self.foreign {
            foreign.know(&self.sandbox);
        }
        for sync in 0..SYNCS {
            self.file(sync);
        }
        self.publish(false);
        for sync in 0..SYNCS {
            self.order(sync);
        }
    }

    /// Writes the files of a Sync, for the next commit.
    fn file(&mut self, sync: usize) {
        let charge = &mut self.charges[sync];
        let files = charge.files();
        self.books.write(&charge.folder(), files);
        self.folders.insert(charge.folder(), charge.objects.clone());
    }

    fn publish(&mut self, forced: bool) {
        let commit = self.books.commit(forced);
        self.books.point_to(commit);
        self.held.commits(&commit.to_string(), &self.folders);
        self.held.head(&commit.to_string());
        let objects = self.charges.iter().map(|charge| charge.objects.clone()).collect();
        self.said.commits(commit, objects);
        self.past.note(commit, self.charges.iter().map(Charge::holding).collect(), forced);
        self.tell_all();
    }

    /// The branch goes back to one of the last commits.
    fn go_back(&mut self, steps: usize) {
        let Some((commit, then)) = self.past.back(steps) else { return };
        self.books.point_to(*commit);
        self.held.head(&commit.to_string());
        self.charges.iter_mut().zip(then).for_each(|(charge, then)| charge.holds_again(then));
        (0..SYNCS).for_each(|sync| self.file(sync));
        self.tell_all();
    }

    /// From now on there are these faults.
    fn blows(&mut self, rates: FaultRates) {
        self.rates = rates;
        self.sandbox.faults().set(rates);
    }

    /// Tells who watches what every Sync is to hold from now on, and which commit each object is of.
    fn tell_all(&self) {
        let all = self.charges.iter().flat_map(|charge| &charge.objects);
        self.observer.commits(all.map(|(id, stamp)| (id.name(), *stamp)));
        (0..SYNCS).for_each(|sync| self.tell(sync));
    }

    fn tell(&self, sync: usize) {
        let charge = &self.charges[sync];
        let asked = (charge.fits(), charge.prunes());
        self.observer.tell(sync, charge.wanted(), charge.claims(), asked);
        self.observer.rests(sync, charge.stops_its_end());
    }

    /// Writes a Sync as it is wanted, or deletes it.
    fn order(&self, sync: usize) {
        let charge = &self.charges[sync];
        match charge.gone {
            true => self.held.goes(&charge.name()),
            false => self.held.orders(&charge.name(), charge.unfit.is_none()),
        }
        if !charge.gone || charge.takes_along {
            self.sandbox.apply(PLACE, &charge.written(&self.books.url()), "person").unwrap();
        }
        if charge.gone {
            // It may be gone already.
            let _ = self.sandbox.delete(&format!("{PLACE}/{}", charge.name()));
        }
        self.tell(sync);
    }

    /// Has every daemon run that does not, and every Sync there that is to be: one that was being deleted goes first.
    pub(crate) fn keep_running(&mut self) {
        self.replicas.iter_mut().for_each(Replica::begin);
        for sync in 0..SYNCS {
            if !self.charges[sync].gone {
                self.answer(sync);
            }
            let charge = &self.charges[sync];
            if !charge.gone && self.sandbox.revision(&format!("{PLACE}/{}", charge.name())).is_none() {
                self.order(sync);
            }
        }
    }

    /// Somebody approves what a Sync holds back.
    pub(crate) fn approve(&self, sync: usize) {
        let place = format!("{PLACE}/{}", self.charges[sync].name());
        let status = self.sandbox.get(&place).map(|mut sync| sync["status"].take()).unwrap_or_default();
        if let Some(hash) = status.pointer("/approval/hash") {
            let given = json!({"metadata": {"annotations": {api::APPROVE_ANNOTATION: hash}}});
            self.sandbox.merge(&place, &given, "person").unwrap();
            self.observer.approves(sync);
            self.held.approves(&self.charges[sync].name());
        }
    }

    /// A person approves everything that is held.
    pub(crate) fn approve_all(&self) {
        (0..SYNCS).for_each(|sync| self.approve(sync));
    }

    /// A person approves what a Sync holds back, and answers a deletion that waits.
    fn says_yes(&mut self, sync: usize) {
        self.approve(sync);
        self.answer(sync);
    }

    /// Takes one step.
    pub(crate) async fn take(&mut self, step: &Step) {
        *self.happened.entry(step.act.word()).or_default() += 1;
        let (sync, mut dice) = (step.sync, Dice::new(step.seed));
        match step.act {
            Act::Change | Act::Add | Act::Remove | Act::Bad | Act::Empty | Act::Force => {
                self.edit(step.act, sync, &mut dice);
                self.file(sync);
                self.publish(step.act == Act::Force);
            }
            Act::Back => self.go_back(1 + dice.below(3) as usize),
            Act::TakeBack => self.take_back(sync, &mut dice).await,
            Act::Move => {
                let to = (sync + 1 + dice.below(SYNCS as u64 - 1) as usize) % SYNCS;
                self.transfer(sync, to, &mut dice);
                [sync, to].into_iter().for_each(|sync| self.file(sync));
                self.publish(false);
            }
            Act::EditByHand | Act::RemoveByHand | Act::AddByHand | Act::DeleteByHand | Act::Relabel => {
                self.meddle(step.act, sync, &mut dice);
            }
            Act::Suspend | Act::Prune | Act::DriftMode | Act::Path | Act::Unfit => {
                self.ask_otherwise(step.act, sync);
            }
            Act::Approve => self.says_yes(sync),
            Act::Request => self.nudge(sync),
            Act::Part => {
                let charge = &mut self.charges[sync];
                charge.parts(&mut dice);
                match charge.takes_along && dice.below(2) == 0 {
                    true => self.suspend_in_deletion(sync, &mut dice).await,
                    false => self.order(sync),
                }
            }
            Act::Define => {
                self.two_versions = !self.two_versions;
                self.sandbox.apply(DEFINITIONS, &objects::widgets(self.two_versions), "person").unwrap();
            }
            Act::Lose => {
                let what = CacheKind::ALL[dice.below(CacheKind::ALL.len() as u64) as usize];
                self.replicas.iter().for_each(|replica| replica.lose(what));
            }
            Act::LoseMirrors => self.replicas.iter().for_each(Replica::lose_mirrors),
            Act::Storm => self.blows(storm(&mut dice)),
            Act::Calm => self.blows(FaultRates::default()),
            Act::CutWatches => self.sandbox.faults().cut_watches(),
            Act::Forget => self.forget(),
            Act::Away => self.goes_away(Duration::from_secs(20 + dice.below(100))).await,
            Act::Crash => self.replicas[dice.below(2) as usize].crash(),
            Act::Sever => self.sever(&mut dice),
            // Nobody runs meanwhile, as on a machine that was put to sleep.
            Act::StandStill => {
                let time = Duration::from_millis(5000 + dice.below(40_000));
                self.observer.stands_still(time);
                tokio::time::advance(time).await;
            }
            Act::FreezeLeader => {
                let time = LEASE.0 + Duration::from_millis(dice.below(20_000));
                self.observer.stands_still(time);
                self.pass_lease_on(time);
                tokio::time::advance(time).await;
            }
            Act::Skew => self.sandbox.skew(dice.below(120) as i64 - 60),
        }
        if dice.below(2) == 0 && step.act <= Act::Back {
            self.nudge(sync);
        }
        tokio::time::sleep(Duration::from_millis(step.pause)).await;
    }

    /// Somebody wants a Sync to look.
    pub(crate) fn nudge(&mut self, sync: usize) {
        self.hands += 1;
        let now = json!({"metadata": {"annotations": {api::REQUEST_ANNOTATION: format!("{}", self.hands)}}});
        // One that is not there needs no look.
        let _ = self.sandbox.merge(&format!("{PLACE}/sync-{sync}"), &now, "person");
    }

    /// All faults end, every Sync is as it was at the beginning, and every folder whole.
    pub(crate) fn settle(&mut self) {
        self.blows(FaultRates::default());
        self.sandbox.skew(0);
        self.forget();
        for line in self.replicas.iter().filter_map(Replica::line) {
            line.set_held(false);
        }
        for sync in 0..SYNCS {
            self.charges[sync].settle();
            self.file(sync);
        }
        self.publish(false);
        for sync in 0..SYNCS {
            self.order(sync);
            self.nudge(sync);
        }
    }

    /// Returns the difference of the cluster from the repository; none if it is.
    pub(crate) fn difference(&self) -> Option<String> {
        // An object that was wrong before is most likely still wrong.
        let ever = || self.charges.iter().flat_map(Charge::ever);
        let amiss = self.amiss.get().into_iter().chain(ever());
        let found = amiss.into_iter().find_map(|id| Some((id, self.amiss(id)?)));
        self.amiss.set(found.as_ref().map(|(id, _)| *id));
        found.map(|(_, what)| what).or_else(|| self.touched())
    }

    /// Returns the difference of an object from the repository, if it is not.
    fn amiss(&self, id: Id) -> Option<String> {
        let (path, live) = (id.path(), self.sandbox.get(&id.path()));
        let stamp = self.charges.iter().find_map(|charge| charge.objects.get(&id));
        match (stamp, live) {
            (Some(stamp), Some(live)) => {
                objects::difference(&live, &id.manifest(*stamp), "").map(|found| format!("{path}{found}"))
            }
            (Some(_), None) => Some(format!("{path} is missing")),
            (None, Some(live)) if live.pointer("/metadata/labels/moorline.dev~1sync").is_some() => {
                Some(format!("{path} is there, and not wanted"))
            }
            (None, _) => None,
        }
    }

    /// Returns a false statement of a Sync about an object.
    pub(crate) fn said(&self) -> Option<String> {
        let of = |sync: usize| {
            let path = format!("{PLACE}/{}", self.charges[sync].name());
            self.said.wrong(&self.sandbox, sync, &path)
        };
        (0..SYNCS).filter(|sync| self.charges[*sync].repairs()).find_map(of)
    }

    /// Returns the changes of objects of no Sync.
    pub(crate) fn touched(&self) -> Option<String> {
        self.foreign.iter().find_map(|foreign| foreign.touched(&self.sandbox))
    }

    /// Returns the statuses of all Syncs.
    pub(crate) fn statuses(&self) -> String {
        let of = |sync| self.sandbox.get(&format!("{PLACE}/sync-{sync}")).map(|it| it["status"].to_string());
        (0..SYNCS).filter_map(of).collect::<Vec<_>>().join("\n")
    }
}
