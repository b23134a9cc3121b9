//! One load carried out by several processes: what the server receives, what is counted, and what
//! happens when a process fails.

mod failing;
mod same;

use crate::common::Called;
use regatta_load::{Error, LoadProcessConfig, Plan, Progress, Tally, run_in_processes};
use regatta_testkit::child::example;
use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    time::{Duration, Instant},
};

/// Load processes of one test, which can be found by their mark.
struct Marked {
    processes: LoadProcessConfig,
    mark: String,
}

fn marked(least: usize) -> Marked {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mark = format!("mark-{}-{}", std::process::id(), NEXT.fetch_add(1, SeqCst));
    let arguments = vec!["load-process".into(), mark.clone()];
    Marked {
        processes: LoadProcessConfig { program: example("load_test_helper"), arguments, least },
        mark,
    }
}

impl Marked {
    /// The living processes with this mark.
    fn pids(&self) -> Vec<u32> {
        pids_of(&self.mark)
    }

    fn run(&self, plan: &Plan) -> Result<Tally, Error> {
        self.run_watched(plan, &mut |_| {}, &AtomicBool::new(false)).0
    }

    /// Runs a plan. Also returns which callbacks were called. Checks that no process remains.
    fn run_watched(
        &self,
        plan: &Plan,
        progress: &mut dyn FnMut(&Progress),
        stop: &AtomicBool,
    ) -> (Result<Tally, Error>, Vec<&'static str>) {
        let (mut called, began) = (Called::default(), Instant::now());
        let result = run_in_processes(plan, &self.processes, &mut called, progress, stop);
        assert!(began.elapsed() < Duration::from_secs(60), "it took {:?}", began.elapsed());
        assert_eq!(self.pids(), [0; 0], "processes remain");
        (result, called.names())
    }
}

/// Living processes with this argument, in the order in which they were started.
fn pids_of(mark: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let read =
            |name: &str| fs::read_to_string(Path::new("/proc").join(format!("{pid}/{name}")));
        let is_marked = read("cmdline").is_ok_and(|line| line.split('\0').any(|one| one == mark));
        let stat = read("stat").unwrap_or_default();
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let fields: Vec<&str> = fields.collect();
        // State, and the time of its start (proc_pid_stat(5)).
        if is_marked && fields.first() != Some(&"Z") && fields.len() > 19 {
            found.push((fields[19].parse::<u64>().unwrap(), pid));
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, pid)| pid).collect()
}
