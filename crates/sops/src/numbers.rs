//! Numbers as SOPS prints them: Go's formats, rebuilt from the shortest digits of a float.

/// Returns a float without an exponent, as the MAC has it.
pub(crate) fn decimal(value: f64) -> String {
    match value.is_infinite() {
        true => infinity(value).to_owned(),
        false => value.to_string(),
    }
}

/// Returns a float as YAML has it: with an exponent from a million on.
pub(crate) fn general(value: f64) -> String {
    let (digits, exponent) = match parts(value) {
        Some(parts) => parts,
        None => return decimal(value),
    };
    match (-4..GENERAL_EXPONENT).contains(&exponent) {
        true => decimal(value),
        false => scientific(&digits, exponent, 2),
    }
}

/// From this exponent on, Go's general format is scientific.
const GENERAL_EXPONENT: i32 = 6;

/// Returns a float as dotenv and ini have it: never like an integer.
pub(crate) fn general_upper(value: f64) -> String {
    let text = general(value).replace('e', "E");
    match value.is_finite() && !text.contains(['.', 'E']) {
        true => format!("{text}.0"),
        false => text,
    }
}

/// Returns a float as JSON has it; none if JSON cannot hold it.
pub(crate) fn json(value: f64) -> Option<String> {
    if !value.is_finite() {
        return None;
    }
    let size = value.abs();
    let plain = size == 0.0 || (1e-6..1e21).contains(&size);
    Some(match parts(value).filter(|_| !plain) {
        Some((digits, exponent)) => scientific(&digits, exponent, 1),
        None => decimal(value),
    })
}

/// Parses a float as SOPS wrote it.
pub(crate) fn parse(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ if !text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) => None,
        _ => text.parse().ok().filter(|value: &f64| value.is_finite()),
    }
}

fn infinity(value: f64) -> &'static str {
    if value > 0.0 { "+Inf" } else { "-Inf" }
}

/// Returns the digits with their sign and point, and the exponent, of a finite float but zero.
fn parts(value: f64) -> Option<(String, i32)> {
    if !value.is_finite() || value == 0.0 {
        return None;
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e')?;
    Some((digits.to_owned(), exponent.parse().ok()?))
}

fn scientific(digits: &str, exponent: i32, width: usize) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:0width$}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_the_forms_of_go() {
        // Each row: value, decimal, general, upper, JSON.
        let rows: [(f64, &str, &str, &str, &str); 9] = [
            (1.5, "1.5", "1.5", "1.5", "1.5"),
            (1.0, "1", "1", "1.0", "1"),
            (-0.0, "-0", "-0", "-0.0", "-0"),
            (1e-7, "0.0000001", "1e-07", "1E-07", "1e-7"),
            (1e22, "10000000000000000000000", "1e+22", "1E+22", "1e+22"),
            (1e6, "1000000", "1e+06", "1E+06", "1000000"),
            (123456.5, "123456.5", "123456.5", "123456.5", "123456.5"),
            (1e-5, "0.00001", "1e-05", "1E-05", "0.00001"),
            (1234.56789, "1234.56789", "1234.56789", "1234.56789", "1234.56789"),
        ];
        for (value, plain, short, upper, in_json) in rows {
            assert_eq!(decimal(value), plain);
            assert_eq!(general(value), short);
            assert_eq!(general_upper(value), upper);
            assert_eq!(json(value).as_deref(), Some(in_json));
            assert_eq!(parse(plain).map(f64::to_bits), Some(value.to_bits()));
        }
    }

    #[test]
    fn odd_floats_are_handled() {
        assert_eq!((decimal(f64::INFINITY), json(f64::INFINITY)), ("+Inf".to_owned(), None));
        assert_eq!(general_upper(f64::NEG_INFINITY), "-Inf");
        assert_eq!(decimal(f64::NAN), "NaN");
        assert_eq!(parse("+Inf"), Some(f64::INFINITY));
        assert!(parse("NaN").is_some_and(f64::is_nan));
        for text in ["", "inf", "0x1p-2", "1_000", "1e999", "--1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
