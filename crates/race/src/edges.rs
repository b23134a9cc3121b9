//! What is read of a contender at the edges of a load's window.

use regatta_host::Watched;
use regatta_load::Edges;

/// Lets a load tell the host when to read.
pub(crate) struct AtEdges(pub Watched);

impl Edges for AtEdges {
    fn window_opens(&mut self) {
        self.0.window_opens();
    }

    fn window_closes(&mut self) {
        self.0.window_closes();
    }

    fn connections_open(&mut self) {
        self.0.connections_open();
    }
}
