//! JSON files, and other files that are kept in JSON.
//!
//! In: an object with the field `sops`. Out: its leaves, and the object as SOPS writes it, with one
//! field a line, in their order, and with tabs.

use super::super::error::{Problem, Refusal};
use super::super::leaves::{Content, Leaves, PathId};
use super::super::metadata;
use super::super::node::Node;
use super::super::numbers;
use super::super::secret::SecretBytes;
use super::super::value::{Kind, Plain};
use super::{Layout, Loaded, json_text};

/// Field with the content of a file that is not JSON.
const DATA: &str = "data";

/// Reads a JSON file.
pub(super) fn load(bytes: &[u8]) -> Result<Option<Loaded<'_>>, Refusal> {
    let text = super::text(bytes)?;
    let root = json_text::parse(text.strip_prefix('\u{feff}').unwrap_or(text));
    let mut root = match root {
        Ok(root) => root,
        Err((line, fault)) => return Err(Refusal::new(line, Problem::Syntax(fault.into()))),
    };
    let Some((metadata, metadata_line)) = take_metadata(&mut root)? else { return Ok(None) };
    let mut leaves = Leaves::default();
    collect(&root, 1, None, &mut leaves);
    Ok(Some(Loaded { leaves, metadata, metadata_line, layout: Layout::Json(root) }))
}

/// Reads any other file; none if it is not an object with the fields `data` and `sops`.
pub(super) fn load_binary(bytes: &[u8]) -> Option<Loaded<'_>> {
    let loaded = load(bytes).ok()??;
    match loaded.layout {
        Layout::Json(Node::Map(fields)) if fields.len() == 1 && fields.iter().all(|it| it.key == DATA) => {
            Some(Loaded { layout: Layout::Binary(Node::Map(fields)), ..loaded })
        }
        _ => None,
    }
}

/// Takes the metadata out of the object.
fn take_metadata(root: &mut Node) -> Result<Option<(Node, u32)>, Refusal> {
    let Node::Map(fields) = root else { return Ok(None) };
    let mut found: Option<(Node, u32)> = None;
    let mut twice = None;
    fields.retain_mut(|field| {
        if field.key != "sops" || (found.is_none() && !metadata::is_metadata(&field.value)) {
            return true;
        }
        match found {
            Some(_) => twice = Some(field.line),
            None => found = Some((std::mem::replace(&mut field.value, Node::Null), field.line)),
        }
        false
    });
    match twice {
        Some(line) => {
            let remedy = "remove one of them";
            Err(Refusal::new(line, Problem::Form { found: "a second field sops", remedy }))
        }
        None => Ok(found),
    }
}

/// Adds the leaves of a value in order.
fn collect(node: &Node, line: u32, path: Option<PathId>, leaves: &mut Leaves) {
    let content = match node {
        Node::Null => return,
        Node::List(items) => {
            return items.iter().for_each(|item| collect(&item.value, item.line, path, leaves));
        }
        Node::Map(fields) => {
            for field in fields {
                let path = leaves.paths.add(path, &field.key);
                collect(&field.value, field.line, Some(path), leaves);
            }
            return;
        }
        Node::Bool(value) => Content::Other(if *value { "True" } else { "False" }.to_owned()),
        Node::Int(value) => Content::Other(value.to_string()),
        Node::Float(value) => Content::Other(numbers::decimal(*value)),
        Node::Text(text) => Content::Text(text.clone()),
    };
    leaves.push(line, path, content);
}

/// Writes a JSON file.
pub(super) fn write(root: &Node, leaves: &Leaves, plains: &[Option<Plain>]) -> Result<SecretBytes, Refusal> {
    let mut writer = Writer { out: SecretBytes::with_capacity(4096), leaves, plains, next: 0 };
    writer.value(root, 0)?;
    writer.out.push(b"\n");
    Ok(writer.out)
}

/// Writes any other file: the text of its only leaf.
pub(super) fn write_binary(
    root: &Node,
    leaves: &Leaves,
    plains: &[Option<Plain>],
) -> Result<SecretBytes, Refusal> {
    if let (Node::Map(fields), Some(Some(plain))) = (root, plains.first())
        && let [Node::Text(_)] = fields.iter().map(|field| &field.value).collect::<Vec<_>>()[..]
        && plain.kind == Kind::Text
    {
        return Ok(super::untyped(plain));
    }
    match (root, plains.first()) {
        // An empty text is not encrypted.
        (Node::Map(_), Some(None)) if leaves.list.len() == 1 => match &leaves.list[0].content {
            Content::Text(text) => Ok(SecretBytes::from(text.as_str())),
            _ => Err(unwritable(leaves, 0, "the content of a file must be a text")),
        },
        _ => Err(unwritable(leaves, 0, "the content of a file must be a text")),
    }
}

fn unwritable(leaves: &Leaves, leaf: usize, why: &'static str) -> Refusal {
    match leaves.list.get(leaf) {
        Some(leaf) => {
            Refusal::new(leaf.line, Problem::Unwritable { field: leaves.paths.shown(leaf.path), why })
        }
        None => Refusal::new(1, Problem::Unwritable { field: DATA.into(), why }),
    }
}

struct Writer<'a> {
    out: SecretBytes,
    leaves: &'a Leaves,
    plains: &'a [Option<Plain>],
    /// Index of the next leaf.
    next: usize,
}

impl Writer<'_> {
    fn value(&mut self, node: &Node, depth: usize) -> Result<(), Refusal> {
        match node {
            Node::Null => self.out.push(b"null"),
            Node::List(items) => return self.list(items, depth),
            Node::Map(fields) => {
                let mut first = true;
                self.out.push(b"{");
                for field in fields {
                    self.next_line(&mut first, depth + 1);
                    json_text::write_text(&mut self.out, &field.key);
                    self.out.push(b": ");
                    if self.is_comment(&field.value) {
                        return Err(unwritable(self.leaves, self.next, "it is a comment, not a value"));
                    }
                    self.value(&field.value, depth + 1)?;
                }
                self.close(first, depth, b"}");
            }
            Node::Bool(_) | Node::Int(_) | Node::Float(_) | Node::Text(_) => {
                let plain = self.plains.get(self.next).and_then(Option::as_ref);
                match plain {
                    Some(plain) => self.plain(plain)?,
                    None => self.scalar(node)?,
                }
                self.next += 1;
            }
        }
        Ok(())
    }

    /// Writes a list without the comments that other formats keep in it.
    fn list(&mut self, items: &[super::super::node::Item], depth: usize) -> Result<(), Refusal> {
        let mut first = true;
        self.out.push(b"[");
        for item in items {
            if self.is_comment(&item.value) {
                self.next += 1;
                continue;
            }
            self.next_line(&mut first, depth + 1);
            self.value(&item.value, depth + 1)?;
        }
        self.close(first, depth, b"]");
        Ok(())
    }

    fn is_comment(&self, node: &Node) -> bool {
        let plain = self.plains.get(self.next).and_then(Option::as_ref);
        matches!(node, Node::Text(_)) && plain.is_some_and(|plain| plain.kind == Kind::Comment)
    }

    fn next_line(&mut self, first: &mut bool, depth: usize) {
        if !std::mem::take(first) {
            self.out.push(b",");
        }
        self.out.push(b"\n");
        self.out.push("\t".repeat(depth).as_bytes());
    }

    fn close(&mut self, empty: bool, depth: usize, bracket: &[u8]) {
        if !empty {
            self.out.push(b"\n");
            self.out.push("\t".repeat(depth).as_bytes());
        }
        self.out.push(bracket);
    }

    fn scalar(&mut self, node: &Node) -> Result<(), Refusal> {
        match node {
            Node::Bool(value) => self.out.push(value.to_string().as_bytes()),
            Node::Int(value) => self.out.push(value.to_string().as_bytes()),
            Node::Float(value) => return self.float(*value),
            Node::Text(text) => json_text::write_text(&mut self.out, text),
            Node::Null | Node::List(_) | Node::Map(_) => {}
        }
        Ok(())
    }

    fn float(&mut self, value: f64) -> Result<(), Refusal> {
        let why = "JSON has no number for it";
        let text = numbers::json(value).ok_or_else(|| unwritable(self.leaves, self.next, why))?;
        self.out.push(text.as_bytes());
        Ok(())
    }

    fn plain(&mut self, plain: &Plain) -> Result<(), Refusal> {
        match plain.kind {
            Kind::Text | Kind::Time | Kind::Comment => {
                let why = "JSON has only texts in UTF-8";
                let text = plain.text.as_text().ok_or_else(|| unwritable(self.leaves, self.next, why))?;
                json_text::write_text(&mut self.out, text);
            }
            Kind::Int => self.out.push(plain.text.as_bytes()),
            Kind::Float => return self.float(plain.as_float()),
            Kind::Bool => self.out.push(if plain.is_true() { b"true" } else { b"false" }),
        }
        Ok(())
    }
}
