//! Items of source files, each as the tokens that decide its behaviour.
//!
//! In: a file.
//! Out: for each function, type, constant and member of an `impl` its tokens and its position.
//! Comments, imports, `mod` lines, visibility and the modules in front of a name are left out: an
//! item that only moved stays equal.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{ImplItem, Item};

use super::renames::Renames;

/// The part of an item that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// All of its tokens.
    Code,
    /// Only its string literals.
    Texts,
}

/// Positions of items, by their tokens. Equal items of several files have several positions.
#[derive(Debug, Default)]
pub(crate) struct Items(pub(crate) BTreeMap<String, Vec<Place>>);

/// Position of an item.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) path: String,
    pub(crate) name: String,
}

/// A file while its items are collected.
struct File<'a> {
    path: &'a str,
    strictness: Strictness,
    renames: Option<&'a Renames>,
    items: &'a mut Items,
}

impl Items {
    /// Adds the items of a file.
    pub(crate) fn add(
        &mut self,
        path: &str,
        text: &str,
        strictness: Strictness,
        renames: Option<&Renames>,
    ) -> Result<(), String> {
        let parsed = syn::parse_file(text).map_err(|error| format!("{path}: {error}"))?;
        let mut file = File { path, strictness, renames, items: self };
        parsed.items.into_iter().for_each(|item| file.item(item));
        Ok(())
    }
}

impl File<'_> {
    fn item(&mut self, item: Item) {
        match item {
            Item::Use(_) | Item::ExternCrate(_) => {}
            Item::Mod(module) => {
                module.content.into_iter().flat_map(|(_, items)| items).for_each(|item| self.item(item));
            }
            Item::Impl(mut whole) => {
                // The members of a type may be spread over any number of blocks; those of a trait
                // are in one.
                if whole.trait_.is_some() {
                    return self.keep("impl", &whole.to_token_stream());
                }
                let members = std::mem::take(&mut whole.items);
                let head = whole.to_token_stream();
                for member in members {
                    let name = name_of_member(&member);
                    let mut tokens = head.clone();
                    member.to_tokens(&mut tokens);
                    self.keep(&name, &tokens);
                }
            }
            other => {
                let name = name_of(&other);
                self.keep(&name, &other.to_token_stream());
            }
        }
    }

    fn keep(&mut self, name: &str, tokens: &TokenStream) {
        let mut words = Vec::new();
        let place = Place { path: self.path.to_owned(), name: name.to_owned() };
        match self.strictness {
            Strictness::Code => self.words(tokens.clone(), &mut words),
            Strictness::Texts => {
                texts(tokens.clone(), &mut words);
                // Each text separately, because a function may have been split.
                for text in words {
                    self.items.0.entry(text).or_default().push(place.clone());
                }
                return;
            }
        }
        self.items.0.entry(words.join(" ")).or_default().push(place);
    }

    /// Collects the tokens that decide an item's behaviour.
    fn words(&self, tokens: TokenStream, out: &mut Vec<String>) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(tree) = trees.get(at) {
            at += skipped(&trees[at..]).unwrap_or_else(|| {
                self.word(tree, out);
                1
            });
        }
    }

    fn word(&self, tree: &TokenTree, out: &mut Vec<String>) {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                out.push(open.to_owned());
                self.words(group.stream(), out);
                // A trailing comma comes from the formatter.
                out.pop_if(|last| last == ",");
                out.push(close.to_owned());
            }
            TokenTree::Ident(name) => {
                let name = name.to_string();
                out.push(self.renames.map_or(name.as_str(), |renames| renames.now(&name)).to_owned());
            }
            other => out.push(other.to_string()),
        }
    }
}

/// Returns the number of tokens to skip here: comments, visibility, imports within a function, and
/// modules in front of a name.
fn skipped(trees: &[TokenTree]) -> Option<usize> {
    let is_mark =
        |at: usize, mark: char| matches!(trees.get(at), Some(TokenTree::Punct(it)) if it.as_char() == mark);
    let name = |at: usize| match trees.get(at) {
        Some(TokenTree::Ident(name)) => Some(name.to_string()),
        _ => None,
    };
    let is_group = |at: usize, delimiter: Delimiter| matches!(trees.get(at), Some(TokenTree::Group(group)) if group.delimiter() == delimiter);
    if is_mark(0, '#') {
        let inner = usize::from(is_mark(1, '!'));
        if let Some(TokenTree::Group(group)) = trees.get(1 + inner)
            && is_documentation(&group.stream())
        {
            return Some(2 + inner);
        }
    }
    match name(0)?.as_str() {
        "pub" => {
            let place = is_group(1, Delimiter::Parenthesis)
                && matches!(&trees[1], TokenTree::Group(group) if is_visibility(&group.stream()));
            return Some(1 + usize::from(place));
        }
        "use" if !is_mark(1, '<') => return Some(trees.iter().position(is_end)? + 1),
        _ => {}
    }
    // `a::b::Name` equals `Name`, wherever the item has moved.
    let is_path = is_mark(1, ':') && is_mark(2, ':') && name(3).is_some();
    (is_path && is_module(&name(0)?)).then_some(3)
}

fn is_end(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Punct(mark) if mark.as_char() == ';')
}

/// True for a module or crate: a lower-case name. `Self` and types begin with a capital.
fn is_module(name: &str) -> bool {
    name.chars().next().is_some_and(char::is_lowercase)
}

fn is_documentation(attribute: &TokenStream) -> bool {
    matches!(attribute.clone().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc")
}

fn is_visibility(group: &TokenStream) -> bool {
    let first = group.clone().into_iter().next();
    matches!(first, Some(TokenTree::Ident(name)) if ["crate", "super", "self", "in"].iter().any(|word| name == word))
}

/// Collects the string literals among tokens, except those of documentation.
fn texts(tokens: TokenStream, out: &mut Vec<String>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(tree) = trees.get(at) {
        if let Some(many) = skipped(&trees[at..]) {
            at += many;
            continue;
        }
        match tree {
            TokenTree::Group(group) => texts(group.stream(), out),
            TokenTree::Literal(literal) if literal.to_string().contains('"') => out.push(literal.to_string()),
            _ => {}
        }
        at += 1;
    }
}

fn name_of(item: &Item) -> String {
    match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref().map_or_else(|| "a macro".into(), ToString::to_string),
        _ => "an item".into(),
    }
}

fn name_of_member(member: &ImplItem) -> String {
    match member {
        ImplItem::Fn(item) => item.sig.ident.to_string(),
        ImplItem::Const(item) => item.ident.to_string(),
        _ => "a member".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut items = Items::default();
        items.add("a.rs", text, Strictness::Code, None).unwrap();
        items.0.into_keys().collect()
    }

    #[track_caller]
    fn same(before: &str, now: &str) {
        assert_eq!(words(before), words(now));
    }

    #[track_caller]
    fn differ(before: &str, now: &str) {
        assert_ne!(words(before), words(now));
    }

    #[test]
    fn what_moves_stays_the_same() {
        same("use crate::a::B; fn f() -> B { B::new() }", "fn f() -> crate::c::B { super::c::B::new() }");
        same("pub(crate) struct A { pub(super) b: u8 }", "struct A { b: u8, }");
        same("/// Old words.\nfn f() {}", "//! New.\n/// Words.\nfn f() { /* none */ }");
        same("impl A { fn f(&self) {} fn g() {} }", "impl A { pub fn g() {} }\nimpl A { fn f(&self) {} }");
        same("mod tests { fn f() { use a::B; B } }", "fn f() { B }");
        same("fn f() { g!(\"{}\", a::b::c()) }", "fn f() { g!(\"{}\", c()) }");
        same("fn f() -> impl Iterator + use<'_> {}", "fn f() -> impl Iterator + use<'_> {}");
    }

    #[test]
    fn every_other_change_is_seen() {
        differ("fn f() { 1 }", "fn f() { 2 }");
        differ("fn f() { g(\"a\") }", "fn f() { g(\"b\") }");
        differ("fn f(a: A) {}", "fn f(a: &A) {}");
        differ("fn f() { A::b() }", "fn f() { C::b() }");
        differ("impl A { fn f() {} }", "impl B { fn f() {} }");
        differ("#[test] fn f() {}", "fn f() {}");
        differ("fn f() { x.iter::<u8>() }", "fn f() { x.iter::<u16>() }");
        differ("fn f() -> impl Iterator + use<'a> {}", "fn f() -> impl Iterator + use<'b> {}");
    }

    #[test]
    fn a_renamed_name_is_the_same() {
        let mut renames = Renames::default();
        renames.read("t", "Told WorkerEvent").unwrap();
        let (mut before, mut now) = (Items::default(), Items::default());
        before.add("a.rs", "fn f(it: Told) {}", Strictness::Code, Some(&renames)).unwrap();
        now.add("b.rs", "fn f(it: WorkerEvent) {}", Strictness::Code, None).unwrap();
        assert_eq!(before.0.into_keys().collect::<Vec<_>>(), now.0.into_keys().collect::<Vec<_>>());
    }

    #[test]
    fn texts_are_compared_wherever_they_are() {
        let texts = |text: &str| {
            let mut items = Items::default();
            items.add("a.rs", text, Strictness::Texts, None).unwrap();
            items.0.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(texts("/// Words.\nfn f() { g(\"a\"); h!(\"b\") }"), ["\"a\"", "\"b\""]);
        assert_eq!(texts("fn f() { g(\"a\") } fn i() { h!(b\"b\", 'c') }"), ["\"a\"", "b\"b\""]);
    }
}
