//! Malicious repositories: small to send, and huge to unpack, to list, to read or to build.
//!
//! In: the part that should be huge.
//! Out: [`Bomb`], a commit with its pack, and the responses of a server for it. All bytes are
//! computed here and always the same.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use git2::{ObjectType, Oid};

use super::git_server::{Reply, Request};

const COMMIT: u8 = 1;
const TREE: u8 = 2;
const FILE: u8 = 3;
const DIFFERENCE: u8 = 6;

/// A repository with one commit.
#[derive(Clone)]
pub struct Bomb {
    pub name: &'static str,
    head: Oid,
    pub pack: Vec<u8>,
}

impl Bomb {
    /// The response to a request for this repository; `None` if the request is for another one.
    pub fn answer(&self, request: &Request) -> Option<Reply> {
        let rest = request.path.strip_prefix(&format!("/bombs/{}.git/", self.name))?;
        let mut body = Vec::new();
        if rest == "info/refs" {
            line(&mut body, b"# service=git-upload-pack\n");
            body.extend(b"0000");
            for word in ["version 2\n", "ls-refs\n", "fetch=shallow filter\n", "object-format=sha1\n"] {
                line(&mut body, word.as_bytes());
            }
            body.extend(b"0000");
            let kind = "Content-Type: application/x-git-upload-pack-advertisement\r\n";
            return Some(Reply::Raw(200, kind, body));
        }
        if String::from_utf8_lossy(&request.body).contains("command=ls-refs") {
            line(&mut body, format!("{} HEAD symref-target:refs/heads/main\n", self.head).as_bytes());
            line(&mut body, format!("{} refs/heads/main\n", self.head).as_bytes());
        } else {
            line(&mut body, b"packfile\n");
            self.pack.chunks(60_000).for_each(|part| line(&mut body, &[&[1], part].concat()));
        }
        body.extend(b"0000");
        Some(Reply::Raw(200, "Content-Type: application/x-git-upload-pack-result\r\n", body))
    }

    pub fn address(&self) -> String {
        format!("bombs/{}.git", self.name)
    }
}

fn line(body: &mut Vec<u8>, text: &[u8]) {
    body.extend(format!("{:04x}", text.len() + 4).bytes());
    body.extend(text);
}

/// A pack under construction.
#[derive(Default)]
pub struct Pack {
    objects: Vec<u8>,
    count: u32,
}

const HEAD_BYTES: u64 = 12;

impl Pack {
    /// Offset of the next object.
    fn position(&self) -> u64 {
        HEAD_BYTES + self.objects.len() as u64
    }

    fn add(&mut self, kind: u8, base: &[u8], bytes: &[u8]) {
        let mut size = bytes.len() as u64;
        let low = kind << 4 | (size & 15) as u8;
        size >>= 4;
        self.objects.push(if size == 0 { low } else { low | 0x80 });
        if size > 0 {
            self.objects.extend(number(size));
        }
        self.objects.extend(base);
        let mut encoder = ZlibEncoder::new(std::mem::take(&mut self.objects), Compression::best());
        encoder.write_all(bytes).unwrap();
        self.objects = encoder.finish().unwrap();
        self.count += 1;
    }

    pub fn file(&mut self, bytes: &[u8]) -> Oid {
        self.add(FILE, &[], bytes);
        Oid::hash_object(ObjectType::Blob, bytes).unwrap()
    }

    /// Adds a folder with these entries, files and folders, in the order that Git requires.
    pub fn folder(&mut self, mut entries: Vec<(String, bool, Oid)>) -> Oid {
        let order = |entry: &(String, bool, Oid)| entry.0.clone() + if entry.1 { "/" } else { "" };
        entries.sort_by_key(order);
        let mut bytes = Vec::new();
        for (name, is_folder, id) in entries {
            bytes.extend(format!("{} {name}\0", if is_folder { "40000" } else { "100644" }).bytes());
            bytes.extend(id.as_bytes());
        }
        self.add(TREE, &[], &bytes);
        Oid::hash_object(ObjectType::Tree, &bytes).unwrap()
    }

    /// Adds a delta to the file at offset `base`: copies of its beginning, and a few bytes of its
    /// own.
    pub fn difference(&mut self, base: u64, base_size: u64, size: u64, own: &str) {
        let distance = self.position() - base;
        let mut bytes = [number(base_size), number(size)].concat();
        let mut left = size - own.len() as u64;
        while left > 0 {
            let copied = left.min(base_size).min(0x00ff_ffff);
            // From the beginning: no offset, and three bytes of length.
            bytes.push(0xf0);
            bytes.extend(&copied.to_le_bytes()[..3]);
            left -= copied;
        }
        bytes.push(own.len() as u8);
        bytes.extend(own.bytes());
        self.add(DIFFERENCE, &far(distance), &bytes);
    }

    pub fn done(mut self, name: &'static str, root: Oid) -> Bomb {
        let who = "a <a@example.com> 1700000000 +0000";
        let commit = format!("tree {root}\nauthor {who}\ncommitter {who}\n\n{name}\n");
        self.add(COMMIT, &[], commit.as_bytes());
        let head = Oid::hash_object(ObjectType::Commit, commit.as_bytes()).unwrap();
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend(self.count.to_be_bytes());
        pack.extend(self.objects);
        let sum = sha1(&pack);
        pack.extend(sum);
        Bomb { name, head, pack }
    }
}

/// Encodes a number in groups of seven bits, the lowest first.
fn number(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Encodes a distance in groups of seven bits, the highest first, one less in each group but the
/// last.
fn far(mut distance: u64) -> Vec<u8> {
    let mut bytes = vec![(distance & 0x7f) as u8];
    while distance > 0x7f {
        distance = (distance >> 7) - 1;
        bytes.push((distance & 0x7f) as u8 | 0x80);
    }
    bytes.reverse();
    bytes
}

const MIB: u64 = 1024 * 1024;
const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

fn manifest(pack: &mut Pack) -> (String, bool, Oid) {
    ("a.yaml".to_owned(), false, pack.file(MAP.as_bytes()))
}

/// A pack of a file, a delta, folders and a commit: every kind of object that a server sends.
pub fn small() -> Bomb {
    let mut pack = Pack::default();
    let base = pack.position();
    pack.file(MAP.as_bytes());
    pack.difference(base, MAP.len() as u64, 200, "own");
    let manifest = manifest(&mut pack);
    let inner = pack.folder(vec![manifest.clone()]);
    let root = pack.folder(vec![manifest, ("b".to_owned(), true, inner)]);
    pack.done("small", root)
}

/// So many deltas of a file of 16 MiB, each of which expands to so many MiB; as a chain, or all on
/// the file.
pub fn differences(name: &'static str, count: usize, mib: u64, is_chain: bool) -> Bomb {
    let mut pack = Pack::default();
    let mut base = (pack.position(), 16 * MIB);
    pack.file(&vec![b'x'; base.1 as usize]);
    for at in 0..count {
        let begun = pack.position();
        pack.difference(base.0, base.1, mib * MIB, &format!("{at}"));
        if is_chain {
            base = (begun, mib * MIB);
        }
    }
    let manifest = manifest(&mut pack);
    let root = pack.folder(vec![manifest]);
    pack.done(name, root)
}

/// Large texts that no manifest needs, beside a manifest and optionally a kustomization.
pub fn texts(name: &'static str, is_kustomization: bool) -> Bomb {
    let mut pack = Pack::default();
    let mut entries = vec![manifest(&mut pack)];
    if is_kustomization {
        let id = pack.file(b"resources: [a.yaml]\n");
        entries.push(("kustomization.yaml".to_owned(), false, id));
    }
    for at in 0..16 {
        let text = format!("{at:02}.").repeat(10_000_000);
        entries.push((format!("{at}.txt"), false, pack.file(text.as_bytes())));
    }
    let root = pack.folder(entries);
    pack.done(name, root)
}

/// 400,000 folders below a path of four kilobytes.
pub fn paths(name: &'static str) -> Bomb {
    let mut pack = Pack::default();
    let empty = pack.folder(Vec::new());
    let mut folder = pack.folder((0..400_000).map(|at| (format!("{at:x}"), true, empty)).collect());
    for _ in 0..20 {
        folder = pack.folder(vec![("x".repeat(200), true, folder)]);
    }
    pack.done(name, folder)
}

/// 3,000 generators of one file.
pub fn generators(name: &'static str) -> Bomb {
    let mut pack = Pack::default();
    let large = pack.file("0123456789".repeat(90_000).as_bytes());
    let generators: String = (0..3000).map(|at| format!("- {{name: a{at}, files: [f]}}\n")).collect();
    let build = pack.file(format!("configMapGenerator:\n{generators}").as_bytes());
    let root =
        pack.folder(vec![("f".to_owned(), false, large), ("kustomization.yaml".to_owned(), false, build)]);
    pack.done(name, root)
}

/// A patch of one megabyte for 2,000 objects.
pub fn patches(name: &'static str) -> Bomb {
    let mut pack = Pack::default();
    let maps: String =
        (0..2000).map(|at| format!("---\n{}", MAP.replace("name: a", &format!("name: a{at}")))).collect();
    let maps = pack.file(maps.as_bytes());
    let patch = format!("{MAP}data: {{a: {}}}\n", "0123456789".repeat(100_000));
    let patch = pack.file(patch.as_bytes());
    let build = "resources: [a.yaml]\npatches:\n- path: p.yaml\n  target: {kind: ConfigMap}\n";
    let build = pack.file(build.as_bytes());
    let entry = |name: &str, id| (name.to_owned(), false, id);
    let root =
        pack.folder(vec![entry("a.yaml", maps), entry("p.yaml", patch), entry("kustomization.yaml", build)]);
    pack.done(name, root)
}

/// A manifest with millions of values.
pub fn values(name: &'static str) -> Bomb {
    let mut pack = Pack::default();
    let text = format!("{MAP}data: {{a: [{}]}}\n", "a,".repeat(4_500_000));
    let id = pack.file(text.as_bytes());
    let root = pack.folder(vec![("a.yaml".to_owned(), false, id)]);
    pack.done(name, root)
}

/// Checksum at the end of a pack.
fn sha1(bytes: &[u8]) -> [u8; 20] {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((bytes.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        let mut words = [0_u32; 80];
        for (word, four) in words.iter_mut().zip(block.chunks(4)) {
            *word = u32::from_be_bytes(four.try_into().unwrap());
        }
        for at in 16..80 {
            words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (at, word) in words.iter().enumerate() {
            let (mixed, constant) = match at / 20 {
                0 => ((b & c) | (!b & d), 0x5a82_7999),
                1 => (b ^ c ^ d, 0x6ed9_eba1),
                2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let next = a.rotate_left(5).wrapping_add(mixed).wrapping_add(e).wrapping_add(constant);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next.wrapping_add(*word));
        }
        for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(part);
        }
    }
    let mut out = [0; 20];
    out.chunks_mut(4).zip(state).for_each(|(four, word)| four.copy_from_slice(&word.to_be_bytes()));
    out
}

/// All bombs, each with the expected reason in the status of its Sync.
pub fn all() -> Vec<(Bomb, &'static str)> {
    vec![
        (texts("texts", false), "Applied"),
        (texts("kustomized-texts", true), "MemoryExceeded"),
        (paths("paths"), "PathTooLarge"),
        (generators("generators"), "MemoryExceeded"),
        (patches("patches"), "MemoryExceeded"),
        (values("values"), "MemoryExceeded"),
        (differences("differences", 8000, 24, false), "RepositoryTooLarge"),
        (differences("chain", 40, 24, true), "RepositoryTooLarge"),
    ]
}
