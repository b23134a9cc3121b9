//! (being written)
use crate::*;
use regatta_service::Program;
pub(crate) fn run<P: Program>(_program: P, _host: &Host) -> Result<(), ServeError> {
    unimplemented!()
}
