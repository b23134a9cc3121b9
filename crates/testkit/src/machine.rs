//! The group `measure`: a test that compares figures holds the machine alone, among the tests of its program.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static MACHINE: RwLock<()> = RwLock::new(());

/// A test's hold of the machine.
#[must_use]
pub struct Turn(#[allow(dead_code, reason = "held until dropped")] Hold);

#[allow(dead_code, reason = "held until dropped")]
enum Hold {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

/// The turn of a test that loads the machine but compares no figures: any number of them run at once.
pub fn shared() -> Turn {
    // The lock guards no data, so a poisoned one can be used.
    Turn(Hold::Shared(MACHINE.read().unwrap_or_else(PoisonError::into_inner)))
}

/// The turn of a test that compares figures: no other test that holds a turn runs meanwhile.
pub fn alone() -> Turn {
    Turn(Hold::Alone(MACHINE.write().unwrap_or_else(PoisonError::into_inner)))
}
