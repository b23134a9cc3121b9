//! What is read of a contender at the edges of a load's window.

use crate::warm::Seeing;
use regatta_host::Watched;
use regatta_load::{Edges, SoFar};

/// Lets a load tell the host when to read.
pub(crate) struct AtEdges<'a> {
    pub watched: Watched,
    /// Where it is to be seen how the contender warms up.
    pub seeing: Option<Seeing<'a>>,
}

impl Edges for AtEdges<'_> {
    fn is_warm(&mut self, so_far: &SoFar) -> bool {
        self.seeing.as_mut().is_none_or(|seeing| seeing.is_warm(so_far))
    }

    fn before_window(&mut self) {
        self.watched.before_window();
    }

    fn window_opens(&mut self) {
        self.watched.window_opens();
    }

    fn window_closes(&mut self) {
        self.watched.window_closes();
    }

    fn load_over(&mut self) {
        self.watched.load_over();
    }

    fn connections_open(&mut self) {
        self.watched.connections_open();
    }
}
