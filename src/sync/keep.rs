//! Keeps one Sync of the cluster, from the first time it is seen until it is gone.
//!
//! In: the Sync as the API server has it, as it changes. Out: an order for `follow.rs`, or a refusal for the desk.
//! What the spec names beside itself (a Secret) is read here, and watched.

mod deletion;
mod dependencies;
mod finalizers;
mod instance;
mod narrowed;
mod secrets;
mod stand_down;
mod values;
mod versions;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::task::{AbortHandle, JoinHandle};

use super::desk::Desk;
use super::farewell::Leaving;
use super::follow::{Order, follow};
use super::log_lines::{About, Tone};
use super::login::Permission;
use super::wish::{self, Wish, wish_within};
use super::{Context, prepare, subject};
use crate::adopt::Predecessor;
use crate::api::{
    ADOPTED_FROM_ANNOTATION, APPROVE_ANNOTATION, MOVES_TO_ANNOTATION, REQUEST_ANNOTATION, Reason, Sync,
    SyncName,
};
use crate::cluster::{jitter, version};
use crate::report::Trouble;
use crate::source::{Address, Reference};

/// A Sync as the API server has it.
#[derive(Clone)]
pub(crate) struct Sighting {
    pub(crate) sync: Arc<Value>,
    /// In which of the server's histories that was: versions of two have no order.
    pub(crate) history: u64,
}

/// None once it is gone.
pub(crate) type Seen = Option<Sighting>;

/// Between two attempts at what failed for now: the first pause, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The longest where rights are missing.
const GRANTED: Duration = Duration::from_secs(5);

struct Keeper {
    context: Arc<Context>,
    name: SyncName,
    desk: Desk,
    orders: Option<watch::Sender<Order>>,
    following: Option<JoinHandle<()>>,
    /// The Secret that the repository wants to see, and the one with the keys whose signatures count.
    secret: Option<secrets::Followed>,
    trusted: Option<secrets::Followed>,
    /// That it may use the first of these.
    permission: Option<Arc<Permission>>,
    /// What its variables come from.
    values: Vec<values::Source>,
    /// Syncs of other namespaces that this one was found to be allowed to depend on.
    readable: Option<dependencies::Readable>,
    /// The longest pause between two attempts at what fails now.
    patience: Duration,
    /// Told when a Secret changed.
    rotated: Arc<Notify>,
    generation: u64,
    /// That of the Sync as it was seen last.
    history: u64,
    /// The deletion of its objects has begun.
    deletes: bool,
    seen: watch::Receiver<Seen>,
    /// A daemon of another instance has been named as the one that serves the Sync since this time.
    elsewhere_since: Option<Instant>,
}

/// What is to be done about a Sync.
enum Task {
    Follow(Box<Order>),
    Refuse(Trouble),
    /// It is being deleted, and this says how.
    Leave(Leaving),
    /// Another daemon that lives serves it.
    Others,
}

/// Keeps a Sync until it is gone or the daemon ends.
pub(crate) async fn keep(context: Arc<Context>, name: SyncName, mut seen: watch::Receiver<Seen>) {
    let desk = Desk::new(context.clone(), name.clone());
    let writer = desk.clone();
    // By itself, so that a status is written whatever else is waited for here, and none is given up half-way.
    let _writing = Writing(tokio::spawn(async move { writer.write().await }).abort_handle());
    let rotated = Arc::<Notify>::default();
    let mut keeper = Keeper {
        context: context.clone(),
        name,
        desk,
        orders: None,
        following: None,
        secret: None,
        trusted: None,
        permission: None,
        values: Vec::new(),
        readable: None,
        patience: RETRY.1,
        rotated: rotated.clone(),
        generation: 0,
        history: 0,
        deletes: false,
        seen: seen.clone(),
        elsewhere_since: None,
    };
    let mut retry = RETRY.0;
    loop {
        let leads = context.leads().await;
        let sync = seen.borrow_and_update().clone().filter(|_| leads);
        let Some(sync) = sync else { break };
        keeper.history = sync.history;
        let again = keeper.serve(&sync.sync).await;
        retry = if again { (retry * 2).min(keeper.patience) } else { RETRY.0 };
        tokio::select! {
            changed = seen.changed() => if changed.is_err() { break },
            () = rotated.notified() => {}
            // Whose rights it may use, for one.
            () = context.reset.notified() => {}
            () = tokio::time::sleep(jitter(retry)), if again => {}
        }
    }
    keeper.stop().await;
    keeper.context.cluster.forget(&keeper.name);
}

/// What writes statuses; it ends with the Sync.
struct Writing(AbortHandle);

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Keeper {
    /// Does what the Sync asks for; true if that is to be tried again in a while.
    async fn serve(&mut self, sync: &Value) -> bool {
        let task = self.task(sync).await;
        self.logs(&task);
        match task {
            // What failed for now takes nothing away from what was asked for before.
            Task::Refuse(trouble) if !trouble.lasting => {
                // Who grants what is missing waits for this.
                let lacks_rights = matches!(trouble.reason, "RightsMissing" | "SecretNotAllowed");
                self.patience = if lacks_rights { GRANTED } else { RETRY.1 };
                self.desk.refuse(Some(trouble.clone()));
                let is_refused = match trouble.reason {
                    "ClusterUnreachable" | prepare::BUSY => false,
                    // Without rights it could take nothing.
                    _ if lacks_rights => true,
                    // What is missing may come at any moment, and the order of before tells what the files may hold.
                    _ => self.orders.is_none(),
                };
                self.context.neighbours.is_refused(&self.name, is_refused);
                // A cluster that does not answer, or asks to wait, says nothing about the spec.
                let refused =
                    Some(trouble).filter(|it| !matches!(it.reason, "ClusterUnreachable" | prepare::BUSY));
                if !self.keep_narrowed(sync, refused) && self.orders.is_some() {
                    self.takes_nothing().await;
                }
                true
            }
            Task::Refuse(trouble) => {
                self.desk.refuse(Some(trouble.clone()));
                self.context.neighbours.is_refused(&self.name, true);
                let is_without_identity = trouble.reason == "ServiceAccountRequired";
                if is_without_identity || !self.keep_narrowed(sync, Some(trouble)) {
                    self.takes_nothing().await;
                    self.claims_nothing().await;
                } else {
                    self.orphan_if_asked(sync).await;
                }
                false
            }
            Task::Follow(order) => {
                self.desk.refuse(None);
                self.context.neighbours.is_refused(&self.name, false);
                self.follow(*order);
                false
            }
            Task::Others => {
                self.takes_nothing().await;
                self.claims_nothing().await;
                self.context.board.remove(&self.name);
                // The other daemon tells of it.
                self.context.metrics.forget(&self.name.to_string());
                true
            }
            Task::Leave(leaving) => self.leave(sync, &leaving).await,
        }
    }

    /// Logs that the spec is refused, or not any more. That the API server does not answer is logged once for all Syncs.
    fn logs(&self, task: &Task) {
        match task {
            Task::Refuse(trouble) if trouble.reason != "ClusterUnreachable" => {
                let (reason, message) = (trouble.reason, &trouble.message);
                self.context.says(&self.name, About::Spec, Tone::Warning, reason, message);
            }
            Task::Follow(_) => self.context.is_over(&self.name, About::Spec),
            Task::Refuse(_) | Task::Leave(_) | Task::Others => {}
        }
    }

    fn follow(&mut self, order: Order) {
        self.desk.asks(order.generation, order.moves_to.clone());
        if let Some(orders) = &self.orders {
            // Every status that we write comes back as an event, and asks for nothing.
            orders.send_if_modified(|last| {
                let is_news = (last.generation, &last.request) != (order.generation, &order.request);
                if is_news {
                    *last = order;
                }
                is_news
            });
            return;
        }
        let (send, receive) = watch::channel(order);
        self.orders = Some(send);
        let (context, name, desk) = (self.context.clone(), self.name.clone(), self.desk.clone());
        self.following = Some(tokio::spawn(follow(context, name, receive, Some(desk))));
    }

    /// Nothing new begins for the Sync, and what is under way comes to its end.
    async fn stop(&mut self) {
        self.orders = None;
        if let Some(following) = self.following.take() {
            // It ends by itself within the grace that the context gives, and was no part of us if it panicked.
            let _ = following.await;
        }
    }

    /// What the Sync asks for.
    async fn task(&mut self, value: &Value) -> Task {
        let refuse = |reason: Reason, message: String| {
            let reason = reason_text(reason);
            Task::Refuse(Trouble { reason, message, problems: Vec::new(), lasting: true })
        };
        // Before anything is asked, so that it is waited for by nobody who follows something else.
        match followed(&self.name, value, self.context.disk.as_deref()) {
            Some((address, reference, suspended)) => {
                self.context.neighbours.follows(&self.name, &address, &reference, suspended);
            }
            None => self.context.neighbours.is_unreadable(&self.name),
        }
        let sync = match wish::read(value.clone()) {
            Ok(sync) => sync,
            Err(_) if is_going(value) => {
                let status = value.get("status").and_then(|it| serde_json::from_value(it.clone()).ok());
                return match self.is_served_elsewhere(status.as_ref()).await {
                    true => Task::Others,
                    false => Task::Leave(Err("SpecInvalid")),
                };
            }
            Err(refusal) => {
                self.told(value, None, false);
                return refuse(Reason::SpecInvalid, refusal.to_string());
            }
        };
        if self.is_served_elsewhere(sync.status.as_ref()).await {
            return Task::Others;
        }
        self.told(value, sync.status.clone(), sync.spec.suspend);
        let wish = match wish_within(&self.name, &sync.spec, self.context.disk.as_deref()) {
            Ok(wish) => wish,
            Err(_) if is_going(value) => return Task::Leave(Err("SpecInvalid")),
            Err(refusal) => return refuse(Reason::SpecInvalid, refusal.to_string()),
        };
        let trusted = self.orders.as_ref().map(|orders| orders.borrow().wish.verify.clone());
        if wish.verify.is_some() && trusted.is_some_and(|trusted| trusted != wish.verify) {
            // Whatever else may fail before the new keys are read.
            self.trusts_nobody(&wish);
        }
        match self.context.may_act_as_itself(&self.name, &wish) {
            Ok(()) if is_going(value) => return Task::Leave(Ok(Box::new(wish))),
            Ok(()) => {}
            Err(_) if is_going(value) => return Task::Leave(Err("ServiceAccountRequired")),
            Err(message) => return refuse(Reason::ServiceAccountRequired, message),
        }
        if let Some(failure) = self.finalizer(&sync).await {
            return Task::Refuse(prepare::of_failure(&failure));
        }
        match self.order(&sync, wish).await {
            Ok(order) => Task::Follow(Box::new(order)),
            Err(trouble) => Task::Refuse(trouble),
        }
    }

    fn told(&self, value: &Value, status: Option<crate::api::SyncStatus>, suspended: bool) {
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let generation = value.pointer("/metadata/generation").and_then(Value::as_i64);
        self.desk.in_history(self.history);
        self.desk.is(
            text("/metadata/uid"),
            generation,
            suspended,
            version(value),
            status.unwrap_or_default(),
        );
        self.desk.follows(subject::of_resource(&self.name, value));
    }

    async fn order(&mut self, sync: &Sync, wish: Wish) -> Result<Order, Trouble> {
        let cluster = self.context.cluster_of(&self.name, &wish).await?;
        let credentials = self.credentials(&wish, &cluster).await?;
        let keys = self.keys(&wish).await?;
        let owner = match &wish.secret {
            Some(secret) => format!("{}/{secret}", self.name.namespace),
            None => String::new(),
        };
        let repository = self
            .context
            .repositories
            .repository(&wish.address, &owner, &credentials)
            .map_err(prepare::of_source)?
            .asked_by(&self.name.namespace);
        self.may_depend(&wish, &cluster).await?;
        let wish = self.filled(wish, &cluster).await?;
        let annotation = |key| sync.metadata.annotations.as_ref().and_then(|all| all.get(key)).cloned();
        let mut order = Order {
            wish: Arc::new(wish),
            repository,
            credentials,
            permission: self.permission.clone(),
            keys,
            namespace: self.name.namespace.clone(),
            cluster,
            approved: annotation(APPROVE_ANNOTATION),
            moves_to: annotation(MOVES_TO_ANNOTATION).map(Box::from),
            predecessor: predecessor(sync),
            request: annotation(REQUEST_ANNOTATION),
            generation: self.generation,
            render_spec: wish::render_spec(&sync.spec),
            refused: None,
        };
        let last = self.orders.as_ref().map(|orders| orders.borrow().clone());
        if last.is_none_or(|last| !last.asks_the_same(&order)) {
            self.generation += 1;
            order.generation = self.generation;
            self.context.neighbours.asks(&self.name, self.generation);
        }
        Ok(order)
    }
}

/// True if the Sync is being deleted.
fn is_going(sync: &Value) -> bool {
    sync.pointer("/metadata/deletionTimestamp").is_some()
}

/// What a Sync follows, if it says that much, and whether it is suspended. What else it says may be refused.
fn followed(name: &SyncName, sync: &Value, disk: Option<&Path>) -> Option<(Address, Reference, bool)> {
    let source = serde_json::json!({"source": sync.pointer("/spec/source")?});
    let wish = wish_within(name, &serde_json::from_value(source).ok()?, disk).ok()?;
    let suspended = sync.pointer("/spec/suspend").and_then(Value::as_bool).unwrap_or_default();
    Some((wish.address, wish.reference, suspended))
}

/// Whose objects these were before, if the Sync was made from another tool's resource.
fn predecessor(sync: &Sync) -> Option<Predecessor> {
    let from = sync.metadata.annotations.as_ref()?.get(ADOPTED_FROM_ANNOTATION)?;
    Predecessor::of(from, &sync.metadata.creation_timestamp.as_ref()?.0.to_string())
}

/// The word of a reason, as conditions have it.
fn reason_text(reason: Reason) -> &'static str {
    match reason {
        Reason::ServiceAccountRequired => "ServiceAccountRequired",
        Reason::HeldByOther => "HeldByOther",
        _ => "SpecInvalid",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_sync_follows_is_known_whatever_else_is_wrong_with_it() {
        let follows = |spec: Value| followed(&SyncName::new("ops", "shop"), &json!({"spec": spec}), None);
        let address = Address::remote("https://host/path").unwrap();
        let source = |url: &str| json!({"git": {"url": url, "ref": {"branch": "main"}, "secretRef": {"name": "gone"}}});
        let main = Reference::branch("main").unwrap();
        let spec = json!({"source": source("https://host/path"), "path": "/", "suspend": true, "drift": 1});
        assert_eq!(follows(spec), Some((address, main, true)));
        assert_eq!(follows(json!({"source": source("host:path")})), None);
        assert_eq!(follows(json!({"suspend": true})), None);
    }
}
