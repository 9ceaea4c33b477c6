//! Masks the encrypted files of a tree, where nothing may be decrypted.
//!
//! In: a tree. Out: the tree in which each encrypted file has the form of a plain one. Each value
//! is a hash of its ciphertext, so that a changed one differs; the metadata of SOPS are left out.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::tree::{DecryptedBytes, FileTree, TreeEntry};

/// Begin and end of an encrypted value.
const BEGIN: &str = "ENC[AES256_GCM,";
const END: char = ']';

/// Begin of a masked value.
const MASK: &str = "mask";

/// Number of characters of a masked value: a multiple of four, so that it is valid base64.
const MASK_DIGITS: usize = 16;

/// Masks every file of a tree that SOPS encrypted. Objects from these files count as Secrets.
pub fn mask_files(tree: &FileTree) -> FileTree {
    let mut masked = Vec::new();
    for (path, entry) in tree.entries() {
        let TreeEntry::File(bytes) = entry else { continue };
        let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| text.contains(BEGIN)) else {
            continue;
        };
        let plain = without_metadata(&without_ciphertext(text));
        masked.push((Box::from(path), TreeEntry::Decrypted(DecryptedBytes::new(plain.as_bytes()))));
    }
    if masked.is_empty() { tree.clone() } else { tree.clone().with_entries(masked) }
}

/// Replaces each encrypted value.
fn without_ciphertext(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(BEGIN) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let end = from.find(END).map_or(from.len(), |end| end + END.len_utf8());
        let hash = Sha256::digest(&from.as_bytes()[..end]);
        // With letters in front it is a text in YAML with any digits.
        out.push_str(MASK);
        for byte in hash.iter().take((MASK_DIGITS - MASK.len()) / 2) {
            let _ = write!(out, "{byte:02x}");
        }
        rest = &from[end..];
    }
    out + rest
}

/// Removes the metadata: a top-level field `sops` of YAML or JSON, a section of INI, variables.
fn without_metadata(text: &str) -> String {
    if let Ok(serde_json::Value::Object(mut whole)) = serde_json::from_str(text) {
        whole.remove("sops");
        return serde_json::Value::Object(whole).to_string();
    }
    let (mut in_metadata, mut in_section) = (false, false);
    let kept = text.lines().filter(|line| {
        let is_top = line.starts_with(|first: char| !first.is_whitespace() && first != '#');
        in_section = *line == "[sops]" || in_section && !line.starts_with('[');
        if is_top {
            in_metadata = in_section || line.starts_with("sops:") || line.starts_with("sops_");
        }
        !in_metadata
    });
    kept.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encrypted_file_keeps_its_form_and_loses_its_values() {
        let value = |text: &str| format!("ENC[AES256_GCM,data:{text},iv:x=,tag:y=,type:str]");
        let yaml = format!(
            "kind: Secret\ndata:\n    a: {}\n    b: {}\nsops:\n    age:\n        - recipient: age1\n    mac: {}\n---\nkind: ConfigMap\n",
            value("1"),
            value("2"),
            value("3")
        );
        let json = format!("{{\"data\": {{\"a\": \"{}\"}}, \"sops\": {{\"mac\": \"x\"}}}}", value("1"));
        let env = format!("A={}\nsops_mac={}\n", value("1"), value("2"));
        let ini = format!("[a]\nb = {}\n[sops]\nmac = x\n", value("1"));
        let files = [
            ("a.yaml", yaml.as_str()),
            ("b.json", &json),
            ("c.env", &env),
            ("d.yaml", "sops: plain\n"),
            ("e.ini", &ini),
        ];
        let masked = mask_files(&FileTree::from_texts(files));
        let text = |path: &str| String::from_utf8(masked.read(path).unwrap().to_vec()).unwrap();
        let (yaml, json, env, ini) = (text("a.yaml"), text("b.json"), text("c.env"), text("e.ini"));
        for text in [&yaml, &json, &env, &ini] {
            assert!(!text.contains("ENC[") && !text.contains("sops"), "{text}");
        }
        assert!(
            yaml.starts_with("kind: Secret\ndata:\n    a: ") && yaml.ends_with("---\nkind: ConfigMap\n"),
            "{yaml}"
        );
        let first = yaml.lines().nth(2).unwrap().trim().strip_prefix("a: ").unwrap();
        assert_eq!(first.len(), MASK_DIGITS);
        assert_ne!(yaml.lines().nth(3).unwrap().trim().strip_prefix("b: "), Some(first), "another value");
        assert!(
            json.contains(first) && env.starts_with(&format!("A={first}\n")),
            "the same value: {json} {env}"
        );
        assert_eq!(ini, format!("[a]\nb = {first}\n"));
        assert!(masked.is_decrypted("a.yaml") && !masked.is_decrypted("d.yaml"));
        assert_eq!(without_ciphertext("ENC[AES256_GCM,open").len(), MASK_DIGITS, "without an end");
    }
}
