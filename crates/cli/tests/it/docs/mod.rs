//! The documentation: README.md and the book in `docs/`. The arguments of every command in it are checked
//! (`commands`; `tests/full` runs them), every link resolves (`links`), and the book's table of contents names every
//! page (`book`).

mod book;
mod commands;
mod fields;
mod links;
mod page;
mod regions;
mod scene;
