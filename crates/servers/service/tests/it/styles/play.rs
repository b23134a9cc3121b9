//! Runs programs in every style against scripted clients. There are no sockets and no clock: time
//! advances only while a program waits.

use crate::styles::{
    callback::{AtOnce, Elsewhere, callback},
    client::Client,
    peer::{Blocking, Peer, Waiting},
    played::Played,
};
use futures_lite::future::block_on;
use regatta_service::{Limits, Program, ServiceProgram, SessionFactory, by_hand, double};
use regatta_testkit::pieces::pieces;
use std::time::Duration;

/// The limits of most plays. Both are whole multiples of all intervals derived from them.
pub const LIMITS: Limits = Limits { idle: secs(64), request: secs(10) };

pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The styles, and the kinds of streams that they distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Reads are the only way to wait; jobs run in place: `fork`, `prefork`, `threads`.
    Sequential,
    /// Waits without a buffer; long jobs run elsewhere: `green`.
    Green,
    Asynchronous,
    Callback,
}

pub const STYLES: [Style; 4] =
    [Style::Sequential, Style::Green, Style::Asynchronous, Style::Callback];

/// Runs a program against a client.
pub fn play(style: Style, program: &impl Program, client: &Client, limits: Limits) -> Played {
    let mut peer = Peer::new(client);
    let result = match style {
        Style::Sequential | Style::Green => {
            let mut stream = Blocking::new(&mut peer, (), limits, style == Style::Green);
            program.sequential(&mut stream, limits)
        }
        Style::Asynchronous => block_on(program.asynchronous(Waiting(&mut peer, ()), limits)),
        Style::Callback => {
            callback(program, &mut peer, limits, &mut AtOnce::default());
            Ok(())
        }
    };
    peer.over(result)
}

/// Runs a client in every style, against both forms of `double`.
pub fn play_double(client: &Client, check: impl Fn(&Played, &str)) {
    for style in STYLES {
        let played = play(style, &ServiceProgram(double::Double), client, LIMITS);
        check(&played, &format!("{style:?}, shared"));
        let played = play(style, &by_hand::Double, client, LIMITS);
        check(&played, &format!("{style:?}, by hand"));
    }
}

/// Runs the callback style with workers that finish jobs in any order. `choices` decides which job
/// is next, and when.
pub fn play_with_workers<F: SessionFactory + Clone>(
    start: &F,
    client: &Client,
    limits: Limits,
    shorts_too: bool,
    choices: &[usize],
) -> Played {
    let mut peer = Peer::new(client);
    let choices = choices.iter().copied().cycle();
    callback(start, &mut peer, limits, &mut Elsewhere { jobs: Vec::new(), shorts_too, choices });
    peer.over(Ok(()))
}

/// Checks that every style answers the pieces with `expected`.
pub fn all_styles(program: impl Program, pieces: &[Vec<u8>], expected: &[u8]) {
    for style in STYLES {
        let played = play(style, &program, &Client::of(pieces), LIMITS);
        assert_eq!(played.error, None, "{style:?}");
        same(&played.output(), expected, style);
    }
}

/// Compares bytes and shows a difference as text.
pub fn same(got: &[u8], expected: &[u8], what: impl std::fmt::Debug) {
    if got != expected {
        assert_eq!(got.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{what:?}");
    }
}

/// Splits `input` into pieces of these sizes, repeatedly.
pub fn cut(input: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    pieces(input, cuts).map(<[u8]>::to_vec).collect()
}
