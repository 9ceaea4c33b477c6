//! Rules of the API server for names, namespaces, labels and similar texts.
//!
//! Each rule returns none for a valid text, else a clause that says what is wrong. A rule never
//! refuses a text that the API server accepts: if kinds differ and a kind is unknown, the loosest
//! rule applies.

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
        ("", "Namespace") => dns_label(name),
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

/// Rule for the name of a Sync: the field manager made of it and its namespace may have at most 128
/// bytes.
pub fn sync_name(text: &str) -> Option<&'static str> {
    broken(is_dns_subdomain(text) && text.len() <= 52, SYNC_NAME)
}

/// Rule for namespaces.
pub fn dns_label(text: &str) -> Option<&'static str> {
    broken(is_dns_label(text), DNS_LABEL)
}

/// Rule for `kind`.
pub fn kind(text: &str) -> Option<&'static str> {
    let sound = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && text.len() <= 63;
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
    qualified_name(&text.to_ascii_lowercase())
}

/// Rule for keys of labels.
pub fn qualified_name(text: &str) -> Option<&'static str> {
    let sound = match text.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_label_text(name),
        None => is_label_text(text),
    };
    broken(sound, QUALIFIED)
}

/// Rule for values of labels.
pub fn label_value(text: &str) -> Option<&'static str> {
    broken(text.is_empty() || is_label_text(text), LABEL_VALUE)
}

/// Most bytes of a release's name; helm limits it because other names are built from it.
const MAX_RELEASE: usize = 53;

/// True for a name that helm accepts for a release.
pub fn is_release(name: &str) -> bool {
    let end = |part: &str| part.starts_with(is_alphanumeric) && part.ends_with(is_alphanumeric);
    let inner = |char: char| is_alphanumeric(char) || char == '-' || char == '.';
    name.len() <= MAX_RELEASE && name.chars().all(inner) && name.split('.').all(end)
}

fn is_alphanumeric(char: char) -> bool {
    char.is_ascii_lowercase() || char.is_ascii_digit()
}

fn broken(sound: bool, rule: &'static str) -> Option<&'static str> {
    (!sound).then_some(rule)
}

fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_dns_part(text)
}

fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_part)
}

fn is_dns_part(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_label_text(text: &str) -> bool {
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= 63 && bytes.iter().all(inner) && ends(bytes.first()) && ends(bytes.last())
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
        assert!(qualified_name("Example.com/a").is_some());
        assert!(qualified_name("a/b/c").is_some());
        assert!(qualified_name("-a").is_some());
        assert_eq!(label_value(""), None);
        assert!(label_value("a b").is_some());
    }
}
