//! Why a load over agents has no result.

/// Why a load over agents did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An agent cannot be started or reached.
    #[error("agent {name} {because}")]
    Agent {
        /// Its name.
        name: String,
        /// What happened, as the rest of a sentence.
        because: String,
    },
    /// The agent's program is another one than the leader's.
    #[error(
        "agent {name} runs another build of regatta: {theirs} there, {ours} here; install the same one there, or use \
         --deploy, which copies it"
    )]
    OtherBuild {
        /// Its name.
        name: String,
        /// Version and hash of its program.
        theirs: String,
        /// Version and hash of the leader's.
        ours: String,
    },
    /// The caller no longer wanted it.
    #[error("interrupted")]
    Interrupted,
    /// The program cannot be copied to a machine, because that needs another one.
    #[error(
        "--deploy copies this program, which is built for {ours}, but {name} is {theirs}: build regatta for {theirs} \
         and install it there"
    )]
    OtherArchitecture {
        /// The machine.
        name: String,
        /// Its architecture.
        theirs: String,
        /// That of this program.
        ours: String,
    },
    /// The command in place of `ssh` is none.
    #[error("expected a command in place of ssh, got {0:?}")]
    Command(String),
    /// The load cannot be divided among the agents.
    #[error("{0}")]
    Division(String),
    /// A system call failed that the leader itself needs.
    #[error("cannot {what}: {error}")]
    Machine {
        /// The attempted operation.
        what: &'static str,
        /// The system's error.
        error: std::io::Error,
    },
    /// A standing fleet has wrong files, or its broker cannot be reached.
    #[error("{0}")]
    Nats(String),
    /// The load has no result.
    #[error(transparent)]
    Load(#[from] regatta_load::Error),
}
