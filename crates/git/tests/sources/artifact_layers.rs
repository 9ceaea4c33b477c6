//! Layers of artifacts: archives, single files, and what a hostile one can do.

use std::time::{Duration, Instant};

use moorline_git::{HostPolicy, LayerSelection, Memory, Repositories};
use moorline_test_support::artifact_registry::{CONTENT, MANIFEST, gzip, one_layer, tar};
use moorline_test_support::scene::text;
use serde_json::json;

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
