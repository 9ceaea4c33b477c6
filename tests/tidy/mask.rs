//! Separates Rust text into code and comments, so that no rule mistakes the text of a string for
//! code.
//!
//! In: the text of a Rust file.
//! Out: two texts with the same lines: the code without comments and without the content of
//! literals, and the comments alone.

/// Code and comments of a Rust text; all line breaks are kept in both.
pub(crate) struct Halves {
    pub(crate) code: String,
    pub(crate) comments: String,
}

/// Separates a text.
pub(crate) fn halves(text: &str) -> Halves {
    let mut reader =
        Reader { text: text.chars().collect(), at: 0, code: String::new(), comments: String::new() };
    while reader.at < reader.text.len() {
        reader.step();
    }
    Halves { code: reader.code, comments: reader.comments }
}

enum To {
    Code,
    Comments,
    Neither,
}

struct Reader {
    text: Vec<char>,
    at: usize,
    code: String,
    comments: String,
}

impl Reader {
    fn step(&mut self) {
        if self.looks_at("//") {
            while self.peek(0).is_some_and(|char| char != '\n') {
                self.take(To::Comments);
            }
        } else if self.looks_at("/*") {
            self.block_comment();
        } else if let Some(hashes) = self.raw_string() {
            self.take_raw_string(hashes);
        } else if self.peek(0) == Some('"') {
            self.take_quoted('"');
        } else if self.peek(0) == Some('\'') && (self.peek(1) == Some('\\') || self.peek(2) == Some('\'')) {
            self.take_quoted('\'');
        } else {
            self.take(To::Code);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        loop {
            let (opens, closes) = (self.looks_at("/*"), self.looks_at("*/"));
            depth += i32::from(opens) - i32::from(closes);
            let length = if opens || closes { 2 } else { 1 };
            (0..length).for_each(|_| self.take(To::Comments));
            if depth == 0 || self.at >= self.text.len() {
                return;
            }
        }
    }

    /// Returns the number of `#` if a raw string begins here; its prefix was already read as code.
    fn raw_string(&self) -> Option<usize> {
        let before = |back: usize| self.at.checked_sub(back).and_then(|at| self.text.get(at)).copied();
        let word = |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || char == '_');
        let prefixed = before(1) == Some('r')
            && (!word(before(2)) || (matches!(before(2), Some('b' | 'c')) && !word(before(3))));
        let hashes = self.text[self.at..].iter().take_while(|char| **char == '#').count();
        (prefixed && self.peek(hashes) == Some('"')).then_some(hashes)
    }

    fn take_raw_string(&mut self, hashes: usize) {
        let end = format!("\"{}", "#".repeat(hashes));
        (0..hashes).for_each(|_| self.take(To::Neither));
        self.take(To::Code);
        while self.at < self.text.len() && !self.looks_at(&end) {
            self.take(To::Neither);
        }
        self.take(To::Code);
        (0..hashes).for_each(|_| self.take(To::Neither));
    }

    fn take_quoted(&mut self, quote: char) {
        self.take(To::Code);
        while self.peek(0).is_some_and(|char| char != quote) {
            if self.peek(0) == Some('\\') {
                self.take(To::Neither);
            }
            self.take(To::Neither);
        }
        self.take(To::Code);
    }

    fn looks_at(&self, what: &str) -> bool {
        what.chars().enumerate().all(|(ahead, char)| self.peek(ahead) == Some(char))
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    fn take(&mut self, to: To) {
        let Some(char) = self.peek(0) else { return };
        let blank = if char == '\n' { '\n' } else { ' ' };
        let (code, comment) = match to {
            To::Code => (char, blank),
            To::Comments => (blank, char),
            To::Neither => (blank, blank),
        };
        self.code.push(code);
        self.comments.push(comment);
        self.at += 1;
    }
}

#[test]
fn strings_and_comments_are_no_code() {
    let check = |text: &str, code: &str| {
        let halves = halves(text);
        let words: Vec<_> = halves.code.split_whitespace().collect();
        assert_eq!(words.join(" "), code, "{text}");
        assert_eq!(halves.code.lines().count(), text.lines().count(), "{text}");
    };
    check("let a = \"fn // x\"; // fn\nb", "let a = \" \"; b");
    check("a /* b /* c */ d */ e", "a e");
    check("r#\"a\"b\"# c", "r \" \" c");
    check("br\"\\\" c; bar\"x\"", "br\" \" c; bar\" \"");
    check("f('\"', '\\'', 'a', \"\\\"\") + g::<'a>()", "f(' ', ' ', ' ', \" \") + g::<'a>()");
    check("for\"x\"", "for\" \"");
}

#[test]
fn comments_are_kept_apart() {
    let comments = halves("a // b\n\"// c\" /* d\n e */ f").comments;
    assert_eq!(comments.split_whitespace().collect::<Vec<_>>().join(" "), "// b /* d e */");
}
