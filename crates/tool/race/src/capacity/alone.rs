//! Prepares a single contender as a race would.

use crate::{
    ask::{
        contest::Contest,
        prepare::{Changes, PrepareError, prepare},
    },
    contenders::find_contenders::Contender,
};
use regatta_record::{Asked, Setup};
use regatta_script::Workload;

/// Prepares one contender on its own: `contender` is the name of a known one, or
/// `name=command {port}`. The workload is sent over the protocol `over`, if that is not its usual one. The CPUs of the
/// server and those of the load are assigned as in a race, unless given.
pub fn alone(
    contender: &str,
    (workload, over): (&Workload, Option<&str>),
    [server_cpus, load_cpus]: [Option<Vec<u32>>; 2],
    known: &[Contender],
    setup: Setup,
) -> Result<Asked, PrepareError> {
    let (name, given) = match contender.split_once('=') {
        Some((name, _)) => (name.trim(), vec![contender.to_string()]),
        None => (contender, Vec::new()),
    };
    let contest = Contest {
        workload: workload.name().to_string(),
        workload_file: workload.text().map(str::to_owned),
        file_service: workload.text().map(|_| workload.service().to_owned()),
        contenders: vec![name.to_string()],
        over: over.map(str::to_owned),
        // There is no race file in which the name could be misspelt.
        bundled: true,
        ..Contest::parse(RACE, "capacity").expect("the race is valid")
    };
    let only = vec![name.to_string()];
    let changes = Changes { only, contenders: given, server_cpus, load_cpus, ..Changes::default() };
    prepare(&contest, &changes, known, setup)
}

/// A placeholder race file; its loads are not used.
const RACE: &str = "name = 'capacity'\nworkload = 'double'\nrounds = 1\nwindow = '1s'\n\
                    warm_up = '0s'\n[[load]]\nconnections = 1\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::prepare::built_in;
    use regatta_host::read_setup;

    fn asked(contender: &str) -> Result<Asked, PrepareError> {
        let setup = read_setup("0", None, Vec::new());
        let double = Workload::parse("double").unwrap();
        alone(contender, (&double, None), [None, None], &built_in(), setup)
    }

    #[test]
    fn a_workload_file_takes_precedence_over_a_built_in_workload_of_its_name() {
        let text = "protocol = 'line'\n[[request]]\nsend = '1'\nexact = '2'";
        let file = Workload::from_text(text, "double").unwrap();
        let setup = read_setup("0", None, Vec::new());
        let asked = alone("epoll", (&file, None), [None, None], &built_in(), setup).unwrap();
        assert_eq!(asked.workload_file.as_deref(), Some(text));
    }

    #[test]
    fn prepares_a_known_contender_or_one_of_the_command_line() {
        let epoll = asked("epoll").unwrap();
        assert_eq!((epoll.contenders.len(), epoll.baseline.as_str()), (1, "epoll"));
        assert!(!epoll.cpus.server.is_empty() && !epoll.cpus.load.is_empty());
        let mine = asked("mine=sh -c 'serve {port}'").unwrap();
        assert_eq!((mine.contenders.len(), mine.baseline.as_str()), (1, "mine"));
    }

    #[test]
    fn an_unknown_contender_is_an_error_with_a_suggestion() {
        let error = asked("epol").unwrap_err().to_string();
        assert!(error.contains("regatta peers"), "{error}");
        assert!(error.contains("epol: ") && error.contains("did you mean `epoll`?"), "{error}");
    }
}
