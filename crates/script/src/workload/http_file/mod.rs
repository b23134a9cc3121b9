//! The requests of a workload file with `protocol = "http"`, and the one request that flags tell:
//! what is sent, what must come back, and how both are laid out in a script. What stands in a file is
//! read in `reader`.

mod ask;
mod expect;
mod json;
mod raw;
mod reader;

pub(super) use raw::Request;
pub(super) use reader::Reader;

use super::{
    compose::{converse, lengths},
    conversation::Conversation,
    draw::Drawer,
};
use crate::{
    http::{Expected, Place},
    patterns::Due,
    script::Script,
};
use ask::AskTemplate;
use expect::TextTemplate;

/// The requests, and what must come back.
#[derive(Debug)]
pub(super) struct Http {
    pub conversations: Vec<Conversation<Step>>,
    /// Of each step: what its reply is to be like.
    pub kinds: Vec<Expected>,
}

/// A request, and what must come back.
#[derive(Debug)]
pub(super) struct Step {
    ask: AskTemplate,
    /// Which of the kinds its reply is to be like.
    kind: u16,
    /// What must come back and is another for each exchange.
    text: TextTemplate,
    /// Most bytes of the request and of that text.
    longest: usize,
    /// The last of its conversation: where each has a connection, it says that the connection ends.
    is_last: bool,
}

/// Exchanges of a script: fewer than of lines, since each is longer, and memory and caches are for
/// the server.
const DRAWN: usize = 1 << 16;
/// The same where nothing is drawn: as few as choose requests by their weights well enough.
const UNDRAWN: usize = 1 << 14;

impl Http {
    /// As `WorkloadFile::compose`.
    pub fn compose(&self, drawer: &mut Drawer<'_>, place: Place<'_>, echoed: bool) -> Script {
        let conversations = lengths(&self.conversations);
        let mut script = match echoed {
            true => Script::new(conversations, None),
            false => Script::http(conversations, self.kinds.clone()),
        };
        let mut steps = self.conversations.iter().flat_map(|conversation| &conversation.steps);
        let most = if steps.any(Step::is_drawn) { DRAWN } else { UNDRAWN };
        let (mut request, mut text) = (Vec::new(), Vec::new());
        converse(
            &self.conversations,
            most,
            &mut script,
            drawer,
            |step, script, captures, drawer| {
                request.clear();
                text.clear();
                let place = Place { closes: place.closes && step.is_last, ..place };
                let content = step.ask.fill(&mut request, place, captures, drawer);
                if echoed {
                    script.push(&request, &request, Due::Exact);
                    return;
                }
                step.text.fill(&mut text, &content, captures, drawer);
                script.push_http(&request, &text, step.kind);
            },
        );
        script
    }
}

impl Step {
    fn is_drawn(&self) -> bool {
        self.ask.is_drawn() || self.text.is_drawn()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WorkloadFile, http::Method, workload::file::Requests};

    fn script(text: &str, echoed: bool) -> Script {
        let text = format!("protocol = 'http'\n{text}");
        let file = WorkloadFile::from_text(&text, "test").unwrap();
        let place = Place { host: "h:1", ..Place::default() };
        let mut script = file.compose(3, place, echoed);
        script.close(1).unwrap();
        script
    }

    /// The first `n` exchanges: request, and the text that the reply is compared with.
    fn first(n: u32, text: &str) -> Vec<(String, String)> {
        let script = script(text, false);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (0..n).map(|i| (text(script.request(i)), text(script.reply(i)))).collect()
    }

    #[test]
    fn requests_byte_for_byte() {
        for (request, bytes) in [
            ("path='/'", "GET / HTTP/1.1\r\nHost: h:1\r\n\r\n"),
            (
                "path='/'\nmethod='POST'",
                "POST / HTTP/1.1\r\nHost: h:1\r\nContent-Length: 0\r\n\r\n",
            ),
            (
                "path='/'\nmethod='PUT'\nheaders={X-B='{{}}', X-A='1'}\nbody=\"é\\n\"",
                "PUT / HTTP/1.1\r\nHost: h:1\r\nX-A: 1\r\nX-B: {}\r\nContent-Length: 3\r\n\r\né\n",
            ),
            (
                "path='/'\nbody=''\nheaders={host='other'}",
                "GET / HTTP/1.1\r\nHost: other\r\nContent-Length: 0\r\n\r\n",
            ),
            (
                "path='/'\nbody_file='x'\n[files]\nx='{n}'",
                "GET / HTTP/1.1\r\nHost: h:1\r\nContent-Length: 3\r\n\r\n{n}",
            ),
            (
                "path='/'\nbody_file='x'\n[files]\nx={base64='aGk='}",
                "GET / HTTP/1.1\r\nHost: h:1\r\nContent-Length: 2\r\n\r\nhi",
            ),
        ] {
            assert_eq!(first(1, &format!("[[request]]\n{request}"))[0].0, bytes);
        }
    }

    #[test]
    fn values_in_a_path_stay_in_their_place() {
        let lines = "[lines]\nwords = ['a b', '/?&#%', 'é~']";
        let text = format!(
            "[[request]]\npath='/x/{{s=line:words}}/y?n={{int:-3..-3}}'\nexact='{{s}}'\n{lines}"
        );
        let exchanges = first(3, &text);
        for ((request, text), (coded, plain)) in exchanges.iter().zip([
            ("a%20b", "a b"),
            ("%2F%3F%26%23%25", "/?&#%"),
            ("%C3%A9~", "é~"),
        ]) {
            assert!(
                request.starts_with(&format!("GET /x/{coded}/y?n=-3 HTTP/1.1\r\n")),
                "{request}"
            );
            assert_eq!(text, plain);
        }
    }

    #[test]
    fn a_path_that_is_a_line_of_a_list_is_sent_as_it_is() {
        let lines = "[lines]\npaths = ['/a/b?c=%20', '/']";
        let text = format!("[[request]]\npath='{{p=line:paths}}'\nexact='{{p}}'\n{lines}");
        for ((request, text), path) in first(2, &text).into_iter().zip(["/a/b?c=%20", "/"]) {
            assert_eq!(request, format!("GET {path} HTTP/1.1\r\nHost: h:1\r\n\r\n"));
            assert_eq!(text, path);
        }
    }

    #[test]
    fn what_is_captured_anywhere_is_known_to_what_is_expected() {
        let exchanges = first(
            50,
            "[[request]]\nmethod='POST'\npath='/{a=int:1..9}'\nheaders={X-B='{b=hex:4}'}\n\
             body='{c=alnum:3}{d=int:1..1}'\n\
             expect_headers={E='{b}-{a*2}', F='fixed', G=true}\n\
             json={'/sum'='{a+d}', '/text'='{upper:c}\"', '/digit'='{lower:d}', \
             '/list'=['{a}', true], '/fixed'=1.5}",
        );
        for (request, text) in exchanges {
            let between = |from: &str, to: &str| {
                request.split_once(from).unwrap().1.split_once(to).unwrap().0.to_owned()
            };
            let a: i64 = between("POST /", " ").parse().unwrap();
            let b = between("X-B: ", "\r\n");
            let c = request.split_once("\r\n\r\n").unwrap().1.strip_suffix('1').unwrap();
            let (a2, sum, upper) = (a * 2, a + 1, c.to_uppercase());
            let lines = [
                format!("{b}-{a2}"),
                "\"1\"".into(),
                format!("[{a},true]"),
                sum.to_string(),
                format!("\"{upper}\\\"\""),
            ];
            assert_eq!(text, lines.map(|line| line + "\n").concat());
        }
    }

    #[test]
    fn captures_of_all_headers_keep_their_names() {
        let text = "[[request]]\npath='/'\nexact='{a}{h}{x}'\n\
                    headers={A='{a=int:1..1}', Host='{h=int:2..2}', X='{x=int:3..3}'}";
        let (request, text) = first(1, text).remove(0);
        assert_eq!(request, "GET / HTTP/1.1\r\nHost: 2\r\nA: 1\r\nX: 3\r\n\r\n");
        assert_eq!(text, "123");
    }

    #[test]
    fn the_request_of_an_echo_service_is_its_content() {
        let text = "[[request]]\npath='/echo'\nbody=\"a{hex:2}\\nb\"\nexact='{reverse:request}'";
        for (request, text) in first(9, text) {
            let content = request.split_once("\r\n\r\n").unwrap().1;
            assert_eq!(text.chars().rev().collect::<String>(), content);
        }
    }

    #[test]
    fn kinds_go_with_their_exchanges_and_steps_follow_each_other() {
        let script = script(
            "[[request]]\nweight=3\npath='/a'\nstatus=404\n[[request]]\nsteps=[\n\
             {path='/b', exact='B'}, {path='/c', prefix='C', method='DELETE', status='any'}]",
            false,
        );
        let replies = script.replies_in_http().unwrap();
        assert_eq!(script.count() as usize, UNDRAWN);
        let mut at = 0;
        while at + 1 < script.count() {
            assert_eq!(script.conversation_from(at), at);
            let kind = replies.of[at as usize];
            let next = replies.of[at as usize + 1];
            let path = ["/a", "/b", "/c"][usize::from(kind)];
            assert!(String::from_utf8_lossy(script.request(at)).contains(path));
            at += if kind == 0 { 1 } else { 2 };
            assert!(kind == 0 || (kind, next) == (1, 2));
        }
        let asked = [Method::Get, Method::Get, Method::Delete];
        assert_eq!(replies.kinds.iter().map(|kind| kind.method).collect::<Vec<_>>(), asked);
        assert_eq!(script.request(0).last(), Some(&b'\n'));
    }

    #[test]
    fn a_connection_that_serves_one_request_says_so_once() {
        let text = "protocol='http'\n[[request]]\npath='/'";
        let asks = |more: &str| {
            let file = WorkloadFile::from_text(&format!("{text}\n{more}"), "test").unwrap();
            let place = Place { host: "h", closes: true, ..Place::default() };
            let mut script = file.compose(1, place, false);
            script.close(1).unwrap();
            String::from_utf8(script.request(0).to_vec()).unwrap()
        };
        let lines = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        assert_eq!(asks(""), lines);
        let lines = "GET / HTTP/1.1\r\nHost: h\r\nconnection: keep-alive\r\n\r\n";
        assert_eq!(asks("headers={connection='keep-alive'}"), lines);
    }

    #[test]
    fn an_echo_owes_the_request() {
        let script = script("[[request]]\npath='/{n=int:1..9}'\nexact='{n}'", true);
        assert!(script.replies_in_http().is_none());
        assert!((0..100).all(|i| script.reply(i) == script.request(i)));
    }

    #[test]
    fn the_examples_are_read_and_their_text_alone_gives_the_same() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
        for name in ["http.toml", "api.toml"] {
            let file = WorkloadFile::read(&folder.join(name)).unwrap();
            assert!(matches!(file.requests, Requests::Http(_)));
            let again = WorkloadFile::from_text(file.text(), "x").unwrap();
            assert_eq!((file.name(), file.text()), (again.name(), again.text()));
        }
    }

    #[test]
    fn files_beside_the_workload_are_kept_in_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        std::fs::write(folder.path().join("text.json"), "{\"a\": 1}\n").unwrap();
        std::fs::write(folder.path().join("bytes"), b"\xff\x00").unwrap();
        let text = "protocol='http'\n[[request]]\npath='/'\nbody_file='text.json'\n\
                    [[request]]\npath='/'\nbody_file='bytes'";
        std::fs::write(&path, text).unwrap();
        let file = WorkloadFile::read(&path).unwrap();
        drop(folder);
        let again = WorkloadFile::from_text(file.text(), "mine").unwrap();
        let bytes = |file: &WorkloadFile| {
            let mut script = file.compose(1, Place::default(), false);
            script.close(1).unwrap();
            script.requests(0, script.period().request).to_vec()
        };
        assert!(bytes(&file) == bytes(&again), "{}", again.text());
        assert!(bytes(&file).windows(4).any(|four| four == b"\n\xff\x00G"));
    }
}
