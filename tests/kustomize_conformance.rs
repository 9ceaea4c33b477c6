//! Every case of Kustomize is rendered as the real tool renders it, or refused; none is rendered otherwise.
//!
//! In: the folders of `tests/kustomize/cases` and what was recorded beside them (`tests/kustomize/README.md`).
//! Out: a table of groups: equal, refused, different. With a real Kustomize at hand, more can be asked: a folder of
//! one's own, and the cases with features added at random.

mod kustomize {
    pub(crate) mod answer;
    pub(crate) mod corpus;
    pub(crate) mod folder;
    pub(crate) mod idioms;
    pub(crate) mod mutation;
    pub(crate) mod options;
    pub(crate) mod oracle;
    pub(crate) mod refusals;
}
mod numbers;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use kustomize::answer::{self, Answer, Verdict};
use kustomize::folder::{self, Case};
use kustomize::mutation::{self, Chance, Mutant};
use kustomize::oracle::{self, Oracle};
use kustomize::{corpus, options, refusals};
use moorline::tree::{FileTree, TreeEntry};
use serde_json::Value;

/// The folder of a case that is built.
const ENTRY: &str = "overlay";
/// The group whose answers are ours and not the tool's.
const OURS: &str = "refusals";
/// Groups in which nothing may be refused any more.
const WHOLE: &[&str] = &[
    "build-metadata",
    "namespace-only-where-unset",
    "narrower-configurations",
    "null-annotations",
    "patches-without-a-version",
    "plugins-as-the-tool-has-them",
    "refused-as-the-tool-does",
    "replacements-of-their-source",
    "texts-of-metadata",
];
/// Least number of cases: a lost folder must not go unseen.
const CASES: usize = 1367;

/// The recorded answer of a case.
fn recorded(case: &Case) -> Answer {
    if let Ok(text) = fs::read_to_string(case.folder.join(folder::OBJECTS)) {
        return Answer::Objects(serde_json::from_str(&text).expect("a list of objects"));
    }
    let place = case.folder.join(folder::REFUSAL);
    let text = fs::read_to_string(&place).unwrap_or_else(|error| panic!("{}: {error}", place.display()));
    let class = refusals::named(text.trim());
    assert!(class.is_some(), "{}: {text:?} is no class of refusals", place.display());
    Answer::Refused { class, text }
}

#[test]
fn every_case_is_equal_or_refused() {
    let cases = folder::cases();
    assert!(cases.len() >= CASES, "{} cases; there were {CASES}", cases.len());
    let mut table: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let (mut different, mut open) = (Vec::new(), Vec::new());
    for case in &cases {
        let verdict = answer::compare(&answer::rendered(&case.tree, ENTRY), &recorded(case));
        let row = table.entry(&case.group).or_default();
        let name = format!("{}/{}", case.group, case.name);
        match verdict {
            Verdict::Equal => row[0] += 1,
            Verdict::Refused(why) => {
                row[1] += 1;
                open.push(format!("{name}: {why}"));
            }
            Verdict::Different(what) => {
                row[2] += 1;
                different.push(format!("{name}: {what}"));
            }
        }
    }
    println!("{:<24} equal refused different", "group");
    for (group, [equal, refused, different]) in &table {
        println!("{group:<24} {equal:>5} {refused:>7} {different:>9}");
    }
    if std::env::var_os("MOORLINE_KUSTOMIZE_OPEN").is_some() {
        println!("refused:\n{}", open.join("\n"));
    }
    assert!(different.is_empty(), "{} cases differ:\n{}", different.len(), different.join("\n"));
    for group in WHOLE {
        let row = table.get(group).unwrap_or_else(|| panic!("there is no group {group}"));
        let of_group = open.iter().filter(|line| line.split('/').next() == Some(group));
        assert_eq!(
            row[1],
            0,
            "{group} is to be whole:\n{}",
            of_group.cloned().collect::<Vec<_>>().join("\n")
        );
    }
}

/// Least number of cases with fields that options can hold.
const WITH_OPTIONS: usize = 470;

#[test]
fn options_are_built_as_if_they_were_written_in_the_kustomization() {
    let (mut tried, mut equal, mut different) = (0, 0, Vec::new());
    for case in folder::cases() {
        let Some((tree, options)) = options::moved(&case.tree, ENTRY) else { continue };
        tried += 1;
        let whole = answer::rendered(&case.tree, ENTRY);
        match answer::compare(&options::built(&tree, ENTRY, &options), &recorded(&case)) {
            Verdict::Equal => equal += 1,
            Verdict::Refused(_) if matches!(whole, Answer::Refused { .. }) => {}
            Verdict::Refused(why) | Verdict::Different(why) => {
                different.push(format!("{}/{}: {why}", case.group, case.name));
            }
        }
    }
    println!("{tried} cases with options, {equal} equal");
    assert!(different.is_empty(), "{} cases differ:\n{}", different.len(), different.join("\n"));
    assert!(tried >= WITH_OPTIONS, "{tried} cases");
}

#[test]
fn options_are_built_like_the_kustomization_in_which_they_are_written_out() {
    let oracle = Oracle::found();
    for row in options::rows() {
        let (tree, ours) = (row.written(), row.ours());
        let folder = options::written_folder(&tree);
        let mut expected = vec![answer::rendered(&tree, folder)];
        expected.extend(oracle.as_ref().map(|oracle| oracle.ask_tree(&tree, folder)));
        for expected in &expected {
            let verdict = options::verdict(ours.clone(), expected);
            assert!(matches!(verdict, Verdict::Equal), "{}: {verdict:?}", row.name);
        }
    }
}

/// Number of times that the files of a case are damaged.
const DAMAGES: u64 = 3;

#[test]
fn whatever_is_damaged_is_built_or_refused_and_ends_nothing() {
    for (number, case) in folder::cases().iter().enumerate() {
        for round in 0..DAMAGES {
            let mut chance = Chance::new(number as u64 * DAMAGES + round);
            let tree: FileTree =
                case.tree.entries().map(|(path, entry)| (path, damaged(entry, &mut chance))).collect();
            // Only the fact that there is an answer counts.
            drop(answer::rendered(&tree, ENTRY));
        }
    }
}

/// A file with some bytes left out, doubled, or put elsewhere.
fn damaged(entry: &TreeEntry, chance: &mut Chance) -> TreeEntry {
    let TreeEntry::File(bytes) = entry else { return entry.clone() };
    if bytes.is_empty() || chance.below(2) == 0 {
        return entry.clone();
    }
    let mut bytes = bytes.to_vec();
    for _ in 0..=chance.below(3) {
        let place = |chance: &mut Chance, bytes: &[u8]| chance.below(bytes.len() as u64 + 1) as usize;
        let (from, to) = (place(chance, &bytes), place(chance, &bytes));
        let (from, to) = (from.min(to), from.max(to).min(from.min(to) + 40));
        let part = bytes[from..to].to_vec();
        match chance.below(3) {
            0 => drop(bytes.drain(from..to)),
            1 => drop(bytes.splice(from..from, part)),
            _ => {
                let at = place(chance, &bytes);
                drop(bytes.splice(at..at, part));
            }
        }
    }
    TreeEntry::File(bytes.into())
}

#[test]
fn the_answers_are_recorded() {
    let Some(program) = std::env::var_os("MOORLINE_RECORD_KUSTOMIZE") else { return };
    let oracle = Oracle::at(program.into());
    let (mut changed, mut unknown) = (Vec::new(), Vec::new());
    let cases: Vec<Case> = folder::cases().into_iter().filter(|case| case.group != OURS).collect();
    let answers = oracle::for_all(&cases, |case| oracle.ask(&case.folder.join(ENTRY)));
    for (case, answer) in cases.iter().zip(answers) {
        let (name, text, gone) = match answer {
            Answer::Objects(objects) => {
                let text = serde_json::to_string_pretty(&Value::Array(objects)).expect("JSON");
                (folder::OBJECTS, text, folder::REFUSAL)
            }
            Answer::Refused { class: Some(class), .. } => {
                (folder::REFUSAL, class.to_owned(), folder::OBJECTS)
            }
            Answer::Refused { text, .. } | Answer::NotYet { text } => {
                unknown.push(format!("{}/{}: {text}", case.group, case.name));
                continue;
            }
        };
        let (place, text) = (case.folder.join(name), format!("{text}\n"));
        if fs::read_to_string(&place).ok().as_deref() == Some(text.as_str()) {
            continue;
        }
        // An earlier recording may be of the other sort.
        let _ = fs::remove_file(case.folder.join(gone));
        fs::write(&place, text).expect("an answer is written");
        changed.push(format!("{}/{}: {name}", case.group, case.name));
    }
    println!("{} answers changed\n{}", changed.len(), changed.join("\n"));
    assert!(unknown.is_empty(), "refusals of no class:\n{}", unknown.join("\n"));
}

#[test]
fn a_folder_of_ones_own_is_built_alike() {
    let Some(root) = std::env::var_os("MOORLINE_KUSTOMIZE_CORPUS") else { return };
    let oracle = Oracle::found().expect("a kustomize or kubectl on the PATH");
    let found = corpus::compare(Path::new(&root), &oracle);
    let refused: usize = found.refused.values().map(Vec::len).sum();
    let open = std::env::var_os("MOORLINE_KUSTOMIZE_OPEN").is_some();
    for (reason, folders) in &found.refused {
        println!("refused as {reason}: {}", folders.len());
        folders.iter().take(if open { usize::MAX } else { 3 }).for_each(|line| println!("    {line}"));
    }
    println!(
        "{}: equal {}, refused {refused}, different {}; built by neither: {}",
        oracle.shown(),
        found.equal,
        found.different.len(),
        found.nowhere
    );
    assert!(found.different.is_empty(), "different:\n{}", found.different.join("\n"));
}

#[test]
fn cases_with_features_added_at_random_are_built_alike() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let Some(rounds) = number("MOORLINE_KUSTOMIZE_MUTATIONS") else { return };
    let oracle = Oracle::found().expect("a kustomize or kubectl on the PATH");
    // Another run makes other mutants, unless it is given where to begin.
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs() << 20);
    let seed = number("MOORLINE_KUSTOMIZE_SEED").unwrap_or_else(now);
    let bases: Vec<_> = folder::cases()
        .into_iter()
        .filter_map(|case| match recorded(&case) {
            Answer::Objects(objects) if !objects.is_empty() => Some((case, objects)),
            Answer::Objects(_) | Answer::Refused { .. } | Answer::NotYet { .. } => None,
        })
        .collect();
    println!("seeds {seed} to {}", seed + rounds - 1);
    let (mut equal, mut refused, mut different) = (0, BTreeMap::<String, usize>::new(), Vec::new());
    let seeds: Vec<u64> = (seed..seed + rounds).collect();
    let mutant = |round| {
        let mut chance = Chance::new(round);
        let (case, objects) = chance.one_of(&bases).expect("there are cases");
        (case, mutation::mutate(&case.tree, objects, &mut chance))
    };
    let verdicts = oracle::for_all(&seeds, |round| {
        let (case, mutant) = mutant(*round);
        let found = verdict(&mutant, &oracle);
        let name = format!("{}/{}", case.group, case.name);
        if let Verdict::Different(what) = &found {
            println!("seed {round}, from {name}: {what}");
        }
        if let (Verdict::Refused(why), true) = (&found, std::env::var_os("MOORLINE_KUSTOMIZE_OPEN").is_some())
        {
            println!("seed {round}, from {name}: refused: {why}");
        }
        found
    });
    for (round, verdict_of) in seeds.into_iter().zip(verdicts) {
        let (case, mutant) = mutant(round);
        match verdict_of {
            Verdict::Equal => equal += 1,
            Verdict::Refused(why) => {
                *refused.entry(why.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
            }
            Verdict::Different(what) => {
                let (small, what) = mutation::shrunk(mutant, what, |mutant| verdict(mutant, &oracle));
                let name = format!("{}/{}", case.group, case.name);
                println!("seed {round}, from {name}: {what}\n{}", small.shown());
                different.push(round);
            }
        }
    }
    println!("{}: equal {equal}, refused {refused:?}, different {}", oracle.shown(), different.len());
    assert!(different.is_empty(), "the seeds {different:?} differ");
}

/// Judges the renderer's answer for a mutant; the tool is not asked where there is no answer.
fn verdict(mutant: &Mutant, oracle: &Oracle) -> Verdict {
    let tree = mutant.tree();
    let ours = answer::rendered(&tree, mutation::ENTRY);
    if let Answer::NotYet { text } = ours {
        return Verdict::Refused(text);
    }
    answer::compare(&ours, &oracle.ask_tree(&tree, mutation::ENTRY))
}
