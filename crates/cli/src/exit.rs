//! Exit statuses: 0 done and judged; 1 done, but something that was requested failed, was
//! disqualified or could not be judged; 2 an error, such as wrong usage, an unusable machine, or a
//! result that could not be saved; 3 a gate is not decided; 130 after Ctrl-C.

use std::{
    io::{Write, stderr},
    process::ExitCode,
};

/// How a command ended. What went wrong has been reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// Everything that was requested succeeded.
    Well,
    /// Something that was requested failed.
    Short,
    /// Nothing failed, but the rounds do not decide a gate.
    NotDecided,
    /// An error stopped the command, or part of the result could not be saved or printed.
    Failed,
    /// Ctrl-C; the results up to then have been saved and printed.
    Interrupted,
}

/// Returns the exit status, and prints an error to stderr.
pub fn code(done: anyhow::Result<Done>) -> ExitCode {
    match done {
        Ok(Done::Well) => ExitCode::SUCCESS,
        Ok(Done::Short) => ExitCode::from(1),
        Ok(Done::Failed) => ExitCode::from(2),
        Ok(Done::NotDecided) => ExitCode::from(3),
        Ok(Done::Interrupted) => ExitCode::from(130),
        Err(error) => {
            // If stderr is closed, the exit status alone reports the error.
            let _ = writeln!(stderr(), "regatta: {error:#}");
            ExitCode::from(2)
        }
    }
}
