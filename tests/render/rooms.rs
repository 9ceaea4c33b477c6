//! Renders in little room: each gives up before it takes more memory than there is, and when it is stopped.

use std::sync::Arc;

use moorline::render::{Incomplete, RenderOptions, Rendered, Variables, Visibility, render};
use moorline::tree::{FileTree, MemoryLimit};

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

/// A name, files, and how they are rendered.
type Tree = (&'static str, Vec<(String, String)>, RenderOptions);

/// Returns trees that are small as files and large when rendered; the name tells how.
fn trees() -> Vec<Tree> {
    let file = |path: &str, text: String| (path.to_owned(), text);
    let text = "0123456789".repeat(10_000);
    let generators: String = (0..200).map(|at| format!("- {{name: a{at}, files: [f]}}\n")).collect();
    let maps: String =
        (0..200).map(|at| format!("---\n{}", MAP.replace("name: a", &format!("name: a{at}")))).collect();
    let build = |text: String| file("kustomization.yaml", text);
    let plain = RenderOptions::default();
    let variable = Variables::default().with_values([("V", &text)], Visibility::Public);
    let replaced = RenderOptions { variables: Some(Arc::new(variable)), ..RenderOptions::default() };
    let many = maps.replace("metadata:", "data: {a: '${V}'}\nmetadata:");
    let operation = format!("[{{\"op\": \"add\", \"path\": \"/data\", \"value\": {{\"a\": \"{text}\"}}}}]");
    let patch = |name: &str| {
        build(format!("resources: [a.yaml]\npatches: [{{path: {name}, target: {{kind: ConfigMap}}}}]\n"))
    };
    vec![
        (
            "values",
            vec![file("a.yaml", format!("{MAP}data: {{a: [{}]}}\n", "a,".repeat(200_000)))],
            plain.clone(),
        ),
        ("substitution", vec![file("a.yaml", many)], replaced),
        (
            "generators",
            vec![file("f", text.clone()), build(format!("configMapGenerator:\n{generators}"))],
            plain.clone(),
        ),
        (
            "merges",
            vec![
                file("a.yaml", maps.clone()),
                file("p.yaml", format!("{MAP}data: {{a: {text}}}\n")),
                patch("p.yaml"),
            ],
            plain.clone(),
        ),
        (
            "operations",
            vec![file("a.yaml", maps.clone()), file("p.json", operation), patch("p.json")],
            plain.clone(),
        ),
        (
            "annotations",
            vec![
                file("a.yaml", maps.clone()),
                build(format!("resources: [a.yaml]\ncommonAnnotations: {{a: {text}}}\n")),
            ],
            plain.clone(),
        ),
        (
            "prefixes",
            vec![file("a.yaml", maps), build(format!("resources: [a.yaml]\nnamePrefix: {text}\n"))],
            plain,
        ),
    ]
}

fn rendered(files: &[(String, String)], options: &RenderOptions, room: &MemoryLimit) -> Rendered {
    let tree = FileTree::from_texts(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    render(&tree.with_memory_limit(room.clone()), options)
}

#[test]
fn what_is_rendered_takes_no_more_than_its_room() {
    for (name, files, options) in trees() {
        let room = MemoryLimit::with_bytes(4 << 20);
        let Rendered::Incomplete(Incomplete { problems, .. }) = rendered(&files, &options, &room) else {
            panic!("{name} is rendered in {room:?}");
        };
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(room.required_bytes().is_some_and(|bytes| bytes > 4 << 20), "{name}: {room:?} {told:?}");
        assert!(told.iter().any(|told| told.contains("this needs more memory")), "{name}: {told:?}");
    }
}

#[test]
fn in_enough_room_the_same_is_rendered_as_without_walls() {
    for (name, files, options) in trees() {
        let room = MemoryLimit::with_bytes(1 << 30);
        let counts =
            [MemoryLimit::default(), room.clone()].map(|room| match rendered(&files, &options, &room) {
                Rendered::Complete(complete) => complete.objects().len(),
                Rendered::Incomplete(incomplete) => incomplete.objects.len(),
            });
        assert_eq!(counts[0], counts[1], "{name}");
        assert_eq!(room.required_bytes(), None, "{name}");
    }
}

#[test]
fn a_render_that_nobody_waits_for_ends() {
    for (name, files, options) in trees() {
        let room = MemoryLimit::with_bytes(1 << 30);
        drop(room.stop_on_drop());
        let Rendered::Incomplete(Incomplete { problems, .. }) = rendered(&files, &options, &room) else {
            panic!("{name} is rendered");
        };
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let is_of_time =
            |told: &String| ["exceeded its time limit", "ran out of time"].iter().any(|it| told.contains(it));
        assert!(told.iter().any(is_of_time), "{name}: {told:?}");
    }
}
