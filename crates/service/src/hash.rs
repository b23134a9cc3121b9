//! `hash`: a file is read for every request, and hashed as often as the request asks (workload 4).

use crate::{
    Called, Flow, Job, Now,
    http::{self, Resource},
};
use regatta_proto::http1::{Date, Reply, Status, Terms};
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
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
    /// The name has a byte 0 in it.
    pub fn new(file: &Path) -> io::Result<Self> {
        Ok(Hash { file: CString::new(file.as_os_str().as_bytes())?.into() })
    }
}

/// Most that a request may ask for.
const MOST: u32 = 100_000;

/// As often as this, 64 KiB take a quarter of a millisecond with the CPU's instructions.
const SHORT: u32 = 8;

const BAD_N: &[u8] = b"n must be given once, an integer from 1 to 100000: /hash?n=1000.";

impl Resource for Hash {
    const PATH: &'static str = "/hash";
    type Job = Hashing;
    type Local = ();

    #[inline]
    fn get(
        &mut self,
        (): &mut (),
        query: Option<&str>,
        terms: Terms,
        date: &Date,
        reply: &mut Vec<u8>,
    ) -> Called<Hashing> {
        match query.and_then(times) {
            Some(n) => Called::Needs(Hashing { file: Arc::clone(&self.file), n, terms }),
            None => {
                Reply::text(Status::BadRequest, BAD_N).write(terms, date, reply);
                http::flow(terms).into()
            }
        }
    }
}

/// The `n` of a query, if there is one alone, and a good one. Other parameters are ignored.
fn times(query: &str) -> Option<u32> {
    let mut values = query.split('&').filter_map(|parameter| parameter.strip_prefix("n="));
    let (Some(n), None) = (values.next(), values.next()) else { return None };
    // `parse` takes a sign too.
    let digits = n.bytes().all(|byte| byte.is_ascii_digit());
    n.parse().ok().filter(|n| digits && (1..=MOST).contains(n))
}

/// A reply's need.
#[derive(Debug)]
pub struct Hashing {
    file: Arc<CStr>,
    n: u32,
    terms: Terms,
}

impl Job for Hashing {
    fn file(&self) -> &Arc<CStr> {
        &self.file
    }

    fn is_short(&self) -> bool {
        self.n <= SHORT
    }

    fn finish(self, now: Now, file: io::Result<&[u8]>, reply: &mut Vec<u8>) -> Flow {
        let Hashing { n, terms, .. } = self;
        // A reply is dated when it is there, not when it was asked for (RFC 9110, 6.6.1).
        let date = Date::at(now.unix_s);
        let mut write = |status, text: &[u8]| Reply::text(status, text).write(terms, &date, reply);
        match file {
            Ok(bytes) => write(Status::Ok, &hashed(bytes, n)),
            Err(error) => {
                let why = format!("The file cannot be read: {error}.");
                write(Status::InternalServerError, why.as_bytes());
            }
        }
        http::flow(terms)
    }
}

/// The digest in hex, computed `n` times.
fn hashed(bytes: &[u8], n: u32) -> [u8; 2 * SHA256_OUTPUT_LEN] {
    let mut last = digest(&SHA256, black_box(bytes));
    for _ in 1..n {
        // `black_box` keeps the compiler from hoisting the digest out of the loop.
        last = digest(&SHA256, black_box(bytes));
    }
    let mut hex = [0; 2 * SHA256_OUTPUT_LEN];
    for (digits, byte) in hex.chunks_exact_mut(2).zip(last.as_ref()) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        digits[0] = DIGITS[usize::from(byte >> 4)];
        digits[1] = DIGITS[usize::from(byte & 15)];
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;
    use regatta_proto::http1::Version;
    use std::time::Instant;

    #[test]
    fn digests_of_the_standard_however_often() {
        // FIPS 180-4, examples.
        let abc = b"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let none = b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        for n in [1, 2, 1000] {
            assert_eq!(&hashed(b"abc", n), abc);
            assert_eq!(&hashed(b"", n), none);
        }
    }

    #[test]
    fn a_reply_is_dated_when_it_is_there() {
        let now = |unix_s| Now { instant: Instant::now(), unix_s };
        let mut hash = Hash::new(Path::new("file")).unwrap();
        let terms = Terms { version: Version::Http11, head_only: false, keep_alive: true };
        let (asked, mut reply) = (Date::at(784_111_777), Vec::new());
        let Called::Needs(job) = hash.get(&mut (), Some("n=1"), terms, &asked, &mut reply) else {
            panic!("it needs the file");
        };
        assert_eq!(job.finish(now(784_111_780), Ok(b"abc"), &mut reply), Flow::Continue);
        let text = String::from_utf8(reply).unwrap();
        assert!(text.contains("\r\nDate: Sun, 06 Nov 1994 08:49:40 GMT\r\n"), "{text}");
    }

    #[test]
    fn n_is_one_plain_integer_within_its_bounds() {
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
