//! Replies that arrive in pieces, for tests.

use regatta_record::Exchange;
use regatta_testkit::pieces::pieces;

/// Passes replies to `take` in pieces of these lengths, repeatedly. Returns how many were correct, or the exchange that
/// was not.
pub fn receive(
    stream: &[u8],
    cuts: &[usize],
    mut take: impl FnMut(&[u8]) -> Result<u32, Box<Exchange>>,
) -> Result<u64, Box<Exchange>> {
    let mut complete = 0;
    for data in pieces(stream, cuts) {
        match take(data) {
            Ok(replies) => complete += u64::from(replies),
            Err(mut exchange) => {
                exchange.reply_index += complete;
                return Err(exchange);
            }
        }
    }
    Ok(complete)
}
