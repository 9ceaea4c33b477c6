//! Fields whose values always are text.
//!
//! In: the group and kind of an object, and the path of a field. Out: whether `8080` there is a
//! text and not a number.

use moorline_yaml::Step;

/// Maps from names to texts.
const TEXTS: [&str; 4] = ["annotations", "labels", "matchLabels", "nodeSelector"];
/// Lists of texts.
const LISTS: [&str; 2] = ["args", "command"];
/// Fields that are texts in every kind.
const FIELDS: [&str; 3] = ["image", "name", "namespace"];

/// True if the field is a text, no matter what its value looks like.
pub(super) fn is_text(group: &str, kind: &str, path: &[Step<'_>]) -> bool {
    let of_kind = match (group, kind) {
        ("", "ConfigMap") => matches!(path, [Step::Key("data" | "binaryData"), ..]),
        ("", "Secret") => matches!(path, [Step::Key("data" | "stringData" | "type"), ..]),
        _ => false,
    };
    let by_place = match path {
        [Step::Key("apiVersion" | "kind")] | [Step::Key("metadata"), ..] => true,
        [.., Step::Key("env"), Step::Item(_), Step::Key("value")] => true,
        [.., Step::Key(parent), Step::Key(field)] => TEXTS.contains(parent) || FIELDS.contains(field),
        [.., Step::Key(field)] => FIELDS.contains(field),
        [.., Step::Key(list), Step::Item(_)] => LISTS.contains(list),
        _ => false,
    };
    of_kind || by_place
}

/// True if the field is part of a name: of the object, a kind or a permission. Names are shown.
pub(super) fn is_name(group: &str, kind: &str, path: &[Step<'_>]) -> bool {
    let of_object = match path {
        [Step::Key("apiVersion" | "kind")] => true,
        [Step::Key("metadata"), Step::Key(field), ..] => !["annotations", "labels"].contains(field),
        _ => false,
    };
    let of_kind = match (group, kind) {
        ("rbac.authorization.k8s.io", _) => !matches!(path, [Step::Key("metadata"), ..]),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            matches!(path, [Step::Key("spec"), Step::Key("group" | "names" | "scope"), ..])
        }
        _ => false,
    };
    of_object || of_kind
}
