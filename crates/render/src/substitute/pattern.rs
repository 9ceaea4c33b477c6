//! Matches patterns at the beginning or end of a text.
//!
//! In: a shell pattern (`*`, `?`, `[a-z]`, `[!a]`, `\*`), and a text. Out: the number of matching
//! characters. Time is bounded by the product of both lengths: the text is walked once for any
//! pattern.

/// Most characters of a pattern.
pub(super) const MAX_PATTERN: usize = 64;

/// One token of a pattern.
enum Token {
    Any,
    Many,
    Char(char),
    Class { not: bool, ranges: Vec<(char, char)> },
}

/// Returns the number of characters that match at the beginning of the text, or with `end` at its
/// end: the shortest match, or the longest.
pub(super) fn match_length(text: &[char], pattern: &str, end: bool, longest: bool) -> Option<usize> {
    let mut tokens = tokens(pattern);
    let mut places = vec![false; tokens.len() + 1];
    places[0] = true;
    if end {
        tokens.reverse();
    }
    let mut found = None;
    for at in 0..=text.len() {
        // A star may match nothing.
        for (place, token) in tokens.iter().enumerate() {
            if places[place] && matches!(token, Token::Many) {
                places[place + 1] = true;
            }
        }
        if places[tokens.len()] {
            found = Some(at);
            if !longest {
                break;
            }
        }
        let char =
            if end { text.len().checked_sub(at + 1).and_then(|at| text.get(at)) } else { text.get(at) };
        let Some(char) = char else { break };
        let mut next = vec![false; tokens.len() + 1];
        for (place, token) in tokens.iter().enumerate().filter(|(place, _)| places[*place]) {
            match token {
                Token::Many => next[place] = true,
                token => next[place + 1] |= fits(token, *char),
            }
        }
        places = next;
        if !places.contains(&true) {
            break;
        }
    }
    found
}

fn fits(token: &Token, char: char) -> bool {
    match token {
        Token::Any | Token::Many => true,
        Token::Char(wanted) => *wanted == char,
        Token::Class { not, ranges } => ranges.iter().any(|(from, to)| (*from..=*to).contains(&char)) != *not,
    }
}

fn tokens(pattern: &str) -> Vec<Token> {
    let chars: Vec<char> = pattern.chars().collect();
    let mut tokens = Vec::with_capacity(chars.len());
    let mut at = 0;
    while let Some(char) = chars.get(at) {
        at += 1;
        match char {
            '*' => tokens.push(Token::Many),
            '?' => tokens.push(Token::Any),
            '\\' if at < chars.len() => {
                tokens.push(Token::Char(chars[at]));
                at += 1;
            }
            '[' => match class(&chars[at..]) {
                Some((class, length)) => {
                    tokens.push(class);
                    at += length;
                }
                // An unclosed bracket is a literal one.
                None => tokens.push(Token::Char('[')),
            },
            char => tokens.push(Token::Char(*char)),
        }
    }
    tokens
}

/// Parses the class after `[`; returns it with its length, including its `]`.
fn class(chars: &[char]) -> Option<(Token, usize)> {
    let not = matches!(chars.first(), Some('!' | '^'));
    let first = usize::from(not);
    // Directly at the beginning, `]` is a literal character.
    let end = first + 1 + chars.get(first + 1..)?.iter().position(|char| *char == ']')?;
    let inner = &chars[first..end];
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < inner.len() {
        match inner[at..] {
            [from, '-', to, ..] => {
                ranges.push((from, to));
                at += 3;
            }
            _ => {
                ranges.push((inner[at], inner[at]));
                at += 1;
            }
        }
    }
    Some((Token::Class { not, ranges }, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_shells_have_them() {
        let check = |text: &str, pattern: &str, end: bool, few: Option<usize>, many: Option<usize>| {
            let chars: Vec<char> = text.chars().collect();
            let found = [false, true].map(|longest| match_length(&chars, pattern, end, longest));
            assert_eq!(found, [few, many], "{text} {pattern}");
        };
        check("bash.string.txt", "*.", false, Some(5), Some(12));
        check("bash.string.txt", ".*", true, Some(4), Some(11));
        check("path/to/file", "*/", false, Some(5), Some(8));
        check("abc", "x*", false, None, None);
        check("abc", "*", false, Some(0), Some(3));
        check("abc", "", true, Some(0), Some(0));
        check("abc", "?", true, Some(1), Some(1));
        check("a1b", "[a-c][0-9]", false, Some(2), Some(2));
        check("a1b", "[!0-9]", true, Some(1), Some(1));
        check("]x", "[]]", false, Some(1), Some(1));
        check("[x", "[", false, Some(1), Some(1));
        check("*x", "\\*", false, Some(1), Some(1));
        check("a\\", "\\", true, Some(1), Some(1));
        check("éa", "?", false, Some(1), Some(1));
    }
}
