//! What workload files share, whatever their protocol: conversations of templates, the lists of
//! lines and the files that they name, and how conversations fill a script.

pub(crate) mod compose;
pub(crate) mod conversation;
pub(crate) mod disk;
pub(crate) mod draw;
pub(crate) mod expression;
pub(crate) mod file;
pub(crate) mod files;
pub(crate) mod lists;
pub(crate) mod regex;
pub(crate) mod template;
