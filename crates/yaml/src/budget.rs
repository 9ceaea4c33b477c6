//! Bounds the memory that one document may take.
//!
//! In: every node, and every copy that anchors and aliases make. Out: an error before the memory is
//! spent. Aliases are bounded by the rule of kubectl's reader (the larger the document, the smaller
//! the share that aliases may add), so a file that kubectl accepts is accepted here.

use super::error::{ErrorKind, MAX_ALIAS_BYTES, MAX_ALIAS_NODES, MAX_NODES};

/// Below this number of aliased nodes the share of aliases is not checked.
const FREE_ALIAS_NODES: usize = 100;

/// In documents with fewer nodes the share of aliases is not checked.
const FREE_NODES: usize = 1000;

/// Up to this number of nodes 99 % may come from aliases; the share falls to 10 % at
/// [`MAX_RATIO_NODES`].
const MIN_RATIO_NODES: usize = 400_000;

/// See [`MIN_RATIO_NODES`].
const MAX_RATIO_NODES: usize = 4_000_000;

/// Cost of a part of a document: nodes, and bytes of text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cost {
    nodes: usize,
    bytes: usize,
}

impl Cost {
    /// Returns the cost added since `before` was recorded.
    pub(super) fn since(self, before: Self) -> Self {
        Self { nodes: self.nodes - before.nodes, bytes: self.bytes - before.bytes }
    }
}

/// Cost of one document so far, checked against the bounds.
#[derive(Debug, Default)]
pub(super) struct Budget {
    total: Cost,
    aliased: usize,
    copied: Cost,
}

impl Budget {
    /// Returns the total cost so far.
    pub(super) fn total_cost(&self) -> Cost {
        self.total
    }

    /// Adds one node with `bytes` bytes of text.
    pub(super) fn add_node(&mut self, bytes: usize) -> Result<(), ErrorKind> {
        self.add(Cost { nodes: 1, bytes })
    }

    /// Adds one alias of a value that cost `value`.
    pub(super) fn add_alias(&mut self, value: Cost) -> Result<(), ErrorKind> {
        self.aliased += value.nodes;
        self.add(Cost { nodes: value.nodes + 1, bytes: value.bytes })?;
        self.add_copy(value)?;
        let (aliased, nodes) = (self.aliased, self.total.nodes);
        let judged = aliased > FREE_ALIAS_NODES && nodes > FREE_NODES;
        match judged && aliased as f64 / nodes as f64 > allowed_share(nodes) {
            true => Err(ErrorKind::Aliasing),
            false => Ok(()),
        }
    }

    /// Adds one copy of a value, made for an anchor or an alias.
    pub(super) fn add_copy(&mut self, value: Cost) -> Result<(), ErrorKind> {
        self.copied.nodes += value.nodes;
        self.copied.bytes += value.bytes;
        match self.copied.nodes > MAX_ALIAS_NODES || self.copied.bytes > MAX_ALIAS_BYTES {
            true => Err(ErrorKind::Aliasing),
            false => Ok(()),
        }
    }

    fn add(&mut self, more: Cost) -> Result<(), ErrorKind> {
        self.total.nodes += more.nodes;
        self.total.bytes += more.bytes;
        match self.total.nodes > MAX_NODES {
            true => Err(ErrorKind::Nodes),
            false => Ok(()),
        }
    }
}

/// Returns the share of a document's nodes that aliases may add.
fn allowed_share(nodes: usize) -> f64 {
    let range = (MAX_RATIO_NODES - MIN_RATIO_NODES) as f64;
    let above = nodes.clamp(MIN_RATIO_NODES, MAX_RATIO_NODES) - MIN_RATIO_NODES;
    0.99 - 0.89 * (above as f64 / range)
}
