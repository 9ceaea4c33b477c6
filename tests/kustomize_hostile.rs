//! Kustomizations that are made to hurt: each is refused, or built, within a bound of time.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use moorline::render::{Class, kustomization};
use moorline::tree::{Entry, FileTree};

/// Far more than any of these takes, and far less than what the real tool takes for the worst of them.
const AT_MOST: Duration = Duration::from_secs(20);

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

fn tree(files: &[(&str, &str)]) -> FileTree {
    FileTree::from_texts(files.iter().copied())
}

/// What becomes of the folder `overlay`: the number of objects, or the class of the refusal.
fn outcome(tree: &FileTree) -> Result<usize, Class> {
    let begun = Instant::now();
    let built = kustomization(tree, "overlay").map(|objects| objects.len()).map_err(|fault| fault.class);
    assert!(begun.elapsed() < AT_MOST, "{:?}", begun.elapsed());
    built
}

/// Ten levels, each of which names the one before it ten times.
fn bomb() -> String {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10 {
        let below = level - 1;
        let _ = writeln!(text, "a{level}: &a{level} [{}]", vec![format!("*a{below}"); 10].join(", "));
    }
    text
}

#[test]
fn aliases_that_multiply_or_name_themselves_are_refused() {
    let of_resource = format!("{MAP}{}", bomb());
    let resources = "resources: [a.yaml]\n";
    let files = [("overlay/kustomization.yaml", resources), ("overlay/a.yaml", &of_resource)];
    assert_eq!(outcome(&tree(&files)), Err(Class::Resource));
    assert_eq!(outcome(&tree(&[("overlay/kustomization.yaml", &bomb())])), Err(Class::Kustomization));
    let of_itself = format!("{MAP}data: &d {{x: *d}}\n");
    let files = [("overlay/kustomization.yaml", resources), ("overlay/a.yaml", &of_itself)];
    assert_eq!(outcome(&tree(&files)), Err(Class::Resource));
    let patch = format!("resources: [a.yaml]\npatches:\n- patch: |-\n{}", indented(&bomb()));
    let files = [("overlay/kustomization.yaml", patch.as_str()), ("overlay/a.yaml", MAP)];
    assert_eq!(outcome(&tree(&files)), Err(Class::Patch));
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

#[test]
fn what_is_nested_without_end_is_refused() {
    let deep = format!("{MAP}data: {}x{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let files = [("overlay/kustomization.yaml", "resources: [a.yaml]\n"), ("overlay/a.yaml", &deep)];
    assert_eq!(outcome(&tree(&files)), Err(Class::Resource));
    let long: Vec<(String, String)> = (0..200)
        .map(|at| {
            let folder = if at == 0 { "overlay".to_owned() } else { format!("n{at}") };
            (format!("{folder}/kustomization.yaml"), format!("resources: [../n{}]\n", at + 1))
        })
        .collect();
    let long: FileTree = FileTree::from_texts(long.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    assert_eq!(outcome(&long), Err(Class::Bound));
}

#[test]
fn what_leads_back_to_itself_is_refused() {
    let files = [
        ("overlay/kustomization.yaml", "resources: [../base]\n"),
        ("base/kustomization.yaml", "resources: [../overlay]\n"),
    ];
    assert_eq!(outcome(&tree(&files)), Err(Class::Cycle));
    assert_eq!(outcome(&tree(&[("overlay/kustomization.yaml", "resources: [.]\n")])), Err(Class::Cycle));
    let file = |text: &str| Entry::File(text.as_bytes().into());
    let links: FileTree = [
        ("overlay/kustomization.yaml", file("resources: [a.yaml]\n")),
        ("overlay/a.yaml", Entry::Link("b.yaml".into())),
        ("overlay/b.yaml", Entry::Link("a.yaml".into())),
    ]
    .into_iter()
    .collect();
    assert_eq!(outcome(&links), Err(Class::Missing));
    let out: FileTree = [
        ("overlay/kustomization.yaml", file("resources: [a.yaml]\n")),
        ("overlay/a.yaml", Entry::Link("../../etc/passwd".into())),
    ]
    .into_iter()
    .collect();
    assert_eq!(outcome(&out), Err(Class::Restricted));
}

#[test]
fn a_file_of_a_gigabyte_is_not_taken_up() {
    let large: FileTree = [
        (
            "overlay/kustomization.yaml",
            Entry::File(b"configMapGenerator:\n- {name: a, files: [large.bin]}\n"[..].into()),
        ),
        ("overlay/large.bin", Entry::TooLarge(1 << 30)),
    ]
    .into_iter()
    .collect();
    assert_eq!(outcome(&large), Err(Class::Bound));
}

#[test]
fn ten_thousand_patches_are_only_many() {
    let mut text = String::from("resources: [a.yaml]\npatches:\n");
    // So that the object stays of a size that people have.
    for number in (0..5_000).map(|number| number % 200) {
        let _ = writeln!(
            text,
            "- patch: '{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a}}, data: {{k{number}: v}}}}'"
        );
        let _ = writeln!(
            text,
            "- target: {{kind: ConfigMap}}\n  patch: '[{{op: add, path: /data/j{number}, value: v}}]'"
        );
    }
    let files = [("overlay/kustomization.yaml", text.as_str()), ("overlay/a.yaml", MAP)];
    assert_eq!(outcome(&tree(&files)), Ok(1));
}

#[test]
fn expressions_take_time_in_proportion() {
    let name = "a".repeat(240);
    let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let text = "resources: [a.yaml]\npatches:\n- target: {name: '(a|a?)+(a*)*b'}\n  patch: '[{op: remove, path: /data}]'\n";
    let files = [("overlay/kustomization.yaml", text), ("overlay/a.yaml", &map)];
    assert_eq!(outcome(&tree(&files)), Ok(1));
    let text = "resources: [a.yaml]\npatches:\n- target: {name: '((a{100}){100}){100}'}\n  patch: '[]'\n";
    let files = [("overlay/kustomization.yaml", text), ("overlay/a.yaml", &map)];
    assert!(outcome(&tree(&files)).is_err_and(|class| matches!(class, Class::Field | Class::Patch)));
}
