//! The fields of a type of the JSON as a table, from its source: names, whether they may be absent, and what
//! their comments say.

use syn::{Attribute, Expr, Fields, Item, Lit, Meta, Type};

/// Returns the table of a struct, or the list of the values of an enum, with its comment. `is_read` marks the
/// keys that a file must have, otherwise the fields are marked that a JSON may lack. Panics if the code has no
/// such type.
pub fn table(code: &str, name: &str, is_read: bool) -> String {
    let file = syn::parse_file(code).expect("a source file");
    for item in &file.items {
        match item {
            Item::Struct(item) if item.ident == name => {
                let mut text = format!("\n{}\n\n| field | |\n|---|---|\n", comment(&item.attrs));
                let Fields::Named(fields) = &item.fields else { panic!("{name} has no names") };
                for field in fields.named.iter().filter(|field| !is_skipped(&field.attrs)) {
                    let own = field.ident.as_ref().expect("a name").to_string();
                    let name = renamed(&field.attrs).unwrap_or(own);
                    let is_option = is_option(&field.ty);
                    let or_null = match (is_read, serde_has(&field.attrs, "skip_serializing_if")) {
                        (true, _) if is_option || serde_has(&field.attrs, "default") => "",
                        (true, _) => " (required)",
                        (false, true) => " (or absent)",
                        (false, false) if is_option => " (or `null`)",
                        (false, false) => "",
                    };
                    text += &format!("| `{name}`{or_null} | {} |\n", cell(&field.attrs));
                }
                return text + "\n";
            }
            Item::Enum(item) if item.ident == name => {
                let mut text = format!("\n{}\n\n| value | |\n|---|---|\n", comment(&item.attrs));
                for variant in &item.variants {
                    let own = kebab(&variant.ident.to_string());
                    let name = renamed(&variant.attrs).unwrap_or(own);
                    text += &format!("| `{name}` | {} |\n", cell(&variant.attrs));
                }
                return text + "\n";
            }
            _ => {}
        }
    }
    panic!("there is no type {name}")
}

/// A comment within a table.
fn cell(attributes: &[Attribute]) -> String {
    comment(attributes).replace('\n', " ").replace('|', "\\|")
}

/// A comment, with links to types as code.
fn comment(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes.iter().filter(|one| one.path().is_ident("doc")) {
        let Meta::NameValue(meta) = &attribute.meta else { continue };
        let Expr::Lit(expression) = &meta.value else { continue };
        let Lit::Str(line) = &expression.lit else { continue };
        let line = line.value();
        text += if line.trim().is_empty() { "\n\n" } else { &line };
    }
    // A link to another item of the source is code here: [`a::B`] and [`B`](c) become `B`.
    let link = regex::Regex::new(r"\[`(?:\w+::)*?((?:[A-Z]\w*::)?\w+)`\](?:\([^)]*\))?").unwrap();
    let text = link
        .replace_all(&text, |found: &regex::Captures| format!("`{}`", found[1].replace("::", ".")));
    let rule = regex::Regex::new(r" \(method, rule \d+\)").unwrap();
    rule.replace_all(&text, "").trim().replace("  ", " ").replace("`None`", "`null`")
}

/// Returns the name that `#[serde(rename = "…")]` gives.
fn renamed(attributes: &[Attribute]) -> Option<String> {
    let mut name = None;
    for attribute in attributes.iter().filter(|one| one.path().is_ident("serde")) {
        let _ = attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("rename") {
                name = Some(meta.value()?.parse::<syn::LitStr>()?.value());
            } else if meta.input.peek(syn::Token![=]) {
                let _: Expr = meta.value()?.parse()?;
            }
            Ok(())
        });
    }
    name
}

/// Whether `#[serde(…)]` has this word.
fn serde_has(attributes: &[Attribute], word: &str) -> bool {
    attributes.iter().any(|one| match &one.meta {
        Meta::List(list) if list.path.is_ident("serde") => {
            let tokens = list.tokens.to_string();
            tokens.split([',', ' ', '=']).any(|one| one == word)
        }
        _ => false,
    })
}

/// Whether the field is in no file.
fn is_skipped(attributes: &[Attribute]) -> bool {
    serde_has(attributes, "skip") || serde_has(attributes, "skip_serializing")
}

fn is_option(of: &Type) -> bool {
    matches!(of, Type::Path(path) if path.path.segments.last().is_some_and(|s| s.ident == "Option"))
}

fn kebab(name: &str) -> String {
    let mut out = String::new();
    for char in name.chars() {
        if char.is_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.extend(char.to_lowercase());
    }
    out
}

#[test]
fn a_table_has_the_names_and_comments_of_the_json() {
    let code = "/// A [`crate::Cell`].\nstruct A {\n/// One,\n/// of [`Asked::b`].\n#[serde(default, \
                rename = \"uno\")]\npub one: Option<u8>,\n/// x|y; `None`\n#[serde(skip_serializing_if = \"f\")]\nb: Option<u8> }\n/// An enum.\nenum B { \
                /// First.\nIsOne, #[serde(rename = \"zwei\")] Two }";
    assert_eq!(
        table(code, "A", false),
        "\nA `Cell`.\n\n| field | |\n|---|---|\n| `uno` (or `null`) | One, of `Asked.b`. |\n\
         | `b` (or absent) | x\\|y; `null` |\n\n"
    );
    let file = "/// C.\nstruct C { #[serde(default = \"x\")] a: u8, b: u8, c: Option<u8>, \
                #[serde(skip)] d: u8 }";
    let table_of_file = table(file, "C", true);
    assert!(table_of_file.contains("| `a` |") && table_of_file.contains("| `b` (required) |"));
    assert!(table_of_file.contains("| `c` |") && !table_of_file.contains("`d`"));
    assert!(table(code, "B", false).contains("| `is-one` | First. |\n| `zwei` |  |\n"));
}
