//! `moorline render --explain`: shows the origin of an object and the steps that changed it.
//!
//! In: the files of a render, and the name of an object. Out: the place where it was written, and
//! each step that changed it, with its own place and the fields. Values are not shown, so the
//! output can be shared.

use std::collections::BTreeMap;

use super::Streams;
use super::exit::Exit;
use super::manifests;
use crate::kustomize::BuildStep;
use crate::object::ObjectId;
use crate::render::{self, PackedObject, RenderOptions, SourceType};
use crate::tree::FileTree;

/// The most candidates that are listed if no object matches.
const MAX_NAMED: usize = 20;

/// Name of an object on the command line: `Kind/name`, `Kind.group/name`, `Kind/namespace/name`.
#[derive(Debug, Clone)]
pub(super) struct ObjectQuery {
    kind: String,
    group: Option<String>,
    namespace: Option<String>,
    name: String,
}

impl ObjectQuery {
    /// Parses the text of the command line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text} names no object: write Kind/name, Kind.group/name or Kind/namespace/name");
        let (kind, rest) = text.split_once('/').ok_or_else(wrong)?;
        let (namespace, name) = match rest.split_once('/') {
            Some((namespace, name)) => (Some(namespace.to_owned()), name),
            None => (None, rest),
        };
        let (kind, group) = match kind.split_once('.') {
            Some((kind, group)) => (kind, Some(group.to_owned())),
            None => (kind, None),
        };
        match kind.is_empty() || name.is_empty() || name.contains('/') {
            true => Err(wrong()),
            false => Ok(Self { kind: kind.to_owned(), group, namespace, name: name.to_owned() }),
        }
    }

    /// True if the name means this object.
    pub(super) fn matches(&self, id: &ObjectId) -> bool {
        id.kind().eq_ignore_ascii_case(&self.kind)
            && id.name() == self.name
            && self.group.as_deref().is_none_or(|group| group == id.group())
            && self.namespace.as_deref().is_none_or(|namespace| Some(namespace) == id.namespace())
    }
}

/// Prints the origin and the steps of every object that the name matches.
pub(super) fn explain(
    (tree, options): (&FileTree, &RenderOptions),
    name: &ObjectQuery,
    streams: &mut Streams<'_>,
) -> anyhow::Result<Exit> {
    let Some(complete) = manifests::render_files(tree, options, streams)? else { return Ok(Exit::Failure) };
    let meant: Vec<&PackedObject> =
        complete.objects().iter().filter(|object| name.matches(&object.id)).collect();
    if meant.is_empty() {
        say_what_there_is(complete.objects(), name, streams);
        return Ok(Exit::Failure);
    }
    let mut steps: BTreeMap<ObjectId, Vec<BuildStep>> = match options.source_type(tree) {
        SourceType::Kustomize => {
            render::explain_kustomization(&manifests::render_with_charts(tree, options)?.0, options)?
                .into_iter()
                .collect()
        }
        // Charts have no steps: the origin of such an object already names its template.
        SourceType::Auto | SourceType::Plain | SourceType::Helm => BTreeMap::new(),
    };
    for object in meant {
        let steps = steps.remove(&object.id).unwrap_or_default();
        streams.data.write_all(story(object, &steps).as_bytes())?;
    }
    Ok(Exit::Done)
}

/// Lists the existing objects; only those of the kind, if there are any.
fn say_what_there_is(objects: &[PackedObject], name: &ObjectQuery, streams: &mut Streams<'_>) {
    let is_of_kind = |object: &&PackedObject| object.id.kind().eq_ignore_ascii_case(&name.kind);
    let of_kind: Vec<&PackedObject> = objects.iter().filter(is_of_kind).collect();
    let named = if of_kind.is_empty() { objects.iter().collect() } else { of_kind };
    streams.say("error: no such object; available objects:");
    named.iter().take(MAX_NAMED).for_each(|object| streams.say(&format!("  {}", object.id)));
    if let Some(more) = named.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        streams.say(&format!("  and {more} more"));
    }
}

fn story(object: &PackedObject, steps: &[BuildStep]) -> String {
    let mut text = format!("{}\n  written at {}\n", object.id, object.origin);
    for BuildStep { name, place, fields } in steps {
        text.push_str(&format!("  {name} at {place}\n"));
        fields.iter().for_each(|field| text.push_str(&format!("    {field}\n")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_what_it_says_and_no_more() {
        let means = |text: &str, id: &str| {
            ObjectQuery::parse(text).is_ok_and(|name| name.matches(&ObjectId::parse(id).expect("an id")))
        };
        let web = "apps/Deployment|shop/web";
        for text in ["Deployment/web", "deployment/web", "Deployment.apps/web", "Deployment.apps/shop/web"] {
            assert!(means(text, web), "{text}");
        }
        for text in
            ["Deployment/api", "Service/web", "Deployment.batch/web", "Deployment/ops/web", "web", "/web"]
        {
            assert!(!means(text, web), "{text}");
        }
        assert!(means("Namespace/shop", "/Namespace|/shop"));
        assert!(ObjectQuery::parse("Deployment").unwrap_err().contains("write Kind/name"));
    }
}
