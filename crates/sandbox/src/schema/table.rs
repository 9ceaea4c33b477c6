//! Reads the table of built-in types.
//!
//! In: the compressed `kubernetes.txt`; its head describes the format.
//! Out: the kinds and their types. A malformed line is skipped: a program generates the table, and
//! a test reads it completely.

use std::collections::HashMap;
use std::sync::LazyLock;

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::{Field, Fields, Link, List, ListType, PatchStrategy, Scalar, Schema, Shape, WritePolicy};

/// The compressed table: it is part of the program for `moorline demo`, so its size matters.
const PACKED: &[u8] = include_bytes!("kubernetes.deflate");

/// Maximum size of the uncompressed table.
const MAX_TABLE: usize = 1 << 20;

static TABLE: LazyLock<Table> = LazyLock::new(|| read(&unpacked()));

/// Placeholder for a missing type.
static OPAQUE: LazyLock<Schema> = LazyLock::new(|| Schema::new(Shape::Opaque));

struct Table {
    /// Index of the type, by `GROUP/VERSION KIND`.
    kinds: HashMap<String, usize>,
    types: Vec<Schema>,
    metadata: Option<usize>,
}

/// Returns the type of a kind.
pub(super) fn kind(group: &str, version: &str, kind: &str) -> Option<&'static Schema> {
    let key =
        if group.is_empty() { format!("{version} {kind}") } else { format!("{group}/{version} {kind}") };
    TABLE.types.get(*TABLE.kinds.get(&key)?)
}

/// Returns the type at an index.
pub(super) fn at(place: usize) -> &'static Schema {
    TABLE.types.get(place).unwrap_or(&OPAQUE)
}

/// Returns the type of the metadata of every object.
pub(super) fn metadata() -> &'static Schema {
    TABLE.metadata.map_or(&*OPAQUE, at)
}

fn unpacked() -> String {
    let bytes = decompress_to_vec_with_limit(PACKED, MAX_TABLE).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

fn read(text: &str) -> Table {
    let lines =
        |word: &'static str| text.lines().filter_map(move |line| line.strip_prefix(word)?.strip_prefix(' '));
    let mut places = HashMap::new();
    for (place, line) in lines("type").enumerate() {
        places.insert(line.split(' ').next().unwrap_or_default().trim_start_matches('@'), place);
    }
    let mut reader = Reader { wholes: Vec::new(), count: places.len(), places };
    let mut types: Vec<Schema> = lines("type").map(|line| reader.named(line)).collect();
    for place in reader.wholes {
        let whole = types.get(place).map_or_else(|| OPAQUE.clone(), replaced_whole);
        types.push(whole);
    }
    let kinds = lines("kind").filter_map(|line| {
        let mut words = line.split(' ');
        let (api_version, kind) = (words.next()?, words.next()?);
        let place = reader.places.get(words.next().unwrap_or(kind))?;
        Some((format!("{api_version} {kind}"), *place))
    });
    Table { kinds: kinds.collect(), metadata: reader.places.get("ObjectMeta").copied(), types }
}

/// Returns the atomic variant of a type.
fn replaced_whole(schema: &Schema) -> Schema {
    let shape = match schema.shape() {
        Shape::Fields(fields) => Shape::Fields(Fields { atomic: true, ..fields.clone() }),
        other @ (Shape::Scalar(_) | Shape::List(_) | Shape::Anything | Shape::Opaque) => other.clone(),
    };
    Schema::named(shape, schema.name())
}

struct Reader<'a> {
    places: HashMap<&'a str, usize>,
    count: usize,
    /// Types that are atomic only in some places: each is a separate type after all others.
    wholes: Vec<usize>,
}

impl<'a> Reader<'a> {
    fn named(&mut self, line: &'a str) -> Schema {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let plain = name.trim_start_matches('@');
        let mut known: Vec<Field> =
            words.filter(|word| !word.is_empty()).map(|word| self.field(word)).collect();
        known.sort_by(|one, other| one.name.cmp(&other.name));
        let fields =
            Fields { known, others: None, atomic: plain != name, is_map: false, keeps_unknown: false };
        Schema::named(Shape::Fields(fields), plain.split('@').next().unwrap_or_default())
    }

    /// Parses a field: its name, and attributes that start with a sign and end at the next one.
    fn field(&mut self, word: &'a str) -> Field {
        let (word, patch) = cut(word, '~');
        let (word, _) = cut(word, '#');
        let (word, default) = cut(word, '=');
        let (word, shape) = cut(word, ':');
        let name = word.trim_end_matches(['*', '!', '^', '+']);
        let flags = &word[name.len()..];
        Field {
            name: name.into(),
            link: self.link(shape.unwrap_or("s")),
            required: flags.contains('+'),
            pointer: flags.contains('*'),
            write_policy: match () {
                () if flags.contains('!') => WritePolicy::Always,
                () if flags.contains('^') => WritePolicy::UnlessZero,
                () => WritePolicy::UnlessEmpty,
            },
            default: default.and_then(|text| serde_json::from_str(text).ok()),
            patch: patch.map(patch_strategy),
        }
    }

    fn link(&mut self, shape: &'a str) -> Link {
        let (atomic, shape) = match shape.strip_prefix('@') {
            Some(rest) => (true, rest),
            None => (false, shape),
        };
        if let Some(inner) = inside(shape, '{', '}') {
            let others = Some(self.link(inner));
            let fields = Fields { known: Vec::new(), others, atomic, is_map: true, keeps_unknown: false };
            return Link::Own(Schema::new(Shape::Fields(fields)));
        }
        if let Some(inner) = inside(shape, '[', ']') {
            let (merge, item) = match inner.strip_prefix('%') {
                Some(item) => (ListType::Set, item),
                None => match inner.split_once('|') {
                    Some((keys, item)) => (ListType::Keyed(keys.split(',').map(Box::from).collect()), item),
                    None => (ListType::Atomic, inner),
                },
            };
            return Link::Own(Schema::new(Shape::List(List { items: self.link(item), merge })));
        }
        if let Some(shape) = single(shape) {
            return Link::Own(Schema::new(shape));
        }
        let place = self.places.get(shape).copied().unwrap_or(usize::MAX);
        if !atomic {
            return Link::Builtin(place);
        }
        self.wholes.push(place);
        Link::Builtin(self.count + self.wholes.len() - 1)
    }
}

fn single(letter: &str) -> Option<Shape> {
    Some(Shape::Scalar(match letter {
        "s" => Scalar::String,
        "i" => Scalar::Int32,
        "l" => Scalar::Int64,
        "n" => Scalar::Number,
        "b" => Scalar::Boolean,
        "q" => Scalar::Quantity,
        "x" => Scalar::IntOrString,
        "t" => Scalar::Time,
        "m" => Scalar::MicroTime,
        "d" => Scalar::Duration,
        "y" => Scalar::Bytes,
        "a" => return Some(Shape::Anything),
        "r" => return Some(Shape::Opaque),
        _ => return None,
    }))
}

fn patch_strategy(text: &str) -> PatchStrategy {
    let (letters, key) = cut(text, '/');
    PatchStrategy {
        merge: letters.contains('m'),
        retain_keys: letters.contains('r'),
        merge_key: key.unwrap_or_default().into(),
    }
}

fn inside(text: &str, open: char, close: char) -> Option<&str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

/// Splits the text at the first occurrence of a sign.
fn cut(text: &str, sign: char) -> (&str, Option<&str>) {
    text.split_once(sign).map_or((text, None), |(before, after)| (before, Some(after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every line is valid, and every name refers to a type.
    #[test]
    fn the_table_is_read_whole() {
        let text = include_str!("kubernetes.txt");
        assert_eq!(unpacked(), text);
        assert!(PACKED.len() < 35_000, "{} bytes", PACKED.len());
        let table = read(text);
        let count = |word: &str| text.lines().filter(|line| line.starts_with(word)).count();
        assert_eq!(table.kinds.len(), count("kind "));
        assert_eq!(table.types.len(), count("type "));
        assert_eq!(count("kind ") + count("type ") + count("#"), text.lines().count());
        for schema in &table.types {
            let Shape::Fields(fields) = schema.shape() else { panic!("{} has no fields", schema.name()) };
            assert!(schema.name().starts_with(char::is_uppercase), "{}", schema.name());
            for field in fields.known() {
                assert!(leads_somewhere(&field.link, table.types.len()), "{}.{}", schema.name(), field.name);
                let plain = |char: char| char.is_ascii_alphanumeric() || "-$_".contains(char);
                assert!(field.name.chars().all(plain), "{}.{}", schema.name(), field.name);
            }
        }
        assert!(text.len() < 120_000, "{} bytes", text.len());
    }

    fn leads_somewhere(link: &Link, count: usize) -> bool {
        let inner = match link {
            Link::Builtin(place) => return *place < count,
            Link::Own(schema) => schema.shape(),
        };
        match inner {
            Shape::Fields(fields) => fields.others.as_ref().is_none_or(|link| leads_somewhere(link, count)),
            Shape::List(list) => leads_somewhere(&list.items, count),
            Shape::Scalar(_) | Shape::Anything | Shape::Opaque => true,
        }
    }
}
