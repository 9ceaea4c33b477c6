//! Kustomizations that are made to hurt: each is refused, or built, within a bound of time.

use std::fmt::Write as _;
use std::time::Duration;

use moorline::kustomize::ErrorClass;
use moorline::render::build_kustomization;
use moorline::tree::{FileTree, TreeEntry};
use moorline_test_support::under_load::under_load;
use rustix::time::{ClockId, clock_gettime};

/// Far more than any of these takes, and far less than what the real tool takes for the worst of them.
const AT_MOST: Duration = Duration::from_secs(20);

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

fn tree(files: &[(&str, &str)]) -> FileTree {
    FileTree::from_texts(files.iter().copied())
}

/// Returns the processor time of this thread: to wait for one takes as long as others leave it no time.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// Returns the result of the folder `overlay`: the number of objects, or the class of the refusal.
fn outcome(tree: &FileTree) -> Result<usize, ErrorClass> {
    let begun = worked();
    let built =
        build_kustomization(tree, "overlay").map(|objects| objects.len()).map_err(|fault| fault.class);
    let took = worked() - begun;
    // Threads that share a core also slow down what each of them works.
    assert!(took < under_load(AT_MOST), "{took:?}");
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
    assert_eq!(outcome(&tree(&files)), Err(ErrorClass::Resource));
    assert_eq!(outcome(&tree(&[("overlay/kustomization.yaml", &bomb())])), Err(ErrorClass::Kustomization));
    let of_itself = format!("{MAP}data: &d {{x: *d}}\n");
    let files = [("overlay/kustomization.yaml", resources), ("overlay/a.yaml", &of_itself)];
    assert_eq!(outcome(&tree(&files)), Err(ErrorClass::Resource));
    let patch = format!("resources: [a.yaml]\npatches:\n- patch: |-\n{}", indented(&bomb()));
    let files = [("overlay/kustomization.yaml", patch.as_str()), ("overlay/a.yaml", MAP)];
    assert_eq!(outcome(&tree(&files)), Err(ErrorClass::Patch));
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

#[test]
fn what_is_nested_without_end_is_refused() {
    let deep = format!("{MAP}data: {}x{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let files = [("overlay/kustomization.yaml", "resources: [a.yaml]\n"), ("overlay/a.yaml", &deep)];
    assert_eq!(outcome(&tree(&files)), Err(ErrorClass::Resource));
    let long: Vec<(String, String)> = (0..200)
        .map(|at| {
            let folder = if at == 0 { "overlay".to_owned() } else { format!("n{at}") };
            (format!("{folder}/kustomization.yaml"), format!("resources: [../n{}]\n", at + 1))
        })
        .collect();
    let long: FileTree = FileTree::from_texts(long.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    assert_eq!(outcome(&long), Err(ErrorClass::Bound));
}

#[test]
fn what_leads_back_to_itself_is_refused() {
    let files = [
        ("overlay/kustomization.yaml", "resources: [../base]\n"),
        ("base/kustomization.yaml", "resources: [../overlay]\n"),
    ];
    assert_eq!(outcome(&tree(&files)), Err(ErrorClass::Cycle));
    assert_eq!(outcome(&tree(&[("overlay/kustomization.yaml", "resources: [.]\n")])), Err(ErrorClass::Cycle));
    let file = |text: &str| TreeEntry::File(text.as_bytes().into());
    let links: FileTree = [
        ("overlay/kustomization.yaml", file("resources: [a.yaml]\n")),
        ("overlay/a.yaml", TreeEntry::Link("b.yaml".into())),
        ("overlay/b.yaml", TreeEntry::Link("a.yaml".into())),
    ]
    .into_iter()
    .collect();
    assert_eq!(outcome(&links), Err(ErrorClass::Missing));
    let out: FileTree = [
        ("overlay/kustomization.yaml", file("resources: [a.yaml]\n")),
        ("overlay/a.yaml", TreeEntry::Link("../../etc/passwd".into())),
    ]
    .into_iter()
    .collect();
    assert_eq!(outcome(&out), Err(ErrorClass::Restricted));
}

#[test]
fn a_file_of_a_gigabyte_is_not_taken_up() {
    let large: FileTree = [
        (
            "overlay/kustomization.yaml",
            TreeEntry::File(b"configMapGenerator:\n- {name: a, files: [large.bin]}\n"[..].into()),
        ),
        ("overlay/large.bin", TreeEntry::TooLarge(1 << 30)),
    ]
    .into_iter()
    .collect();
    assert_eq!(outcome(&large), Err(ErrorClass::Bound));
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
            "- target: {{kind: ConfigMap}}\n  patch: '[{{\"op\": \"add\", \"path\": \"/data/j{number}\", \"value\": \"v\"}}]'"
        );
    }
    let files = [("overlay/kustomization.yaml", text.as_str()), ("overlay/a.yaml", MAP)];
    assert_eq!(outcome(&tree(&files)), Ok(1));
}

#[test]
fn expressions_take_time_in_proportion() {
    let name = "a".repeat(240);
    let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let text = "resources: [a.yaml]\npatches:\n- target: {name: '(a|a?)+(a*)*b'}\n  patch: '[{\"op\": \"remove\", \"path\": \"/data\"}]'\n";
    let files = [("overlay/kustomization.yaml", text), ("overlay/a.yaml", &map)];
    assert_eq!(outcome(&tree(&files)), Ok(1));
    let text = "resources: [a.yaml]\npatches:\n- target: {name: '((a{100}){100}){100}'}\n  patch: '[]'\n";
    let files = [("overlay/kustomization.yaml", text), ("overlay/a.yaml", &map)];
    assert!(
        outcome(&tree(&files)).is_err_and(|class| matches!(class, ErrorClass::Field | ErrorClass::Patch))
    );
}

/// Levels of folders, each of which includes the one below it twice, under two names, and at the bottom this.
fn doubled(levels: usize, bottom: &str) -> FileTree {
    let mut files = vec![("l0/kustomization.yaml".to_owned(), bottom.to_owned())];
    for level in 1..=levels {
        let below = level - 1;
        for side in ["a", "b"] {
            let text = format!("namePrefix: {side}\nresources: [../l{below}]\n");
            files.push((format!("l{level}{side}/kustomization.yaml"), text));
        }
        let name = if level == levels { "overlay".to_owned() } else { format!("l{level}") };
        let text = format!("resources: [../l{level}a, ../l{level}b]\n");
        files.push((format!("{name}/kustomization.yaml"), text));
    }
    FileTree::from_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())))
}

#[test]
fn folders_that_include_folders_twice_do_not_multiply_without_end() {
    assert_eq!(outcome(&doubled(4, "configMapGenerator: [{name: a, literals: [a=b]}]\n")), Ok(16));
    assert_eq!(
        outcome(&doubled(28, "configMapGenerator: [{name: a, literals: [a=b]}]\n")),
        Err(ErrorClass::Bound)
    );
    assert_eq!(outcome(&doubled(28, "components: []\n")), Err(ErrorClass::Bound));
    // Few folders, and much in each.
    let large = format!("{MAP}data: {{a: {}}}\n", "x".repeat(4 << 20));
    let folders = doubled(8, "resources: [a.yaml]\n");
    let files = folders.entries().map(|(path, entry)| (path.to_owned(), entry.clone()));
    let large = ("l0/a.yaml".to_owned(), TreeEntry::File(large.into_bytes().into()));
    assert_eq!(outcome(&files.chain([large]).collect()), Err(ErrorClass::Bound));
}

#[test]
fn ten_thousand_labels_of_ten_thousand_objects_are_too_many() {
    let mut maps = String::new();
    (0..10_000).for_each(|at| {
        let _ = write!(maps, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{at}}}\n");
    });
    let mut text = String::from("resources: [a.yaml]\ncommonLabels:\n");
    (0..10_000).for_each(|at| {
        let _ = writeln!(text, "  label{at}: x");
    });
    let files = [("overlay/kustomization.yaml", text.as_str()), ("overlay/a.yaml", maps.as_str())];
    assert_eq!(outcome(&tree(&files)), Err(ErrorClass::Bound));
}

#[test]
fn thousands_of_files_take_time_in_proportion() {
    let mut files = vec![("overlay/kustomization.yaml".to_owned(), String::from("resources:\n"))];
    for at in 0..6_000 {
        let _ = writeln!(files[0].1, "- f{at}.yaml");
        files.push((format!("overlay/f{at}.yaml"), MAP.replace("name: a", &format!("name: a{at}"))));
    }
    let tree = FileTree::from_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    assert_eq!(outcome(&tree), Ok(6_000));
}

#[test]
fn charts_are_counted_before_helm_is_asked() {
    let of = |count: usize, size: usize| {
        let mut text = String::from("helmCharts:\n");
        (0..count).for_each(|at| {
            let _ = writeln!(text, "- {{name: web, releaseName: a{at}}}");
        });
        let large = "x".repeat(size);
        outcome(&tree(&[
            ("overlay/kustomization.yaml", text.as_str()),
            ("overlay/charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            ("overlay/charts/web/values.yaml", ""),
            ("overlay/charts/web/large", &large),
        ]))
    };
    // Helm is not run here.
    assert_eq!(of(128, 1), Err(ErrorClass::Unsupported));
    assert_eq!(of(129, 1), Err(ErrorClass::Bound));
    assert_eq!(of(16, 17 << 20), Err(ErrorClass::Bound));
}
