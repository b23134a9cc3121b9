//! Tests that use up or count what belongs to the process: descriptors, mappings, memory. So they have a program
//! of their own, and run one after the other.

#[path = "../it/common.rs"]
mod common;
mod descriptors;
mod hundred_thousand;
mod mappings;
