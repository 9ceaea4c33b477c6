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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use tokio::sync::mpsc;

    use super::*;
    use crate::api::SyncStatus;
    use crate::plan::Outcome;
    use crate::report::board::ObjectList;
    use crate::serve::viewer::{AccessRequest, AccessReviews, Person};

    fn id(text: &str) -> ObjectId {
        ObjectId::parse(text).unwrap()
    }

    fn card(name: &SyncName) -> SyncCard {
        SyncCard::of_resource(name.clone(), Arc::default(), SyncStatus::default())
    }

    /// The content that a person does not see, and the number of questions.
    async fn hidden(
        card: &SyncCard,
        read: &[ObjectId],
        decide: impl Fn(&str, &str) -> Result<bool, String> + Send + 'static,
    ) -> (HiddenContent, usize) {
        let (ask, mut asked) = mpsc::channel::<AccessRequest>(8);
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        tokio::spawn(async move {
            while let Some(AccessRequest { question, answer, .. }) = asked.recv().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let namespace = question.namespace.as_deref().unwrap_or_default();
                let _ = answer.send(decide(&question.resource, namespace));
            }
        });
        let access = ConsoleAccess { reviews: AccessReviews::new(ask), actions: mpsc::channel(1).0 };
        let person = Person { user: "ada".to_owned(), uid: None, groups: Vec::new(), extra: BTreeMap::new() };
        let hidden = access.hidden_content(&Viewer::Person(Arc::new(person)), card, read).await;
        (hidden, count.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn content_in_another_cluster_is_shown_to_those_who_may_get_its_kubeconfig() {
        let home = SyncName::new("ops", "shop");
        let away = home.in_target("mark");
        let settings = id("/ConfigMap|shop/settings");
        for (name, rights, expect) in [
            (&home, ("ConfigMap", "shop"), false),
            (&home, ("Secret", "ops"), true),
            (&away, ("ConfigMap", "shop"), true),
            (&away, ("Secret", "shop"), true),
            (&away, ("Secret", "ops"), false),
        ] {
            let decide = move |kind: &str, namespace: &str| Ok(rights == (kind, namespace));
            let (found, _) = hidden(&card(name), std::slice::from_ref(&settings), decide).await;
            assert_eq!(found.reason(&settings).is_some(), expect, "{name:?} {rights:?}");
        }
    }

    #[tokio::test]
    async fn what_may_not_be_read_is_taken_out_of_the_card() {
        let home = SyncName::new("ops", "shop");
        let [map, secret, web] = ["/ConfigMap|shop/a", "/Secret|shop/b", "apps/Deployment|shop/web"].map(id);
        let time = || Time(jiff::Timestamp::default());
        let repair = |id: &ObjectId| Repair {
            repaired_at: time(),
            id: id.clone(),
            was_deleted: false,
            fields: vec![".data.key".to_owned()],
            manager: None,
            changed_at: None,
        };
        let activity = |reason: EventReason| {
            let (reason, text) = (reason.to_string(), "the text".to_owned());
            Activity { time: time(), reason, text }
        };
        let outcomes = [(web.clone(), Outcome::Pruned { gone: false })].into();
        for name in [home.clone(), home.in_target("mark")] {
            let card = Arc::new(SyncCard {
                objects: Arc::new(ObjectList::new(None, &outcomes, &Arc::default())),
                repairs: [repair(&map), repair(&secret), repair(&map)].into(),
                activities: [activity(EventReason::DriftRepaired), activity(EventReason::Pruned)].into(),
                ..card(&name)
            });
            let (found, asked) = hidden(&card, &[], |kind, _| Ok(kind == "ConfigMap")).await;
            let is_away = name.target().is_some();
            assert_eq!(asked, if is_away { 1 } else { 3 }, "each place is asked about once");
            let is_hidden = [&map, &secret, &web].map(|id| found.reason(id).is_some());
            assert_eq!(is_hidden, [is_away, true, true], "{name:?}");
            let shown = found.hide_in(&card);
            let fields: Vec<usize> = shown.repairs.iter().map(|repair| repair.fields.len()).collect();
            assert_eq!(fields, if is_away { [0, 0, 0] } else { [1, 0, 1] }, "{name:?}");
            let texts: Vec<&str> = shown.activities.iter().map(|activity| &*activity.text).collect();
            assert_eq!(texts, ["a repair; its text is hidden", "the text"]);
            assert!(card.objects.rows().all(|row| row.has_content()));
            assert!(!shown.objects.rows().any(|row| row.has_content()));
            // No decision is no right.
            let (found, _) = hidden(&card, &[], |_, _| Err("too late".to_owned())).await;
            assert_eq!([&map, &secret, &web].map(|id| found.reason(id)), [Some("too late"); 3], "{name:?}");
        }
        // Beyond the bound nobody is asked, and nothing is shown.
        let many: Vec<ObjectId> = (0..=MAX_PLACES).map(|at| id(&format!("/ConfigMap|n{at}/a"))).collect();
        let (found, asked) = hidden(&card(&home), &many, |_, _| Ok(true)).await;
        let shown = many.iter().filter(|id| found.reason(id).is_none()).count();
        assert_eq!((asked, shown), (MAX_PLACES, MAX_PLACES));
    }
}
