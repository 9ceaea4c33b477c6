//! Takes mentions and hidden links out of texts of other people.
//!
//! In: a text. Out: the same for the eye, without effect in a chat. Slack, Mattermost, Rocket.Chat
//! and Discord take the same body, but no way of escaping is common to them: Slack shows a
//! backslash as it is. A space without width splits a mention and a link in all of them. A bare
//! address stays a link: it shows its target.

/// A space without width.
const SPLIT: char = '\u{200b}';

/// Words that some chats mention everybody by, also within a word.
const EVERYBODY: [&str; 4] = ["all", "channel", "everyone", "here"];

/// Returns the text without mentions, links with a text of their own, and code.
pub(crate) fn without_markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    for (at, char) in text.char_indices() {
        let rest = &text[at + char.len_utf8()..];
        let next = rest.chars().next().unwrap_or(' ');
        match char {
            // An open code span would take in all that follows.
            '`' => out.push('\''),
            // `main@1f0c` is a revision, no mention.
            '@' if !next.is_whitespace() && (!before.is_alphanumeric() || names_everybody(rest)) => {
                out.extend([char, SPLIT]);
            }
            // `[text](target)`, `![text](target)`, `[text][name]` and `[name]: target`.
            ']' if matches!(next, '(' | '[' | ':') => out.extend([char, SPLIT]),
            _ => out.push(char),
        }
        before = char;
    }
    out
}

fn names_everybody(text: &str) -> bool {
    let begins = |word: &str| text.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word));
    EVERYBODY.iter().any(|word| begins(word))
}

#[cfg(test)]
mod tests {
    use crate::slack::slack_body;

    #[test]
    fn texts_of_others_mention_nobody_and_hide_no_link() {
        for (text, expect) in [
            ("@all see main@1f0c9d", "@\u{200b}all see main@1f0c9d"),
            (
                "(@ada) _@here_ a@everyone a@Channel",
                "(@\u{200b}ada) _@\u{200b}here_ a@\u{200b}everyone a@\u{200b}Channel",
            ),
            ("a @ b @", "a @ b @"),
            ("<!channel> <@U123> <!here|x>", "&lt;!channel&gt; &lt;@\u{200b}U123&gt; &lt;!here|x&gt;"),
            ("<https://evil.example|pay>", "&lt;https://evil.example|pay&gt;"),
            ("[pay](https://evil.example)", "[pay]\u{200b}(https://evil.example)"),
            ("![x](https://evil.example/p.png)", "![x]\u{200b}(https://evil.example/p.png)"),
            ("[a][b] [b]: https://evil.example", "[a]\u{200b}[b] [b]\u{200b}: https://evil.example"),
            ("run `rm` `", "run 'rm' '"),
            ("a &lt;b&gt; & c", "a &amp;lt;b&amp;gt; &amp; c"),
            ("list[0] is é@ñ", "list[0] is é@ñ"),
        ] {
            assert_eq!(slack_body(text)["text"], expect, "{text}");
        }
    }
}
