//! The signal that shuts down the input of the current connection.

use regatta_sys::signal::{end_input_on_signal, while_served};
use signal_hook::{consts::SIGUSR1, low_level::raise};
use std::{
    io::{ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    panic::catch_unwind,
    sync::Mutex,
};

/// Serialises the tests, because the signal affects the whole process.
static ALONE: Mutex<()> = Mutex::new(());

fn pair() -> (UnixStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (ours, theirs)
}

/// Sends the signal to this thread. It is handled when this returns (raise(3)).
fn signal() {
    raise(SIGUSR1).unwrap();
}

#[test]
fn the_signal_shuts_down_the_input_of_only_the_served_connection() {
    let _alone = ALONE.lock().unwrap();
    end_input_on_signal().unwrap();
    let ((served, mut client), (other, _open)) = (pair(), pair());
    while_served(&served, signal);
    client.write_all(b"x").unwrap_err();
    assert_eq!((&served).read(&mut [0]).unwrap(), 0);
    assert_eq!((&other).read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn the_signal_ignores_a_connection_after_serving_has_returned_or_panicked() {
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
