//! Whether each member of a hub got each broadcast of every other machine exactly once (pure). Members
//! refuse a copy that comes twice. So if a machine's members together got as many different copies as
//! they were owed, and none with a number that was not sent, then each got all.

use regatta_record::{AcrossProgress, AcrossSeen, Exchange, Machines};

/// Why deliveries between machines are not known to be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Inexact {
    /// The server made an error.
    Wrong {
        /// The machine of the receivers.
        machine: usize,
        /// What was expected and received.
        exchange: Box<Exchange>,
    },
    /// It cannot be known.
    Unknown {
        /// The machine of the receivers.
        machine: usize,
        /// Why, as the rest of a sentence that begins with its name.
        because: String,
    },
}

/// Whether members are still owed broadcasts of other machines. `progress` has the number of the machine of
/// each process, and its last report.
pub(super) fn owes<'a>(
    machines: &Machines,
    progress: impl Iterator<Item = (&'a usize, &'a AcrossProgress)>,
) -> bool {
    let (mut owed, mut came) = (0_u128, 0_u128);
    for (machine, AcrossProgress { sent, copies }) in progress {
        owed += u128::from(*sent) * u128::from(machines.elsewhere_than(*machine));
        came += u128::from(*copies);
    }
    owed > came
}

/// Compares what the members of all machines sent and received, after the load. `name` is what to call a
/// machine.
///
/// # Errors
/// The first contradiction.
pub(super) fn check(
    machines: &Machines,
    seen: &[&AcrossSeen],
    name: &dyn Fn(usize) -> String,
) -> Result<(), Inexact> {
    if let Some(machine) = undercounted(machines, seen) {
        let members: u64 = machines.members.iter().sum();
        let exchange = Box::new(Exchange {
            sent: format!("a broadcast of a member of {}", name(machine)),
            expected: format!("a listenerCount of at least {members}"),
            received: format!("fewer in {} results", seen[machine].undercounted),
            reply_index: 0,
        });
        return Err(Inexact::Wrong { machine, exchange });
    }
    for (to, received) in seen.iter().enumerate() {
        let members = machines.members[to];
        for (from, sent) in seen.iter().enumerate().filter(|(from, _)| *from != to) {
            let Some((expected, came)) = wrong(sent, received, from, members, &name(to)) else {
                continue;
            };
            if received.left > 0 || received.joined != members {
                let because = format!(
                    "cannot be checked: the connections of {} of its members were closed during the load, \
                     and members of a hub that is loaded from several machines must stay",
                    received.left
                );
                return Err(Inexact::Unknown { machine: to, because });
            }
            let exchange = Box::new(Exchange {
                sent: format!("{} broadcasts of members of {}", sent.sent, name(from)),
                expected,
                received: came,
                reply_index: 0,
            });
            return Err(Inexact::Wrong { machine: to, exchange });
        }
    }
    Ok(())
}

/// A machine whose members got results with too few listeners, although no member of any machine had left.
fn undercounted(machines: &Machines, seen: &[&AcrossSeen]) -> Option<usize> {
    let mut all = seen.iter().zip(&machines.members);
    let have_stayed = all.all(|(seen, members)| seen.left == 0 && seen.joined == *members);
    let machine = seen.iter().position(|seen| seen.undercounted > 0);
    machine.filter(|_| have_stayed)
}

/// What the members of a machine should have received from the machine `from`, and what they received, if that
/// differs.
fn wrong(
    sent: &AcrossSeen,
    received: &AcrossSeen,
    from: usize,
    members: u64,
    name: &str,
) -> Option<(String, String)> {
    let got = received.from.get(from).copied().unwrap_or_default();
    let owed = u128::from(sent.sent) * u128::from(members);
    let copies = u128::from(got.copies);
    if got.numbers > sent.sent {
        let number = got.numbers;
        return Some((
            "only broadcasts that a member has sent".into(),
            format!("a copy of broadcast {number} of them at {name}"),
        ));
    }
    if copies != owed {
        let came = match owed.checked_sub(copies) {
            Some(missing) => {
                format!("{missing} of these are missing, although the load has waited")
            }
            None => format!("{} more", copies - owed),
        };
        return Some((format!("a copy of each for each of {members} members of {name}"), came));
    }
    (got.marks != sent.sent_marks.times(members)).then(|| {
        (
            format!("unchanged copies for the members of {name}"),
            "copies with another sender, number or time".into(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_record::{FromSeen, Marks};

    fn machines() -> Machines {
        Machines {
            own: 0,
            of_thread: vec![0, 1, 2],
            members: vec![2, 3, 5],
            ahead_ns: vec![0; 3],
            shift_ns: 0,
        }
    }

    /// Three machines that sent 10, 20 and 0 broadcasts, all of which arrived.
    fn right() -> Vec<AcrossSeen> {
        let sent = [(10, Marks::new(77)), (20, Marks::new(u64::MAX / 3)), (0, Marks::new(0))];
        let from = |to: usize, members: u64| {
            let all = sent.iter().enumerate().map(move |(from, (sent, marks))| match from == to {
                true => FromSeen::default(),
                false => {
                    FromSeen { copies: sent * members, numbers: *sent, marks: marks.times(members) }
                }
            });
            all.collect()
        };
        let each = machines().members.into_iter().enumerate();
        let seen = each.map(|(to, members)| AcrossSeen {
            joined: members,
            left: 0,
            undercounted: 0,
            sent: sent[to].0,
            sent_marks: sent[to].1,
            from: from(to, members),
        });
        seen.collect()
    }

    fn checked(all: &[AcrossSeen]) -> Result<(), Inexact> {
        check(&machines(), &all.iter().collect::<Vec<_>>(), &|number| format!("agent gen{number}"))
    }

    /// The machine and the exchange of a wrong delivery, after `change` of what was right.
    fn wrong_after(change: impl Fn(&mut Vec<AcrossSeen>)) -> (usize, Exchange) {
        let mut all = right();
        change(&mut all);
        match checked(&all).unwrap_err() {
            Inexact::Wrong { machine, exchange } => (machine, *exchange),
            unknown @ Inexact::Unknown { .. } => panic!("{unknown:?}"),
        }
    }

    #[test]
    fn accepts_each_copy_once() {
        assert_eq!(checked(&right()), Ok(()));
    }

    #[test]
    fn a_missing_copy_is_found_and_named() {
        let (machine, exchange) = wrong_after(|all| all[2].from[0].copies -= 1);
        assert_eq!(machine, 2);
        assert_eq!(exchange.sent, "10 broadcasts of members of agent gen0");
        assert_eq!(exchange.expected, "a copy of each for each of 5 members of agent gen2");
        assert_eq!(exchange.received, "1 of these are missing, although the load has waited");
    }

    #[test]
    fn a_missing_copy_is_not_made_up_for_by_one_that_was_never_sent() {
        // The last copy for one member is missing; another one got one more, with the next number.
        let (machine, exchange) = wrong_after(|all| all[0].from[1].numbers += 1);
        assert_eq!(
            (machine, &*exchange.received),
            (0, "a copy of broadcast 21 of them at agent gen0")
        );
    }

    #[test]
    fn changed_copies_are_found() {
        let (machine, exchange) =
            wrong_after(|all| all[1].from[0].marks = all[1].from[0].marks.plus(Marks::new(1)));
        assert_eq!(machine, 1);
        assert_eq!(exchange.received, "copies with another sender, number or time");
    }

    #[test]
    fn copies_of_an_agent_that_sent_nothing_are_found() {
        let (machine, exchange) = wrong_after(|all| {
            all[0].from[2] = FromSeen { copies: 1, numbers: 1, ..FromSeen::default() }
        });
        assert_eq!(
            (machine, &*exchange.received),
            (0, "a copy of broadcast 1 of them at agent gen0")
        );
    }

    #[test]
    fn closed_connections_of_members_are_no_error_of_deliveries() {
        let mut all = right();
        all[1].left = 2;
        assert_eq!(checked(&all), Ok(()), "they left before the first broadcast");
        all[1].from[0].copies -= 1;
        let Inexact::Unknown { machine, because } = checked(&all).unwrap_err() else {
            panic!("blames the server");
        };
        assert_eq!(machine, 1);
        assert!(because.contains("connections of 2 of its members"), "{because}");
    }

    #[test]
    fn too_few_listeners_are_an_error_only_if_all_members_stayed() {
        let (machine, exchange) = wrong_after(|all| all[1].undercounted = 3);
        assert_eq!((machine, &*exchange.expected), (1, "a listenerCount of at least 10"));
        let mut all = right();
        (all[1].undercounted, all[2].left) = (3, 1);
        assert_eq!(checked(&all), Ok(()));
    }

    #[test]
    fn the_load_waits_until_all_copies_have_come() {
        let progress = |copies| {
            [(0, 3, 0), (1, 0, copies), (2, 0, 15)]
                .map(|(of, sent, copies)| (of, AcrossProgress { sent, copies }))
        };
        let owes = |copies| {
            let all = progress(copies);
            super::owes(&machines(), all.iter().map(|(of, one)| (of, one)))
        };
        assert!(owes(0) && owes(8));
        assert!(!owes(9) && !owes(10));
    }
}
