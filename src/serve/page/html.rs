//! Writes HTML, and always escapes.
//!
//! In: names of elements and attributes, which are static strings of the program, and any
//! text, which is escaped. Out: a document. There is no way to write raw text; every element
//! is closed, and a link leads to a page of ours or to `http(s)://`.

use super::routes::Link;

/// HTML that is being written.
#[derive(Debug, Default)]
pub(crate) struct Html {
    out: String,
    open: Vec<&'static str>,
}

/// The attributes of an element.
pub(crate) type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Html {
    /// Opens an element; [`Html::close`] closes the one that was opened last.
    pub(crate) fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.tag(tag, attributes);
        self.open.push(tag);
    }

    /// Closes the element that was opened last.
    pub(crate) fn close(&mut self) {
        if let Some(tag) = self.open.pop() {
            self.out.push_str("</");
            self.out.push_str(tag);
            self.out.push('>');
        }
    }

    /// Writes escaped text.
    pub(crate) fn text(&mut self, text: &str) {
        escape(&mut self.out, text);
    }

    /// Writes an element that contains text.
    pub(crate) fn element(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) {
        self.open(tag, attributes);
        self.text(text);
        self.close();
    }

    /// Writes an element without content and end tag.
    pub(crate) fn void(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.tag(tag, attributes);
    }

    /// Opens a link.
    pub(crate) fn open_link(&mut self, place: &Link, attributes: Attributes<'_>) {
        let mut all = vec![("href", place.as_str())];
        if place.is_external() {
            all.push(("rel", "noreferrer noopener"));
        }
        all.extend_from_slice(attributes);
        self.open("a", &all);
    }

    /// Writes a link with a text.
    pub(crate) fn link(&mut self, place: &Link, attributes: Attributes<'_>, text: &str) {
        self.open_link(place, attributes);
        self.text(text);
        self.close();
    }

    /// Closes all open elements and returns the document.
    pub(crate) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.out
    }

    fn tag(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            if !value.is_empty() {
                self.out.push_str("=\"");
                escape(&mut self.out, value);
                self.out.push('"');
            }
        }
        self.out.push('>');
    }
}

fn escape(out: &mut String, text: &str) {
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(char),
            // Control characters and changes of text direction could disguise the text.
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                out.push('\u{fffd}')
            }
            char if char.is_control() => out.push('\u{fffd}'),
            char => out.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_comes_from_outside_is_escaped() {
        let mut html = Html::default();
        let evil = "\"><script>alert('x')</script>&\u{202e}\u{1b}";
        html.open("p", &[("title", evil), ("hidden", "")]);
        html.text(evil);
        html.void("br", &[]);
        let text = html.finish();
        let escaped = "&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;\u{fffd}\u{fffd}";
        assert_eq!(text, format!("<p title=\"{escaped}\" hidden>{escaped}<br></p>"));
    }

    #[test]
    fn what_was_opened_is_closed() {
        let mut html = Html::default();
        html.open("div", &[]);
        html.open("ul", &[]);
        html.element("li", &[("class", "a")], "1");
        html.close();
        assert_eq!(html.finish(), "<div><ul><li class=\"a\">1</li></ul></div>");
    }

    #[test]
    fn a_link_out_of_here_takes_nothing_along() {
        let mut html = Html::default();
        html.link(&Link::external("https://git.example/a").unwrap(), &[], "a");
        assert_eq!(html.finish(), "<a href=\"https://git.example/a\" rel=\"noreferrer noopener\">a</a>");
    }
}
