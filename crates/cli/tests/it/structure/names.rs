//! The files that each file needs: every path in the source is followed to the file that defines its
//! item.

use crate::structure::modules::{Crate, Import, is_for_tests};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// Returns all pairs of files where the first names items that the second defines, with these items.
pub fn needs(of: &Crate) -> BTreeMap<(usize, usize), BTreeSet<String>> {
    let mut needs: BTreeMap<(usize, usize), BTreeSet<String>> = BTreeMap::new();
    for (index, module) in of.modules.iter().enumerate() {
        let mut paths = Paths { module: index, of, found: BTreeSet::new() };
        // A re-export alone needs nothing. Its users are followed to the definition.
        for import in module.imports.iter().filter(|import| !import.is_public) {
            paths.add(&import.path);
        }
        module.content.iter().for_each(|item| paths.visit_item(item));
        let others = paths.found.into_iter().filter(|(file, _)| *file != module.file);
        for (file, item) in others {
            needs.entry((module.file, file)).or_default().insert(item);
        }
    }
    needs
}

/// Collects the files that the paths of a module lead to, and the items there.
struct Paths<'a> {
    module: usize,
    of: &'a Crate,
    found: BTreeSet<(usize, String)>,
}

impl Paths<'_> {
    fn add(&mut self, path: &[String]) {
        Search { of: self.of, followed: BTreeSet::new(), found: &mut self.found }
            .follow(self.module, path);
    }

    /// Paths among the tokens of a macro: words with `::` between them.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(word) => {
                    if colons != 2 && !path.is_empty() {
                        self.add(&path);
                        path.clear();
                    }
                    path.push(word.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.add_tokens(group.stream());
                    colons = 0;
                }
                _ => colons = 0,
            }
        }
        if !path.is_empty() {
            self.add(&path);
        }
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let words: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if path.leading_colon.is_none() {
            self.add(&words);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.add_tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    /// A `use` inside a function.
    fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
        struct Leaves(Vec<Vec<String>>);
        impl Leaves {
            fn walk(&mut self, tree: &syn::UseTree, before: &[String]) {
                let with = |word: &syn::Ident| [before, &[word.to_string()]].concat();
                match tree {
                    syn::UseTree::Path(path) => self.walk(&path.tree, &with(&path.ident)),
                    syn::UseTree::Group(group) => {
                        group.items.iter().for_each(|tree| self.walk(tree, before));
                    }
                    syn::UseTree::Name(name) => self.0.push(with(&name.ident)),
                    syn::UseTree::Rename(name) => self.0.push(with(&name.ident)),
                    syn::UseTree::Glob(_) => self.0.push(before.to_vec()),
                }
            }
        }
        let mut leaves = Leaves(Vec::new());
        leaves.walk(&import.tree, &[]);
        leaves.0.iter().for_each(|path| self.add(path));
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }
}

/// One path, followed through imports and re-exports.
struct Search<'a> {
    of: &'a Crate,
    /// Imports that are being followed, by module and position. The path of an import must not lead
    /// through itself (`use a::b::*` could import another `a`).
    followed: BTreeSet<(usize, usize)>,
    found: &'a mut BTreeSet<(usize, String)>,
}

impl Search<'_> {
    /// Follows a path that occurs in a module.
    fn follow(&mut self, module: usize, path: &[String]) {
        let Some((first, rest)) = path.split_first() else { return };
        match first.as_str() {
            "crate" => self.walk(self.of.modules[module].root, rest),
            "self" => self.walk(module, rest),
            "super" => {
                if let Some(parent) = self.of.modules[module].parent {
                    self.upwards(parent, rest);
                }
            }
            "Self" => {}
            // A name of this module. Another crate, a type parameter or a local variable leads nowhere.
            _ => self.walk(module, path),
        }
    }

    fn upwards(&mut self, module: usize, rest: &[String]) {
        match rest.split_first() {
            Some((again, _)) if again == "super" => self.follow(module, rest),
            _ => self.walk(module, rest),
        }
    }

    /// Follows a path from inside a module. Naming only a module does not need its file.
    fn walk(&mut self, index: usize, path: &[String]) {
        let Some((name, rest)) = path.split_first() else { return };
        let module = &self.of.modules[index];
        if module.items.contains(name) {
            self.found.insert((module.file, name.clone()));
        }
        // A module and an item may have the same name.
        if let Some(child) = module.children.get(name) {
            self.walk(*child, rest);
        }
        for (nth, import) in module.imports.iter().enumerate() {
            let onwards: Vec<String> = match import {
                Import { name: Some(brought), path, .. } if brought == name => {
                    path.iter().chain(rest).cloned().collect()
                }
                Import { name: None, path: all, .. } => all.iter().chain(path).cloned().collect(),
                Import { .. } => continue,
            };
            if self.followed.insert((index, nth)) {
                self.follow(index, &onwards);
                self.followed.remove(&(index, nth));
            }
        }
    }
}
