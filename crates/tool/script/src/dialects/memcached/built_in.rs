//! The built-in workload `cache`.

use super::step::{Command, Exchanges};
use crate::script::{Conversations, Script};
use rand::{Rng, SeedableRng, distr::Alphanumeric, rngs::StdRng};

/// Number of items that are stored and read; a server needs about 7 MB for them.
const ITEMS: usize = 1 << 15;
/// Bytes in a value.
const VALUE: usize = 100;

/// Stores an item and reads it back on the same connection. Each key has only one value, so it does not
/// matter which connection stored it last. Not closed.
pub(super) fn cache(seed: u64) -> Exchanges {
    let mut random = StdRng::seed_from_u64(seed);
    let mut script = Script::new(Conversations::Each(2));
    for i in 0..ITEMS {
        let key = format!("regatta:{seed:x}:{i}");
        let value: Vec<u8> = (0..VALUE).map(|_| random.sample(Alphanumeric)).collect();
        for command in [Command::Set { value: value.clone() }, Command::Get { hit: Some(value) }] {
            let (request, reply, _) = command.bytes(key.as_bytes());
            script.push(&request, &reply);
        }
    }
    Exchanges { script, expectations: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_what_it_stored() {
        let mut script = cache(0xa).script;
        script.close(1).unwrap();
        assert_eq!(script.count() as usize, 2 * ITEMS);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (set, get) = (text(script.request(2)), text(script.request(3)));
        let value = set.strip_prefix("set regatta:a:1 0 0 100\r\n").unwrap();
        assert_eq!((value.len(), text(script.reply(2)).as_str()), (102, "STORED\r\n"));
        assert_eq!(get, "get regatta:a:1\r\n");
        let stored = format!("VALUE regatta:a:1 0 100\r\n{value}END\r\n");
        assert_eq!(text(script.reply(3)), stored);
        assert_eq!(script.conversation_from(3), 4);
    }
}
