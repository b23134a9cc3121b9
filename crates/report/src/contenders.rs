//! What stands behind the names: version, flags, the bytes of a reply.

use crate::{
    columns::{none, plain},
    numbers,
    table::{Column, Row, Table, visible},
};
use regatta_record::{Entry, ReplySeen, Summary};

/// The contenders that took part; `None` where nothing is known of their replies and versions.
pub fn contenders(summary: &Summary) -> Option<Table> {
    let reply = |entry: &Entry| -> Option<ReplySeen> {
        let mut cells = summary.cells.iter().filter(|cell| cell.contender == entry.name);
        cells.find_map(|cell| cell.reply)
    };
    let entries = summary.asked.entries.iter().filter(|entry| entry.skipped.is_none());
    let seen: Vec<_> = entries.map(|entry| (entry, reply(entry))).collect();
    if seen.iter().all(|(_, reply)| reply.is_none()) {
        return None;
    }
    let column =
        |title: &str, right, goes| Column { title: title.to_owned(), right, goes, brief: false };
    let row = |(entry, reply): &(&Entry, Option<ReplySeen>)| Row {
        reference: summary.asked.is_reference(&entry.name),
        cells: vec![
            plain(visible(&entry.name)),
            reply.map_or_else(none, |reply| plain(numbers::grouped(reply.bytes))),
            reply.map_or_else(none, |reply| {
                plain(if reply.has_date { "yes" } else { "no" }.to_owned())
            }),
            entry.version.as_deref().map_or_else(none, |version| plain(visible(version))),
            plain(visible(&entry.start.join(" "))),
        ],
    };
    Some(Table {
        title: visible(&format!("contenders · {}", summary.asked.workload)),
        result: String::new(),
        columns: vec![
            column("contender", false, 0),
            column("bytes of a reply", true, 0),
            column("Date", false, 0),
            column("version", false, 1),
            column("started by", false, 2),
        ],
        rows: seen.iter().map(row).collect(),
        notes: Vec::new(),
    })
}
