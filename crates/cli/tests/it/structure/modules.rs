//! The modules of a crate, with the items that each defines and imports.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use syn::{Attribute, Expr, Item, Lit, Meta, UseTree, Visibility};

/// A crate's source, without code that is compiled only for tests.
pub struct Crate {
    src: PathBuf,
    files: Vec<PathBuf>,
    /// All modules. A root (`lib.rs`, `main.rs`) comes before the modules below it.
    pub modules: Vec<Module>,
}

/// A module: a file, or a block in one.
pub struct Module {
    /// Index of its file.
    pub file: usize,
    /// Index of the root of its tree; its own index for a root.
    pub root: usize,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    /// Names that are defined here.
    pub items: Vec<String>,
    pub imports: Vec<Import>,
    /// Its items, without child modules and `use`.
    pub content: Vec<Item>,
}

/// One name that a `use` imports.
pub struct Import {
    /// The name here; `None` for all names (`*`).
    pub name: Option<String>,
    pub path: Vec<String>,
    /// Whether it is a re-export.
    pub is_public: bool,
}

impl Crate {
    /// Reads `src/lib.rs` and `src/main.rs` of the folder, with all modules below them.
    pub fn read(folder: &Path) -> Crate {
        let src = folder.join("src");
        let mut read = Crate { src: src.clone(), files: Vec::new(), modules: Vec::new() };
        for root in ["lib.rs", "main.rs"].map(|name| src.join(name)) {
            if root.is_file() {
                let index = read.modules.len();
                read.file(&root, None, index, &src);
            }
        }
        read
    }

    /// All files that are not only for tests.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// A file's path below `src`.
    pub fn file_name(&self, file: usize) -> String {
        let path = &self.files[file];
        path.strip_prefix(&self.src).unwrap_or(path).display().to_string()
    }

    /// Reads the module of a file; `below` is the folder of its children's files.
    fn file(&mut self, path: &Path, parent: Option<usize>, root: usize, below: &Path) -> usize {
        let text =
            fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let parsed =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.files.push(path.to_path_buf());
        self.module(parsed.items, self.files.len() - 1, parent, root, below)
    }

    #[expect(clippy::too_many_arguments, reason = "a recursion over the syntax")]
    fn module(
        &mut self,
        items: Vec<Item>,
        file: usize,
        parent: Option<usize>,
        root: usize,
        below: &Path,
    ) -> usize {
        let index = self.modules.len();
        self.modules.push(Module {
            file,
            root,
            parent,
            children: BTreeMap::new(),
            items: Vec::new(),
            imports: Vec::new(),
            content: Vec::new(),
        });
        for item in items {
            if is_for_tests(attributes(&item)) {
                continue;
            }
            let Item::Mod(child) = item else {
                self.modules[index].add(item);
                continue;
            };
            let name = child.ident.to_string();
            let own = below.join(&name);
            let read = match child.content {
                Some((_, items)) => self.module(items, file, Some(index), root, &own),
                None => {
                    let path = match path_of(&child.attrs) {
                        Some(path) => below.join(path),
                        None => {
                            let flat = below.join(format!("{name}.rs"));
                            if flat.is_file() { flat } else { own.join("mod.rs") }
                        }
                    };
                    self.file(&path, Some(index), root, &own)
                }
            };
            self.modules[index].children.insert(name, read);
        }
        index
    }
}

impl Module {
    fn add(&mut self, item: Item) {
        let name = match &item {
            Item::Const(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Static(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            Item::Use(import) => {
                let is_public = !matches!(import.vis, Visibility::Inherited);
                self.import(&import.tree, &mut Vec::new(), is_public);
                return;
            }
            _ => None,
        };
        self.items.extend(name.map(ToString::to_string));
        self.content.push(item);
    }

    fn import(&mut self, tree: &UseTree, before: &mut Vec<String>, is_public: bool) {
        let mut push = |name: Option<String>, last: Option<String>| {
            let path = before.iter().cloned().chain(last).collect();
            self.imports.push(Import { name, path, is_public });
        };
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(&path.tree, before, is_public);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before, is_public);
                }
            }
            UseTree::Name(name) if name.ident == "self" => push(before.last().cloned(), None),
            UseTree::Name(name) => push(Some(name.ident.to_string()), Some(name.ident.to_string())),
            UseTree::Rename(renamed) if renamed.ident == "self" => {
                push(Some(renamed.rename.to_string()), None);
            }
            UseTree::Rename(renamed) => {
                push(Some(renamed.rename.to_string()), Some(renamed.ident.to_string()));
            }
            UseTree::Glob(_) => push(None, None),
        }
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns whether one of the attributes is exactly `#[cfg(test)]`.
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    })
}

/// Returns the file of `#[path = "…"]`.
fn path_of(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(literal) => match &literal.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })
}
