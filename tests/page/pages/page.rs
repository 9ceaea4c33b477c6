//! A page of the documentation as its parts.
//!
//! In: Markdown. Out: its blocks of code, headings, tables and links, as far as the tests ask for them.

use std::path::Path;

/// A block of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// The word behind the fence.
    pub(crate) language: String,
    /// The line of the fence, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Block {
    /// True for what somebody types.
    pub(crate) fn is_typed(&self) -> bool {
        ["sh", "console"].contains(&self.language.as_str())
    }

    /// The first line that is typed.
    pub(crate) fn first(&self) -> &str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("$ ")
    }
}

/// A page of `docs/`, or another file of the repository.
pub(crate) fn read(path: &str) -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(place).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The blocks of code of a page.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut open): (Vec<Block>, bool) = (Vec::new(), false);
    for (index, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(language), false) => {
                let language = language.trim().to_owned();
                blocks.push(Block { language, line: index + 1, text: String::new() });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                let text = &mut blocks.last_mut().expect("a block is open").text;
                text.push_str(line);
                text.push('\n');
            }
            (None, false) => {}
        }
    }
    assert!(!open, "a block of code has no end");
    blocks
}

/// The lines of a page that are no code.
pub(crate) fn prose(page: &str) -> Vec<&str> {
    let mut code = false;
    let outside = |line: &&str| {
        let fence = line.starts_with("```");
        code ^= fence;
        !code && !fence
    };
    page.lines().filter(outside).collect()
}

/// Returns the targets of a page's links, without what is elsewhere.
pub(crate) fn links(page: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in prose(page) {
        let mut rest = line;
        while let Some((_, behind)) = rest.split_once("](") {
            let (link, after) = behind.split_once(')').unwrap_or((behind, ""));
            let inside = !link.contains("://") && !link.starts_with('#');
            links.extend(inside.then(|| link.split('#').next().unwrap_or_default().to_owned()));
            rest = after;
        }
    }
    links
}

#[test]
fn a_page_falls_into_its_parts() {
    let page =
        "# A\n[b](c.md#d) and [e](https://example.com), [f](#g), [h](../i)\n```sh\n$ x](y)\nz\n```\nend\n";
    assert_eq!(links(page), ["c.md", "../i"]);
    let block = Block { language: "sh".to_owned(), line: 3, text: "$ x](y)\nz\n".to_owned() };
    assert_eq!((blocks(page), block.first(), block.is_typed()), (vec![block.clone()], "x](y)", true));
    assert_eq!(prose(page).len(), 3);
}
