//! Reacts to changed CustomResourceDefinitions.
//!
//! In: changes of CustomResourceDefinitions.
//! Out: discovery is refreshed, and objects of changed kinds are verified or retried.
//!
//! The server may read the fields of such objects differently now, and sends no watch event for
//! that.

use std::cell::LazyCell;
use std::collections::BTreeSet;

use super::memory::Memory;
use super::pass::Subject;
use super::prepare::{Prepared, of_failure};
use crate::cluster::{Need, News};
use crate::desired::Scopes;
use crate::object::{GroupKind, ObjectId};
use crate::report::Trouble;

impl Subject<'_> {
    /// Processes the changes of CRDs that have been collected so far.
    pub(super) async fn heed_definitions(&self, memory: &mut Memory) -> Result<(), Trouble> {
        memory.definitions.extend(self.cluster.definition_news(self.owner));
        let moved = self.cluster.find_misplaced(self.owner).await.map_err(|failure| of_failure(&failure))?;
        memory.definitions.extend(moved);
        if memory.definitions.is_empty() {
            return Ok(());
        }
        // A new kind is requested only where it is missing, and then at once.
        memory.unknown = None;
        let looks = memory.prepared.as_ref().is_some_and(Prepared::looks_at_kinds);
        if looks || memory.definitions.values().any(|news| *news != News::Came) {
            self.cluster.discover().await.map_err(|failure| of_failure(&failure))?;
            self.doubt_redefined(memory).await;
        }
        memory.definitions.clear();
        Ok(())
    }

    async fn doubt_redefined(&self, memory: &mut Memory) {
        let kinds = self.cluster.kinds();
        let changed = |(kind, plural): (&GroupKind, &str)| {
            memory.definitions.get(&*format!("{plural}.{}", kind.group)) == Some(&News::Changed)
        };
        let redefined: BTreeSet<GroupKind> = kinds
            .iter()
            .filter(|(kind, served)| changed((kind, &served.plural)))
            .map(|(kind, _)| kind.clone())
            .collect();
        self.cluster.forget_replicas_paths(&redefined).await;
        memory.scaling.forget();
        // The new CRD may accept an object that the old one rejected.
        memory.failing.retain(|id, _| !redefined.contains(&id.group_kind()));
        let doubtful: Vec<ObjectId> = self.cluster.observed(self.owner, |observed| {
            let ids = observed.iter().map(|(id, _)| id).filter(|id| redefined.contains(&id.group_kind()));
            ids.cloned().collect()
        });
        self.cluster.distrust(self.owner, &doubtful);
    }

    /// Watches CRDs, if a needed kind may be defined by one or a chart reads the served kinds.
    pub(super) fn follow_definitions(&self, need: &Need, looks: bool) {
        let own = LazyCell::new(Scopes::builtin);
        // The API group of a custom resource has a dot.
        let defined =
            |kind: &GroupKind| kind.group.contains('.') && own.of(&kind.group, &kind.kind).is_none();
        self.cluster.follow_definitions(self.owner, looks || need.kinds.iter().any(defined));
    }
}
