//! One self-contained HTML page, light and dark, without scripts or fetched resources. minijinja
//! escapes values; the name of the template enables this.

use crate::{
    chart::{self, Chart},
    numbers,
    plot::{self, Plots},
    table::visible,
    view::{View, view},
};
use minijinja::{Environment, context};
use regatta_record::Summary;
use serde::Serialize;

/// Renders the race as an HTML page.
pub fn html(summary: &Summary) -> String {
    let mut templates = Environment::new();
    templates
        .add_template("report.html", include_str!("../templates/report.html"))
        .expect("the template is part of the program and tested");
    let page = Page {
        name: visible(&summary.asked.name),
        view: view(summary),
        per: visible(&summary.asked.cost_per.one),
        charts: summary
            .asked
            .loads
            .iter()
            .map(|load| Charts {
                cost: chart::cost(summary, load),
                latency: chart::latency(summary, load),
            })
            .collect(),
        plots: plot::plots(summary),
        contenders: contenders(summary),
        setup: setup(summary),
    };
    templates
        .get_template("report.html")
        .and_then(|template| template.render(context! { page }))
        .expect("the template only uses fields of a page")
}

#[derive(Serialize)]
struct Page {
    name: String,
    view: View,
    /// The operation that costs are per, in the singular.
    per: String,
    /// In the order of the view's tables.
    charts: Vec<Charts>,
    /// In the order of the view's sweeps.
    plots: Vec<Plots>,
    contenders: Vec<Contender>,
    /// Names and values.
    setup: Vec<(&'static str, String)>,
}

#[derive(Serialize)]
struct Charts {
    cost: Option<Chart>,
    latency: Option<Chart>,
}

#[derive(Serialize)]
struct Contender {
    name: String,
    about: String,
    version: String,
    age: String,
    start: String,
}

fn contenders(summary: &Summary) -> Vec<Contender> {
    let about = |e: &regatta_record::Entry| match &e.stand_in_for {
        Some(system) => format!("{} (stands in for {system})", e.about),
        None => e.about.clone(),
    };
    let entries = summary.asked.entries.iter();
    entries
        .map(|e| Contender {
            name: visible(&e.name),
            about: visible(&about(e)),
            version: visible(&e.version(&summary.asked.setup).unwrap_or_default()),
            age: e.age(summary.asked.setup.started_unix_s).unwrap_or_default(),
            start: visible(&e.command()),
        })
        .collect()
}

fn setup(summary: &Summary) -> Vec<(&'static str, String)> {
    let (asked, setup) = (&summary.asked, &summary.asked.setup);
    let cpus = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let rows = [
        ("started", numbers::date(setup.started_unix_s)),
        ("regatta", setup.regatta.clone()),
        ("command line", setup.command_line.join(" ")),
        ("kernel", setup.kernel.clone()),
        ("CPU", format!("{} ({} online)", setup.cpu, setup.cpus)),
        ("CPUs of the server", cpus(&asked.cpus.server)),
        ("CPUs of the load", cpus(&asked.cpus.load)),
        ("memory", numbers::memory(setup.memory_bytes)),
        ("clock source", setup.clock_source.clone()),
        ("frequency governor", setup.governor.clone().unwrap_or_else(|| "none".to_owned())),
        ("mitigations", setup.mitigations.join("; ")),
        ("open files", numbers::grouped(setup.open_files)),
        ("somaxconn", setup.somaxconn.map_or_else(|| "unknown".to_owned(), numbers::grouped)),
        (
            "local ports",
            setup.port_range.map_or_else(|| "unknown".to_owned(), |(a, b)| format!("{a} to {b}")),
        ),
        ("cgroup", setup.cgroup.clone()),
        ("rounds", asked.rounds.to_string()),
        ("window", format!("{} s, after at most {} s of warm-up", asked.window_s, asked.warm_up_s)),
        ("observed before", format!("at most {} s, until the cost is steady", asked.settle_s)),
        ("seed", asked.seed.to_string()),
        ("heads", asked.heads.map_or_else(|| "not applicable".to_owned(), |it| it.to_string())),
    ];
    rows.map(|(name, value)| (name, visible(&value))).to_vec()
}
