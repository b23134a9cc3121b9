//! What a race would run, before anything is started (`race --dry-run`).

use crate::{Asked, LoadShape};
use serde::{Deserialize, Serialize};

/// The plan of a race.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RacePlan {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// What is asked, as `race.toml` of the result directory would hold it. Versions of contenders are
    /// missing, because asking for them starts programs. Loads at a share of what the contenders can
    /// do are missing, because their rates follow from the pilot pass.
    pub asked: Asked,
    /// Contenders under loads that are raced. Each is started once per round.
    pub cells: u32,
    /// Cells that are not raced because the load exceeds a limit of the contender, one sentence each.
    pub cannot_hold: Vec<String>,
    /// Starts of the pilot pass, which finds out rates; 0: there is none.
    pub pilot_starts: u32,
    /// Contenders under loads that are observed before the first round, until their costs are steady; each
    /// once, or twice where it is not steady from the start.
    pub observed: u32,
    /// Number of loads at a share of what the contenders can do.
    pub loads_at_shares: u32,
    /// Rounds: the fewest, and the most. They differ where a precision is asked for.
    pub rounds: [u32; 2],
    /// Starts in all, the pilot's included: the fewest, and the most.
    pub starts: [u32; 2],
    /// How long the race takes, in seconds: the shortest, and the longest if nothing fails. Without the
    /// requests of the loads in `counted`.
    pub duration_s: [f64; 2],
    /// Loads that end with their last reply and not with a window of time.
    pub counted: Vec<LoadShape>,
}
