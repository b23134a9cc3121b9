//! The body of the page: all texts and tables, as HTML that needs no script. minijinja escapes values;
//! the name of the template enables this.

use crate::{
    refused::{Refused, refused},
    setup::{Contender, contenders, machine, settings},
};
use minijinja::{Environment, context};
use regatta_record::{Cell, Figure, LoadShape, Relation, Summary};
use regatta_report::{
    numbers::{self, NONE},
    protocol_in_words, regimes,
    table::visible,
    view::{View, view},
};
use serde::Serialize;

/// Loads up to which all answers are shown, and every table is open.
const FEW: usize = 4;

/// Renders everything that the page says, as HTML.
pub fn body(summary: &Summary) -> String {
    let mut templates = Environment::new();
    templates
        .add_template("body.html", include_str!("../templates/body.html"))
        .expect("the template is part of the program and tested");
    let asked = &summary.asked;
    let page = Body {
        name: visible(&asked.name),
        date: numbers::date(asked.setup.started_unix_s),
        question: question(summary),
        complete: summary.complete,
        raced: raced(summary),
        floor: summary.noise_floor.map(numbers::percent),
        in_duels: !summary.duels.is_empty(),
        widest: widest(summary).map(numbers::percent),
        loads: loads(summary),
        machine: machine(summary),
        refused: refused(summary),
        few: FEW,
        view: view(summary),
        per: visible(&asked.cost_per.one),
        baseline: visible(&asked.baseline),
        has_ratios: summary
            .cells
            .iter()
            .any(|cell| cell.ratio_to_baseline.is_some() && cell.load.beside.is_none()),
        matrix: matrix(summary),
        contenders: contenders(summary),
        settings: settings(summary),
    };
    templates
        .get_template("body.html")
        .and_then(|template| template.render(context! { page }))
        .expect("the template only uses fields of a page")
}

#[derive(Serialize)]
struct Body {
    name: String,
    date: String,
    question: String,
    /// Whether all rounds were run.
    complete: bool,
    /// What raced: contenders, workload, loads, rounds.
    raced: String,
    /// The noise floor as a percentage, if it is known.
    floor: Option<String>,
    /// Whether contenders took turns.
    in_duels: bool,
    /// Half-width of the widest ratio, as a percentage.
    widest: Option<String>,
    /// The loads of each table, by their place in the race and with their names.
    loads: Vec<Vec<(usize, String)>>,
    machine: String,
    refused: Vec<Refused>,
    few: usize,
    view: View,
    /// The operation that costs are per, in the singular.
    per: String,
    baseline: String,
    /// Whether any cost can be compared with the baseline's.
    has_ratios: bool,
    /// If there are several loads.
    matrix: Option<Matrix>,
    contenders: Vec<Contender>,
    settings: Vec<(&'static str, String)>,
}

/// Cost ratios: a row for each load, a column for each contender.
#[derive(Serialize)]
struct Matrix {
    contenders: Vec<String>,
    rows: Vec<(String, Vec<Ratio>)>,
}

#[derive(Serialize)]
struct Ratio {
    /// Without the interval.
    text: String,
    /// With the interval and the relation.
    title: String,
    /// The class of its colour.
    class: String,
}

fn question(summary: &Summary) -> String {
    let asked = &summary.asked;
    if asked.loads.iter().all(|load| load.beside.is_some()) {
        return "Which server keeps small requests fast beside large ones?".to_owned();
    }
    format!("Which server needs the least CPU per {}?", visible(&asked.cost_per.one))
}

fn raced(summary: &Summary) -> String {
    let asked = &summary.asked;
    let took_part = asked.contenders.iter();
    let took_part =
        took_part.filter(|name| !asked.is_reference(name) && !asked.is_skipped(name)).count();
    let counted = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let loads = match &asked.loads[..] {
        [one, _] if asked.regimes().is_some() => format!("{} connections", one.connections),
        [load] => load.to_string(),
        loads => counted(loads.len(), "load"),
    };
    let run = summary.precision.as_ref().map_or(asked.rounds, |precision| precision.rounds);
    let lives = summary.duels.iter().map(|duel| duel.lives).max();
    let rounds = match lives {
        Some(lives) => {
            let slices = |s: f64| format!(" in slices of {} ms", numbers::short(s * 1e3));
            let life = if lives == 1 { "life" } else { "lives" };
            format!("{lives} {life}{}", asked.slice_s.map(slices).unwrap_or_default())
        }
        None => format!("{} of {} s", counted(run as usize, "round"), asked.window_s),
    };
    let over = protocol_in_words(asked.over.as_deref())
        .map(|named| format!(" over {named}"))
        .unwrap_or_default();
    let incomplete = if summary.complete { "" } else { ", not complete" };
    visible(&format!(
        "{}, workload {}{over}, {loads}, {rounds}{incomplete}",
        counted(took_part, "contender"),
        asked.workload
    ))
}

/// Half-width of the widest ratio of a contender.
fn widest(summary: &Summary) -> Option<f64> {
    let ranked = summary.cells.iter().filter(|c| !summary.asked.is_reference(&c.contender));
    let ratios = ranked.filter_map(|cell| cell.ratio_to_baseline);
    ratios.map(|ratio| numbers::half_width(&ratio)).max_by(f64::total_cmp)
}

/// The loads of each table: one each, or both regimes.
fn loads(summary: &Summary) -> Vec<Vec<(usize, String)>> {
    let names = regimes::loads(&summary.asked).into_iter().enumerate();
    match summary.asked.regimes() {
        Some(_) => vec![names.collect()],
        None => names.map(|load| vec![load]).collect(),
    }
}

fn matrix(summary: &Summary) -> Option<Matrix> {
    let asked = &summary.asked;
    if asked.regimes().is_some() {
        return None;
    }
    let loads: Vec<&LoadShape> = asked.loads.iter().filter(|load| load.beside.is_none()).collect();
    let at = |load: &LoadShape, contender: &str| {
        summary.cells.iter().find(|cell| cell.load == *load && cell.contender == contender)
    };
    let has_ratio = |name: &&String| {
        **name == asked.baseline
            || loads
                .iter()
                .any(|load| at(load, name).is_some_and(|cell| cell.ratio_to_baseline.is_some()))
    };
    let contenders: Vec<&String> = asked.contenders.iter().filter(has_ratio).collect();
    if loads.len() < 2 || contenders.len() < 2 {
        return None;
    }
    let row = |load: &&LoadShape| {
        let cells = contenders.iter().map(|name| at(load, name).map_or_else(no_ratio, ratio));
        (visible(&load.to_string()), cells.collect())
    };
    Some(Matrix {
        rows: loads.iter().map(row).collect(),
        contenders: contenders.iter().map(|name| visible(name)).collect(),
    })
}

fn no_ratio() -> Ratio {
    Ratio { text: NONE.to_owned(), title: "no ratio".to_owned(), class: "none".to_owned() }
}

fn ratio(cell: &Cell) -> Ratio {
    if cell.relation == Some(Relation::Baseline) {
        let text = "1".to_owned();
        return Ratio { text, title: "the baseline".to_owned(), class: "base".to_owned() };
    }
    let Some(ratio) = cell.ratio_to_baseline else {
        let title = format!("no ratio: {}", cell.verdict.kind().name());
        return Ratio { title, ..no_ratio() };
    };
    let text = numbers::ratio(&ratio);
    let (name, word) = match cell.relation {
        Some(Relation::Cheaper) => ("cheaper", "cheaper"),
        Some(Relation::Costlier) => ("costlier", "more expensive"),
        Some(Relation::Tied) => ("tied", "tied"),
        Some(Relation::Inconclusive) => ("inconclusive", "unclear"),
        Some(Relation::Baseline) | None => ("void", "not compared"),
    };
    // Factors of 1.25, 1.6, 2.5 and 6.3 are the limits between shades.
    let shade = (ratio.mean.log10().abs() * 10.0) as u32;
    let shade = [1, 2, 4, 8].iter().filter(|limit| shade >= **limit).count();
    let mean = numbers::brief(&text);
    Ratio {
        title: format!("{text}, {word}"),
        text: if cell.verdict.voids(Figure::Cost) { format!("({mean})") } else { mean },
        class: format!("{name} shade{shade}"),
    }
}
