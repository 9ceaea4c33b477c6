//! Writes times for people: the age, with the exact time beside it.
//!
//! In: a time, and the time now. Out: `3 min ago` in a `<time>` element, which the script keeps up
//! to date.

use jiff::Timestamp;

use super::html::Html;

/// Writes a time.
pub(crate) fn write_time(html: &mut Html, at: Timestamp, now: Timestamp) {
    let exact = at.to_string();
    html.element("time", &[("datetime", &exact), ("title", &exact)], &format_age(at, now));
}

/// Writes a time that is given as text; invalid text is written unchanged.
pub(crate) fn write_time_text(html: &mut Html, at: &str, now: Timestamp) {
    match at.parse() {
        Ok(at) => write_time(html, at, now),
        Err(_) => html.text(at),
    }
}

/// Formats an age in its largest unit.
pub(crate) fn format_age(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - at.as_second();
    match seconds {
        ..=4 => "just now".to_owned(),
        5..=89 => format!("{seconds} s ago"),
        90..=5399 => format!("{} min ago", (seconds + 30) / 60),
        5400..=129_599 => format!("{} h ago", (seconds + 1800) / 3600),
        _ => format!("{} days ago", (seconds + 43_200) / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_the_unit_that_fits() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        for (seconds, expect) in [
            (-5, "just now"),
            (4, "just now"),
            (30, "30 s ago"),
            (90, "2 min ago"),
            (3600, "60 min ago"),
            (7200, "2 h ago"),
            (200_000, "2 days ago"),
        ] {
            let at = Timestamp::from_second(1_800_000_000 - seconds).unwrap();
            assert_eq!(format_age(at, now), expect);
        }
        let mut html = Html::default();
        write_time(&mut html, Timestamp::from_second(1_799_999_990).unwrap(), now);
        write_time_text(&mut html, "soon", now);
        let exact = "2027-01-15T07:59:50Z";
        assert_eq!(
            html.finish(),
            format!("<time datetime=\"{exact}\" title=\"{exact}\">10 s ago</time>soon")
        );
    }
}
