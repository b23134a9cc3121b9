//! Requests that each carry their own salt, and replies that can be verified only by repeating the
//! requested work (`hash`). The load keeps the answers while it runs and verifies them after it has
//! ended, so verification costs nothing that is timed.

use super::{expected::Digest, partial_reply::SHOWN};
use crate::{cursor::Cursor, hash_file::HashedFile, script::Script, text::cut};
use rand::{Rng, SeedableRng, rngs::StdRng};
use regatta_record::Exchange;

/// Number of hexadecimal digits of a salt.
pub(in crate::dialects) const DIGITS: usize = 16;

/// Placeholder of a salt in a script.
pub(in crate::dialects) const PLACE: &str = "0000000000000000";

/// Maximum number of answers that a load thread keeps: 3 MiB. Of more answers it keeps a random sample,
/// and the server cannot know which replies are in it.
const MOST_KEPT: usize = 1 << 16;

/// Minimum number of answers that a load thread verifies, if it has that many.
const FEWEST_VERIFIED: usize = 64;

/// How requests get their salts, and how answers are verified.
#[derive(Debug)]
pub(in crate::dialects) struct Salted {
    pub seed: u64,
    /// Number of rounds that each request asks for.
    pub n: u32,
    /// Offset of the salt in a request, in bytes; the same in all requests.
    pub at: usize,
    pub file: HashedFile,
}

/// The salts of a connection's slot.
#[derive(Debug, Default)]
pub(in crate::dialects) struct Salts {
    /// Number of the slot, over all threads and processes.
    slot: u32,
    /// Number of earlier connections in the slot.
    before: u32,
    /// Number of replies received on this connection.
    pub answered: u32,
    /// Requests with their salts, to be written.
    out: Vec<u8>,
}

impl Salts {
    /// Creates the salts of the first connection of a slot.
    pub fn of(slot: u32) -> Self {
        Salts { slot, ..Salts::default() }
    }

    /// Moves on to the next connection of the slot.
    pub fn renew(&mut self) {
        self.before = self.before.wrapping_add(1);
        self.answered = 0;
    }

    /// Returns how many requests were issued on the connection before `exchange`, which is not answered
    /// yet.
    pub fn index(&self, exchange: u32, cursor: &Cursor) -> u32 {
        self.answered.wrapping_add(exchange.wrapping_sub(cursor.answered()))
    }
}

impl Salted {
    /// Returns the salt of the request with this [`Salts::index`].
    pub fn salt(&self, index: u32, salts: &Salts) -> u64 {
        let Salts { slot, before, .. } = *salts;
        let parts = [slot, before, index].map(u64::from);
        parts.into_iter().fold(self.seed, |salt, part| mixed(salt ^ mixed(part)))
    }

    /// Returns the bytes to be written next, with their salts.
    pub fn unsent<'s>(&self, script: &Script, cursor: &Cursor, salts: &'s mut Salts) -> &'s [u8] {
        let bytes = cursor.unsent(script);
        let mut out = std::mem::take(&mut salts.out);
        out.clear();
        out.extend_from_slice(bytes);
        if !bytes.is_empty() {
            let asked = cursor.answered() + cursor.owed();
            let begins = script.begin(asked).request as usize - bytes.len();
            for exchange in cursor.owed_to(script)..asked {
                let digits = digits(self.salt(salts.index(exchange, cursor), salts));
                let at = script.begin(exchange).request as usize + self.at;
                // The first request may be partly written.
                let written = begins.saturating_sub(at).min(DIGITS);
                let from = (at + written).saturating_sub(begins);
                out[from..][..DIGITS - written].copy_from_slice(&digits[written..]);
            }
        }
        salts.out = out;
        &salts.out
    }

    /// Returns a request of the script as it is sent, with its salt.
    pub fn request(&self, request: &[u8], salt: u64) -> Vec<u8> {
        let mut request = request.to_vec();
        request[self.at..][..DIGITS].copy_from_slice(&digits(salt));
        request
    }

    /// Verifies answers in random order: all of them, or until `is_late` returns true, and at least
    /// [`FEWEST_VERIFIED`]. Calls `wrong` for each wrong answer.
    pub fn verify(
        &self,
        script: &Script,
        answers: &mut Answers,
        is_late: &dyn Fn() -> bool,
        wrong: &mut dyn FnMut(Exchange),
    ) {
        // Not seeded, so that a server cannot predict the sample.
        let mut random = StdRng::from_rng(&mut rand::rng());
        let all = answers.kept_count();
        for i in 0..all {
            if i >= FEWEST_VERIFIED && is_late() {
                break;
            }
            answers.kept.swap(i, random.random_range(i..all));
            let Answer { salt, exchange, reply, digest } = answers.kept[i];
            let right = self.file.digest(&digits(salt), self.n);
            if digest != right {
                wrong(Exchange {
                    sent: cut(&self.request(script.request(exchange), salt), SHOWN),
                    expected: format!("status 200, the content {}", hex(&right)),
                    received: format!("the content {}", hex(&digest)),
                    reply_index: reply.into(),
                });
            }
        }
    }
}

/// A received answer.
#[derive(Clone, Copy, Debug)]
pub(in crate::dialects) struct Answer {
    pub salt: u64,
    /// Its exchange in the script.
    pub exchange: u32,
    /// Number of replies before it on its connection.
    pub reply: u32,
    pub digest: Digest,
}

/// The answers that a load thread keeps.
#[derive(Debug)]
pub(in crate::dialects) struct Answers {
    kept: Vec<Answer>,
    /// Number of answers received.
    seen: u64,
    random: StdRng,
}

impl Answers {
    /// Allocates room for all answers that are kept. Writes to the memory, to avoid page faults later.
    pub fn new() -> Self {
        let nothing = Answer { salt: u64::MAX, exchange: 0, reply: 0, digest: [0xff; 32] };
        let random = StdRng::from_rng(&mut rand::rng());
        Answers { kept: vec![nothing; MOST_KEPT], seen: 0, random }
    }

    /// Keeps an answer, possibly in place of another, such that each received answer is kept with the
    /// same probability (Vitter, "Random Sampling with a Reservoir", 1985, algorithm R).
    pub fn keep(&mut self, answer: Answer) {
        let place = match self.seen < MOST_KEPT as u64 {
            true => self.seen,
            false => self.random.random_range(0..=self.seen),
        };
        self.seen += 1;
        if let Some(kept) = self.kept.get_mut(place as usize) {
            *kept = answer;
        }
    }

    /// Number of answers that are kept.
    fn kept_count(&self) -> usize {
        self.seen.min(MOST_KEPT as u64) as usize
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, 2014), after its step: a bijection.
fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Formats a salt as it is sent.
pub(in crate::dialects) fn digits(salt: u64) -> [u8; DIGITS] {
    std::array::from_fn(|i| b"0123456789abcdef"[(salt >> (60 - 4 * i) & 15) as usize])
}

fn hex(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
