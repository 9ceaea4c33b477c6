//! The world of a story: a server, a repository, two daemons, and people who meddle.
//!
//! In: steps. Out: what they do to the world. What is committed and what a Sync is told goes to the observer at the same
//! moment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use moorline::api;
use moorline::sandbox::{Options, Rates, Sandbox};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::dice::Dice;
use super::objects::{self, OBJECTS, STAMP};
use super::observer::Observer;
use super::replica::{NAMESPACE, Replica};
use super::repository::{Books, Folder};
use super::steps::{Act, SYNCS, Step, storm};

/// Where Syncs are.
const PLACE: &str = "/apis/moorline.dev/v1alpha1/namespaces/moorline/syncs";

/// What a Sync is told, and what its folder holds.
struct Charge {
    /// The numbers of its objects, each with the number of the commit that wrote it.
    objects: BTreeMap<usize, u64>,
    next: usize,
    /// Which of its two folders it follows.
    second: bool,
    broken: bool,
    empty: bool,
    suspended: bool,
    prunes: bool,
    repairs: bool,
}

/// The world.
pub(crate) struct World {
    pub(crate) sandbox: Sandbox,
    pub(crate) observer: Observer,
    books: Books,
    charges: Vec<Charge>,
    replicas: Vec<Replica>,
    stamp: u64,
    hands: u64,
    foreign: Vec<(String, Value)>,
    pub(crate) happened: BTreeMap<&'static str, u64>,
}

impl World {
    /// A server with three Syncs, and things that are nobody's business.
    pub(crate) fn new(seed: u64, folder: &Path, observer: Observer) -> Self {
        let sandbox =
            Sandbox::new(&Options { seed, readiness: Some(Duration::from_secs(2)), ..Options::default() });
        let listening = observer.clone();
        sandbox.tap(move |heard| listening.hear(heard));
        let began = Instant::now();
        let replicas = ["a", "b"].map(|name| Replica::new(name, &sandbox, folder, began));
        let charge = || Charge {
            objects: (0..OBJECTS).map(|number| (number, 1)).collect(),
            next: OBJECTS,
            second: false,
            broken: false,
            empty: false,
            suspended: false,
            prunes: true,
            repairs: true,
        };
        let mut world = Self {
            sandbox,
            observer,
            books: Books::new(&folder.join("books")),
            charges: (0..SYNCS).map(|_| charge()).collect(),
            replicas: replicas.into(),
            stamp: 1,
            hands: 0,
            foreign: Vec::new(),
            happened: BTreeMap::new(),
        };
        world.found();
        world
    }

    fn found(&mut self) {
        const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let put = |place: &str, object: &Value| self.sandbox.apply(place, object, "person").unwrap();
        put(DEFINITIONS, &api::definition().unwrap());
        put(DEFINITIONS, &objects::widgets());
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
            self.foreign.push((path, Value::Null));
        }
        // One that bears the marks of another, as a copy does.
        let mut copy = objects::manifest("copy-0", 0, 0);
        copy["metadata"]["labels"] = json!({"moorline.dev/sync": "moorline.sync-0"});
        copy["metadata"]["annotations"]["moorline.dev/id"] = "moorline/sync-0|/ConfigMap|apps/s0-0".into();
        put(&objects::collection(0), &copy);
        self.foreign.push((format!("{}/copy-0", objects::collection(0)), Value::Null));
        for (path, known) in &mut self.foreign {
            *known = essence(self.sandbox.get(path).unwrap_or_default());
        }
        for sync in 0..SYNCS {
            self.file(sync);
        }
        self.publish(false);
        for sync in 0..SYNCS {
            self.order(sync);
        }
    }

    fn folder(&self, sync: usize) -> String {
        format!("s{sync}{}", if self.charges[sync].second { "-b" } else { "" })
    }

    /// Writes the files of a Sync, for the next commit.
    fn file(&mut self, sync: usize) {
        let charge = &self.charges[sync];
        let mut files: Folder = [("README.md".to_owned(), b"A folder.".to_vec())].into();
        if !charge.empty {
            for (number, stamp) in &charge.objects {
                let name = objects::name(sync, *number);
                let text = objects::manifest(&name, *number, *stamp).to_string();
                files.insert(format!("{name}.yaml"), text.into());
            }
        }
        if charge.broken {
            files.insert("broken.yaml".to_owned(), b"kind: {".to_vec());
        }
        self.books.write(&self.folder(sync), files);
    }

    fn publish(&mut self, forced: bool) {
        self.books.commit(forced);
        (0..SYNCS).for_each(|sync| self.tell(sync));
    }

    fn tell(&self, sync: usize) {
        let charge = &self.charges[sync];
        let names: BTreeSet<String> =
            charge.objects.keys().map(|number| objects::name(sync, *number)).collect();
        let wanted = (!charge.broken && !charge.empty).then_some(names);
        self.observer.tell(sync, wanted, charge.prunes && !charge.suspended);
    }

    /// Writes a Sync as it is wanted.
    fn order(&self, sync: usize) {
        let charge = &self.charges[sync];
        let spec = json!({
            "source": {"git": {"url": self.books.url()}}, "path": self.folder(sync), "interval": "30s",
            "suspend": charge.suspended, "prune": {"enabled": charge.prunes},
            "drift": {"mode": if charge.repairs { "Repair" } else { "Report" }},
        });
        let object = json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync",
            "metadata": {"name": format!("sync-{sync}"), "namespace": NAMESPACE}, "spec": spec,
        });
        self.sandbox.apply(PLACE, &object, "person").unwrap();
        self.tell(sync);
    }

    /// Has every daemon run that does not.
    pub(crate) fn keep_running(&mut self) {
        self.replicas.iter_mut().for_each(Replica::begin);
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
            Act::EditByHand | Act::RemoveByHand | Act::AddByHand | Act::DeleteByHand | Act::Relabel => {
                self.meddle(step.act, sync, &mut dice);
            }
            Act::Suspend | Act::Prune | Act::DriftMode | Act::Path => {
                let charge = &mut self.charges[sync];
                match step.act {
                    Act::Suspend => charge.suspended = !charge.suspended,
                    Act::Prune => charge.prunes = !charge.prunes,
                    Act::DriftMode => charge.repairs = !charge.repairs,
                    _ => {
                        self.stamp += 1;
                        let stamp = self.stamp;
                        charge.objects.values_mut().for_each(|known| *known = stamp);
                        charge.second = !charge.second;
                        self.file(sync);
                        self.publish(false);
                    }
                }
                self.order(sync);
            }
            Act::Storm => self.sandbox.faults().set(storm(&mut dice)),
            Act::Calm => self.sandbox.faults().set(Rates::default()),
            Act::CutWatches => self.sandbox.faults().cut_watches(),
            Act::Forget => self.forget(),
            Act::Crash => self.replicas[dice.below(2) as usize].crash(),
            Act::Sever => {
                if let Some(line) = self.replicas[dice.below(2) as usize].line() {
                    let time = Duration::from_millis(2000 + dice.below(30_000));
                    line.hold(true);
                    tokio::spawn(async move {
                        tokio::time::sleep(time).await;
                        line.hold(false);
                    });
                }
            }
            // Nobody runs meanwhile, as on a machine that was put to sleep.
            Act::StandStill => {
                let time = Duration::from_millis(5000 + dice.below(40_000));
                self.observer.stands_still(time);
                tokio::time::advance(time).await;
            }
            Act::Skew => self.sandbox.skew(dice.below(120) as i64 - 60),
        }
        if dice.below(2) == 0 && step.act <= Act::Force {
            self.nudge(sync);
        }
        tokio::time::sleep(Duration::from_millis(step.pause)).await;
    }

    /// Somebody wants a Sync to look.
    fn nudge(&mut self, sync: usize) {
        self.hands += 1;
        let now = json!({"metadata": {"annotations": {api::REQUEST_ANNOTATION: format!("{}", self.hands)}}});
        // One that is not there needs no look.
        let _ = self.sandbox.merge(&format!("{PLACE}/sync-{sync}"), &now, "person");
    }

    fn edit(&mut self, act: Act, sync: usize, dice: &mut Dice) {
        self.stamp += 1;
        let (stamp, charge) = (self.stamp, &mut self.charges[sync]);
        (charge.broken, charge.empty) = (act == Act::Bad, act == Act::Empty);
        let numbers: Vec<usize> = charge.objects.keys().copied().collect();
        match act {
            Act::Add => {
                charge.objects.insert(charge.next, stamp);
                charge.next += 1;
            }
            Act::Remove if numbers.len() > OBJECTS - 8 => {
                for _ in 0..=dice.below(3) {
                    charge.objects.remove(&numbers[dice.below(numbers.len() as u64) as usize]);
                }
            }
            Act::Bad | Act::Empty => {}
            _ => {
                for _ in 0..=dice.below(4) {
                    charge.objects.insert(numbers[dice.below(numbers.len() as u64) as usize], stamp);
                }
            }
        }
    }

    /// Somebody changes a live object; each time it is somebody else.
    fn meddle(&mut self, act: Act, sync: usize, dice: &mut Dice) {
        self.hands += 1;
        let numbers: Vec<usize> = self.charges[sync].objects.keys().copied().collect();
        let number = numbers[dice.below(numbers.len() as u64) as usize];
        let (path, hand) = (objects::path(sync, number), format!("hand-{}", self.hands));
        let annotation = |key: &str, value: Value| json!({"metadata": {"annotations": {key: value}}});
        let patch = match act {
            Act::EditByHand if dice.below(2) == 0 => annotation(STAMP, "by hand".into()),
            Act::EditByHand => objects::spoiled(number),
            Act::RemoveByHand => annotation(STAMP, Value::Null),
            Act::Relabel => json!({"metadata": {"labels": {"moorline.dev/sync": Value::Null}}}),
            Act::DeleteByHand => {
                // It may be gone already.
                let _ = self.sandbox.delete(&path);
                return;
            }
            _ => annotation("example.com/extra", hand.as_str().into()),
        };
        let _ = self.sandbox.merge(&path, &patch, &hand);
    }

    /// The server forgets what changed, and ends its watches.
    fn forget(&self) {
        self.sandbox.forget_changes();
        self.sandbox.faults().cut_watches();
    }

    /// All faults end, every Sync is as it was at the beginning, and every folder whole.
    pub(crate) fn settle(&mut self) {
        self.sandbox.faults().set(Rates::default());
        self.sandbox.skew(0);
        self.forget();
        for line in self.replicas.iter().filter_map(Replica::line) {
            line.hold(false);
        }
        for sync in 0..SYNCS {
            let charge = &mut self.charges[sync];
            (charge.broken, charge.empty) = (false, false);
            (charge.suspended, charge.prunes, charge.repairs) = (false, true, true);
            self.file(sync);
        }
        self.publish(false);
        for sync in 0..SYNCS {
            self.order(sync);
            self.nudge(sync);
        }
    }

    /// Where the cluster is not as the repository says; none if it is.
    pub(crate) fn difference(&self) -> Option<String> {
        for (sync, charge) in self.charges.iter().enumerate() {
            for (number, stamp) in &charge.objects {
                let path = objects::path(sync, *number);
                let Some(live) = self.sandbox.get(&path) else { return Some(format!("{path} is missing")) };
                let wanted = objects::manifest(&objects::name(sync, *number), *number, *stamp);
                if let Some(found) = objects::difference(&live, &wanted, "") {
                    return Some(format!("{path}{found}"));
                }
            }
            for number in (0..charge.next).filter(|number| !charge.objects.contains_key(number)) {
                let path = objects::path(sync, number);
                if let Some(live) = self.sandbox.get(&path)
                    && live.pointer("/metadata/labels/moorline.dev~1sync").is_some()
                {
                    return Some(format!("{path} is there, and not wanted"));
                }
            }
        }
        self.touched()
    }

    /// What became of things that are nobody's business.
    pub(crate) fn touched(&self) -> Option<String> {
        self.foreign.iter().find_map(|(path, known)| {
            let live = essence(self.sandbox.get(path).unwrap_or_default());
            (live != *known).then(|| format!("{path} was touched"))
        })
    }

    /// What Syncs say of themselves.
    pub(crate) fn statuses(&self) -> String {
        let of = |sync| self.sandbox.get(&format!("{PLACE}/sync-{sync}")).map(|it| it["status"].to_string());
        (0..SYNCS).filter_map(of).collect::<Vec<_>>().join("\n")
    }
}

/// What a person wrote of an object; the rest is the server's.
fn essence(mut object: Value) -> Value {
    for (place, field) in [("", "status"), ("/metadata", "resourceVersion"), ("/metadata", "managedFields")] {
        if let Some(Value::Object(map)) = object.pointer_mut(place) {
            map.remove(field);
        }
    }
    if let Some(Value::Object(marks)) = object.pointer_mut("/metadata/annotations") {
        marks.remove("deployment.kubernetes.io/revision");
    }
    object
}
