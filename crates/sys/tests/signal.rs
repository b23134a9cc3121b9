//! The signal that ends the input of the connection that is served.

use regatta_sys::signal::{end_input_on_signal, while_served};
use signal_hook::{consts::SIGUSR1, low_level::raise};
use std::{
    io::{ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    panic::catch_unwind,
    sync::Mutex,
};

/// The signal is for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

fn pair() -> (UnixStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (ours, theirs)
}

/// To this thread, and handled when it returns (raise(3)).
fn signal() {
    raise(SIGUSR1).unwrap();
}

#[test]
fn ends_the_input_of_the_connection_that_is_served_and_of_no_other() {
    let _alone = ALONE.lock().unwrap();
    end_input_on_signal().unwrap();
    let ((served, mut client), (other, _open)) = (pair(), pair());
    while_served(&served, signal);
    client.write_all(b"x").unwrap_err();
    assert_eq!((&served).read(&mut [0]).unwrap(), 0);
    assert_eq!((&other).read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn leaves_the_connection_alone_once_serving_it_has_returned_or_panicked() {
    let _alone = ALONE.lock().unwrap();
    end_input_on_signal().unwrap();
    let (served, _client) = pair();
    while_served(&served, || ());
    signal();
    assert_eq!((&served).read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    catch_unwind(|| while_served(&served, || panic!("on purpose"))).unwrap_err();
    signal();
    assert_eq!((&served).read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
}
