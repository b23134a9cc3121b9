//! One load over agents, as a crew of load processes.

use super::{
    members::{Got, Members},
    report,
};
use crate::{
    clock::{Fault, Region},
    message::{Answer, Request},
};
use regatta_load::{Crew, Error, Heard, Order};
use regatta_record::{LoadProgress, ProcessMessage, visible};
use std::{collections::VecDeque, time::Duration};

/// What agents reported of a load, in addition to the counts.
pub(super) struct Reports {
    /// When the windows opened, if that was ordered with a time.
    pub opened: Option<Opened>,
    /// The number of the agent of each process, and its last progress.
    pub progress: Vec<(usize, LoadProgress)>,
    /// How late the order to open the window came, if it did.
    pub late_by_ns: Option<u64>,
}

/// When the windows opened.
pub(super) struct Opened {
    /// The ordered time, by the leader's clock.
    pub at_ns: u64,
    /// When the last process of each agent opened it, by the agent's clock.
    pub of_agents_ns: Vec<u64>,
}

/// The load processes on all agents. They are numbered by agent, and then by their numbers there.
pub(super) struct Session<'a> {
    members: &'a mut Members,
    /// The number of the agent of each process, and its last progress.
    processes: Vec<(usize, LoadProgress)>,
    /// What the pings before the load say about each agent's clock.
    clocks: &'a [Region],
    lead_ns: u64,
    /// When the window opens, once that is decided.
    opens: Option<Opened>,
    late_by_ns: Option<u64>,
    pending: VecDeque<(usize, Heard)>,
}

impl<'a> Session<'a> {
    /// `processes` has the number of the agent of each process.
    pub fn new(
        members: &'a mut Members,
        processes: &[usize],
        clocks: &'a [Region],
        lead_ns: u64,
    ) -> Session<'a> {
        let processes = processes.iter().map(|agent| (*agent, LoadProgress::default()));
        Session {
            members,
            processes: processes.collect(),
            clocks,
            lead_ns,
            opens: None,
            late_by_ns: None,
            pending: VecDeque::new(),
        }
    }

    /// What was reported, after the load.
    pub fn reports(self) -> Reports {
        let late_ns = |agent: usize| {
            let own = self.processes.iter().filter(|(of, _)| *of == agent);
            own.map(|(_, progress)| progress.late_ns).max().unwrap_or(0)
        };
        let opened = self.opens.map(|opens| {
            let planned = opens.of_agents_ns.into_iter().enumerate();
            let of_agents_ns =
                planned.map(|(agent, at_ns)| at_ns.saturating_add(late_ns(agent))).collect();
            Opened { of_agents_ns, ..opens }
        });
        Reports { opened, progress: self.processes, late_by_ns: self.late_by_ns }
    }

    /// The number of the first process of an agent.
    fn first_of(&self, agent: usize) -> Option<usize> {
        self.processes.iter().position(|(of, _)| *of == agent)
    }

    /// What the leader of the load hears of what came from an agent.
    fn heard(&mut self, agent: usize, got: Got) -> Option<(usize, Heard)> {
        let first = self.first_of(agent)?;
        let failed = |because: String| Some((first, Heard::Failed(because)));
        let answer = match got {
            Got::Failed(because) => return failed(because),
            Got::Answer(_, answer) => answer,
        };
        match answer {
            Answer::Report { process, message } => {
                let number = first + process as usize;
                let last = self.processes.get_mut(number).filter(|(of, _)| *of == agent);
                let Some((_, last)) = last else {
                    return failed(format!("reported of a process {process} that was not started"));
                };
                let message = match report::checked(*message) {
                    Ok(message) => message,
                    Err(because) => return failed(because),
                };
                if let ProcessMessage::Progress(progress) = &message {
                    if progress.replies < last.replies {
                        return failed("reported fewer replies than before".into());
                    }
                    *last = progress.clone();
                }
                Some((number, Heard::Report(message)))
            }
            Answer::Ended { process, how } => {
                failed(format!("lost its load process {}: it {how}", process + 1))
            }
            Answer::Refused { because } => failed(format!("refused: {because}")),
            Answer::Taken { late_by_ns: late_by_ns @ 1.. } => {
                self.late_by_ns = self.late_by_ns.max(Some(late_by_ns));
                let late_ms = late_by_ns as f64 / 1e6;
                failed(format!("got the order to open the window {late_ms:.1} ms after its time"))
            }
            _ => None,
        }
    }
}

impl Crew for Session<'_> {
    fn next(&mut self, within: Duration) -> Option<(usize, Heard)> {
        if let Some(pending) = self.pending.pop_front() {
            return Some(pending);
        }
        let (agent, got) = self.members.next(within)?;
        self.heard(agent, got)
    }

    fn order(&mut self, order: Order) {
        let mut times = vec![None; self.clocks.len()];
        if let Some(at_ns) = order.at_ns {
            let moments: Result<Vec<_>, Fault> =
                self.clocks.iter().map(|clock| clock.to_agent(at_ns)).collect();
            let of_agents_ns: Vec<u64> = match moments {
                Ok(moments) => moments.iter().map(|moment| moment.at_ns).collect(),
                Err(fault) => {
                    let because = format!("cannot be given the time of the window: {fault}");
                    return self.pending.push_back((0, Heard::Failed(because)));
                }
            };
            times = of_agents_ns.iter().copied().map(Some).collect();
            self.opens = Some(Opened { at_ns, of_agents_ns });
        }
        for (agent, at_ns) in times.into_iter().enumerate() {
            self.members.send(agent, Request::Order(Order { at_ns, ..order }));
        }
    }

    fn ending(&mut self, _number: usize) -> String {
        // Agents describe it themselves, see `Answer::Ended`.
        "ended".into()
    }

    fn lead_ns(&self) -> u64 {
        self.lead_ns
    }

    fn name(&self, number: usize) -> String {
        format!("agent {}", self.members.all[self.processes[number].0].name)
    }

    fn error(&self, number: usize, because: String) -> Error {
        let name = self.members.all[self.processes[number].0].name.clone();
        Error::Agent { name, because: visible(&because) }
    }
}
