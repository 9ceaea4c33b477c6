//! Renders of one large file, and of one step that looks at very much: each is over in the time that its size takes, or is refused, and
//! ends soon after nobody waits for it.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use moorline::desired::{Scopes, build_desired_set};
use moorline::render::{RenderOptions, Rendered, Variables, Visibility, render};
use moorline::tree::{FileTree, MemoryLimit};

/// The longest that anything of this takes with a slow compiler; what compares all with all takes minutes or days.
const PATIENCE: Duration = Duration::from_secs(40);

/// The longest that a render goes on after a stop.
const SOON: Duration = Duration::from_secs(2);

/// A name, and the files of a folder.
type Input = (&'static str, Vec<(&'static str, String)>);

fn map(name: &str, more: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n{more}")
}

/// So many ConfigMaps in one file.
fn maps(count: usize) -> String {
    (0..count).map(|at| format!("---\n{}", map(&format!("a{at}"), ""))).collect()
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut all, at| {
        let _ = writeln!(all, "{}", line(at));
        all
    })
}

/// One large file that holds very much of one thing.
fn files() -> Vec<Input> {
    let one = |text: String| vec![("a.yaml", text)];
    let metadata = |field: &str, entries: String| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  {field}:\n{entries}")
    };
    vec![
        ("a list", one(map("a", &format!("data: {{a: [{}]}}\n", "b,".repeat(4_000_000))))),
        ("deep brackets", one(map("a", &format!("data: {}{}{}\n", "[".repeat(500), "b,".repeat(2_000_000), "]".repeat(500))))),
        ("documents", one(maps(60_000))),
        ("bad labels", one(metadata("labels", lines(100_000, |at| format!("    l{at}: '??'"))))),
        ("unknown annotations", one(metadata("annotations", lines(100_000, |at| format!("    moorline.dev/x{at}: a"))))),
        ("unknown fields", one(map("a", &lines(100_000, |at| format!("f{at}: 1"))))),
        (
            "data that is no base64",
            one(format!(
                "apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\ndata:\n{}",
                lines(100_000, |at| format!("  k{at}: '?'"))
            )),
        ),
        (
            "objects with unknown annotations",
            one((0..20_000)
                .map(|at| {
                    format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{at}, annotations: {{moorline.dev/x: a}}}}\n")
                })
                .collect()),
        ),
        ("unknown variables in keys", one(map("a", &format!("data:\n{}", lines(100_000, |at| format!("  ${{X{at}}}: a")))))),
    ]
}

/// Files with a kustomization.
fn build(text: String, mut files: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    files.push(("kustomization.yaml", text));
    files
}

/// One step of a kustomization that looks at all for each of very many.
fn steps() -> Vec<Input> {
    let list = format!("data: {{l: [{}]}}\n", "1,".repeat(100_000));
    let operations = |one: &str| format!("[{}{one}]", format!("{one},").repeat(100_000));
    let patched = "resources: [a.yaml]\npatches: [{path: p.yaml, target: {kind: ConfigMap}}]\n".to_owned();
    let add = r#"{"op": "add", "path": "/data/l/0", "value": 1}"#;
    let turn =
        r#"{"op": "move", "from": "/data", "path": "/d"},{"op": "move", "from": "/d", "path": "/data"}"#;
    vec![
        (
            "items put in front",
            build(patched.clone(), vec![("a.yaml", map("a", &list)), ("p.yaml", operations(add))]),
        ),
        (
            "fields moved to and fro",
            build(patched, vec![("a.yaml", map("a", &list)), ("p.yaml", operations(turn))]),
        ),
        (
            "patches of many objects",
            build(
                "resources: [a.yaml]\npatchesStrategicMerge: [p.yaml]\n".to_owned(),
                vec![("a.yaml", maps(30_000)), ("p.yaml", maps(30_000))],
            ),
        ),
        (
            "texts that become numbers",
            build(
                "resources: [a.yaml]\npatches: [{path: p.yaml}]\n".to_owned(),
                vec![
                    (
                        "a.yaml",
                        map("a", &format!("data:\n{}", lines(100_000, |at| format!("  k{at}: text{at}")))),
                    ),
                    ("p.yaml", map("a", &format!("data:\n{}", lines(100_000, |at| format!("  k{at}: 1"))))),
                ],
            ),
        ),
    ]
}

/// The same with names and fields.
fn steps_by_names() -> Vec<Input> {
    let subjects = lines(20_000, |at| format!("- {{kind: ServiceAccount, name: a{at}, namespace: n{at}}}"));
    let accounts: String = (0..20_000)
        .map(|at| {
            format!("---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: a{at}, namespace: n}}\n")
        })
        .collect();
    let binding = format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {{name: b, namespace: n}}\nsubjects:\n{subjects}"
    );
    let vars = lines(30_000, |at| {
        format!("- {{name: V{at}, objref: {{apiVersion: v1, kind: ConfigMap, name: a{at}}}}}")
    });
    let write = "fieldPaths: [data.x], options: {create: true}";
    let replacements =
        lines(20_000, |at| format!("- {{sourceValue: x, targets: [{{select: {{name: a{at}}}, {write}}}]}}"));
    let transformer = format!(
        "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {{name: t}}\nlabels: {{a: b}}\nfieldSpecs:\n{}",
        lines(20_000, |at| format!("- {{path: spec/f{at}, create: false}}"))
    );
    let configuration = format!("namespace:\n{}", lines(100_000, |at| format!("- {{path: spec/f{at}}}")));
    vec![
        ("vars", build(format!("resources: [a.yaml]\nvars:\n{vars}"), vec![("a.yaml", maps(30_000))])),
        (
            "names in many subjects",
            build("resources: [a.yaml]\nnamePrefix: x-\n".to_owned(), vec![("a.yaml", accounts + &binding)]),
        ),
        (
            "replacements",
            build(
                "resources: [a.yaml]\nreplacements: [{path: r.yaml}]\n".to_owned(),
                vec![("a.yaml", maps(20_000)), ("r.yaml", replacements)],
            ),
        ),
        (
            "fields of a transformer",
            build(
                "resources: [a.yaml]\ntransformers: [t.yaml]\n".to_owned(),
                vec![("a.yaml", maps(20_000)), ("t.yaml", transformer)],
            ),
        ),
        (
            "fields of a configuration",
            build(
                "resources: [a.yaml]\nconfigurations: [c.yaml]\nnamespace: n\n".to_owned(),
                vec![("a.yaml", maps(1)), ("c.yaml", configuration)],
            ),
        ),
    ]
}

/// Renders files in a thread of its own; how long that took, with the time of a stop if there is one.
fn took(files: &[(&str, String)], stop_after: Option<Duration>) -> Result<Duration, RecvTimeoutError> {
    let room = MemoryLimit::with_bytes(u64::MAX - 1);
    let stop = room.stop_on_drop();
    let tree = FileTree::from_texts(files.iter().map(|(path, text)| (*path, text.as_str())));
    let variables = Variables::default().with_values([("V", "v")], Visibility::Public);
    let options = RenderOptions { variables: Some(Arc::new(variables)), ..RenderOptions::default() };
    let (send, receive) = channel();
    let begun = Instant::now();
    std::thread::spawn(move || {
        if let Rendered::Complete(complete) = render(&tree.with_memory_limit(room), &options) {
            drop(build_desired_set(complete, "n", &Scopes::builtin()));
        }
        let _ = send.send(());
    });
    if let Some(after) = stop_after {
        match receive.recv_timeout(after) {
            Ok(()) => return Ok(Duration::ZERO),
            Err(_) => drop(stop),
        }
        let stopped = Instant::now();
        return receive.recv_timeout(PATIENCE).map(|()| stopped.elapsed());
    }
    receive.recv_timeout(PATIENCE).map(|()| begun.elapsed())
}

fn check(inputs: Vec<Input>) {
    let mut wrong = Vec::new();
    for (name, files) in inputs {
        let bytes: usize = files.iter().map(|(_, text)| text.len()).sum();
        for after in [None, Some(Duration::from_millis(300))] {
            let found = took(&files, after);
            println!("{name}, {bytes} bytes, stopped after {after:?}: {found:?}");
            let most = if after.is_some() { SOON } else { PATIENCE };
            if !found.is_ok_and(|found| found < most) {
                wrong.push(format!("{name}, stopped after {after:?}: {found:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn one_large_file_is_read_in_the_time_that_its_size_takes_and_can_be_stopped() {
    check(files());
}

#[test]
fn one_step_over_very_many_objects_is_bounded_and_can_be_stopped() {
    check(steps());
    check(steps_by_names());
}
