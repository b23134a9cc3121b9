//! One command, with the bytes that ask for it and those that are due.

use crate::script::Script;

/// The exchanges of a run, and what their replies are to be like where not all are known to the byte.
pub(super) struct Exchanges {
    pub script: Script,
    pub dues: Option<Vec<Due>>,
}

/// What a reply is to be like. What it is compared with lies in the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// These bytes.
    Exact,
    /// Any value of this key, or none.
    Either,
}

/// What is done with a key, and what must come back.
pub(super) enum Command {
    /// A value is stored.
    Set { value: Vec<u8> },
    /// The value is read; `None`: there may be any or none.
    Get { hit: Option<Vec<u8>> },
    /// The value is read, and there is none.
    GetNothing,
    /// The value is forgotten.
    Delete,
    /// The same, and there is none.
    DeleteNothing,
}

impl Command {
    /// The request, and what is due: a reply, or the key for [`Due::Either`].
    pub fn bytes(self, key: &[u8]) -> (Vec<u8>, Vec<u8>, Due) {
        let exact = |request, reply: &[u8]| (request, reply.to_vec(), Due::Exact);
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
            Command::Get { hit: None } => (get(), key.to_vec(), Due::Either),
            Command::GetNothing => exact(get(), b"END\r\n"),
            Command::Delete => exact(delete(), b"DELETED\r\n"),
            Command::DeleteNothing => exact(delete(), b"NOT_FOUND\r\n"),
        }
    }
}
