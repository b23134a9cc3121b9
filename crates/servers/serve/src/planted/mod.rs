//! Servers for tests of the measurement: with known costs, with known delays, and with the minimum of work.

pub(crate) mod burn;
pub(crate) mod delay;
pub(crate) mod delayed;
pub(crate) mod null;
