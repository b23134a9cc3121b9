//! A client that tries to fill the proxy's memory.

use rand::{Rng, rngs::SmallRng, seq::IndexedRandom};
use regatta_proto::resp::write_command;

/// A client that tries to fill the proxy's memory. Its replies are not checked.
pub struct Pest {
    pub kind: Kind,
    sent: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sends a request that never ends.
    Partial,
    /// Sends large requests instead of a password.
    Stranger,
    /// Reads no replies.
    Deaf,
    /// Queues commands in a transaction, and never executes them.
    Queuer,
    /// Subscribes to many long names.
    Subscriber,
}

impl Kind {
    pub const ALL: [Kind; 5] =
        [Kind::Partial, Kind::Stranger, Kind::Deaf, Kind::Queuer, Kind::Subscriber];
}

/// The most bytes that one pest sends.
const MOST: usize = 3_000_000;

impl Pest {
    /// The size of the longest request that it completes, in bytes.
    pub const LONGEST: usize = 41_000;

    pub fn new(random: &mut SmallRng) -> Self {
        Pest { kind: *Kind::ALL.choose(random).unwrap_or(&Kind::Partial), sent: 0 }
    }

    /// Sends more.
    pub fn send(&mut self, random: &mut SmallRng, password: Option<&[u8]>, out: &mut Vec<u8>) {
        if self.sent > MOST {
            return;
        }
        let start = out.len();
        if self.sent == 0
            && self.kind != Kind::Stranger
            && let Some(password) = password
        {
            write_command([b"AUTH", password], out);
        }
        let large = vec![b'x'; random.random_range(1..40_000)];
        let number = self.sent.to_string();
        match self.kind {
            Kind::Partial | Kind::Stranger if self.sent == 0 => {
                let size = *[1000, 16_000, 10_000_000].choose(random).unwrap_or(&1000);
                out.extend_from_slice(
                    format!("*3\r\n$3\r\nSET\r\n$4\r\npest\r\n${size}\r\n").as_bytes(),
                );
                out.extend_from_slice(&large[..large.len().min(size)]);
            }
            Kind::Partial => out.extend_from_slice(&large),
            Kind::Stranger => write_command([&b"AUTH"[..], &large[..large.len() / 3]], out),
            Kind::Deaf => write_command([&b"ECHO"[..], &large], out),
            Kind::Queuer => {
                write_command([&b"MULTI"[..]], out);
                write_command([&b"ECHO"[..], &large], out);
            }
            Kind::Subscriber => {
                let name = [number.as_bytes(), &large].concat();
                write_command([&b"SUBSCRIBE"[..], &name], out);
            }
        }
        self.sent += out.len() - start;
    }
}
