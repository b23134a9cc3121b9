//! Malformed HTTP requests, which the decoder and every server must refuse: the cases of `malformed.txt`.

/// A request that must be refused.
pub struct Case {
    /// The status of the reply.
    pub status: u16,
    /// The rule that it violates.
    pub why: &'static str,
    /// The bytes of the request.
    pub bytes: Vec<u8>,
}

/// Parses the file. Its first lines describe the format.
pub fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut inside = false;
    for line in include_str!("malformed.txt").lines() {
        match (inside, line) {
            (_, "") => inside = false,
            (true, bytes) => unescape(bytes, &mut cases.last_mut().unwrap().bytes),
            (false, comment) if comment.starts_with('#') => {}
            (false, line) => {
                let (status, why) = line.split_once(' ').unwrap();
                cases.push(Case { status: status.parse().unwrap(), why, bytes: Vec::new() });
                inside = true;
            }
        }
    }
    cases
}

fn unescape(text: &str, out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(repeat) = rest.strip_prefix("<<") {
            let (inner, after) = repeat.split_once(">>").unwrap();
            let (text, times) = inner.rsplit_once('*').unwrap();
            let mut bytes = Vec::new();
            unescape(text, &mut bytes);
            out.extend(bytes.repeat(times.parse().unwrap()));
            rest = after;
        } else if let Some(code) = rest.strip_prefix("\\x") {
            out.push(u8::from_str_radix(&code[..2], 16).unwrap());
            rest = &code[2..];
        } else if let Some(code) = rest.strip_prefix('\\') {
            out.push(match code.as_bytes()[0] {
                b'r' => b'\r',
                b'n' => b'\n',
                b't' => b'\t',
                b'\\' => b'\\',
                other => panic!("unknown escape \\{}", char::from(other)),
            });
            rest = &code[1..];
        } else {
            out.extend_from_slice(first.to_string().as_bytes());
            rest = &rest[first.len_utf8()..];
        }
    }
}
