//! Exit statuses: 0 done and judged; 1 done, but something that was asked for failed, was
//! disqualified or could not be judged; 2 wrong usage or unusable machine; 3 a gate is not decided; 130
//! after Ctrl-C.

use std::{
    io::{Write, stderr},
    process::ExitCode,
};

/// How a command ended that did not meet an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// All that was asked for was done.
    Well,
    /// Something that was asked for failed; it has been told.
    Short,
    /// Nothing that was asked for failed, but the rounds do not decide on a gate; it has been told.
    NotDecided,
    /// An error ended it, or part of the result could not be saved or printed; it has been told.
    Failed,
    /// Ctrl-C; what there is has been saved and told.
    Interrupted,
}

/// The exit status; an error is told on stderr.
pub fn code(done: anyhow::Result<Done>) -> ExitCode {
    match done {
        Ok(Done::Well) => ExitCode::SUCCESS,
        Ok(Done::Short) => ExitCode::from(1),
        Ok(Done::Failed) => ExitCode::from(2),
        Ok(Done::NotDecided) => ExitCode::from(3),
        Ok(Done::Interrupted) => ExitCode::from(130),
        Err(error) => {
            // Where stderr has gone, the exit status has to say it alone.
            let _ = writeln!(stderr(), "regatta: {error:#}");
            ExitCode::from(2)
        }
    }
}
