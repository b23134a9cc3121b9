//! `hash`: each request reads a file and hashes it as often as requested (workload 4).
//!
//! With a salt, each digest covers the previous digest and then the file, so that no result can be
//! reused for another request: d₀ = the ASCII bytes of the salt, dᵢ = SHA-256(dᵢ₋₁ ‖ the file's
//! bytes).

use crate::{
    CallOutcome, Flow, Job, Now,
    http::{Form, Resource},
};
use regatta_proto::http1::{Date, Reply, Status};
use ring::digest::{Context, Digest, SHA256, SHA256_OUTPUT_LEN, digest};
use std::{
    ffi::{CStr, CString},
    hint::black_box,
    io,
    os::unix::ffi::OsStrExt,
    path::Path,
    sync::Arc,
};

/// The resource.
#[derive(Clone, Debug)]
pub struct Hash {
    file: Arc<CStr>,
}

impl Hash {
    /// Hashes `file`.
    ///
    /// # Errors
    /// The file name contains a zero byte.
    pub fn new(file: &Path) -> io::Result<Self> {
        Ok(Hash { file: CString::new(file.as_os_str().as_bytes())?.into() })
    }
}

/// Maximum value of `n`.
const MOST: u32 = 100_000;

/// The largest `n` of a short job: 64 KiB take a quarter of a millisecond with the CPU's SHA
/// instructions.
const SHORT: u32 = 8;

const BAD_N: &[u8] = b"n must be given once, an integer from 1 to 100000: /hash?n=1000.";

const BAD_SALT: &[u8] =
    b"salt must be given at most once, 1 to 32 lower-case hex digits: /hash?n=1&salt=c0ffee.";

impl<F: Form> Resource<F> for Hash {
    const PATH: &'static str = "/hash";
    type Job = Hashing<F>;
    type Local = ();

    #[inline]
    fn get(
        &mut self,
        (): &mut (),
        query: Option<&str>,
        form: F,
        date: &Date,
        reply: &mut Vec<u8>,
    ) -> CallOutcome<Hashing<F>> {
        let bad = match (query.and_then(times), query.map_or(Ok(None), salt)) {
            (Some(n), Ok(salt)) => {
                return CallOutcome::Needs(Hashing { file: Arc::clone(&self.file), n, salt, form });
            }
            (None, _) => BAD_N,
            (_, Err(BadSalt)) => BAD_SALT,
        };
        form.write(&Reply::text(Status::BadRequest, bad), date, reply);
        form.flow().into()
    }
}

/// Returns the `n` of a query if it occurs once and is valid. Other parameters are ignored.
fn times(query: &str) -> Option<u32> {
    let mut values = query.split('&').filter_map(|parameter| parameter.strip_prefix("n="));
    let (Some(n), None) = (values.next(), values.next()) else { return None };
    // `parse` would also accept a sign.
    let digits = n.bytes().all(|byte| byte.is_ascii_digit());
    n.parse().ok().filter(|n| digits && (1..=MOST).contains(n))
}

/// Maximum length of a salt, in digits.
const LONGEST_SALT: usize = 32;

/// A salt, as ASCII digits.
#[derive(Clone, Copy, Debug)]
struct Salt {
    digits: [u8; LONGEST_SALT],
    length: usize,
}

/// The query has an invalid salt.
#[derive(Debug, PartialEq, Eq)]
struct BadSalt;

impl Salt {
    fn bytes(&self) -> &[u8] {
        &self.digits[..self.length]
    }
}

/// Returns the salt of a query, if it has one.
fn salt(query: &str) -> Result<Option<Salt>, BadSalt> {
    let mut values = query.split('&').filter_map(|parameter| parameter.strip_prefix("salt="));
    let Some(salt) = values.next() else { return Ok(None) };
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let length = salt.len();
    if values.next().is_some()
        || !(1..=LONGEST_SALT).contains(&length)
        || !salt.bytes().all(is_digit)
    {
        return Err(BadSalt);
    }
    let mut digits = [0; LONGEST_SALT];
    digits[..length].copy_from_slice(salt.as_bytes());
    Ok(Some(Salt { digits, length }))
}

/// The job of one reply.
#[derive(Debug)]
pub struct Hashing<F> {
    file: Arc<CStr>,
    n: u32,
    salt: Option<Salt>,
    form: F,
}

impl<F: Form> Job for Hashing<F> {
    fn file(&self) -> &Arc<CStr> {
        &self.file
    }

    fn is_short(&self) -> bool {
        self.n <= SHORT
    }

    fn finish(self, now: Now, file: io::Result<&[u8]>, reply: &mut Vec<u8>) -> Flow {
        let Hashing { n, salt, form, .. } = self;
        // The date is that of the completed reply, not of the request (RFC 9110, 6.6.1).
        let date = Date::at(now.unix_s);
        let mut write = |status, text: &[u8]| form.write(&Reply::text(status, text), &date, reply);
        match file {
            Ok(bytes) => write(Status::Ok, &hashed(bytes, n, salt)),
            Err(error) => {
                let why = format!("The file cannot be read: {error}.");
                write(Status::InternalServerError, why.as_bytes());
            }
        }
        form.flow()
    }
}

/// Computes the digest `n` times; `n` is at least 1. Returns the last one in lower-case hex.
fn hashed(bytes: &[u8], n: u32, salt: Option<Salt>) -> [u8; 2 * SHA256_OUTPUT_LEN] {
    let last = match salt {
        Some(salt) => chained(bytes, n, &salt),
        None => repeated(bytes, n),
    };
    let mut hex = [0; 2 * SHA256_OUTPUT_LEN];
    for (digits, byte) in hex.chunks_exact_mut(2).zip(last.as_ref()) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        digits[0] = DIGITS[usize::from(byte >> 4)];
        digits[1] = DIGITS[usize::from(byte & 15)];
    }
    hex
}

/// Computes the same digest `n` times.
fn repeated(bytes: &[u8], n: u32) -> Digest {
    let mut last = digest(&SHA256, black_box(bytes));
    for _ in 1..n {
        // `black_box` keeps the compiler from hoisting the digest out of the loop.
        last = digest(&SHA256, black_box(bytes));
    }
    last
}

/// Computes a chain of digests, each covering the previous one. Returns the last.
fn chained(bytes: &[u8], n: u32, salt: &Salt) -> Digest {
    let over = |before: &[u8]| {
        let mut context = Context::new(&SHA256);
        context.update(before);
        context.update(bytes);
        context.finish()
    };
    (1..n).fold(over(salt.bytes()), |last, _| over(last.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_proto::http1::{Terms, Version};
    use std::time::Instant;

    #[test]
    fn computes_the_digests_of_the_standard_for_any_n() {
        // FIPS 180-4, examples.
        let abc = b"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let none = b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        for n in [1, 2, 1000] {
            assert_eq!(&hashed(b"abc", n, None), abc);
            assert_eq!(&hashed(b"", n, None), none);
        }
    }

    /// Computed with another program: `printf 'c0ffee%s' abc | sha256sum`, then that digest, as
    /// bytes, followed by `abc`.
    #[test]
    fn with_a_salt_each_digest_covers_the_previous_one() {
        let salted = |n| {
            let salt = salt("n=1&salt=c0ffee").unwrap();
            String::from_utf8(hashed(b"abc", n, salt).to_vec()).unwrap()
        };
        assert_eq!(salted(1), "f023547dfa0252d98f00a3f8961fc1967a54341b8e41f6338a3d31a66d1e4eee");
        assert_eq!(salted(2), "a1de488a26329d3b667332fc1dcb2ef85197ee0d5fd881d00a32eff4724de625");
        assert_eq!(
            salted(1000),
            "ad59f8c0e69ea5c3dd76cd08c776eaa246661f143c421fb33238b6e9fcd595b1"
        );
    }

    #[test]
    fn a_salt_has_1_to_32_lower_case_hex_digits() {
        let of = |query: &str| salt(query).map(|salt| salt.map(|salt| salt.bytes().to_vec()));
        let longest = "0123456789abcdef".repeat(2);
        assert_eq!(of("n=1"), Ok(None));
        assert_eq!(of("salt=0"), Ok(Some(b"0".to_vec())));
        assert_eq!(of(&format!("salt={longest}&n=1")), Ok(Some(longest.clone().into_bytes())));
        for bad in ["", "G", "A", "0x1", "+1", " 1", "1 ", "%30", &(longest + "0"), "1&salt=1"] {
            assert_eq!(of(&format!("n=1&salt={bad}")), Err(BadSalt), "{bad}");
        }
    }

    #[test]
    fn a_reply_has_the_date_of_its_completion() {
        let now = |unix_s| Now { instant: Instant::now(), unix_s };
        let mut hash = Hash::new(Path::new("file")).unwrap();
        let terms = Terms { version: Version::Http11, head_only: false, keep_alive: true };
        let (asked, mut reply) = (Date::at(784_111_777), Vec::new());
        let CallOutcome::Needs(job) = hash.get(&mut (), Some("n=1"), terms, &asked, &mut reply)
        else {
            panic!("the reply must need the file");
        };
        assert_eq!(job.finish(now(784_111_780), Ok(b"abc"), &mut reply), Flow::Continue);
        let text = String::from_utf8(reply).unwrap();
        assert!(text.contains("\r\nDate: Sun, 06 Nov 1994 08:49:40 GMT\r\n"), "{text}");
    }

    #[test]
    fn n_must_be_a_plain_integer_within_its_bounds() {
        for (query, n) in [("n=1", 1), ("n=100000", 100_000), ("n=007", 7), ("a=2&n=5&nn=6", 5)] {
            assert_eq!(times(query), Some(n), "{query}");
        }
        let bad = "|n|n=|n=0|n=100001|n=4294967297|n=99999999999999999999|n=+1|n=-1|n=1.0|n=1e3|\
                   n= 1|n=1 |n=0x1|n=%31|n=one|N=1|n=1&n=1|n=1&n=|n=1;m=2|m=n=1";
        for query in bad.split('|') {
            assert_eq!(times(query), None, "{query}");
        }
    }
}
