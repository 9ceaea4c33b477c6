//! Tests of fair shares: invariants for random requests, and single cases.

use proptest::prelude::*;

use super::*;

const MOST: usize = 32;

fn ask(namespace: &str, server: &str) -> WorkerRequest {
    WorkerRequest { namespace: namespace.into(), server: (!server.is_empty()).then(|| server.into()) }
}

/// Adds so many requests of a namespace, for one server each or all for one.
fn come(share: &mut FairShare, namespace: &str, server: impl Fn(usize) -> String, count: usize) -> Vec<u64> {
    for at in 0..count {
        share.ask(ask(namespace, &server(at)));
    }
    share.grant()
}

/// Records a server that has answered.
fn answers(share: &mut FairShare, server: &str) {
    talked(share, server, ContactResult::Answer);
}

fn talked(share: &mut FairShare, server: &str, heard: ContactResult) {
    let who = share.ask(ask("before", server));
    assert_eq!(share.grant(), [who]);
    share.leave(who, heard);
}

#[test]
fn silent_servers_leave_workers_for_others() {
    let mut share = FairShare::new(MOST);
    answers(&mut share, "good");
    let strangers = come(&mut share, "b", |at| format!("silent-{at}"), 200);
    assert_eq!(strangers.len(), MOST / 8, "servers of which nothing is known");
    assert_eq!(come(&mut share, "a", |_| "good".into(), 1).len(), 1, "another team's server");
    strangers.into_iter().for_each(|who| share.leave(who, ContactResult::Silence));
    assert_eq!(share.grant().len(), MOST / 8, "the next ones");
}

#[test]
fn a_silent_server_is_asked_by_one_until_it_answers() {
    let mut share = FairShare::new(MOST);
    talked(&mut share, "host", ContactResult::Silence);
    let first = come(&mut share, "a", |_| "host".into(), 20);
    assert_eq!(first.len(), 1);
    assert_eq!(share.why(&ask("c", "host")), Some(WaitReason::Silent));
    assert_eq!(come(&mut share, "b", |_| String::new(), 1).len(), 1, "what reads the disk is not held up");
    share.leave(first[0], ContactResult::Answer);
    assert_eq!(share.grant().len(), 16, "all that the namespace may have");
}

#[test]
fn many_namespaces_with_silent_servers_take_half_of_the_workers() {
    let mut share = FairShare::new(MOST);
    answers(&mut share, "good");
    let taken: usize = (0..40)
        .map(|team| come(&mut share, &format!("b-{team}"), |at| format!("silent-{team}-{at}"), 10).len())
        .sum();
    assert_eq!(taken, MOST / 2);
    assert_eq!(come(&mut share, "a", |_| "good".into(), 3).len(), 3);
}

#[test]
fn a_server_or_a_namespace_that_is_slow_leaves_workers_for_others() {
    let mut share = FairShare::new(MOST);
    ["slow", "good"].iter().for_each(|server| answers(&mut share, server));
    assert_eq!(come(&mut share, "b", |_| "slow".into(), 100).len(), MOST / 2);
    assert_eq!(share.why(&ask("b", "good")), Some(WaitReason::Namespace));
    assert_eq!(come(&mut share, "a", |_| "slow".into(), 1).len(), 1, "the same server, for another team");
    let more: usize =
        (0..20).map(|at| come(&mut share, &format!("c-{at}"), |_| "slow".into(), 5).len()).sum();
    assert!(more < MOST / 2, "{more}");
    assert_eq!(share.why(&ask("d", "slow")), Some(WaitReason::Server));
    assert_eq!(share.why(&ask("d", "good")), None);
}

#[test]
fn who_has_the_fewest_comes_first_and_then_who_waits_longest() {
    let mut share = FairShare::new(2);
    ["x", "y"].iter().for_each(|server| answers(&mut share, server));
    let first = come(&mut share, "a", |_| "x".into(), 3);
    assert_eq!(first.len(), 1, "{first:?}");
    let other = share.ask(ask("b", "y"));
    assert_eq!(share.grant(), [other]);
    assert_eq!(share.why(&ask("c", "y")), Some(WaitReason::Busy));
    share.leave(first[0], ContactResult::Answer);
    assert_eq!(share.grant(), [first[0] + 1]);
}

#[test]
fn servers_that_nobody_asks_for_are_forgotten() {
    let mut share = FairShare::new(MOST);
    talked(&mut share, "kept", ContactResult::Silence);
    let held = share.ask(ask("a", "kept"));
    assert_eq!(share.grant(), [held]);
    for at in 0..3 * MAX_KNOWN {
        let who = share.ask(ask("b", &format!("host-{at}")));
        share.leave(who, ContactResult::Nothing);
        assert!(share.servers.len() <= MAX_KNOWN + 1);
    }
    assert_eq!(share.why(&ask("c", "kept")), Some(WaitReason::Silent));
}

proptest! {
    #[test]
    fn nobody_waits_who_may_begin_and_shares_are_kept(
        most in 1_usize..40,
        steps in proptest::collection::vec((0_u8..6, 0_u8..12, 0_u8..3, any::<bool>()), 1..300),
    ) {
        let mut share = FairShare::new(most);
        for (namespace, server, heard, comes) in steps {
            let server = if server == 0 { String::new() } else { format!("host-{server}") };
            let heard = [ContactResult::Nothing, ContactResult::Answer, ContactResult::Silence][usize::from(heard)];
            let new = comes.then(|| share.ask(ask(&format!("team-{namespace}"), &server)));
            let gone = share.running.keys().next().copied().filter(|_| !comes);
            gone.into_iter().for_each(|who| share.leave(who, heard));
            let before = share.counts().whole.silent;
            let granted = share.grant();
            let counts = share.counts();
            prop_assert!(counts.whole.all <= most);
            let part = |of: usize| (most / of).max(1);
            let has_news = heard == ContactResult::Silence && gone.is_some();
            prop_assert!(has_news || counts.whole.silent <= before.max(part(4)));
            for (_, ask) in &share.waiting {
                prop_assert!(share.obstacle(ask, &counts).is_some(), "{ask:?} may begin");
            }
            let is_queued = |who: u64| share.waiting.iter().any(|(waiting, _)| *waiting == who);
            prop_assert!(new.is_none_or(|who| granted.contains(&who) || is_queued(who)));
            // A namespace without a worker gets one for a server that answers, unless none is free.
            let newcomer = ask("newcomer", "");
            let free = most - counts.whole.all;
            prop_assert_eq!(share.obstacle(&newcomer, &counts).is_none(), free > 0);
        }
        // Every waiting request starts in the end.
        let mut left = share.waiting() + share.running.len();
        while let Some(who) = share.running.keys().next().copied() {
            share.leave(who, ContactResult::Silence);
            drop(share.grant());
            left -= 1;
        }
        prop_assert_eq!((left, share.waiting()), (0, 0));
    }

    #[test]
    fn teams_that_take_all_they_may_leave_a_worker_and_a_newcomer_finds_a_worker_free(teams in 1_usize..9, each in 1_usize..50) {
        let mut share = FairShare::new(MOST);
        (0..teams).for_each(|team| answers(&mut share, &format!("host-{team}")));
        answers(&mut share, "own");
        for team in 0..teams {
            come(&mut share, &format!("team-{team}"), |_| format!("host-{team}"), each);
        }
        prop_assert_eq!(come(&mut share, "newcomer", |_| "own".into(), 1).len(), 1);
    }
}
