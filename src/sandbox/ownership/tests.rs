//! Who owns what after a few writes.
