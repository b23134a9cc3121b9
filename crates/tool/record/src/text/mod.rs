//! The words of results: every report has the same ones.

pub(crate) mod alike;
mod causes;
pub(crate) mod content_doubt;
pub(crate) mod joined;
pub(crate) mod needed;
pub(crate) mod pilot_doubts;
pub(crate) mod running_doubts;
pub(crate) mod visible;
pub(crate) mod words;
