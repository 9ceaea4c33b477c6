//! The Korean pages do not fall behind the English ones: what is the same in every language is compared.
//!
//! In: both pages. Out: nothing, or the first part that differs: a block of code, the first cell of a row of a table, the
//! number and depth of headings, or where a link leads.

use crate::pages::page::{blocks, links, prose, read};

/// The English page, and the Korean one.
const PAGES: [(&str, &str); 2] =
    [("README.md", "README.ko.md"), ("docs/getting-started.md", "docs/getting-started.ko.md")];

#[test]
fn korean_pages_say_what_the_english_ones_say() {
    for (english, korean) in PAGES {
        if let Err(difference) = same(&read(english), &read(korean)) {
            panic!("{korean} has fallen behind {english}: {difference}");
        }
    }
}

#[test]
fn they_lead_to_each_other() {
    for (english, korean) in PAGES {
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        assert!(links(&read(english)).contains(&name(korean)), "{english} does not lead to {korean}");
        assert!(links(&read(korean)).contains(&name(english)), "{korean} does not lead to {english}");
    }
}

/// Checks that the parts which every language shares are the same.
fn same(english: &str, other: &str) -> Result<(), String> {
    let code = |page: &str| -> Vec<(String, String)> {
        blocks(page).into_iter().map(|block| (block.language, block.text)).collect()
    };
    first_difference("a block of code", &code(english), &code(other))?;
    let depths = |page: &str| -> Vec<usize> {
        let headings = prose(page).into_iter().filter(|line| line.starts_with('#'));
        headings.map(|line| line.chars().take_while(|char| *char == '#').count()).collect()
    };
    first_difference("the depth of a heading", &depths(english), &depths(other))?;
    first_difference("the first cell of a row", &first_cells(english), &first_cells(other))
}

fn first_difference<T: std::fmt::Debug + PartialEq>(
    what: &str,
    one: &[T],
    other: &[T],
) -> Result<(), String> {
    let differs = one.iter().zip(other).find(|(one, other)| one != other);
    match differs {
        Some((one, other)) => Err(format!("{what} differs:\n{one:?}\n{other:?}")),
        None if one.len() != other.len() => Err(format!("{what}: {} and {}", one.len(), other.len())),
        None => Ok(()),
    }
}

/// Of the first cell of each row what no language changes: code and numbers.
fn first_cells(page: &str) -> Vec<Vec<String>> {
    let rows = prose(page).into_iter().filter(|line| line.starts_with('|'));
    rows.map(|row| {
        let cell = row.split('|').nth(1).unwrap_or_default();
        let code = cell.split('`').skip(1).step_by(2).map(str::to_owned);
        let text: String = cell.split('`').step_by(2).collect();
        let figure = |char: char| char.is_ascii_digit() || ".,".contains(char);
        let numbers = text.split(|char| !figure(char)).map(|word| word.trim_matches(['.', ',']).to_owned());
        code.chain(numbers.filter(|word| !word.is_empty())).collect()
    })
    .collect()
}

#[test]
fn what_has_fallen_behind_is_found() {
    let english = "# A\n\n| a | b |\n|---|---|\n| `x: 1` of 10,000 | c |\n\n```sh\nls\n```\n";
    let korean = "# 가\n\n| 나 | 다 |\n|---|---|\n| 10,000개의 `x: 1` | 라 |\n\n```sh\nls\n```\n";
    assert_eq!(same(english, korean), Ok(()));
    for (from, to) in
        [("ls", "ls -l"), ("# 가", "## 가"), ("x: 1", "x: 2"), ("10,000", "1,000"), ("sh", "console")]
    {
        assert!(same(english, &korean.replacen(from, to, 1)).is_err(), "{from} {to}");
    }
    assert!(same(english, &korean.replace("| 10,000개의 `x: 1` | 라 |\n", "")).is_err());
}
