//! A pointer of Git LFS is refused by name wherever the content of a file is used.

use moorline::render::helm::{Capabilities, invocation};
use moorline::render::{HelmOptions, RenderOptions, Rendered, render};
use moorline::tree::{FileTree, LfsPointers};

use super::render::config_map;

/// A pointer as `git lfs` writes it.
const POINTER: &str = "version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 12345
";

/// Checks that a folder is refused because of the one pointer in it.
fn check(pointer: &str, files: &[(&str, &str)]) {
    let all = files.iter().copied().chain([(pointer, POINTER)]);
    let Rendered::Incomplete(incomplete) = render(&FileTree::from_texts(all), &RenderOptions::default())
    else {
        panic!("{pointer} is used as if it were the file")
    };
    let told = incomplete.problems[0].to_string();
    let expect = format!(
        "{pointer} is a Git LFS pointer, and the file that it stands for is not here: Moorline fetches those of a Sync's own repository; \
         elsewhere, run git lfs pull, or commit the file without LFS"
    );
    assert!(told.contains(&expect), "{told}");
}

#[test]
fn a_pointer_is_refused_in_every_place() {
    let map = config_map("a");
    let sound = ("sound.yaml", map.as_str());
    let build = |text: &'static str| ("kustomization.yaml", text);
    check("a.yaml", &[sound]);
    check("a.json", &[sound]);
    check("kustomization.yaml", &[sound]);
    check("a.yaml", &[sound, build("resources: [sound.yaml, a.yaml]\n")]);
    check("a.yaml", &[sound, build("resources: [sound.yaml]\npatches: [{path: a.yaml}]\n")]);
    check("a.yaml", &[sound, build("resources: [sound.yaml]\npatchesStrategicMerge: [a.yaml]\n")]);
    check("data.bin", &[build("configMapGenerator: [{name: a, files: [data.bin]}]\n")]);
    check("a.env", &[build("secretGenerator: [{name: a, envs: [a.env]}]\n")]);
    check("a.yaml", &[sound, build("resources: [sound.yaml]\nconfigurations: [a.yaml]\n")]);
    check("a.yaml", &[sound, build("resources: [sound.yaml]\nreplacements: [{path: a.yaml}]\n")]);
    check("a.yaml", &[sound, build("resources: [sound.yaml]\ntransformers: [a.yaml]\n")]);
    check(
        "charts/web/values.yaml",
        &[
            ("charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            build("helmCharts: [{name: web, releaseName: web}]\n"),
        ],
    );
}

#[test]
fn a_pointer_in_a_chart_or_among_its_values_is_refused() {
    let chart = ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n");
    let refused = |files: &[(&str, &str)], values: &[&str]| {
        let values_files = values.iter().map(|file| (*file).to_owned()).collect();
        let helm = HelmOptions { values_files, ..HelmOptions::default() };
        let options = RenderOptions { helm, ..RenderOptions::default() };
        let run =
            invocation(&FileTree::from_texts(files.iter().copied()), &options, &Capabilities::default());
        run.err().map(|refusal| refusal.problem.to_string()).unwrap_or_default()
    };
    assert_eq!(refused(&[chart], &[]), "");
    for pointer in
        ["templates/a.yaml", "values.yaml", "files/data.bin", "charts/sub-1.0.0.tgz", "crds/a.yaml"]
    {
        let told = refused(&[chart, (pointer, POINTER)], &[]);
        assert!(told.starts_with(&format!("{pointer} is a Git LFS pointer")), "{told}");
    }
    let told = refused(&[chart, ("prod.yaml", "a: 1\n")], &["prod.yaml"]);
    assert_eq!(told, "");
}

#[test]
fn a_text_about_pointers_is_no_pointer() {
    let long = format!("{POINTER}{}", "#".repeat(1024));
    let inside = format!("# about pointers:\n# {POINTER}");
    for text in [long.as_str(), inside.as_str()] {
        assert!(FileTree::from_texts([("a.md", text)]).read("a.md").is_ok());
    }
    // A file that no render reads may be a pointer.
    let map = config_map("a");
    let tree = FileTree::from_texts([("a.yaml", map.as_str()), ("logo.png", POINTER)]);
    assert!(matches!(render(&tree, &RenderOptions::default()), Rendered::Complete(_)));
}

#[test]
fn all_pointers_of_a_chart_are_wanted_at_once() {
    let oid = |number: usize| POINTER.replace("4d7a2146", &format!("{number:08x}"));
    let (template, values, archive, logo) = (oid(1), oid(2), oid(3), oid(4));
    let tree = FileTree::from_texts([
        ("shop/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("shop/templates/a.yaml", &template),
        ("shop/values.yaml", &values),
        ("shop/charts/sub-1.0.0.tgz", &archive),
        ("logo.png", &logo),
    ]);
    let pointers = LfsPointers::of(&tree, |_| true);
    let tree = tree.with_lfs(pointers.clone());
    let options = RenderOptions { path: "shop".to_owned(), ..RenderOptions::default() };
    assert!(invocation(&tree, &options, &Capabilities::default()).is_err());
    let read: Vec<&str> = pointers.were_read().map(|(path, _)| path).collect();
    assert_eq!(read, ["shop/charts/sub-1.0.0.tgz", "shop/templates/a.yaml", "shop/values.yaml"]);
}
