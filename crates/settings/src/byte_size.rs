//! Amounts of bytes, as Kubernetes writes them.
//!
//! In: a text such as `512Mi` or `2G`.
//! Out: a number of bytes. Fractions are not accepted: no memory limit needs half a byte.

/// Units and their number of bytes.
const UNITS: [(&str, u64); 9] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("", 1),
];

/// Parses an amount; none if it is invalid or zero.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*factor).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units() {
        let table = [
            ("512Mi", Some(512 << 20)),
            ("2G", Some(2_000_000_000)),
            ("1000", Some(1000)),
            ("0", None),
            ("Mi", None),
            ("1.5Gi", None),
            ("-1Mi", None),
            ("1 Mi", None),
            ("99999999999Ti", None),
        ];
        table.iter().for_each(|(text, expect)| assert_eq!(parse_bytes(text), *expect, "{text}"));
    }
}
