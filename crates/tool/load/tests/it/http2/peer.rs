//! The server's end of a connection, one frame at a time. It decides nothing: each test says what it sends.

use regatta_http2::{
    ErrorCode,
    frame::{Header, Kind, flag, write},
    hpack::{Decoder, Encoder, Fields, Indexing},
};
use std::{
    collections::HashMap,
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpStream},
    time::Duration,
};

/// A request whose stream has ended.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub stream: u32,
    pub path: String,
    pub content: Vec<u8>,
}

impl Asked {
    /// The number in the path `/N`.
    pub fn number(&self) -> u64 {
        self.path[1..].parse().expect("a number")
    }
}

/// What was read.
pub enum Got {
    Asked(Asked),
    /// A frame that completes no request.
    Other,
    /// Nothing arrived within the limit of [`Peer::wait_at_most`].
    Nothing,
}

/// The server's end of a connection.
pub struct Peer {
    socket: TcpStream,
    input: Vec<u8>,
    pub out: Vec<u8>,
    pub decoder: Decoder,
    /// The maximum size of the decoder's table, once the client has acknowledged it.
    pub table: Option<usize>,
    begun: HashMap<u32, Asked>,
    /// Streams that are open, from the first frame of the request to the last one of the response.
    pub open: usize,
    /// Streams that the client has reset.
    pub resets: u64,
    /// Whether each byte is written on its own.
    pub in_bytes: bool,
}

impl Peer {
    /// Reads the preface and sends these settings.
    pub fn new(mut socket: TcpStream, settings: &[(u16, u32)]) -> Option<Peer> {
        let mut preface = [0; 24];
        socket.read_exact(&mut preface).ok()?;
        assert_eq!(preface, write::PREFACE);
        let mut out = Vec::new();
        write::settings(&mut out, settings);
        let (decoder, begun) = (Decoder::new(1 << 16), HashMap::new());
        let (input, table) = (Vec::new(), None);
        let (open, resets, in_bytes) = (0, 0, false);
        Some(Peer { socket, input, out, decoder, table, begun, open, resets, in_bytes })
    }

    /// From now on, reading returns after this long.
    pub fn wait_at_most(&mut self, limit: Duration) {
        self.socket.set_read_timeout(Some(limit)).unwrap();
    }

    /// The next complete request. Writes everything first if it has to wait for input. `None`: the client
    /// closed the connection.
    pub fn ask(&mut self) -> Option<Asked> {
        loop {
            match self.next()? {
                Got::Asked(asked) => return Some(asked),
                Got::Other | Got::Nothing => {}
            }
        }
    }

    /// Whether another whole frame was received.
    fn has_input(&self) -> bool {
        let header = self.input.first_chunk().map(Header::read);
        header.is_some_and(|header| self.input.len() >= Header::SIZE + header.length as usize)
    }

    /// The next frame or request; `None` if the client closed the connection.
    pub fn next(&mut self) -> Option<Got> {
        loop {
            while !self.has_input() {
                self.flush()?;
                let mut piece = [0; 4096];
                match self.socket.read(&mut piece) {
                    Ok(0) => return None,
                    Ok(n) => self.input.extend_from_slice(&piece[..n]),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        return Some(Got::Nothing);
                    }
                    Err(_) => return None,
                }
            }
            let header = Header::read(self.input.first_chunk().unwrap());
            let rest = self.input.split_off(Header::SIZE + header.length as usize);
            let payload = std::mem::replace(&mut self.input, rest).split_off(Header::SIZE);
            if let Some(got) = self.frame(header, payload) {
                return Some(got);
            }
        }
    }

    fn frame(&mut self, header: Header, payload: Vec<u8>) -> Option<Got> {
        let Header { kind, stream, .. } = header;
        match kind {
            Kind::HEADERS => {
                assert!(header.has(flag::END_HEADERS), "the heads of these tests are short");
                let mut fields = Fields::default();
                self.decoder.decode(&payload, &mut fields).expect("a valid field block");
                assert_eq!(fields.get(b":authority"), Some(&b"a.test"[..]));
                let path = fields.get(b":path").expect("a path").to_vec();
                let path = String::from_utf8(path).unwrap();
                self.begun.insert(stream, Asked { stream, path, content: Vec::new() });
                self.open += 1;
            }
            Kind::DATA => {
                self.begun.get_mut(&stream).expect("a head").content.extend_from_slice(&payload);
            }
            Kind::SETTINGS if header.has(flag::ACK) => {
                if let Some(size) = self.table.take() {
                    self.decoder.set_limit(size);
                }
                return None;
            }
            Kind::SETTINGS => {
                write::settings_ack(&mut self.out);
                return None;
            }
            Kind::RST_STREAM => {
                self.resets += 1;
                return Some(Got::Other);
            }
            _ => return Some(Got::Other),
        }
        let ends = header.has(flag::END_STREAM);
        match ends {
            true => Some(Got::Asked(self.begun.remove(&stream).unwrap())),
            false if kind == Kind::DATA => Some(Got::Other),
            false => None,
        }
    }

    /// The streams whose request is not complete.
    pub fn begun(&self) -> Vec<u32> {
        self.begun.keys().copied().collect()
    }

    /// The requests of which a part of the content has arrived; they are no longer begun.
    pub fn take_begun(&mut self) -> Vec<Asked> {
        self.begun
            .extract_if(|_, asked| !asked.content.is_empty())
            .map(|(_, asked)| asked)
            .collect()
    }

    /// Adds a frame.
    pub fn send(&mut self, kind: Kind, flags: u8, stream: u32, payload: &[u8]) {
        Header { length: payload.len() as u32, kind, flags, stream }.write(&mut self.out);
        self.out.extend_from_slice(payload);
    }

    /// Adds a head with this status and these fields.
    pub fn head(&mut self, stream: u32, status: &str, fields: &[(&str, &str)], ends: bool) {
        let mut block = Vec::new();
        let status = [(":status", status)];
        let all = status.iter().chain(fields);
        let all = all.map(|(name, value)| (name.as_bytes(), value.as_bytes(), Indexing::Without));
        Encoder::default().encode(all, &mut block);
        let flags = flag::END_HEADERS | if ends { flag::END_STREAM } else { 0 };
        self.send(Kind::HEADERS, flags, stream, &block);
        self.open -= usize::from(ends);
    }

    /// Adds content.
    pub fn data(&mut self, stream: u32, content: &[u8], ends: bool) {
        self.send(Kind::DATA, if ends { flag::END_STREAM } else { 0 }, stream, content);
        self.open -= usize::from(ends);
    }

    /// Adds a correct response: the status 200 and this content.
    pub fn answer(&mut self, stream: u32, content: &str) {
        let length = content.len().to_string();
        self.head(stream, "200", &[("content-length", &length)], false);
        self.data(stream, content.as_bytes(), true);
    }

    /// The frames of a correct response: the status 200 and this content.
    pub fn response(stream: u32, content: &str) -> Vec<u8> {
        let mut block = Vec::new();
        let length = content.len().to_string();
        let fields = [(":status", "200"), ("content-length", &length)];
        let fields =
            fields.map(|(name, value)| (name.as_bytes(), value.as_bytes(), Indexing::Without));
        Encoder::default().encode(fields, &mut block);
        let mut out = Vec::new();
        write::headers(&mut out, |_| (), (stream, false), &block, 1 << 14);
        write::data(&mut out, |_| (), (stream, true), content.as_bytes(), 1 << 14);
        out
    }

    /// Adds a correct response to a request for `/N`.
    pub fn right(&mut self, asked: &Asked) {
        self.answer(asked.stream, &format!("item {}", asked.number()));
    }

    pub fn go_away(&mut self, last_stream: u32, code: ErrorCode) {
        write::go_away(&mut self.out, last_stream, code);
    }

    /// Writes everything; `None` if the client closed the connection.
    pub fn flush(&mut self) -> Option<()> {
        let out = std::mem::take(&mut self.out);
        let size = if self.in_bytes { 1 } else { out.len().max(1) };
        out.chunks(size).try_for_each(|piece| self.socket.write_all(piece)).ok()
    }

    /// Writes everything, and reads until the client closes.
    pub fn finish(&mut self) {
        if self.flush().is_some() {
            let _ = self.socket.shutdown(Shutdown::Write);
            let _ = std::io::copy(&mut self.socket, &mut std::io::sink());
        }
    }
}
