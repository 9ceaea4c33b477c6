//! Directives of a patch: `$patch`.
//!
//! In: a map or a list of the patch. Out: the directive, which is removed from the patch. In a list
//! the directive is an item without other fields.

use super::nodes::{MergeNode, NodeId};
use super::{MergeState, StrategicMergeError};

const PATCH: &str = "$patch";

/// Effect of a patch on the existing fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive {
    Delete,
    Replace,
    Merge,
}

impl MergeState<'_> {
    /// Takes the directive of a map.
    pub(super) fn map_directive(&mut self, patch: Option<NodeId>) -> Result<Directive, StrategicMergeError> {
        let Some(patch) = patch else { return Ok(Directive::Merge) };
        let Some(word) = self.nodes.field(patch, PATCH) else { return Ok(Directive::Merge) };
        let directive = self.understood(word)?;
        if let Some(fields) = self.nodes.fields_mut(patch) {
            fields.remove(PATCH);
        }
        Ok(directive)
    }

    /// Takes the directive of a list.
    pub(super) fn list_directive(&mut self, patch: Option<NodeId>) -> Result<Directive, StrategicMergeError> {
        let Some(patch) = patch else { return Ok(Directive::Merge) };
        let items = self.nodes.items(patch);
        let marked = items.iter().find_map(|item| Some((*item, self.nodes.field(*item, PATCH)?)));
        let Some((item, word)) = marked else { return Ok(Directive::Merge) };
        // Beside other fields, the directive is that of the item.
        if matches!(self.nodes.get(item), MergeNode::Map(fields) if fields.len() > 1) {
            return Ok(Directive::Merge);
        }
        let directive = self.understood(word)?;
        let text = self.nodes.text(word).into_owned();
        self.set_item(patch, None, &[PATCH], &[text])?;
        Ok(directive)
    }

    fn understood(&self, word: NodeId) -> Result<Directive, StrategicMergeError> {
        match &*self.nodes.text(word) {
            "delete" => Ok(Directive::Delete),
            "replace" => Ok(Directive::Replace),
            "merge" => Ok(Directive::Merge),
            _ => Err(StrategicMergeError::Directive { path: self.place() }),
        }
    }
}
