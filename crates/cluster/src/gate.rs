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

use super::rate::Rate;
use super::stop::Together;
use super::wire::{Call, Failure, Reply, Wire};
use moorline_metrics::Metrics;
use moorline_runtime::fair::{Line, Place};

/// Limiter of all object writes.
#[derive(Debug)]
pub(super) struct Gate {
    rate: Arc<Rate>,
    metrics: Metrics,
    /// Queue of waiting writes, in front of the permits.
    line: Line,
    permits: Semaphore,
    most: usize,
    bound: Mutex<Bound>,
}

/// State of the limit. There are `limit + excess` permits.
#[derive(Debug)]
struct Bound {
    /// Number of concurrent writes allowed now.
    width: usize,
    /// Permits in use beyond the limit. Each is retired when its slot is dropped, before a waiting
    /// write gets it.
    owed: usize,
    /// Successful responses since the limit last changed.
    calm: usize,
    /// Number of times the limit was halved.
    halved: usize,
    /// Nothing is sent before this time.
    closed_until: Option<Instant>,
}

impl Gate {
    pub(super) fn new(most: usize, rate: Arc<Rate>, metrics: Metrics) -> Self {
        let most = most.max(1);
        let bound = Bound { width: most, owed: 0, calm: 0, halved: 0, closed_until: None };
        let (line, permits, bound) = (Line::new(most), Semaphore::new(most), Mutex::new(bound));
        Self { rate, metrics, line, permits, most, bound }
    }

    fn bound(&self) -> MutexGuard<'_, Bound> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot. None if the program is ending.
    async fn enter(&self, who: &str) -> Option<Turn<'_>> {
        let _queued = self.metrics.queued();
        let place = self.line.take(who).await;
        loop {
            let permit = Some(self.permits.acquire().await.ok()?);
            let mut turn = Turn { gate: self, permit, halved: 0, place: None };
            // A pause may have begun while this write waited in the queue. It keeps its permit
            // meanwhile: no other write could use it.
            self.opened().await;
            let bound = self.bound();
            // The limit was halved since; dropping this slot retires its permit, and the loop
            // starts again.
            if bound.owed == 0 {
                turn.halved = bound.halved;
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
        wire: &Wire,
        mut call: Call,
        together: Option<&Together>,
    ) -> Result<Reply, Failure> {
        // It waits under the permit of the current term, and is refused in a later one.
        call.permit.get_or_insert_with(|| wire.terms.current());
        let who = namespace(&call.uri).to_owned();
        let turn = match together {
            Some(together) => together.begin(self.enter(&who)).await.ok_or(Failure::Superseded)?,
            None => self.enter(&who).await,
        };
        let turn = turn.ok_or(Failure::NotLeading)?;
        let begun = Instant::now();
        let answer = wire.send(call).await;
        turn.heed(&answer, begun.elapsed());
        answer
    }

    /// Waits until no pause is left and the rate allows one more write.
    async fn opened(&self) {
        while let Some(until) = self.closed() {
            tokio::time::sleep_until(until).await;
        }
        self.rate.turn().await;
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
    gate: &'a Gate,
    permit: Option<SemaphorePermit<'a>>,
    /// Number of halvings when the slot was taken.
    halved: usize,
    /// Place in the queue; the next write enters when it is dropped.
    place: Option<Place>,
}

impl Turn<'_> {
    /// Adapts the limit to a response: overload shrinks it, success grows it.
    fn heed<T>(&self, answer: &Result<T, Failure>, took: Duration) {
        match answer {
            // Slow answers may also come from a webhook, so they alone never reduce the limit to
            // one.
            Ok(_) if took >= SLOW => self.narrow(self.gate.most.div_ceil(4)),
            Ok(_) => self.calm(),
            Err(Failure::Refused(refusal)) if refusal.code == 429 || refusal.retry_after.is_some() => {
                self.strained(refusal.retry_after);
            }
            Err(Failure::Timeout(_)) => self.strained(None),
            Err(
                Failure::Refused(_)
                | Failure::Unreachable(_)
                | Failure::BadAnswer(_)
                | Failure::UnknownKind(_)
                | Failure::NotLeading
                | Failure::Superseded,
            ) => {}
        }
    }

    /// Counts a response without overload.
    fn calm(&self) {
        let mut bound = self.gate.bound();
        // A request sent under another limit says nothing about this one.
        if bound.halved != self.halved || bound.width >= self.gate.most {
            return;
        }
        bound.calm += 1;
        if bound.calm < bound.width {
            return;
        }
        bound.calm = 0;
        bound.width += 1;
        match bound.owed {
            0 => self.gate.permits.add_permits(1),
            // A permit that is in use already is not added twice.
            _ => bound.owed -= 1,
        }
    }

    /// Halves the limit, but not below `least`.
    fn narrow(&self, least: usize) {
        let mut bound = self.gate.bound();
        // Requests sent together are refused together; that counts as one overload.
        if bound.halved == self.halved {
            let gone = (bound.width / 2).min(bound.width.saturating_sub(least));
            bound.halved += 1;
            bound.calm = 0;
            bound.width -= gone;
            bound.owed += gone - self.gate.permits.forget_permits(gone);
        }
    }

    /// The server is overloaded, and may ask for a pause.
    fn strained(&self, pause: Option<Duration>) {
        self.narrow(1);
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
            && bound.owed > 0
        {
            bound.owed -= 1;
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

    use super::super::complaints::Complaints;
    use super::super::lease::Permit;
    use super::super::newest::Written;
    use super::*;
    use moorline_metrics::Class;

    fn gate(most: usize) -> Gate {
        Gate::new(most, Arc::new(Rate::new(0, 1)), Metrics::new().unwrap())
    }

    fn width_and_owed(gate: &Gate) -> (usize, usize) {
        let bound = gate.bound();
        (bound.width, bound.owed)
    }

    async fn enter(gate: &Gate) -> Turn<'_> {
        gate.enter("a").await.unwrap()
    }

    async fn enter_many(gate: &Gate, count: usize) -> Vec<Turn<'_>> {
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
                let _turn = gate.enter("noisy").await;
                tokio::time::sleep(Duration::from_millis(10)).await;
            });
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        let begun = Instant::now();
        drop(gate.enter("quiet").await);
        assert!(begun.elapsed() <= Duration::from_millis(10), "{:?}", begun.elapsed());
        let path = "/apis/moorline.dev/v1alpha1/namespaces/team/syncs/a/status?fieldManager=m";
        assert_eq!([path, "/api/v1/namespaces/b", "/api/v1/nodes/c"].map(namespace), ["team", "b", ""]);
    }

    #[tokio::test]
    async fn the_width_is_halved_and_grows_again() {
        let gate = gate(8);
        enter(&gate).await.strained(None);
        assert_eq!(gate.permits.available_permits(), 4);
        for _ in 0..4 {
            enter(&gate).await.calm();
        }
        assert_eq!(gate.permits.available_permits(), 5);
        for _ in 0..100 {
            enter(&gate).await.calm();
        }
        assert_eq!(gate.permits.available_permits(), 8, "and never beyond what is allowed");
        for _ in 0..10 {
            enter(&gate).await.strained(None);
        }
        assert_eq!(gate.permits.available_permits(), 1, "one is always left");
        assert!(gate.enter("a").await.is_some());
    }

    #[tokio::test]
    async fn slow_answers_narrow_it_and_never_to_one_after_the_other() {
        let gate = gate(8);
        let fine = Ok::<(), Failure>(());
        enter(&gate).await.heed(&fine, SLOW);
        assert_eq!(gate.permits.available_permits(), 4);
        for _ in 0..10 {
            enter(&gate).await.heed(&fine, SLOW);
        }
        assert_eq!(gate.permits.available_permits(), 2);
        for _ in 0..100 {
            enter(&gate).await.heed(&fine, Duration::from_millis(5));
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
            turns.iter().for_each(|turn| turn.strained(None));
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
        turns[0].strained(None);
        turns[1].calm();
        assert_eq!(width_and_owed(&gate), (2, 2), "it was sent under the old width");
        // Two of the four are done; their two successors find that the new limit fits.
        let rest = turns.into_iter().skip(2).collect::<Vec<_>>();
        assert_eq!(width_and_owed(&gate).1, 0);
        drop(rest);
        let turns = enter_many(&gate, 2).await;
        turns.iter().for_each(Turn::calm);
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
            turn.strained(Some(Duration::from_secs(5)));
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
        one.strained(None);
        drop(one);
        let late = enter(&gate).await;
        other.strained(Some(Duration::from_secs(5)));
        drop(other);
        let waiting = async {
            let _turn = enter(&gate).await;
            began.elapsed().as_secs()
        };
        let halved = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            late.strained(None);
            assert_eq!(width_and_owed(&gate), (1, 1), "both permits are out");
            tokio::time::sleep(Duration::from_secs(9)).await;
            drop(late);
        };
        let (waited, ()) = tokio::join!(waiting, halved);
        assert_eq!(waited, 10, "only one may be under way");
    }
    /// A server that gives these responses, and success after them.
    struct Server {
        wire: Wire,
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
            let wire = Wire {
                client: kube::Client::new(service, "default"),
                metrics: Metrics::new().unwrap(),
                terms: Permit::always().into(),
                timeout: Duration::from_secs(30),
                open: Duration::from_secs(60)..=Duration::from_secs(90),
                written: Written::default(),
                complaints: Complaints::default(),
                is_local: true,
            };
            Self { wire, began: Instant::now(), asked }
        }

        async fn send(&self, gate: &Gate) -> Result<Reply, Failure> {
            gate.send(&self.wire, Call::new(Class::Object, "patch", "/api/v1/namespaces/a".to_owned()), None)
                .await
        }

        /// Sends so many requests at once; each succeeds.
        async fn send_many(&self, gate: &Gate, count: usize) {
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
        let gate = Gate::new(8, Arc::new(Rate::new(5, 1)), Metrics::new().unwrap());
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
