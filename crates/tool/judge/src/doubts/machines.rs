//! Doubts about every race whose contenders were reached over SSH: what its measurements cannot show.

use regatta_record::{Asked, Cell};

/// Fixed doubts, if the race has a server machine; the most serious first.
pub fn doubts(asked: &Asked, cells: &[Cell]) -> Vec<String> {
    let Some(machine) = &asked.server else { return Vec::new() };
    let one = machine.one_machine.then(|| {
        format!(
            "server and load are one machine: they share CPUs, caches and the kernel, although {} was given as a \
             machine of its own (--server); trust costs only, or choose another machine",
            machine.name
        )
    });
    let unseen = match cells.iter().any(|cell| cell.machine.is_some()) {
        // It is in the column `machine`, and has doubts of its own.
        true => String::new(),
        false => {
            format!("the work of other processes and of interrupts on {}, or for ", machine.name)
        }
    };
    let not_sought = format!(
        "the servers ran over SSH (--server), and in such races nobody looks for {unseen}CPU time that a hypervisor \
         took from the load: keep both machines quiet, and run `regatta doctor` on both"
    );
    one.into_iter().chain([not_sought]).collect()
}
