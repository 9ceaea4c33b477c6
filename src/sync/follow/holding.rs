//! The revision that the cluster is kept at while nothing newer can be applied.
//!
//! In: the newest revision, the spec, and what the status names. Out: [`Target`] of the next pass. The newest revision
//! that rendered completely is kept, with the spec that rendered it, narrowed by the newer spec. A daemon that starts
//! keeps exactly the revision that the status names, and nothing if that one or its spec cannot be had.

use super::super::pass::Refused;
use super::trust::source_id;
use super::{Follower, Order};
use crate::api::HeldRevision;
use crate::report::Trouble;
use crate::source::Revision;

/// A revision that rendered completely, and the order that asked for it.
#[derive(Clone)]
pub(super) struct Held {
    pub(super) revision: Revision,
    pub(super) order: Order,
}

/// The revisions that are kept, as far as this daemon knows.
#[derive(Default)]
pub(super) struct Holding {
    held: Option<Held>,
    /// The status was asked.
    is_restored: bool,
    /// Why the revision that the status names is not kept.
    lost: Option<String>,
    /// The repository has given nothing yet, and the revision of before is kept.
    begun: bool,
}

/// The aim of the next pass.
pub(super) enum Target {
    /// This revision is applied; `rejected` is the newest one, where that was rolled back.
    Apply { revision: Revision, rejected: Option<Revision> },
    /// Nothing newer can be applied, and this is kept.
    Keep { held: Box<Held>, refused: Refused },
    /// There is nothing that could be applied or kept.
    Nothing(Trouble),
}

impl Held {
    /// The order by which the revision is kept now: as it was rendered, but for the fields of the newest spec that decide
    /// nothing about its objects, or that narrow what may be done.
    pub(super) fn order_now(&self, newest: &Order) -> Order {
        let before = &self.order.wish;
        let wish = match self.is_asked_for(newest) {
            // The fields that decide what is rendered are equal; values from Secrets may not be.
            true => before.rendered_as_before(&newest.wish),
            false => before.narrowed_by(&newest.wish),
        };
        Order {
            wish: std::sync::Arc::new(wish),
            repository: self.order.repository.clone(),
            credentials: self.order.credentials.clone(),
            permission: self.order.permission.clone(),
            generation: self.order.generation,
            // The status names the spec that rendered the revision, not the one that is refused.
            render_spec: self.order.render_spec.clone(),
            ..newest.clone()
        }
    }

    /// True if the newest spec asks for the same source and renders it in the same way.
    pub(super) fn is_asked_for(&self, newest: &Order) -> bool {
        source_id(&self.order.wish) == source_id(&newest.wish) && self.order.render_spec == newest.render_spec
    }

    /// True if only values from outside of the spec differ from those of the newest order.
    pub(super) fn has_older_values(&self, newest: &Order) -> bool {
        newest.refused.is_none()
            && self.order.generation != newest.generation
            && self.is_asked_for(newest)
            && self.order.wish.options != newest.wish.options
    }
}

impl Follower {
    /// The revision and the spec, as the status names them.
    pub(super) fn record(order: &Order, revision: &Revision) -> HeldRevision {
        HeldRevision {
            revision: revision.to_string(),
            tag: revision.tag.map(|tag| tag.to_string()),
            source: source_id(&order.wish).into(),
            spec: order.render_spec.to_string(),
            bytes: None,
        }
    }

    /// Takes in the revision that the daemon before this one has kept.
    pub(super) fn restore_held(&mut self) {
        if std::mem::replace(&mut self.holding.is_restored, true) {
            return;
        }
        let noted = self.context.notebook.as_ref().and_then(|notebook| notebook.held());
        let told = || self.told.status().revision.and_then(|revision| revision.held);
        let Some(known) = noted.or_else(told) else { return };
        let order = &self.order;
        let lost = match () {
            () if *known.source != *source_id(&order.wish) => "it is of another source".to_owned(),
            () if *known.spec != *order.render_spec => "the spec has changed since".to_owned(),
            () => {
                let reference = &order.wish.reference;
                if let Some(revision) = Revision::read(&known.revision, known.tag.as_deref(), reference) {
                    self.holding.held = Some(Held { revision, order: order.clone() });
                    return;
                }
                "its name cannot be read".to_owned()
            }
        };
        self.holding.lost = Some(format!("{} is not kept: {lost}", known.revision));
    }

    /// The revision that is kept now, if any.
    pub(super) fn held(&self) -> Option<&Held> {
        self.holding.held.as_ref()
    }

    /// A revision has rendered completely.
    pub(super) fn holds(&mut self, revision: &Revision, order: &Order) {
        let is_known = self
            .held()
            .is_some_and(|held| held.revision == *revision && held.order.generation == order.generation);
        if !is_known {
            self.holding.held = Some(Held { revision: revision.clone(), order: order.clone() });
        }
        self.holding.lost = None;
    }

    /// True once, if the repository has given nothing and a revision of before is to be kept.
    pub(super) fn begins_to_keep(&mut self) -> bool {
        self.restore_held();
        let begins = self.revision.is_none() && self.holding.held.is_some();
        begins && !std::mem::replace(&mut self.holding.begun, true)
    }

    /// A new order may need a new beginning.
    pub(super) fn looks_anew(&mut self) {
        self.holding.begun = false;
    }

    /// The aim of the next pass.
    pub(super) fn target(&mut self) -> Target {
        self.restore_held();
        let held = self.held().cloned().map(Box::new);
        if let Some(trouble) = self.order.refused.clone() {
            let newer = Some("the spec".into());
            let refused = Refused { revision: None, newer, was_tried: false, trouble: Some(trouble.clone()) };
            return held.map_or(Target::Nothing(trouble), |held| Target::Keep { held, refused });
        }
        let Some(newest) = self.revision.clone() else {
            // The trouble of the look is told by itself.
            let newer = held.as_ref().and_then(|held| self.newer_than(held));
            let refused = Refused { revision: None, newer, was_tried: false, trouble: None };
            return held.map_or_else(|| Target::Nothing(unread()), |held| Target::Keep { held, refused });
        };
        match self.holds_to(newest) {
            Ok((revision, rejected)) => Target::Apply { revision, rejected },
            Err(waits) => {
                let refused = Refused { revision: None, newer: None, was_tried: false, trouble: None };
                held.map_or(Target::Nothing(waits), |held| Target::Keep { held, refused })
            }
        }
    }

    /// The newer commit or spec that is known while the repository gives nothing, if there is one.
    fn newer_than(&self, held: &Held) -> Option<Box<str>> {
        if !held.is_asked_for(&self.order) {
            return Some("the spec".into());
        }
        let wish = &self.order.wish;
        let seen = self.told.last_seen(&source_id(wish), &wish.reference)?;
        (seen.commit != held.revision.commit).then(|| seen.to_string().into())
    }

    /// Adds why nothing is kept, where the status names a revision that could be.
    pub(super) fn says_lost(&self, trouble: &mut Trouble) {
        if let Some(lost) = &self.holding.lost {
            trouble.message = format!("{}; {lost}", trouble.message);
        }
    }
}

/// Nothing was read yet, and nothing is known of before.
fn unread() -> Trouble {
    let message = "the repository has not been read yet".to_owned();
    Trouble { reason: "Progressing", message, problems: Vec::new(), lasting: false }
}
