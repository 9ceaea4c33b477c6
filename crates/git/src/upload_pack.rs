//! Git's upload-pack protocol: version 2, and versions 0 and 1 for older servers.
//!
//! In: the wanted objects, and the pkt-lines of a response.
//! Out: request bodies, [`ServerCapabilities`], refs, and the bytes of a pack. Independent of
//! connections, so that http and ssh share it.

use std::io::{Read, Write};

use super::revision::{AdvertisedRef, ObjectHash};
use crate::pkt_line::{PktLine, PktLineReader, PktLineWriter, ProtocolError};

/// Maximum number of refs in a listing.
pub(super) const MAX_REFS: usize = 1_000_000;

/// Maximum number of shallow commits in a response.
const MAX_SHALLOW: usize = 100_000;

/// Agent capability that we send.
const AGENT: &str = concat!("agent=moorline/", env!("CARGO_PKG_VERSION"));

/// Capabilities of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ServerCapabilities {
    pub(super) version: ProtocolVersion,
    /// The server supports shallow fetches.
    pub(super) shallow: bool,
    /// The server supports filters.
    pub(super) filter: bool,
}

/// Protocol version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProtocolVersion {
    /// Version 0 or 1: every connection begins with all refs.
    One,
    /// Version 2: refs are requested by name.
    Two,
}

/// Content of a fetch request.
#[derive(Debug, Default)]
pub(super) struct FetchRequest<'a> {
    pub(super) commits: &'a [ObjectHash],
    /// Commits that are complete here.
    pub(super) have: &'a [ObjectHash],
    /// Commits whose parents are not here.
    pub(super) shallow: &'a [ObjectHash],
    pub(super) depth: Option<u32>,
    /// Requests only commits, without trees and files.
    pub(super) commits_only: bool,
}

/// Result of a fetch, apart from the pack.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FetchResult {
    pub(super) shallow: Vec<ObjectHash>,
    pub(super) unshallow: Vec<ObjectHash>,
    pub(super) pack_bytes: u64,
}

/// Reads the first response of a server.
pub(super) fn greeting<R: Read>(
    packets: &mut PktLineReader<R>,
) -> Result<(ServerCapabilities, Vec<AdvertisedRef>), ProtocolError> {
    let mut first = packets.line()?.map(str::to_owned);
    if first.as_deref() == Some("# service=git-upload-pack") {
        packets.line()?;
        first = packets.line()?.map(str::to_owned);
    }
    match first.as_deref() {
        Some("version 2") => Ok((capabilities(packets)?, Vec::new())),
        Some("version 1") => {
            let first = packets.line()?.map(str::to_owned);
            listing(packets, first)
        }
        Some(_) | None => listing(packets, first),
    }
}

fn capabilities<R: Read>(packets: &mut PktLineReader<R>) -> Result<ServerCapabilities, ProtocolError> {
    let mut found = ServerCapabilities { version: ProtocolVersion::Two, shallow: false, filter: false };
    let mut complete = (false, false);
    while let Some(line) = packets.line()? {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        match name {
            "ls-refs" => complete.0 = true,
            "fetch" => {
                complete.1 = true;
                found.shallow = value.split(' ').any(|word| word == "shallow");
                found.filter = value.split(' ').any(|word| word == "filter");
            }
            "object-format" if value != "sha1" => return Err(ProtocolError::Bad(ONLY_SHA1)),
            _ => {}
        }
    }
    match complete {
        (true, true) => Ok(found),
        _ => Err(ProtocolError::Bad("it offers neither refs nor objects")),
    }
}

const ONLY_SHA1: &str = "its object ids are not SHA-1, which is not supported yet";
const NO_REF: &str = "a line of its refs cannot be read";

fn listing<R: Read>(
    packets: &mut PktLineReader<R>,
    first: Option<String>,
) -> Result<(ServerCapabilities, Vec<AdvertisedRef>), ProtocolError> {
    let mut found = ServerCapabilities { version: ProtocolVersion::One, shallow: false, filter: false };
    let mut refs: Vec<AdvertisedRef> = Vec::new();
    let Some(first) = first else { return Ok((found, refs)) };
    let (line, words) =
        first.split_once('\0').ok_or(ProtocolError::Bad("it does not announce its capabilities"))?;
    let has = |word: &str| words.split(' ').any(|other| other == word);
    if words.split(' ').any(|word| word.starts_with("object-format=") && word != "object-format=sha1") {
        return Err(ProtocolError::Bad(ONLY_SHA1));
    }
    if !has("side-band-64k") {
        return Err(ProtocolError::Bad("it cannot send packs in frames (side-band-64k)"));
    }
    found.shallow = has("shallow");
    found.filter = has("filter");
    let head = words.split(' ').find_map(|word| word.strip_prefix("symref=HEAD:"));
    let mut line = Some(line.to_owned());
    while let Some(text) = line {
        let (id, name) = text.split_once(' ').ok_or(ProtocolError::Bad(NO_REF))?;
        match (id, name) {
            ("shallow", _) | (_, "capabilities^{}") => {}
            (id, name) => add(&mut refs, id, name, head)?,
        }
        line = packets.line()?.map(str::to_owned);
    }
    Ok((found, refs))
}

fn add(refs: &mut Vec<AdvertisedRef>, id: &str, name: &str, head: Option<&str>) -> Result<(), ProtocolError> {
    let id = ObjectHash::parse(id).ok_or(ProtocolError::Bad(NO_REF))?;
    if refs.len() >= MAX_REFS {
        return Err(ProtocolError::TooLarge(MAX_REFS as u64));
    }
    if let Some(name) = name.strip_suffix("^{}") {
        // A peeled line follows the line of its tag.
        if let Some(tag) = refs.last_mut().filter(|tag| &*tag.name == name) {
            tag.peeled = Some(id);
        }
        return Ok(());
    }
    let symbolic = head.filter(|_| name == "HEAD").map(Into::into);
    refs.push(AdvertisedRef { name: name.into(), id, peeled: None, symbolic });
    Ok(())
}

/// Builds the request for the refs with one of `prefixes`, version 2.
pub(super) fn refs_request(prefixes: &[String]) -> Vec<u8> {
    let mut request = PktLineWriter::default();
    request.line("command=ls-refs").line(AGENT).line("object-format=sha1").delimiter();
    request.line("peel").line("symrefs");
    for prefix in prefixes {
        request.line(&format!("ref-prefix {prefix}"));
    }
    request.flush();
    request.into_bytes()
}

/// Reads the response to [`refs_request`].
pub(super) fn refs<R: Read>(packets: &mut PktLineReader<R>) -> Result<Vec<AdvertisedRef>, ProtocolError> {
    let mut refs = Vec::new();
    while let Some(line) = packets.line()? {
        let mut words = line.split(' ');
        let (Some(id), Some(name)) = (words.next(), words.next()) else {
            return Err(ProtocolError::Bad(NO_REF));
        };
        if id == "unborn" {
            continue;
        }
        let mut found = AdvertisedRef {
            name: name.into(),
            id: ObjectHash::parse(id).ok_or(ProtocolError::Bad(NO_REF))?,
            peeled: None,
            symbolic: None,
        };
        for word in words {
            match word.split_once(':') {
                Some(("symref-target", target)) => found.symbolic = Some(target.into()),
                Some(("peeled", id)) => {
                    found.peeled = Some(ObjectHash::parse(id).ok_or(ProtocolError::Bad(NO_REF))?)
                }
                _ => {}
            }
        }
        if refs.len() >= MAX_REFS {
            return Err(ProtocolError::TooLarge(MAX_REFS as u64));
        }
        refs.push(found);
    }
    Ok(refs)
}

/// Builds the request for objects. It sends `done` at once: with a few complete commits there is
/// nothing to negotiate.
pub(super) fn fetch_request(greeting: &ServerCapabilities, wanted: &FetchRequest<'_>) -> Vec<u8> {
    let mut request = PktLineWriter::default();
    let filter = wanted.commits_only && greeting.filter;
    match greeting.version {
        ProtocolVersion::Two => {
            request.line("command=fetch").line(AGENT).line("object-format=sha1").delimiter();
            request.line("thin-pack").line("no-progress").line("ofs-delta");
            wanted.commits.iter().for_each(|id| request.add(&format!("want {id}")));
        }
        ProtocolVersion::One => {
            let mut words = "multi_ack_detailed side-band-64k thin-pack no-progress ofs-delta ".to_owned();
            if greeting.shallow {
                words.push_str("shallow ");
            }
            if filter {
                words.push_str("filter ");
            }
            for (at, id) in wanted.commits.iter().enumerate() {
                match at {
                    0 => request.line(&format!("want {id} {words}{AGENT}")),
                    _ => request.line(&format!("want {id}")),
                };
            }
        }
    }
    if greeting.shallow {
        wanted.shallow.iter().for_each(|id| request.add(&format!("shallow {id}")));
        if let Some(depth) = wanted.depth {
            request.line(&format!("deepen {depth}"));
        }
    }
    if filter {
        request.line("filter tree:0");
    }
    if greeting.version == ProtocolVersion::One {
        request.flush();
    }
    wanted.have.iter().for_each(|id| request.add(&format!("have {id}")));
    request.line("done");
    if greeting.version == ProtocolVersion::Two {
        request.flush();
    }
    request.into_bytes()
}

/// Reads the response to [`fetch_request`]; the pack is written to `pack`.
pub(super) fn objects<R: Read>(
    packets: &mut PktLineReader<R>,
    greeting: &ServerCapabilities,
    deepened: bool,
    pack: &mut dyn Write,
) -> Result<FetchResult, ProtocolError> {
    let mut received = FetchResult::default();
    match greeting.version {
        ProtocolVersion::Two => loop {
            match packets.line()? {
                Some("packfile") => break,
                Some("shallow-info") => shallow(packets, &mut received)?,
                Some(_) => while packets.line()?.is_some() {},
                None => return Err(ProtocolError::Bad("it sends no pack")),
            }
        },
        ProtocolVersion::One if deepened && greeting.shallow => shallow(packets, &mut received)?,
        ProtocolVersion::One => {}
    }
    loop {
        match packets.next()? {
            PktLine::Flush => return Ok(received),
            PktLine::Mark => {}
            PktLine::Data([1, data @ ..]) => {
                received.pack_bytes += data.len() as u64;
                pack.write_all(data).map_err(ProtocolError::Output)?;
            }
            PktLine::Data([2, ..]) => {}
            PktLine::Data([3, ..]) => return Err(ProtocolError::Refused),
            PktLine::Data(data) if received.pack_bytes == 0 && acknowledges(data) => {}
            PktLine::Data(_) => return Err(ProtocolError::Bad("its pack comes in unknown frames")),
        }
    }
}

fn acknowledges(data: &[u8]) -> bool {
    data.starts_with(b"ACK ") || data.starts_with(b"NAK")
}

fn shallow<R: Read>(packets: &mut PktLineReader<R>, received: &mut FetchResult) -> Result<(), ProtocolError> {
    while let Some(line) = packets.line()? {
        let (list, id) = match line.split_once(' ') {
            Some(("shallow", id)) => (&mut received.shallow, id),
            Some(("unshallow", id)) => (&mut received.unshallow, id),
            _ => return Err(ProtocolError::Bad("a line about shallow commits cannot be read")),
        };
        if list.len() >= MAX_SHALLOW {
            return Err(ProtocolError::TooLarge(MAX_SHALLOW as u64));
        }
        list.push(ObjectHash::parse(id).ok_or(ProtocolError::Bad("a shallow commit has no id"))?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    /// A response with these lines; `-` is a flush.
    fn answer(lines: &[&str]) -> PktLineReader<std::io::Cursor<Vec<u8>>> {
        let mut bytes = Vec::new();
        for line in lines {
            match *line {
                "-" => bytes.extend_from_slice(b"0000"),
                line => bytes.extend_from_slice(format!("{:04x}{line}\n", line.len() + 5).as_bytes()),
            }
        }
        PktLineReader::new(std::io::Cursor::new(bytes), 10_000)
    }

    /// Formats refs in one line: name, first digit of the id and of the peeled id, and the symbolic
    /// target.
    fn shown(refs: &[AdvertisedRef]) -> String {
        let one = |found: &AdvertisedRef| {
            let digit = |id: ObjectHash| id.to_string()[..1].to_owned();
            let peeled = found.peeled.map(|id| format!("^{}", digit(id))).unwrap_or_default();
            let symbolic = found.symbolic.as_ref().map(|name| format!(">{name}")).unwrap_or_default();
            format!("{}={}{peeled}{symbolic}", found.name, digit(found.id))
        };
        refs.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    /// Version, support for shallow fetches and filters, and the refs; or the error.
    type Understood<'a> = Result<(ProtocolVersion, bool, bool, &'a str), &'a str>;

    #[test]
    fn greetings_of_all_versions_are_understood() {
        let old = format!("{A} HEAD\0side-band-64k shallow symref=HEAD:refs/heads/main agent=x");
        let main = format!("{A} refs/heads/main");
        let (tag, peeled) = (format!("{A} refs/tags/t"), format!("{B} refs/tags/t^{{}}"));
        let empty = format!("{} capabilities^{{}}\0side-band-64k", "0".repeat(40));
        let sha256 = format!("{A} HEAD\0side-band-64k object-format=sha256");
        let plain = format!("{A} HEAD\0shallow");
        let service = "# service=git-upload-pack";
        let table: &[(&[&str], Understood<'_>)] = &[
            (
                &[service, "-", "version 2", "agent=x", "ls-refs=unborn", "fetch=shallow filter", "-"],
                Ok((ProtocolVersion::Two, true, true, "")),
            ),
            (&["version 2", "ls-refs", "fetch", "-"], Ok((ProtocolVersion::Two, false, false, ""))),
            (
                &[service, "-", &old, &main, &tag, &peeled, "-"],
                Ok((
                    ProtocolVersion::One,
                    true,
                    false,
                    "HEAD=a>refs/heads/main refs/heads/main=a refs/tags/t=a^b",
                )),
            ),
            (
                &[service, "-", "version 1", &old, "-"],
                Ok((ProtocolVersion::One, true, false, "HEAD=a>refs/heads/main")),
            ),
            (&[service, "-", &empty, "-"], Ok((ProtocolVersion::One, false, false, ""))),
            (&["version 2", "ls-refs", "fetch", "object-format=sha256", "-"], Err(ONLY_SHA1)),
            (&["version 2", "ls-refs", "-"], Err("it offers neither refs nor objects")),
            (&[service, "-", &sha256, "-"], Err(ONLY_SHA1)),
            (&[service, "-", &plain, "-"], Err("it cannot send packs in frames (side-band-64k)")),
            (&[service, "-", "hello", "-"], Err("it does not announce its capabilities")),
            (&[service, "-", "x HEAD\0side-band-64k", "-"], Err(NO_REF)),
        ];
        for (lines, expect) in table {
            let found = match greeting(&mut answer(lines)) {
                Ok((found, refs)) => Ok((found.version, found.shallow, found.filter, shown(&refs))),
                Err(ProtocolError::Bad(what)) => Err(what),
                Err(other) => panic!("{lines:?}: {other:?}"),
            };
            let expect = expect.map(|(version, cut, filter, refs)| (version, cut, filter, refs.to_owned()));
            assert_eq!(found, expect, "{lines:?}");
        }
    }

    #[test]
    fn refs_and_packs_are_read_from_their_answers() {
        let lines = [
            format!("{A} HEAD symref-target:refs/heads/main"),
            format!("{A} refs/tags/t peeled:{B} other:x"),
            "unborn HEAD symref-target:refs/heads/none".to_owned(),
            "-".to_owned(),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(shown(&refs(&mut answer(&lines)).unwrap()), "HEAD=a>refs/heads/main refs/tags/t=a^b");

        let two = ServerCapabilities { version: ProtocolVersion::Two, shallow: true, filter: false };
        let one = ServerCapabilities { version: ProtocolVersion::One, ..two };
        let cut = format!("shallow {A}");
        let uncut = format!("unshallow {B}");
        let bodies: [(&ServerCapabilities, &[&str]); 2] = [
            (&two, &["shallow-info", &cut, &uncut, "-", "packfile", "\u{2}counting", "\u{1}PACK", "-"]),
            (&one, &[&cut, &uncut, "-", "NAK", "ACK x common", "\u{2}counting", "\u{1}PACK", "-"]),
        ];
        for (greeting, lines) in bodies {
            let mut pack = Vec::new();
            let received = objects(&mut answer(lines), greeting, true, &mut pack).unwrap();
            assert_eq!(pack, b"PACK\n");
            assert_eq!((received.shallow.len(), received.unshallow.len(), received.pack_bytes), (1, 1, 5));
        }
        let broken = objects(&mut answer(&["packfile", "\u{3}planted", "-"]), &two, true, &mut Vec::new());
        assert!(matches!(broken, Err(ProtocolError::Refused)));
    }

    proptest! {
        #[test]
        fn no_bytes_of_a_server_make_it_panic(
            lines in proptest::collection::vec(
                prop_oneof![
                    Just("-".to_owned()),
                    Just("packfile".to_owned()),
                    Just("version 2".to_owned()),
                    Just("shallow-info".to_owned()),
                    Just("fetch=shallow".to_owned()),
                    Just(format!("{A} HEAD\0side-band-64k")),
                    Just(format!("{A} refs/tags/a^{{}}")),
                    "[\\x00-\\x03]?[a-f0-9]{0,41}[ :=]?.{0,8}",
                ],
                0..12,
            ),
            noise in proptest::collection::vec(any::<u8>(), 0..40),
            version in prop_oneof![Just(ProtocolVersion::One), Just(ProtocolVersion::Two)],
        ) {
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let told = ServerCapabilities { version, shallow: true, filter: false };
            drop(greeting(&mut answer(&lines)));
            drop(refs(&mut answer(&lines)));
            drop(objects(&mut answer(&lines), &told, true, &mut Vec::new()));
            drop(greeting(&mut PktLineReader::new(&noise[..], 1000)));
            drop(objects(&mut PktLineReader::new(&noise[..], 1000), &told, true, &mut Vec::new()));
        }
    }
}
