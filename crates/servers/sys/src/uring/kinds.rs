//! The operation of a completion: its kind, and a token or key.

pub(super) const KIND: u32 = 32;
pub(super) const ACCEPT: u64 = 0;
pub(super) const RECEIVE: u64 = 1;
pub(super) const SEND: u64 = 2;
pub(super) const WATCH: u64 = 3;
pub(super) const CANCEL: u64 = 4;
pub(super) const OPEN: u64 = 5;
pub(super) const READ: u64 = 6;
pub(super) const PAST_END: u64 = 7;
pub(super) const CLOSE: u64 = 8;

/// The `user_data` of an operation: its kind in the high bits, its token or key in the low bits.
#[inline]
pub(super) fn name(kind: u64, key: u32) -> u64 {
    kind << KIND | u64::from(key)
}
