//! What is measured when a node replies.

mod replied;
