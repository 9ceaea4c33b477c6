//! Hostile files are refused quickly and in little memory, and honest ones are read in bounded
//! memory.
//!
//! In: files made to hurt. Out: for each a refusal with its place, and the CPU time and memory it
//! took. Each file is read in a process of its own (this test started again), so that the peak
//! that the kernel counts is its own, and time is the thread's CPU time, so that a busy machine
//! does not matter.

// The peak and the CPU time come from files that only Linux has.
#![cfg(target_os = "linux")]

#[path = "../../../tests/yaml/crds.rs"]
#[expect(dead_code, reason = "the benchmark uses the rest")]
mod crds;

use std::process::Command;

use moorline_yaml::{Dialect, MAX_FILE_BYTES, read};

/// Names the case that a started copy of this test is to read.
const CASE: &str = "YAML_BUDGET_CASE";

/// The bar for a refusal. Our own code is not optimised in a debug build, so that one gets more
/// time.
const MAX_MILLISECONDS: f64 = if cfg!(debug_assertions) { 500.0 } else { 50.0 };

/// The bar for the memory that a refusal takes, the file not counted.
const MAX_MEGABYTES: f64 = 50.0;

/// The tree that is read whole.
const TREE_BYTES: usize = 12 * 1024 * 1024;

const MEGABYTE: f64 = 1024.0 * 1024.0;

/// A hostile file and what its refusal says.
struct Hostile {
    name: &'static str,
    bytes: Vec<u8>,
    says: &'static str,
}

fn hostile() -> Vec<Hostile> {
    let case = |name, text: String, says| Hostile { name, bytes: text.into_bytes(), says };
    let many = |text: &str| text.repeat(100_000);
    vec![
        case("brackets", many("["), "nested deeper"),
        case("brackets a line", many("[\n"), "nested deeper"),
        case("braces", format!("k: {}", many("{a: ")), "nested deeper"),
        case("braces as keys", format!("k: {}", many("{")), "an unrendered template"),
        case("json", many("{\"a\":"), "nested deeper"),
        case("json lists", format!("{{\"a\":{}", many("[")), "nested deeper"),
        case("dashes", many("- "), "nested deeper"),
        case("questions", many("? "), "as a key"),
        case("brackets and braces", format!("k: {}", many("[{a: ")), "nested deeper"),
        case("lines of maps", (0..2000).map(|n| format!("{}a:\n", " ".repeat(n))).collect(), "nested deeper"),
        case("bomb", bomb(9, 9), "alias bomb"),
        case(
            "bomb of text",
            format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(100_000), many("*a, ")),
            "alias bomb",
        ),
        case("bomb of merges", merges(), "alias bomb"),
        case(
            "wide aliases",
            format!("a: &a [{}]\nb: [{}]\n", "1, ".repeat(5000), many("*a, ")),
            "alias bomb",
        ),
        case("deep aliases", deep_aliases(), "nested deeper"),
        case("nested anchors", nested_anchors(), "alias bomb"),
        case("self alias", "a: &a [1, *a]\n".to_owned(), "inside that anchor's own value"),
        case("unknown alias", "a: *a\n".to_owned(), "is not defined above"),
        case("anchors", format!("k: {}", many("&a ")), "not YAML"),
        case("open quote", format!("k: \"{}", many("a\\n ")), "not YAML"),
        case("open brace", format!("k: {{{}", many("a, ")), "not YAML"),
        case("documents", "---\na\n".repeat(100_001), "100000 documents"),
        Hostile {
            name: "bytes",
            bytes: [many("a: b\n").as_bytes(), b"k: \xff\xfe"].concat(),
            says: "not UTF-8",
        },
        Hostile { name: "a large file", bytes: vec![b'a'; MAX_FILE_BYTES + 1], says: "at most" },
    ]
}

/// Lists of aliases of lists of aliases.
fn bomb(levels: u8, width: usize) -> String {
    let mut text = format!("a: &a [{}]\n", "x, ".repeat(width));
    for level in 1..levels {
        let (name, below) = (char::from(b'a' + level), char::from(b'a' + level - 1));
        text.push_str(&format!("{name}: &{name} [{}]\n", format!("*{below}, ").repeat(width)));
    }
    text
}

/// Maps that merge a large map again and again.
fn merges() -> String {
    let fields: String = (0..2000).map(|n| format!("  f{n}: {n}\n")).collect();
    let merges: String = (0..20_000).map(|n| format!("m{n}: {{<<: *a}}\n")).collect();
    format!("a: &a\n{fields}{merges}")
}

/// Every anchor wraps the one before in many lists, so that few nodes nest without end.
fn deep_aliases() -> String {
    let (open, close) = ("[".repeat(400), "]".repeat(400));
    format!("a: &a {open}{close}\nb: &b {open}*a{close}\n")
}

/// A large text below many anchors, each of which would keep a copy.
fn nested_anchors() -> String {
    let open: String = (0..500).map(|n| format!("&a{n} [")).collect();
    format!("k: {open}\"{}\"{}", "x".repeat(500_000), "]".repeat(500))
}

/// Cost of reading.
struct Cost {
    milliseconds: f64,
    megabytes: f64,
}

/// Runs `work` and measures it.
fn measured<T>(work: impl FnOnce() -> T) -> (T, Cost) {
    // From here on the kernel counts the peak again.
    std::fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset");
    let (memory, time) = (status("VmRSS:"), cpu_nanoseconds());
    let done = work();
    let cost = Cost {
        milliseconds: (cpu_nanoseconds() - time) as f64 / 1e6,
        megabytes: (status("VmHWM:").saturating_sub(memory)) as f64 / 1024.0,
    };
    (done, cost)
}

/// A line of the process's status, in KiB.
fn status(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the process's status");
    let value = status.lines().find_map(|text| text.strip_prefix(line)).expect("the line");
    value.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The CPU time of this thread.
fn cpu_nanoseconds() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").expect("the thread's statistics");
    statistics.split(' ').next().and_then(|text| text.parse().ok()).expect("a number")
}

/// Starts this test again for one case and gives back what it printed.
fn started(test: &str, case: &str) -> String {
    let program = std::env::current_exe().expect("the test's own program");
    let output = Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .env(CASE, case)
        .output()
        .expect("starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{case}: {text}{}", String::from_utf8_lossy(&output.stderr));
    // Only what the case printed, without the test runner's own lines.
    text.lines().filter(|line| line.contains(" MB  ")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn hostile_files_are_refused_within_their_bounds() {
    let wanted = std::env::var(CASE).ok();
    for case in hostile() {
        match &wanted {
            None => print!("{}", started("hostile_files_are_refused_within_their_bounds", case.name)),
            Some(name) if name == case.name => {
                for dialect in [Dialect::Kubectl, Dialect::Kustomize] {
                    println!("{}", refuse(&case, dialect));
                }
            }
            Some(_) => {}
        }
    }
}

/// Sees the case refused, and reports it in one line.
fn refuse(case: &Hostile, dialect: Dialect) -> String {
    let (result, cost) = measured(|| read("hostile.yaml", &case.bytes, dialect));
    let error = result.expect_err(case.name).to_string();
    let Cost { milliseconds, megabytes } = cost;
    assert!(error.starts_with("hostile.yaml:") && error.contains(case.says), "{}: {error:.200}", case.name);
    assert!(milliseconds < MAX_MILLISECONDS, "{}: {milliseconds} ms", case.name);
    assert!(megabytes < MAX_MEGABYTES, "{}: {megabytes} MB", case.name);
    format!("{:20} {dialect:9?} {milliseconds:6.1} ms {megabytes:5.1} MB  {error:.90}", case.name)
}

#[test]
fn a_large_tree_is_read_in_bounded_memory() {
    if std::env::var(CASE).is_err() {
        print!("{}", started("a_large_tree_is_read_in_bounded_memory", "tree"));
        return;
    }
    let files = crds::crds(TREE_BYTES);
    let bytes: usize = files.iter().map(String::len).sum();
    let read = |file: &String| read("crd.yaml", file.as_bytes(), Dialect::Kubectl).expect("reads");
    // All values are alive at the end: that is what a renderer holds.
    let (documents, cost) = measured(|| files.iter().flat_map(read).collect::<Vec<_>>());
    let bound = 6.0 * bytes as f64 / MEGABYTE + 20.0;
    println!(
        "{} documents, {:.1} MB of text: {:.1} MB  peak",
        documents.len(),
        bytes as f64 / MEGABYTE,
        cost.megabytes
    );
    assert!(cost.megabytes < bound, "{} MB of {bound}", cost.megabytes);
}
