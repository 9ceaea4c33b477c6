//! Checks times as Go parses them.
//!
//! In: a text; `micro` is true if it must have microseconds.
//! Out: the error message of Go.

/// Parts of Go's time layout, each with its maximum; separators have 0 and must match exactly.
const PARTS: [(&str, u32); 11] = [
    ("2006", 9999),
    ("-", 0),
    ("01", 12),
    ("-", 0),
    ("02", 31),
    ("T", 0),
    ("15", 23),
    (":", 0),
    ("04", 59),
    (":", 0),
    ("05", 59),
];
/// Time zone at the end of the layout.
const ZONE: &str = "Z07:00";

/// Returns the error for an invalid time; `None` if it is valid.
pub(super) fn unreadable(text: &str, micro: bool) -> Option<String> {
    let fraction = if micro { ".000000" } else { "" };
    let layout = format!("2006-01-02T15:04:05{fraction}{ZONE}");
    let at = |rest: &str, part: &str| {
        Some(format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}"))
    };
    let mut rest = text;
    let mut range = None;
    for (part, most) in PARTS {
        let Some((head, tail)) = rest.split_at_checked(part.len()) else { return at(rest, part) };
        let is_fine = if most == 0 { head == part } else { head.bytes().all(|byte| byte.is_ascii_digit()) };
        if !is_fine {
            return at(rest, part);
        }
        let number: u32 = head.parse().unwrap_or_default();
        let least = u32::from(matches!(part, "01" | "02"));
        if most > 0 && !(least..=most).contains(&number) && range.is_none() {
            range = Some(part);
        }
        rest = tail;
    }
    let digits = rest.strip_prefix('.').map(|rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    rest = match (micro, digits) {
        (true, Some(6..)) => &rest[7..],
        (true, _) => return at(rest, fraction),
        (false, Some(count @ 1..)) => &rest[1 + count..],
        (false, _) => rest,
    };
    if let Some(part) = range {
        let what = match part {
            "01" => "month",
            "02" => "day",
            "15" => "hour",
            "04" => "minute",
            _ => "second",
        };
        return Some(format!("parsing time {text:?}: {what} out of range"));
    }
    if !is_zone(rest) {
        return at(rest, ZONE);
    }
    let is_moment = text.parse::<jiff::Timestamp>().is_ok();
    (!is_moment).then(|| format!("parsing time {text:?}: day out of range"))
}

fn is_zone(text: &str) -> bool {
    let offset = |bytes: &[u8]| matches!(bytes, [b'+' | b'-', a, b, b':', c, d] if [a, b, c, d].iter().all(|it| it.is_ascii_digit()));
    text == "Z" || offset(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::unreadable;

    #[test]
    fn times_are_read_as_go_reads_them() {
        let check = |text: &str, micro: bool, words: &str| {
            assert_eq!(unreadable(text, micro).unwrap_or_default(), words, "{text}");
        };
        check("2024-01-01T00:00:00Z", false, "");
        check("2024-01-01T00:00:00.5Z", false, "");
        check("2024-01-01T00:00:00+02:00", false, "");
        check("2024-01-01T00:00:00.123456Z", true, "");
        let plain = "\"2006-01-02T15:04:05Z07:00\"";
        check("x", false, &format!("parsing time \"x\" as {plain}: cannot parse \"x\" as \"2006\""));
        check(
            "2024-01-01 00:00:00Z",
            false,
            &format!(
                "parsing time \"2024-01-01 00:00:00Z\" as {plain}: cannot parse \" 00:00:00Z\" as \"T\""
            ),
        );
        check(
            "2024-01-01T00:00:00",
            false,
            &format!("parsing time \"2024-01-01T00:00:00\" as {plain}: cannot parse \"\" as \"Z07:00\""),
        );
        check("2024-13-01T00:00:00Z", false, "parsing time \"2024-13-01T00:00:00Z\": month out of range");
        check("2023-02-30T00:00:00Z", false, "parsing time \"2023-02-30T00:00:00Z\": day out of range");
        let micro = "\"2006-01-02T15:04:05.000000Z07:00\"";
        check(
            "2024-01-01T00:00:00.5Z",
            true,
            &format!(
                "parsing time \"2024-01-01T00:00:00.5Z\" as {micro}: cannot parse \".5Z\" as \".000000\""
            ),
        );
    }
}
