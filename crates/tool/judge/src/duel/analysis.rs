//! From the blocks of a heat to its ratios.

use super::{
    busy::settled,
    disturbed::{Disturbed, disturbed},
    field::{Field, Life},
    long_slices::LongSlices,
    mixed::Fit,
    moderation::Prior,
    ratio::{Pair, Ratio},
    states::{State, States},
};
use crate::statistics::{CONFIDENCE, mean};
use regatta_record::ContendedBlocks;

/// What the lives so far say.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimates {
    /// The states of the machine, the least expensive first.
    pub states: Vec<State>,
    /// The blocks beside which other programs ran.
    pub busy: Option<ContendedBlocks>,
    /// Number of blocks left out because the machine changed in or next to them.
    pub straddled: u32,
    /// Number of slices left out because the machine was disturbed right before or after them, without those
    /// of blocks that are left out as a whole.
    pub beside: u32,
    /// The ratio of each contender to the baseline, by its index. `None` for the baseline itself,
    /// and with fewer than 3 lives.
    pub ratios: Vec<Option<Ratio>>,
    /// Number of lives that count for each ratio, by contender; 0 for the baseline.
    pub lives: Vec<u32>,
    /// Whether the twin differs significantly from the baseline. If it does not, the other ratios
    /// refer to the mean of both. `None` without a twin, or if it has no ratio.
    pub twin_differs: Option<bool>,
    /// The difference of each ratio between long slices and usual ones, by contender.
    pub long_slices: Vec<Option<LongSlices>>,
}

/// A field whose blocks are assigned to states, with the variances that its contenders have in
/// common.
#[derive(Clone, Debug)]
pub struct Analysis<'a> {
    field: Field<'a>,
    states: States,
    disturbed: Disturbed,
    pairs: Vec<Option<Pair>>,
    prior: Prior,
    twin_differs: Option<bool>,
}

impl<'a> Analysis<'a> {
    /// Assigns blocks to states, decides whether the twin may stand for the baseline, and estimates
    /// the prior of the variances from all ratios to the baseline.
    pub fn of(field: &Field<'a>) -> Analysis<'a> {
        let states = States::of(field);
        let mut analysis = Analysis {
            field: *field,
            disturbed: disturbed(field, &states.all),
            states,
            pairs: Vec::new(),
            prior: Prior::NONE,
            twin_differs: None,
        };
        analysis.fit();
        let twin = field.twin.and_then(|twin| analysis.pairs.get(twin)?.as_ref());
        let twin = twin.and_then(|pair| pair.moderated(&analysis.prior, field.look));
        analysis.twin_differs = twin.map(|ratio| ratio.p < 1.0 - CONFIDENCE);
        if analysis.twin_differs == Some(false) {
            analysis.fit();
        }
        analysis
    }

    /// Fits all pairs with the baseline.
    fn fit(&mut self) {
        let baseline = self.field.baseline;
        let pair = |k: usize| (k != baseline).then(|| self.pair(baseline, k)).flatten();
        self.pairs = (0..self.field.contenders()).map(pair).collect();
        let variances: Vec<_> = self.pairs.iter().flatten().map(Pair::variance).collect();
        self.prior = Prior::of(&variances);
    }

    /// The estimates of all ratios to the baseline.
    pub fn estimates(&self) -> Estimates {
        let ratio = |pair: &Option<Pair>| pair.as_ref()?.moderated(&self.prior, self.field.look);
        let long = |(k, pair): (usize, &Option<Pair>)| {
            let ratios = self.log_ratios(self.field.baseline, k);
            LongSlices::of(self.field.lives, &ratios, pair.as_ref()?)
        };
        Estimates {
            states: self.states.states.clone(),
            busy: self.states.busy,
            straddled: self.states.straddled,
            beside: self.left_out(),
            ratios: self.pairs.iter().map(ratio).collect(),
            lives: (0..self.pairs.len()).map(|k| self.lives_of(k)).collect(),
            twin_differs: self.twin_differs,
            long_slices: self.pairs.iter().enumerate().map(long).collect(),
        }
    }

    /// The ratio of contender `b` over contender `a`. With the baseline as one of them, it is that of
    /// the estimates or its reciprocal; other pairs are moderated with the same prior.
    pub fn compare(&self, a: usize, b: usize) -> Option<Ratio> {
        if a == b {
            return None;
        }
        let fitted =
            |k: usize| self.pairs.get(k)?.as_ref()?.moderated(&self.prior, self.field.look);
        match self.field.baseline {
            baseline if baseline == a => fitted(b),
            baseline if baseline == b => fitted(a).map(Ratio::reciprocal),
            _ => self.pair(a, b)?.moderated(&self.prior, self.field.look),
        }
    }

    /// Number of lives in which a contender can be compared with the baseline.
    fn lives_of(&self, k: usize) -> u32 {
        let (lives, _) = self.compared(self.field.baseline, k);
        let counts = |life: &&Vec<(usize, f64)>| k != self.field.baseline && !life.is_empty();
        lives.iter().filter(counts).count() as u32
    }

    /// Number of slices that are left out of blocks that are not.
    fn left_out(&self) -> u32 {
        self.disturbed.count(|life, block| self.states.of[life][block].is_some())
    }

    fn pair(&self, a: usize, b: usize) -> Option<Pair> {
        let (lives, both) = self.compared(a, b);
        let mut pair = Pair::of(&lives, &self.states.preferred())?;
        pair.beside_others = both;
        Some(pair)
    }

    /// The state and the log-ratio of each block that counts, by life, and both fits if the ratio differs beside
    /// other programs.
    fn compared(&self, a: usize, b: usize) -> (Vec<Vec<(usize, f64)>>, Option<Fit>) {
        let ratios = self.log_ratios(a, b);
        let lives = ratios.into_iter().map(|life| life.into_iter().flatten().collect()).collect();
        match self.states.beside {
            Some(beside) => settled(lives, beside),
            None => (lives, None),
        }
    }

    /// The state and the log-ratio of `b` over `a` of each block, by life. If `a` is the baseline and the twin
    /// may stand for it, the denominator is the mean of both: this halves its variance.
    fn log_ratios(&self, a: usize, b: usize) -> Vec<Vec<Option<(usize, f64)>>> {
        let usable = a == self.field.baseline && self.twin_differs == Some(false);
        let twin =
            self.field.twin.filter(|twin| usable && *twin != b && !self.disturbed.suspects[*twin]);
        let of_life = |(nth, life): (usize, &Life)| {
            let states = &self.states.of[nth];
            let blocks = 0..life.blocks.len();
            let log = |n: usize, k: usize| {
                life.blocks[n].log(k).filter(|_| !self.disturbed.is_out((nth, n), k, [a, b]))
            };
            let of_a = |n: usize| match (log(n, a), twin.and_then(|twin| log(n, twin))) {
                (Some(a), Some(twin)) => Some(a.midpoint(twin)),
                (a, twin) => a.or(twin),
            };
            let of_a: Vec<Option<f64>> = blocks.clone().map(of_a).collect();
            let of_b: Vec<Option<f64>> = blocks.clone().map(|n| log(n, b)).collect();
            // Slices beside an unusual one of the other are left out. If the block then had no ratio, what is
            // unusual about the other would be left out, too.
            let usual = |logs: &[Option<f64>], state: usize| {
                let here = states.iter().zip(logs).filter(|(s, _)| **s == Some(state));
                mean(&here.filter_map(|(_, log)| *log).collect::<Vec<_>>())
            };
            let ratio = |n: usize| {
                let state = states[n]?;
                let both_ran = [a, b].iter().all(|k| life.blocks[n].log(*k).is_some());
                let is_in = both_ran && (of_a[n].is_some() || of_b[n].is_some());
                let or_usual = |logs: &[Option<f64>]| logs[n].or_else(|| usual(logs, state));
                Some((state, or_usual(&of_b).filter(|_| is_in)? - or_usual(&of_a)?))
            };
            blocks.map(ratio).collect()
        };
        self.field.lives.iter().enumerate().map(of_life).collect()
    }
}
