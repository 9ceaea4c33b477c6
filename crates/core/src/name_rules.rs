//! Rules of the API server for names, namespaces, labels and similar texts.
//!
//! In: a text. Out: predicates (`is_...`), and rules with a message: a rule returns none for a
//! valid text, else a clause that says what is wrong. A rule never refuses a text that the API
//! server accepts: if kinds differ and a kind is unknown, the loosest rule applies.

/// Most bytes of a DNS label, of the name in a key, and of a label's value.
pub const MAX_LABEL: usize = 63;

/// Most bytes of a DNS subdomain.
pub const MAX_SUBDOMAIN: usize = 253;

/// Most bytes of the name of a Sync: the field manager made of it and its namespace may have at
/// most 128.
const MAX_SYNC_NAME: usize = 52;

const DNS_LABEL: &str =
    "must be at most 63 lower-case letters, digits and '-', and begin and end with a letter or digit";
const DNS_SUBDOMAIN: &str = "must be at most 253 lower-case letters, digits, '-' and '.', and each part between dots must begin and end with a letter or digit";
const SYNC_NAME: &str = "must be at most 52 lower-case letters, digits, '-' and '.', and each part between dots must begin and end with a letter or digit";
const PATH_SEGMENT: &str = "must not be '.' or '..', and must not contain '/' or '%'";
const SERVICE: &str =
    "must be at most 63 lower-case letters, digits and '-', and begin and end with a letter or digit";
const QUALIFIED: &str = "must be a key such as name or example.com/name: an optional DNS name and '/', then at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit";
const LABEL_VALUE: &str =
    "must be at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit";
const KIND: &str = "must be at most 63 letters, digits and '-', beginning with a letter";
const API_VERSION: &str = "must be a version such as v1, or a group and version such as apps/v1";

/// Groups of Kubernetes itself in which every name is a DNS subdomain. RBAC and certificates are
/// not among them (`system:node`), nor are kinds of other API servers, whose rules are unknown.
const SUBDOMAIN_GROUPS: [&str; 12] = [
    "",
    "apps",
    "batch",
    "autoscaling",
    "policy",
    "storage.k8s.io",
    "scheduling.k8s.io",
    "node.k8s.io",
    "coordination.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "discovery.k8s.io",
];

/// Rule for `metadata.name` of a kind.
pub fn name(group: &str, kind: &str, name: &str) -> Option<&'static str> {
    match (group, kind) {
        ("", "Namespace") => namespace(name),
        ("", "Service") => broken(is_dns_label(name), SERVICE),
        _ if SUBDOMAIN_GROUPS.contains(&group) => broken(is_dns_subdomain(name), DNS_SUBDOMAIN),
        ("networking.k8s.io", "Ingress" | "NetworkPolicy" | "IngressClass") => {
            broken(is_dns_subdomain(name), DNS_SUBDOMAIN)
        }
        _ => broken(
            !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '%']),
            PATH_SEGMENT,
        ),
    }
}

/// Rule for the name of a Sync.
pub fn sync_name(text: &str) -> Option<&'static str> {
    broken(is_dns_subdomain(text) && text.len() <= MAX_SYNC_NAME, SYNC_NAME)
}

/// Rule for namespaces.
pub fn namespace(text: &str) -> Option<&'static str> {
    broken(is_dns_label(text), DNS_LABEL)
}

/// Rule for `kind`.
pub fn kind(text: &str) -> Option<&'static str> {
    let sound = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && text.len() <= MAX_LABEL;
    broken(sound, KIND)
}

/// Rule for `apiVersion`.
pub fn api_version(text: &str) -> Option<&'static str> {
    let sound = match text.split_once('/') {
        Some((group, version)) => is_dns_subdomain(group) && is_dns_label(version),
        None => is_dns_label(text),
    };
    broken(sound, API_VERSION)
}

/// Rule for keys of annotations, which may have capitals before the slash.
pub fn annotation_key(text: &str) -> Option<&'static str> {
    qualified_name(&lower_key(text))
}

/// Rule for keys of labels.
pub fn qualified_name(text: &str) -> Option<&'static str> {
    let is_name = |text: &str| text.len() <= MAX_LABEL && has_key_form(text);
    let sound = match text.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_name(name),
        None => is_name(text),
    };
    broken(sound, QUALIFIED)
}

/// Rule for values of labels.
pub fn label_value(text: &str) -> Option<&'static str> {
    broken(text.is_empty() || text.len() <= MAX_LABEL && has_key_form(text), LABEL_VALUE)
}

/// Most bytes of a release's name; helm limits it because other names are built from it.
const MAX_RELEASE: usize = 53;

/// True for a name that helm accepts for a release.
pub fn is_release(name: &str) -> bool {
    name.len() <= MAX_RELEASE && is_dns_subdomain(name)
}

fn broken(sound: bool, rule: &'static str) -> Option<&'static str> {
    (!sound).then_some(rule)
}

/// True for a DNS label of RFC 1123, such as `my-name`.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= MAX_LABEL && has_dns_label_form(text)
}

/// True for a DNS subdomain of RFC 1123, such as `example.com`.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= MAX_SUBDOMAIN && has_dns_subdomain_form(text)
}

/// True for the characters of a DNS label, at any length.
pub fn has_dns_label_form(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// True for the characters of a DNS subdomain, at any length.
pub fn has_dns_subdomain_form(text: &str) -> bool {
    text.split('.').all(has_dns_label_form)
}

/// True for the characters of the name in a key, and of the value of a label that is not empty, at
/// any length.
pub fn has_key_form(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = |char: char| char.is_ascii_alphanumeric();
    text.bytes().all(inner) && text.starts_with(ends) && text.ends_with(ends)
}

/// Returns the key of an annotation as the API server checks it: in lower case, character by
/// character, so that the Kelvin sign is a `k`.
pub fn lower_key(key: &str) -> String {
    key.chars().filter_map(|char| char.to_lowercase().next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule_of_their_kind() {
        let good = |group, kind, text: &str| assert_eq!(name(group, kind, text), None, "{kind} {text}");
        let bad = |group, kind, text: &str| assert!(name(group, kind, text).is_some(), "{kind} {text}");
        good("apps", "Deployment", "web.v1-2");
        good("", "Service", "1web");
        good("rbac.authorization.k8s.io", "ClusterRole", "system:node|x");
        good("image.openshift.io", "ImageStreamTag", "Web:Latest");
        bad("apps", "Deployment", "Web");
        bad("apps", "Deployment", "web..v1");
        bad("apps", "Deployment", "web_1");
        bad("", "Service", "web.v1");
        bad("", "Namespace", "a.b");
        bad("rbac.authorization.k8s.io", "ClusterRole", "a/b");
        bad("rbac.authorization.k8s.io", "ClusterRole", "..");
        bad("", "ConfigMap", &"a".repeat(254));
    }

    #[test]
    fn texts_follow_their_rules() {
        assert_eq!(api_version("v1"), None);
        assert_eq!(api_version("apps/v1beta1"), None);
        assert!(api_version("apps/v1/x").is_some());
        assert!(api_version("").is_some());
        assert_eq!(kind("postgresql"), None);
        assert!(kind("Deploy ment").is_some());
        assert_eq!(qualified_name("app.kubernetes.io/name"), None);
        assert_eq!(qualified_name("A_b"), None);
        assert_eq!(annotation_key("Example.com/a"), None);
        assert_eq!(annotation_key("\u{212a}/\u{130}"), None);
        assert!(qualified_name("Example.com/a").is_some());
        assert!(qualified_name("a/b/c").is_some());
        assert!(qualified_name("-a").is_some());
        assert_eq!(label_value(""), None);
        assert!(label_value("a b").is_some());
    }

    #[test]
    fn lengths_are_bounded() {
        let check = |rule: fn(&str) -> Option<&'static str>, text: String, fits: bool| {
            assert_eq!(rule(&text).is_none(), fits, "{} bytes", text.len());
        };
        let long = |count: usize| "a".repeat(count);
        let domain = |count: usize| format!("{}{}", "a.".repeat(100), long(count - 200));
        check(namespace, long(63), true);
        check(namespace, long(64), false);
        check(sync_name, long(52), true);
        check(sync_name, long(53), false);
        check(kind, long(63), true);
        check(kind, long(64), false);
        check(label_value, long(63), true);
        check(label_value, long(64), false);
        for rule in [qualified_name, annotation_key] {
            check(rule, long(63), true);
            check(rule, long(64), false);
            check(rule, format!("{}/{}", domain(253), long(63)), true);
            check(rule, format!("{}/a", domain(254)), false);
            check(rule, format!("a/{}", long(64)), false);
        }
        check(|text| name("apps", "Deployment", text), domain(253), true);
        check(|text| name("apps", "Deployment", text), domain(254), false);
    }

    /// The expressions are those of the API server's messages.
    #[test]
    fn short_texts_are_judged_as_the_expressions_of_the_server_judge_them() {
        let expression = |text: &str| regex::Regex::new(&format!("^(?:{text})$")).unwrap();
        let label = expression("[a-z0-9]([-a-z0-9]*[a-z0-9])?");
        let subdomain = expression(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
        let key_name = expression("([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]");
        let value = expression("(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?");
        let qualified = |text: &str| match text.split('/').collect::<Vec<_>>()[..] {
            [name] => key_name.is_match(name),
            [prefix, name] => subdomain.is_match(prefix) && key_name.is_match(name),
            _ => false,
        };
        let mut texts = vec![String::new()];
        let mut count = 0;
        for length in 0..=5 {
            for text in &texts {
                assert_eq!(text.chars().count(), length);
                assert_eq!(is_dns_label(text), label.is_match(text), "{text:?}");
                assert_eq!(namespace(text).is_none(), label.is_match(text), "{text:?}");
                assert_eq!(is_dns_subdomain(text), subdomain.is_match(text), "{text:?}");
                assert_eq!(sync_name(text).is_none(), subdomain.is_match(text), "{text:?}");
                assert_eq!(has_key_form(text), key_name.is_match(text), "{text:?}");
                assert_eq!(label_value(text).is_none(), value.is_match(text), "{text:?}");
                assert_eq!(qualified_name(text).is_none(), qualified(text), "{text:?}");
                assert_eq!(annotation_key(text).is_none(), qualified(&text.to_lowercase()), "{text:?}");
                count += 1;
            }
            let longer = texts
                .iter()
                .flat_map(|text| ['a', 'Z', '0', '-', '_', '.', '/', 'é'].map(|end| format!("{text}{end}")));
            texts = longer.collect();
        }
        assert_eq!(count, (0..=5).map(|length| 8_usize.pow(length)).sum::<usize>());
    }
}
