//! Details of the contenders: version and its age, flags, environment, size of a reply in bytes, and
//! whether replies have a Date.

use crate::{
    numbers,
    table::{Column, Row, Table, visible},
    tables::columns::{none, plain},
};
use regatta_record::{Entry, ReplySeen, Summary};

/// The contenders that took part. `None` if neither replies nor versions are known. Columns without
/// values are omitted.
pub fn contenders(summary: &Summary) -> Option<Table> {
    let reply = |entry: &Entry| -> Option<ReplySeen> {
        let mut cells = summary.cells.iter().filter(|cell| cell.contender == entry.name);
        cells.find_map(|cell| cell.reply)
    };
    let entries = summary.asked.entries.iter().filter(|entry| entry.skipped.is_none());
    let mut seen: Vec<_> = entries.map(|entry| (entry, reply(entry))).collect();
    seen.sort_by_key(|(entry, _)| summary.asked.is_reference(&entry.name));
    let has_reply = seen.iter().any(|(_, reply)| reply.is_some());
    let has_version = seen.iter().any(|(entry, _)| entry.version.is_some());
    if !has_reply && !has_version {
        return None;
    }
    let at = summary.asked.setup.started_unix_s;
    let has_age = seen.iter().any(|(entry, _)| entry.age(at).is_some());
    let text = |text: Option<String>| text.map_or_else(none, |text| plain(visible(&text)));
    let columns = [
        (true, Column::left("contender")),
        (has_reply, Column::right("reply", 0).unit("B")),
        (has_reply, Column::left("date").titled("Date?")),
        (has_version, Column::left("version").rank(2)),
        (has_age, Column::left("age").rank(1)),
        (true, Column::left("command").titled("started by").rank(3)),
    ];
    let row = |(entry, reply): &(&Entry, Option<ReplySeen>)| {
        let date = |reply: ReplySeen| if reply.has_date { "yes" } else { "no" };
        let cells = [
            (true, plain(visible(&entry.name))),
            (has_reply, text(reply.map(|reply| numbers::grouped(reply.bytes)))),
            (has_reply, text(reply.map(|reply| date(reply).to_owned()))),
            (has_version, text(entry.version(&summary.asked.setup))),
            (has_age, text(entry.age(at))),
            (true, plain(visible(&entry.command()))),
        ];
        Row::plain(summary.asked.is_reference(&entry.name), shown(cells))
    };
    let title = visible(&format!("contenders · {}", summary.asked.workload));
    Some(Table::plain(title, shown(columns), seen.iter().map(row).collect()))
}

/// The values whose flag is set.
fn shown<T, const N: usize>(all: [(bool, T); N]) -> Vec<T> {
    all.into_iter().filter_map(|(is_known, one)| is_known.then_some(one)).collect()
}
