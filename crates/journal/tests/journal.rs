//! The journal as a daemon writes it, and as `audit` reads it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use moorline_journal::{
    Chain, Change, Entry, ExportAnswer, Head, Journal, JournalEvent, Reason, SendBatch, Settings, Verified,
    VerifyError, read_files, verify,
};
use proptest::prelude::*;

#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn settings(file: Option<PathBuf>, stdout: Option<Page>) -> Settings {
    Settings {
        file,
        stdout: stdout.map(|page| Box::new(page) as Box<dyn Write + Send>),
        export: None,
        cluster: Some("c".to_owned()),
        daemon: "d".to_owned(),
        program: "0".to_owned(),
        observe: Box::new(|_| {}),
    }
}

fn change(object: &str) -> Entry {
    let (object, after) = (Some(object.to_owned()), Some("v1:0".to_owned()));
    Entry { reason: Reason::Commit, change: Some(Change::Created), object, after, ..Entry::default() }
}

fn flush(journal: &Journal) {
    let began = Instant::now();
    while !journal.is_flushed() {
        assert!(began.elapsed() < Duration::from_secs(120), "the journal is not written");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs one daemon that writes some changes.
fn run(file: &Path, anchor: Option<Head>, changes: usize) -> Head {
    let journal = Journal::open(settings(Some(file.to_owned()), None)).unwrap();
    journal.start_term(anchor);
    (0..changes).for_each(|at| journal.record(change(&format!("/ConfigMap|a/{at}"))));
    flush(&journal);
    journal.head().unwrap()
}

fn verified(files: &[PathBuf], anchor: Option<Head>) -> Verified {
    verify(files, anchor).unwrap_or_else(|error| panic!("{error}"))
}

fn problem(files: &[PathBuf], anchor: Option<Head>) -> String {
    verify(files, anchor).unwrap_err().to_string()
}

#[test]
fn a_chain_goes_on_across_restarts_rotations_and_daemons() {
    let folder = tempfile::tempdir().unwrap();
    let [file, old, other] = ["journal", "journal.1", "other"].map(|name| folder.path().join(name));
    run(&file, None, 2);
    let head = run(&file, None, 1);
    assert_eq!(head.seq, 5, "two begins, three changes");
    std::fs::rename(&file, &old).unwrap();
    // The next daemon has another disk, and knows the head of the Lease.
    let head = run(&other, Some(head), 1);
    let head = run(&file, Some(head), 2);
    assert_eq!(head.seq, 10);
    let found = verified(&[file.clone(), other, old.clone()], Some(head));
    assert_eq!((found.lines, found.first, found.head, found.branches.len()), (10, 1, head, 0));
    assert!(problem(&[file.clone(), old], None).contains("line 7 before it is missing"));
    assert_eq!(verified(&[file], None).first, 8, "older files may be gone");
}

#[test]
fn a_file_that_is_renamed_while_a_daemon_writes_is_created_again() {
    let folder = tempfile::tempdir().unwrap();
    let [file, old] = ["journal", "journal.1"].map(|name| folder.path().join(name));
    let journal = Journal::open(settings(Some(file.clone()), None)).unwrap();
    journal.start_term(None);
    journal.record(change("/ConfigMap|a/0"));
    flush(&journal);
    std::fs::rename(&file, &old).unwrap();
    journal.record(change("/ConfigMap|a/1"));
    flush(&journal);
    assert_eq!(verified(&[file, old], journal.head()).lines, 3);
}

#[test]
fn a_torn_last_line_is_named_and_the_chain_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("journal");
    run(&file, None, 3);
    let whole = std::fs::read(&file).unwrap();
    // A process can be killed after any byte of a line.
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in [last + 1, last + 20, whole.len() - 2, whole.len() - 1] {
        std::fs::write(&file, &whole[..cut]).unwrap();
        let head = run(&file, None, 1);
        let found = verified(std::slice::from_ref(&file), Some(head));
        let is_whole = cut == whole.len() - 1;
        assert_eq!(
            (found.torn.len(), found.lines),
            (usize::from(!is_whole), if is_whole { 6 } else { 5 }),
            "{cut}"
        );
        // Without the line that names it, it is a fault.
        let text = std::fs::read_to_string(&file).unwrap();
        if !is_whole {
            let only: String = text.lines().take(4).map(|line| format!("{line}\n")).collect();
            std::fs::write(&file, only).unwrap();
            assert!(problem(std::slice::from_ref(&file), None).contains("journal:4: it is not"), "{cut}");
        }
    }
}

#[test]
fn lines_after_the_anchor_of_a_killed_daemon_stay_as_a_branch() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("printed");
    let page = Page::default();
    let mut anchor = None;
    for _ in 0..2 {
        let journal = Journal::open(settings(None, Some(page.clone()))).unwrap();
        journal.start_term(anchor);
        journal.record(change("/ConfigMap|a/0"));
        flush(&journal);
        anchor = journal.head();
        journal.record(change("/ConfigMap|a/1"));
        flush(&journal);
    }
    std::fs::write(&file, &*page.0.lock().unwrap()).unwrap();
    let found = verified(std::slice::from_ref(&file), anchor);
    assert_eq!((found.lines, found.head.seq), (6, 5));
    assert_eq!(found.branches.iter().map(|place| place.line).collect::<Vec<_>>(), [4]);
}

#[test]
fn every_edit_of_a_file_is_found_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("journal");
    let head = run(&file, None, 4);
    let text = std::fs::read_to_string(&file).unwrap();
    let check = |lines: Vec<String>, expect: &str| {
        std::fs::write(&file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        let found = problem(std::slice::from_ref(&file), Some(head));
        assert!(found.contains(expect), "{found}, not {expect}");
    };
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let with = |edit: &dyn Fn(&mut Vec<String>)| {
        let mut lines = lines.clone();
        edit(&mut lines);
        lines
    };
    check(with(&|lines| lines[2] = lines[2].replace("Created", "Updated")), "journal:4: line 3 was changed");
    check(with(&|lines| drop(lines.remove(2))), "journal:3: it is line 4 and follows line 2");
    check(with(&|lines| lines.swap(1, 2)), "journal:2: it is line 3 and follows line 1");
    check(with(&|lines| lines.insert(2, lines[1].clone())), "journal:3: it is line 2 and follows line 2");
    check(
        with(&|lines| lines[1] = lines[1].replace("\":", "\": ")),
        "journal:2: it is not in the canonical form",
    );
    check(with(&|lines| drop(lines.pop())), "the anchor names line 5");
    check(with(&|lines| lines[4] = lines[4].replace("Created", "Updated")), "the anchor names line 5");
    check(Vec::new(), "there is no line");
    // A file that is written again as a whole does not have the line of the anchor.
    let mut chain = Chain::default();
    check(
        (0..5).map(|at| chain.append(&change(&format!("/ConfigMap|b/{at}")))).collect(),
        "the anchor names line 5",
    );
    assert!(matches!(verify(&[folder.path().join("none")], None), Err(VerifyError::Read(_))));
}

#[test]
fn a_file_that_cannot_be_written_blocks_nobody_and_leaves_a_gap() {
    const CHANGES: usize = 5000;
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("later");
    let file = place.join("journal");
    let lost = Arc::new(AtomicUsize::new(0));
    let counted = lost.clone();
    let observe = Box::new(move |event| {
        if event == JournalEvent::Lost {
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let journal = Journal::open(Settings { observe, ..settings(Some(file.clone()), None) }).unwrap();
    journal.start_term(None);
    let began = Instant::now();
    (0..CHANGES).for_each(|at| journal.record(change(&format!("/ConfigMap|a/{at}"))));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert!(!journal.is_flushed() && journal.head().is_none());
    std::fs::create_dir(&place).unwrap();
    flush(&journal);
    let lost = lost.load(Ordering::Relaxed);
    let found = verified(&[file], journal.head());
    let told: u64 = found.gaps.iter().map(|(_, lost)| *lost).sum();
    assert_eq!(told, lost as u64);
    assert_eq!(found.lines as usize, 1 + CHANGES - lost + found.gaps.len());
    assert!(lost > 0, "the queue is bounded");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn kills_at_any_byte_leave_a_chain_that_goes_on(cuts in proptest::collection::vec((1_usize..4, 0_usize..400), 1..6)) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("journal");
        let mut head = Head::default();
        for (changes, cut) in cuts {
            let before = std::fs::metadata(&file).map_or(0, |found| found.len());
            head = run(&file, None, changes);
            let whole = std::fs::read(&file).unwrap();
            // Only bytes of this run can be missing.
            let keep = whole.len().saturating_sub(cut).max(usize::try_from(before).unwrap());
            std::fs::write(&file, &whole[..keep]).unwrap();
        }
        let last = run(&file, None, 1);
        let found = verified(std::slice::from_ref(&file), Some(last));
        let mut readable = 0;
        read_files(&[file], |_, _| readable += 1).unwrap();
        prop_assert_eq!(found.lines, readable);
        prop_assert!(last.seq <= head.seq + 2);
    }
}

#[test]
fn a_collector_gets_every_line_and_one_that_hangs_delays_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("journal");
    let (bodies, sent) = std::sync::mpsc::channel::<String>();
    let (release, hangs) = std::sync::mpsc::channel::<()>();
    let mut is_first = true;
    let export: SendBatch = Box::new(move |body| {
        bodies.send(String::from_utf8(body.to_vec()).unwrap()).unwrap();
        if std::mem::take(&mut is_first) {
            // It never answers, until the test says so.
            let _ = hangs.recv();
        }
        ExportAnswer::Status(200, Vec::new())
    });
    let journal =
        Journal::open(Settings { export: Some(export), ..settings(Some(file.clone()), None) }).unwrap();
    journal.start_term(None);
    let first = sent.recv().unwrap();
    assert!(first.contains(r#"\"reason\":\"Started\""#), "{first}");
    (0..10).for_each(|at| journal.record(change(&format!("/ConfigMap|a/{at}"))));
    let began = Instant::now();
    while journal.head().is_none_or(|head| head.seq < 11) {
        assert!(began.elapsed() < Duration::from_secs(120), "the file waits for the collector");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(!journal.is_flushed(), "the collector has not answered");
    release.send(()).unwrap();
    flush(&journal);
    // The bodies of all batches are the lines of the file.
    let batches: Vec<String> = std::iter::once(first).chain(sent.try_iter()).collect();
    let lines: Vec<String> = batches.iter().flat_map(|body| lines_of(body)).collect();
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(lines, written.lines().map(str::to_owned).collect::<Vec<_>>());
}

/// The lines in a batch.
fn lines_of(body: &str) -> Vec<String> {
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let records = body["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap().clone();
    records.iter().map(|record| record["body"]["stringValue"].as_str().unwrap().to_owned()).collect()
}
