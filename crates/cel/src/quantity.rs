//! Canonical form of quantities, as the API server writes them: `0.5` is `500m`, `1024Mi` is `1Gi`.
//!
//! In: a quantity as a person wrote it.
//! Out: the server's text for it, or `None` if it is invalid.

/// Number of nanos in one, the finest unit.
pub const NANO: i128 = 1_000_000_000;
/// Maximal number of digits; a longer quantity does not fit anywhere.
const MAX_DIGITS: usize = 30;

/// Notation of a quantity, which its canonical form keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notation {
    Decimal,
    Binary,
    Exponent,
}

/// Returns the canonical form; with `milli`, rounded up to thousandths as for resource requests and
/// limits.
pub fn canonical(text: &str, milli: bool) -> Option<String> {
    let (mut nanos, notation) = parse(text)?;
    if milli {
        nanos = rounded_up(nanos, NANO / 1000);
    }
    Some(write(nanos, notation))
}

/// Returns the value in thousandths, rounded up, for comparisons.
pub fn millis(text: &str) -> Option<i128> {
    parse(text).map(|(nanos, _)| rounded_up(nanos, NANO / 1000) / (NANO / 1000))
}

/// Returns the value in billionths.
pub fn nanos(text: &str) -> Option<i128> {
    parse(text).map(|(nanos, _)| nanos)
}

fn parse(text: &str) -> Option<(i128, Notation)> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || number.len() > MAX_DIGITS {
        return None;
    }
    let (numerator, denominator, notation) = scale(suffix)?;
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let tens = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?.checked_mul(denominator)?;
    let scaled = digits.checked_mul(numerator)?;
    // Rounded away from zero, as the server rounds.
    let nanos = match scaled.checked_mul(NANO) {
        Some(scaled) => (scaled + tens - 1) / tens,
        None => (scaled / tens).checked_mul(NANO)?,
    };
    Some((if negative { -nanos } else { nanos }, notation))
}

/// Multiplier and divisor of a suffix.
fn scale(suffix: &str) -> Option<(i128, i128, Notation)> {
    let decimal = |power: u32| Some((10_i128.pow(power), 1, Notation::Decimal));
    let binary = |power: u32| Some((1024_i128.pow(power), 1, Notation::Binary));
    match suffix {
        "" => decimal(0),
        "n" => Some((1, NANO, Notation::Decimal)),
        "u" => Some((1, NANO / 1000, Notation::Decimal)),
        "m" => Some((1, 1000, Notation::Decimal)),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let power: i32 =
                suffix.strip_prefix(['e', 'E'])?.parse().ok().filter(|it| (-9..=18).contains(it))?;
            let ten = 10_i128.pow(power.unsigned_abs());
            Some(if power < 0 { (1, ten, Notation::Exponent) } else { (ten, 1, Notation::Exponent) })
        }
    }
}

fn write(nanos: i128, notation: Notation) -> String {
    // Small and fractional values are written in decimal notation, which loses nothing.
    let whole = nanos % NANO == 0 && nanos.abs() >= 1024 * NANO;
    if notation == Notation::Binary && whole {
        let (mut number, mut power) = (nanos / NANO, 0);
        while number % 1024 == 0 && power < 6 {
            (number, power) = (number / 1024, power + 1);
        }
        return format!("{number}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]);
    }
    if nanos == 0 {
        return "0".to_owned();
    }
    let (mut number, mut power) = (nanos, 0);
    while number % 1000 == 0 && power < 9 {
        (number, power) = (number / 1000, power + 1);
    }
    match (notation, power) {
        (Notation::Exponent, 3) => number.to_string(),
        (Notation::Exponent, _) => format!("{number}e{}", i64::try_from(power).unwrap_or(0) * 3 - 9),
        _ => format!("{number}{}", ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"][power]),
    }
}

fn rounded_up(nanos: i128, unit: i128) -> i128 {
    let rest = nanos.rem_euclid(unit);
    if rest == 0 { nanos } else { nanos - rest + unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_one_form() {
        for (written, form) in [
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Gi", "512Mi"),
            ("1000000000000m", "1G"),
            ("128974848", "128974848"),
            ("1000", "1k"),
            ("1e3", "1e3"),
            ("12E6", "12e6"),
            ("0", "0"),
            ("0Gi", "0"),
            ("512Ki", "512Ki"),
            ("1023", "1023"),
            ("0.5Ki", "512"),
            ("-1500m", "-1500m"),
            ("+2", "2"),
            ("2.", "2"),
            (".5", "500m"),
            ("1u", "1u"),
            ("100n", "100n"),
            ("0.0000000001", "1n"),
        ] {
            assert_eq!(canonical(written, false).as_deref(), Some(form), "{written}");
        }
        assert_eq!(canonical("1u", true).as_deref(), Some("1m"));
        for wrong in ["", "-", ".", "1.2.3", "1Zi", "one", "1 Gi", "1e", "1e99"] {
            assert_eq!(canonical(wrong, false), None, "{wrong}");
        }
        assert_eq!(millis("1.5"), Some(1500));
    }
}
