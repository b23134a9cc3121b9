//! The flags that say what one HTTP request is, and what must come back. Requests of several kinds,
//! or with values that change, are workload files.

use super::url::Asked;
use anyhow::{Context, bail};
use regatta_script::{
    Workload,
    dialects::http::{
        Content, Expected, Field, HttpAsks, HttpRequest, HttpWorkload, Is, Member, Method, Status,
        Value, rules,
    },
};
use serde_json::value::to_raw_value;
use std::{fs::File, io::Read, path::PathBuf};

/// What to send over HTTP, and what must come back.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "HTTP: what to send, and what must come back")]
pub struct HttpArgs {
    /// Method; GET if absent
    #[arg(short = 'X', long, value_parser = rules::method, value_name = "METHOD")]
    method: Option<Method>,
    /// A header to send (repeatable); one named Host stands in the place of the URL's
    #[arg(short = 'H', long = "header", value_parser = header, value_name = "NAME: VALUE")]
    headers: Vec<(String, String)>,
    /// The body to send, as it is here
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    body: Option<String>,
    /// The body to send, as it is in a file
    #[arg(long, value_name = "FILE")]
    body_file: Option<PathBuf>,
    /// The status that must come: 200, 2xx (if absent) or any
    #[arg(long, value_parser = rules::status, value_name = "STATUS")]
    expect_status: Option<Status>,
    /// A header that must come (repeatable): this value exactly, or any if there is only a name
    #[arg(long, value_parser = field, value_name = "NAME[: VALUE]")]
    expect_header: Vec<Field>,
    /// The body that must come, to the byte
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["expect_regex", "expect_json"])]
    expect_body: Option<String>,
    /// A regular expression that must match the whole body that comes
    #[arg(long, value_parser = matching, value_name = "REGEX", conflicts_with = "expect_json")]
    expect_regex: Option<Content>,
    /// A value that the JSON that comes must have (repeatable): a JSON Pointer, and the value in JSON
    /// or else as text; any if there is only a pointer
    #[arg(long, value_parser = member, value_name = "/POINTER[=VALUE]")]
    expect_json: Vec<Member>,
}

impl HttpArgs {
    /// What the URL and the workload ask for, with what the flags say besides.
    pub fn applied(&self, asked: Asked, workload: Option<&Workload>) -> anyhow::Result<Asked> {
        if !matches!(asked.workload, Workload::Http(_)) {
            self.refuse_without_http()?;
            return Ok(asked);
        }
        let host = self.host()?.map_or(asked.host, str::to_owned);
        let workload = match workload {
            Some(workload) => {
                self.refuse_beside_workload(workload.name())?;
                if let (Some(_), Some(path)) = (workload.text(), &asked.path) {
                    bail!(
                        "the workload {} says itself which paths it asks for, so {path} is one too \
                         many: write http://HOST:PORT",
                        workload.name()
                    );
                }
                asked.workload
            }
            None => {
                let path = asked.path.as_deref().unwrap_or("/");
                rules::check_path(path).map_err(anyhow::Error::msg)?;
                self.workload(path)?
            }
        };
        Ok(Asked { host, workload, ..asked })
    }

    /// The flags apply to HTTP alone.
    fn refuse_without_http(&self) -> anyhow::Result<()> {
        match self.given().first() {
            Some(flag) => bail!(
                "{flag} is for HTTP: URLs as http://HOST:PORT/PATH. A token for a hub goes into its URL, as \
                 ws://HOST:PORT/ws?access_token=TOKEN"
            ),
            None => Ok(()),
        }
    }

    /// A workload that is named says itself what is sent and what must come back; only Host can be
    /// another.
    fn refuse_beside_workload(&self, workload: &str) -> anyhow::Result<()> {
        let only_host = self.headers.iter().all(|(name, _)| is_host(name));
        match self.given().into_iter().find(|flag| *flag != "--header" || !only_host) {
            Some(flag) => bail!(
                "{flag} cannot be used with --workload {workload}, which says itself what is sent \
                 and what must come back: leave one of them out, or write it into a workload file"
            ),
            None => Ok(()),
        }
    }

    /// What Host is to say in the place of the URL's host and port.
    fn host(&self) -> anyhow::Result<Option<&str>> {
        let mut hosts = self.headers.iter().filter(|(name, _)| is_host(name));
        let host = hosts.next().map(|(_, value)| value.as_str());
        if hosts.next().is_some() {
            bail!("--header gives Host twice; a request has one: leave one out");
        }
        Ok(host)
    }

    /// The requests that the flags tell, of this path with its query.
    fn workload(&self, path: &str) -> anyhow::Result<Workload> {
        let method = self.method.unwrap_or(Method::Get);
        let (content, text) = self.content()?;
        if method == Method::Head && !matches!(content, Content::Any) {
            bail!("the reply to HEAD has no body: leave out what is expected of it");
        }
        let body = self.body()?.or(rules::has_length(method).then(Vec::new));
        let fields = self.headers.iter().filter(|(name, _)| !is_host(name)).cloned().collect();
        let expected = Expected {
            method,
            status: self.expect_status.unwrap_or(Status::Class(2)),
            fields: self.expect_header.clone(),
            content,
        };
        let request =
            HttpRequest { expected, fields, content: body, text, ..HttpRequest::get(path) };
        let workload = HttpWorkload::new(&format!("{} {path}", method.as_str()), vec![request])
            .map_err(anyhow::Error::msg)?;
        Ok(HttpAsks::from(workload).into())
    }

    fn body(&self) -> anyhow::Result<Option<Vec<u8>>> {
        let Some(path) = &self.body_file else {
            return Ok(self.body.clone().map(String::into_bytes));
        };
        let mut body = Vec::new();
        // A byte more than is permitted, so that what has no end is noticed.
        File::open(path)
            .and_then(|file| file.take(rules::LONGEST_BODY as u64 + 1).read_to_end(&mut body))
            .with_context(|| format!("--body-file {}", path.display()))?;
        if body.len() > rules::LONGEST_BODY {
            bail!("--body-file {}: expected at most 4 MiB, and there is more", path.display());
        }
        Ok(Some(body))
    }

    /// What the content is to be like, and the text to compare it with.
    fn content(&self) -> anyhow::Result<(Content, Vec<u8>)> {
        Ok(match (&self.expect_body, &self.expect_regex) {
            (Some(text), _) => (Content::Text, text.clone().into_bytes()),
            (_, Some(matching)) => (matching.clone(), Vec::new()),
            _ if self.expect_json.is_empty() => (Content::Any, Vec::new()),
            _ => (Content::Json(self.expect_json.clone()), Vec::new()),
        })
    }

    /// The flags that were given.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--method", self.method.is_some()),
            ("--header", !self.headers.is_empty()),
            ("--body", self.body.is_some()),
            ("--body-file", self.body_file.is_some()),
            ("--expect-status", self.expect_status.is_some()),
            ("--expect-header", !self.expect_header.is_empty()),
            ("--expect-body", self.expect_body.is_some()),
            ("--expect-regex", self.expect_regex.is_some()),
            ("--expect-json", !self.expect_json.is_empty()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| flag).collect()
    }
}

fn is_host(name: &str) -> bool {
    name.eq_ignore_ascii_case("host")
}

/// `Name: value`, to be sent.
fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("expected a header as 'Name: value', as 'Accept: application/json'")?;
    rules::check_sent_name(name)?;
    rules::check_value(value)?;
    Ok((name.into(), value.trim().into()))
}

/// `Name: value` or `Name`, to be expected.
fn field(text: &str) -> Result<Field, String> {
    let (name, value) = match text.split_once(':') {
        Some((name, value)) => (name, Value::Is(value.trim().into())),
        None => (text, Value::Any),
    };
    rules::check_name(name)?;
    Ok(Field { name: name.to_ascii_lowercase(), value })
}

/// What a content must match.
fn matching(regex: &str) -> Result<Content, String> {
    rules::regex(regex).map(Content::Matches)
}

/// `/pointer=value` or `/pointer`.
fn member(text: &str) -> Result<Member, String> {
    let (pointer, is) = match text.split_once('=') {
        Some((pointer, value)) => {
            let json = serde_json::from_str(value).or_else(|_| to_raw_value(value));
            (pointer, Is::Value(json.map_err(|error| error.to_string())?))
        }
        None => (text, Is::Any),
    };
    rules::check_pointer(pointer)?;
    Ok(Member { pointer: pointer.into(), is })
}
