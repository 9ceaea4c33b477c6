//! Text to measure the YAML reader with: CRDs as generators write them, and many small documents.
//!
//! In: a size. Out: the same text every time. The words are made up here, so that no one's data is needed;
//! the shape is that of real CRDs: deep schemas, long descriptions folded or as literal blocks, enums,
//! defaults, patterns and required lists.

use std::fmt::Write as _;

const WORDS: &[&str] = &[
    "the",
    "field",
    "of",
    "resource",
    "when",
    "controller",
    "selects",
    "a",
    "value",
    "is",
    "not",
    "set",
    "and",
    "must",
    "be",
    "reconciled",
    "before",
    "replicas",
    "are",
    "available",
    "within",
    "namespace",
    "defaults",
    "to",
    "policy",
    "storage",
    "listener",
    "certificate",
    "requests",
    "limits",
    "for",
    "each",
    "container",
];

const FIELDS: &[&str] = &[
    "affinity",
    "backend",
    "capacity",
    "deadline",
    "endpoint",
    "filter",
    "gateway",
    "headers",
    "interval",
    "jitter",
    "keyRef",
    "listeners",
    "maxSurge",
    "nodeSelector",
    "options",
    "parameters",
    "quota",
    "retries",
    "selector",
    "tolerations",
    "upstream",
    "volume",
    "weight",
    "zone",
];

/// Numbers without chance: the same sequence in every run.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn sentence(&mut self, words: usize) -> String {
        let words: Vec<_> = (0..words).map(|_| WORDS[self.below(WORDS.len())]).collect();
        words.join(" ")
    }
}

/// A tree of CRD files with about so many bytes in all.
pub(crate) fn crds(bytes: usize) -> Vec<String> {
    let mut sequence = Sequence(42);
    let mut files = Vec::new();
    let mut size = 0;
    while size < bytes {
        let file = crd(&mut sequence, files.len());
        size += file.len();
        files.push(file);
    }
    files
}

/// So many small documents in one file.
pub(crate) fn documents(count: usize) -> String {
    let mut out = String::new();
    for number in 0..count {
        let _ = write!(
            out,
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings-{number}\n  namespace: shop\n  labels:\n    \
             app: shop\n    tier: \"{number}\"\ndata:\n  LOG_LEVEL: info\n  TIMEOUT: 30s\n  FLAGS: |\n    a=1\n    b=2\n---\n"
        );
    }
    out
}

fn crd(sequence: &mut Sequence, number: usize) -> String {
    let mut out = format!(
        "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  annotations:\n    \
         controller-gen.kubebuilder.io/version: v0.16.5\n  name: things{number}.example.dev\nspec:\n  \
         group: example.dev\n  names:\n    kind: Thing{number}\n    listKind: Thing{number}List\n    \
         plural: things{number}\n    singular: thing{number}\n  scope: Namespaced\n  versions:\n  - name: v1\n    \
         schema:\n      openAPIV3Schema:\n        description: Thing{number} is made up.\n        \
         properties:\n"
    );
    for top in ["spec", "status"] {
        let _ = writeln!(out, "          {top}:");
        object(&mut out, sequence, 12, 3);
    }
    out.push_str(
        "        type: object\n    served: true\n    storage: true\n    subresources:\n      status: {}\n",
    );
    out
}

/// The schema of an object with some fields, at a column.
fn object(out: &mut String, sequence: &mut Sequence, column: usize, depth: usize) {
    let pad = " ".repeat(column);
    describe(out, sequence, &pad);
    let _ = writeln!(out, "{pad}properties:");
    let first = sequence.below(FIELDS.len());
    let fields: Vec<_> = (0..4 + sequence.below(4)).map(|n| FIELDS[(first + n) % FIELDS.len()]).collect();
    for (position, field) in fields.iter().enumerate() {
        let _ = writeln!(out, "{pad}  {field}:");
        match depth {
            0 => leaf(out, sequence, &" ".repeat(column + 4)),
            _ if position >= 3 => leaf(out, sequence, &" ".repeat(column + 4)),
            _ => object(out, sequence, column + 4, depth - 1),
        }
    }
    let _ = write!(out, "{pad}required:\n{pad}- {}\n{pad}- {}\n{pad}type: object\n", fields[0], fields[1]);
}

fn leaf(out: &mut String, sequence: &mut Sequence, pad: &str) {
    describe(out, sequence, pad);
    match sequence.below(4) {
        0 => {
            let _ =
                write!(out, "{pad}format: int32\n{pad}minimum: 0\n{pad}maximum: 65535\n{pad}type: integer\n");
        }
        1 => {
            let _ = write!(
                out,
                "{pad}enum:\n{pad}- Always\n{pad}- Never\n{pad}default: Always\n{pad}type: string\n"
            );
        }
        2 => {
            let _ = write!(
                out,
                "{pad}pattern: ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$\n{pad}maxLength: 63\n{pad}type: string\n"
            );
        }
        _ => {
            let _ = write!(
                out,
                "{pad}additionalProperties:\n{pad}  anyOf:\n{pad}  - type: integer\n{pad}  - type: string\n\
                 {pad}  x-kubernetes-int-or-string: true\n{pad}type: object\n"
            );
        }
    }
}

fn describe(out: &mut String, sequence: &mut Sequence, pad: &str) {
    match sequence.below(3) {
        0 => {
            let _ = writeln!(out, "{pad}description: {}", sequence.sentence(8));
        }
        1 => {
            let _ = writeln!(out, "{pad}description: {}", sequence.sentence(12));
            for _ in 0..2 {
                let _ = writeln!(out, "{pad}  {}", sequence.sentence(12));
            }
        }
        _ => {
            let _ = writeln!(out, "{pad}description: |-");
            for _ in 0..4 {
                let _ = writeln!(out, "{pad}  {}", sequence.sentence(11));
            }
        }
    }
}
