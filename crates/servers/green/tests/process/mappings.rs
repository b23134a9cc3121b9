//! With `mprotect` guard pages, the kernel's limit on mappings limits the number of coroutines, and
//! the error reports it. The test uses up all mappings of the process.

use crate::common::run_with;
use regatta_green as green;
use regatta_testkit::machine;
use std::io::ErrorKind;

#[test]
fn the_limit_on_mappings_is_reported() {
    let _alone = machine::alone();
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    let max_coroutines = 100_000;
    let guard = green::Guard::Mprotect;
    run_with(green::Config { stack_size: 16 * 1024, max_coroutines, guard }, move || {
        let mut count = 1;
        let error = loop {
            match green::spawn(|| ()) {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        if limit / 2 > max_coroutines {
            assert_eq!(count, max_coroutines, "the limit on mappings is not reached");
        } else {
            assert!(count > limit / 2 - 500 && count <= limit / 2, "{count} of {limit}");
            assert!(error.to_string().contains("raise vm.max_map_count"), "{error}");
        }
    });
}
