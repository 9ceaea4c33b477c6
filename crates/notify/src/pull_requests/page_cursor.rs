//! The pages of a list, which are smaller where strangers wrote long texts.
//!
//! In: the number of entries of each page, or that its answer is too long.
//! Out: the next page. One entry that is too long by itself is left out, and the rest is read.

/// Most entries of a page; a power of two, so that the half of a page is a page as well.
const PAGE: usize = 32;
/// Most requests for one list.
const MAX_REQUESTS: usize = 40;

/// A page, counted from 1, and the number of entries of a full one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListPage {
    /// Its number.
    pub page: usize,
    /// The number of entries that it has if it is full.
    pub size: usize,
}

/// The place in a list.
#[derive(Debug, Clone)]
pub struct PageCursor {
    offset: usize,
    size: usize,
    most: usize,
    requests: usize,
    is_at_end: bool,
}

impl ListPage {
    /// Returns the number of entries before it.
    pub fn offset(self) -> usize {
        self.page.saturating_sub(1).saturating_mul(self.size)
    }
}

impl PageCursor {
    /// Begins a list of which so many entries are read at most.
    pub fn new(most: usize) -> Self {
        Self { offset: 0, size: PAGE, most, requests: 0, is_at_end: false }
    }

    /// Returns the page to ask for; none at the end, or after too many requests.
    pub fn next_page(&mut self) -> Option<ListPage> {
        if self.is_at_end || self.offset >= self.most || self.requests == MAX_REQUESTS {
            return None;
        }
        self.requests += 1;
        Some(ListPage { page: self.offset / self.size + 1, size: self.size })
    }

    /// Takes the size that the page of this place had before, if it was smaller.
    pub fn resume(&mut self, known: impl Iterator<Item = ListPage>) {
        let here = known.filter(|page| page.offset() == self.offset && page.size < self.size);
        self.size =
            here.map(|page| page.size).filter(|size| size.is_power_of_two()).min().unwrap_or(self.size);
    }

    /// Goes on behind a page with so many entries.
    pub fn read(&mut self, entries: usize) {
        self.is_at_end = entries < self.size;
        self.offset += self.size;
        while self.size < PAGE && self.offset.is_multiple_of(self.size * 2) {
            self.size *= 2;
        }
    }

    /// Halves a page that is too long; a single entry is left out.
    pub fn halve(&mut self) {
        match self.size {
            1 => self.read(1),
            size => self.size = size / 2,
        }
    }

    /// True if the list has no other page.
    pub fn is_at_end(&self) -> bool {
        self.is_at_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a list whose entries have these lengths, and returns the entries that were read.
    fn read(lengths: &[usize], limit: usize, most: usize) -> (Vec<usize>, usize) {
        let (mut cursor, mut read) = (PageCursor::new(most), Vec::new());
        while let Some(page) = cursor.next_page() {
            let to = (page.offset() + page.size).min(lengths.len());
            let from = page.offset().min(to);
            match lengths[from..to].iter().sum::<usize>() > limit {
                true => cursor.halve(),
                false => {
                    read.extend(from..to);
                    cursor.read(to - from);
                }
            }
        }
        (read, cursor.requests)
    }

    #[test]
    fn a_long_entry_costs_no_other() {
        let one_of = |count: usize, long: usize| {
            let mut lengths = vec![1; count];
            lengths[long] = 1000;
            lengths
        };
        for (lengths, limit, most, left_out, requests) in [
            (vec![1; 3], 100, 192, vec![], 1),
            (vec![1; 32], 100, 192, vec![], 2),
            (vec![1; 70], 100, 192, vec![], 3),
            (vec![1; 500], 100, 192, (192..500).collect(), 6),
            // Halves of a page are enough.
            (vec![6; 40], 100, 192, vec![], 4),
            (one_of(3, 0), 100, 192, vec![0], 8),
            (one_of(70, 40), 100, 192, vec![40], 13),
            (vec![1000; 100], 100, 192, (0..100).collect(), MAX_REQUESTS),
        ] {
            let (read, asked) = read(&lengths, limit, most);
            let expect: Vec<usize> = (0..lengths.len()).filter(|at| !left_out.contains(at)).collect();
            assert_eq!((read, asked), (expect, requests), "{} {limit}", lengths.len());
        }
        // The sizes of the last time are tried first.
        let mut cursor = PageCursor::new(192);
        cursor.resume([ListPage { page: 1, size: 8 }, ListPage { page: 2, size: 4 }].into_iter());
        assert_eq!(cursor.next_page(), Some(ListPage { page: 1, size: 8 }));
    }
}
