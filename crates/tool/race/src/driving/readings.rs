//! Readings of a contender at the moments of a load.

use crate::{
    driving::warm::WarmUpObserver,
    site::{hosted::Hosted, wire::Reading},
};
use regatta_host::UsageWindow;
use regatta_load::{LoadObserver, Moment, WarmUpProgress};

/// Has a contender read at the moments of a load.
pub(crate) struct RoundObserver<'a, 'h> {
    pub hosted: &'a mut Hosted<'h>,
    /// Set if this start observes how the contender warms up.
    pub seeing: Option<WarmUpObserver<'a>>,
}

impl LoadObserver for RoundObserver<'_, '_> {
    fn at(&mut self, moment: Moment) {
        match moment {
            Moment::Connected => self.hosted.read(&[Reading::BeforeLoad]),
            Moment::BeforeWindow => self.hosted.read(&[Reading::BeforeWindow]),
            Moment::WindowOpens => self.hosted.read(&[Reading::WindowOpens]),
            Moment::StageEnds => {}
            Moment::WindowCloses => self.hosted.read(&[Reading::WindowCloses]),
            Moment::LoadOver => self.hosted.read(&[Reading::LoadOver]),
            Moment::ConnectionsOpen => {
                self.hosted.read(&[Reading::AfterLoad]);
                self.hosted.look();
            }
        }
    }

    fn is_warm(&mut self, so_far: &WarmUpProgress) -> bool {
        self.seeing.as_mut().is_none_or(|seeing| seeing.is_warm(so_far))
    }
}

/// Reads the usage that belongs to a moment of a load.
pub fn read_usage<'w>(windows: impl IntoIterator<Item = &'w mut UsageWindow>, moment: Moment) {
    let read = match moment {
        Moment::BeforeWindow => UsageWindow::before,
        Moment::WindowOpens => UsageWindow::opens,
        Moment::StageEnds => UsageWindow::lap,
        Moment::WindowCloses => UsageWindow::closes,
        Moment::LoadOver => UsageWindow::after,
        Moment::Connected | Moment::ConnectionsOpen => return,
    };
    windows.into_iter().for_each(read);
}
