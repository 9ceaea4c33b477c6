//! Proofs that an entry is in a log (RFC 9162), and the log's signed state.
//!
//! In: the entry, its place, hashes beside its path, and the checkpoint of the log.
//! Out: true if the path ends in the root that the log signed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};

use crate::trust_root::Log;

/// Bytes of a key's hash at the beginning of a checkpoint's signature.
const KEY_HASH_BYTES: usize = 4;

/// Place of an entry in a log, and the hashes that lead to the root.
#[derive(Debug)]
pub(crate) struct Proof {
    pub(crate) index: u64,
    pub(crate) size: u64,
    pub(crate) root: Vec<u8>,
    pub(crate) hashes: Vec<Vec<u8>>,
    pub(crate) checkpoint: String,
}

impl Proof {
    /// Verifies that an entry is in the log. The error names the part that does not fit.
    pub(crate) fn verify(&self, entry: &[u8], log: &Log) -> Result<(), &'static str> {
        let leaf = digest(&SHA256, &[&[0], entry].concat()).as_ref().to_vec();
        let root = self.path_end(leaf).ok_or("its proof does not fit the size of the log")?;
        if root != self.root {
            return Err("its proof does not lead to the root of the log");
        }
        let (text, size, root) = parse_checkpoint(&self.checkpoint).ok_or("its checkpoint cannot be read")?;
        if (size, &root) != (self.size, &self.root) {
            return Err("its checkpoint is of another state of the log");
        }
        match signatures(&self.checkpoint, text)
            .any(|(key, signature)| log.id.starts_with(&key) && log.key.verifies(text.as_bytes(), &signature))
        {
            true => Ok(()),
            false => Err("its checkpoint is not signed by the log"),
        }
    }

    /// Returns the root that the hashes lead to.
    fn path_end(&self, leaf: Vec<u8>) -> Option<Vec<u8>> {
        let (mut at, mut last) = (self.index, self.size.checked_sub(1)?);
        (at <= last).then_some(())?;
        let mut node = leaf;
        for hash in &self.hashes {
            (last != 0).then_some(())?;
            let is_right = at & 1 == 1;
            let pair = if is_right || at == last { [hash, &node[..]] } else { [&node[..], hash] };
            node = digest(&SHA256, &[&[1], pair[0], pair[1]].concat()).as_ref().to_vec();
            // The last node of a level without a partner goes up as it is.
            if at == last && !is_right {
                let levels = at.trailing_zeros().min(63);
                (at, last) = (at >> levels, last >> levels);
            }
            (at, last) = (at >> 1, last >> 1);
        }
        (last == 0).then_some(node)
    }
}

/// Returns the signed text of a checkpoint, and its size and root.
fn parse_checkpoint(checkpoint: &str) -> Option<(&str, u64, Vec<u8>)> {
    let end = checkpoint.find("\n\n")? + 1;
    let text = checkpoint.get(..end)?;
    let mut lines = text.lines().skip(1);
    let size = lines.next()?.parse().ok()?;
    Some((text, size, STANDARD.decode(lines.next()?).ok()?))
}

/// Returns the signatures below the text of a checkpoint, each with the hash of its key.
fn signatures<'a>(checkpoint: &'a str, text: &'a str) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    let below = checkpoint.get(text.len()..).unwrap_or_default();
    let line = move |line: &str| {
        let (name, signature) = line.strip_prefix("— ")?.rsplit_once(' ')?;
        // The text begins with the name of the log, in version 1 with more behind it.
        text.starts_with(name).then_some(())?;
        let bytes = STANDARD.decode(signature).ok()?;
        let (key, signature) = bytes.split_at_checked(KEY_HASH_BYTES)?;
        Some((key.to_vec(), signature.to_vec()))
    };
    below.lines().filter_map(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hash(parts: &[&[u8]]) -> Vec<u8> {
        digest(&SHA256, &parts.concat()).as_ref().to_vec()
    }

    /// The root over leaves, and the hashes beside the path of one, as RFC 9162 defines them.
    fn tree(leaves: &[Vec<u8>], index: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
        let [leaf] = leaves else {
            let middle = leaves.len().next_power_of_two() / 2;
            let (left, right) = leaves.split_at(middle);
            let (mut path, beside, roots) = match index < middle {
                true => {
                    let (root, path) = tree(left, index);
                    let other = tree(right, 0).0;
                    (path, other.clone(), [root, other])
                }
                false => {
                    let (root, path) = tree(right, index - middle);
                    let other = tree(left, 0).0;
                    (path, other.clone(), [other, root])
                }
            };
            path.push(beside);
            return (hash(&[&[1], &roots[0], &roots[1]]), path);
        };
        (leaf.clone(), Vec::new())
    }

    #[test]
    fn a_path_of_every_entry_of_every_tree_ends_in_its_root() {
        let leaves: Vec<_> = (0_u8..40).map(|leaf| hash(&[&[0], &[leaf]])).collect();
        for size in 1..=leaves.len() {
            for index in 0..size {
                let (root, hashes) = tree(&leaves[..size], index);
                let (index_64, size_64) = (index.try_into().unwrap(), size.try_into().unwrap());
                let mut proof = Proof {
                    index: index_64,
                    size: size_64,
                    root: root.clone(),
                    hashes,
                    checkpoint: String::new(),
                };
                assert_eq!(proof.path_end(leaves[index].clone()), Some(root.clone()), "{index} of {size}");
                let other = (index + 1) % size;
                if size > 1 {
                    assert_ne!(proof.path_end(leaves[other].clone()), Some(root.clone()));
                    proof.index = other.try_into().unwrap();
                    assert_ne!(proof.path_end(leaves[index].clone()), Some(root.clone()));
                    proof.index = index_64;
                    proof.hashes.pop();
                    assert_ne!(proof.path_end(leaves[index].clone()), Some(root));
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_proof_and_checkpoint_end(index: u64, size: u64, count in 0_usize..70, text in "(.|\n){0,80}") {
            let hashes = vec![vec![0; 32]; count];
            let proof = Proof { index, size, root: Vec::new(), hashes, checkpoint: String::new() };
            drop(proof.path_end(vec![0; 32]));
            if let Some((signed, ..)) = parse_checkpoint(&text) {
                prop_assert!(text.starts_with(signed));
                signatures(&text, signed).for_each(drop);
            }
        }
    }
}
