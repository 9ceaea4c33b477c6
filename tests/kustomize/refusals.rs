//! The classes of refusals: a closed list of words, for what the tool says and for what Moorline says.

use moorline::kustomize::{ErrorClass, KustomizeError};

/// Every class, with parts of the tool's sentences by which it is known; the first row that fits holds, so what
/// stands at the end of a long sentence comes before what stands in all of them.
const CLASSES: &[(&str, &[&str])] = &[
    // Places of files.
    ("cycle", &["cycle detected"]),
    ("restricted", &["is not in or below"]),
    ("link-loop", &["too many links"]),
    ("not-a-component", &["expected kind 'Component'"]),
    ("component-as-resource", &["expected kind != 'Component'"]),
    ("two-kustomizations", &["Found multiple kustomization files"]),
    ("empty-kustomization", &["kustomization.yaml is empty"]),
    ("wrong-kind", &["apiVersion for ", "kind should be "]),
    // Content of a patch.
    ("patch-target", &["no matches for Id"]),
    (
        "patch-invalid",
        &[
            "must specify a target for JSON patch",
            "Multiple Strategic-Merge Patches",
            "must specify one of patch and path",
            "patch and path can't be set",
            "unable to parse SM or JSON patch",
            "unknown patch strategy",
            "jsonpatch.Patch",
            "PatchJson6902TransformerPlugin).Config",
            "looking for beginning of",
            "after top-level value",
        ],
    ),
    (
        "json-patch",
        &[
            "missing value",
            "invalid index referenced",
            "test failed",
            "Unexpected kind: ",
            "visitFieldsWhileTrue",
        ],
    ),
    ("selector", &["unable to parse requirement", "error parsing regexp", "regexp.(*Regexp).doExecute"]),
    // Content of other fields.
    (
        "generator",
        &[
            "invalid literal source",
            "illegally repeats the key",
            "missing file path for key",
            "missing key name for file",
            "contains '='",
            "invalid utf8 bytes",
            "must have a name",
            "not supported yet",
        ],
    ),
    ("subject", &["namespace is blank for resource", "getNamespacesForRoleBinding"]),
    ("behaviour", &["can not use behavior", "cannot merge or replace", "that could accept merge"]),
    ("field-specs", &["conflicting fieldspecs"]),
    ("no-match", &["does not match a config with"]),
    (
        "replacement",
        &[
            "replacement target",
            "replacement source",
            "nothing selected by",
            "multiple matches for selector",
            "replacements must specify",
            "target must specify resources",
            "are mutually exclusive",
            "is out of bounds for value",
            "delimiter option",
        ],
    ),
    (
        "variable",
        &["known resources", "in corresponding resource", "already encountered", "unable to disambiguate"],
    ),
    (
        "schema",
        &[
            "specified OpenAPI version",
            "builtin version and custom schema",
            "invalid schema file",
            "unable to parse open API definition",
        ],
    ),
    ("plugin", &["unable to load builtin", "fails configuration", "validator shouldn't"]),
    ("order", &["'sortOptions."]),
    ("exec", &["external plugins disabled", "--enable-exec", "--enable-alpha-plugins"]),
    ("helm", &["--enable-helm"]),
    ("remote", &["no 'git' program on path", "HTTP Error", "proxyconnect"]),
    // Objects and files in general.
    ("duplicate-id", &["already registered id", "produces ID conflict"]),
    ("not-an-object", &["missing metadata.name", "missing kind in object", "missing Resource metadata"]),
    ("unknown-field", &["unknown field"]),
    ("wrong-type", &["cannot unmarshal", "cannot decode", "wrong node kind", "expected sequence or mapping"]),
    ("yaml", &["MalformedYAMLError", "yaml: ", "unsupported type: map[interface", "unsupported value: "]),
    ("too-large", &[]),
    ("missing-kustomization", &["unable to find one of 'kustomization.yaml'"]),
    ("missing-file", &["no such file or directory", "new root cannot be empty"]),
    ("not-a-file", &["must resolve to a file"]),
    ("not-a-directory", &["file is not directory"]),
];

/// The class of the tool's refusal; none where no row fits.
pub(crate) fn of_tool(text: &str) -> Option<&'static str> {
    let fits = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    CLASSES.iter().find(|(_, parts)| fits(parts)).map(|(class, _)| *class)
}

/// A class by its word.
pub(crate) fn named(word: &str) -> Option<&'static str> {
    CLASSES.iter().map(|(class, _)| *class).find(|class| *class == word)
}

/// The class of a refusal of ours; none where the two are not divided alike.
pub(crate) fn of_fault(fault: &KustomizeError) -> Option<&'static str> {
    match fault.class {
        ErrorClass::Cycle => Some("cycle"),
        ErrorClass::UnknownField => Some("unknown-field"),
        ErrorClass::Duplicate => Some("duplicate-id"),
        _ => None,
    }
}

#[test]
fn every_class_is_one_word_and_known_by_its_own_sentences() {
    for (at, (class, parts)) in CLASSES.iter().enumerate() {
        assert!(class.chars().all(|char| char.is_ascii_lowercase() || char == '-'), "{class}");
        assert_eq!(named(class), Some(*class));
        assert!(CLASSES[..at].iter().all(|(earlier, _)| earlier != class), "{class} stands twice");
        for part in *parts {
            assert_eq!(of_tool(&format!("Error: {part}")), Some(*class), "{part}");
        }
    }
    assert_eq!(of_tool("Error: something else"), None);
}
