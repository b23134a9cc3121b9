//! Tables of costs by role: one for each load under which a contender had more than one role.

use crate::{
    columns::{figure, not_known, per, plain},
    numbers,
    parts::parts,
    table::{Column, Row, Table, visible},
};
use regatta_record::{Cell, Figure, LoadShape, RoleCost, Summary};

/// The tables, in the order of the loads.
pub fn roles(summary: &Summary) -> Vec<Table> {
    summary.asked.loads.iter().filter_map(|load| table(summary, load)).collect()
}

fn table(summary: &Summary, load: &LoadShape) -> Option<Table> {
    let each = parts(summary, load, |cell| &cell.roles);
    if each.is_empty() {
        return None;
    }
    let means = each.iter().filter_map(|(_, role)| Some(role.cost_ns_per_request?.mean));
    let unit = numbers::cost_unit(means);
    let column = |title: &str, right, drop_rank| Column {
        title: title.to_owned(),
        right,
        drop_rank,
        brief: false,
    };
    let row = |(cell, role): &(&Cell, &RoleCost)| {
        let cost = role.cost_ns_per_request.map(|cost| numbers::estimate(&cost, unit.size));
        let cpus: Vec<String> = role.cpus.iter().map(u32::to_string).collect();
        Row {
            reference: summary.asked.is_reference(&cell.contender),
            cells: vec![
                plain(visible(&cell.contender)),
                plain(visible(&role.name)),
                plain(role.count.to_string()),
                if role.cost_not_known { not_known() } else { figure(cell, Figure::Cost, cost) },
                figure(cell, Figure::Cost, role.share.map(numbers::percent)),
                plain(cpus.join(",")),
                figure(cell, Figure::Cost, role.busy.map(|busy| format!("{busy:.2}"))),
                figure(cell, Figure::Memory, role.memory_bytes.map(numbers::memory)),
            ],
        }
    };
    Some(Table {
        title: visible(&format!("cost by role · {} · {load}", summary.asked.workload)),
        result: String::new(),
        columns: vec![
            column("contender", false, 0),
            column("role", false, 0),
            column("processes", true, 4),
            column(&visible(&format!("{}/{}", unit.name, per(summary))), true, 0),
            column("share", true, 1),
            column("CPUs", true, 3),
            column("busy", true, 2),
            column("memory", true, 5),
        ],
        rows: each.iter().map(row).collect(),
        notes: Vec::new(),
    })
}
