//! Exit statuses: 0 done and judged; 1 done, but something that was requested failed, was
//! disqualified or could not be judged; 2 an error, such as wrong usage, an unusable machine, or a
//! result that could not be saved; 3 a gate is not decided; 130 after Ctrl-C, SIGTERM or SIGQUIT.

use crate::program_name::as_called;
use std::{
    io::{Write, stderr},
    process::ExitCode,
};

/// How a command ended. What went wrong has been reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything that was requested succeeded.
    Success,
    /// Something that was requested failed.
    Failure,
    /// Nothing failed, but a gate is not decided.
    NotDecided,
    /// An error stopped the command, or part of the result could not be saved or printed.
    Error,
    /// Ctrl-C, SIGTERM or SIGQUIT; the results up to then, if any, have been saved and printed.
    Interrupted,
}

/// Returns the exit status, and prints an error to stderr.
pub fn code(outcome: anyhow::Result<Outcome>) -> ExitCode {
    match outcome {
        Ok(Outcome::Success) => ExitCode::SUCCESS,
        Ok(Outcome::Failure) => ExitCode::from(1),
        Ok(Outcome::Error) => ExitCode::from(2),
        Ok(Outcome::NotDecided) => ExitCode::from(3),
        Ok(Outcome::Interrupted) => ExitCode::from(130),
        Err(error) => {
            // If stderr is closed, the exit status alone reports the error.
            let _ = writeln!(stderr(), "regatta: {}", as_called(&format!("{error:#}")));
            ExitCode::from(2)
        }
    }
}
