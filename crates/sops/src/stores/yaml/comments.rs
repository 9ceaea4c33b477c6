//! Finds encrypted comments in the text between the scalars of a file.

use std::ops::Range;

use super::super::super::error::MAX_ENCRYPTED_VALUES;
use super::{NodeEvent, NodeEventKind, value};

/// Returns the ranges of encrypted comments, each without its sign. The search ends one above their
/// bound, which is enough for a refusal.
pub(super) fn encrypted(text: &str, events: &[NodeEvent]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    for event in events {
        let NodeEventKind::Scalar { text: scalar, .. } = &event.kind else { continue };
        scan(text, at..event.start, &mut found);
        // An encrypted scalar is replaced with its header.
        if !value::looks_encrypted(scalar) {
            scan_header(text, event.start..event.end, &mut found);
        }
        at = event.end;
    }
    scan(text, at..text.len(), &mut found);
    found
}

/// Scans a text without scalars.
fn scan(text: &str, range: Range<usize>, found: &mut Vec<Range<usize>>) {
    let mut at = range.start;
    while let Some(sign) = text.get(at..range.end).and_then(|rest| rest.find('#')) {
        if found.len() > MAX_ENCRYPTED_VALUES {
            return;
        }
        let start = at + sign + 1;
        let before = text.as_bytes().get(..start - 1).and_then(<[u8]>::last);
        if !matches!(before, None | Some(b' ' | b'\t' | b'\n' | b'\r')) {
            at = start;
            continue;
        }
        let line = text.get(start..).and_then(|rest| rest.split(['\n', '\r']).next()).unwrap_or_default();
        let comment = line.trim_end();
        if value::looks_encrypted(comment) {
            found.push(start..start + comment.len());
        }
        at = start + line.len();
    }
}

/// Scans the first line of a block scalar, which may end with a comment.
fn scan_header(text: &str, range: Range<usize>, found: &mut Vec<Range<usize>>) {
    let source = text.get(range.clone()).unwrap_or_default();
    let Some((header, _)) = source.split_once('\n') else { return };
    let before = header.split('#').next().unwrap_or_default();
    let last = before.split_whitespace().last().unwrap_or_default();
    if last.starts_with(['|', '>']) {
        scan(text, range.start + before.len()..range.start + header.len(), found);
    }
}

#[cfg(test)]
mod tests {
    use moorline_yaml::read_events;

    use super::*;

    #[test]
    fn comments_are_found_and_texts_are_not() {
        let file = "#ENC[AES256_GCM,data:1]\na: '#ENC[AES256_GCM,data:x]' #ENC[AES256_GCM,data:2] \n\
                    b: x#ENC[AES256_GCM,data:x\n# plain #ENC[AES256_GCM,data:x]\n\
                    c: |- #ENC[AES256_GCM,data:3]\n  #ENC[AES256_GCM,data:x]\nd: ENC[AES256_GCM,data:x]\n\
                    e:\n- [] #ENC[AES256_GCM,data:4]\n#ENC[AES256_GCM,data:5]";
        let events = read_events("f.yaml", file.as_bytes(), 100).expect("reads");
        let found: Vec<&str> = encrypted(file, &events).into_iter().map(|range| &file[range]).collect();
        let expect: Vec<String> = (1..=5).map(|nth| format!("ENC[AES256_GCM,data:{nth}]")).collect();
        assert_eq!(found, expect);
    }
}
