//! The options that describe one HTTP request and its expected reply. Several kinds of requests, or
//! values that change, need a workload file.

use super::url::Target;
use anyhow::{Context, anyhow, bail};
use regatta_script::{
    Workload,
    dialects::http::{
        Content, Expected, Field, HttpAsks, HttpRequest, HttpWorkload, Is, Member, Method, Status,
        Value, rules,
    },
    read_at_most,
};
use serde_json::value::to_raw_value;
use std::path::PathBuf;

/// The HTTP request to send, and the expected reply.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "HTTP request and expected reply")]
pub struct HttpArgs {
    /// Speak HTTP/2: over http:// with prior knowledge (h2c), over https:// by ALPN. --pipeline is the
    /// number of streams on each connection. Not with --slow, and, if a workload file has steps, not
    /// with a --pipeline above 1
    #[arg(long)]
    http2: bool,
    /// The method. Default: GET
    #[arg(short = 'X', long, value_parser = rules::method, value_name = "METHOD")]
    method: Option<Method>,
    /// A header to send (repeatable); Host replaces the host of the URL
    #[arg(short = 'H', long = "header", value_parser = header, value_name = "NAME: VALUE")]
    headers: Vec<(String, String)>,
    /// The body to send
    #[arg(long, value_name = "TEXT", conflicts_with = "body_file")]
    body: Option<String>,
    /// The file with the body to send
    #[arg(long, value_name = "FILE")]
    body_file: Option<PathBuf>,
    /// The expected status: a number, e.g. 200, a class, e.g. 2xx (default), or any
    #[arg(long, value_parser = rules::status, value_name = "STATUS")]
    expect_status: Option<Status>,
    /// A header that the reply must have (repeatable): with exactly this value, or with any value if
    /// only a name is given
    #[arg(long, value_parser = field, value_name = "NAME[: VALUE]")]
    expect_header: Vec<Field>,
    /// The exact body that the reply must have
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["expect_regex", "expect_json"])]
    expect_body: Option<String>,
    /// A regular expression that must match the whole body of the reply
    #[arg(long, value_parser = matching, value_name = "REGEX", conflicts_with = "expect_json")]
    expect_regex: Option<Content>,
    /// A value that the JSON body of the reply must contain (repeatable): a JSON Pointer and the value,
    /// as JSON or otherwise as text; any value if only a pointer is given
    #[arg(long, value_parser = member, value_name = "/POINTER[=VALUE]")]
    expect_json: Vec<Member>,
}

impl HttpArgs {
    /// Applies these options to the target and workload.
    pub fn applied(&self, target: Target, workload: Option<&Workload>) -> anyhow::Result<Target> {
        if !matches!(target.workload, Workload::Http(_)) {
            self.refuse_without_http()?;
            return Ok(target);
        }
        let target = self.described(target, workload)?;
        if self.http2 { over_http2(target) } else { Ok(target) }
    }

    /// The target with the request of these options.
    fn described(&self, target: Target, workload: Option<&Workload>) -> anyhow::Result<Target> {
        let host = self.host()?.map_or(target.host, str::to_owned);
        let workload = match workload {
            Some(workload) => {
                self.refuse_beside_workload(workload.name())?;
                if let (Some(_), Some(path)) = (workload.text(), &target.path) {
                    bail!(
                        "the workload {} defines its own paths, so the URL cannot have the path \
                         {path}: write http://HOST:PORT",
                        workload.name()
                    );
                }
                target.workload
            }
            None => {
                let path = target.path.as_deref().unwrap_or("/");
                rules::check_path(path).map_err(anyhow::Error::msg)?;
                self.workload(path)?
            }
        };
        Ok(Target { host, workload, ..target })
    }

    /// Refuses these options for other protocols than HTTP.
    fn refuse_without_http(&self) -> anyhow::Result<()> {
        let http2 = self.http2.then_some("--http2");
        match http2.or(self.given().first().copied()) {
            Some(flag) => bail!(
                "{flag} applies only to HTTP URLs, e.g. http://HOST:PORT/PATH. Calls of gRPC have \
                 no metadata, and a token for a hub is in its URL: ws://HOST:PORT/ws?access_token=TOKEN"
            ),
            None => Ok(()),
        }
    }

    /// Refuses these options beside a named workload, which defines requests and replies itself. Only
    /// Host can be changed.
    fn refuse_beside_workload(&self, workload: &str) -> anyhow::Result<()> {
        let only_host = self.headers.iter().all(|(name, _)| is_host(name));
        match self.given().into_iter().find(|flag| *flag != "--header" || !only_host) {
            Some(flag) => bail!(
                "{flag} cannot be used with --workload {workload}, which defines requests and replies \
                 itself: remove one of the two, or write it into a workload file"
            ),
            None => Ok(()),
        }
    }

    /// The value of a Host header that replaces the URL's host and port.
    fn host(&self) -> anyhow::Result<Option<&str>> {
        let mut hosts = self.headers.iter().filter(|(name, _)| is_host(name));
        let host = hosts.next().map(|(_, value)| value.as_str());
        if hosts.next().is_some() {
            bail!("--header sets Host twice, but a request has only one; remove one");
        }
        Ok(host)
    }

    /// The workload that the options describe, for this path with its query.
    fn workload(&self, path: &str) -> anyhow::Result<Workload> {
        let method = self.method.unwrap_or(Method::Get);
        let (content, text) = self.content()?;
        if method == Method::Head && !matches!(content, Content::Any) {
            bail!("the reply to HEAD has no body: remove the --expect option for the body");
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
        let shown = path.display();
        let body = read_at_most(path, rules::LONGEST_BODY as u64)
            .with_context(|| format!("--body-file {shown}"))?;
        body.map(Some).with_context(|| {
            format!("--body-file {shown}: the file is too long; expected at most 4 MiB")
        })
    }

    /// The expectation for the content, and the text to compare it with.
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

/// The target with its workload sent over HTTP/2.
pub fn over_http2(target: Target) -> anyhow::Result<Target> {
    let workload = target.workload.adopted("http2", target.certified.is_some());
    let workload = workload.map_err(|why| anyhow!("--http2: {why}"))?;
    Ok(Target { workload, ..target })
}

fn is_host(name: &str) -> bool {
    name.eq_ignore_ascii_case("host")
}

/// Parses a header to send, `Name: value`.
fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or("expected a header 'Name: value', e.g. 'Accept: application/json'")?;
    rules::check_sent_name(name)?;
    rules::check_value(value)?;
    Ok((name.into(), value.trim().into()))
}

/// Parses an expected header, `Name: value` or `Name`.
fn field(text: &str) -> Result<Field, String> {
    let (name, value) = match text.split_once(':') {
        Some((name, value)) => (name, Value::Is(value.trim().into())),
        None => (text, Value::Any),
    };
    rules::check_name(name)?;
    Ok(Field { name: name.to_ascii_lowercase(), value })
}

/// Parses a regular expression that the content must match.
fn matching(regex: &str) -> Result<Content, String> {
    rules::regex(regex).map(Content::Matches)
}

/// Parses an expected JSON value, `/pointer=value` or `/pointer`.
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
