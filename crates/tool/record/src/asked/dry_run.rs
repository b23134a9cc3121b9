//! The plan of a race, before any program is started (`race --dry-run`).

use crate::{Asked, LoadShape};
use serde::{Deserialize, Serialize};

/// The plan of a race.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RacePlan {
    /// Format version, [`crate::FORMAT`].
    pub format: u32,
    /// The settings as stored in `race.toml` of the result directory. Versions of contenders are
    /// missing, because reading them starts programs. Loads at a share of the contenders' maximum
    /// rate are missing, because their rates follow from the pilot pass.
    pub asked: Asked,
    /// Number of raced cells (a contender at a load). In rounds, each is started once per pass.
    pub cells: u32,
    /// Cells that are not raced because the load exceeds a limit of the contender, one sentence each.
    pub cannot_hold: Vec<String>,
    /// Starts of the pilot pass, which determines rates; 0: no pilot pass.
    pub pilot_starts: u32,
    /// Number of cells observed before they are measured, until their cost is steady. In rounds, each is
    /// observed once, or twice if its cost rises or falls; in duels, under the first load only.
    pub observed: u32,
    /// Number of loads at a share of the contenders' maximum rate.
    pub loads_at_shares: u32,
    /// Passes over all loads: minimum and maximum. They differ if a precision or a time is requested. In a pass
    /// there is a round of each cell, and a life of each heat.
    pub rounds: [u32; 2],
    /// Length of the slices of duels in seconds: shortest and longest. `None`: no load is raced in duels.
    pub slice_s: Option<[f64; 2]>,
    /// Total starts of the pilot pass and of the rounds, without those of observations: minimum and
    /// maximum.
    pub starts: [u32; 2],
    /// Duration of the race in seconds: minimum, and maximum if nothing fails. Excludes the
    /// requests of the loads in `counted`.
    pub duration_s: [f64; 2],
    /// Loads that end with their last reply instead of a fixed window.
    pub counted: Vec<LoadShape>,
}
