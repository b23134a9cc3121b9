//! Whether each member of a hub got each broadcast of every other machine exactly once (pure). Members
//! refuse a copy that comes twice. So if a machine's members together got as many different copies as
//! they were owed, and none with a number that was not sent, then each got all. A member whose connection
//! was closed is neither owed nor counted: what it got is not in the sums.

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
    let mut sent_by = vec![0_u128; machines.count()];
    let mut left_at = sent_by.clone();
    for (machine, AcrossProgress { sent, copies, left }) in progress {
        owed += u128::from(*sent) * u128::from(machines.elsewhere_than(*machine));
        came += u128::from(*copies);
        sent_by[*machine] += u128::from(*sent);
        left_at[*machine] += u128::from(*left);
    }
    let sent: u128 = sent_by.iter().sum();
    let excused = left_at.iter().zip(&sent_by).map(|(left, own)| left * (sent - own));
    owed.saturating_sub(excused.sum()) > came
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
    if let Some((machine, exchange)) = miscounted(machines, seen, name) {
        return Err(Inexact::Wrong { machine, exchange: Box::new(exchange) });
    }
    for (to, received) in seen.iter().enumerate() {
        let members = machines.members[to];
        if received.joined != members || received.left >= members {
            let because = format!(
                "cannot be checked: of its {members} members {} joined, and the server closed the \
                 connections of {} during the load",
                received.joined, received.left
            );
            return Err(Inexact::Unknown { machine: to, because });
        }
        let stayed = members - received.left;
        for (from, sent) in seen.iter().enumerate().filter(|(from, _)| *from != to) {
            let Some((expected, came)) = wrong(sent, received, from, stayed, &name(to)) else {
                continue;
            };
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

/// A machine whose members got a result with a listener count that was not possible. At least the members
/// were there that stayed, and at most all connections that were ever opened. What its own processes know of
/// its own connections is narrower.
fn miscounted(
    machines: &Machines,
    seen: &[&AcrossSeen],
    name: &dyn Fn(usize) -> String,
) -> Option<(usize, Exchange)> {
    let members: u64 = machines.members.iter().sum();
    let of = |machine: usize, expected: String, received: String| {
        let sent = format!("a broadcast of a member of {}", name(machine));
        Some((machine, Exchange { sent, expected, received, reply_index: 0 }))
    };
    for (machine, own) in seen.iter().enumerate() {
        let others = || seen.iter().zip(&machines.members).enumerate();
        let others = || others().filter(|(other, _)| *other != machine).map(|(_, other)| other);
        let left: u64 = others().map(|(seen, _)| seen.left).sum();
        let more: u64 = others().map(|(seen, members)| seen.opened.saturating_sub(*members)).sum();
        if own.short_by > left {
            let expected = "a listenerCount of at least the members that were connected".into();
            let (short, all) = (own.short_by, members);
            return of(machine, expected, format!("{short} fewer (the load has {all} members)"));
        }
        if own.over_by > more {
            let expected = "a listenerCount of at most the connections that were opened".into();
            let over = own.over_by - more;
            return of(machine, expected, format!("{over} more (the load has {members} members)"));
        }
    }
    None
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
            key: 0,
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
            opened: members,
            joined: members,
            left: 0,
            short_by: 0,
            over_by: 0,
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

    /// What was right, after one of the five members of the last machine has left with what it got.
    fn after_one_left() -> Vec<AcrossSeen> {
        let mut all = right();
        all[2].left = 1;
        for (from, (sent, marks)) in
            [(10, Marks::new(77)), (20, Marks::new(u64::MAX / 3))].into_iter().enumerate()
        {
            let copies = sent * 4;
            all[2].from[from] = FromSeen { copies, numbers: sent, marks: marks.times(4) };
        }
        all
    }

    #[test]
    fn a_closed_connection_is_no_error_of_deliveries_and_excuses_none_of_others() {
        assert_eq!(checked(&after_one_left()), Ok(()));
        let (machine, exchange) = wrong_after(|all| {
            *all = after_one_left();
            all[2].from[0].copies -= 1;
        });
        assert_eq!((machine, exchange.expected.contains("each of 4 members")), (2, true));
        let (machine, _) = wrong_after(|all| {
            *all = after_one_left();
            all[1].from[0].copies -= 1;
        });
        assert_eq!(machine, 1, "of another machine");
    }

    #[test]
    fn nothing_is_known_of_a_machine_none_of_whose_members_stayed() {
        let mut all = right();
        all[1].left = 3;
        all[1].from = vec![FromSeen::default(); 3];
        let Inexact::Unknown { machine, because } = checked(&all).unwrap_err() else {
            panic!("blames the server");
        };
        assert_eq!(machine, 1);
        assert!(because.contains("closed the connections of 3"), "{because}");
    }

    #[test]
    fn too_few_listeners_are_excused_only_by_members_elsewhere_that_left() {
        let (machine, exchange) = wrong_after(|all| all[1].short_by = 1);
        assert_eq!((machine, exchange.received.contains("1 fewer")), (1, true), "{exchange:?}");
        let mut all = after_one_left();
        all[1].short_by = 1;
        assert_eq!(checked(&all), Ok(()));
        all[1].short_by = 2;
        assert!(checked(&all).is_err());
        let mut own = after_one_left();
        own[2].short_by = 1;
        assert!(checked(&own).is_err(), "its processes know of their own members");
    }

    #[test]
    fn too_many_listeners_are_excused_only_by_more_connections_elsewhere() {
        let (machine, exchange) = wrong_after(|all| all[0].over_by = 1_000);
        assert_eq!((machine, exchange.received.contains("1000 more")), (0, true), "{exchange:?}");
        let mut all = right();
        (all[0].over_by, all[1].opened) = (2, 5);
        assert_eq!(checked(&all), Ok(()));
        all[0].over_by = 3;
        assert!(checked(&all).is_err());
    }

    #[test]
    fn the_load_waits_until_all_copies_have_come() {
        let progress = |copies| {
            [(0, 3, 0), (1, 0, copies), (2, 0, 15)]
                .map(|(of, sent, copies)| (of, AcrossProgress { sent, copies, left: 0 }))
        };
        let owes = |all: [(usize, AcrossProgress); 3]| {
            super::owes(&machines(), all.iter().map(|(of, one)| (of, one)))
        };
        assert!(owes(progress(0)) && owes(progress(8)));
        assert!(!owes(progress(9)) && !owes(progress(10)));
        let mut without_one = progress(6);
        without_one[1].1.left = 1;
        assert!(!owes(without_one), "it waits for nothing for a member that left");
        without_one[1].1.copies = 5;
        assert!(owes(without_one));
    }
}
