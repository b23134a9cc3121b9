//! Compiles `.proto` files into descriptors.

use super::{
    descriptors,
    names::{SHOWN_ERROR, cut_to},
};
use prost_reflect::prost_types::FileDescriptorSet;
use protox::{
    Compiler,
    file::{File, FileResolver, GoogleFileResolver},
};
use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

/// Maximum number of bytes of a file and all that it imports, without the built-in ones.
const MOST_BYTES: usize = 4 << 20;

/// Maximum number of these files.
const MOST_FILES: usize = 500;

/// Files by their names in imports; the well-known ones are built in.
struct Sources(HashMap<String, File>);

impl FileResolver for Sources {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.0.get(name) {
            Some(file) => Ok(file.clone()),
            None => GoogleFileResolver::new().open_file(name),
        }
    }
}

/// Compiles the file of this name. `find` returns the content of a file by its name in imports. Returns
/// descriptors that have been checked.
pub(super) fn compile(
    name: &str,
    find: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
) -> Result<FileDescriptorSet, String> {
    let files = gather(name, find)?;
    let order = in_order(&files)?;
    let mut compiler = Compiler::with_file_resolver(Sources(files));
    compiler.include_imports(true);
    compiler.open_files(order).map_err(|error| in_words(&error))?;
    descriptors::plain(compiler.file_descriptor_set())
}

/// Returns the names of all files, each after those that it imports: the compiler opens imports by recursion, and
/// a long chain of them would exceed the stack.
fn in_order(files: &HashMap<String, File>) -> Result<Vec<String>, String> {
    let mut order: Vec<String> = Vec::new();
    let mut waiting: BTreeSet<&String> = files.keys().collect();
    while !waiting.is_empty() {
        let is_ready = |name: &&String| {
            let imports = &files[*name].file_descriptor_proto().dependency;
            !imports.iter().any(|import| waiting.contains(import))
        };
        let ready: Vec<&String> = waiting.iter().copied().filter(is_ready).collect();
        if ready.is_empty() {
            let names: Vec<&str> = waiting.into_iter().map(String::as_str).collect();
            return Err(format!("the imports of these files form a cycle: {}", names.join(", ")));
        }
        for name in ready {
            waiting.remove(name);
            order.push(name.clone());
        }
    }
    Ok(order)
}

/// Returns the file of this name and all that it imports.
fn gather(
    name: &str,
    find: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
) -> Result<HashMap<String, File>, String> {
    let built_in = GoogleFileResolver::new();
    let (mut files, mut bytes) = (HashMap::new(), 0);
    let mut missing = vec![(name.to_owned(), None::<String>)];
    while let Some((name, importer)) = missing.pop() {
        if files.contains_key(&name) || built_in.open_file(&name).is_ok() {
            continue;
        }
        let text = find(&name).map_err(|why| match importer {
            Some(importer) => format!("{importer} imports {name:?}: {why}"),
            None => why,
        })?;
        bytes += text.len();
        if bytes > MOST_BYTES || files.len() == MOST_FILES {
            return Err(format!(
                "{name} and the files before it, with all imports, exceed {} MiB or {MOST_FILES} files",
                MOST_BYTES >> 20
            ));
        }
        let text = String::from_utf8(text)
            .map_err(|_| format!("{name} is not valid UTF-8; expected a .proto file"))?;
        let file = File::from_source(&name, &text).map_err(|error| in_words(&error))?;
        let parsed = file.file_descriptor_proto();
        // Before the compiler reads the values of options.
        descriptors::plain(FileDescriptorSet { file: vec![parsed.clone()] })
            .map_err(|why| format!("{name}: {why}"))?;
        let imports = &parsed.dependency;
        missing.extend(imports.iter().map(|import| (import.clone(), Some(name.clone()))));
        files.insert(name, file);
    }
    Ok(files)
}

/// Returns the content of a file in the first of these folders that has it.
pub(super) fn find(
    name: &str,
    folders: &[&Path],
    read: &mut dyn FnMut(&Path) -> Result<Vec<u8>, String>,
) -> Result<Vec<u8>, String> {
    let mut faults = Vec::new();
    for folder in folders {
        match read(&folder.join(name)) {
            Ok(content) => return Ok(content),
            Err(fault) => faults.push(fault),
        }
    }
    Err(faults.join("; "))
}

/// An error with the file and the line, for people.
fn in_words(error: &protox::Error) -> String {
    // The text of `Debug` is `FILE:LINE:COLUMN: MESSAGE`; that of `Display` is the message alone.
    cut_to(SHOWN_ERROR, &format!("{error:?}"))
}
