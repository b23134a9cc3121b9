//! The judgement on a race: its cells, compared with each other, and doubts about the whole.

use crate::{
    cell::{latency::Latencies, little, machine, observed::CellRounds},
    compared::{
        comparison::Comparison,
        field::{Field, TIE_MARGIN, Twin, pass_s},
    },
    curves, doubts,
    duel::{Ratio, StateRatio},
    parallel::in_parallel,
    statistics::{self, Margins, Series, geometric_each, is_known, known, mean, present},
    verdict::BUSY,
    whole::{gate, latency_ratios, scaling, stopping_rule},
};
use regatta_record::{
    Asked, Cell, Estimate, Figure, Kind, Latency, NULL, Operation, OperationFigures, Percentile,
    Percentiles, RatioInState, Relation, Round, Summary, Unknown,
};

/// Judges a race, finished or not. If a round occurs twice (in a resumed race), the later one
/// counts; rounds of unplanned contenders or loads are ignored.
pub fn judge(asked: &Asked, rounds: &[Round]) -> Summary {
    let observed = stopping_rule::fields(asked, rounds);
    let twins = Twin::of(asked, &observed);
    let ratios: Vec<Estimate> = twins.iter().flatten().map(|twin| twin.ratio.ratio()).collect();
    let floor = statistics::noise_floor(&ratios);
    let with_twins = || observed.iter().zip(twins.iter().map(Option::as_ref));

    let judged = |(field, twin): (&Field, Option<&Twin>)| field.judged(asked, twin);
    let mut cells: Vec<Cell> = with_twins().flat_map(judged).collect();
    scaling::scale(asked, &observed, &mut cells);
    latency_ratios::compare(asked, &observed, &mut cells);
    let curves = curves::curves(asked, &observed, &cells);
    let complete = stopping_rule::is_complete(asked, &observed);
    let findings = doubts::findings(asked, &observed);
    let doubts = doubts::doubts(asked, &observed, &cells, &twins, complete, &findings);
    let gate = gate::of_race(asked, with_twins(), floor);
    Summary {
        format: regatta_record::FORMAT,
        asked: asked.clone(),
        noise_floor: statistics::known_floor(floor),
        complete,
        cells,
        duels: observed.iter().filter_map(Field::duel_seen).collect(),
        curves,
        precision: stopping_rule::precision(asked, &observed),
        gate,
        pass_s: pass_s(rounds),
        findings,
        doubts,
    }
}

impl Field {
    /// The cells of this load: first those with a trusted cost (beside another load: latency), in
    /// ascending order of the comparison, then the others as planned. Plain costs may be in another
    /// order, because the machine changed.
    fn judged(&self, asked: &Asked, twin: Option<&Twin>) -> Vec<Cell> {
        let mut cells = in_parallel(&self.contenders, |o| self.figures(asked, o));
        let margins = Margins { tie: TIE_MARGIN, offset: Twin::offset(twin) };
        self.relate(asked, &mut cells, margins, twin);
        self.rank(asked, &mut cells, margins);
        let keys = cells.iter().map(|cell| self.sort_key(asked, cell));
        let mut keyed: Vec<(f64, Cell)> =
            keys.collect::<Vec<f64>>().into_iter().zip(cells).collect();
        keyed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        keyed.into_iter().map(|(_, cell)| cell).collect()
    }

    /// Logarithm of the cost over the baseline's, which also determines relation and band; without a
    /// comparison, of its mean cost over the baseline's. Beside another load, whose work is part of the
    /// cost, the 99th percentile.
    fn sort_key(&self, asked: &Asked, cell: &Cell) -> f64 {
        if self.load.beside.is_some() {
            let p99 = cell.percentile(Percentile::P99);
            let trusted = p99.filter(|_| !cell.verdict.voids(Figure::Latency));
            return trusted.map_or(f64::INFINITY, |p99| p99.ns);
        }
        if !has_cost(cell) {
            return f64::INFINITY;
        }
        let alone = |name: &str| self.of(name).and_then(|o| mean(&present(&o.cost)));
        let apart = || Some(alone(&cell.contender)? - alone(&asked.baseline).unwrap_or(0.0));
        let ratio = self.compare(&cell.contender, &asked.baseline).map(|ratio| ratio.log());
        let ratio = ratio.or_else(|| mean(&self.log_ratios(&cell.contender, &asked.baseline)));
        ratio.or_else(apart).unwrap_or(f64::INFINITY)
    }

    /// The figures of a cell, not yet compared.
    #[expect(clippy::too_many_lines, reason = "it fills one record")]
    fn figures(&self, asked: &Asked, observed: &CellRounds) -> Cell {
        let sides = observed.cost.iter().zip(&observed.load_cost);
        let both: Series =
            sides.map(|(server, load)| Some(((*server)?.exp() + (*load)?.exp()).ln())).collect();
        let series = [
            &observed.cost,
            &observed.rate,
            &observed.instance,
            &observed.load_cost,
            &observed.beside,
            &both,
        ];
        let values = series.map(|series| present(series));
        let estimates = geometric_each(&values.each_ref().map(|v| &v[..]), asked.seed);
        let cost_only = !self.shared.is_empty();
        let not_known = self.not_known(observed, &estimates, asked.seed);
        let estimates: Vec<_> = estimates.into_iter().map(known).collect();
        let [cost, rate, instance, load_cost, beside, both_sides] = estimates[..] else {
            unreachable!("each figure has an estimate or none")
        };
        let then = asked.then(&observed.name, &self.load);
        let unless_shared = |estimate: Option<Estimate>| estimate.filter(|_| !cost_only);
        let latency = observed.latency().filter(|_| !cost_only);
        Cell {
            workload: asked.workload.clone(),
            load: self.load,
            shared_cpus: cost_only,
            contender: observed.name.clone(),
            rounds: observed.finished,
            requests: observed.requests,
            passed: observed.passed,
            reply: observed.reply,
            cost_ns_per_request: cost,
            cost_is_upper_bound: self.is_bound_by_both(observed),
            both_sides_ns_per_request: both_sides,
            machine: machine::figures(observed),
            standing_ms_per_s: observed.standing().map(|busy| busy * 1e3),
            rate_per_s: unless_shared(rate),
            ms_per_request: unless_shared(rate.filter(|_| self.load.requests.is_some()))
                .map(ms_per_request),
            beside_per_s: beside,
            instance_s: instance,
            slowest_instance_s: observed.slowest_instance_s,
            latency_ns: latency.map_or_else(Latency::default, |(all, _)| all.clone()),
            latency_intervals: latency.map_or_else(Percentiles::default, |(_, by_round)| {
                statistics::percentiles(by_round, asked.seed)
            }),
            operations: operations(observed, asked, rate, cost_only),
            open_loop: observed.latencies.open_loop.clone().filter(|_| !cost_only),
            little_residual: little::residual(&self.load, observed).filter(|_| !cost_only),
            steal: observed.signals.steal,
            server_run_delay: observed.signals.server_delay,
            load_run_delay: observed.signals.load_delay,
            settling: observed.settling,
            roles: observed.roles.iter().map(|role| role.figures(asked.seed)).collect(),
            memory_bytes: observed.memory_bytes,
            user_bytes_per_connection: observed.user_per_connection,
            kernel_bytes_per_connection: observed.kernel_per_connection,
            kernel_memory_source: observed.kernel_source,
            switches_per_request: observed.switches_per_request,
            load_cpu_ns_per_request: load_cost,
            headroom: self.headroom(observed),
            server_busy: observed.server_busy,
            busiest_thread: observed.busiest_thread,
            load_busy: observed.load_busy,
            ratio_to_baseline: None,
            by_state: Vec::new(),
            ratio_beside_others: None,
            states_differ: false,
            ratio_is_of_state: None,
            lives: observed.lives.iter().flatten().count() as u32,
            blocks: observed.lives.iter().flatten().map(|life| life.slices.len() as u32).sum(),
            relation: None,
            starts_to_decide: None,
            seconds_to_decide: None,
            band: None,
            latency_to_baseline: None,
            latency_to_all_reading: None,
            scaling: None,
            not_known,
            then: then.and_then(|then| then.figure.clone()),
            then_in_words: then.filter(|t| t.figure.is_none()).and_then(|t| t.note.clone()),
            verdict: self.verdict(observed),
        }
    }

    /// Whether server and load were both busy without a requested rate.
    fn is_bound_by_both(&self, observed: &CellRounds) -> bool {
        let is_busy = |busy: Option<f64>| busy.is_some_and(|busy| busy >= BUSY);
        self.load.drive.rate().is_none()
            && is_busy(observed.server_busy)
            && is_busy(observed.load_busy)
    }

    /// Figures that were measured but are not known, except the ratio. `estimates` are those of
    /// cost, rate, instance, the load's cost, and the load beside.
    fn not_known(
        &self,
        observed: &CellRounds,
        estimates: &[Option<Estimate>],
        seed: u64,
    ) -> Vec<Unknown> {
        let figures =
            [Unknown::Cost, Unknown::Rate, Unknown::Instance, Unknown::LoadCost, Unknown::Beside];
        let unknown = figures.into_iter().zip(estimates);
        let unknown = unknown.filter(|(_, e)| e.is_some_and(|e| !is_known(&e)));
        let mut unknown: Vec<Unknown> = unknown.map(|(figure, _)| figure).collect();
        if unknown.contains(&Unknown::Rate) && self.load.requests.is_some() {
            unknown.push(Unknown::MsPerRequest);
        }
        if let Some((_, by_round)) = observed.latency() {
            unknown.extend(statistics::unknown_percentiles(by_round, seed));
        }
        // On shared CPUs only the cost is reported.
        unknown.retain(|figure| self.shared.is_empty() || *figure == Unknown::Cost);
        unknown
    }

    /// Sets the ratios to the baseline and their relations. The null server gets a ratio but no relation;
    /// so does a cell whose cost is void. There are no ratios if the baseline's own cost is void. Whether the
    /// baseline's twin differs was decided over all loads.
    fn relate(&self, asked: &Asked, cells: &mut [Cell], margins: Margins, twin: Option<&Twin>) {
        if self.cost(&asked.baseline).is_none() {
            return;
        }
        let mut compared: Vec<(usize, Comparison)> = Vec::new();
        for (i, cell) in cells.iter_mut().enumerate() {
            if cell.contender == asked.baseline {
                let measured = cell.cost_ns_per_request.is_some() || cell.is_unknown(Unknown::Cost);
                cell.relation = measured.then_some(Relation::Baseline);
                continue;
            }
            let Some(comparison) = self.compare(&cell.contender, &asked.baseline) else { continue };
            cell.ratio_to_baseline = known(Some(comparison.ratio()));
            if cell.ratio_to_baseline.is_none() {
                cell.not_known.push(Unknown::Ratio);
            }
            if let Comparison::Duel(ratio) = &comparison {
                (cell.by_state, cell.states_differ) = (by_state(ratio), ratio.states_differ);
                let beside = ratio.beside_others.as_ref();
                cell.ratio_beside_others = known(beside.map(estimate));
                cell.ratio_is_of_state = ratio.state.map(|state| state as u32);
            }
            if cell.contender != NULL && !cell.verdict.voids(Figure::Cost) {
                compared.push((i, comparison));
            }
        }
        let twin_name = asked.twin().filter(|_| asked.twin_of.as_ref() == Some(&asked.baseline));
        let twin_at = cells.iter().position(|cell| Some(&cell.contender) == twin_name.as_ref());
        let twin = twin_at.zip(twin);
        let others = compared.iter().filter(|(i, _)| twin.is_none_or(|(twin, _)| *i != twin));
        let p_values: Vec<f64> = others.map(|(_, comparison)| comparison.p()).collect();
        let mut differ = statistics::holm(&p_values, 1.0 - statistics::CONFIDENCE).into_iter();
        for (i, comparison) in compared {
            let differs = match twin {
                Some((at, twin)) if at == i => twin.differs,
                _ => differ.next().unwrap_or_default(),
            };
            let cell = &mut cells[i];
            let relation = statistics::relation(&comparison.ratio(), differs, margins);
            cell.relation = Some(relation);
            // More starts would measure the load's limit again.
            let is_limited = cell.verdict.is(Kind::GeneratorBound);
            if relation == Relation::Inconclusive
                && !is_limited
                && !asked.is_reference(&cell.contender)
            {
                let away = comparison.log().abs();
                let distances = [away - margins.offset.ln_1p(), margins.tie.ln_1p() - away];
                let more = self.affordable(comparison.starts_to_decide(distances));
                (cell.starts_to_decide, cell.seconds_to_decide) = more.unzip();
            }
        }
    }

    /// Sets the bands of the cells with a trusted cost.
    fn rank(&self, asked: &Asked, cells: &mut [Cell], margins: Margins) {
        let ranked: Vec<usize> = (0..cells.len())
            .filter(|&i| !asked.is_reference(&cells[i].contender) && has_cost(&cells[i]))
            .collect();
        let name = |i: usize| &self.contenders[ranked[i]].name;
        let pair = |a: usize, b: usize| {
            let comparison = self.compare(name(b), name(a))?;
            Some((comparison.ratio(), comparison.p()))
        };
        let bands = statistics::bands(ranked.len(), pair, margins);
        for (i, band) in ranked.into_iter().zip(bands) {
            cells[i].band = Some(band);
        }
    }
}

/// The ratio in each state that both contenders were seen in; empty if it is only one.
fn by_state(ratio: &Ratio) -> Vec<RatioInState> {
    let in_state = |of: &StateRatio| {
        let ratio = known(Some(estimate(of)))?;
        Some(RatioInState { state: of.state as u32, ratio, blocks: of.blocks })
    };
    let seen = ratio.by_state.len() > 1;
    ratio.by_state.iter().filter(|_| seen).filter_map(in_state).collect()
}

fn estimate(of: &StateRatio) -> Estimate {
    let [mean, low, high] = [of.log, of.low, of.high].map(f64::exp);
    Estimate { mean, low, high }
}

/// Milliseconds per request of a counted load.
fn ms_per_request(rate: Estimate) -> Estimate {
    Estimate { mean: 1e3 / rate.mean, low: 1e3 / rate.high, high: 1e3 / rate.low }
}

/// Whether a cell has a cost that can be compared. If the machine changed by orders of magnitude,
/// the cost alone may not be known, but ratios within rounds may be.
fn has_cost(cell: &Cell) -> bool {
    let measured = cell.cost_ns_per_request.is_some() || cell.is_unknown(Unknown::Cost);
    measured && !cell.verdict.voids(Figure::Cost)
}

/// Figures of all kinds of operations in addition to requests. If the cell's latency is that of another
/// kind, the requests with their replies come first.
fn operations(
    observed: &CellRounds,
    asked: &Asked,
    rate: Option<Estimate>,
    cost_only: bool,
) -> Vec<OperationFigures> {
    let further = observed.operations.iter().map(|kind| kind.figures(asked.seed, cost_only));
    let requests = (!asked.latency_of.is_request() && !observed.operations.is_empty()).then(|| {
        let Latencies { all, by_round, .. } = &observed.latencies;
        let none = OperationFigures {
            operation: Operation::REQUESTS,
            count: observed.requests,
            rate_per_s: None,
            latency_ns: Latency::default(),
            latency_intervals: Percentiles::default(),
            not_known: Vec::new(),
        };
        match cost_only {
            true => none,
            false => OperationFigures {
                rate_per_s: rate,
                latency_ns: all.clone(),
                latency_intervals: statistics::percentiles(by_round, asked.seed),
                not_known: statistics::unknown_percentiles(by_round, asked.seed),
                ..none
            },
        }
    });
    requests.into_iter().chain(further).collect()
}
