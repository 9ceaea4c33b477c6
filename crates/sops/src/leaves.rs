//! The values of a file in file order, and their decryption.
//!
//! In: leaves with their paths, the metadata, and the data key. Out: the plain value of each
//! encrypted leaf, once the MAC over all leaves fits.

use ring::digest;

use super::error::{MAX_ENCRYPTED_VALUES, MAX_PATH_BYTES, Problem, Refusal, shown};
use super::metadata::Metadata;
use super::rule::Rule;
use super::secret::DataKey;
use super::value::{self, Fault, Kind, Plain};

/// Most paths at which the decryption of one comment is tried.
const MAX_COMMENT_PATHS: usize = 32;
/// The bytes before a MAC over encrypted values only: the SHA-256 of `sops`.
const ONLY_ENCRYPTED: &[u8] = b"sops";

/// Index of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathId(usize);

/// The paths of a file: each is a key in another path. Lists add nothing to a path.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    nodes: Vec<Node>,
}

/// A key in a path.
#[derive(Debug)]
struct Node {
    parent: Option<PathId>,
    key: String,
    /// Length of the path with all separators.
    bytes: usize,
}

/// A value of a file, or a comment in encrypted form.
#[derive(Debug)]
pub(crate) struct Leaf {
    pub(crate) line: u32,
    pub(crate) path: Option<PathId>,
    pub(crate) content: Content,
}

/// Content of a leaf.
#[derive(Debug)]
pub(crate) enum Content {
    /// Text, encrypted or not.
    Text(String),
    /// A value that is no text, in the form that the MAC covers.
    Other(String),
    /// A comment, and the path of its other neighbour.
    Comment(String, Option<PathId>),
}

/// Leaves with their paths.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    pub(crate) paths: Paths,
    pub(crate) list: Vec<Leaf>,
}

impl Paths {
    /// Adds the path of a key in another path.
    pub(crate) fn add(&mut self, parent: Option<PathId>, key: &str) -> PathId {
        let above = parent.and_then(|id| self.nodes.get(id.0)).map_or(0, |node| node.bytes);
        self.nodes.push(Node { parent, key: key.to_owned(), bytes: above + key.len() + 1 });
        PathId(self.nodes.len() - 1)
    }

    /// Returns a path and all that it is in, the innermost first.
    fn upwards(&self, path: Option<PathId>) -> impl Iterator<Item = (PathId, &str)> {
        let mut next = path;
        std::iter::from_fn(move || {
            let id = next?;
            let node = self.nodes.get(id.0)?;
            next = node.parent;
            Some((id, node.key.as_str()))
        })
    }

    fn keys(&self, path: Option<PathId>) -> Vec<&str> {
        let mut keys: Vec<&str> = self.upwards(path).map(|(_, key)| key).collect();
        keys.reverse();
        keys
    }

    /// Returns the path in the form that is authenticated with a value, unless it is too long.
    fn authenticated(&self, path: Option<PathId>) -> Option<String> {
        let bytes = path.and_then(|id| self.nodes.get(id.0)).map_or(0, |node| node.bytes);
        (bytes <= MAX_PATH_BYTES).then(|| format!("{}:", self.keys(path).join(":")))
    }

    /// Returns the path for a message.
    pub(crate) fn shown(&self, path: Option<PathId>) -> Box<str> {
        match path {
            None => "the document".into(),
            Some(_) => shown(&self.keys(path).join(".")),
        }
    }

    /// Returns the answers of a rule for all paths.
    fn answers<'r>(&self, rule: &'r Rule) -> Answers<'r> {
        let mut fits: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            // A parent comes before what is in it.
            let above = node.parent.and_then(|id| fits.get(id.0).copied()).unwrap_or_default();
            fits.push(above || rule.fits(&node.key));
        }
        Answers { rule, fits }
    }
}

impl Leaves {
    /// Adds a leaf.
    pub(crate) fn push(&mut self, line: u32, path: Option<PathId>, content: Content) {
        self.list.push(Leaf { line, path, content });
    }

    /// Decrypts all leaves. The result has a value for each leaf that was encrypted.
    pub(crate) fn decrypt(&self, metadata: &Metadata, key: &DataKey) -> Result<Vec<Option<Plain>>, Refusal> {
        self.check_count()?;
        let mut mac = digest::Context::new(&digest::SHA512);
        if metadata.mac_only_encrypted {
            mac.update(digest::digest(&digest::SHA256, ONLY_ENCRYPTED).as_ref());
        }
        let answers = self.paths.answers(&metadata.rule);
        let mut plains = Vec::with_capacity(self.list.len());
        for leaf in &self.list {
            let encrypted = answers.of(leaf.path);
            let plain = match &leaf.content {
                Content::Comment(text, other) => self.comment(leaf, text, *other, &answers, key)?,
                Content::Text(text) => self.text(leaf, text, encrypted, key)?,
                Content::Other(_) if encrypted == Some(true) => return Err(self.plain(leaf)),
                Content::Other(_) => None,
            };
            let covered = match (&leaf.content, &plain) {
                (Content::Comment(..), _) => None,
                (_, Some(plain)) => (plain.kind != Kind::Comment).then_some(plain.text.as_bytes()),
                (Content::Text(text) | Content::Other(text), None) => {
                    (!metadata.mac_only_encrypted || encrypted == Some(true)).then_some(text.as_bytes())
                }
            };
            mac.update(covered.unwrap_or_default());
            plains.push(plain);
        }
        check_mac(metadata, key, mac.finish().as_ref())?;
        Ok(plains)
    }

    /// Refuses a file with too many encrypted values.
    fn check_count(&self) -> Result<(), Refusal> {
        let mut encrypted = self.list.iter().filter(|leaf| match &leaf.content {
            Content::Text(text) => value::looks_encrypted(text),
            Content::Comment(..) => true,
            Content::Other(_) => false,
        });
        let what = "encrypted values in one file";
        encrypted.nth(MAX_ENCRYPTED_VALUES).map_or(Ok(()), |leaf| {
            Err(Refusal::new(leaf.line, Problem::TooMany { what, most: MAX_ENCRYPTED_VALUES }))
        })
    }

    /// Decrypts a text if it is encrypted; `must` is the answer of the rule.
    fn text(
        &self,
        leaf: &Leaf,
        text: &str,
        must: Option<bool>,
        key: &DataKey,
    ) -> Result<Option<Plain>, Refusal> {
        // An empty text is never encrypted.
        if text.is_empty() || !must.unwrap_or_else(|| value::looks_encrypted(text)) {
            return Ok(None);
        }
        if !value::looks_encrypted(text) {
            return Err(self.plain(leaf));
        }
        let sealed = value::parse(text).map_err(|fault| self.refusal(leaf, fault))?;
        let what = "bytes in the keys of one path";
        let path = self.paths.authenticated(leaf.path);
        let path =
            path.ok_or_else(|| Refusal::new(leaf.line, Problem::TooMany { what, most: MAX_PATH_BYTES }))?;
        sealed.decrypt(key, &path).map(Some).map_err(|fault| self.refusal(leaf, fault))
    }

    /// Decrypts a comment at the first path of its surroundings that fits: formatters move comments
    /// between levels. Comments of plain paths may stay as they are.
    fn comment(
        &self,
        leaf: &Leaf,
        text: &str,
        other: Option<PathId>,
        answers: &Answers<'_>,
        key: &DataKey,
    ) -> Result<Option<Plain>, Refusal> {
        let above = |path| self.paths.upwards(path).map(|(id, _)| Some(id));
        let both = above(leaf.path).zip(above(other)).flat_map(|(one, two)| [one, two]);
        let rest = above(leaf.path).chain(above(other));
        let mut tried: Vec<Option<PathId>> = Vec::new();
        let mut must = false;
        let sealed = value::parse(text);
        for path in std::iter::once(None).chain(both).chain(rest) {
            if tried.len() == MAX_COMMENT_PATHS {
                break;
            }
            if tried.contains(&path) {
                continue;
            }
            tried.push(path);
            must |= answers.of(path).unwrap_or(true);
            if let Ok(sealed) = &sealed
                && sealed.kind() == Kind::Comment
                && let Some(path) = self.paths.authenticated(path)
                && let Ok(plain) = sealed.decrypt(key, &path)
            {
                return Ok(Some(plain));
            }
        }
        if !must {
            return Ok(None);
        }
        let fault = sealed.err().unwrap_or(Fault::Forged);
        Err(Refusal::new(leaf.line, problem(fault, "the comment".into())))
    }

    fn plain(&self, leaf: &Leaf) -> Refusal {
        Refusal::new(leaf.line, Problem::Plain { field: self.paths.shown(leaf.path) })
    }

    fn refusal(&self, leaf: &Leaf, fault: Fault) -> Refusal {
        Refusal::new(leaf.line, problem(fault, self.paths.shown(leaf.path)))
    }
}

/// Answers of a rule for the paths of a file.
struct Answers<'r> {
    rule: &'r Rule,
    /// For each path: the rule fits one of its keys.
    fits: Vec<bool>,
}

impl Answers<'_> {
    fn of(&self, path: Option<PathId>) -> Option<bool> {
        self.rule.encrypts(path.and_then(|id| self.fits.get(id.0).copied()).unwrap_or_default())
    }
}

fn problem(fault: Fault, field: Box<str>) -> Problem {
    match fault {
        Fault::Form(part) => Problem::Damaged { field, part },
        Fault::Forged => Problem::Forged { field },
        Fault::Kind(kind) => Problem::Kind { field, kind },
    }
}

/// Compares the MAC of the leaves with that of the file.
fn check_mac(metadata: &Metadata, key: &DataKey, found: &[u8]) -> Result<(), Refusal> {
    let refusal = |fault| Refusal::new(metadata.mac_line, problem(fault, "sops.mac".into()));
    let sealed = value::parse(&metadata.mac).map_err(refusal)?;
    let stored = sealed.decrypt(key, &metadata.last_modified).map_err(refusal)?;
    let found: String = found.iter().map(|byte| format!("{byte:02X}")).collect();
    match stored.text.as_bytes() == found.as_bytes() {
        true => Ok(()),
        false => Err(Refusal::new(metadata.mac_line, Problem::Mac)),
    }
}
