//! Tables of costs by role: one for each load under which a contender had more than one role.

use crate::{
    numbers,
    table::{Column, Row, Table, visible},
    tables::{
        columns::{figure, not_known, per, plain},
        parts::parts,
    },
};
use regatta_record::{Cell, Figure, LoadShape, RoleCost, Summary, joined};

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
    let row = |(cell, role): &(&Cell, &RoleCost)| {
        let cost = role.cost_ns_per_request.map(|cost| numbers::estimate(&cost, unit.size));
        Row::plain(
            summary.asked.is_reference(&cell.contender),
            vec![
                plain(visible(&cell.contender)),
                plain(visible(&role.name)),
                plain(role.count.to_string()),
                if role.cost_not_known { not_known() } else { figure(cell, Figure::Cost, cost) },
                figure(cell, Figure::Cost, role.share.map(numbers::percent)),
                plain(joined(&role.cpus, ",")),
                figure(cell, Figure::Cost, role.busy.map(|busy| format!("{busy:.2}"))),
                figure(cell, Figure::Memory, role.memory_bytes.map(numbers::memory)),
            ],
        )
    };
    let columns = vec![
        Column::left("contender"),
        Column::left("role"),
        Column::right("processes", 4),
        Column::right("cost", 0).unit(&visible(&format!("{}/{}", unit.name, per(&summary.asked)))),
        Column::right("share", 1),
        Column::right("CPUs", 3),
        Column::right("busy", 2),
        Column::right("memory", 5),
    ];
    let title = visible(&format!("cost by role · {} · {load}", summary.asked.workload));
    Some(Table::plain(title, columns, each.iter().map(row).collect()))
}
