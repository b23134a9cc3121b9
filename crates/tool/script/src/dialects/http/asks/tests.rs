//! Canned requests and replies.

use super::*;
use crate::dialect::Dialect;

#[test]
fn canned_requests_have_the_announced_length_and_the_canned_reply() {
    for (closes, heads) in [(false, Heads::Varied), (true, Heads::Varied), (true, Heads::Identical)]
    {
        let place = Destination { host: "127.0.0.1:40001", path: None, closes, timeout: None };
        let hello = HttpAsks::Hello { heads };
        let (asks, canned) = hello.canned(place).unwrap();
        for seed in [1, 2] {
            let order = CompileOptions { seed, pipeline: 16, place, ..CompileOptions::default() };
            let Ok(Speech::Exact(exact)) = asks.compile(&order) else { panic!("not exact") };
            let Ok(Speech::Own(hello)) = hello.compile(&order) else { panic!("exact") };
            let script = exact.script();
            assert_eq!(script.count(), hello.script().count());
            for i in 0..script.count() + 16 {
                assert_eq!(script.request(i).len(), canned.request_bytes);
                assert_eq!(script.reply(i), &*canned.reply);
            }
        }
    }
}
