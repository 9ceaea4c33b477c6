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

/// Takes the directive of a map.
pub(super) fn take_map_directive(
    state: &mut MergeState<'_>,
    patch: Option<NodeId>,
) -> Result<Directive, StrategicMergeError> {
    let Some(patch) = patch else { return Ok(Directive::Merge) };
    let Some(word) = state.nodes.field(patch, PATCH) else { return Ok(Directive::Merge) };
    let directive = parse_directive(state, word)?;
    if let Some(fields) = state.nodes.fields_mut(patch) {
        fields.remove(PATCH);
    }
    Ok(directive)
}

/// Takes the directive of a list.
pub(super) fn take_list_directive(
    state: &mut MergeState<'_>,
    patch: Option<NodeId>,
) -> Result<Directive, StrategicMergeError> {
    let Some(patch) = patch else { return Ok(Directive::Merge) };
    let items = state.nodes.items(patch);
    let marked = items.iter().find_map(|item| Some((*item, state.nodes.field(*item, PATCH)?)));
    let Some((item, word)) = marked else { return Ok(Directive::Merge) };
    // Beside other fields, the directive is that of the item.
    if matches!(state.nodes.get(item), MergeNode::Map(fields) if fields.len() > 1) {
        return Ok(Directive::Merge);
    }
    let directive = parse_directive(state, word)?;
    let text = state.nodes.text(word).into_owned();
    state.set_item(patch, None, &[PATCH], &[text])?;
    Ok(directive)
}

fn parse_directive(state: &MergeState<'_>, word: NodeId) -> Result<Directive, StrategicMergeError> {
    match &*state.nodes.text(word) {
        "delete" => Ok(Directive::Delete),
        "replace" => Ok(Directive::Replace),
        "merge" => Ok(Directive::Merge),
        _ => Err(StrategicMergeError::Directive { path: state.place() }),
    }
}
