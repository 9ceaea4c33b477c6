//! Limits the number of concurrent writes.
//!
//! In: the bounds of the settings, and the responses of the server.
//! Out: write slots, fair among namespaces and first come, first served within one. The limit is
//! halved when the server reports overload or answers slowly, and grows by one after each full
//! round of responses without overload. The rate per second is bounded for the whole daemon.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::api_client::{ApiClient, ApiRequest, ApiResponse};
use crate::api_error::ApiError;
use crate::cancellation::WriteGroup;
use crate::rate_limit::RateLimit;
use moorline_metrics::Metrics;
use moorline_runtime::fair_queue::{FairQueue, SlotGuard};

/// Limiter of all object writes.
#[derive(Debug)]
pub(super) struct WriteLimiter {
    rate: Arc<RateLimit>,
    metrics: Metrics,
    /// Queue of waiting writes, in front of the permits.
    line: FairQueue,
    permits: Semaphore,
    most: usize,
    bound: Mutex<LimiterState>,
}

/// State of the limit. There are `limit + excess` permits.
#[derive(Debug)]
struct LimiterState {
    /// Number of concurrent writes allowed now.
    limit: usize,
    /// Permits in use beyond the limit. Each is retired when its slot is dropped, before a waiting
    /// write gets it.
    excess: usize,
    /// Successful responses since the limit last changed.
    successes: usize,
    /// Number of times the limit was halved.
    halvings: usize,
    /// Nothing is sent before this time.
    closed_until: Option<Instant>,
}

impl WriteLimiter {
    pub(super) fn new(most: usize, rate: Arc<RateLimit>, metrics: Metrics) -> Self {
        let most = most.max(1);
        let bound = LimiterState { limit: most, excess: 0, successes: 0, halvings: 0, closed_until: None };
        let (line, permits, bound) = (FairQueue::new(most), Semaphore::new(most), Mutex::new(bound));
        Self { rate, metrics, line, permits, most, bound }
    }

    fn bound(&self) -> MutexGuard<'_, LimiterState> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot. None if the program is ending.
    async fn acquire(&self, who: &str) -> Option<Turn<'_>> {
        let _queued = self.metrics.queue_write();
        let place = self.line.acquire(who).await;
        loop {
            let permit = Some(self.permits.acquire().await.ok()?);
            let mut turn = Turn { gate: self, permit, halved: 0, place: None };
            // A pause may have begun while this write waited in the queue. It keeps its permit
            // meanwhile: no other write could use it.
            self.opened().await;
            let bound = self.bound();
            // The limit was halved since; dropping this slot retires its permit, and the loop
            // starts again.
            if bound.excess == 0 {
                turn.halved = bound.halvings;
                drop(bound);
                turn.place = Some(place);
                return Some(turn);
            }
        }
    }

    /// Sends a request when it has a slot, and adapts the limit to the response. A cancelled
    /// request does not wait.
    pub(super) async fn send(
        &self,
        wire: &ApiClient,
        mut call: ApiRequest,
        together: Option<&WriteGroup>,
    ) -> Result<ApiResponse, ApiError> {
        // It waits under the permit of the current term, and is refused in a later one.
        call.permit.get_or_insert_with(|| wire.terms.current());
        let who = namespace(&call.uri).to_owned();
        let turn = match together {
            Some(together) => together.begin(self.acquire(&who)).await.ok_or(ApiError::Superseded)?,
            None => self.acquire(&who).await,
        };
        let turn = turn.ok_or(ApiError::NotLeader)?;
        let begun = Instant::now();
        let answer = wire.send(call).await;
        turn.on_response(&answer, begun.elapsed());
        answer
    }

    /// Waits until no pause is left and the rate allows one more write.
    async fn opened(&self) {
        while let Some(until) = self.closed() {
            tokio::time::sleep_until(until).await;
        }
        self.rate.acquire().await;
        // A pause that began meanwhile. Waiting for its end costs no second turn of the rate.
        while let Some(until) = self.closed() {
            tokio::time::sleep_until(until).await;
        }
    }

    fn closed(&self) -> Option<Instant> {
        self.bound().closed_until.filter(|until| *until > Instant::now())
    }
}

/// The right to send one write; released on drop.
#[derive(Debug)]
struct Turn<'a> {
    gate: &'a WriteLimiter,
    permit: Option<SemaphorePermit<'a>>,
    /// Number of halvings when the slot was taken.
    halved: usize,
    /// Place in the queue; the next write enters when it is dropped.
    place: Option<SlotGuard>,
}

impl Turn<'_> {
    /// Adapts the limit to a response: overload shrinks it, success grows it.
    fn on_response<T>(&self, answer: &Result<T, ApiError>, took: Duration) {
        match answer {
            // Slow answers may also come from a webhook, so they alone never reduce the limit to
            // one.
            Ok(_) if took >= SLOW => self.shrink(self.gate.most.div_ceil(4)),
            Ok(_) => self.on_success(),
            Err(ApiError::Refused(refusal)) if refusal.code == 429 || refusal.retry_after.is_some() => {
                self.on_overload(refusal.retry_after);
            }
            Err(ApiError::Timeout(_)) => self.on_overload(None),
            Err(
                ApiError::Refused(_)
                | ApiError::Unreachable(_)
                | ApiError::InvalidResponse(_)
                | ApiError::UnknownKind(_)
                | ApiError::NotLeader
                | ApiError::Superseded,
            ) => {}
        }
    }

    /// Counts a response without overload.
    fn on_success(&self) {
        let mut bound = self.gate.bound();
        // A request sent under another limit says nothing about this one.
        if bound.halvings != self.halved || bound.limit >= self.gate.most {
            return;
        }
        bound.successes += 1;
        if bound.successes < bound.limit {
            return;
        }
        bound.successes = 0;
        bound.limit += 1;
        match bound.excess {
            0 => self.gate.permits.add_permits(1),
            // A permit that is in use already is not added twice.
            _ => bound.excess -= 1,
        }
    }

    /// Halves the limit, but not below `least`.
    fn shrink(&self, least: usize) {
        let mut bound = self.gate.bound();
        // Requests sent together are refused together; that counts as one overload.
        if bound.halvings == self.halved {
            let gone = (bound.limit / 2).min(bound.limit.saturating_sub(least));
            bound.halvings += 1;
            bound.successes = 0;
            bound.limit -= gone;
            bound.excess += gone - self.gate.permits.forget_permits(gone);
        }
    }

    /// The server is overloaded, and may ask for a pause.
    fn on_overload(&self, pause: Option<Duration>) {
        self.shrink(1);
        if let Some(pause) = pause {
            let mut bound = self.gate.bound();
            let until = Instant::now() + pause.min(MAX_PAUSE);
            bound.closed_until = Some(bound.closed_until.map_or(until, |known| known.max(until)));
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut bound = self.gate.bound();
        if let Some(permit) = self.permit.take()
            && bound.excess > 0
        {
            bound.excess -= 1;
            permit.forget();
        }
    }
}

/// Namespace of a request; empty for cluster-scoped requests.
fn namespace(uri: &str) -> &str {
    let behind = uri.split_once("/namespaces/").map_or("", |(_, behind)| behind);
    behind.split(['/', '?']).next().unwrap_or_default()
}

/// A response that takes longer counts as overload.
const SLOW: Duration = Duration::from_secs(5);

/// Longest pause that a server can impose.
const MAX_PAUSE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use kube::client::Body;

    use super::super::lease::WritePermit;
    use super::*;
    use crate::outage_log::OutageLog;
    use crate::rewind_detection::WriteHistory;
    use moorline_metrics::RequestClass;

    fn gate(most: usize) -> WriteLimiter {
        WriteLimiter::new(most, Arc::new(RateLimit::new(0, 1)), Metrics::new().unwrap())
    }

    fn width_and_owed(gate: &WriteLimiter) -> (usize, usize) {
        let bound = gate.bound();
        (bound.limit, bound.excess)
    }

    async fn enter(gate: &WriteLimiter) -> Turn<'_> {
        gate.acquire("a").await.unwrap()
    }

    async fn enter_many(gate: &WriteLimiter, count: usize) -> Vec<Turn<'_>> {
        let mut turns = Vec::new();
        for _ in 0..count {
            turns.push(enter(gate).await);
        }
        turns
    }

    #[tokio::test(start_paused = true)]
    async fn writes_about_one_namespace_do_not_hold_up_those_about_another() {
        let gate = Arc::new(gate(2));
        for _ in 0..500 {
            let gate = gate.clone();
            tokio::spawn(async move {
                let _turn = gate.acquire("noisy").await;
                tokio::time::sleep(Duration::from_millis(10)).await;
            });
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        let begun = Instant::now();
        drop(gate.acquire("quiet").await);
        assert!(begun.elapsed() <= Duration::from_millis(10), "{:?}", begun.elapsed());
        let path = "/apis/moorline.dev/v1alpha1/namespaces/team/syncs/a/status?fieldManager=m";
        assert_eq!([path, "/api/v1/namespaces/b", "/api/v1/nodes/c"].map(namespace), ["team", "b", ""]);
    }

    #[tokio::test]
    async fn the_width_is_halved_and_grows_again() {
        let gate = gate(8);
        enter(&gate).await.on_overload(None);
        assert_eq!(gate.permits.available_permits(), 4);
        for _ in 0..4 {
            enter(&gate).await.on_success();
        }
        assert_eq!(gate.permits.available_permits(), 5);
        for _ in 0..100 {
            enter(&gate).await.on_success();
        }
        assert_eq!(gate.permits.available_permits(), 8, "and never beyond what is allowed");
        for _ in 0..10 {
            enter(&gate).await.on_overload(None);
        }
        assert_eq!(gate.permits.available_permits(), 1, "one is always left");
        assert!(gate.acquire("a").await.is_some());
    }

    #[tokio::test]
    async fn slow_answers_narrow_it_and_never_to_one_after_the_other() {
        let gate = gate(8);
        let fine = Ok::<(), ApiError>(());
        enter(&gate).await.on_response(&fine, SLOW);
        assert_eq!(gate.permits.available_permits(), 4);
        for _ in 0..10 {
            enter(&gate).await.on_response(&fine, SLOW);
        }
        assert_eq!(gate.permits.available_permits(), 2);
        for _ in 0..100 {
            enter(&gate).await.on_response(&fine, Duration::from_millis(5));
        }
        assert_eq!(gate.permits.available_permits(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn a_busy_gate_is_narrowed_before_those_who_wait() {
        let gate = gate(8);
        let mut turns = enter_many(&gate, 8).await;
        let queue = async { enter_many(&gate, 8).await.len() };
        let server = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            turns.iter().for_each(|turn| turn.on_overload(None));
            assert_eq!(width_and_owed(&gate), (4, 4), "eight refusals at once are one complaint");
            turns.truncate(4);
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!((width_and_owed(&gate).1, gate.permits.available_permits()), (0, 0), "nobody came in");
            drop(turns);
            tokio::time::sleep(Duration::from_secs(1)).await;
        };
        tokio::select! {
            _ = queue => panic!("only four can be in"),
            () = server => {}
        }
        assert_eq!(gate.permits.available_permits(), 4, "the four who came in are gone again");
    }

    #[tokio::test]
    async fn what_grows_again_is_owed_no_more() {
        let gate = gate(4);
        let turns = enter_many(&gate, 4).await;
        turns[0].on_overload(None);
        turns[1].on_success();
        assert_eq!(width_and_owed(&gate), (2, 2), "it was sent under the old width");
        // Two of the four are done; their two successors find that the new limit fits.
        let rest = turns.into_iter().skip(2).collect::<Vec<_>>();
        assert_eq!(width_and_owed(&gate).1, 0);
        drop(rest);
        let turns = enter_many(&gate, 2).await;
        turns.iter().for_each(Turn::on_success);
        assert_eq!((width_and_owed(&gate).0, gate.permits.available_permits()), (3, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_in_the_queue_waits_for_a_pause_too() {
        let gate = gate(1);
        let began = Instant::now();
        let turn = enter(&gate).await;
        let queued = async {
            let _turn = enter(&gate).await;
            began.elapsed().as_secs()
        };
        let refused = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            turn.on_overload(Some(Duration::from_secs(5)));
            drop(turn);
        };
        let (waited, ()) = tokio::join!(queued, refused);
        assert_eq!(waited, 6);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_pause_comes_in_within_the_new_width() {
        let gate = gate(4);
        let began = Instant::now();
        let (one, other) = (enter(&gate).await, enter(&gate).await);
        one.on_overload(None);
        drop(one);
        let late = enter(&gate).await;
        other.on_overload(Some(Duration::from_secs(5)));
        drop(other);
        let waiting = async {
            let _turn = enter(&gate).await;
            began.elapsed().as_secs()
        };
        let halved = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            late.on_overload(None);
            assert_eq!(width_and_owed(&gate), (1, 1), "both permits are out");
            tokio::time::sleep(Duration::from_secs(9)).await;
            drop(late);
        };
        let (waited, ()) = tokio::join!(waiting, halved);
        assert_eq!(waited, 10, "only one may be under way");
    }
    /// A server that gives these responses, and success after them.
    struct Server {
        wire: ApiClient,
        began: Instant,
        asked: Arc<Mutex<Vec<Instant>>>,
    }

    impl Server {
        fn new(answers: Vec<http::Response<Body>>) -> Self {
            let (asked, answers) = (Arc::<Mutex<Vec<Instant>>>::default(), Mutex::new(answers.into_iter()));
            let times = asked.clone();
            let service = tower::service_fn(move |_: http::Request<Body>| {
                times.lock().unwrap().push(Instant::now());
                let next = answers.lock().unwrap().next();
                let well = || http::Response::new(Body::from(b"{}".to_vec()));
                std::future::ready(Ok::<_, tower::BoxError>(next.unwrap_or_else(well)))
            });
            let wire = ApiClient {
                client: kube::Client::new(service, "default"),
                metrics: Metrics::new().unwrap(),
                terms: WritePermit::unlimited().into(),
                timeout: Duration::from_secs(30),
                open: Duration::from_secs(60)..=Duration::from_secs(90),
                write_history: WriteHistory::default(),
                complaints: OutageLog::default(),
                is_local: true,
            };
            Self { wire, began: Instant::now(), asked }
        }

        async fn send(&self, gate: &WriteLimiter) -> Result<ApiResponse, ApiError> {
            gate.send(
                &self.wire,
                ApiRequest::new(RequestClass::Object, "patch", "/api/v1/namespaces/a".to_owned()),
                None,
            )
            .await
        }

        /// Sends so many requests at once; each succeeds.
        async fn send_many(&self, gate: &WriteLimiter, count: usize) {
            let sent = futures::future::join_all((0..count).map(|_| self.send(gate))).await;
            assert!(sent.iter().all(Result::is_ok), "{sent:?}");
        }

        /// Times of the requests, in tenths of a second since the start.
        fn tenths(&self) -> Vec<u128> {
            self.asked.lock().unwrap().iter().map(|at| (*at - self.began).as_millis() / 100).collect()
        }
    }

    fn refusal(code: u16, retry_after: Option<&str>) -> http::Response<Body> {
        let mut response = http::Response::builder().status(code);
        if let Some(seconds) = retry_after {
            response = response.header(http::header::RETRY_AFTER, seconds);
        }
        response.body(Body::from(b"{}".to_vec())).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_sent_in_a_second_than_is_allowed() {
        let server = Server::new(Vec::new());
        let gate = WriteLimiter::new(8, Arc::new(RateLimit::new(5, 1)), Metrics::new().unwrap());
        server.send_many(&gate, 11).await;
        assert_eq!(server.tenths(), [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20]);
        tokio::time::sleep(Duration::from_secs(10)).await;
        server.send_many(&gate, 3).await;
        let tenths = server.tenths();
        assert_eq!(
            [tenths[12] - tenths[11], tenths[13] - tenths[12]],
            [2, 2],
            "one may go at once, not more"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_asks_for_a_pause_is_left_alone_by_every_write() {
        for code in [429, 503] {
            let server = Server::new(vec![refusal(code, Some("5"))]);
            let gate = gate(8);
            let refused = server.send(&gate).await.unwrap_err();
            assert_eq!(refused.code(), Some(code));
            server.send_many(&gate, 4).await;
            assert_eq!(server.tenths(), [0, 50, 50, 50, 50], "{code}");
            assert_eq!(width_and_owed(&gate), (5, 0), "halved, and four answers let it grow by one");
        }
        let server = Server::new(vec![refusal(429, Some("3600")), refusal(503, None), refusal(429, None)]);
        let gate = gate(8);
        for width in [4, 4, 2] {
            assert!(server.send(&gate).await.is_err());
            assert_eq!(width_and_owed(&gate).0, width);
        }
        assert_eq!(
            server.tenths(),
            [0, 600, 600],
            "a minute is the longest pause, and without a time there is none"
        );
    }
}
