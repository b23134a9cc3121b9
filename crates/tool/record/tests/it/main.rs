//! The format of results: values that are merged, and the text form of loads.

mod merge;
mod shapes;
