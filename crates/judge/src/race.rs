//! The judgement on a race: its cells, compared with each other, and doubts about the whole.

use crate::{
    curves, doubts,
    field::{Field, TIE_MARGIN, observe},
    gate,
    latency::Latencies,
    latency_ratios, little, more_rounds,
    observed::Observed,
    parallel::in_parallel,
    precision, scaling,
    statistics::{
        self, Floor, Margins, Series, geometric_each, is_known, known, mean, paired, present,
    },
};
use regatta_record::{
    Asked, Cell, Estimate, Figure, Latency, NULL, Operation, OperationFigures, Percentile,
    Percentiles, Relation, Round, Summary, Unknown,
};

/// Judges a race, finished or not. If a round occurs twice (in a resumed race), the later one
/// counts; rounds of unplanned contenders or loads are ignored.
pub fn judge(asked: &Asked, rounds: &[Round]) -> Summary {
    let observed = observe(asked, rounds);
    let twin_ratios = twin_ratios(asked, &observed, |o| &o.compared);
    let floor = statistics::noise_floor(&twin_ratios);
    // Even if the floor is too high to be known, differences below it are not significant.
    let margins = |floor: Option<f64>| Margins { tie: TIE_MARGIN, floor: floor.unwrap_or(0.0) };
    let twin_as_read = self::twin_ratios(asked, &observed, |o| &o.cost);
    let (margins, as_read) = (margins(floor), margins(statistics::noise_floor(&twin_as_read)));

    let mut cells: Vec<Cell> =
        observed.iter().flat_map(|field| field.judged(asked, margins, as_read)).collect();
    scaling::scale(asked, &observed, &mut cells);
    latency_ratios::compare(asked, &observed, &mut cells);
    precision::plan(asked, &observed, &mut cells);
    let parts = Floor::of(&twin_ratios);
    more_rounds::plan(asked, &observed, &mut cells, parts);
    let curves = curves::curves(asked, &observed, &cells);
    let complete = observed.iter().all(|field| field.is_complete(asked));
    let as_read = Floor::of(&twin_as_read);
    let doubts = doubts::doubts(asked, &observed, &cells, floor, &twin_ratios, as_read);
    let pass_s = precision::pass_s(rounds);
    let gate = gate::of_race(asked, &observed, &cells, floor, parts);
    Summary {
        format: regatta_record::FORMAT,
        asked: asked.clone(),
        noise_floor: statistics::known_floor(floor),
        machine_noise: machine_noise(&observed),
        complete,
        cells,
        curves,
        precision: precision::precision(asked, &observed, pass_s),
        gate,
        pass_s,
        doubts,
    }
}

/// Log-ratios of the `costs` of the twin to its original's, at each load where both have one.
fn twin_ratios(
    asked: &Asked,
    fields: &[Field],
    costs: impl Fn(&Observed) -> &Series,
) -> Vec<Vec<f64>> {
    let (Some(twin), Some(original)) = (asked.twin(), &asked.twin_of) else { return Vec::new() };
    let trusted = |field: &Field, name: &str| -> Option<Series> {
        let observed = field.of(name)?;
        (!field.verdict(observed).voids(Figure::Cost)).then(|| costs(observed).clone())
    };
    let of_load = |field: &Field| Some(paired(&trusted(field, &twin)?, &trusted(field, original)?));
    fields.iter().filter_map(of_load).collect()
}

/// Share of the variance of costs within a pass that the probe explained: the mean over the loads
/// where it explained enough.
fn machine_noise(fields: &[Field]) -> Option<f64> {
    let seen: Vec<f64> = fields.iter().filter_map(|f| Some(f.control?.explained)).collect();
    mean(&seen)
}

impl Field {
    /// The cells of this load: first those with a trusted cost (beside another load: latency), in
    /// ascending order of the comparison, then the others as planned. Plain costs may be in another
    /// order, because the machine changed.
    fn judged(&self, asked: &Asked, margins: Margins, as_read: Margins) -> Vec<Cell> {
        let mut cells = in_parallel(&self.contenders, |o| self.figures(asked, o));
        self.relate(asked, &mut cells, margins, as_read);
        self.rank(asked, &mut cells, margins);
        let keys = cells.iter().zip(&self.contenders).map(|(c, o)| self.sort_key(asked, c, o));
        let mut keyed: Vec<(f64, Cell)> =
            keys.collect::<Vec<f64>>().into_iter().zip(cells).collect();
        keyed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        keyed.into_iter().map(|(_, cell)| cell).collect()
    }

    /// Logarithm of the cost over the baseline's in the same passes, which also determines relation
    /// and band; without such passes, of its mean compared cost. Beside another load, whose work is
    /// part of the cost, the 99th percentile.
    fn sort_key(&self, asked: &Asked, cell: &Cell, observed: &Observed) -> f64 {
        if self.load.beside.is_some() {
            let p99 = cell.percentile(Percentile::P99);
            let trusted = p99.filter(|_| !cell.verdict.voids(Figure::Latency));
            return trusted.map_or(f64::INFINITY, |p99| p99.ns);
        }
        if !has_cost(cell) {
            return f64::INFINITY;
        }
        let compared = |o: &Observed| mean(&present(&o.compared));
        let alone = || {
            let baseline = self.of(&asked.baseline).and_then(compared).unwrap_or(0.0);
            compared(observed).map(|log| log - baseline)
        };
        let ratio = mean(&self.log_ratios(&observed.name, &asked.baseline));
        ratio.or_else(alone).unwrap_or(f64::INFINITY)
    }

    /// The figures of a cell, not yet compared.
    fn figures(&self, asked: &Asked, observed: &Observed) -> Cell {
        let series = [
            &observed.cost,
            &observed.rate,
            &observed.instance,
            &observed.load_cost,
            &observed.beside,
        ];
        let values = series.map(|series| present(series));
        let estimates = geometric_each(&values.each_ref().map(|v| &v[..]), asked.seed);
        let cost_only = !self.shared.is_empty();
        let not_known = self.not_known(observed, &estimates, asked.seed);
        let estimates: Vec<_> = estimates.into_iter().map(known).collect();
        let [cost, rate, instance, load_cost, beside] = estimates[..] else {
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
            relation: None,
            ratio_unadjusted: None,
            relation_unadjusted: None,
            rounds_needed: None,
            rounds_needed_at_most: None,
            rounds_to_decide: None,
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

    /// Figures that were measured but are not known, except the ratio. `estimates` are those of
    /// cost, rate, instance, the load's cost, and the load beside.
    fn not_known(
        &self,
        observed: &Observed,
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

    /// Sets the ratios to the baseline and their relations, both adjusted and unadjusted.
    fn relate(&self, asked: &Asked, cells: &mut [Cell], margins: Margins, as_read: Margins) {
        let adjusted = self.related(asked, cells, |o| &o.compared, margins);
        for (cell, (ratio, relation)) in cells.iter_mut().zip(adjusted) {
            (cell.ratio_to_baseline, cell.relation) = (known(ratio), relation);
            if ratio.is_some_and(|ratio| !is_known(&ratio)) {
                cell.not_known.push(Unknown::Ratio);
            }
        }
        if self.control.is_none() {
            return;
        }
        let read = self.related(asked, cells, |o| &o.cost, as_read);
        for (cell, (ratio, relation)) in cells.iter_mut().zip(read) {
            (cell.ratio_unadjusted, cell.relation_unadjusted) = (known(ratio), relation);
        }
    }

    /// Ratios of `costs` to the baseline's, and their relations. The null server gets a ratio but
    /// no relation; so does a cell whose cost is void. There are no ratios if the baseline's own
    /// cost is void.
    fn related(
        &self,
        asked: &Asked,
        cells: &[Cell],
        costs: impl Fn(&Observed) -> &Series,
        margins: Margins,
    ) -> Vec<(Option<Estimate>, Option<Relation>)> {
        let mut related = vec![(None, None); cells.len()];
        let baseline = self.of(&asked.baseline);
        let baseline = baseline.filter(|o| !self.verdict(o).voids(Figure::Cost)).map(&costs);
        let Some(baseline) = baseline else { return related };
        let log_ratios: Vec<Vec<f64>> =
            self.contenders.iter().map(|o| paired(costs(o), baseline)).collect();
        let each: Vec<&[f64]> = log_ratios.iter().map(|logs| &logs[..]).collect();
        let ratios = geometric_each(&each, asked.seed);
        let mut compared: Vec<(usize, Estimate, f64)> = Vec::new();
        for (i, cell) in cells.iter().enumerate() {
            if cell.contender == asked.baseline {
                let measured = cell.cost_ns_per_request.is_some() || cell.is_unknown(Unknown::Cost);
                related[i].1 = measured.then_some(Relation::Baseline);
                continue;
            }
            related[i].0 = ratios[i];
            let trusted = cell.contender != NULL && !cell.verdict.voids(Figure::Cost);
            let p = statistics::p_value(&log_ratios[i]);
            if let (true, Some(ratio), Some(p)) = (trusted, ratios[i], p) {
                compared.push((i, ratio, p));
            }
        }
        let p_values: Vec<f64> = compared.iter().map(|(_, _, p)| *p).collect();
        let differs = statistics::holm(&p_values, 1.0 - statistics::CONFIDENCE);
        for ((i, ratio, _), differs) in compared.into_iter().zip(differs) {
            related[i].1 = Some(statistics::relation(&ratio, differs, margins));
        }
        related
    }

    /// Sets the bands of the cells with a trusted cost.
    fn rank(&self, asked: &Asked, cells: &mut [Cell], margins: Margins) {
        let ranked: Vec<usize> = (0..cells.len())
            .filter(|&i| !asked.is_reference(&cells[i].contender) && has_cost(&cells[i]))
            .collect();
        let logs: Vec<&Series> = ranked.iter().map(|&i| &self.contenders[i].compared).collect();
        for (i, band) in ranked.iter().zip(statistics::bands(&logs, margins)) {
            cells[*i].band = Some(band);
        }
    }
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
    observed: &Observed,
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
