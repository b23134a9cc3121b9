//! What was seen of the machine in the duels of a load, and who was alive together.

use crate::{cell::observed::CellRounds, compared::field::Field, duel};
use regatta_record::{DuelSeen, StateSeen};
use std::collections::BTreeSet;

impl Field {
    /// What was seen of the machine at this load, and who was alive together; `None` if it was not raced
    /// in duels.
    pub fn duel_seen(&self) -> Option<DuelSeen> {
        let estimates = &self.duel.as_ref()?.estimates;
        let starts = self.contenders.iter().map(|o| o.lives.len()).max()?;
        let alive = |start: usize| -> BTreeSet<usize> {
            let lived = |o: &CellRounds| o.lives.get(start).is_some_and(Option::is_some);
            (0..self.contenders.len()).filter(|who| lived(&self.contenders[*who])).collect()
        };
        let lives: Vec<_> = (0..starts).map(alive).filter(|life| !life.is_empty()).collect();
        // A contender that failed is missing in later lives of its heat.
        let is_whole = |life: &&BTreeSet<usize>| {
            !lives.iter().any(|other| other.len() > life.len() && other.is_superset(life))
        };
        let heats: BTreeSet<&BTreeSet<usize>> = lives.iter().filter(is_whole).collect();
        let name = |who: &usize| self.contenders[*who].name.clone();
        let blocks: u32 = estimates.states.iter().map(|state| state.blocks).sum();
        let state = |state: &duel::State| StateSeen {
            factor: state.level.exp(),
            blocks: state.blocks,
            share: f64::from(state.blocks) / f64::from(blocks.max(1)),
        };
        Some(DuelSeen {
            load: self.load,
            heats: heats.into_iter().map(|heat| heat.iter().map(name).collect()).collect(),
            lives: lives.len() as u32,
            states: estimates.states.iter().map(state).collect(),
            busy: estimates.busy,
            left_out: estimates.straddled,
            left_out_slices: estimates.beside,
        })
    }
}
