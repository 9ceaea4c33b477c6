//! Rules for imports inside a crate: the arrows between the folders of the controller, and circles
//! of files.
//!
//! In: all files.
//! Out: the number of arrows, the number of arrows that point back, and the circles that are too
//! large. A file with submodules declares them, so every such file is in a circle with them: these
//! files are left out, and an import of a name that they re-export counts for the file behind it.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{Kind, Path, paths};
use super::source::Source;

/// Most files of a circle.
const CIRCLE: usize = 5;
/// Larger circles: an evaluator, and a builder of kustomizations, whose files call each other at each
/// level of their input. Shorten this list.
const LARGER: [(&str, usize); 2] = [("cel", 12), ("kustomize", 38)];
/// Most arrows between the folders of `src/controller/`, and most of them that point back.
const ARROWS: usize = 70;
const BACK: usize = 10;

/// A module as its parts, in a crate.
type Module<'a> = Vec<&'a str>;
/// Two folders, of which the first imports the second.
type Arrow<'a> = (&'a str, &'a str);
type Graph<'a> = BTreeMap<Module<'a>, BTreeSet<Module<'a>>>;

/// Finds circles of files that are too large, each as its crate and its files.
pub(crate) fn circles(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, graph) in graphs(sources) {
        let most = LARGER.iter().find(|(known, _)| *known == name).map_or(CIRCLE, |(_, size)| *size);
        let is_parent =
            |module: &Module| graph.keys().any(|it| it.len() > module.len() && it.starts_with(module));
        let parents: BTreeSet<&Module> = graph.keys().filter(|module| is_parent(module)).collect();
        let leaves: Graph = graph
            .iter()
            .filter(|(module, _)| !parents.contains(module))
            .map(|(module, uses)| {
                (module.clone(), uses.iter().filter(|it| !parents.contains(it)).cloned().collect())
            })
            .collect();
        for circle in strong_components(&leaves).into_iter().filter(|circle| circle.len() > most) {
            let files: Vec<String> = circle.iter().map(|module| module.join("/")).collect();
            found.push(format!("{name}: {} files import each other: {}", files.len(), files.join(", ")));
        }
    }
    found
}

/// Returns the arrows between the folders of the controller, and those that point back.
pub(crate) fn controller_arrows(sources: &[Source]) -> (Vec<Arrow<'_>>, Vec<Arrow<'_>>) {
    let graphs = graphs(sources);
    let Some(graph) = graphs.get("") else { return Default::default() };
    let folder = |module: &Module<'_>| match module[..] {
        ["controller", _, _, ..] => true,
        ["controller", name] => graph.keys().any(|it| it.len() > 2 && it.starts_with(&["controller", name])),
        _ => false,
    };
    let mut arrows = BTreeSet::new();
    for (from, uses) in graph.iter().filter(|(from, _)| folder(from)) {
        arrows.extend(uses.iter().filter(|to| folder(to) && to[1] != from[1]).map(|to| (from[1], to[1])));
    }
    let arrows: Vec<Arrow<'_>> = arrows.into_iter().collect();
    let back = back_arrows(&arrows);
    (arrows, back)
}

/// Returns the arrows that point back in the best order of their ends that is found.
fn back_arrows<'a>(arrows: &[Arrow<'a>]) -> Vec<Arrow<'a>> {
    let ends: BTreeSet<&str> = arrows.iter().flat_map(|(from, to)| [*from, *to]).collect();
    let mut order: Vec<&str> = ends.iter().copied().collect();
    let back = |order: &[&str]| -> Vec<Arrow<'a>> {
        let place = |name: &str| order.iter().position(|it| *it == name);
        arrows.iter().copied().filter(|(from, to)| place(from) > place(to)).collect()
    };
    loop {
        let before = back(&order).len();
        for end in &ends {
            let rest: Vec<&str> = order.iter().copied().filter(|it| it != end).collect();
            let moved = |at: usize| [&rest[..at], &[*end], &rest[at..]].concat();
            let all = (0..=rest.len()).map(moved);
            order = all.min_by_key(|order| back(order).len()).unwrap_or(order);
        }
        if back(&order).len() >= before {
            return back(&order);
        }
    }
}

/// Returns the files of each crate with the files that they import; the root package has an empty
/// name.
fn graphs(sources: &[Source]) -> BTreeMap<&str, Graph<'_>> {
    let mut files: BTreeMap<&str, BTreeMap<Module<'_>, Vec<Path>>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.is_program() && !source.is_test(1)) {
        let module = inside(source);
        if module.last().is_some_and(|name| name.ends_with("tests")) {
            continue;
        }
        files.entry(source.crate_folder().unwrap_or_default()).or_default().insert(module, paths(source));
    }
    files.into_iter().map(|(name, files)| (name, imports(&files))).collect()
}

fn imports<'a>(files: &BTreeMap<Module<'a>, Vec<Path>>) -> Graph<'a> {
    let named = |module: &Module<'a>, path: &Path| target(files, module, path);
    let uses = |module: &Module<'a>, paths: &Vec<Path>| {
        paths.iter().filter_map(|path| named(module, path)).filter(|it| it != module).collect()
    };
    files.iter().map(|(module, paths)| (module.clone(), uses(module, paths))).collect()
}

/// Returns the file that a path leads to: the one behind a re-export, if the named file has
/// submodules and imports the name.
fn target<'a>(
    files: &BTreeMap<Module<'a>, Vec<Path>>,
    module: &Module<'a>,
    path: &Path,
) -> Option<Module<'a>> {
    let (found, rest) = resolve(files, module, path)?;
    let is_parent = files.keys().any(|file| file.len() > found.len() && file.starts_with(&found));
    let Some(name) = rest.first().filter(|_| is_parent) else { return Some(found) };
    let is_it = |other: &&Path| {
        other.kind != Kind::Plain && other.kind != Kind::Macro && other.segments.last() == Some(name)
    };
    let behind = files[&found].iter().find(is_it).and_then(|other| resolve(files, &found, other));
    Some(behind.map_or(found, |(file, _)| file))
}

/// Returns the file of a path, and the part of the path that lies in it.
fn resolve<'a>(
    files: &BTreeMap<Module<'a>, Vec<Path>>,
    module: &Module<'a>,
    path: &Path,
) -> Option<(Module<'a>, Vec<String>)> {
    let mut place: Vec<&str> = module.iter().copied().chain(path.inside.iter().map(String::as_str)).collect();
    let mut rest = path.segments.as_slice();
    match rest.first()?.as_str() {
        "crate" => (place, rest) = (Vec::new(), &rest[1..]),
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|it| it == "super") {
                place.pop();
                rest = &rest[1..];
            }
        }
        // A lone name is no import.
        _ if rest.len() < 2 && path.kind == Kind::Plain => return None,
        name => {
            let child = [&place[..], &[name]].concat();
            files.contains_key(&child).then_some(())?;
        }
    }
    while let Some(name) = rest.first() {
        let child = [&place[..], &[name.as_str()]].concat();
        if !files.contains_key(&child) {
            break;
        }
        (place, rest) = (child, &rest[1..]);
    }
    let file = files.keys().find(|file| **file == place)?;
    Some((file.clone(), rest.to_vec()))
}

/// Returns the module path of a file in its crate.
fn inside(source: &Source) -> Module<'_> {
    let path = source.path.split_once("src/").map_or("", |(_, path)| path);
    let path = path.strip_suffix(".rs").unwrap_or(path);
    path.split('/').filter(|part| !["mod", "lib"].contains(part)).collect()
}

/// Returns the sets of modules that reach each other.
fn strong_components<'a>(graph: &Graph<'a>) -> Vec<Vec<Module<'a>>> {
    let modules: Vec<&Module<'a>> = graph.keys().collect();
    let place = |module: &Module<'a>| modules.binary_search(&module).ok();
    let uses: Vec<Vec<usize>> = graph.values().map(|uses| uses.iter().filter_map(place).collect()).collect();
    let reached = |from: usize| {
        let (mut seen, mut open) = (vec![false; modules.len()], vec![from]);
        while let Some(at) = open.pop() {
            for &next in &uses[at] {
                if !std::mem::replace(&mut seen[next], true) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let reach: Vec<Vec<bool>> = (0..modules.len()).map(reached).collect();
    let reach = &reach;
    let circle = |at: usize| (0..modules.len()).filter(move |other| reach[at][*other] && reach[*other][at]);
    // A circle is found at its first file.
    let firsts = (0..modules.len()).filter(|at| circle(*at).next() == Some(*at));
    firsts.map(|at| circle(at).map(|other| modules[other].clone()).collect()).collect()
}

fn sources(texts: &[(&str, &str)]) -> Vec<Source> {
    texts.iter().map(|(path, text)| Source::new(path, text)).collect()
}

#[test]
fn a_circle_of_six_files_is_found() {
    let text = |next: usize| format!("use super::f{next}::A;");
    let ring = |size: usize| -> Vec<Source> {
        let file = |at: usize| Source::new(&format!("src/a/f{at}.rs"), &text((at + 1) % size));
        let parent = Source::new("src/a/mod.rs", "mod f0; pub use f0::A;");
        (0..size).map(file).chain([parent]).collect()
    };
    assert_eq!(circles(&ring(5)), Vec::<String>::new());
    let found = circles(&ring(6));
    assert_eq!(found, [": 6 files import each other: a/f0, a/f1, a/f2, a/f3, a/f4, a/f5"]);
    let behind = sources(&[
        ("src/a/mod.rs", "mod b; pub(crate) use b::B;"),
        ("src/a/b.rs", "use crate::c::C;"),
        ("src/c.rs", "use crate::a::B;"),
    ]);
    let graph = graphs(&behind);
    assert!(graph[""][&vec!["c"]].contains(&vec!["a", "b"]), "a re-export leads to its file: {graph:?}");
}

#[test]
fn arrows_that_point_back_are_found() {
    let files = sources(&[
        ("src/controller/mod.rs", "use worker::W;"),
        ("src/controller/worker/mod.rs", "use super::status::S; use super::spec::V;"),
        ("src/controller/worker/poll.rs", "use crate::controller::status::S;"),
        ("src/controller/status/mod.rs", "use super::spec::V;"),
        ("src/controller/status/writer.rs", ""),
        ("src/controller/spec/mod.rs", "use super::worker::W; use super::alone::A;"),
        ("src/controller/spec/helm.rs", ""),
        ("src/controller/alone.rs", "use super::spec::V;"),
    ]);
    let (arrows, back) = controller_arrows(&files);
    let expect = [("spec", "worker"), ("status", "spec"), ("worker", "spec"), ("worker", "status")];
    assert_eq!((arrows.as_slice(), back.as_slice()), (&expect[..], &[("spec", "worker")][..]));
}

#[test]
fn the_folders_of_the_controller_have_few_arrows_and_no_large_circles() {
    let files = super::files::texts();
    let rust = files.iter().filter(|(path, _)| path.ends_with(".rs"));
    let sources: Vec<Source> = rust.map(|(path, text)| Source::new(path, text)).collect();
    let (arrows, back) = controller_arrows(&sources);
    println!("{} arrows between folders of src/controller, {} back: {back:?}", arrows.len(), back.len());
    assert!(arrows.len() > 20, "the walk found {} arrows", arrows.len());
    assert!(
        arrows.len() <= ARROWS && back.len() <= BACK,
        "{} arrows: {arrows:?}; back: {back:?}",
        arrows.len()
    );
    let circles = circles(&sources);
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}
