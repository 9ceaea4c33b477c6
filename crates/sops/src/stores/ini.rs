//! INI files: sections with keys, as the library of SOPS reads and writes them.
//!
//! The metadata is in the section `sops`, flattened. A comment belongs to the section or the key
//! below it, or to the key on its line, and is written above it.

use std::collections::BTreeMap;

use super::super::error::{Problem, Refusal};
use super::super::leaves::{Content, Leaves, PathId};
use super::super::metadata;
use super::super::node::{Field, Node};
use super::super::secret::SecretBytes;
use super::super::value::{self, Plain};
use super::dotenv::tree;
use super::{Layout, Loaded, number};

/// Name of the section above the first header.
const DEFAULT: &str = "DEFAULT";
/// Section with the metadata.
const METADATA: &str = "sops";
const DELIMITERS: [char; 2] = ['=', ':'];
const COMMENT_SIGNS: [char; 2] = ['#', ';'];

/// A section of the plain file.
#[derive(Debug)]
pub(crate) struct Section {
    name: String,
    comment: Comment,
    keys: Vec<Key>,
}

#[derive(Debug)]
struct Key {
    name: String,
    comment: Comment,
    /// Index of the leaf with its value.
    leaf: usize,
}

#[derive(Debug)]
enum Comment {
    None,
    Plain(String),
    /// Index of the leaf with the encrypted comment.
    Leaf(usize),
}

/// Reads a file.
pub(super) fn load(bytes: &[u8]) -> Result<Option<Loaded<'_>>, Refusal> {
    let text = super::bounded_lines(bytes)?;
    let mut reader = Reader::new(text.strip_prefix('\u{feff}').unwrap_or(text));
    reader.read().map_err(|fault| Refusal::new(number(reader.line), Problem::Syntax(fault.into())))?;
    let Reader { leaves, sections, flat, metadata_line, twice, .. } = reader;
    let Some(metadata_line) = metadata_line else { return Ok(None) };
    if let Some(line) = twice {
        let form = Problem::Form { found: "a second section sops", remedy: "remove one of them" };
        return Err(Refusal::new(line, form));
    }
    let metadata = tree(flat, metadata_line, METADATA)?;
    if !metadata::is_metadata(&metadata) {
        return Ok(None);
    }
    Ok(Some(Loaded { leaves, metadata, metadata_line, layout: Layout::Ini(sections) }))
}

struct Reader<'a> {
    lines: std::iter::Peekable<std::str::SplitInclusive<'a, char>>,
    /// Number of lines read before the current one.
    line: usize,
    read: usize,
    comment: String,
    /// Indices of the keys of the section.
    known: BTreeMap<String, usize>,
    /// Number of keys `-` in the section.
    unnamed: usize,
    path: PathId,
    in_metadata: bool,
    leaves: Leaves,
    sections: Vec<Section>,
    flat: Vec<Field>,
    metadata_line: Option<u32>,
    twice: Option<u32>,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        let mut leaves = Leaves::default();
        let path = leaves.paths.add(None, DEFAULT);
        let first = Section { name: DEFAULT.to_owned(), comment: Comment::None, keys: Vec::new() };
        Self {
            lines: text.split_inclusive('\n').peekable(),
            line: 0,
            read: 0,
            comment: String::new(),
            known: BTreeMap::new(),
            unnamed: 1,
            path,
            in_metadata: false,
            leaves,
            sections: vec![first],
            flat: Vec::new(),
            metadata_line: None,
            twice: None,
        }
    }

    fn next_line(&mut self) -> Option<&'a str> {
        let line = self.lines.next()?;
        self.read += 1;
        Some(line)
    }

    fn read(&mut self) -> Result<(), &'static str> {
        loop {
            self.line = self.read;
            let Some(line) = self.next_line() else { return Ok(()) };
            let line = line.trim_start();
            match line.chars().next() {
                None => {}
                Some(sign) if COMMENT_SIGNS.contains(&sign) => self.comment.push_str(line),
                Some('[') => self.header(line)?,
                Some(_) => self.key(line)?,
            }
        }
    }

    fn header(&mut self, line: &str) -> Result<(), &'static str> {
        let close = line.rfind(']').ok_or("a section has no closing bracket")?;
        let name = line.get(1..close).filter(|name| !name.is_empty()).ok_or("a section has no name")?;
        let behind = line.get(close + 1..).unwrap_or_default();
        if let Some(at) = behind.find(COMMENT_SIGNS) {
            self.comment.push_str(behind.get(at..).unwrap_or_default());
        }
        self.unnamed = 1;
        self.known.clear();
        self.in_metadata = name == METADATA;
        if self.in_metadata {
            self.comment.clear();
            let line = number(self.line);
            match self.metadata_line {
                Some(_) => self.twice = Some(line),
                None => self.metadata_line = Some(line),
            }
            return Ok(());
        }
        self.path = self.leaves.paths.add(None, name);
        let comment = self.take_comment();
        self.sections.push(Section { name: name.to_owned(), comment, keys: Vec::new() });
        Ok(())
    }

    fn key(&mut self, line: &str) -> Result<(), &'static str> {
        let at = number(self.line);
        let (name, rest) = split_key(line)?;
        let name = match name {
            "-" => {
                self.unnamed += 1;
                format!("#{}", self.unnamed - 1)
            }
            "" => return Err("a key has no name"),
            name => name.to_owned(),
        };
        let value = self.value(rest)?;
        if self.in_metadata {
            self.comment.clear();
            let value = Node::Text(value.replace("\\n", "\n"));
            self.flat.push(Field { key: name, line: at, value });
            return Ok(());
        }
        let keys = self.sections.last().map(|section| section.keys.as_slice()).unwrap_or_default();
        let known = self.known.get(&name).and_then(|at| Some((*at, keys.get(*at)?.leaf)));
        let leaf = match known {
            Some((_, leaf)) => {
                if let Some(leaf) = self.leaves.list.get_mut(leaf) {
                    leaf.content = Content::Text(value);
                }
                leaf
            }
            None => {
                let path = self.leaves.paths.add(Some(self.path), &name);
                self.leaves.push(at, Some(path), Content::Text(value));
                self.leaves.list.len() - 1
            }
        };
        let comment = self.take_comment();
        if let Some(section) = self.sections.last_mut() {
            match known.and_then(|(at, _)| section.keys.get_mut(at)) {
                Some(key) => key.comment = comment,
                None => {
                    self.known.insert(name.clone(), section.keys.len());
                    section.keys.push(Key { name, comment, leaf });
                }
            }
        }
        Ok(())
    }

    /// Takes the comment that was read, without the sign before its first line.
    fn take_comment(&mut self) -> Comment {
        let read = std::mem::take(&mut self.comment);
        let text = match read.trim() {
            text if text.starts_with(';') => text.trim_start_matches([';', ' ']),
            text => text.trim_start_matches(['#', ' ']),
        };
        if text.is_empty() {
            return Comment::None;
        }
        if !value::looks_encrypted(text) {
            return Comment::Plain(text.to_owned());
        }
        let content = Content::Comment(text.to_owned(), None);
        self.leaves.push(number(self.line), Some(self.path), content);
        Comment::Leaf(self.leaves.list.len() - 1)
    }

    /// Reads a value, which may go on in the next lines.
    fn value(&mut self, rest: &str) -> Result<String, &'static str> {
        let rest = rest.trim_start();
        let quote = match () {
            () if rest.len() > 3 && rest.starts_with("\"\"\"") => Some("\"\"\""),
            () if rest.starts_with('`') => Some("`"),
            () => None,
        };
        if let Some(quote) = quote {
            let inside = rest.get(quote.len()..).unwrap_or_default();
            return match inside.rfind(quote) {
                Some(end) => Ok(inside.get(..end).unwrap_or_default().to_owned()),
                None => self.quoted_lines(inside, quote),
            };
        }
        let line = rest.trim_end();
        if let Some(begun) = line.strip_suffix('\\') {
            return Ok(self.continued_lines(begun));
        }
        let value = match line.find(COMMENT_SIGNS) {
            Some(at) => {
                self.comment.push_str(line.get(at..).unwrap_or_default());
                line.get(..at).unwrap_or_default().trim_end()
            }
            None => line,
        };
        Ok(unquoted(value).to_owned())
    }

    fn quoted_lines(&mut self, begun: &str, quote: &str) -> Result<String, &'static str> {
        let mut value = begun.to_owned();
        loop {
            let line = self.next_line().ok_or("a value has no closing quote")?;
            let Some(end) = line.rfind(quote) else {
                value.push_str(line);
                continue;
            };
            let behind = line.get(end + quote.len()..).unwrap_or_default();
            if behind.trim().ends_with('\\') {
                value.push_str(line);
                continue;
            }
            value.push_str(line.get(..end).unwrap_or_default());
            if let Some(at) = behind.find(COMMENT_SIGNS) {
                self.comment.push_str(behind.get(at..).unwrap_or_default().trim());
            }
            return Ok(value);
        }
    }

    fn continued_lines(&mut self, begun: &str) -> String {
        let mut value = begun.to_owned();
        while let Some(line) = self.next_line().map(str::trim).filter(|line| !line.is_empty()) {
            match line.strip_suffix('\\') {
                Some(part) => value.push_str(part),
                None => {
                    value.push_str(line);
                    break;
                }
            }
        }
        value
    }
}

/// Splits a line into its key, without quotes, and the text behind the delimiter.
fn split_key(line: &str) -> Result<(&str, &str), &'static str> {
    let no_delimiter = "a line is no comment, section or key";
    let quote = match () {
        () if line.len() > 6 && line.starts_with("\"\"\"") => "\"\"\"",
        () if line.starts_with('"') => "\"",
        () if line.starts_with('`') => "`",
        () => {
            let at = line.find(DELIMITERS).ok_or(no_delimiter)?;
            let (name, rest) = line.split_at_checked(at).ok_or(no_delimiter)?;
            return Ok((name.trim(), rest.get(1..).unwrap_or_default()));
        }
    };
    let inside = line.get(quote.len()..).ok_or(no_delimiter)?;
    let (name, rest) = inside.split_once(quote).ok_or("a key has no closing quote")?;
    let (_, rest) = rest.split_once(DELIMITERS).ok_or(no_delimiter)?;
    Ok((name.trim(), rest))
}

/// Removes quotes around a value that has no other such quote.
fn unquoted(value: &str) -> &str {
    for quote in ['\'', '"'] {
        let inside = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        if let Some(inside) = inside.filter(|inside| !inside.contains(quote)) {
            return inside;
        }
    }
    value
}

/// Writes the plain file.
pub(super) fn write(
    sections: &[Section],
    leaves: &Leaves,
    plains: &[Option<Plain>],
) -> Result<SecretBytes, Refusal> {
    let mut out = SecretBytes::with_capacity(4096);
    let value = |leaf: usize| match (leaves.list.get(leaf).map(|leaf| &leaf.content), plains.get(leaf)) {
        (_, Some(Some(plain))) => super::untyped(plain),
        (Some(Content::Text(text) | Content::Other(text) | Content::Comment(text, _)), _) => {
            SecretBytes::from(text.as_str())
        }
        (None, _) => SecretBytes::default(),
    };
    for (nth, section) in sections.iter().enumerate() {
        write_comment(&mut out, &section.comment, &value, false);
        match nth {
            0 if section.keys.is_empty() => continue,
            0 => {}
            _ => {
                out.push(b"[");
                out.push(section.name.as_bytes());
                out.push(b"]\n");
            }
        }
        let names: Vec<String> = section.keys.iter().map(|key| quoted_name(&key.name)).collect();
        let width = names.iter().map(String::len).max().unwrap_or_default();
        for (key, name) in section.keys.iter().zip(names) {
            write_comment(&mut out, &key.comment, &value, true);
            out.push(format!("{name}{} = ", " ".repeat(width - name.len())).as_bytes());
            let text = value(key.leaf);
            let quote = quote(text.as_bytes());
            [quote, text.as_bytes(), quote, b"\n"].iter().for_each(|part| out.push(part));
        }
        if nth + 1 < sections.len() {
            out.push(b"\n");
        }
    }
    Ok(out)
}

fn quoted_name(name: &str) -> String {
    match () {
        () if name.contains(['"', '=', ':']) => format!("`{name}`"),
        () if name.contains('`') => format!("\"\"\"{name}\"\"\""),
        () => name.to_owned(),
    }
}

/// Returns the quotes that a value needs.
fn quote(value: &[u8]) -> &'static [u8] {
    let has = |signs: &[u8]| value.iter().any(|byte| signs.contains(byte));
    let trimmed = std::str::from_utf8(value).map_or(value.len(), |text| text.trim().len());
    match () {
        () if has(b"\n`") => b"\"\"\"",
        () if has(b"#;") => b"`",
        () if trimmed != value.len() => b"\"",
        () => b"",
    }
}

fn write_comment(
    out: &mut SecretBytes,
    comment: &Comment,
    value: &dyn Fn(usize) -> SecretBytes,
    trims: bool,
) {
    let text = match comment {
        Comment::None => return,
        Comment::Plain(text) => SecretBytes::from(text.as_str()),
        Comment::Leaf(leaf) => value(*leaf),
    };
    for line in text.as_bytes().split(|byte| *byte == b'\n') {
        let (sign, rest, trims) = match line {
            [sign @ (b'#' | b';'), rest @ ..] => (*sign, rest, true),
            rest => (b';', rest, trims),
        };
        let rest = match std::str::from_utf8(rest) {
            Ok(text) if trims => text.trim().as_bytes(),
            _ => rest,
        };
        [&[sign], b" ".as_slice(), rest, b"\n"].iter().for_each(|part| out.push(part));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a file with metadata behind it, and writes it without.
    fn rewritten(text: &str) -> String {
        let file = format!("{text}\n[sops]\nmac = x\n");
        let loaded = load(file.as_bytes()).map_err(|refusal| refusal.in_file("f").to_string());
        let loaded = match loaded {
            Ok(loaded) => loaded.expect("has metadata"),
            Err(message) => return message,
        };
        let plains: Vec<Option<Plain>> = loaded.leaves.list.iter().map(|_| None).collect();
        let out = loaded.layout.write(&loaded.leaves, &plains).expect("writes");
        out.as_text().expect("is text").to_owned()
    }

    #[test]
    fn files_are_written_in_the_form_of_the_library() {
        let cases = [
            ("a=1", "a = 1\n"),
            ("[s]\na=1\nlong : 2", "[s]\na    = 1\nlong = 2\n"),
            ("a=1\n\n\n[s]\n[t]\nb=", "a = 1\n\n[s]\n\n[t]\nb = \n"),
            ("# c\n; d\n[s] ; e\n#f\na = 1 # g", "; c\n; d\n; e\n[s]\n; f\n# g\na = 1\n"),
            ("[s]\na='x y'\nb=\"z\"\nc=`a#b`", "[s]\na = x y\nb = z\nc = `a#b`\n"),
            ("[s]\na=\"\"\"x\ny\"\"\"\nb=1", "[s]\na = \"\"\"x\ny\"\"\"\nb = 1\n"),
            ("[s]\na=x\\\n  y\nb=\"  q\"", "[s]\na = xy\nb = \"  q\"\n"),
            ("[s]\n`a:b`=1\n\"c\"=2\na=1\na=2", "[s]\n`a:b` = 1\nc     = 2\na     = 2\n"),
        ];
        for (text, expect) in cases {
            assert_eq!(rewritten(text), expect, "{text}");
        }
    }

    #[test]
    fn faults_have_a_line() {
        let fault = |text| format!("f:2: the encrypted file cannot be read: {text}");
        assert_eq!(rewritten("\nx"), fault("a line is no comment, section or key"));
        assert_eq!(rewritten("\n=x"), fault("a key has no name"));
        assert_eq!(rewritten("\n[x"), fault("a section has no closing bracket"));
        assert_eq!(rewritten("\n[]"), fault("a section has no name"));
        assert_eq!(rewritten("\na=`x"), fault("a value has no closing quote"));
        assert_eq!(rewritten("\n\"a=x"), fault("a key has no closing quote"));
        let twice = "f:3: found a second section sops, which SOPS does not write: remove one of them";
        assert_eq!(rewritten("[sops]\nmac=x"), twice);
    }
}
