//! Comma-separated values (RFC 4180): a line for each cell, with figures in the units of the record.

use crate::table::visible;
use regatta_record::{
    Arrivals, Cell, Drive, Estimate, LatencyRatio, OpenLoopFigures, Percentile, Percentiles,
    Relation, Summary, Unknown,
};

const COLUMNS: &str = "workload,connections,pipeline,churn,contender,rounds,requests,\
cost_ns_per_request,cost_low,cost_high,ratio_to_baseline,ratio_low,ratio_high,relation,\
band_best,band_worst,rate_per_s,rate_low,rate_high,p50_ns,p90_ns,p95_ns,p99_ns,p99_9_ns,\
memory_bytes,switches_per_request,load_cpu_ns_per_request,headroom,server_busy,load_busy,\
verdict,void,because,idle,asked_rate_per_s,cores,shared_cpus,burst_instances,burst_requests,\
instance_s,instance_low,instance_high,slowest_instance_s,user_bytes_per_connection,\
kernel_bytes_per_connection,scaling_from_cores,scaling_cost,scaling_cost_low,scaling_cost_high,\
scaling_rate,scaling_rate_low,scaling_rate_high,then,arrivals,\
p50_over_rounds_ns,p50_low,p50_high,p90_over_rounds_ns,p90_low,p90_high,\
p95_over_rounds_ns,p95_low,p95_high,p99_over_rounds_ns,p99_low,p99_high,\
p99_9_over_rounds_ns,p99_9_low,p99_9_high,due,unsent,late,timed_out,lost,misshapen_rounds,\
wait_p50_ns,wait_p99_ns,lag_p50_ns,lag_p99_ns,service_p50_ns,service_p99_ns,\
little_residual,steal,server_run_delay,load_run_delay,\
counted_requests,n,beside_connections,beside_n,ms_per_request,ms_per_request_low,\
ms_per_request_high,beside_per_s,beside_low,beside_high,then_in_words,cost_per,\
in_flight,stalled,latency_of,passing,\
p95_ratio,p95_ratio_low,p95_ratio_high,p99_ratio,p99_ratio_low,p99_ratio_high,\
latency_ratio_missing,p95_to_all_reading,p95_to_all_reading_low,p95_to_all_reading_high,\
p99_to_all_reading,p99_to_all_reading_low,p99_to_all_reading_high,to_all_reading_missing,passed,\
machine_ns_per_request,machine_low,machine_high,machine_interrupts_ns_per_request,\
machine_steps_ns_per_request,machine_cpus_alone";

/// Renders all cells as CSV. A figure that is missing or not known is empty. The column `void` lists
/// the figures that must not be trusted, separated by spaces.
pub fn csv(summary: &Summary) -> String {
    let mut out = format!("{COLUMNS}\r\n");
    for cell in &summary.cells {
        out.push_str(&fields(summary, cell).join(","));
        out.push_str("\r\n");
    }
    out
}

fn fields(summary: &Summary, cell: &Cell) -> Vec<String> {
    let mut fields = vec![
        text(&cell.workload),
        cell.load.connections.to_string(),
        cell.load.pipeline.to_string(),
        cell.load.drive.churns().to_string(),
        text(&cell.contender),
        cell.rounds.to_string(),
        cell.requests.to_string(),
    ];
    fields.extend(estimate(cell.cost_ns_per_request));
    fields.extend(estimate(cell.ratio_to_baseline));
    fields.push(cell.relation.map_or("", relation).to_owned());
    fields.push(optional(cell.band.map(|b| b.best)));
    fields.push(optional(cell.band.map(|b| b.worst)));
    fields.extend(estimate(cell.rate_per_s));
    fields.extend(Percentile::ALL.map(|percentile| {
        let is_unknown = cell.is_unknown(Unknown::Latency(percentile));
        optional(percentile.pooled(&cell.latency_ns).filter(|_| !is_unknown))
    }));
    fields.push(optional(cell.memory_bytes));
    fields.push(optional(cell.switches_per_request));
    fields.push(optional(cell.load_cpu_ns_per_request.map(|e| e.mean)));
    fields.extend([cell.headroom, cell.server_busy, cell.load_busy].map(optional));
    fields.push(cell.verdict.kind().name().to_owned());
    let void: Vec<String> =
        cell.verdict.void.iter().map(|f| format!("{f:?}").to_lowercase()).collect();
    fields.push(void.join(" "));
    fields.push(text(&cell.verdict.because()));
    fields.extend(axes(cell));
    fields.extend(open_loop(cell));
    fields.extend(counted(cell));
    fields.push(text(&summary.asked.cost_per.name));
    let in_flight = match cell.load.drive {
        Drive::Bounded { in_flight } => Some(in_flight),
        _ => None,
    };
    fields.extend([optional(in_flight), cell.load.stalled.to_string()]);
    fields.push(text(&summary.asked.latency_of.name));
    fields.push(cell.load.passing.to_string());
    fields.extend(latency_ratio(cell.latency_to_baseline.as_ref()));
    fields.extend(latency_ratio(cell.latency_to_all_reading.as_ref()));
    fields.push(cell.passed.to_string());
    fields.extend(estimate(cell.machine.and_then(|machine| machine.cost_ns_per_request)));
    fields.extend(
        [
            cell.machine.map(|machine| machine.interrupts_ns_per_request),
            cell.machine.map(|machine| machine.steps_ns_per_request),
            cell.machine.map(|machine| machine.cpus_alone),
        ]
        .map(optional),
    );
    fields
}

fn latency_ratio(ratio: Option<&LatencyRatio>) -> Vec<String> {
    let each = [ratio.and_then(|r| r.p95), ratio.and_then(|r| r.p99)];
    let mut fields: Vec<String> = each.into_iter().flat_map(estimate).collect();
    fields.push(ratio.and_then(|r| r.missing.as_deref()).map_or_else(String::new, text));
    fields
}

fn counted(cell: &Cell) -> Vec<String> {
    let load = &cell.load;
    let mut fields = vec![
        optional(load.requests),
        optional(load.n),
        optional(load.beside.map(|b| b.connections)),
        optional(load.beside.map(|b| b.n)),
    ];
    fields.extend(estimate(cell.ms_per_request));
    fields.extend(estimate(cell.beside_per_s));
    fields.push(cell.then_in_words.as_deref().map_or_else(String::new, text));
    fields
}

/// Newer columns are last, so that existing columns keep their positions.
fn axes(cell: &Cell) -> Vec<String> {
    let load = &cell.load;
    let mut fields = vec![
        load.idle.to_string(),
        optional(load.drive.rate()),
        optional(load.cores),
        cell.shared_cpus.to_string(),
        optional(load.drive.burst().map(|b| b.instances)),
        optional(load.drive.burst().map(|b| b.requests)),
    ];
    fields.extend(estimate(cell.instance_s));
    fields.push(optional(cell.slowest_instance_s));
    fields.push(optional(cell.user_bytes_per_connection));
    fields.push(optional(cell.kernel_bytes_per_connection));
    fields.push(optional(cell.scaling.map(|s| s.from_cores)));
    fields.extend(estimate(cell.scaling.and_then(|s| s.cost)));
    fields.extend(estimate(cell.scaling.and_then(|s| s.rate)));
    fields.push(cell.then.as_deref().map_or_else(String::new, text));
    fields
}

fn open_loop(cell: &Cell) -> Vec<String> {
    let arrivals = cell.load.drive.arrivals().map(Arrivals::name);
    let mut fields = vec![optional(arrivals)];
    let Percentiles { p50, p90, p95, p99, p99_9 } = cell.latency_intervals;
    fields.extend([p50, p90, p95, p99, p99_9].into_iter().flat_map(estimate));
    let open = cell.open_loop.as_ref();
    let counts = |o: &OpenLoopFigures| {
        [o.due, o.unsent, o.late, o.timed_out, o.lost, o.misshapen.into()].map(Some)
    };
    fields.extend(open.map_or([None; 6], counts).map(optional));
    let parts = |o: &OpenLoopFigures| {
        let (wait, lag, service) = (&o.wait_ns, &o.send_lag_ns, &o.service_ns);
        [wait.p50, wait.p99, lag.p50, lag.p99, service.p50, service.p99]
    };
    fields.extend(open.map_or([None; 6], parts).map(optional));
    let signals = [cell.little_residual, cell.steal, cell.server_run_delay, cell.load_run_delay];
    fields.extend(signals.map(optional));
    fields
}

fn relation(relation: Relation) -> &'static str {
    match relation {
        Relation::Baseline => "baseline",
        Relation::Tied => "tied",
        Relation::Inconclusive => "not-told-apart",
        Relation::Cheaper => "cheaper",
        Relation::Costlier => "dearer",
    }
}

fn estimate(estimate: Option<Estimate>) -> [String; 3] {
    let e = estimate;
    [e.map(|e| e.mean), e.map(|e| e.low), e.map(|e| e.high)].map(optional)
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |v| v.to_string())
}

/// Quotes an external text. A text that a spreadsheet would run as a formula is prefixed with an
/// apostrophe.
fn text(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@']);
    let apostrophe = if formula { "'" } else { "" };
    format!("\"{apostrophe}{}\"", visible(text).replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn quotes_texts_and_defuses_formulas() {
        assert_eq!(text(r#"a,"b""#), r#""a,""b""""#);
        assert_eq!(text("=cmd()"), r#""'=cmd()""#);
        assert_eq!(text("a\nb"), r#""a\nb""#);
    }
}
