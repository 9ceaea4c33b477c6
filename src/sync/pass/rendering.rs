//! First part of a reconcile: from the commit to its desired objects.
//!
//! In: a revision, the aim of the reconcile, and the memory of the Sync.
//! Out: a [`PreparedRevision`].
//!
//! A commit that was to be applied and cannot be rendered is remembered as refused.

use super::super::desk::Desk;
use super::super::memory::Memory;
use super::super::prepare::{BUSY, Prepared, of_failure, prepare};
use super::super::unrendered::Unrendered;
use super::super::{chance, scope};
use super::{Aim, Subject};
use crate::clock;
use crate::cluster::{Failure, Need};
use crate::desired::DesiredObject;
use crate::report::Trouble;

impl Subject<'_> {
    /// Renders the commit, and loads the earlier inventory of this Sync.
    pub(super) async fn prepare(&self, memory: &mut Memory) -> Result<Prepared, Trouble> {
        if let Err(failure) = self.cluster.know().await {
            self.tell_tried(memory.prepared.as_ref()).await;
            return Err(of_failure(&failure));
        }
        let last = memory.rendered_as(self.rendered_by).cloned();
        // A held revision is not rendered again: its sources may be gone.
        let kept = last.clone().filter(|last| self.keeps(last));
        // The cluster and the repository are queried concurrently.
        let (earlier, prepared) = tokio::join!(self.earlier(memory.swept), async {
            match kept {
                Some(kept) => Ok(kept),
                None => self.rendered(last.as_ref()).await,
            }
        });
        let (earlier, is_blind) = earlier.map_err(|failure| of_failure(&failure))?;
        memory.is_blind |= is_blind;
        memory.kinds.extend(earlier.kinds);
        memory.places.extend(earlier.namespaces);
        if !memory.swept {
            memory.ends.restore(&self.desk.map(Desk::finished).unwrap_or_default());
            self.desk.iter().for_each(|desk| memory.rolled_out.restore(&desk.status()));
            memory.swept = true;
        }
        let mut prepared = self.or_refuse(memory, prepared).await?;
        // A missing kind may have been added since discovery.
        if !self.knows(&prepared) && self.cluster.discover().await.unwrap_or_default() {
            let again = self.rendered(None).await;
            prepared = self.or_refuse(memory, again).await?;
        }
        Ok(prepared.with_keys(self.cluster.notary().content_keys(), memory.rolled_out.recorded()))
    }

    /// Returns true if this is the held revision, and nothing about it is unknown.
    fn keeps(&self, last: &Prepared) -> bool {
        self.aim != Aim::Apply && last.complete && last.revision.commit == self.revision.commit
    }

    async fn rendered(&self, last: Option<&Prepared>) -> Result<Prepared, Trouble> {
        let by = clock::now() + self.wish.timeout;
        let ground = &self.context.ground(self.owner, self.wish, self.followed, self.wish.interval);
        let means = self.context.means(self.cluster, ground);
        prepare(self.repository, self.revision, self.wish, means, last, by).await
    }

    /// Remembers that a commit which was to be applied cannot be rendered. An unreachable cluster
    /// says nothing about a commit, and neither does a render that was stopped for a newer one.
    async fn or_refuse(
        &self,
        memory: &mut Memory,
        rendered: Result<Prepared, Trouble>,
    ) -> Result<Prepared, Trouble> {
        let says_nothing = |trouble: &Trouble| {
            matches!(trouble.reason, "ClusterUnreachable" | "RightsMissing" | "Stopped" | BUSY)
                || self.stop.is_stopped()
        };
        match &rendered {
            Ok(_) if self.aim == Aim::Apply => memory.refusal = None,
            Err(trouble) if self.aim == Aim::Apply && !says_nothing(trouble) => {
                let moment = (self.context.now(), chance());
                let of = (self.revision, self.rendered_by);
                memory.refuse(of, trouble.clone(), moment, self.context.pauses());
                self.tell_tried(memory.prepared.as_ref()).await;
            }
            // The commit may be valid but was not rendered: its files show which objects it may
            // contain.
            Err(_) if self.aim == Aim::Apply && !self.stop.is_stopped() => {
                self.tell_tried(memory.prepared.as_ref()).await;
            }
            Ok(_) | Err(_) => {}
        }
        rendered
    }

    async fn tell_tried(&self, last: Option<&Prepared>) {
        if self.aim != Aim::Apply {
            return;
        }
        let unrendered = Unrendered {
            context: self.context,
            owner: self.owner,
            order: self.generation,
            cluster: self.cluster,
            repository: self.repository,
            revision: self.revision,
            wish: self.wish,
        };
        unrendered.tell(last).await;
    }

    /// Loads the earlier inventory of this Sync, if it is not known: from its status or the Lease,
    /// or from the cluster if both are lost. The flag is true if some kinds could not be listed.
    async fn earlier(&self, known: bool) -> Result<(Need, bool), Failure> {
        if known {
            return Ok((Need::default(), false));
        }
        match self.written_scope() {
            Some(scope) => Ok((scope::need_of(&scope), false)),
            None => {
                let (kinds, complete) = self.cluster.sweep(self.owner).await?;
                Ok((Need { kinds, ..Need::default() }, !complete))
            }
        }
    }

    /// Returns true if the server serves the kind of every object. A CRD in the same commit gives
    /// the scope of its kind earlier than that.
    pub(super) fn knows(&self, prepared: &Prepared) -> bool {
        let kinds = self.cluster.kinds();
        let served = |object: &DesiredObject| kinds.get(&object.id.group_kind()).is_some();
        prepared.complete && prepared.desired.objects().iter().all(served)
    }
}
