//! Realistic request heads: of browsers, apps, API clients and tools. The built-in workloads draw from
//! them. A server that always receives the same head could cache it, which no real server can.

use rand::{
    Rng, SeedableRng,
    rngs::StdRng,
    seq::{IndexedRandom, SliceRandom},
};
use std::fmt::Write;

/// The fields of a request: names and values.
pub(super) type Fields = Vec<(&'static str, String)>;

/// Number of heads, all different.
pub(super) const HEADS: usize = 2048;

/// Seed of the heads. All runs use the same heads, so their mean length is the same; a run's seed only
/// decides the order.
const POOL: u64 = 0x5EED_4EAD;

const DESKTOPS: [&str; 4] = [
    "Windows NT 10.0; Win64; x64",
    "Macintosh; Intel Mac OS X 10_15_7",
    "X11; Linux x86_64",
    "X11; CrOS x86_64 14541.0.0",
];
const PHONES: [&str; 3] =
    ["Linux; Android 10; K", "Linux; Android 14; SM-S921B", "Linux; Android 13; Pixel 7"];
const LANGUAGES: [&str; 8] = [
    "en-US,en;q=0.9",
    "en-GB,en;q=0.9,en-US;q=0.8",
    "de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7",
    "fr-FR,fr;q=0.9,en;q=0.8",
    "es-ES,es;q=0.9",
    "ja,en-US;q=0.9,en;q=0.8",
    "pt-BR,pt;q=0.9,en-US;q=0.8,en;q=0.7",
    "zh-CN,zh;q=0.9",
];
const REFERERS: [&str; 5] = [
    "https://www.google.com/",
    "https://duckduckgo.com/",
    "https://www.example.org/",
    "https://www.example.org/news/2026/11/a-server-is-measured?page=2",
    "https://t.co/",
];

/// Returns the heads in an order that `seed` decides. If `closes`, each has `Connection: close`.
pub(super) fn varied(seed: u64, closes: bool) -> Vec<Fields> {
    let mut random = StdRng::seed_from_u64(POOL);
    let mut heads: Vec<Fields> = (0..HEADS).map(|i| head(i, &mut random)).collect();
    heads.shuffle(&mut StdRng::seed_from_u64(seed));
    if closes {
        heads.iter_mut().for_each(close);
    }
    heads
}

/// Adds `Connection: close`, in place of the `Connection: keep-alive` of browsers.
fn close(fields: &mut Fields) {
    fields.retain(|(name, _)| *name != "Connection");
    fields.push(("Connection", "close".into()));
}

/// Four of ten heads are of browsers, three of API clients, two of apps and one of a tool.
fn head(i: usize, random: &mut StdRng) -> Fields {
    match i % 10 {
        0 => safari(random),
        1 | 2 => chrome(random),
        3 => firefox(random),
        4..=6 => program(random),
        7 | 8 => app(random),
        _ => tool(random),
    }
}

fn chrome(random: &mut StdRng) -> Fields {
    let version = random.random_range(128..=142);
    let is_phone = random.random_bool(0.5);
    let system = one(if is_phone { &PHONES[..] } else { &DESKTOPS[..] }, random);
    let (mobile, mark) = if is_phone { (" Mobile", "?1") } else { ("", "?0") };
    let mut fields = vec![
        ("Connection", "keep-alive".into()),
        (
            "sec-ch-ua",
            format!(
                "\"Chromium\";v=\"{version}\", \"Google Chrome\";v=\"{version}\", \"Not?A_Brand\";v=\"99\""
            ),
        ),
        ("sec-ch-ua-mobile", mark.into()),
        ("sec-ch-ua-platform", (if is_phone { "\"Android\"" } else { "\"Windows\"" }).into()),
        ("Upgrade-Insecure-Requests", "1".into()),
        (
            "User-Agent",
            format!(
                "Mozilla/5.0 ({system}) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/{version}.0.0.0{mobile} Safari/537.36"
            ),
        ),
        (
            "Accept",
            "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,\
             image/apng,*/*;q=0.8"
                .into(),
        ),
        ("Sec-Fetch-Site", "cross-site".into()),
        ("Sec-Fetch-Mode", "navigate".into()),
        ("Sec-Fetch-User", "?1".into()),
        ("Sec-Fetch-Dest", "document".into()),
    ];
    arrives(&mut fields, "gzip, deflate, br, zstd", random);
    fields
}

fn firefox(random: &mut StdRng) -> Fields {
    let version = random.random_range(115..=145);
    let system = one(&DESKTOPS, random);
    let mut fields = vec![
        (
            "User-Agent",
            format!("Mozilla/5.0 ({system}; rv:{version}.0) Gecko/20100101 Firefox/{version}.0"),
        ),
        ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8".into()),
        ("Connection", "keep-alive".into()),
        ("Upgrade-Insecure-Requests", "1".into()),
        ("Priority", "u=0, i".into()),
    ];
    arrives(&mut fields, "gzip, deflate, br, zstd", random);
    fields
}

fn safari(random: &mut StdRng) -> Fields {
    let (major, minor) = (random.random_range(16..=26), random.random_range(0..=6));
    let mut fields = vec![
        ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8".into()),
        ("Connection", "keep-alive".into()),
        (
            "User-Agent",
            format!(
                "Mozilla/5.0 (iPhone; CPU iPhone OS {major}_{minor} like Mac OS X) \
                 AppleWebKit/605.1.15 (KHTML, like Gecko) Version/{major}.{minor} Mobile/15E148 \
                 Safari/604.1"
            ),
        ),
    ];
    arrives(&mut fields, "gzip, deflate, br", random);
    fields
}

/// Adds fields that all browsers send: encodings, languages and cookies, and often the referring page.
fn arrives(fields: &mut Fields, encodings: &str, random: &mut StdRng) {
    fields.push(("Accept-Encoding", encodings.into()));
    fields.push(("Accept-Language", one(&LANGUAGES, random).into()));
    if random.random_bool(0.6) {
        fields.push(("Referer", one(&REFERERS, random).into()));
    }
    let mut cookies = format!("session={}", hex(32, random));
    if random.random_bool(0.7) {
        let (user, since) =
            (random.random::<u32>(), random.random_range(1_600_000_000..1_795_000_000));
        let _ = write!(cookies, "; _ga=GA1.1.{user}.{since}; theme=dark");
    }
    if random.random_bool(0.3) {
        let _ = write!(cookies, "; consent={}", hex(random.random_range(40..=240), random));
    }
    fields.push(("Cookie", cookies));
}

/// The head of an API client.
fn program(random: &mut StdRng) -> Fields {
    const AGENTS: [&str; 5] = [
        "Go-http-client/1.1",
        "python-requests/2.32.3",
        "axios/1.7.7",
        "okhttp/4.12.0",
        "Apache-HttpClient/5.3.1 (Java/21.0.4)",
    ];
    let mut fields = vec![
        ("User-Agent", one(&AGENTS, random).to_owned()),
        ("Accept", "application/json, text/plain, */*".into()),
        ("Accept-Encoding", "gzip".into()),
        ("X-Request-Id", hex(32, random)),
    ];
    if random.random_bool(0.7) {
        fields.push((
            "Authorization",
            format!("Bearer {}", hex(random.random_range(40..=200), random)),
        ));
    }
    fields
}

fn app(random: &mut StdRng) -> Fields {
    let version = (random.random_range(1..=9), random.random_range(0..=40));
    vec![
        (
            "User-Agent",
            format!(
                "Regatta/{}.{} (com.example.regatta; build:{}; iOS 18.1.0)",
                version.0,
                version.1,
                random.random_range(1000..=9999)
            ),
        ),
        ("Accept", "*/*".into()),
        ("Accept-Language", one(&LANGUAGES, random).into()),
        ("Accept-Encoding", "gzip, deflate, br".into()),
        ("X-Device-Id", hex(16, random)),
    ]
}

/// The head of a tool behind a proxy, which adds the client's address.
fn tool(random: &mut StdRng) -> Fields {
    let agent = match random.random_range(0..3) {
        0 => format!("curl/8.{}.{}", random.random_range(0..=11), random.random_range(0..=2)),
        1 => "Wget/1.21.4".into(),
        _ => "kube-probe/1.31".into(),
    };
    let [a, b] = [random.random_range(0..=255), random.random_range(1..=254)];
    vec![
        ("User-Agent", agent),
        ("Accept", "*/*".into()),
        ("X-Forwarded-For", format!("198.18.{a}.{b}")),
    ]
}

fn one(of: &[&'static str], random: &mut StdRng) -> &'static str {
    of.choose(random).expect("there are some")
}

fn hex(digits: usize, random: &mut StdRng) -> String {
    (0..digits).map(|_| char::from(b"0123456789abcdef"[random.random_range(0..16)])).collect()
}

#[cfg(test)]
mod tests;
