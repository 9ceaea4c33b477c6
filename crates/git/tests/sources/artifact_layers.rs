//! Layers of artifacts: archives, single files, and what a hostile one can do.

use std::time::{Duration, Instant};

use moorline_git::{HostPolicy, LayerSelection, Memory, Repositories};
use moorline_test_support::artifact_registry::{CONTENT, MANIFEST, RegistryFault, gzip, one_layer, tar};
use moorline_test_support::scene::text;
use serde_json::{Value, json};

use crate::artifacts::{Ground, tag};
use moorline_test_support::git_bench::soon;

#[tokio::test]
async fn a_layer_is_an_archive_or_one_file() {
    let ground = Ground::new();
    let archive = tar(&[("./sub/", b'5', b""), ("./sub/a.yaml", b'0', b"one")]);
    ground.registry.layer("shop", "gzip", "application/vnd.oci.image.layer.v1.tar+gzip", &gzip(&archive));
    ground.registry.layer("shop", "tar", "application/vnd.oci.image.layer.v1.tar", &archive);
    ground.registry.layer("shop", "lies", "text/yaml", &gzip(&archive));
    for name in ["gzip", "tar", "lies"] {
        assert_eq!(ground.at(name).await.unwrap(), ["sub/a.yaml=one"], "{name}");
    }
    let file = b"kind: ConfigMap";
    ground.registry.blob(file);
    let mut titled = one_layer("text/yaml", file);
    titled["layers"][0]["annotations"] = json!({"org.opencontainers.image.title": "deploy.yaml"});
    ground.registry.manifest("shop", "file", MANIFEST, &titled);
    assert_eq!(ground.at("file").await.unwrap(), ["deploy.yaml=kind: ConfigMap"]);
    ground.registry.layer("shop", "untitled", "application/json", b"{}");
    assert_eq!(ground.at("untitled").await.unwrap(), ["layer.json={}"]);
    // The same tag, read in two ways.
    let copied = ground.layered(None, true);
    let revision = copied.resolve(&tag("tar"), soon()).await.unwrap();
    let files = ground.files(&copied, &revision).await.unwrap();
    assert!(files.len() == 1 && files[0].starts_with("layer.yaml="), "{files:?}");
    // Two layers: a person chooses.
    let mut two = one_layer(CONTENT, &gzip(&archive));
    two["layers"] = json!([one_layer("a/b", file)["layers"][0], one_layer("c/d", b"{}")["layers"][0]]);
    ground.registry.manifest("shop", "two", MANIFEST, &two);
    assert!(ground.at("two").await.unwrap_err().contains("choose one by layer.mediaType: a/b, c/d"));
    let chosen = ground.layered(Some("a/b"), false);
    let revision = chosen.resolve(&tag("two"), soon()).await.unwrap();
    assert_eq!(ground.files(&chosen, &revision).await.unwrap(), ["layer.yaml=kind: ConfigMap"]);
}

#[tokio::test]
async fn a_hostile_archive_is_refused_by_name_and_leaves_nothing() {
    let ground = Ground::new();
    let zeros = vec![b' '; 8 << 20];
    let many: Vec<_> = (0..4).map(|at| format!("{at}.yaml")).collect();
    let bomb: Vec<_> = many.iter().map(|path| (path.as_str(), b'0', zeros.as_slice())).collect();
    type Entries<'a> = Vec<(&'a str, u8, &'a [u8])>;
    let table: [(&str, Entries<'_>); 7] = [
        ("has the link a.yaml", vec![("a.yaml", b'2', b"")]),
        ("leads elsewhere", vec![("../a.yaml", b'0', b"one")]),
        ("leads elsewhere", vec![("/a.yaml", b'0', b"one")]),
        ("which is no file", vec![("a.yaml", b'3', b"")]),
        ("has a.yaml twice", vec![("a.yaml", b'0', b"one"), ("a.yaml", b'0', b"two")]),
        ("where a folder of a/b is", vec![("a", b'0', b"one"), ("a/b", b'0', b"two")]),
        ("unpacks to more", bomb),
    ];
    for (number, (part, entries)) in table.iter().enumerate() {
        let name = format!("t{number}");
        ground.registry.layer("shop", &name, CONTENT, &gzip(&tar(entries)));
        let refused = ground.at(&name).await.unwrap_err();
        assert!(refused.starts_with("ArtifactArchiveInvalid") && refused.contains(part), "{part}: {refused}");
    }
    ground.registry.layer("shop", "v1", CONTENT, &gzip(b"no archive at all"));
    let repository = ground.repository();
    let revision = repository.resolve(&tag("v1"), soon()).await.unwrap();
    ground.registry.requests();
    for asked in [2, 0, 0] {
        let refused = ground.files(&repository, &revision).await.unwrap_err();
        assert!(refused.contains("ArtifactArchiveInvalid"), "{refused}");
        assert_eq!(ground.registry.requests().len(), asked, "it is fetched once");
    }
    ground.registry.push("shop", "good", &[text("a.yaml", "one")]);
    assert_eq!(ground.at("good").await.unwrap(), ["a.yaml=one"]);
    let rest = walk(&ground.root.path().join("data"));
    assert!(!rest.iter().any(|path| path.ends_with("unfinished")), "{rest:?}");
}

fn walk(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries
        .flat_map(|entry| match entry.path().is_dir() {
            true => walk(&entry.path()),
            false => vec![entry.path().display().to_string()],
        })
        .collect()
}

/// A layer as `oras push` makes it: a file, or the archive of a folder.
fn titled(ground: &Ground, title: &str, bytes: &[u8], is_folder: bool) -> Value {
    ground.registry.blob(bytes);
    let mut layer = one_layer("application/vnd.oci.image.layer.v1.tar", bytes)["layers"][0].clone();
    layer["annotations"] = json!({"org.opencontainers.image.title": title});
    if is_folder {
        layer["annotations"]["io.deis.oras.content.unpack"] = json!("true");
    }
    layer
}

fn push_layers(ground: &Ground, name: &str, layers: &[Value]) -> String {
    let mut manifest = one_layer(CONTENT, b"");
    manifest["layers"] = json!(layers);
    ground.registry.manifest("shop", name, MANIFEST, &manifest)
}

#[tokio::test]
async fn files_and_folders_of_oras_are_all_read() {
    let ground = Ground::new();
    let file = |title: &str, text: &str| titled(&ground, title, text.as_bytes(), false);
    push_layers(&ground, "files", &[file("a.yaml", "one"), file("sub/b.yaml", "two")]);
    assert_eq!(ground.at("files").await.unwrap(), ["a.yaml=one", "sub/b.yaml=two"]);
    // The archive of a folder has the title in its paths.
    let archive = gzip(&tar(&[("app", b'5', b""), ("app/c.yaml", b'0', b"three")]));
    let folder = titled(&ground, "app", &archive, true);
    push_layers(&ground, "both", &[folder.clone(), file("a.yaml", "one")]);
    assert_eq!(ground.at("both").await.unwrap(), ["a.yaml=one", "app/c.yaml=three"]);
    let root = titled(&ground, ".", &archive, true);
    push_layers(&ground, "root", &[root, file("a.yaml", "one")]);
    assert_eq!(ground.at("root").await.unwrap(), ["a.yaml=one", "app/c.yaml=three"]);
    // An archive that is no folder is a file, and so is each one that is copied.
    push_layers(&ground, "packed", &[titled(&ground, "app.tgz", &archive, false), file("a.yaml", "one")]);
    assert!(ground.at("packed").await.unwrap()[1].starts_with("app.tgz=\u{1f}"));
    let copied = ground.layered(None, true);
    let revision = copied.resolve(&tag("both"), soon()).await.unwrap();
    let files = ground.files(&copied, &revision).await.unwrap();
    assert!(files.len() == 2 && files[1].starts_with("app=\u{1f}"), "{files:?}");
    // A media type selects some of the layers.
    let mut other = file("d.yaml", "four");
    other["mediaType"] = json!("text/yaml");
    push_layers(&ground, "types", &[folder, other, file("a.yaml", "one")]);
    let chosen = ground.layered(Some("application/vnd.oci.image.layer.v1.tar"), false);
    let revision = chosen.resolve(&tag("types"), soon()).await.unwrap();
    assert_eq!(ground.files(&chosen, &revision).await.unwrap(), ["a.yaml=one", "app/c.yaml=three"]);
}

#[tokio::test]
async fn several_layers_cost_one_head_until_the_tag_moves() {
    let ground = Ground::new();
    let file = |title: &str, text: &str| titled(&ground, title, text.as_bytes(), false);
    push_layers(&ground, "v1", &[file("a.yaml", "one"), file("b.yaml", "two"), file("c.yaml", "one")]);
    let repository = ground.repository();
    let first = repository.resolve(&tag("v1"), soon()).await.unwrap();
    assert_eq!(ground.registry.requests(), ["HEAD shop/manifests/v1"]);
    assert_eq!(ground.files(&repository, &first).await.unwrap(), ["a.yaml=one", "b.yaml=two", "c.yaml=one"]);
    let asked = ground.registry.requests();
    let blobs = asked.iter().filter(|request| request.starts_with("GET shop/blobs/")).count();
    assert_eq!((asked.len(), blobs), (3, 2), "equal content is fetched once: {asked:?}");
    let second = push_layers(&ground, "v1", &[file("a.yaml", "one"), file("b.yaml", "three")]);
    for _ in 0..2 {
        let found = repository.resolve(&tag("v1"), soon()).await.unwrap();
        assert_eq!(found.to_string(), format!("v1@{second}"));
        assert_eq!(ground.registry.requests(), ["HEAD shop/manifests/v1"]);
    }
    let moved = repository.resolve(&tag("v1"), soon()).await.unwrap();
    assert_eq!(ground.files(&repository, &moved).await.unwrap(), ["a.yaml=one", "b.yaml=three"]);
    assert_eq!(ground.files(&repository, &first).await.unwrap().len(), 3, "the previous one is kept");
}

#[tokio::test]
async fn each_of_several_layers_is_verified() {
    let ground = Ground::new();
    let (one, mut two) = (titled(&ground, "a", b"one", false), titled(&ground, "b", b"two", false));
    ground.registry.fault(RegistryFault::OtherLayer);
    push_layers(&ground, "v1", &[one.clone(), two.clone()]);
    assert!(ground.at("v1").await.unwrap_err().starts_with("ArtifactDigestDiffers"));
    ground.registry.fault(RegistryFault::None);
    assert_eq!(ground.at("v1").await.unwrap(), ["a=one", "b=two"]);
    // The last layer alone has another size than is announced.
    two["size"] = json!(2);
    push_layers(&ground, "v2", &[one, two]);
    assert!(ground.at("v2").await.unwrap_err().starts_with("ArtifactDigestDiffers"));
}

#[tokio::test]
async fn hostile_titles_and_too_many_bytes_over_all_layers_are_refused() {
    let ground = Ground::new();
    let file = |title: &str| titled(&ground, title, b"one", false);
    let folder = |title: &str, path: &str| titled(&ground, title, &gzip(&tar(&[(path, b'0', b"two")])), true);
    let spaces = |path: &str| {
        let archive = gzip(&tar(&[(path, b'0', &[b' '; 3 << 20])]));
        let rest = path.split('/').next().unwrap();
        titled(&ground, rest, &archive, true)
    };
    let mut large = [file("a"), titled(&ground, "b", b"two", false)];
    large.iter_mut().for_each(|layer| layer["size"] = json!(200_u64 << 20));
    let untitled = || one_layer("a/b", b"one")["layers"][0].clone();
    // Each with the number of requests for layers.
    let table: [(&str, &str, [Value; 2], usize); 10] = [
        ("ArtifactUnreadable", "title ../a is a path that leads elsewhere", [file("../a"), file("b")], 0),
        ("ArtifactUnreadable", "title /a is a path that leads elsewhere", [file("b"), file("/a")], 0),
        ("ArtifactUnreadable", "two layers with the path a", [file("a"), file("./a")], 0),
        ("ArtifactUnreadable", "are allowed", large, 0),
        ("ArtifactUnreadable", "push the files by moorline push or oras push", [untitled(), untitled()], 0),
        ("ArtifactArchiveInvalid", "where a folder of a/b is", [file("a"), file("a/b")], 1),
        ("ArtifactArchiveInvalid", "has a/b twice", [file("a/b"), folder("a", "a/b")], 2),
        ("ArtifactArchiveInvalid", "which is not in a, the title", [file("b"), folder("a", "ab/c")], 2),
        ("ArtifactArchiveInvalid", "leads elsewhere", [file("b"), folder("a", "a/../c")], 2),
        ("ArtifactArchiveInvalid", "unpacks to more", [spaces("a/b"), spaces("c/b")], 2),
    ];
    push_layers(&ground, "fits", &[spaces("a/b"), file("b")]);
    assert_eq!(ground.at("fits").await.unwrap().len(), 2, "one such layer is allowed");
    for (number, (reason, part, layers, fetched)) in table.iter().enumerate() {
        let name = format!("t{number}");
        push_layers(&ground, &name, layers);
        ground.registry.requests();
        let refused = ground.at(&name).await.unwrap_err();
        assert!(refused.starts_with(reason) && refused.contains(part), "{part}: {refused}");
        let asked = ground.registry.requests();
        let blobs = asked.iter().filter(|request| request.contains("/blobs/")).count();
        assert_eq!(blobs, *fetched, "{part}: {asked:?}");
    }
    let rest = walk(&ground.root.path().join("data"));
    assert!(!rest.iter().any(|path| path.ends_with("unfinished")), "{rest:?}");
}

/// The smallest daemon has 9 MiB for packs: what is fetched is not held in memory.
#[tokio::test]
async fn ten_thousand_files_are_fetched_with_little_memory() {
    let ground = Ground::new();
    let memory = Memory::new(Some(64 << 20));
    let hosts = HostPolicy::new("allowedHosts", ["*"]).unwrap().with_loopback();
    let data = ground.root.path().join("small");
    let repositories = Repositories::with_limits(&data, None, hosts, (memory, 1 << 30)).unwrap();
    let mut number = 1_u64;
    let mut line = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{number:016x}")
    };
    let files: Vec<(String, String)> = (0..10_000)
        .map(|at| text(&format!("{}/{at}.yaml", at % 100), &(0..312).map(|_| line()).collect::<String>()))
        .collect();
    assert!(files.iter().map(|(_, text)| text.len()).sum::<usize>() > 49_000_000);
    ground.registry.push("shop", "v1", &files);
    let address = ground.address(LayerSelection::default());
    let repository = repositories.repository(&address, "", &ground.credentials(&[])).unwrap();
    let by = Instant::now() + Duration::from_secs(120);
    let revision = repository.resolve(&tag("v1"), by).await.unwrap();
    let begun = Instant::now();
    let bytes = repository.fetch(&revision, by).await.unwrap();
    println!("{bytes} bytes fetched in {:?}", begun.elapsed());
    let snapshot = repository.read(&revision, &["7"], by).await.unwrap();
    assert_eq!(snapshot.files.entries().count(), 100);
}
