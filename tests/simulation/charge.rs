//! The spec of a Sync, and the content of its folder.
//!
//! In: actions of people. Out: the Sync to write, and the files of its folder.

use std::collections::{BTreeMap, BTreeSet};

use moorline::api::DeletionPolicy;
use serde_json::{Value, json};

use super::dice::Dice;
use super::objects::{self, Id, OBJECTS};
use super::replica::NAMESPACE;
use super::repository::Folder;
use super::steps::Act;

/// Modes of drift.
const MODES: [&str; 3] = ["Repair", "Report", "Ignore"];

/// Reasons to refuse a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// Its path is in no commit.
    PathMissing,
    /// A field of it is not valid.
    Invalid,
}

/// A Sync.
pub(crate) struct Charge {
    sync: usize,
    /// Its objects, each with the number of the commit that wrote it.
    pub(crate) objects: BTreeMap<Id, u64>,
    /// The files that it has had already: most of a folder stays as it is.
    texts: BTreeMap<(Id, u64), Vec<u8>>,
    next: usize,
    /// True if it follows the second of its two folders.
    second: bool,
    broken: bool,
    empty: bool,
    pub(crate) suspended: bool,
    pub(crate) prunes: bool,
    /// Its place among the modes.
    pub(crate) drift: usize,
    /// A hook, as the commit with this number has it.
    pub(crate) hook: Option<u64>,
    /// Its spec is refused.
    pub(crate) unfit: Option<Unfit>,
    /// Its objects go with it.
    pub(crate) takes_along: bool,
    /// It is deleted, until somebody creates it again.
    pub(crate) gone: bool,
    /// Somebody said that its objects go although it is suspended.
    answered: bool,
}

/// Content of its folder.
#[derive(Clone)]
pub(crate) struct Holding {
    objects: BTreeMap<Id, u64>,
    broken: bool,
    empty: bool,
}

impl Charge {
    pub(crate) fn new(sync: usize) -> Self {
        Self {
            sync,
            objects: (0..OBJECTS).map(|number| (Id(sync, number), 1)).collect(),
            texts: BTreeMap::new(),
            next: OBJECTS,
            second: false,
            broken: false,
            empty: false,
            suspended: false,
            prunes: true,
            drift: 0,
            hook: None,
            unfit: None,
            takes_along: false,
            gone: false,
            answered: false,
        }
    }

    /// Returns its name.
    pub(crate) fn name(&self) -> String {
        format!("sync-{}", self.sync)
    }

    /// The name of its hook.
    pub(crate) fn hook_name(&self) -> String {
        format!("s{}-hook", self.sync)
    }

    /// The folder that it follows.
    pub(crate) fn folder(&self) -> String {
        format!("s{}{}", self.sync, if self.second { "-b" } else { "" })
    }

    /// Every object that has ever begun in its folder.
    pub(crate) fn ever(&self) -> impl Iterator<Item = Id> + use<> {
        let sync = self.sync;
        (0..self.next).map(move |number| Id(sync, number))
    }

    /// Returns the current content of its folder.
    pub(crate) fn holding(&self) -> Holding {
        Holding { objects: self.objects.clone(), broken: self.broken, empty: self.empty }
    }

    /// Its folder holds again what it held.
    pub(crate) fn holds_again(&mut self, then: &Holding) {
        self.objects.clone_from(&then.objects);
        (self.broken, self.empty) = (then.broken, then.empty);
    }

    /// One more object.
    pub(crate) fn add(&mut self, stamp: u64) {
        self.objects.insert(Id(self.sync, self.next), stamp);
        self.next += 1;
    }

    /// The next commit to its folder is such a one.
    pub(crate) fn commits(&mut self, act: Act) {
        (self.broken, self.empty) = (act == Act::Bad, act == Act::Empty);
    }

    /// Somebody changes what is asked for.
    pub(crate) fn ask_otherwise(&mut self, act: Act, stamp: u64) {
        self.answered = false;
        match act {
            Act::Suspend => self.suspended = !self.suspended,
            Act::Prune => self.prunes = !self.prunes,
            Act::DriftMode => self.drift = (self.drift + 1) % MODES.len(),
            Act::Unfit => {
                self.unfit = match self.unfit {
                    Some(_) => None,
                    None if stamp.is_multiple_of(2) => Some(Unfit::PathMissing),
                    None => Some(Unfit::Invalid),
                };
            }
            _ => {
                self.changes_all(stamp);
                self.second = !self.second;
            }
        }
    }

    /// Somebody deletes it, with its objects or without, or wants it again.
    pub(crate) fn parts(&mut self, dice: &mut Dice) {
        self.gone = !self.gone;
        self.takes_along = self.gone && dice.below(2) == 0;
        self.answered = false;
    }

    /// It is suspended no more.
    pub(crate) fn wakes(&mut self) {
        self.suspended = false;
    }

    /// It is suspended.
    pub(crate) fn rests(&mut self) {
        self.suspended = true;
    }

    /// Somebody is asked what becomes of its objects.
    pub(crate) fn answers(&mut self) -> DeletionPolicy {
        self.answered = self.gone && self.takes_along;
        if self.answered { DeletionPolicy::Delete } else { DeletionPolicy::Orphan }
    }

    /// It is deleted and suspended, so that nothing of it is deleted.
    pub(crate) fn stops_its_end(&self) -> bool {
        self.gone && self.suspended && !self.answered
    }

    /// Nothing is asked for but what was at the beginning.
    pub(crate) fn settle(&mut self) {
        (self.broken, self.empty, self.gone) = (false, false, false);
        (self.suspended, self.prunes, self.drift, self.takes_along) = (false, true, 0, false);
        (self.answered, self.unfit, self.hook) = (false, None, None);
    }

    /// The files of its folder.
    pub(crate) fn files(&mut self) -> Folder {
        let mut files: Folder = [("README.md".to_owned(), b"A folder.".to_vec())].into();
        if !self.empty {
            for (id, stamp) in &self.objects {
                let text = || id.manifest(*stamp).to_string().into();
                let text = self.texts.entry((*id, *stamp)).or_insert_with(text).clone();
                files.insert(format!("{}.yaml", id.name()), text);
            }
        }
        if let Some(stamp) = self.hook {
            let hook = objects::hook(&self.hook_name(), stamp).to_string();
            files.insert("hook.yaml".to_owned(), hook.into());
        }
        if self.broken {
            files.insert("broken.yaml".to_owned(), b"kind: {".to_vec());
        }
        files
    }

    /// Returns the objects that its folder asks for, be its spec refused or not; none if nobody can say, or nothing is to be done about it.
    pub(crate) fn wanted(&self) -> Option<BTreeSet<String>> {
        match (self.gone, self.takes_along) {
            (true, true) => Some(BTreeSet::new()),
            // A Sync that has not heard yet that it is gone goes on with it.
            (true, false) | (false, _) => (!self.broken && !self.empty).then(|| self.names()),
        }
    }

    /// Its spec is not refused, or asks for nothing but its end.
    pub(crate) fn fits(&self) -> bool {
        self.gone || self.unfit.is_none()
    }

    /// True if its objects are made again what they are to be.
    pub(crate) fn repairs(&self) -> bool {
        !(self.gone || self.suspended) && self.drift == 0
    }

    /// Every object is changed at once.
    pub(crate) fn changes_all(&mut self, stamp: u64) {
        self.objects.values_mut().for_each(|known| *known = stamp);
    }

    /// Returns its claims, be its folder whole or not. A Sync that is refused, or whose path does not exist, claims nothing.
    pub(crate) fn claims(&self) -> BTreeSet<String> {
        let claims_nothing = self.gone || self.empty || self.unfit.is_some();
        if claims_nothing { BTreeSet::new() } else { self.names() }
    }

    fn names(&self) -> BTreeSet<String> {
        let hook = self.hook.map(|_| self.hook_name());
        self.objects.keys().map(|id| id.name()).chain(hook).collect()
    }

    /// True if it prunes objects that are not desired any more.
    pub(crate) fn prunes(&self) -> bool {
        self.gone && self.takes_along && !self.stops_its_end() || self.prunes && !self.suspended
    }

    /// The Sync, as somebody writes it.
    pub(crate) fn written(&self, url: &str) -> Value {
        let path = if self.unfit == Some(Unfit::PathMissing) { "nowhere".to_owned() } else { self.folder() };
        let spec = json!({
            "source": {"git": {"url": url}}, "path": path, "interval": "30s",
            // The name of the namespace is missing.
            "createNamespace": self.unfit == Some(Unfit::Invalid),
            "suspend": self.suspended, "prune": {"enabled": self.prunes}, "drift": {"mode": MODES[self.drift]},
            "deletionPolicy": if self.takes_along { "Delete" } else { "Orphan" },
        });
        json!({
            "apiVersion": "moorline.dev/v1alpha1", "kind": "Sync",
            "metadata": {"name": self.name(), "namespace": NAMESPACE}, "spec": spec,
        })
    }
}
