//! Jobs of streams.

use super::{
    connection::{State, lock},
    form::response,
};
use crate::{Flow, Job, Now};
use std::{
    ffi::CStr,
    io, mem,
    sync::{Arc, Mutex},
};

/// The job of a reply on a stream.
#[derive(Debug)]
pub struct StreamJob<J> {
    pub(super) job: J,
    pub(super) stream: u32,
    pub(super) state: Arc<Mutex<State>>,
}

impl<J: Job> Job for StreamJob<J> {
    const EVER: bool = J::EVER;
    const IN_ORDER: bool = false;

    fn file(&self) -> &Arc<CStr> {
        self.job.file()
    }

    fn is_short(&self) -> bool {
        self.job.is_short()
    }

    /// Does nothing if the stream was reset meanwhile. The state is not locked during the computation.
    fn finish(self, now: Now, file: io::Result<&[u8]>, reply: &mut Vec<u8>) -> Flow {
        let StreamJob { job, stream, state } = self;
        let mut scratch = {
            let mut state = lock(&state);
            if !state.server.is_open(stream) {
                return Flow::Continue;
            }
            mem::take(&mut state.scratch)
        };
        scratch.clear();
        job.finish(now, file, &mut scratch);
        let mut state = lock(&state);
        state.server.respond(stream, response(&scratch), reply);
        state.scratch = scratch;
        Flow::Continue
    }
}
