//! The host that requests name.

/// The host that requests name. It is the same for all contenders, whatever their ports and machines, so that all
/// get the same bytes.
pub(crate) const HOST: &str = "localhost";
