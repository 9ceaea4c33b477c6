//! Cases with features added at random: real trees seldom combine features, and combinations are where they meet.
//!
//! In: a case and a seed. Out: a mutant, which is the case below one more layer, with features in both. The same
//! seed makes the same mutant.

use moorline::tree::{FileTree, TreeEntry};
use serde_json::Value;

use super::answer::Verdict;
use super::idioms::idiom;

/// The layer that is built.
pub(crate) const ENTRY: &str = "mutant";
/// The most features of one mutant.
const FEATURES: u64 = 6;
/// The layer between the case and the one that is built, in every second mutant.
const MIDDLE: &str = "middle";

/// A case with features.
#[derive(Clone)]
pub(crate) struct Mutant {
    base: FileTree,
    has_middle: bool,
    pub(crate) features: Vec<Feature>,
}

/// One thing that is added to a kustomization.
#[derive(Clone, Debug)]
pub(crate) struct Feature {
    /// The folder of the kustomization.
    pub(crate) layer: &'static str,
    /// The field of the kustomization.
    pub(crate) field: &'static str,
    /// The field's value, as lines below it; those of several features stand below each other.
    pub(crate) lines: String,
    /// Files that it needs.
    pub(crate) files: Vec<(String, String)>,
}

/// Numbers that look like chance.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        let mut chance = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // The first numbers of neighbouring seeds are alike.
        for _ in 0..8 {
            chance.below(2);
        }
        chance
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    pub(crate) fn one_of<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        match items.len() {
            0 => None,
            length => items.get(self.below(length as u64) as usize),
        }
    }
}

/// A mutant of a case whose objects are known.
pub(crate) fn mutate(base: &FileTree, objects: &[Value], chance: &mut Chance) -> Mutant {
    let mut features = Vec::new();
    let has_middle = chance.below(2) == 0;
    for number in 0..=chance.below(FEATURES) {
        let layer = match chance.below(6) {
            0 => "overlay",
            1 | 2 if has_middle => MIDDLE,
            _ => ENTRY,
        };
        let made = match chance.below(2) {
            0 => feature(layer, number, objects, chance),
            _ => idiom(layer, number, objects, chance),
        };
        features.extend(made);
    }
    Mutant { base: base.clone(), has_middle, features }
}

impl Mutant {
    /// The files of the mutant.
    pub(crate) fn tree(&self) -> FileTree {
        let mut entries: Vec<(String, TreeEntry)> =
            self.base.entries().map(|(path, entry)| (path.to_owned(), entry.clone())).collect();
        let below = if self.has_middle { MIDDLE } else { "overlay" };
        entries.push((format!("{ENTRY}/kustomization.yaml"), file(&format!("resources: [../{below}]\n"))));
        if self.has_middle {
            entries.push((format!("{MIDDLE}/kustomization.yaml"), file("resources: [../overlay]\n")));
        }
        let mut written: Vec<(&str, &str)> = vec![(ENTRY, "resources"), (MIDDLE, "resources")];
        for feature in &self.features {
            let path = format!("{}/kustomization.yaml", feature.layer);
            let Some(place) = entries.iter_mut().find(|(of, _)| *of == path) else { continue };
            let mut text = text(&place.1);
            let key = (feature.layer, feature.field);
            let has = text.to_lowercase().contains(&format!("{}:", feature.field.to_lowercase()));
            let list = feature.lines.starts_with("- ");
            match written.contains(&key) {
                // One more item of a list that is the last thing written with this name.
                true if list => {
                    let head = format!("\n{}:\n", feature.field);
                    text = text.replacen(&head, &format!("{head}{}", feature.lines), 1);
                }
                false if !has => {
                    text = format!("{}\n{}:\n{}", text.trim_end(), feature.field, feature.lines);
                    written.push(key);
                }
                _ => continue,
            }
            place.1 = file(&text);
            entries.extend(feature.files.iter().map(|(path, text)| (path.clone(), file(text))));
        }
        entries.into_iter().collect()
    }

    /// The mutants that are one step smaller: without a feature, or without a file.
    pub(crate) fn smaller(&self) -> Vec<Self> {
        let without_feature = (0..self.features.len()).map(|at| {
            let mut smaller = self.clone();
            smaller.features.remove(at);
            smaller
        });
        let without_file = self.base.entries().map(|(gone, _)| Self {
            base: self
                .base
                .entries()
                .filter(|(path, _)| *path != gone)
                .map(|(path, entry)| (path.to_owned(), entry.clone()))
                .collect(),
            features: self.features.clone(),
            has_middle: self.has_middle,
        });
        let flat = (self.has_middle && self.features.iter().all(|feature| feature.layer != MIDDLE))
            .then(|| Self { has_middle: false, ..self.clone() });
        without_feature.chain(without_file).chain(flat).collect()
    }

    /// All files, for a person.
    pub(crate) fn shown(&self) -> String {
        let tree = self.tree();
        let files = tree.entries().map(|(path, entry)| match entry {
            TreeEntry::Link(target) => format!("--- {path} -> {target}\n"),
            entry => format!("--- {path}\n{}\n", text(entry)),
        });
        files.collect()
    }
}

fn file(text: &str) -> TreeEntry {
    TreeEntry::File(text.as_bytes().into())
}

fn text(entry: &TreeEntry) -> String {
    match entry {
        TreeEntry::File(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        TreeEntry::Link(_)
        | TreeEntry::Decrypted(_)
        | TreeEntry::Encrypted { .. }
        | TreeEntry::TooLarge(_)
        | TreeEntry::NotFetched(_)
        | TreeEntry::Unreadable { .. } => String::new(),
    }
}

pub(crate) fn named(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// One feature, where the objects allow it.
fn feature(layer: &'static str, number: u64, objects: &[Value], chance: &mut Chance) -> Option<Feature> {
    let plain = |field, lines: String| Some(Feature { layer, field, lines, files: Vec::new() });
    let object = chance.one_of(objects)?;
    let (kind, name) = (named(object, "/kind"), named(object, "/metadata/name"));
    match chance.below(17) {
        0 => plain("namePrefix", format!("  p{number}-\n")),
        1 => plain("nameSuffix", format!("  -s{number}\n")),
        2 => plain("namespace", format!("  space-{number}\n")),
        3 => {
            let with = ["", "  includeSelectors: true\n", "  includeTemplates: true\n"];
            let with = chance.one_of(&with)?;
            plain("labels", format!("- pairs: {{label-{number}: one}}\n{with}"))
        }
        4 => plain("commonLabels", format!("  common-{number}: one\n")),
        5 => plain("commonAnnotations", format!("  note-{number}: one\n")),
        6 => plain("images", image(number, objects, chance)?),
        7 | 8 => plain("configMapGenerator", generator(number, objects, chance)),
        9 if ["Deployment", "StatefulSet", "ReplicaSet"].contains(&kind.as_str()) => {
            plain("replicas", format!("- {{name: {name}, count: {}}}\n", number + 2))
        }
        10 => component(layer, number, chance),
        11 => plain("replacements", replacement(&kind, &name, number, objects, chance)?),
        12 => plain("generatorOptions", "  labels: {made: here}\n".to_owned()),
        13 => plain("sortOptions", "  order: fifo\n".to_owned()),
        14 => plain("buildMetadata", "- originAnnotations\n- transformerAnnotations\n".to_owned()),
        _ => plain("patches", patch(object, &kind, &name, number, chance)),
    }
}

fn image(number: u64, objects: &[Value], chance: &mut Chance) -> Option<String> {
    let mut images = Vec::new();
    objects.iter().for_each(|object| collect_images(object, &mut images));
    let image = chance.one_of(&images)?;
    let name = image.split('@').next()?;
    let tag = name.rfind(':').filter(|at| !name[*at..].contains('/'));
    let name = tag.map_or(name, |at| &name[..at]);
    let change = [
        format!("newTag: t{number}"),
        format!("newName: images.example.com/n{number}"),
        format!("digest: sha256:{}", "0123456789abcdef".repeat(4)),
        format!("newName: images.example.com:5000/n{number}\n  newTag: t{number}"),
    ];
    Some(format!("- name: {name}\n  {}\n", chance.one_of(&change)?))
}

fn collect_images(value: &Value, images: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            images.extend(map.get("image").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| collect_images(value, images));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_images(value, images)),
        _ => {}
    }
}

fn generator(number: u64, objects: &[Value], chance: &mut Chance) -> String {
    let maps: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "ConfigMap").collect();
    match chance.one_of(&maps).filter(|_| chance_of(number)) {
        Some(map) => {
            let name = named(map, "/metadata/name");
            // The hash, where there is one, is not part of the name that a generator knows.
            let name = match name.rsplit_once('-') {
                Some((name, hash)) if hash.len() == 10 => name.to_owned(),
                _ => name,
            };
            let behaviour = if chance.below(3) == 0 { "replace" } else { "merge" };
            format!("- name: {name}\n  behavior: {behaviour}\n  literals: [extra-{number}=x]\n")
        }
        None => format!("- name: made-{number}\n  literals: [a={number}, b=two words]\n"),
    }
}

fn chance_of(number: u64) -> bool {
    number.is_multiple_of(2)
}

fn component(layer: &'static str, number: u64, chance: &mut Chance) -> Option<Feature> {
    let bodies = [
        format!("namePrefix: c{number}-\n"),
        format!("commonAnnotations: {{component-{number}: one}}\n"),
        format!("labels:\n- pairs: {{component-{number}: one}}\n  includeSelectors: true\n"),
        format!("configMapGenerator:\n- name: of-component-{number}\n  literals: [a=1]\n"),
        format!("namespace: of-component-{number}\n"),
    ];
    let body = chance.one_of(&bodies)?;
    let head = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";
    let folder = format!("component-{layer}-{number}");
    Some(Feature {
        layer,
        field: "components",
        lines: format!("- ../{folder}\n"),
        files: vec![(format!("{folder}/kustomization.yaml"), format!("{head}{body}"))],
    })
}

fn replacement(
    kind: &str,
    name: &str,
    number: u64,
    objects: &[Value],
    chance: &mut Chance,
) -> Option<String> {
    let target = chance.one_of(objects)?;
    let (of_kind, of_name) = (named(target, "/kind"), named(target, "/metadata/name"));
    let select = match chance.below(2) {
        0 => format!("kind: {of_kind}, name: {of_name}"),
        _ => format!("kind: {of_kind}"),
    };
    Some(format!(
        "- source: {{kind: {kind}, name: {name}}}\n  targets:\n  - select: {{{select}}}\n    \
         fieldPaths: [metadata.annotations.copied-{number}]\n    options: {{create: true}}\n"
    ))
}

fn patch(object: &Value, kind: &str, name: &str, number: u64, chance: &mut Chance) -> String {
    let start: String = name.chars().take(2).collect();
    let target = [format!("{{name: {start}.*}}"), format!("{{kind: {kind}}}"), "{version: v1}".to_owned()];
    let target = &target[chance.below(3) as usize];
    let version = named(object, "/apiVersion");
    let head = format!("    apiVersion: {version}\n    kind: {kind}\n    metadata:\n      name: {name}\n");
    match chance.below(5) {
        0 => format!(
            "- target: {target}\n  patch: |\n    - op: add\n      path: /metadata/labels\n      \
             value: {{patched-{number}: one}}\n"
        ),
        1 => format!(
            "- target: {target}\n  patch: |\n    apiVersion: v1\n    kind: Any\n    metadata:\n      \
             name: any\n      annotations: {{patched-{number}: one}}\n"
        ),
        2 => format!("- patch: |\n{head}      annotations: {{patched-{number}: one}}\n"),
        3 => format!("- patch: |\n{head}    $patch: delete\n"),
        _ => format!("- patch: |\n{head}    data: {{patched-{number}: one}}\n"),
    }
}

/// The smallest mutant of which `verdict` still says that it differs, and in what.
pub(crate) fn shrunk(
    mut mutant: Mutant,
    mut what: String,
    verdict: impl Fn(&Mutant) -> Verdict,
) -> (Mutant, String) {
    let differs = |smaller: Mutant| match verdict(&smaller) {
        Verdict::Different(what) => Some((smaller, what)),
        Verdict::Equal | Verdict::Refused(_) => None,
    };
    while let Some(smaller) = mutant.smaller().into_iter().find_map(differs) {
        (mutant, what) = smaller;
    }
    (mutant, what)
}

#[test]
fn a_mutant_is_made_small_and_made_again() {
    let base = FileTree::from_texts([
        ("overlay/kustomization.yaml", "resources: [map.yaml]\n"),
        ("overlay/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"),
    ]);
    let objects = [serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})];
    let made = |seed| mutate(&base, &objects, &mut Chance::new(seed));
    let differs = |mutant: &Mutant| match mutant.shown().contains("namePrefix:") {
        true => Verdict::Different("a prefix".to_owned()),
        false => Verdict::Equal,
    };
    let mut found = 0;
    for seed in 0..200 {
        let mutant = made(seed);
        assert_eq!(mutant.shown(), made(seed).shown());
        if mutant.features.len() < 2 || matches!(differs(&mutant), Verdict::Equal) {
            continue;
        }
        found += 1;
        let (small, what) = shrunk(mutant, String::new(), differs);
        assert_eq!((small.features.len(), what.as_str()), (1, "a prefix"), "{}", small.shown());
        let files = small.tree().entries().count();
        assert!(files <= 3, "{}", small.shown());
    }
    assert!(found > 10, "{found} seeds with a prefix and something else");
}
