//! Syntax checks of names, keys and values.
//!
//! In: a text.
//! Out: the error messages of the API server; empty if the text is valid. The forms that Moorline's
//! own checks share are in [`moorline_core::name_rules`].

use moorline_core::name_rules::{
    MAX_LABEL, MAX_SUBDOMAIN, has_dns_label_form, has_dns_subdomain_form, has_key_form,
};

/// A syntax check.
pub(super) type SyntaxCheck = fn(&str) -> Vec<String>;

const MAX_PORT_NAME: usize = 15;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const OLD_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
    an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
    or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// Returns the check that the rule table refers to by this name.
pub(super) fn rule(name: &str) -> Option<SyntaxCheck> {
    Some(match name {
        "subdomain" => subdomain,
        "label" => label,
        "qualified" => qualified,
        "config-key" => config_key,
        "port-name" => port_name,
        "env-name" => env_name,
        _ => return None,
    })
}

/// Checks a DNS subdomain such as `example.com`.
pub(super) fn subdomain(text: &str) -> Vec<String> {
    bounded(text, MAX_SUBDOMAIN, has_dns_subdomain_form(text), SUBDOMAIN)
}

/// Checks a DNS label such as `my-name`.
pub(super) fn label(text: &str) -> Vec<String> {
    bounded(text, MAX_LABEL, has_dns_label_form(text), LABEL)
}

/// Checks a DNS label that does not start with a digit (RFC 1035).
pub(super) fn old_label(text: &str) -> Vec<String> {
    let fine = has_dns_label_form(text) && text.starts_with(|char: char| char.is_ascii_lowercase());
    bounded(text, MAX_LABEL, fine, OLD_LABEL)
}

/// Checks a key with an optional domain prefix and a slash.
pub(super) fn qualified(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut parts = text.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            if prefix.is_empty() {
                words.push("prefix part must be non-empty".to_owned());
            } else {
                words.extend(subdomain(prefix).iter().map(|it| format!("prefix part {it}")));
            }
            name
        }
        _ => {
            let example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a qualified {} {example}", QUALIFIED.replacen("name part", "name", 1))];
        }
    };
    if name.is_empty() {
        words.push("name part must be non-empty".to_owned());
    } else if name.len() > MAX_LABEL {
        words.push(format!("name part must be no more than {MAX_LABEL} bytes"));
    }
    if !has_key_form(name) {
        words.push(QUALIFIED.to_owned());
    }
    words
}

/// Checks a label value.
pub(super) fn label_value(text: &str) -> Vec<String> {
    let fine = text.is_empty() || has_key_form(text);
    bounded(text, MAX_LABEL, fine, LABEL_VALUE)
}

fn config_key(text: &str) -> Vec<String> {
    let fine = !text.is_empty() && text.chars().all(|it| it.is_ascii_alphanumeric() || "-_.".contains(it));
    let mut words = bounded(text, MAX_SUBDOMAIN, fine, CONFIG_KEY);
    match text {
        "." => words.push("must not be '.'".to_owned()),
        ".." => words.push("must not be '..'".to_owned()),
        _ if text.starts_with("..") => words.push("must not start with '..'".to_owned()),
        _ => {}
    }
    words
}

/// Checks the name of a container port.
pub(super) fn port_name(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    if text.len() > MAX_PORT_NAME {
        words.push(format!("must be no more than {MAX_PORT_NAME} characters"));
    }
    if !text.bytes().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-') {
        words.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.bytes().any(|it| it.is_ascii_lowercase()) {
        words.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        words.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        words.push("must not begin or end with a hyphen".to_owned());
    }
    words
}

fn env_name(text: &str) -> Vec<String> {
    let fine = text.bytes().all(|it| (b' '..=b'~').contains(&it) && it != b'=');
    let words =
        "a valid environment variable name must consist only of printable ASCII characters other than '='";
    if fine { Vec::new() } else { vec![words.to_owned()] }
}

/// Checks a name that only has to be valid in a URL path.
pub(super) fn path_segment(text: &str) -> Vec<String> {
    match text {
        "." | ".." => vec![format!("may not be '{text}'")],
        _ => ["/", "%"]
            .iter()
            .filter(|it| text.contains(**it))
            .map(|it| format!("may not contain '{it}'"))
            .collect(),
    }
}

fn bounded(text: &str, most: usize, fine: bool, words: &str) -> Vec<String> {
    let mut all = Vec::new();
    if text.len() > most {
        all.push(format!("must be no more than {most} bytes"));
    }
    if !fine {
        all.push(words.to_owned());
    }
    all
}
