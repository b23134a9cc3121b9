//! The page of a race: its text, its data, and what a browser shows.

mod browser;
mod capacity;
mod common;
mod drawn;
mod page;
mod size;
