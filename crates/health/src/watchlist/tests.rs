//! Tests: which objects are read, at which time, and with which result.

use super::entry::BENEATH;
use super::*;

fn id(name: &str) -> ObjectId {
    ObjectId::new("apps", "Deployment", "shop", name).unwrap()
}

fn deployment(ready: u8) -> Map<String, Value> {
    let text = format!(
        r#"{{"metadata": {{"name": "web", "generation": 2}}, "spec": {{"replicas": 3}}, "status": {{
            "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": {ready},
            "availableReplicas": {ready}}}}}"#
    );
    serde_json::from_str(&text).unwrap()
}

struct Case {
    list: Watchlist,
    rules: Rules,
    timeout: Option<i64>,
}

impl Case {
    fn new() -> Self {
        Self { list: Watchlist::default(), rules: Rules::default(), timeout: None }
    }

    fn read(&mut self, name: &str, ready: u8, cause: Option<Option<&str>>, now: i64) {
        let cause = cause.map(|cause| cause.map(str::to_owned));
        let (timeout, context) = (self.timeout, Context::default());
        let of = JudgementInputs {
            rules: &self.rules,
            timeout,
            context,
            unix_millis: 0,
            runs_to_completion: false,
        };
        self.list.on_read(&id(name), &deployment(ready), cause, &of, now);
    }

    fn due(&mut self, now: i64) -> (usize, usize) {
        let due = self.list.take_due(now);
        let listed: usize = due.lists.iter().map(|place| place.ids.len()).sum();
        (due.objects.len() + listed, due.with_pods.len())
    }

    fn worst(&self) -> String {
        let summary = self.list.summary();
        summary.worst.first().map(|(_, health)| format!("{health:?}")).unwrap_or_default()
    }
}

#[test]
fn an_object_that_is_there_for_the_watch_alone_is_read_less_and_less() {
    let mut case = Case::new();
    case.list.on_changed(&id("web"), 0);
    let mut reads = 0;
    for now in 0..100_000 {
        for _ in 0..case.due(now).0 {
            reads += 1;
            case.list.on_not_found(&id("web"), now);
        }
    }
    assert_eq!((reads, case.worst()), (7, String::new()), "after 1, 2, 4 seconds and so on");
    // The watch reports it again.
    case.list.on_changed(&id("web"), 100_000);
    assert_eq!(case.due(100_100), (1, 0));
    case.list.on_not_found(&id("other"), 100_200);
    assert!(!case.list.contains(&id("other")));
}

#[test]
fn an_object_is_read_once_a_second_however_often_it_changes() {
    let mut case = Case::new();
    let mut reads = Vec::new();
    for now in 0..5_000 {
        if now < 3_000 && now % 7 == 0 {
            case.list.on_changed(&id("web"), now);
        }
        if case.due(now).0 > 0 {
            reads.push(now);
            case.read("web", 3, None, now + 3);
        }
    }
    assert_eq!(reads, [100, 1_100, 2_100, 3_100]);
    assert_eq!(case.list.next_due_at(), None, "and never while nothing changes");
    assert!(case.list.summary().is_healthy());
}

#[test]
fn what_was_written_is_not_healthy_before_it_was_read() {
    let mut case = Case::new();
    case.list.on_changed(&id("web"), 0);
    assert_eq!(case.list.summary().unread, 1);
    assert_eq!(case.due(100), (1, 0));
    case.read("web", 3, None, 105);
    assert!(case.list.summary().is_healthy());
    case.list.on_changed(&id("web"), 5_000);
    assert!(case.list.summary().is_healthy(), "others' changes are read first");
    case.list.on_written(&id("web"), 5_000);
    assert!(!case.list.summary().is_healthy());
    assert_eq!(case.due(5_100), (1, 0));
    case.list.on_deleted(&id("web"));
    assert_eq!((case.list.next_due_at(), case.list.summary()), (None, HealthSummary::default()));
    case.read("web", 3, None, 5_105);
    assert_eq!(case.list.summary().objects, 0, "a late answer brings nothing back");
}

#[test]
fn what_was_read_before_a_write_says_nothing_after_it() {
    let mut case = Case::new();
    case.list.on_changed(&id("web"), 0);
    assert_eq!(case.due(100), (1, 0));
    case.list.on_written(&id("web"), 150);
    case.read("web", 3, None, 200);
    assert_eq!(case.list.summary().unread, 1);
    assert_eq!(case.due(1_100), (1, 0));
    case.read("web", 3, None, 1_105);
    assert!(case.list.summary().is_healthy());
}

#[test]
fn a_read_that_fails_once_is_nothing_and_then_is_tried_less_and_less() {
    let mut case = Case::new();
    case.list.on_changed(&id("web"), 0);
    assert_eq!(case.due(100), (1, 0));
    case.read("web", 3, None, 100);
    case.list.on_changed(&id("web"), 5_000);
    let mut tries = Vec::new();
    while let Some(next) = case.list.next_due_at().filter(|next| *next < 700_000) {
        assert_eq!(case.due(next), (1, 0));
        case.list.on_read_failed(&id("web"), "too many requests", next);
        tries.push(next / 1000);
        assert_eq!(case.list.summary().unknown, usize::from(tries.len() > 1));
    }
    assert_eq!(tries, [5, 6, 16, 36, 76, 156, 316, 616]);
}

#[test]
fn what_comes_no_further_is_degraded_by_time_alone() {
    let mut case = Case::new();
    case.timeout = Some(60_000);
    case.list.on_changed(&id("web"), 0);
    assert_eq!(case.due(100), (1, 0));
    case.read("web", 1, None, 105);
    assert!(case.worst().starts_with("Progressing"), "{}", case.worst());
    while let Some(next) = case.list.next_due_at().filter(|next| *next < 60_105) {
        let _ = case.list.take_due(next);
    }
    assert_eq!(case.list.next_due_at(), Some(60_105));
    let _ = case.list.take_due(60_105);
    assert!(case.worst().starts_with("Degraded"), "{}", case.worst());
    case.list.on_changed(&id("web"), 61_000);
    assert_eq!(case.due(61_105).0, 1);
    case.read("web", 1, None, 61_110);
    assert!(case.worst().starts_with("Degraded"), "another look at the same changes nothing");
    case.list.on_changed(&id("web"), 63_000);
    assert_eq!(case.due(63_105).0, 1);
    case.read("web", 3, None, 63_110);
    assert!(case.list.summary().is_healthy());
}

#[test]
fn what_lies_beneath_is_looked_at_from_time_to_time() {
    let mut case = Case::new();
    case.list.on_changed(&id("web"), 0);
    assert_eq!(case.due(100), (1, 0));
    case.read("web", 1, None, 100);
    let mut looks = Vec::new();
    while let Some(next) = case.list.next_due_at().filter(|next| *next < 200_000) {
        assert_eq!(case.due(next), (0, 1));
        looks.push(next / 1000);
        case.read("web", 1, Some(Some("Pod web-1 cannot pull its image")), next);
    }
    assert_eq!(looks, [2, 6, 14, 30, 62, 122, 182]);
    assert!(case.worst().contains("; Pod web-1 cannot pull"), "{}", case.worst());
    case.list.on_changed(&id("web"), 200_000);
    assert_eq!(case.due(200_100), (1, 0));
    case.read("web", 2, None, 200_100);
    assert!(case.worst().contains("; Pod web-1 cannot pull"), "it stays until it is asked again");
    case.list.on_changed(&id("web"), 202_000);
    assert_eq!(case.due(202_100).0, 1);
    case.read("web", 3, None, 202_100);
    assert_eq!(case.list.next_due_at(), None);
}

#[test]
fn no_object_is_read_twice_in_a_second_also_for_what_lies_beneath() {
    let mut case = Case::new();
    case.list.on_changed(&id("web"), 0);
    assert_eq!(case.due(100), (1, 0));
    case.read("web", 1, None, 100);
    case.list.on_changed(&id("web"), 1_500);
    assert_eq!(case.due(1_600), (1, 0));
    case.read("web", 1, None, 1_600);
    assert_eq!(case.list.next_due_at(), Some(2_600));
    assert_eq!(case.due(2_600), (0, 1));
}

#[test]
fn many_in_one_place_are_listed_and_all_of_them_are_read_with_that() {
    let mut case = Case::new();
    let all: Vec<String> = (0..100).map(|at| format!("web-{at:02}")).collect();
    all.iter().for_each(|name| case.list.on_changed(&id(name), 0));
    let due = case.list.take_due(100);
    assert_eq!((due.objects.len(), due.lists.len(), due.lists[0].ids.len()), (0, 1, 100));
    all.iter().for_each(|name| case.read(name, 3, None, 105));
    // A few objects are not worth a list.
    all[..19].iter().for_each(|name| case.list.on_changed(&id(name), 5_000));
    let due = case.list.take_due(5_100);
    assert_eq!((due.objects.len(), due.lists.len()), (19, 0));
    all[..19].iter().for_each(|name| case.read(name, 3, None, 5_105));
    // From a fifth on all are listed; later changes wait for the next list together with all
    // others.
    all[20..40].iter().for_each(|name| case.list.on_changed(&id(name), 9_000));
    all[40..].iter().for_each(|name| case.list.on_changed(&id(name), 9_050));
    assert_eq!(case.list.take_due(9_100).lists[0].ids.len(), 100);
    all.iter().for_each(|name| case.read(name, 3, None, 9_105));
    all[40..].iter().for_each(|name| case.list.on_changed(&id(name), 9_200));
    assert_eq!(case.list.next_due_at(), Some(10_100));
    assert_eq!(case.list.take_due(10_100).lists.len(), 1);
    assert!(case.list.summary().is_healthy());
}

#[test]
fn that_a_job_has_failed_stands_when_it_is_cleared_away() {
    let job = ObjectId::parse("batch/Job|shop/migrate").unwrap();
    let body = |kind: &str| {
        let text = format!(r#"{{"status": {{"conditions": [{{"type": "{kind}", "status": "True"}}]}}}}"#);
        serde_json::from_str::<Map<String, Value>>(&text).unwrap()
    };
    let mut case = Case::new();
    let read = |case: &mut Case, kind: &str, now| {
        let of = JudgementInputs {
            rules: &Rules::default(),
            timeout: None,
            context: Context::default(),
            unix_millis: 0,
            runs_to_completion: false,
        };
        case.list.on_read(&job, &body(kind), None, &of, now);
    };
    case.list.on_changed(&job, 0);
    assert_eq!(case.due(100).0, 1);
    read(&mut case, "Failed", 100);
    case.list.on_deleted(&job);
    assert!(case.worst().starts_with("Degraded"), "{}", case.worst());
    assert_eq!(case.list.next_due_at(), None);
    let failed = BTreeSet::from([job.clone()]);
    case.list.restore_failures(&failed);
    assert!(case.worst().contains("it failed"), "{}", case.worst());
    // A reconcile that was already running does not know about it.
    case.list.restore_failures(&BTreeSet::new());
    assert_eq!(case.list.summary().degraded, 1);
    case.list.retain(|_| false);
    assert_eq!(case.list.summary(), HealthSummary::default(), "nobody wants it any more");
    // An earlier daemon saw it fail; now it runs again.
    case.list.restore_failures(&failed);
    assert_eq!(case.list.summary().degraded, 1);
    case.list.on_written(&job, 5_000);
    assert_eq!(case.due(5_100).0, 1);
    read(&mut case, "Complete", 5_100);
    case.list.restore_failures(&BTreeSet::new());
    assert!(case.list.summary().is_healthy() && case.list.contains(&job));
    case.list.on_deleted(&job);
    assert!(!case.list.contains(&job), "of what ended well nothing is left to say");
}

#[test]
fn what_takes_too_long_has_not_failed() {
    let job = ObjectId::parse("batch/Job|shop/migrate").unwrap();
    let mut list = Watchlist::default();
    let of = JudgementInputs {
        rules: &Rules::default(),
        timeout: Some(1_000),
        context: Context::default(),
        unix_millis: 0,
        runs_to_completion: false,
    };
    list.on_changed(&job, 0);
    assert_eq!(list.take_due(100).objects.len(), 1);
    list.on_read(&job, &serde_json::from_str(r#"{"status": {"active": 1}}"#).unwrap(), None, &of, 100);
    let _ = list.take_due(5_000);
    assert_eq!(list.summary().degraded, 1);
    assert!(!list.has_failed(&job));
    list.on_deleted(&job);
    assert!(!list.contains(&job));
}

#[test]
fn the_worst_come_first_and_are_few() {
    let mut case = Case::new();
    for at in 0..30 {
        case.list.on_changed(&id(&format!("web-{at:02}")), 0);
    }
    assert_eq!(case.due(100), (30, 0));
    case.list.on_read_failed(&id("web-29"), "forbidden", 100);
    for at in 0..29 {
        case.read(&format!("web-{at:02}"), 1, None, 100);
    }
    let summary = case.list.summary();
    assert_eq!((summary.progressing, summary.unknown, summary.worst.len()), (29, 1, 10));
    assert_eq!(summary.worst[0].0, id("web-29"));
    let beneath = case.list.take_due(100 + BENEATH.0).with_pods.len();
    assert_eq!(beneath, MAX_POD_READS);
    let other = HealthSummary { progressing: 3, ..summary.clone() };
    assert!(other.has_same_states(&summary) && other != summary, "fewer of the same are no other word");
    assert!(!HealthSummary { progressing: 0, ..summary.clone() }.has_same_states(&summary));
}
