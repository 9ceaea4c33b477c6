//! Archives as packers write them, and malicious ones.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{BLOCK, FileTree, MAX_FILE_BYTES, MemoryLimit, TreeEntry};
use crate::ChartError;

fn unpack(packed: &[u8]) -> Result<FileTree, ChartError> {
    super::unpack(packed, &MemoryLimit::default())
}

/// An archive entry with a correct header.
fn thing(path: &str, kind: u8, size: u64, content: &[u8]) -> Vec<u8> {
    let mut head = [0; BLOCK];
    head[..path.len()].copy_from_slice(path.as_bytes());
    head[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    head[156] = kind;
    head[257..263].copy_from_slice(b"ustar\0");
    head[148..156].fill(b' ');
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    head[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
    let mut bytes = head.to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

fn file(path: &str, text: &str) -> Vec<u8> {
    thing(path, b'0', text.len() as u64, text.as_bytes())
}

fn packed(things: &[Vec<u8>]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    things.iter().for_each(|thing| gzip.write_all(thing).unwrap());
    gzip.write_all(&[0; 2 * BLOCK]).unwrap();
    gzip.finish().unwrap()
}

fn refused(things: &[Vec<u8>], part: &str) {
    let things = [&[file("web/Chart.yaml", "name: web\n")], things].concat();
    let problem = unpack(&packed(&things)).unwrap_err().to_string();
    assert!(problem.contains(part), "{part}: {problem}");
}

#[test]
fn files_lie_below_the_folder_of_the_chart() {
    let long = format!("web/{}/a.yaml", "x".repeat(150));
    let record = |name: &str, value: &str| {
        let rest = format!(" {name}={value}\n");
        let length = (rest.len()..).find(|length| length.to_string().len() + rest.len() == *length).unwrap();
        format!("{length}{rest}")
    };
    let extended = record("mtime", "1.5") + &record("path", &long);
    let things = [
        thing("web/", b'5', 0, b""),
        file("web/Chart.yaml", "name: web\n"),
        file("./web/templates//a.yaml", "a"),
        thing("pax_global_header", b'g', 0, b""),
        thing("PaxHeaders/a", b'x', extended.len() as u64, extended.as_bytes()),
        file("short", "long"),
        thing("././@LongLink", b'L', long.len() as u64 + 2, format!("{long}b\0").as_bytes()),
        file("short", "longer"),
        thing("web/empty", b'\0', 0, b""),
    ];
    let tree = unpack(&packed(&things)).unwrap();
    let texts: Vec<(&str, String)> = tree
        .entries()
        .map(|(path, entry)| match entry {
            TreeEntry::File(bytes) => (path, String::from_utf8(bytes.to_vec()).unwrap()),
            other => panic!("{path}: {other:?}"),
        })
        .collect();
    let inside = long.strip_prefix("web/").unwrap();
    let more = format!("{inside}b");
    let expect = [
        ("Chart.yaml", "name: web\n"),
        ("empty", ""),
        ("templates/a.yaml", "a"),
        (inside, "long"),
        (&more, "longer"),
    ];
    assert_eq!(texts.iter().map(|(path, text)| (*path, text.as_str())).collect::<Vec<_>>(), expect);
}

#[test]
fn what_leads_elsewhere_is_refused() {
    for path in ["/etc/passwd", "web/../../etc/passwd", "../web/a", "web\\a", "web/a\nb"] {
        refused(&[file(path, "x")], "leads elsewhere");
    }
    refused(&[thing("web/a", b'2', 0, b"")], "a link");
    refused(&[thing("web/a", b'1', 0, b"")], "a link");
    for device in [b'3', b'4', b'6', b'S', b'K'] {
        refused(&[thing("web/a", device, 0, b"")], "no file");
    }
    refused(&[file("other/a", "x")], "more than one folder");
    refused(&[file("web", "x")], "beside its folder");
    refused(&[file("web/Chart.yaml", "x")], "twice");
    refused(&[file("web/a", "x"), file("web/a/b", "x")], "a file where a folder");
    let long = format!("web/{}", "x".repeat(2000));
    refused(&[thing("l", b'L', long.len() as u64, long.as_bytes()), file("s", "x")], "a path of 2004 bytes");
}

#[test]
fn what_unpacks_to_too_much_is_refused_before_it_is() {
    let zeros = vec![0; 16 * 1024 * 1024];
    refused(&[thing("web/a", b'0', zeros.len() as u64, &zeros)], "unpacks to more");
    refused(&[thing("web/a", b'0', MAX_FILE_BYTES + 1, b"")], "a file of 33554433 bytes");
    refused(&[thing("web/a", b'0', 1 << 20, b"")], "damaged");
    let many: Vec<_> = (0..20_000).map(|at| file(&format!("web/{at}"), "")).collect();
    refused(&many, "more than 20000 files");
}

#[test]
fn what_is_no_archive_of_a_chart_is_refused() {
    let check = |bytes: &[u8], part: &str| {
        let problem = unpack(bytes).unwrap_err().to_string();
        assert!(problem.contains(part), "{problem}");
    };
    check(b"", "damaged");
    check(b"<html>not found</html>", "not packed as gzip");
    check(&packed(&[]), "no Chart.yaml");
    check(&packed(&[file("web/values.yaml", "")]), "no Chart.yaml");
    let whole = packed(&[file("web/Chart.yaml", &"name: web\n".repeat(100))]);
    // Data after the end of the archive is ignored: the digest covers all of it.
    for length in 0..whole.len() / 2 {
        assert!(unpack(&whole[..length]).is_err(), "{length}");
    }
    let mut broken = file("web/Chart.yaml", "x");
    broken[0] = b'v';
    check(&packed(&[broken]), "a head is not whole");
    refused(&[thing("p", b'x', 4, b"9 a\n"), file("web/a", "x")], "extended head");
    refused(&[thing("p", b'x', 4, b"0 a="), file("web/a", "x")], "extended head");
}

#[test]
fn no_more_is_unpacked_than_there_is_room_for() {
    let things = [file("web/Chart.yaml", "name: web\n"), file("web/a", &"a".repeat(100_000))];
    let packed = packed(&things);
    let (small, enough) = (MemoryLimit::with_bytes(50_000), MemoryLimit::with_bytes(200_000));
    assert!(super::unpack(&packed, &enough).is_ok());
    assert_eq!(super::unpack(&packed, &small).unwrap_err().reason(), "MemoryBusy");
    assert!(small.required_bytes().is_some_and(|bytes| bytes > 100_000));
    drop(enough.stop_on_drop());
    assert_eq!(super::unpack(&packed, &enough).unwrap_err().reason(), "RepositoryTimeout");
}
