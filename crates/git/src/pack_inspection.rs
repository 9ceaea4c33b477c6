//! Inspects a pack as it arrives, before libgit2 unpacks it.
//!
//! In: the bytes of a pack.
//! Out: the same bytes, or an error. libgit2 holds the results of deltas in memory and trusts the
//! sizes that a pack declares: one megabyte can unpack into more memory than the machine has, which
//! would kill the daemon, or into more work than the deadline allows. So the declared sizes and
//! their sum are bounded here, and objects are checked against their declared size.

use std::collections::HashMap;
use std::io::{self, Write};

use flate2::{Decompress, FlushDecompress, Status};

use super::memory::{Memory, MemoryShare};

/// Maximum number of objects of a pack.
const MAX_OBJECTS: u32 = 10_000_000;

/// Maximum number of bytes of an object that libgit2 holds in memory: the result or the base of a
/// delta. It holds up to three of them at a time, which must fit into the memory for packs.
const MAX_HELD_BYTES: u64 = 128 * 1024 * 1024;

/// Number of such objects held at a time.
const HELD: u64 = 3;

/// Maximum number of bytes of a folder, a commit or a tag, which libgit2 also holds in memory. This
/// memory is not counted.
const MAX_WHOLE_BYTES: u64 = 16 * 1024 * 1024;

/// Smaller objects are not counted.
const FREE_BYTES: u64 = 512 * 1024;

/// Memory that libgit2 needs for each object of a pack while indexing it.
const OBJECT_COST: u64 = 200;

/// Memory is taken for this many objects at a time; the first ones are free.
const OBJECTS_AT_ONCE: u32 = 5_000;

/// Maximum sum of the results of all deltas of a pack, including their bases. libgit2 builds a
/// delta without checking any deadline.
pub(super) const MAX_BUILT_BYTES: u64 = 4 * 1024 * 1024 * 1024;

/// libgit2 caches smaller objects; larger ones are built again for each delta on them.
const REMEMBERED_BYTES: u64 = 1024 * 1024;

/// Bytes before the first object.
const HEADER_BYTES: usize = 12;

/// Maximum number of bytes of the two sizes at the beginning of a delta.
const MAX_SIZES_BYTES: usize = 20;

/// Maximum number of bytes that are inflated at a time.
const WINDOW_BYTES: usize = 32 * 1024;

/// Reason for refusing a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum PackError {
    /// The data is not a pack, or an object differs from its header.
    #[error("{0}")]
    Damaged(&'static str),
    /// Unpacking it would take too much.
    #[error("{what}: more than {limit}")]
    TooLarge {
        /// The bounded quantity.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// There is no memory for it now.
    #[error("there is no memory for it now")]
    Crowded,
}

impl From<PackError> for io::Error {
    fn from(refusal: PackError) -> Self {
        Self::other(refusal)
    }
}

/// Passes a pack on to `inner` while it is acceptable.
pub(super) struct PackInspector<W> {
    inner: W,
    /// Number of remaining objects.
    left: u32,
    at: At,
    /// Offset of the next byte in the pack.
    position: u64,
    /// Offset of the current object.
    begun: u64,
    built: Built,
    memory: Memory,
    unpacking: UnpackCost,
}

/// Memory needed to unpack a pack.
#[derive(Debug, Default)]
pub(super) struct UnpackCost {
    /// Largest object that is held.
    largest: u64,
    /// Memory for the index entries of the objects.
    objects: Vec<MemoryShare>,
}

impl UnpackCost {
    /// Takes the memory for all of it, if it is available.
    pub(super) fn take_memory(self, memory: &Memory) -> Option<Vec<MemoryShare>> {
        let mut shares = self.objects;
        if self.largest > FREE_BYTES {
            shares.push(memory.unpack(HELD * self.largest)?);
        }
        Some(shares)
    }
}

/// Sum of the results of deltas.
#[derive(Default)]
struct Built {
    /// Bytes of all results, including the bases of each delta.
    bytes: u64,
    /// Total bytes of each large delta with its chain of bases, by offset. Each counts in `bytes`,
    /// which is bounded, and so the number of entries is bounded as well.
    large: HashMap<u64, u64>,
}

/// Position of the next byte in the structure of the pack.
enum At {
    /// In the header of the pack, which is buffered.
    Header(Vec<u8>),
    /// In the header of an object, which is buffered.
    Head(Vec<u8>),
    /// In the compressed bytes of an object.
    Body(Box<Body>),
    /// After the last object.
    End,
}

struct Body {
    inflate: Decompress,
    size: u64,
    /// For a delta: its first bytes, until the sizes are read.
    sizes: Option<Vec<u8>>,
    /// For a delta: offset of its base, if declared as a distance.
    base: Option<u64>,
    /// For a delta, once its sizes are read: size of the base and of the result.
    builds: Option<(u64, u64)>,
    /// Maximum number of bytes of either.
    most: u64,
}

/// Header of an object.
struct ObjectHeader {
    is_file: bool,
    is_difference: bool,
    size: u64,
    /// Distance back to the base, if declared.
    distance: Option<u64>,
}

impl<W: Write> PackInspector<W> {
    pub(super) fn new(inner: W, memory: &Memory) -> Self {
        let at = At::Header(Vec::new());
        let (built, unpacking) = (Built::default(), UnpackCost::default());
        Self { inner, left: 0, at, position: 0, begun: 0, built, memory: memory.clone(), unpacking }
    }

    /// Returns the memory needed from here on.
    pub(super) fn into_unpacking(self) -> UnpackCost {
        self.unpacking
    }

    /// Takes memory for the next objects, if due.
    fn count(&mut self) -> Result<(), PackError> {
        if self.left.is_multiple_of(OBJECTS_AT_ONCE) {
            let share = self.memory.unpack(OBJECT_COST * u64::from(OBJECTS_AT_ONCE));
            self.unpacking.objects.push(share.ok_or(PackError::Crowded)?);
        }
        Ok(())
    }

    fn check(&mut self, mut bytes: &[u8]) -> Result<(), PackError> {
        while let [first, rest @ ..] = bytes {
            match &mut self.at {
                At::Header(gathered) => {
                    gathered.push(*first);
                    bytes = rest;
                    self.position += 1;
                    if gathered.len() == HEADER_BYTES {
                        self.left = objects(gathered, self.memory.most_for_packs() / OBJECT_COST)?;
                        self.next();
                    }
                }
                At::Head(gathered) => {
                    gathered.push(*first);
                    bytes = rest;
                    self.position += 1;
                    if let Some(head) = head(gathered)? {
                        let most = MAX_HELD_BYTES.min(self.memory.most_for_packs() / HELD);
                        self.at = At::Body(Box::new(Body::new(&head, self.begun, most)?));
                    }
                }
                At::Body(body) => {
                    let (used, done) = body.inflate(bytes)?;
                    bytes = &bytes[used..];
                    self.position += used as u64;
                    if let Some((base, built)) = body.builds.take() {
                        self.unpacking.largest = self.unpacking.largest.max(base).max(built);
                        self.built.add(self.begun, body.base, base, built)?;
                    }
                    if done {
                        self.left -= 1;
                        self.next();
                        self.count()?;
                    }
                }
                // The checksum, which libgit2 verifies.
                At::End => bytes = &[],
            }
        }
        Ok(())
    }

    fn next(&mut self) {
        self.begun = self.position;
        self.at = if self.left == 0 { At::End } else { At::Head(Vec::new()) };
    }
}

impl Built {
    /// Adds a delta at this offset, with the offset and size of its base and the size of its
    /// result.
    fn add(&mut self, begun: u64, base: Option<u64>, base_size: u64, size: u64) -> Result<(), PackError> {
        let below = base.and_then(|base| self.large.get(&base).copied()).unwrap_or(base_size);
        let all = below.saturating_add(size);
        self.bytes = self.bytes.saturating_add(all);
        if self.bytes > MAX_BUILT_BYTES {
            let what = "bytes that the differences in its pack build";
            return Err(PackError::TooLarge { what, limit: MAX_BUILT_BYTES });
        }
        if size > REMEMBERED_BYTES {
            self.large.insert(begun, all);
        }
        Ok(())
    }
}

impl<W: Write> Write for PackInspector<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check(bytes)?;
        self.inner.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Body {
    /// Creates the state of an object at this offset, of which at most `most` bytes may be held.
    fn new(head: &ObjectHeader, begun: u64, most: u64) -> Result<Self, PackError> {
        match (head.is_difference, head.is_file) {
            (true, _) => check_held_size(head.size, most)?,
            (false, true) => {}
            (false, false) => check_held_size(head.size, MAX_WHOLE_BYTES)?,
        }
        let sizes = head.is_difference.then(Vec::new);
        let base = head.distance.and_then(|distance| begun.checked_sub(distance));
        Ok(Self { inflate: Decompress::new(true), size: head.size, sizes, base, builds: None, most })
    }

    /// Inflates from `bytes`; returns the number of bytes used, and true if the object ends there.
    fn inflate(&mut self, bytes: &[u8]) -> Result<(usize, bool), PackError> {
        let mut window = [0; WINDOW_BYTES];
        let mut used = 0;
        loop {
            let (before, out_before) = (self.inflate.total_in(), self.inflate.total_out());
            let status = self.inflate.decompress(&bytes[used..], &mut window, FlushDecompress::None);
            let status =
                status.map_err(|_| PackError::Damaged("an object in its pack cannot be inflated"))?;
            // Both values fit: they are at most the lengths of the two slices.
            let taken = (self.inflate.total_in() - before) as usize;
            let given = (self.inflate.total_out() - out_before) as usize;
            used += taken;
            if self.inflate.total_out() > self.size {
                return Err(LIES);
            }
            self.look_at_sizes(&window[..given])?;
            match status {
                Status::StreamEnd if self.inflate.total_out() != self.size || self.sizes.is_some() => {
                    return Err(LIES);
                }
                Status::StreamEnd => return Ok((used, true)),
                Status::Ok | Status::BufError if taken == 0 && given == 0 => {
                    // All input is used: without input there is no progress, and with input there
                    // always is.
                    return if used == bytes.len() { Ok((used, false)) } else { Err(LIES) };
                }
                Status::Ok | Status::BufError => {}
            }
        }
    }

    /// Checks the sizes at the beginning of a delta: of its base and of its result.
    fn look_at_sizes(&mut self, given: &[u8]) -> Result<(), PackError> {
        let Some(gathered) = &mut self.sizes else { return Ok(()) };
        let room = MAX_SIZES_BYTES.saturating_sub(gathered.len());
        gathered.extend_from_slice(&given[..given.len().min(room)]);
        let Some((base, rest)) = size(gathered, 0, 0)? else { return Ok(()) };
        let Some((built, _)) = size(&gathered[rest..], 0, 0)? else { return Ok(()) };
        check_held_size(base, self.most)?;
        check_held_size(built, self.most)?;
        (self.sizes, self.builds) = (None, Some((base, built)));
        Ok(())
    }
}

const LIES: PackError = PackError::Damaged("an object in its pack lies about its size");

fn check_held_size(bytes: u64, limit: u64) -> Result<(), PackError> {
    match bytes > limit {
        true => Err(PackError::TooLarge { what: "bytes in one object of its pack", limit }),
        false => Ok(()),
    }
}

/// Parses the number of objects in the header of a pack.
fn objects(header: &[u8], most: u64) -> Result<u32, PackError> {
    let [b'P', b'A', b'C', b'K', 0, 0, 0, 2 | 3, a, b, c, d] = *header else {
        return Err(PackError::Damaged("what it sends is not a pack"));
    };
    match u32::from_be_bytes([a, b, c, d]) {
        count if u64::from(count) > most.min(u64::from(MAX_OBJECTS)) => {
            Err(PackError::TooLarge { what: "objects in its pack", limit: most.min(u64::from(MAX_OBJECTS)) })
        }
        count => Ok(count),
    }
}

/// Parses the header of an object, once it is complete: kind, size, and the base of a delta.
fn head(gathered: &[u8]) -> Result<Option<ObjectHeader>, PackError> {
    let [first, rest @ ..] = gathered else { return Ok(None) };
    let (kind, low) = (first >> 4 & 7, u64::from(first & 15));
    let (size, at) = match first & 0x80 {
        0 => (low, 0),
        _ => match size(rest, low, 4)? {
            Some(found) => found,
            None => return Ok(None),
        },
    };
    let base = &rest[at..];
    let complete = match kind {
        1..=4 => true,
        6 if base.len() > MAX_SIZES_BYTES => return Err(LIES),
        6 => base.last().is_some_and(|byte| byte & 0x80 == 0),
        7 => base.len() == 20,
        _ => return Err(PackError::Damaged("an object in its pack is of an unknown kind")),
    };
    let distance = (kind == 6).then(|| distance(base));
    Ok(complete.then_some(ObjectHeader { is_file: kind == 3, is_difference: kind >= 6, size, distance }))
}

/// Parses a distance in groups of seven bits, highest first; each group after the first adds one to
/// those before it.
fn distance(bytes: &[u8]) -> u64 {
    let group = |byte: &u8| u64::from(byte & 0x7f);
    let (first, rest) = bytes.split_first().map_or((0, bytes), |(first, rest)| (group(first), rest));
    rest.iter().fold(first, |value, byte| (value.wrapping_add(1) << 7) | group(byte))
}

/// Parses a size in groups of seven bits, lowest first, and returns it with its length; none if it
/// is incomplete.
fn size(bytes: &[u8], mut value: u64, mut shift: u32) -> Result<Option<(u64, usize)>, PackError> {
    for (at, byte) in bytes.iter().enumerate() {
        if shift > 56 {
            return Err(LIES);
        }
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Ok(Some((value, at + 1)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;

    use super::*;

    fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value > 0x7f {
            bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    /// Builds an object: its kind, the declared size, its base, and its bytes.
    fn object(kind: u8, claimed: u64, base: &[u8], bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![kind << 4 | (claimed & 15) as u8];
        if claimed > 15 {
            out[0] |= 0x80;
            out.extend(varint(claimed >> 4));
        }
        out.extend_from_slice(base);
        let mut encoder = ZlibEncoder::new(out, Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn pack(objects: &[Vec<u8>]) -> Vec<u8> {
        let mut out = b"PACK\0\0\0\x02".to_vec();
        out.extend((objects.len() as u32).to_be_bytes());
        out.extend(objects.concat());
        out.extend([7; 20]);
        out
    }

    fn difference(base: u64, built: u64) -> Vec<u8> {
        [varint(base), varint(built), vec![1, b'x']].concat()
    }

    /// Returns the error for a pack that arrives in pieces of `step` bytes.
    fn refused(pack: &[u8], step: usize) -> Option<String> {
        let mut guard = PackInspector::new(Vec::new(), &Memory::new(Some(4 << 30)));
        match pack.chunks(step).try_for_each(|piece| guard.write_all(piece)) {
            Ok(()) => {
                assert_eq!(guard.inner, pack);
                None
            }
            Err(error) => Some(error.to_string()),
        }
    }

    #[test]
    fn packs_that_unpack_into_too_much_are_refused() {
        let big = MAX_HELD_BYTES + 1;
        let small = difference(1, 1);
        let length = small.len() as u64;
        let far = difference(big, 1);
        let wide = difference(1, big);
        let zeros = vec![0; 300_000];
        let table = [
            (pack(&[]), None),
            (pack(&[object(3, 2, b"", b"ab"), object(1, 20, b"", &[b'c'; 20])]), None),
            (pack(&[object(3, 300_000, b"", &zeros), object(2, 0, b"", b"")]), None),
            (pack(&[object(6, length, &[0x81, 5], &small), object(7, length, &[9; 20], &small)]), None),
            (pack(&[object(3, 3, b"", b"ab")]), Some("lies about its size")),
            (pack(&[object(3, 1, b"", b"ab")]), Some("lies about its size")),
            (pack(&[object(3, 10, b"", &zeros)]), Some("lies about its size")),
            (pack(&[object(2, big, b"", b"")]), Some("bytes in one object")),
            (pack(&[object(7, far.len() as u64, &[9; 20], &far)]), Some("bytes in one object")),
            (pack(&[object(6, wide.len() as u64, &[5], &wide)]), Some("bytes in one object")),
            (pack(&[object(6, 1, &[5], &[0x80])]), Some("lies about its size")),
            (pack(&[object(5, 0, b"", b"")]), Some("unknown kind")),
            (pack(&[vec![0x30, 1, 2, 3]]), Some("cannot be inflated")),
            (pack(&[[vec![0xb0], vec![0xff; 12]].concat()]), Some("lies about its size")),
            (b"PACK\0\0\0\x02\xff\xff\xff\xff".to_vec(), Some("objects in its pack")),
            (b"<html><body>".to_vec(), Some("not a pack")),
        ];
        for (at, (pack, expect)) in table.iter().enumerate() {
            for step in [1, 7, 100, usize::MAX] {
                let found = refused(pack, step);
                let fits = match (&found, expect) {
                    (Some(found), Some(expect)) => found.contains(expect),
                    (found, expect) => found.is_none() && expect.is_none(),
                };
                assert!(fits, "row {at} in steps of {step}: {found:?}");
            }
        }
    }

    #[test]
    fn what_differences_build_is_counted_with_all_below_them() {
        const SIZE: u64 = 100 << 20;
        // Each delta has the previous one as base, which is rebuilt for it; then all have the first
        // one.
        for (is_chain, expect) in [(true, 7), (false, 20)] {
            let mut objects = vec![object(3, 2, b"", b"ab")];
            let mut length = objects[0].len();
            let mut most = 0;
            for count in 1..60 {
                let bytes = difference(SIZE, SIZE);
                let last = objects.last().map_or(0, Vec::len);
                // Distances below 128 have one byte.
                let distance = if is_chain { last } else { 0 };
                let base = if is_chain { vec![distance as u8] } else { vec![9; 20] };
                let kind = if is_chain { 6 } else { 7 };
                objects.push(object(kind, bytes.len() as u64, &base, &bytes));
                length += objects.last().map_or(0, Vec::len);
                match refused(&pack(&objects), usize::MAX) {
                    None => most = count,
                    Some(told) => {
                        assert!(told.contains("bytes that the differences in its pack build"), "{told}");
                        break;
                    }
                }
            }
            assert!(length > 0);
            assert_eq!(most, expect, "chain: {is_chain}");
        }
    }

    proptest! {
        #[test]
        fn noise_never_panics(
            noise in proptest::collection::vec(any::<u8>(), 0..200),
            step in 1_usize..50,
        ) {
            let mut bytes = pack(&[object(3, 2, b"", b"ab")]);
            bytes.truncate(14);
            bytes.extend(noise);
            drop(refused(&bytes, step));
        }
    }
}
