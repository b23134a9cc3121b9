//! Hot keys: which keys clients request most at present, from samples.
//!
//! A core samples one of each 64 requests, at a random place among them, so that a pattern in the requests does not hide
//! a key. It adds the keys to its summary of the present window of ten seconds. The page merges the present windows of
//! all cores and those before, which have the same start for all cores: so it shows the last ten to twenty seconds, and
//! the promises of [`space_saving`](super::space_saving) hold for exactly the samples of this time.

use super::space_saving::{Frequent, Key, LONGEST, Summary, merged};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::{
    fmt::Write,
    hash::RandomState,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

/// One of so many requests is sampled.
const ONE_IN: u32 = 64;

/// The length of a window, in seconds.
const WINDOW_S: u64 = 10;

/// Maximum number of keys that are counted of a request.
const KEYS_OF_REQUEST: usize = 64;

/// The hot keys of all cores.
#[derive(Debug)]
pub(crate) struct HotKeys {
    clock: WindowClock,
    /// The windows of each core that samples.
    cores: Mutex<Vec<Weak<Mutex<Windows>>>>,
}

/// What all cores share: how keys are hashed, and when the first window began.
#[derive(Clone, Debug)]
struct WindowClock {
    hasher: RandomState,
    start: Instant,
}

impl WindowClock {
    /// The number of the window at this time.
    fn window(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.start).as_secs() / WINDOW_S
    }
}

/// The samples of a core in the present window, and in the one before.
#[derive(Debug)]
struct Windows {
    number: u64,
    present: Summary,
    before: Summary,
}

impl Windows {
    /// Begins the window with this number, unless it is the present one.
    fn advance(&mut self, number: u64) {
        if number <= self.number {
            return;
        }
        std::mem::swap(&mut self.present, &mut self.before);
        self.present.clear();
        if number > self.number + 1 {
            self.before.clear();
        }
        self.number = number;
    }
}

impl HotKeys {
    /// Without samples.
    pub(crate) fn new(start: Instant) -> Self {
        let clock = WindowClock { hasher: RandomState::new(), start };
        HotKeys { clock, cores: Mutex::default() }
    }

    /// Returns what samples the requests of one more core. `seed`: of the places of the samples.
    pub(crate) fn sampler(&self, seed: u64) -> Sampler {
        let windows = Windows { number: 0, present: Summary::new(), before: Summary::new() };
        let windows = Arc::new(Mutex::new(windows));
        let mut cores = lock(&self.cores);
        // Those of cores that no longer sample, after a reload.
        cores.retain(|core| core.strong_count() > 0);
        cores.push(Arc::downgrade(&windows));
        let mut random = SmallRng::seed_from_u64(seed);
        let place = random.random_range(0..ONE_IN);
        let (until, rest) = (place + 1, ONE_IN - 1 - place);
        Sampler { windows, clock: self.clock.clone(), until, rest, random }
    }

    /// The page as JSON. `unix_s`: the Unix time of `now`, in seconds.
    pub(crate) fn json(&self, now: Instant, unix_s: u64) -> String {
        let window = self.clock.window(now);
        let first = window.saturating_sub(1);
        let since = self.clock.start + Duration::from_secs(first * WINDOW_S);
        let seconds = now.saturating_duration_since(since).as_secs_f64();
        let (samples, keys) = self.frequent(first);
        let since_unix_s = unix_s.saturating_sub(seconds as u64);
        let mut text = format!(
            "{{\"sampled_one_in\":{ONE_IN},\"since_unix_s\":{since_unix_s},\"seconds\":{seconds:.1},\
             \"samples\":{samples},\"keys\":["
        );
        for (at, key) in keys.iter().enumerate() {
            text.push_str(if at == 0 { "\n" } else { ",\n" });
            add(key, &mut text);
        }
        text.push_str("]}\n");
        text
    }

    /// The number of samples since the window `first` began, and the most frequent keys among them.
    fn frequent(&self, first: u64) -> (u64, Vec<Frequent>) {
        let cores: Vec<Arc<Mutex<Windows>>> =
            lock(&self.cores).iter().filter_map(Weak::upgrade).collect();
        // A core does not wait for the page, so each is locked only while its samples are copied.
        let mut summaries = Vec::new();
        for core in &cores {
            let windows = lock(core);
            if windows.number >= first {
                summaries.push(windows.present.clone());
            }
            if windows.number > first {
                summaries.push(windows.before.clone());
            }
        }
        merged(&summaries)
    }
}

/// Adds a key as an object in JSON. A key may have any bytes: those that are no printable characters of ASCII are
/// written as in a Rust or C string, e.g. `\xff`, so the text has no others.
fn add(frequent: &Frequent, text: &mut String) {
    let Frequent { key, count, error } = frequent;
    let shown = key.start().escape_ascii().to_string().replace('\\', "\\\\").replace('"', "\\\"");
    let length = key.length();
    // Writing to a string does not fail.
    let _ = write!(text, "{{\"key\":\"{shown}\",\"length\":{length}");
    if length > LONGEST {
        let _ = write!(text, ",\"hash\":\"{:016x}\"", key.hash());
    }
    let _ = write!(text, ",\"samples\":{count},\"error\":{error}}}");
}

/// Samples the requests of a core.
#[derive(Debug)]
pub(crate) struct Sampler {
    windows: Arc<Mutex<Windows>>,
    clock: WindowClock,
    /// The number of requests up to the next sample, that one included.
    until: u32,
    /// The number of requests after it that belong to the same 64.
    rest: u32,
    random: SmallRng,
}

impl Sampler {
    /// Counts a request. Returns whether it is to be sampled.
    #[inline]
    pub(crate) fn is_next(&mut self) -> bool {
        self.until -= 1;
        if self.until > 0 {
            return false;
        }
        let place = self.random.random_range(0..ONE_IN);
        self.until = self.rest + place + 1;
        self.rest = ONE_IN - 1 - place;
        true
    }

    /// Adds the keys of a request. While the page copies the samples, none is added: no core waits for it.
    pub(crate) fn sample<'k>(&mut self, keys: impl Iterator<Item = &'k [u8]>, now: Instant) {
        let Ok(mut windows) = self.windows.try_lock() else { return };
        windows.advance(self.clock.window(now));
        for key in keys.take(KEYS_OF_REQUEST) {
            windows.present.add(Key::new(key, &self.clock.hasher));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_UNIX_S: u64 = 1_700_000_000;

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    /// The page at so many seconds after the start.
    fn page(hot: &HotKeys, seconds: u64) -> String {
        hot.json(after(hot.clock.start, seconds), START_UNIX_S + seconds)
    }

    #[test]
    fn one_of_each_64_requests_is_sampled_at_a_random_place() {
        let hot = HotKeys::new(Instant::now());
        let mut places = [0; ONE_IN as usize];
        let mut sampler = hot.sampler(7);
        for _ in 0..10_000 {
            let block: Vec<usize> = (0..ONE_IN as usize).filter(|_| sampler.is_next()).collect();
            assert_eq!(block.len(), 1, "exactly one of each 64");
            places[block[0]] += 1;
        }
        assert!(places.iter().all(|count| (80..260).contains(count)), "{places:?}");
    }

    #[test]
    fn the_page_has_the_last_two_windows_of_all_cores() {
        let start = Instant::now();
        let hot = HotKeys::new(start);
        let mut cores = [hot.sampler(1), hot.sampler(2)];
        cores[0].sample([&b"old"[..]].into_iter(), after(start, 9));
        cores[0].sample([&b"a"[..], b"a"].into_iter(), after(start, 10));
        cores[1].sample([&b"a"[..], b"b"].into_iter(), after(start, 19));
        let head =
            "{\"sampled_one_in\":64,\"since_unix_s\":1700000000,\"seconds\":19.0,\"samples\":5,";
        assert!(page(&hot, 19).starts_with(head), "{}", page(&hot, 19));
        assert_eq!(
            page(&hot, 25),
            "{\"sampled_one_in\":64,\"since_unix_s\":1700000010,\"seconds\":15.0,\"samples\":4,\
             \"keys\":[\n{\"key\":\"a\",\"length\":1,\"samples\":3,\"error\":0},\n\
             {\"key\":\"b\",\"length\":1,\"samples\":1,\"error\":0}]}\n"
        );
        // A core that has sampled nothing since does not show what is over.
        assert!(page(&hot, 30).ends_with("\"samples\":0,\"keys\":[]}\n"), "{}", page(&hot, 30));
        cores[0].sample([&b"c"[..]].into_iter(), after(start, 31));
        assert!(page(&hot, 31).contains("\"samples\":1,\"keys\":[\n{\"key\":\"c\""));
        let [_, core] = cores;
        drop(core);
        let _third = hot.sampler(3);
        assert_eq!(lock(&hot.cores).len(), 2, "a core that is gone is forgotten");
    }

    #[test]
    fn keys_are_printed_as_printable_text() {
        let start = Instant::now();
        let hot = HotKeys::new(start);
        let long = [b'x'; 70];
        let keys = [&b"\"\\\n\x00\xff\x1b[2J</script>'"[..], "ключ".as_bytes(), &long, b""];
        hot.sampler(1).sample(keys.into_iter(), start);
        // The sampler is gone, and with it its samples.
        assert!(page(&hot, 0).contains("\"samples\":0"));
        let mut sampler = hot.sampler(1);
        sampler.sample(keys.into_iter(), start);
        let page = page(&hot, 0);
        assert!(page.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)), "{page}");
        for key in [
            r#"{"key":"\\\"\\\\\\n\\x00\\xff\\x1b[2J</script>\\'","length":19,"#,
            r#"{"key":"\\xd0\\xba\\xd0\\xbb\\xd1\\x8e\\xd1\\x87","length":8,"#,
            r#"{"key":"","length":0,"#,
        ] {
            assert!(page.contains(key), "{key} in {page}");
        }
        let x = "x".repeat(64);
        assert!(page.contains(&format!("{{\"key\":\"{x}\",\"length\":70,\"hash\":\"")), "{page}");
    }

    #[test]
    fn a_request_counts_with_at_most_64_keys() {
        let start = Instant::now();
        let hot = HotKeys::new(start);
        let mut sampler = hot.sampler(1);
        let keys: Vec<Vec<u8>> = (0..1000u32).map(|key| key.to_be_bytes().to_vec()).collect();
        sampler.sample(keys.iter().map(Vec::as_slice), start);
        assert!(page(&hot, 0).contains("\"samples\":64,"));
    }
}
