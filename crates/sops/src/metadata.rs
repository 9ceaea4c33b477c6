//! The metadata of an encrypted file.
//!
//! In: the tree below `sops`. Out: the keys in groups, the rule, and the MAC, all bounded. Flat
//! formats have only texts, so booleans and numbers may be texts, as SOPS reads them.

use std::collections::BTreeMap;

use super::error::{MAX_KEYS, MAX_METADATA_BYTES, Problem, Refusal, shown};
use super::key_source::KeySource;
use super::node::{Field, Node};
use super::rule::{self, Rule};
use super::value;

/// The metadata of one file.
#[derive(Debug, Clone)]
pub struct Metadata {
    pub(crate) line: u32,
    pub(crate) groups: Vec<Vec<KeySource>>,
    pub(crate) threshold: usize,
    pub(crate) rule: Rule,
    pub(crate) mac: String,
    pub(crate) mac_line: u32,
    pub(crate) mac_only_encrypted: bool,
    /// The time that is authenticated with the MAC.
    pub(crate) last_modified: String,
}

impl Metadata {
    /// The groups of keys. Any key of a group opens its part of the data key; with one group, the
    /// part is the data key.
    pub fn groups(&self) -> &[Vec<KeySource>] {
        &self.groups
    }

    /// Number of groups that must be opened.
    pub fn threshold(&self) -> usize {
        self.threshold
    }
}

/// Most texts in an encryption context.
const MAX_CONTEXT: usize = 100;

/// Lists of keys, in the order of SOPS.
const KEY_LISTS: [&str; 7] = ["kms", "gcp_kms", "hckms", "azure_kv", "hc_vault", "pgp", "age"];

/// True if the tree has a field that only metadata of SOPS has.
pub(crate) fn is_metadata(node: &Node) -> bool {
    let Node::Map(fields) = node else { return false };
    let ours = |key: &str| KEY_LISTS.contains(&key) || ["mac", "lastmodified", "key_groups"].contains(&key);
    fields.iter().any(|field| ours(&field.key))
}

/// Reads the tree below `sops`, which begins at a line.
pub(crate) fn read(node: &Node, line: u32) -> Result<Metadata, Refusal> {
    let top = Fields::of(node, "sops", line)?;
    let (mac, mac_line) = top.text_and_line("mac")?;
    if mac.is_empty() {
        return Err(Refusal::new(line, Problem::NoMac));
    }
    let (modified, modified_line) = top.text_and_line("lastmodified")?;
    let last_modified = value::whole_seconds(&modified)
        .ok_or_else(|| metadata(modified_line, "sops.lastmodified", "a time such as 2026-01-02T03:04:05Z"))?;
    let groups = groups(&top)?;
    let given = top.number("shamir_threshold")?;
    let threshold = match (groups.len(), given) {
        (1, _) => 1,
        (count, 0) => count,
        (count, given) if (1..=count).contains(&given) => given,
        (_, _) => return Err(top.wrong("shamir_threshold", "at most the number of key groups")),
    };
    Ok(Metadata {
        line,
        groups,
        threshold,
        rule: rule(&top)?,
        mac,
        mac_line,
        mac_only_encrypted: top.boolean("mac_only_encrypted")?,
        last_modified,
    })
}

/// Reads the keys, which are below `sops` itself or in groups.
fn groups(top: &Fields<'_>) -> Result<Vec<Vec<KeySource>>, Refusal> {
    let own = keys(top)?;
    let groups = if !own.is_empty() {
        vec![own]
    } else {
        top.maps("key_groups")?.iter().map(keys).collect::<Result<Vec<_>, _>>()?
    };
    if groups.is_empty() || groups.iter().any(Vec::is_empty) {
        return Err(metadata(top.line, "sops", "a map that names at least one key in each group"));
    }
    match groups.iter().map(Vec::len).sum::<usize>() > MAX_KEYS {
        true => Err(Refusal::new(top.line, Problem::TooMany { what: "keys", most: MAX_KEYS })),
        false => Ok(groups),
    }
}

/// Reads the keys of one group.
fn keys(group: &Fields<'_>) -> Result<Vec<KeySource>, Refusal> {
    let mut found = Vec::new();
    for list in KEY_LISTS {
        for key in group.maps(list)? {
            found.push(source(list, &key)?);
        }
    }
    Ok(found)
}

fn source(list: &str, key: &Fields<'_>) -> Result<KeySource, Refusal> {
    let enc = key.text("enc")?;
    if enc.is_empty() {
        return Err(key.wrong("enc", "the encrypted data key"));
    }
    Ok(match list {
        "kms" => KeySource::AwsKms {
            arn: key.text("arn")?,
            role: key.text("role")?,
            context: key.texts("context")?,
            profile: key.text("aws_profile")?,
            enc,
        },
        "gcp_kms" => KeySource::GcpKms { resource: key.text("resource_id")?, enc },
        "hckms" => KeySource::HuaweiKms { key_id: key.text("key_id")?, enc },
        "azure_kv" => KeySource::AzureKeyVault {
            vault_url: key.text("vault_url")?,
            name: key.text("name")?,
            version: key.text("version")?,
            enc,
        },
        "hc_vault" => KeySource::Vault {
            address: key.text("vault_address")?,
            engine_path: key.text("engine_path")?,
            key_name: key.text("key_name")?,
            enc,
        },
        "pgp" => KeySource::Pgp { fingerprint: key.text("fp")?, enc },
        _ => KeySource::Age { recipient: key.text("recipient")?, enc },
    })
}

/// Reads the one rule for the choice of values.
fn rule(top: &Fields<'_>) -> Result<Rule, Refusal> {
    const NAMES: [&str; 6] = [
        "unencrypted_suffix",
        "encrypted_suffix",
        "unencrypted_regex",
        "encrypted_regex",
        "unencrypted_comment_regex",
        "encrypted_comment_regex",
    ];
    let mut given: Option<(&'static str, String)> = None;
    for name in NAMES {
        let text = top.text(name)?;
        if text.is_empty() {
            continue;
        }
        if let Some((other, _)) = given {
            return Err(Refusal::new(top.line, Problem::Rules(other, name)));
        }
        given = Some((name, text));
    }
    let Some((name, text)) = given else { return Ok(Rule::default()) };
    let regex = || rule::compile(&text).ok_or_else(|| top.wrong(name, "a regular expression of Go"));
    Ok(match name {
        "unencrypted_suffix" => Rule::UnencryptedSuffix(text),
        "encrypted_suffix" => Rule::EncryptedSuffix(text),
        "unencrypted_regex" => Rule::UnencryptedRegex(regex()?),
        "encrypted_regex" => Rule::EncryptedRegex(regex()?),
        _ if top.boolean("mac_only_encrypted")? => {
            return Err(Refusal::new(top.line, Problem::Uncovered(name)));
        }
        _ => Rule::Comments,
    })
}

/// The fields of a map in the metadata, with its path and line.
struct Fields<'a> {
    fields: &'a [Field],
    path: String,
    line: u32,
}

impl<'a> Fields<'a> {
    fn of(node: &'a Node, path: &str, line: u32) -> Result<Self, Refusal> {
        match node {
            Node::Map(fields) => Ok(Self { fields, path: path.to_owned(), line }),
            _ => Err(metadata(line, path, "a map")),
        }
    }

    fn field(&self, name: &str) -> Option<&'a Field> {
        self.fields.iter().find(|field| field.key == name && field.value != Node::Null)
    }

    fn wrong(&self, name: &str, expected: &'static str) -> Refusal {
        let line = self.field(name).map_or(self.line, |field| field.line);
        metadata(line, &format!("{}.{name}", self.path), expected)
    }

    /// Returns a text, empty if it is missing, with its line.
    fn text_and_line(&self, name: &str) -> Result<(String, u32), Refusal> {
        let Some(field) = self.field(name) else { return Ok((String::new(), self.line)) };
        match &field.value {
            Node::Text(text) if text.len() > MAX_METADATA_BYTES => {
                Err(self.wrong(name, "a text of at most 64 KiB"))
            }
            Node::Text(text) => Ok((text.clone(), field.line)),
            Node::Int(number) => Ok((number.to_string(), field.line)),
            _ => Err(self.wrong(name, "a text")),
        }
    }

    fn text(&self, name: &str) -> Result<String, Refusal> {
        self.text_and_line(name).map(|(text, _)| text)
    }

    fn boolean(&self, name: &str) -> Result<bool, Refusal> {
        match self.field(name).map(|field| &field.value) {
            None => Ok(false),
            Some(Node::Bool(value)) => Ok(*value),
            Some(Node::Text(text)) if matches!(text.as_str(), "true" | "1") => Ok(true),
            Some(Node::Text(text)) if matches!(text.as_str(), "" | "false" | "0") => Ok(false),
            Some(_) => Err(self.wrong(name, "true or false")),
        }
    }

    fn number(&self, name: &str) -> Result<usize, Refusal> {
        let number = match self.field(name).map(|field| &field.value) {
            None => return Ok(0),
            Some(Node::Int(number)) => usize::try_from(*number).ok(),
            Some(Node::Text(text)) => text.parse().ok(),
            Some(_) => None,
        };
        number.ok_or_else(|| self.wrong(name, "a number"))
    }

    /// Returns the maps of a list, none if it is missing.
    fn maps(&self, name: &str) -> Result<Vec<Self>, Refusal> {
        let items = match self.field(name).map(|field| &field.value) {
            None => return Ok(Vec::new()),
            Some(Node::List(items)) => items,
            Some(_) => return Err(self.wrong(name, "a list")),
        };
        if items.len() > MAX_KEYS {
            return Err(self.wrong(name, "a list of at most 200 keys"));
        }
        let of = |(nth, item): (usize, &'a super::node::Item)| {
            Self::of(&item.value, &format!("{}.{name}[{nth}]", self.path), item.line)
        };
        items.iter().enumerate().map(of).collect()
    }

    /// Returns a map of texts.
    fn texts(&self, name: &str) -> Result<BTreeMap<String, String>, Refusal> {
        let Some(field) = self.field(name) else { return Ok(BTreeMap::new()) };
        let inner = Self::of(&field.value, &format!("{}.{name}", self.path), field.line)?;
        if inner.fields.len() > MAX_CONTEXT {
            return Err(self.wrong(name, "a map of at most 100 texts"));
        }
        let names = inner.fields.iter().map(|field| field.key.clone());
        names.map(|name| inner.text(&name).map(|text| (name, text))).collect()
    }
}

fn metadata(line: u32, field: &str, expected: &'static str) -> Refusal {
    Refusal::new(line, Problem::Metadata { field: shown(field), expected })
}

#[cfg(test)]
mod tests {
    use super::super::node::Item;
    use super::*;

    fn text(key: &str, text: &str) -> Field {
        Field { key: key.into(), line: 7, value: Node::Text(text.into()) }
    }

    fn keyed(key: &str, value: Node) -> Field {
        Field { key: key.into(), line: 8, value }
    }

    fn list(maps: Vec<Vec<Field>>) -> Node {
        Node::List(maps.into_iter().map(|map| Item { line: 9, value: Node::Map(map) }).collect())
    }

    fn age() -> Field {
        keyed("age", list(vec![vec![text("recipient", "age1x"), text("enc", "e")]]))
    }

    fn usual() -> Vec<Field> {
        vec![text("mac", "m"), text("lastmodified", "2026-01-02T03:04:05Z"), age()]
    }

    fn message(more: Vec<Field>) -> String {
        let mut fields = usual();
        fields.retain(|field| more.iter().all(|other| other.key != field.key));
        fields.extend(more);
        match read(&Node::Map(fields), 3) {
            Ok(_) => String::new(),
            Err(refusal) => refusal.in_file("f").to_string(),
        }
    }

    #[test]
    fn keys_and_rules_are_read() {
        let kms = vec![
            text("arn", "arn:aws:kms:eu:1:key/2"),
            keyed("context", Node::Map(vec![text("app", "shop")])),
            text("enc", "AQ=="),
        ];
        let vault = vec![
            text("vault_address", "https://v"),
            text("engine_path", "transit"),
            text("key_name", "k"),
            text("enc", "vault:v1:x"),
        ];
        let mut fields = usual();
        fields.push(keyed("kms", list(vec![kms])));
        fields.push(keyed("hc_vault", list(vec![vault])));
        fields.push(text("mac_only_encrypted", "true"));
        fields.push(text("encrypted_regex", "^data$"));
        let found = read(&Node::Map(fields), 1).expect("reads");
        let names: Vec<String> = found.groups()[0].iter().map(KeySource::name).collect();
        assert_eq!(names, ["AWS key arn:aws:kms:eu:1:key/2", "Vault key k of https://v", "age1x"]);
        assert!(
            matches!(&found.groups()[0][0], KeySource::AwsKms { context, .. } if context["app"] == "shop")
        );
        assert!(found.mac_only_encrypted);
        assert!(matches!(found.rule, Rule::EncryptedRegex(_)));
        assert_eq!(found.threshold(), 1);
    }

    #[test]
    fn groups_have_a_threshold() {
        let group = || vec![age()];
        let fields = |threshold: Node| {
            vec![
                text("mac", "m"),
                text("lastmodified", "2026-01-02T03:04:05Z"),
                keyed("key_groups", list(vec![group(), group(), group()])),
                keyed("shamir_threshold", threshold),
            ]
        };
        let threshold = |node| read(&Node::Map(fields(node)), 1).map(|found| found.threshold());
        assert_eq!(threshold(Node::Int(2)).expect("reads"), 2);
        assert_eq!(threshold(Node::Null).expect("reads"), 3);
        assert!(threshold(Node::Int(4)).is_err());
        assert!(threshold(Node::Int(-1)).is_err());
    }

    #[test]
    fn refusals_name_the_field() {
        assert_eq!(message(vec![]), "");
        let again = "encrypt the file again with sops";
        assert_eq!(
            message(vec![text("mac", "")]),
            format!("f:3: sops.mac is missing, so changes of the file cannot be noticed; {again}")
        );
        assert_eq!(
            message(vec![text("lastmodified", "yesterday")]),
            format!("f:7: sops.lastmodified must be a time such as 2026-01-02T03:04:05Z; {again}")
        );
        assert_eq!(
            message(vec![keyed("age", Node::Null)]),
            format!("f:3: sops must be a map that names at least one key in each group; {again}")
        );
        assert_eq!(
            message(vec![keyed("age", list(vec![vec![text("recipient", "r")]]))]),
            format!("f:9: sops.age[0].enc must be the encrypted data key; {again}")
        );
        assert_eq!(
            message(vec![keyed("age", Node::Text("x".into()))]),
            format!("f:8: sops.age must be a list; {again}")
        );
        assert_eq!(
            message(vec![text("encrypted_regex", "(")]),
            format!("f:7: sops.encrypted_regex must be a regular expression of Go; {again}")
        );
        assert_eq!(
            message(vec![text("encrypted_regex", "a"), text("encrypted_suffix", "b")]),
            "f:3: sops has both encrypted_suffix and encrypted_regex, but may have one rule for the choice of values"
        );
        assert_eq!(
            message(vec![text("version", &"x".repeat(9)), text("mac_only_encrypted", "maybe")]),
            format!("f:7: sops.mac_only_encrypted must be true or false; {again}")
        );
        for rule in ["encrypted_comment_regex", "unencrypted_comment_regex"] {
            assert_eq!(message(vec![text(rule, "a")]), "");
            assert_eq!(message(vec![text(rule, "a"), text("mac_only_encrypted", "false")]), "");
            assert_eq!(
                message(vec![text(rule, "a"), text("mac_only_encrypted", "true")]),
                format!(
                    "f:3: sops has both mac_only_encrypted and {rule}, so a plain value in place of an encrypted one cannot be noticed; encrypt the file again with only one of them"
                )
            );
        }
        let many = vec![vec![text("enc", "e")]; MAX_KEYS + 1];
        assert_eq!(
            message(vec![keyed("pgp", list(many))]),
            format!("f:8: sops.pgp must be a list of at most 200 keys; {again}")
        );
    }
}
