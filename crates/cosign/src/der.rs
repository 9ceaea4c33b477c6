//! Reader of DER, the encoding of certificates, keys and timestamps.
//!
//! In: bytes. Out: their elements, or `None` where the encoding is not DER. An element is never
//! opened by itself, so there is no recursion.

pub(crate) const BOOLEAN: u8 = 0x01;
pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OBJECT_ID: u8 = 0x06;
pub(crate) const UTF8_STRING: u8 = 0x0c;
pub(crate) const GENERALIZED_TIME: u8 = 0x18;
pub(crate) const SEQUENCE: u8 = 0x30;
pub(crate) const SET: u8 = 0x31;

/// Returns the tag of a field with a number of its own, which contains other elements.
pub(crate) const fn tagged(number: u8) -> u8 {
    0xa0 | number
}

/// One element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    /// The element with its tag and length.
    pub(crate) whole: &'a [u8],
}

/// Reads elements one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_at_end(self) -> bool {
        self.0.is_empty()
    }

    /// True if the next element has this tag.
    pub(crate) fn has(self, tag: u8) -> bool {
        self.0.first() == Some(&tag)
    }

    /// Reads an element.
    pub(crate) fn element(&mut self) -> Option<Element<'a>> {
        let bytes = self.0;
        let mut rest = bytes;
        let tag = take(&mut rest, 1)?[0];
        let first = take(&mut rest, 1)?[0];
        let length = match first {
            0..=0x7f => usize::from(first),
            0x81..=0x83 => {
                let digits = take(&mut rest, usize::from(first & 0x7f))?;
                let length = digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit));
                // DER uses the shortest form.
                (length > 0x7f && digits[0] != 0).then_some(length)?
            }
            _ => return None,
        };
        let content = take(&mut rest, length)?;
        // Tags of several bytes are in none of the formats.
        (tag & 0x1f != 0x1f).then_some(())?;
        self.0 = rest;
        Some(Element { tag, content, whole: &bytes[..bytes.len() - rest.len()] })
    }

    /// Reads the content of an element that must have this tag.
    pub(crate) fn content(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.element().filter(|element| element.tag == tag).map(|element| element.content)
    }

    /// Opens an element that must have this tag.
    pub(crate) fn open(&mut self, tag: u8) -> Option<Self> {
        self.content(tag).map(Self)
    }

    /// Reads an element if it has this tag.
    pub(crate) fn optional(&mut self, tag: u8) -> Option<Element<'a>> {
        if self.has(tag) { self.element() } else { None }
    }
}

/// Takes the first bytes of a slice.
pub(crate) fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (first, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(first)
}

/// Reads the only element of some bytes, and opens it.
pub(crate) fn open_only(bytes: &[u8], tag: u8) -> Option<Reader<'_>> {
    let mut reader = Reader::new(bytes);
    let inner = reader.open(tag)?;
    reader.is_at_end().then_some(inner)
}

/// Writes an element.
pub(crate) fn write(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let digits: Vec<u8> = length.into_iter().skip_while(|digit| *digit == 0).collect();
    let mut out = vec![tag];
    match content.len() {
        0..=0x7f => out.push(digits.first().copied().unwrap_or_default()),
        _ => {
            out.push(0x80 | digits.len().to_le_bytes()[0]);
            out.extend(digits);
        }
    }
    out.extend(content);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_have_one_form() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let written = write(OCTET_STRING, &vec![7; length]);
            let mut reader = Reader::new(&written);
            let element = reader.element().unwrap();
            assert_eq!((element.content.len(), element.whole), (length, &written[..]));
            assert!(reader.is_at_end());
        }
        for wrong in
            [&[0x30][..], &[0x30, 0x80], &[0x30, 0x81, 1, 0], &[0x30, 0x82, 0, 1, 0], &[0x1f, 0], &[4, 1]]
        {
            assert!(Reader::new(wrong).element().is_none(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut reader = Reader::new(&bytes);
            let mut whole = Vec::new();
            while let Some(element) = reader.element() {
                prop_assert_eq!(&write(element.tag, element.content), element.whole);
                whole.extend(element.whole);
            }
            prop_assert!(bytes.starts_with(&whole));
        }
    }
}
