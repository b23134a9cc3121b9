//! The line in the heading of a race that shows which CPUs are threads of one core.

use regatta_record::{Asked, Core, joined};

/// The cores of server and load, if CPUs share cores or some cores are slower. `None` if every CPU is a
/// core of its own and none is slower.
pub fn line(asked: &Asked) -> Option<String> {
    let cores = &asked.setup.cores;
    if cores.iter().all(|core| core.cpus.len() < 2 && !core.slower) {
        return None;
    }
    let of = |cpus: &[u32]| {
        let has = |core: &&Core| core.cpus.iter().any(|cpu| cpus.contains(cpu));
        let own = cores.iter().filter(has).map(|core| written(core, cpus));
        own.collect::<Vec<_>>().join(" ")
    };
    let mut line =
        format!("cores: server {}, load {}", of(&asked.cpus.server), of(&asked.cpus.load));
    for cpus in asked.cpus.shared_cores(cores) {
        line += &format!(" · server and load SHARE the core of CPUs {}", joined(cpus, "+"));
    }
    Some(line)
}

/// `0+(4)`: the CPUs of a core; those that are not used are in parentheses.
fn written(core: &Core, used: &[u32]) -> String {
    let each = core.cpus.iter().map(|cpu| match used.contains(cpu) {
        true => cpu.to_string(),
        false => format!("({cpu})"),
    });
    let slower = if core.slower { " (efficiency)" } else { "" };
    format!("{}{slower}", each.collect::<Vec<_>>().join("+"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::{CpuSets, Summary};

    fn line_of(cores: &[(&[u32], bool)], server: &[u32], load: &[u32]) -> Option<String> {
        let summary: Summary =
            serde_json::from_str(include_str!("../../tests/summary.json")).expect("a summary");
        let mut asked = summary.asked;
        let core = |(cpus, slower): &(&[u32], bool)| {
            let (cpus, slower) = (cpus.to_vec(), *slower);
            Core { cpus, slower, node: None }
        };
        asked.setup.cores = cores.iter().map(core).collect();
        asked.cpus = CpuSets {
            server: server.to_vec(),
            load: load.to_vec(),
            spare: vec![],
            ..CpuSets::default()
        };
        line(&asked)
    }

    #[test]
    fn the_heading_shows_which_cpus_share_a_core() {
        assert_eq!(line_of(&[(&[0], false), (&[1], false)], &[0], &[1]), None);
        let intel: [(&[u32], bool); 2] = [(&[0, 2], false), (&[1, 3], false)];
        assert_eq!(line_of(&intel, &[0, 2], &[1]).unwrap(), "cores: server 0+2, load 1+(3)");
        let shared = "cores: server 0+(2), load (0)+2 · server and load SHARE the core of CPUs 0+2";
        assert_eq!(line_of(&intel, &[0], &[2]).unwrap(), shared);
        let hybrid: [(&[u32], bool); 2] = [(&[0, 1], false), (&[2], true)];
        assert_eq!(
            line_of(&hybrid, &[0, 1], &[2]).unwrap(),
            "cores: server 0+1, load 2 (efficiency)"
        );
    }
}
