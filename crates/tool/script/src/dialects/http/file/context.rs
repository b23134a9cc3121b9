//! The context of reading a request: names captured so far, and the lists and files of the workload
//! file.

use crate::workload::{
    conversation::Captures,
    lists::NamedLists,
    template::{Scope, Side, Template},
};
use std::borrow::Cow;

/// The context of reading one request.
pub(super) struct Context<'r> {
    pub captures: &'r mut Captures,
    pub lists: &'r mut NamedLists,
}

impl Context<'_> {
    /// Reads a template.
    pub fn template(&mut self, key: &str, text: &str, side: Side) -> Result<Template, String> {
        Template::parse(text, side, &mut self.scope())
            .map_err(|why| format!("{key} = {text:?}: {why}"))
    }

    /// Returns what placeholders can refer to.
    pub fn scope(&mut self) -> Scope<'_> {
        Scope { captures: self.captures, lists: self.lists }
    }

    /// Maximum number of bytes of a filled-in template.
    pub fn longest(&mut self, template: &Template, side: Side) -> usize {
        template.longest(side, &self.scope())
    }

    /// Whether a filled-in template can contain a control character.
    pub fn can_hold_controls(&mut self, template: &Template, side: Side) -> bool {
        template.can_hold_controls(side, &self.scope())
    }

    /// Returns the lines of a list.
    pub fn lines(&self, list: usize) -> impl Iterator<Item = Cow<'_, str>> {
        self.lists.lists[list].iter().map(|line| String::from_utf8_lossy(line))
    }

    /// Returns the content of a file.
    pub fn file(&mut self, name: &str) -> Result<Vec<u8>, String> {
        self.lists.file(name)
    }
}

/// Returns an error if `longest` exceeds `most`.
pub(super) fn at_most(what: &str, longest: usize, most: usize) -> Result<(), String> {
    if longest > most {
        return Err(format!(
            "{what} can become {longest} bytes long; at most {most} are permitted"
        ));
    }
    Ok(())
}
