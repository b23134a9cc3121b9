//! Compares two results (`regatta diff`). Their rounds are not paired, and the machine may have
//! become faster or slower in between. So it compares each contender's cost over the null server's
//! cost of the same start.

use crate::{
    compared::{comparison::Comparison, field::Field},
    doubts,
    statistics::{known, present},
    whole::{
        gate::{Compared, lines},
        stopping_rule::fields,
    },
};
use regatta_record::{Asked, Gate, Heads, LoadShape, NULL, Round};

/// A change of the null server's own cost is reported if it is significantly above this factor.
const DRIFT: f64 = 1.10;

/// One of the two results.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// Its name in messages: its directory.
    pub name: &'a str,
    /// Its plan.
    pub asked: &'a Asked,
    /// Its rounds.
    pub rounds: &'a [Round],
}

/// The error if the results share nothing that can be compared; one sentence.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NothingInCommon(String);

/// Compares the cost of every contender and load that both results have; `fail_over` is the allowed
/// increase of a cost, as a fraction. With it, cells that only the old result has are listed as not
/// judged. Twins and null servers are left out.
pub fn diff(old: Side, new: Side, fail_over: Option<f64>) -> Result<Gate, NothingInCommon> {
    if old.asked.workload != new.asked.workload
        || old.asked.workload_file != new.asked.workload_file
    {
        return Err(NothingInCommon(format!(
            "{} raced the workload {}, and {} {}{}: costs of different work cannot be compared",
            old.name,
            old.asked.workload,
            new.name,
            if old.asked.workload == new.asked.workload { "another " } else { "" },
            new.asked.workload
        )));
    }
    if old.asked.cost_per.name != new.asked.cost_per.name {
        return Err(NothingInCommon(format!(
            "costs of {} are per {}, and those of {} per {}: they cannot be compared",
            old.name, old.asked.cost_per.one, new.name, new.asked.cost_per.one
        )));
    }
    let fields = [old, new].map(|side| fields(side.asked, side.rounds));
    let common = in_both(old, new);
    if common.is_empty() {
        return Err(NothingInCommon(format!(
            "{} and {} share no contender at the same load, so there is nothing to compare; they raced \
             {} and {}",
            old.name,
            new.name,
            ranked(old.asked).join(", "),
            ranked(new.asked).join(", ")
        )));
    }
    let of_load = |fields: &'_ [Field], load| fields.iter().position(|f| f.load == load);
    let mut compared = Vec::new();
    for (name, load) in &common {
        let (Some(a), Some(b)) = (of_load(&fields[0], *load), of_load(&fields[1], *load)) else {
            continue;
        };
        compared.extend(cell([(old, &fields[0][a]), (new, &fields[1][b])], name));
    }
    if fail_over.is_some() {
        compared.extend(vanished(old, new));
    }
    let mut doubts = setups(old, new);
    doubts.extend(only_in_one(old, new, fail_over.is_some()));
    doubts.extend(drift([&fields[0], &fields[1]]));
    doubts.extend([old, new].into_iter().filter_map(short));
    Ok(Gate {
        old: old.name.to_owned(),
        new: new.name.to_owned(),
        fail_over,
        method: format!(
            "server CPU per {} over the null server's of the same start, new over old (Welch's \
             interval on logarithms); a more reliable gate is one race of both builds: race --contender \
             'old=…' --contender 'new=…' --baseline old --fail-over 5%",
            new.asked.cost_per.one
        ),
        lines: lines(compared, fail_over),
        doubts,
    })
}

/// Contenders that are ranked.
fn ranked(asked: &Asked) -> Vec<String> {
    asked.contenders.iter().filter(|name| !asked.is_reference(name)).cloned().collect()
}

fn cells(asked: &Asked) -> Vec<(String, LoadShape)> {
    let of_load = |load: &LoadShape| {
        let load = *load;
        ranked(asked).into_iter().map(move |name| (name, load))
    };
    asked.loads.iter().flat_map(of_load).collect()
}

fn in_both(old: Side, new: Side) -> Vec<(String, LoadShape)> {
    let old = cells(old.asked);
    cells(new.asked).into_iter().filter(|cell| old.contains(cell)).collect()
}

/// A cell of both; `None` if neither has a cost.
fn cell(sides: [(Side, &Field); 2], name: &str) -> Option<Compared> {
    let load = sides[0].1.load;
    let whys = sides.map(|(side, field)| {
        field.why_no_cost(name).map(|why| format!("in {} {name} {why}", side.name))
    });
    let unknown = |why, ratio| {
        let contender = name.to_owned();
        Some(Compared { contender, load, comparison: Err(why), ratio, remedy: None })
    };
    match whys {
        [Some(_), Some(_)] => return None,
        [Some(why), None] | [None, Some(why)] => return unknown(why, None),
        [None, None] => {}
    }
    let without_null = sides.iter().find(|(_, field)| field.why_no_cost(NULL).is_some());
    if let Some((side, _)) = without_null {
        let ratio = known(plain(sides.map(|(_, field)| field), name).map(|plain| plain.ratio()));
        let why = format!(
            "{} has no cost of the null server: the plain ratio includes any change of the machine \
             between the two runs and must not be trusted; enter `{NULL}` in both",
            side.name
        );
        return unknown(why, ratio);
    }
    let [old, new] = sides.map(|(_, field)| field.compare(name, NULL));
    let Some((old, new)) = old.zip(new) else {
        return unknown("too few starts with the null server on one side".to_owned(), None);
    };
    let comparison = new.over(&old);
    Some(Compared {
        contender: name.to_owned(),
        load,
        ratio: known(Some(comparison.ratio())),
        comparison: Ok(comparison),
        remedy: None,
    })
}

/// The plain cost of a contender in the second field over that in the first.
fn plain([old, new]: [&Field; 2], name: &str) -> Option<Comparison> {
    let [old, new] = [old, new].map(|field| Comparison::paired(&present(field.cost(name)?)));
    Some(new?.over(&old?))
}

/// Describes how the machines and the settings of the two results differ.
fn setups(old: Side, new: Side) -> Vec<String> {
    let of = |side: Side| {
        let (asked, setup) = (side.asked, &side.asked.setup);
        let machine = asked.server.as_ref().map_or_else(
            || "that of the load".to_owned(),
            |machine| format!("{}, {}", machine.name, machine.setup.cpu),
        );
        let waits = if asked.busy_poll { "it polled" } else { "it slept" };
        [
            ("CPU", format!("{}, {} online", setup.cpu, setup.cpus)),
            ("kernel", setup.kernel.clone()),
            ("machine of the contenders", machine),
            ("version of regatta", setup.regatta.clone()),
            ("frequency governor", setup.governor.clone().unwrap_or_else(|| "none".to_owned())),
            ("set of mitigations", setup.mitigations.join("; ")),
            ("control group", setup.cgroup.clone()),
            ("window", format!("{} s", asked.window_s)),
            ("longest warm-up", format!("{} s", asked.warm_up_s)),
            ("load's way of waiting", waits.to_owned()),
            ("protocol", asked.over.clone().unwrap_or_else(|| "the usual one".to_owned())),
            ("kind of request headers", asked.heads.unwrap_or(Heads::Identical).to_string()),
            ("set of server CPUs", format!("{:?}", asked.cpus.server)),
            ("set of load CPUs", format!("{:?}", asked.cpus.load)),
        ]
    };
    let pairs = of(old).into_iter().zip(of(new));
    pairs
        .filter(|((_, a), (_, b))| a != b)
        .map(|((what, a), (_, b))| {
            format!(
                "the {what} differs ({a}; now {b}): a ratio may show that difference instead of the \
                 change"
            )
        })
        .collect()
}

/// Cells that the new result no longer has. A gate must not pass them.
fn vanished(old: Side, new: Side) -> Vec<Compared> {
    let current = cells(new.asked);
    let gone = cells(old.asked).into_iter().filter(|cell| !current.contains(cell));
    let line = |(contender, load)| Compared {
        contender,
        load,
        comparison: Err(format!("{} does not contain it", new.name)),
        ratio: None,
        remedy: None,
    };
    gone.map(line).collect()
}

fn only_in_one(old: Side, new: Side, is_gate: bool) -> Vec<String> {
    let list = |side: Side, other: Side| {
        let others = cells(other.asked);
        let alone = cells(side.asked).into_iter().filter(|cell| !others.contains(cell));
        let alone: Vec<String> = alone.map(|(name, load)| format!("{name} at {load}")).collect();
        (!alone.is_empty())
            .then(|| format!("only in {}, therefore not compared: {}", side.name, alone.join(", ")))
    };
    // In a gate, a missing cell has its own line.
    let gone = list(old, new).filter(|_| !is_gate);
    gone.into_iter().chain(list(new, old)).collect()
}

/// Reports loads at which the null server's own cost changed a lot. Then the machine has changed,
/// and it is an assumption that the compared costs changed by the same factor.
fn drift(fields: [&[Field]; 2]) -> Vec<String> {
    let mut doubts = Vec::new();
    for a in fields[0] {
        let Some(b) = fields[1].iter().find(|b| b.load == a.load) else { continue };
        let Some(ratio) = plain([a, b], NULL).map(|null| null.ratio()) else { continue };
        if ratio.low > DRIFT || ratio.high < 1.0 / DRIFT {
            doubts.push(format!(
                "at {} the null server itself costs {:.2} times as much as before: the machine has \
                 changed, and the comparison assumes that all costs changed by the same factor",
                a.load, ratio.mean
            ));
        }
    }
    doubts
}

fn short(side: Side) -> Option<String> {
    let passes = side.rounds.iter().map(|r| r.round + 1).max().unwrap_or(0);
    (passes < doubts::ROUNDS).then(|| {
        format!(
            "{} has only {passes} starts of each contender: the intervals are wide; run at least {}",
            side.name,
            doubts::ROUNDS
        )
    })
}
