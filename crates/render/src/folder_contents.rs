//! Contents of a plain folder that does not render.
//!
//! In: the files and the options. Out: [`FolderContents`]: the objects of readable files, and the
//! texts of the others. It answers whether the folder may hold a certain object.

use std::collections::BTreeSet;

use super::{PlainOptions, RenderOptions, is_read};
use crate::{manifest_header, plain_directory};
use moorline_core::object::{GroupKind, ObjectId};
use moorline_core::tree::{FileTree, TreeEntry};

/// Largest text that is searched; a larger one is assumed to hold anything.
const MAX_TEXT: usize = 1024 * 1024;

/// Contents of a plain folder, as far as it can be read. The texts may hold values of Secrets and
/// are never shown.
#[derive(Default, PartialEq, Eq)]
pub struct FolderContents {
    objects: BTreeSet<(GroupKind, Box<str>)>,
    /// Texts of files that cannot be parsed.
    unreadable_texts: Vec<Box<str>>,
    /// Something in the folder, such as a template, may render to any object.
    may_hold_anything: bool,
    /// Some text is not searched, and may name any object.
    unsearched: bool,
}

impl std::fmt::Debug for FolderContents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} objects, {} files that cannot be read", self.objects.len(), self.unreadable_texts.len())
    }
}

impl FolderContents {
    /// Reads a folder, file by file.
    pub fn from_tree(tree: &FileTree, options: &RenderOptions) -> Self {
        let mut contents = Self::default();
        let root = tree.resolve(&options.path).unwrap_or_default();
        if !root.is_empty() && tree.entries_below(&root).next().is_none() {
            contents.read(tree, options, &root);
        }
        for (path, entry) in tree.entries_below(&root) {
            match entry {
                TreeEntry::Unreadable { folder: true, .. } => contents.may_hold_anything = true,
                _ => contents.read(tree, options, path),
            }
        }
        contents
    }

    fn read(&mut self, tree: &FileTree, options: &RenderOptions, path: &str) {
        if !is_read(path) {
            return;
        }
        // Files that the options exclude count as well: the answer may only err towards "may hold".
        let plain = PlainOptions::default();
        let one = RenderOptions { path: path.to_owned(), plain, ..options.clone() };
        let found = plain_directory::collect(tree, &one, &|manifest, bytes| {
            manifest_header::check_manifest(manifest, (bytes, tree.memory_limit()))
        });
        self.objects
            .extend(found.objects.iter().map(|object| (object.id.group_kind(), Box::from(object.id.name()))));
        if found.problems.is_empty() {
            return;
        }
        let text = tree.read(path).ok().filter(|text| text.len() <= MAX_TEXT);
        match text.map(|text| Box::from(String::from_utf8_lossy(&text))) {
            Some(text) => {
                self.may_hold_anything |= is_template(&text);
                self.unreadable_texts.push(text);
            }
            None => self.unsearched = true,
        }
    }

    /// Contents of a folder of which nothing is kept.
    pub fn unsearched() -> Self {
        Self { unsearched: true, ..Self::default() }
    }

    /// Size of the texts that are kept, in bytes.
    pub fn bytes(&self) -> u64 {
        self.unreadable_texts.iter().map(|text| text.len() as u64).sum()
    }

    /// True if the folder has the object, or its name in a text that cannot be parsed or is not
    /// searched.
    pub fn mentions(&self, id: &ObjectId) -> bool {
        self.unsearched
            || self.objects.contains(&(id.group_kind(), Box::from(id.name())))
            || self.unreadable_texts.iter().any(|text| text.contains(id.name()))
    }

    /// True if the folder may hold the object.
    pub fn may_hold(&self, id: &ObjectId) -> bool {
        self.may_hold_anything || self.mentions(id)
    }
}

/// True if names in the text may be escaped or computed.
fn is_template(text: &str) -> bool {
    ["${", "{{", "\\x", "\\u", "\\U", "\\\n", "\\\r\n"].iter().any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_hold(files: &[(&str, &str)], id: &str) -> bool {
        let tree = FileTree::from_texts(files.iter().copied());
        FolderContents::from_tree(&tree, &RenderOptions::default()).may_hold(&ObjectId::parse(id).unwrap())
    }

    #[test]
    fn a_file_that_cannot_be_read_may_hold_the_names_in_its_text() {
        let bad = ("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: moved\n");
        assert!(may_hold(&[bad], "/ConfigMap|shop/moved"));
        assert!(may_hold(&[bad], "/Secret|shop/moved"), "the kind may be what cannot be read");
        assert!(!may_hold(&[bad], "/ConfigMap|shop/other"));
        for template in ["{{ .name }}", "${NAME}", "\"\\x6d\"", "\"ot\\\nher\"", "\"ot\\\r\nher\""] {
            let text = format!("kind: [\nname: {template}\n");
            assert!(may_hold(&[("a.yaml", &text)], "/ConfigMap|shop/other"), "{template}");
        }
        assert!(!may_hold(&[("notes.txt", "moved")], "/ConfigMap|shop/moved"));
    }

    #[test]
    fn a_template_may_hold_any_object_and_names_only_those_in_its_text() {
        let tree = FileTree::from_texts([("a.yaml", "kind: [\nname: {{ .name }}\n# moved\n")]);
        let contents = FolderContents::from_tree(&tree, &RenderOptions::default());
        let [moved, other] =
            ["moved", "other"].map(|name| ObjectId::parse(&format!("/ConfigMap|shop/{name}")).unwrap());
        assert!(contents.may_hold(&other) && !contents.mentions(&other));
        assert!(contents.mentions(&moved));
        let unsearched = FolderContents::unsearched();
        assert!(unsearched.may_hold(&other) && unsearched.mentions(&other));
    }

    #[test]
    fn a_file_that_can_be_read_holds_its_objects_and_no_others() {
        let good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: moved}\n";
        let files = [("a.yaml", good), ("b.yaml", "kind: [")];
        assert!(may_hold(&files, "/ConfigMap|shop/a"));
        assert!(!may_hold(&files, "/Secret|shop/a"));
        assert!(!may_hold(&files, "/ConfigMap|shop/moved"));
    }
}
