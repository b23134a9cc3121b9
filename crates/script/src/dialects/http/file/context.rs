//! What the requests of a workload file are read with: what was captured so far, and the lists and files
//! that they name.

use crate::workload::{
    conversation::Captures,
    lists::NamedLists,
    template::{Scope, Side, Template},
};
use std::borrow::Cow;

/// What one request is read with.
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

    /// What placeholders can refer to.
    pub fn scope(&mut self) -> Scope<'_> {
        Scope { captures: self.captures, lists: self.lists }
    }

    /// Most bytes of a template when it is filled in.
    pub fn longest(&mut self, template: &Template, side: Side) -> usize {
        template.longest(side, &self.scope())
    }

    /// Whether a control character can come into a template.
    pub fn can_hold_controls(&mut self, template: &Template, side: Side) -> bool {
        template.can_hold_controls(side, &self.scope())
    }

    /// The lines of a list.
    pub fn lines(&self, list: usize) -> impl Iterator<Item = Cow<'_, str>> {
        self.lists.lists[list].iter().map(|line| String::from_utf8_lossy(line))
    }

    /// The content of a file.
    pub fn file(&mut self, name: &str) -> Result<Vec<u8>, String> {
        self.lists.file(name)
    }
}

/// Refuses what is too long.
pub(super) fn at_most(what: &str, longest: usize, most: usize) -> Result<(), String> {
    if longest > most {
        return Err(format!(
            "{what} can become {longest} bytes long; at most {most} are permitted"
        ));
    }
    Ok(())
}
