//! 100,000 coroutines at once. The test measures the memory of the process.

use crate::common::{receive, run};
use regatta_green as green;
use regatta_testkit::machine;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const COUNT: usize = 100_000;

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size()
}

#[test]
fn a_hundred_thousand_wait_wake_and_end() {
    let _alone = machine::alone();
    run(|| {
        let before = resident();
        let ran = Rc::new(Cell::new(0));
        let mut senders = Vec::new();
        for number in 0..COUNT {
            let ran = ran.clone();
            if number % 2 == 0 {
                let (mailbox, sender) = green::mailbox();
                senders.push(sender);
                green::spawn(move || {
                    assert_eq!(receive(&mailbox), Some(number));
                    ran.set(ran.get() + 1);
                })
                .unwrap();
            } else {
                green::spawn(move || {
                    green::sleep(Duration::from_millis(2_000 + number as u64 % 1_000));
                    ran.set(ran.get() + 1);
                })
                .unwrap();
            }
        }
        green::yield_now();
        assert_eq!(ran.get(), 0, "all of them wait");
        let each = (resident() - before) / COUNT;
        println!("{each} bytes of resident memory per waiting coroutine");
        let most = 2 * rustix::param::page_size() + 1024;
        assert!(each < most, "{each} bytes per coroutine: more than two pages of stack");
        for (index, sender) in senders.into_iter().enumerate() {
            assert!(sender.send(2 * index));
        }
        green::sleep(Duration::from_millis(3_500));
        assert_eq!(ran.get(), COUNT);
    });
}
