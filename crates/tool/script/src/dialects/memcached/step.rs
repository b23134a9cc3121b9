//! A command: the bytes of its request and its expected reply.

use crate::script::Script;

/// The exchanges of a run, and what their replies must be if not all are known to the byte.
pub(super) struct Exchanges {
    pub script: Script,
    pub expectations: Option<Vec<Expectation>>,
}

/// What a reply must be. The bytes to compare with are in the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expectation {
    /// Exactly these bytes.
    Exact,
    /// Any value of this key, or none.
    Either,
}

/// A command for a key, and its expected result.
pub(super) enum Command {
    /// Stores a value.
    Set { value: Vec<u8> },
    /// Reads the value; `None` expects any value or none.
    Get { hit: Option<Vec<u8>> },
    /// Reads the value; none is expected.
    GetNothing,
    /// Deletes the value.
    Delete,
    /// Deletes the value; none is expected to exist.
    DeleteNothing,
}

impl Command {
    /// Returns the request and the expected reply; for [`Expectation::Either`], the key in place of
    /// the reply.
    pub fn bytes(self, key: &[u8]) -> (Vec<u8>, Vec<u8>, Expectation) {
        let exact = |request, reply: &[u8]| (request, reply.to_vec(), Expectation::Exact);
        let get = || [b"get ", key, b"\r\n"].concat();
        let delete = || [b"delete ", key, b"\r\n"].concat();
        match self {
            Command::Set { value } => {
                let length = format!(" 0 0 {}\r\n", value.len());
                let request = [b"set ", key, length.as_bytes(), &value, b"\r\n"].concat();
                exact(request, b"STORED\r\n")
            }
            Command::Get { hit: Some(value) } => {
                let length = format!(" 0 {}\r\n", value.len());
                let reply = [b"VALUE ", key, length.as_bytes(), &value, b"\r\nEND\r\n"].concat();
                exact(get(), &reply)
            }
            Command::Get { hit: None } => (get(), key.to_vec(), Expectation::Either),
            Command::GetNothing => exact(get(), b"END\r\n"),
            Command::Delete => exact(delete(), b"DELETED\r\n"),
            Command::DeleteNothing => exact(delete(), b"NOT_FOUND\r\n"),
        }
    }
}
