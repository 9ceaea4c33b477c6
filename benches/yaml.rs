//! Speed of reading and writing YAML.
//!
//! In: the text of `tests/yaml/crds.rs`.
//! Out: bytes a second, on one core. `cargo bench --bench yaml`.

#[path = "../tests/yaml/crds.rs"]
mod crds;

use divan::Bencher;
use divan::counter::BytesCount;
use moorline::yaml::{Dialect, read, write};

/// Size of a large tree of CRDs.
const TREE_BYTES: usize = 12 * 1024 * 1024;

fn main() {
    divan::main();
}

#[divan::bench(args = [Dialect::Kubectl, Dialect::Kustomize], sample_count = 10)]
fn read_crds(bencher: Bencher<'_, '_>, dialect: Dialect) {
    let files = crds::crds(TREE_BYTES);
    let bytes: usize = files.iter().map(String::len).sum();
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        for file in &files {
            divan::black_box(read("crd.yaml", file.as_bytes(), dialect).expect("reads"));
        }
    });
}

#[divan::bench(args = [Dialect::Kubectl, Dialect::Kustomize], sample_count = 10)]
fn read_8000_documents(bencher: Bencher<'_, '_>, dialect: Dialect) {
    let text = crds::documents(8000);
    bencher
        .counter(BytesCount::new(text.len()))
        .bench(|| divan::black_box(read("all.yaml", text.as_bytes(), dialect).expect("reads")));
}

#[divan::bench(sample_count = 10)]
fn write_crds(bencher: Bencher<'_, '_>) {
    let files = crds::crds(TREE_BYTES);
    let read = |file: &String| read("crd.yaml", file.as_bytes(), Dialect::Kubectl).expect("reads");
    let values: Vec<_> = files.iter().flat_map(read).map(|document| document.value).collect();
    let bytes: usize = values.iter().map(|value| write(value).len()).sum();
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        for value in &values {
            divan::black_box(write(value));
        }
    });
}
