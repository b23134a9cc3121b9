//! Descriptors are closed, and running out of them is reported. Both tests
//! count or use up all descriptors of the process.

use crate::common::{connect, listen, run};
use regatta_green as green;
use regatta_testkit::machine;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io::{Read, Write};
use std::time::Duration;

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn no_descriptor_stays_open_whether_coroutines_end_or_are_unwound() {
    let _alone = machine::alone();
    // The first run may open descriptors that stay open (currently it opens none).
    run(|| {});
    let before = open_descriptors();
    for unwound in [false, true] {
        run(move || {
            let (listener, address) = listen();
            let mut clients: Vec<_> = (0..100).map(|_| connect(address)).collect();
            for client in &mut clients {
                client.write_all(b"x").unwrap();
            }
            for _ in 0..100 {
                let (mut stream, _) = listener.accept().unwrap();
                green::spawn(move || {
                    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 1);
                    assert_eq!(stream.read(&mut [0; 8]).unwrap(), 0);
                })
                .unwrap();
            }
            if unwound {
                green::sleep(Duration::from_millis(5));
                green::shutdown();
                green::sleep(crate::common::LIMIT * 2);
            }
        });
        assert_eq!(open_descriptors(), before, "unwound: {unwound}");
    }
}

#[test]
fn accept_fails_without_descriptors_and_succeeds_later() {
    let _alone = machine::alone();
    run(|| {
        let (listener, address) = listen();
        let client = connect(address);
        let limits = getrlimit(Resource::Nofile);
        let few = Rlimit { current: Some(100), ..limits };
        setrlimit(Resource::Nofile, few).unwrap();
        let fill: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        let errors: Vec<_> = (0..3)
            .map(|_| {
                green::sleep(Duration::from_millis(1));
                listener.accept().err().and_then(|error| error.raw_os_error())
            })
            .collect();
        setrlimit(Resource::Nofile, limits).unwrap();
        drop(fill);
        assert_eq!(errors, [Some(libc::EMFILE); 3]);
        let (stream, peer) = listener.accept().unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
        drop(stream);
    });
}
