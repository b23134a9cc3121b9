//! What is read of a contender at the edges of a load's window.

use regatta_host::Watched;
use regatta_load::Edges;

/// Lets a load tell the host when to read.
pub(crate) struct AtEdges(pub Watched);

impl Edges for AtEdges {
    fn before_window(&mut self) {
        self.0.before_window();
    }

    fn window_opens(&mut self) {
        self.0.window_opens();
    }

    fn window_closes(&mut self) {
        self.0.window_closes();
    }

    fn load_over(&mut self) {
        self.0.load_over();
    }

    fn connections_open(&mut self) {
        self.0.connections_open();
    }
}
