//! Every fuzz target for a moment, with seeds that are damaged at random: the bodies of `fuzz/src/lib.rs`, by any compiler.
//!
//! Numbers look like chance, and so many inputs are the same ones in each run. `MOORLINE_FUZZ_SECONDS` goes on for longer, and
//! `make fuzz` is the real thing. The seeds of both, and what the fuzzer found once, stand in `fuzz/fixtures`: each run tries them.

#[path = "../../fuzz/src/lib.rs"]
mod targets;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Number of inputs for each target, if no time is asked for.
const INPUTS: u64 = 6_000;
/// The most damages of one input.
const DAMAGES: u64 = 4;
/// The longest piece that is moved, and the largest input.
const PIECE: usize = 40;
const LARGEST: usize = 4096;

/// Pieces that mean something.
const WORDS: [&str; 30] = [
    "- ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    "&a ",
    "*a",
    "<<: ",
    "|-\n  ",
    ">\n",
    "---\n",
    "null",
    "~",
    "0x1f",
    "1e9",
    "\"",
    "'",
    "#",
    "$patch: delete",
    "$patch: replace",
    "name: ",
    "target: ",
    "op: ",
    "/-",
    ".*",
    "\u{85}",
    "\u{feff}",
    "!!binary ",
    "\n===\n",
];

/// Numbers that look like chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }
}

fn damaged(seed: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=chance.below(DAMAGES as usize) {
        let from = chance.below(bytes.len() + 1);
        let to = (from + chance.below(PIECE)).min(bytes.len());
        let at = chance.below(bytes.len() + 1);
        match chance.below(5) {
            0 => drop(bytes.drain(from..to)),
            1 => {
                let part = bytes[from..to].to_vec();
                drop(bytes.splice(at..at, part));
            }
            2 if at < bytes.len() => bytes[at] = chance.below(256) as u8,
            _ => {
                let word = WORDS[chance.below(WORDS.len())].bytes();
                drop(bytes.splice(at..at, word));
            }
        }
    }
    bytes.truncate(LARGEST);
    bytes
}

/// Tries a target with so many inputs, or until its time is over.
fn try_for_a_moment<S: AsRef<[u8]>>(target: fn(&[u8]), seeds: &[S]) {
    let seconds = std::env::var("MOORLINE_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let mut tried = 0_u64;
    while end.map_or(tried < INPUTS, |end| Instant::now() < end) {
        for seed in seeds {
            let input = damaged(seed.as_ref(), &mut chance);
            let tried = catch_unwind(AssertUnwindSafe(|| target(&input)));
            assert!(
                tried.is_ok(),
                "this input ends the program:\n{}\n({input:?})",
                String::from_utf8_lossy(&input)
            );
        }
        tried += seeds.len() as u64;
    }
    println!("{tried} inputs");
    assert!(tried > 0);
}

/// For targets that take text.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn yaml_is_read_or_refused() {
    try_for_a_moment(targets::yaml_read, &kept("yaml_read"));
}

#[test]
fn texts_are_written_so_that_they_are_read_back() {
    try_for_a_moment(|bytes| targets::yaml_write(&text(bytes)), &kept("yaml_write"));
}

#[test]
fn kustomizations_are_built_or_refused() {
    try_for_a_moment(|bytes| _ = targets::kustomize(&text(bytes)), &kept("kustomize"));
}

#[test]
fn patches_are_made_or_refused() {
    try_for_a_moment(|bytes| _ = targets::patches(&text(bytes)), &kept("patches"));
}

#[test]
fn replacements_are_made_or_refused() {
    try_for_a_moment(|bytes| _ = targets::replacements(&text(bytes)), &kept("replacements"));
}

#[test]
fn packs_are_taken_up_or_refused() {
    let pack = moorline_test_support::bombs::small().pack;
    try_for_a_moment(targets::packs, &[&pack[..], b"PACK\0\0\0\x02\0\0\0\x01\xb0", b"PACK"]);
}

#[test]
fn frames_are_read_or_refused() {
    try_for_a_moment(targets::packets, &kept("packets"));
}

#[test]
fn charts_are_unpacked_or_refused() {
    let mut head = [0_u8; 512];
    head[..14].copy_from_slice(b"web/Chart.yaml");
    head[124..135].copy_from_slice(b"00000000012");
    head[156] = b'0';
    head[148..156].fill(b' ');
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
    let mut content = [0_u8; 512];
    content[..10].copy_from_slice(b"name: web\n");
    let tape = [&head[..], &content, &[0; 1024]].concat();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    gzip.write_all(&tape).unwrap();
    let plain = gzip.finish().unwrap();
    try_for_a_moment(targets::charts, &[&plain[..], b"\x1f\x8b"]);
}

#[test]
fn artifacts_are_read_or_refused() {
    try_for_a_moment(targets::artifacts, &kept("artifacts"));
}

#[test]
fn known_hosts_are_read_or_refused() {
    try_for_a_moment(|bytes| targets::known_hosts(&text(bytes)), &kept("known_hosts"));
}

#[test]
fn bodies_of_webhooks_are_read_or_refused() {
    try_for_a_moment(targets::webhooks, &kept("webhooks"));
}

#[test]
fn signatures_are_read_or_refused() {
    try_for_a_moment(|bytes| _ = targets::signatures(bytes), &kept("signatures"));
}

#[test]
fn encrypted_files_are_read_or_refused() {
    try_for_a_moment(|bytes| _ = targets::sops(bytes), &kept("sops"));
    let decrypted = kept("sops").iter().filter(|seed| targets::sops(seed)).count();
    assert_eq!(decrypted, kept("sops").len() - 1, "all seeds but the key of OpenPGP");
}

/// Function that runs on an input.
type Target = fn(&[u8]);

/// The names of targets with their bodies.
const TARGETS: [(&str, Target); 13] = [
    ("artifacts", targets::artifacts),
    ("charts", targets::charts),
    ("known_hosts", |bytes| targets::known_hosts(&text(bytes))),
    ("kustomize", |bytes| _ = targets::kustomize(&text(bytes))),
    ("packets", targets::packets),
    ("packs", targets::packs),
    ("patches", |bytes| _ = targets::patches(&text(bytes))),
    ("replacements", |bytes| _ = targets::replacements(&text(bytes))),
    ("signatures", |bytes| _ = targets::signatures(bytes)),
    ("sops", |bytes| _ = targets::sops(bytes)),
    ("webhooks", targets::webhooks),
    ("yaml_read", targets::yaml_read),
    ("yaml_write", |bytes| targets::yaml_write(&text(bytes))),
];

/// The names in a folder of `fuzz/`, without their endings.
fn names_in(folder: &str) -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(folder);
    let entries = std::fs::read_dir(folder).expect("a folder of the repository is read");
    let stem = |path: &Path| path.file_stem().expect("an entry has a name").to_string_lossy().into_owned();
    entries.map(|entry| stem(&entry.expect("an entry is read").path())).collect()
}

/// The inputs of a target in `fuzz/fixtures`, by name: seeds, and what crashed it once.
fn kept(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/fixtures").join(name);
    let entries = std::fs::read_dir(&folder).expect("each target has inputs that are kept");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry is read").path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{name} keeps no input");
    paths.iter().map(|path| std::fs::read(path).expect("an input is read")).collect()
}

#[test]
fn inputs_that_are_kept_end_no_target() {
    for (name, target) in TARGETS {
        for input in kept(name) {
            let tried = catch_unwind(AssertUnwindSafe(|| target(&input)));
            assert!(tried.is_ok(), "this input ends {name}: {:?}", String::from_utf8_lossy(&input));
        }
    }
}

/// From seeds that are all refused, the fuzzer does not find the code behind the readers.
#[test]
fn a_seed_of_each_builder_is_built() {
    let some_is_built = |name: &str, is_built: fn(&str) -> bool| {
        assert!(kept(name).iter().any(|seed| is_built(&text(seed))), "{name}");
    };
    some_is_built("kustomize", targets::kustomize);
    some_is_built("patches", targets::patches);
    some_is_built("replacements", targets::replacements);
    assert!(kept("signatures").iter().all(|seed| targets::signatures(seed)), "each is a document");
}

#[test]
fn each_target_is_tried_here_and_at_night() {
    let tried: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names_in("fuzz_targets"), tried, "the programs for the fuzzer");
    assert_eq!(names_in("fixtures"), tried, "the inputs that are kept");
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).expect("the manifest is read");
    let built = manifest.lines().filter_map(|line| line.strip_prefix("path = \"fuzz_targets/"));
    let built: BTreeSet<String> = built.map(|line| line.replace(".rs\"", "")).collect();
    assert_eq!(built, tried, "the programs that are built");
}
