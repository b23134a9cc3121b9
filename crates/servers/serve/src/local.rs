//! State shared by the connections of a thread: one value of the service that it runs.

use std::{any::Any, cell::RefCell};

thread_local! {
    static LOCAL: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// Takes the value, or creates it.
#[inline]
pub(crate) fn take<L: Default + 'static>() -> Box<L> {
    if size_of::<L>() == 0 {
        return Box::default(); // there is nothing to keep
    }
    let kept = LOCAL.with_borrow_mut(Option::take);
    kept.and_then(|kept| kept.downcast().ok()).unwrap_or_default()
}

/// Puts the value back.
#[inline]
pub(crate) fn give_back<L: 'static>(local: Box<L>) {
    if size_of::<L>() == 0 {
        return;
    }
    LOCAL.set(Some(local));
}
