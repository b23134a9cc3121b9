//! The page of capacity searches: the intervals, the levels that were tried, and how they were tried.

use crate::{setup, shell::shell};
use minijinja::{Environment, context};
use regatta_record::{Capacity, CapacityLoad, CapacityStep, WarmUpClass};
use regatta_report::{capacity as words, grouped, memory, numbers, table::visible, time};
use serde::Serialize;
use serde_json::json;

/// Renders the results of `regatta capacity` as one HTML page. All must have the same limit and be searches
/// over the same quantity: they share axes. The first one is the subject of the page.
///
/// # Panics
/// If there is none.
pub fn capacity_page(all: &[Capacity]) -> String {
    let first = all.first().expect("a page needs at least one result");
    let title = format!("capacity of {} · regatta", visible(&first.server));
    shell(&title, &body(all), &data(all), None)
}

/// The results, unchanged, and the names as shown.
fn data(all: &[Capacity]) -> String {
    let names: Vec<String> = all.iter().map(|found| visible(&found.server)).collect();
    let data = json!({
        "capacities": all, "contenders": names, "names": names, "loads": [],
        "limit": words::limit(&all[0]), "unit": words::unit(&all[0].load),
    });
    data.to_string()
}

fn body(all: &[Capacity]) -> String {
    let mut templates = Environment::new();
    templates
        .add_template("capacity.html", include_str!("../templates/capacity.html"))
        .expect("the template is part of the program and tested");
    let first = &all[0];
    let setup = first.setup.as_ref();
    let what = match first.load {
        CapacityLoad::Clients { .. } => "clients",
        CapacityLoad::Rate { .. } => "requests per second",
    };
    let page = context! {
        date => setup.map(|setup| numbers::date(setup.started_unix_s)),
        question => format!(
            "How many {what} does {} sustain with {}?",
            visible(&first.server),
            visible(&words::limit(first))
        ),
        workload => visible(&words::load(first)),
        machine => setup.map(setup::hardware),
        settings => setup.map(setup::of_machine),
        unit => words::unit(&first.load),
        percentile => first.limit.percentile(),
        servers => all.iter().map(Server::of).collect::<Vec<_>>(),
    };
    templates
        .get_template("capacity.html")
        .and_then(|template| template.render(context! { page }))
        .expect("the template only uses fields of a page")
}

/// A searched server.
#[derive(Serialize)]
struct Server {
    name: String,
    result: String,
    start: String,
    memory: Option<String>,
    warm_up: Option<String>,
    doubts: Vec<String>,
    contender: Option<setup::Contender>,
    /// Texts of each step, in the order of the columns.
    steps: Vec<Step>,
    /// Why steps did not pass: the number of each, and the reason.
    reasons: Vec<(usize, String)>,
}

#[derive(Serialize)]
struct Step {
    /// Whether it passed, as a class.
    tone: &'static str,
    cells: [String; 8],
    verdict: &'static str,
}

impl Server {
    fn of(found: &Capacity) -> Server {
        let step = |(nth, step): (usize, &CapacityStep)| Step {
            tone: match step.passed {
                Some(true) => "good",
                Some(false) => "bad",
                None => "void",
            },
            cells: [
                (nth + 1).to_string(),
                words::phase(step.phase).to_owned(),
                grouped(step.level.into()),
                step.percentile_ns.map_or_else(none, |ns| time(ns as f64)),
                grouped(step.reply_rate_per_s.round() as u64),
                percent(step.load_busy),
                step.server_busy.map_or_else(none, percent),
                step.memory_bytes.map_or_else(none, memory),
            ],
            verdict: words::verdict(step),
        };
        let reason = |(nth, step): (usize, &CapacityStep)| {
            let because = step.because.as_ref().filter(|_| step.passed != Some(true))?;
            Some((nth + 1, visible(because)))
        };
        let setup = found.setup.clone().unwrap_or_default();
        // Why it has no upper end is among the doubts.
        let brief = Capacity { one_sided: None, ..found.clone() };
        Server {
            name: visible(&found.server),
            result: visible(&words::result(&brief)),
            start: visible(&words::server(found)),
            memory: found.memory_bytes.map(memory),
            warm_up: found.settling.as_ref().map(regatta_report::warm_up),
            doubts: doubts(found).iter().map(|doubt| visible(doubt)).collect(),
            contender: found.contender.as_ref().map(|entry| setup::contender(entry, &setup)),
            steps: found.steps.iter().enumerate().map(step).collect(),
            reasons: found.steps.iter().enumerate().filter_map(reason).collect(),
        }
    }
}

fn none() -> String {
    numbers::NONE.to_owned()
}

fn percent(fraction: f64) -> String {
    format!("{:.0}%", fraction * 100.0)
}

/// What limits the meaning of a result.
fn doubts(found: &Capacity) -> Vec<String> {
    let mut doubts = Vec::new();
    if let Some(because) = &found.unverified {
        doubts.push(format!("the ends of the interval are not verified: {because}"));
    }
    if let (Some(because), Some(_)) = (&found.one_sided, found.interval()) {
        doubts.push(format!(
            "the capacity may be higher, because no level failed every time; the search ended there: \
             {because}"
        ));
    }
    let unclear = found.steps.iter().filter(|step| step.passed.is_none()).count();
    if unclear > 0 {
        let steps = if unclear == 1 { "step" } else { "steps" };
        doubts.push(format!(
            "{unclear} {steps} could not be judged; the reasons are under the table of the steps"
        ));
    }
    if !found.steps.is_empty() && found.steps.iter().all(|step| step.server_busy.is_none()) {
        doubts.push(
            "the server's CPU was not observed (--pid observes it), so it is not known whether the \
             server was the bottleneck"
                .to_owned(),
        );
    }
    if found.settling.as_ref().is_some_and(|it| it.class == WarmUpClass::NeverSettles) {
        doubts.push(
            "the cost still changed when the observation ended (--settle), so a server that runs for \
             longer may have another capacity"
                .to_owned(),
        );
    }
    if !found.fresh_starts {
        doubts.push(
            "the server was not restarted between the steps, so each step ran in the state that the \
             earlier ones left"
                .to_owned(),
        );
    }
    doubts
}
