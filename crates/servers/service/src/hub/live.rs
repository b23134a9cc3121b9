//! The settings of a running hub, which a reload replaces.

use super::rooms::Plan;
use std::sync::{Arc, PoisonError, RwLock};

/// The newest settings. A connection takes them with each of its HTTP requests, and a member keeps those of its join.
#[derive(Debug, Default)]
pub(super) struct Live(RwLock<Arc<Plan>>);

impl Live {
    pub fn new(plan: Plan) -> Live {
        Live(RwLock::new(Arc::new(plan)))
    }

    /// The newest settings.
    pub fn current(&self) -> Arc<Plan> {
        // Nothing panics while holding the lock.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the settings.
    pub fn replace(&self, plan: Plan) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(plan);
    }
}
