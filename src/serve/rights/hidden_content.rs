//! Decides the objects of a Sync of which a person sees names and states alone.
//!
//! In: a card, and the objects that are read for the page. Out: [`HiddenContent`]: the kinds and
//! namespaces in which the person may not `get` objects. Only places with something to show are
//! asked about, and beyond a bound nothing is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt as _;

use super::{ConsoleAccess, SIDE_BY_SIDE};
use crate::api::{EventReason, SyncName};
use crate::object::{GroupKind, ObjectId};
use crate::report::board::{Activity, ObjectPlace, Repair, SyncCard};
use crate::serve::viewer::{AccessQuestion, Viewer};

/// The most places of one page that are asked about.
const MAX_PLACES: usize = 100;

/// Places whose content is hidden, and the reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::serve) struct HiddenContent(BTreeMap<ObjectPlace, String>);

impl HiddenContent {
    /// The reason why the content of an object is not shown; `None` if it is.
    pub(in crate::serve) fn reason(&self, id: &ObjectId) -> Option<&str> {
        self.0.get(&place_of(id)).map(String::as_str)
    }

    /// The card without what is hidden.
    pub(in crate::serve) fn hide_in(&self, card: &Arc<SyncCard>) -> Arc<SyncCard> {
        if self.0.is_empty() {
            return card.clone();
        }
        let repairs = card.repairs.iter().map(|repair| match self.reason(&repair.id) {
            Some(_) => Repair { fields: Vec::new(), ..repair.clone() },
            None => repair.clone(),
        });
        // The text of an earlier repair names fields, of any object.
        let activities = card.activities.iter().map(|activity| {
            let is_repair = activity.reason == EventReason::DriftRepaired.to_string();
            let text = if is_repair { "a repair; its text is hidden" } else { &*activity.text };
            Activity { text: text.to_owned(), ..activity.clone() }
        });
        let objects = Arc::new(card.objects.without_content_of(self.0.keys().cloned().collect()));
        let activities = activities.collect();
        Arc::new(SyncCard { objects, repairs: repairs.collect(), activities, ..SyncCard::clone(card) })
    }
}

impl ConsoleAccess {
    /// The content of a card that a person may not see. `read` are the objects whose live form the
    /// page shows.
    pub(in crate::serve) async fn hidden_content(
        &self,
        viewer: &Viewer,
        card: &SyncCard,
        read: &[ObjectId],
    ) -> HiddenContent {
        let shown = read.iter().map(place_of);
        let repaired = card.repairs.iter().map(|repair| place_of(&repair.id));
        let told = card.objects.rows().filter(|row| row.has_content()).map(|row| row.place());
        if card.name.target().is_some() {
            let places = shown.chain(repaired).chain(told).collect();
            return self.hidden_elsewhere(viewer, &card.name, places).await;
        }
        let mut asked = BTreeMap::new();
        let mut hidden = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for place in shown.chain(repaired).chain(told).filter(|place| seen.insert(place.clone())) {
            if asked.len() < MAX_PLACES {
                let question = AccessQuestion::of_place("get", &place);
                asked.insert(place, question);
            } else {
                hidden.insert(place, "there are too many kinds and namespaces to ask about".to_owned());
            }
        }
        let reviews = asked.into_iter().map(async |(place, question)| {
            let why = match self.reviews.is_allowed(viewer, question).await {
                Ok(true) => return None,
                Ok(false) => format!("you may not get a {} there", place.0.kind),
                Err(why) => why,
            };
            Some((place, why))
        });
        let decided: Vec<_> = futures::stream::iter(reviews).buffer_unordered(SIDE_BY_SIDE).collect().await;
        hidden.extend(decided.into_iter().flatten());
        HiddenContent(hidden)
    }

    /// The hidden content of objects in another cluster: those who may `get` the Secrets beside the
    /// Sync could read all of it with the kubeconfig. Rights at home say nothing about it.
    async fn hidden_elsewhere(
        &self,
        viewer: &Viewer,
        sync: &SyncName,
        places: BTreeSet<ObjectPlace>,
    ) -> HiddenContent {
        if places.is_empty() {
            return HiddenContent::default();
        }
        let secrets = (GroupKind::new("", "Secret"), Some(sync.namespace.clone()));
        let why = match self.reviews.is_allowed(viewer, AccessQuestion::of_place("get", &secrets)).await {
            Ok(true) => return HiddenContent::default(),
            Ok(false) => format!(
                "it is in another cluster, and you may not get the Secrets in {}, one of which is its kubeconfig",
                sync.namespace
            ),
            Err(why) => why,
        };
        HiddenContent(places.into_iter().map(|place| (place, why.clone())).collect())
    }
}

fn place_of(id: &ObjectId) -> ObjectPlace {
    (id.group_kind(), id.namespace().map(Box::from))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tokio::sync::mpsc;

    use super::*;
    use crate::api::SyncStatus;
    use crate::serve::viewer::{AccessRequest, AccessReviews, Person};

    /// True if a person with these rights does not see the content of a ConfigMap.
    async fn is_hidden(name: &SyncName, rights: &'static [(&str, &str)]) -> bool {
        let (ask, mut asked) = mpsc::channel::<AccessRequest>(8);
        tokio::spawn(async move {
            while let Some(AccessRequest { question, answer, .. }) = asked.recv().await {
                let namespace = question.namespace.as_deref().unwrap_or_default();
                let _ = answer.send(Ok(rights.contains(&(&*question.resource, namespace))));
            }
        });
        let access = ConsoleAccess { reviews: AccessReviews::new(ask), actions: mpsc::channel(1).0 };
        let person = Person { user: "ada".to_owned(), uid: None, groups: Vec::new(), extra: BTreeMap::new() };
        let card = SyncCard::of_resource(name.clone(), Arc::default(), SyncStatus::default());
        let id = ObjectId::parse("/ConfigMap|shop/settings").unwrap();
        let viewer = Viewer::Person(Arc::new(person));
        let hidden = access.hidden_content(&viewer, &card, std::slice::from_ref(&id)).await;
        hidden.reason(&id).is_some()
    }

    #[tokio::test]
    async fn content_in_another_cluster_is_shown_to_those_who_may_get_its_kubeconfig() {
        let home = SyncName::new("ops", "shop");
        let away = home.in_target("mark");
        for (name, rights, expect) in [
            (&home, &[("ConfigMap", "shop")] as &[(&str, &str)], false),
            (&home, &[("Secret", "ops")], true),
            (&away, &[("ConfigMap", "shop")], true),
            (&away, &[("Secret", "shop")], true),
            (&away, &[("Secret", "ops")], false),
        ] {
            assert_eq!(is_hidden(name, rights).await, expect, "{name:?} {rights:?}");
        }
    }
}
