//! The Secrets that a Sync names: what its repository wants to see, and whose signatures count.
//!
//! In: what the Sync asks for. Out: their content; each is watched, so that a change of it is seen at once.

use std::sync::Arc;

use super::super::inspect::keys;
use super::super::wish::Wish;
use super::Keeper;
use crate::cluster::{Cluster, Following};
use crate::report::Trouble;
use crate::source::{Credentials, Keys};

impl Keeper {
    /// The content of the Secret that the Sync names, which is watched from now on.
    pub(super) async fn credentials(
        &mut self,
        wish: &Wish,
        cluster: &Cluster,
    ) -> Result<Credentials, Trouble> {
        let known = self.secret.take();
        self.secret = self.followed(wish.secret.as_deref(), known);
        self.context.login(cluster, &self.name, wish, &mut self.permission).await
    }

    /// The keys whose signatures count, if the Sync asks for any; their Secret is watched from now on.
    pub(super) async fn keys(&mut self, wish: &Wish) -> Result<Option<Arc<Keys>>, Trouble> {
        let name = wish.verify.as_ref().map(|(_, name)| &**name);
        let known = self.trusted.take();
        self.trusted = self.followed(name, known);
        let Some(name) = name else { return Ok(None) };
        let found = keys(&self.context.cluster, &self.name.namespace, name).await;
        if found.as_ref().is_err_and(|trouble| trouble.reason == "SecretMissing") {
            self.trusts_nobody(wish);
        }
        found.map(Some)
    }

    /// Until the keys are had, nothing new is taken up: what was asked for before may have trusted others.
    pub(super) fn trusts_nobody(&self, wish: &Wish) {
        let Some(orders) = &self.orders else { return };
        orders.send_if_modified(|order| {
            let nobody = Keys::default();
            let is_news = order.wish.verify != wish.verify || order.keys.as_deref() != Some(&nobody);
            if is_news {
                order.wish = Arc::new(Wish { verify: wish.verify.clone(), ..Wish::clone(&order.wish) });
                order.keys = Some(Arc::new(nobody));
            }
            is_news
        });
    }

    /// Watches a Secret, if it is not the one that is watched already.
    fn followed(
        &self,
        name: Option<&str>,
        known: Option<(Box<str>, Following)>,
    ) -> Option<(Box<str>, Following)> {
        let name = name?;
        let known = known.filter(|(known, _)| **known == *name);
        known.or_else(|| {
            let rotated = self.rotated.clone();
            let tell = move || rotated.notify_one();
            Some((name.into(), self.context.cluster.follow_secret(&self.name.namespace, name, tell)))
        })
    }
}
