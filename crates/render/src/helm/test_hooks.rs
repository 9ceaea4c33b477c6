//! Makes the tests of a chart run after each sync.
//!
//! In: an object in the output of helm. Out: the same object; a test also has the annotations of a
//! Moorline hook, which take precedence over Helm's.

use moorline_api::{HELM_HOOK_ANNOTATIONS, HOOK_ANNOTATION, HOOK_DELETE_ANNOTATION};
use serde_json::{Map, Value};

/// Words of Helm for a test that has to succeed.
const TESTS: [&str; 2] = ["test", "test-success"];

/// Words of Helm for the time after all other objects, at which tests run as well.
const AFTER: [&str; 2] = ["post-install", "post-upgrade"];

/// Results after which a hook is deleted: for Helm, and for Moorline.
const DELETED: [(&str, &str); 2] = [("hook-succeeded", "succeeded"), ("hook-failed", "failed")];

/// Makes an object a hook after the sync, if it is a test, and not also a hook of another time.
pub(super) fn run_tests_after_sync(body: &mut Map<String, Value>) {
    let Some(annotations) = body.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"))
    else {
        return;
    };
    let Some(annotations) = annotations.as_object_mut() else { return };
    let [hook, delete] = HELM_HOOK_ANNOTATIONS;
    let words = |key: &str| -> Vec<String> {
        let text = annotations.get(key).and_then(Value::as_str).unwrap_or_default();
        text.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
    };
    let times = words(hook);
    let is_test = times.iter().any(|word| TESTS.contains(&&**word));
    let is_of_other_time = times.iter().any(|word| !TESTS.contains(&&**word) && !AFTER.contains(&&**word));
    if !is_test || is_of_other_time || annotations.contains_key(HOOK_ANNOTATION) {
        return;
    }
    let policies = words(delete);
    let policies = DELETED.iter().filter(|(theirs, _)| policies.iter().any(|word| word == theirs));
    let policies: Vec<&str> = policies.map(|(_, ours)| *ours).collect();
    annotations.insert(HOOK_ANNOTATION.to_owned(), "after".into());
    if !policies.is_empty() && !annotations.contains_key(HOOK_DELETE_ANNOTATION) {
        annotations.insert(HOOK_DELETE_ANNOTATION.to_owned(), policies.join(",").into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_test_is_a_hook_after_the_sync() {
        let (hook, delete) = (HOOK_ANNOTATION, HOOK_DELETE_ANNOTATION);
        for (theirs, more) in [
            (json!({"helm.sh/hook": "test"}), json!({hook: "after"})),
            (json!({"helm.sh/hook": "post-install, test-success"}), json!({hook: "after"})),
            (
                json!({"helm.sh/hook": "test", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"}),
                json!({hook: "after", delete: "succeeded"}),
            ),
            (json!({"helm.sh/hook": "test", hook: "before"}), json!({})),
            (json!({"helm.sh/hook": "pre-install,test"}), json!({})),
            (json!({"helm.sh/hook": "test-failure"}), json!({})),
            (json!({"helm.sh/hook": "post-install"}), json!({})),
            (json!({"note": "test"}), json!({})),
        ] {
            let mut expect = theirs.clone();
            expect.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let mut body = json!({"metadata": {"annotations": theirs}});
            run_tests_after_sync(body.as_object_mut().unwrap());
            assert_eq!(body["metadata"]["annotations"], expect);
        }
        for mut body in [json!({}), json!({"metadata": {"annotations": null}}), json!({"metadata": 7})] {
            let same = body.clone();
            run_tests_after_sync(body.as_object_mut().unwrap());
            assert_eq!(body, same);
        }
    }
}
