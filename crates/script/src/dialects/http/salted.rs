//! Requests that each carry a salt of their own, and replies that can be verified only by doing the
//! work that was asked for (`hash`). The load keeps the answers while it runs and verifies them when it
//! has ended, so that verification costs nothing that is timed.

use super::{expected::Digest, part::SHOWN};
use crate::{cursor::Cursor, hash_file::HashedFile, script::Script, text::cut};
use rand::{Rng, SeedableRng, rngs::StdRng};
use regatta_record::Exchange;

/// Digits of a salt.
pub(super) const DIGITS: usize = 16;

/// What stands in a script in place of a salt.
pub(super) const PLACE: &str = "0000000000000000";

/// Most answers that a load thread keeps: 3 MiB. Of more than that it keeps a random sample, of which
/// the server cannot know which replies are in it.
const MOST_KEPT: usize = 1 << 16;

/// Answers that a load thread verifies at least, if so many came.
const FEWEST_VERIFIED: usize = 64;

/// How requests get their salts, and what the right answer is.
#[derive(Debug)]
pub(super) struct Salted {
    pub seed: u64,
    /// Digests that each request asks for.
    pub n: u32,
    /// Where the salt stands in a request, in bytes from its beginning. The same in all.
    pub at: usize,
    pub file: HashedFile,
}

/// The salts of a connection's slot.
#[derive(Debug, Default)]
pub(super) struct Salts {
    /// The slot, over all threads and processes.
    slot: u32,
    /// Connections before this one in the slot.
    before: u32,
    /// Replies that came on this connection.
    pub answered: u32,
    /// Requests with their salts, as they are to be written.
    out: Vec<u8>,
}

impl Salts {
    /// For the first connection of a slot.
    pub fn of(slot: u32) -> Self {
        Salts { slot, ..Salts::default() }
    }

    /// For the next connection of the slot.
    pub fn renew(&mut self) {
        self.before = self.before.wrapping_add(1);
        self.answered = 0;
    }

    /// How many requests were asked on the connection before `exchange`, which was not answered yet.
    pub fn index(&self, exchange: u32, cursor: &Cursor) -> u32 {
        self.answered.wrapping_add(exchange.wrapping_sub(cursor.answered()))
    }
}

impl Salted {
    /// The salt of the request of this [`Salts::index`].
    pub fn salt(&self, index: u32, salts: &Salts) -> u64 {
        let Salts { slot, before, .. } = *salts;
        let parts = [slot, before, index].map(u64::from);
        parts.into_iter().fold(self.seed, |salt, part| mixed(salt ^ mixed(part)))
    }

    /// What is to be written next, with its salts.
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
                // The first request may have been written in part.
                let written = begins.saturating_sub(at).min(DIGITS);
                let from = (at + written).saturating_sub(begins);
                out[from..][..DIGITS - written].copy_from_slice(&digits[written..]);
            }
        }
        salts.out = out;
        &salts.out
    }

    /// A request of the script, as it is sent.
    pub fn request(&self, request: &[u8], salt: u64) -> Vec<u8> {
        let mut request = request.to_vec();
        request[self.at..][..DIGITS].copy_from_slice(&digits(salt));
        request
    }

    /// Verifies answers in a random order: all of them, or as many as `is_late` permits, and
    /// [`FEWEST_VERIFIED`] at least. Calls `wrong` for each that is not right.
    pub fn verify(
        &self,
        script: &Script,
        answers: &mut Answers,
        is_late: &dyn Fn() -> bool,
        wrong: &mut dyn FnMut(Exchange),
    ) {
        // Nobody can foresee which are chosen.
        let mut random = StdRng::from_rng(&mut rand::rng());
        let all = answers.came();
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

/// An answer that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub salt: u64,
    /// Which exchange of the script it belongs to.
    pub exchange: u32,
    /// Replies before it on its connection.
    pub reply: u32,
    pub digest: Digest,
}

/// The answers that a load thread keeps.
#[derive(Debug)]
pub(super) struct Answers {
    kept: Vec<Answer>,
    /// How many came.
    seen: u64,
    random: StdRng,
}

impl Answers {
    /// Room for all that are kept. Its memory is touched, so that no page is missing later.
    pub fn new() -> Self {
        let nothing = Answer { salt: u64::MAX, exchange: 0, reply: 0, digest: [0xff; 32] };
        let random = StdRng::from_rng(&mut rand::rng());
        Answers { kept: vec![nothing; MOST_KEPT], seen: 0, random }
    }

    /// Keeps an answer, or lets it take the place of another one, such that each that came is kept with
    /// the same probability (Vitter, "Random Sampling with a Reservoir", 1985, algorithm R).
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

    /// How many of the kept ones came.
    fn came(&self) -> usize {
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

/// A salt as it is sent.
fn digits(salt: u64) -> [u8; DIGITS] {
    std::array::from_fn(|i| b"0123456789abcdef"[(salt >> (60 - 4 * i) & 15) as usize])
}

fn hex(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
