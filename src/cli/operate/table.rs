//! Text tables.

/// Formats rows in columns as wide as their widest cell, two blanks apart. The last column is not
/// padded.
pub(in super::super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Formats an age in its two largest units: `3d4h`, `12m`, `40s`.
pub(super) fn format_age(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m"),
        (0, _, _) => format!("{hours}h{}m", minutes % 60),
        (_, _, _) => format!("{days}d{}h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let text = table(&[
            row(["NAME", "READY", "MESSAGE"]),
            row(["a-long-name", "True", ""]),
            row(["ü", "x", "y z"]),
        ]);
        assert_eq!(text, "NAME         READY  MESSAGE\na-long-name  True\nü            x      y z\n");
        assert_eq!(table(&[]), "");
    }

    #[test]
    fn times_are_short() {
        let all = [-5, 0, 59, 60, 3599, 3600, 86_399, 86_400, 1_000_000].map(format_age);
        assert_eq!(all, ["0s", "0s", "59s", "1m", "59m", "1h0m", "23h59m", "1d0h", "11d13h"]);
    }
}
