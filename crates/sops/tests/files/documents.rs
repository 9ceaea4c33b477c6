//! Random documents from a seed.

use moorline_sops::Format;

/// A source of chance, by a seed.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from((self.next() >> 16) % bound as u64).expect("fits")
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// A value of a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// A comment before the next item or field; in a map it is the value of an unused key.
    Comment(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
}

const KEYS: [&str; 14] = [
    "a",
    "data",
    "stringData",
    "kind",
    "name",
    "x_secret",
    "y_plain",
    "z_unencrypted",
    "key:colon",
    "é",
    "b c",
    "1x",
    "on",
    "0644",
];

const TEXTS: [&str; 34] = [
    "hunter2",
    "",
    " ",
    "true",
    "yes",
    "No",
    "null",
    "~",
    "0644",
    "1e3",
    "1_000",
    "2026-01-02",
    "12:30:45",
    "a: b",
    "a #b",
    "# c",
    "- d",
    "{e}",
    "*f",
    "&g",
    "!h",
    "%i",
    "'j'",
    "\"k\"",
    "two\nlines",
    "ends\n",
    "\n\nbegins",
    " \n ",
    "tab\tx",
    "é ü 😀",
    "\u{1}",
    "a\\nb",
    "trailing ",
    "a=b;c",
];

/// Returns the documents of one file.
pub(crate) fn random(chance: &mut Chance, format: Format) -> Vec<Tree> {
    match format {
        Format::Yaml => {
            let count = if chance.below(4) == 0 { 1 + chance.below(3) } else { 1 };
            (0..count).map(|_| map(chance, 0, true)).collect()
        }
        Format::Json => vec![map(chance, 0, false)],
        Format::Dotenv => vec![flat(chance, true)],
        Format::Ini => {
            let count = 1 + chance.below(3);
            let sections = (0..count).map(|nth| (format!("section{nth}"), flat(chance, false)));
            vec![Tree::Map(sections.collect())]
        }
        Format::Binary => vec![Tree::Map(vec![("data".to_owned(), Tree::Text(text(chance)))])],
    }
}

fn text(chance: &mut Chance) -> String {
    match chance.below(4) {
        0 => {
            let words = 1 + chance.below(30);
            (0..words)
                .map(|_| chance.one(&["alpha", "beta", "-", "x:y", "\n", "42", "'q'"]))
                .collect::<Vec<_>>()
                .join(" ")
        }
        1 => format!("{}{}", chance.one(&TEXTS), chance.one(&TEXTS)),
        _ => chance.one(&TEXTS).to_owned(),
    }
}

fn flat(chance: &mut Chance, comments: bool) -> Tree {
    let count = 1 + chance.below(6);
    let mut fields = Vec::new();
    for nth in 0..count {
        if comments && chance.below(4) == 0 {
            fields.push((String::new(), Tree::Comment(format!(" note {nth}"))));
        }
        // The library loses the quotes and the edges of texts of INI on the way in.
        let value = match comments {
            // A backslash and an n are a line break there.
            true => text(chance).replace("\\n", "/n"),
            false => chance.one(&["plain", "", "two words", "1", "true", "a=b", "x/y+z==", "é"]).to_owned(),
        };
        fields.push((
            format!("{}{nth}", chance.one(&["KEY", "x_secret", "y_plain", "data"])),
            Tree::Text(value),
        ));
    }
    Tree::Map(fields)
}

fn map(chance: &mut Chance, depth: usize, comments: bool) -> Tree {
    let mut fields: Vec<(String, Tree)> = Vec::new();
    for _ in 0..1 + chance.below(5) {
        let key = chance.one(&KEYS).to_owned();
        if fields.iter().all(|(other, _)| *other != key) {
            if comments && chance.below(6) == 0 {
                fields.push((String::new(), Tree::Comment(format!(" about {}", chance.below(9)))));
            }
            fields.push((key, value(chance, depth + 1, comments)));
        }
    }
    Tree::Map(fields)
}

fn value(chance: &mut Chance, depth: usize, comments: bool) -> Tree {
    match chance.below(if depth > 3 { 9 } else { 13 }) {
        0 => Tree::Null,
        1 => Tree::Bool(chance.below(2) == 0),
        2 => Tree::Int([0, -1, 42, i64::MAX, i64::MIN, 1 << 53][chance.below(6)]),
        3 => Tree::Float([0.5, -1.25, 1e-7, 1e22, 1234.5678, 1e100][chance.below(6)]),
        4..=8 => Tree::Text(text(chance)),
        9 | 10 => map(chance, depth, comments),
        _ => {
            let count = chance.below(4);
            let mut items = Vec::new();
            for _ in 0..count {
                if comments && chance.below(6) == 0 {
                    items.push(Tree::Comment(" item".to_owned()));
                }
                items.push(value(chance, depth + 1, comments));
            }
            Tree::List(items)
        }
    }
}
