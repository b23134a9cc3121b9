//! Templates of requests and replies: text with placeholders in braces. Parses, validates and fills
//! them. Random values are in `draw`, arithmetic in `expression`.

use super::{
    conversation::Captures,
    draw::{Draw, Drawer, Kind, Text, Value},
    expression::{Bounds, Expression, is_name},
};

/// A text with placeholders.
#[derive(Debug, PartialEq)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, PartialEq)]
enum Part {
    Text(Vec<u8>),
    /// A value; captured if it has a name.
    Value {
        captured: bool,
        source: Source,
    },
}

/// The source of a placeholder's value.
#[derive(Debug, PartialEq)]
enum Source {
    Draw(Draw),
    /// The capture at this index.
    Capture(usize),
    Arithmetic(Expression),
    /// The request: its line, content, key or command, depending on the protocol.
    Request,
    Function(Function, Box<Source>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Function {
    Upper,
    Lower,
    Reverse,
    Length,
}

/// What the placeholders of a conversation can refer to while it is being read.
pub(crate) struct Scope<'l> {
    /// Names captured so far, and what their values can be.
    pub captures: &'l mut Captures,
    pub lists: &'l mut dyn Lists,
}

impl Scope<'_> {
    /// Returns the bounds of a capture that an expression uses.
    fn integer(&self, at: usize) -> Bounds {
        match self.captures[at].1 {
            Kind::Integer(bounds) => bounds,
            Kind::Text(_) => unreachable!("an expression has only integers"),
        }
    }
}

/// The lists of lines that placeholders name.
pub(crate) trait Lists {
    /// Returns the index of the list of this name; reads it now if necessary.
    fn find(&mut self, name: &str) -> Result<usize, String>;
    /// Describes its lines.
    fn text(&self, list: usize) -> Text;
}

/// The side of an exchange that a template belongs to.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Side {
    /// A request; it may draw and capture values.
    Send,
    /// A reply; it may refer to values sent by a request of at most `request` bytes.
    Expect { request: usize },
}

const PLACEHOLDERS: &str = "placeholders are {counter} {counter:FROM} {int:A..B} {hex:LENGTH} \
    {alnum:LENGTH} {line:FILE} {random_line:FILE}, {name=…} to capture one of them, and for \
    captures {name} {name*2+1} {upper:name} {lower:name} {reverse:name} {len:name}; write {{ and }} \
    for braces";
const RESERVED: [&str; 11] = [
    "counter",
    "int",
    "hex",
    "alnum",
    "line",
    "random_line",
    "upper",
    "lower",
    "reverse",
    "len",
    "request",
];

impl Template {
    /// Parses a template, and adds its captures to the scope.
    pub fn parse(text: &str, side: Side, scope: &mut Scope<'_>) -> Result<Template, String> {
        let (mut parts, mut plain, mut rest) = (Vec::new(), Vec::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain.extend_from_slice(&rest.as_bytes()[..at]);
            let brace = rest.as_bytes()[at];
            rest = &rest[at + 1..];
            if rest.as_bytes().first() == Some(&brace) {
                plain.push(brace);
                rest = &rest[1..];
                continue;
            }
            let (true, Some((hole, after))) = (brace == b'{', rest.split_once('}')) else {
                let brace = char::from(brace);
                return Err(format!(
                    "a single {brace}; write a placeholder as {{int:1..9}}, and \
                                    a literal brace as {brace}{brace}"
                ));
            };
            if !plain.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut plain)));
            }
            parts.push(placeholder(hole, side, scope).map_err(|why| format!("{{{hole}}}: {why}"))?);
            rest = after;
        }
        plain.extend_from_slice(rest.as_bytes());
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Template { parts })
    }

    /// Creates a template of this text, without placeholders.
    pub fn literal(text: Vec<u8>) -> Template {
        Template { parts: vec![Part::Text(text)] }
    }

    /// Returns its text, with `value` in place of each placeholder.
    pub fn literals(&self, value: &str) -> String {
        let text = |part: &Part| match part {
            Part::Text(text) => String::from_utf8_lossy(text).into_owned(),
            Part::Value { .. } => value.into(),
        };
        self.parts.iter().map(text).collect()
    }

    /// Returns its text if it has no placeholders.
    pub fn as_literal(&self) -> Option<&[u8]> {
        match &self.parts[..] {
            [] => Some(&[]),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the list if the template is a line of a list and nothing else.
    pub fn as_line(&self) -> Option<usize> {
        match &self.parts[..] {
            [Part::Value { source: Source::Draw(Draw::Line { list, .. }), .. }] => Some(*list),
            _ => None,
        }
    }

    /// Returns the bounds of its value if it is one integer and nothing else.
    pub fn as_integer(&self, side: Side, scope: &Scope<'_>) -> Option<Bounds> {
        let [Part::Value { source, .. }] = &self.parts[..] else { return None };
        match source.kind(side, scope) {
            Kind::Integer(bounds) => Some(bounds),
            Kind::Text(_) => None,
        }
    }

    /// Returns the maximum number of bytes of the filled-in text.
    pub fn longest(&self, side: Side, scope: &Scope<'_>) -> usize {
        let of = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Value { source, .. } => source.kind(side, scope).text().longest,
        };
        self.parts.iter().map(of).sum()
    }

    /// Whether values in the filled-in text can contain control characters.
    pub fn can_hold_controls(&self, side: Side, scope: &Scope<'_>) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Text(_) => false,
            Part::Value { source, .. } => source.kind(side, scope).text().controls,
        })
    }

    /// Appends the filled-in text to `line`. `captures` are those of the conversation so far.
    pub fn fill(
        &self,
        line: &mut Vec<u8>,
        request: &[u8],
        captures: &mut Vec<Value>,
        drawer: &mut Drawer<'_>,
    ) {
        self.fill_with(line, request, captures, drawer, Value::write);
    }

    /// Like [`Template::fill`]; `write` appends a value.
    #[expect(clippy::too_many_arguments, reason = "what is filled in, and where")]
    pub fn fill_with(
        &self,
        line: &mut Vec<u8>,
        request: &[u8],
        captures: &mut Vec<Value>,
        drawer: &mut Drawer<'_>,
        write: impl Fn(&Value, &mut Vec<u8>),
    ) {
        for part in &self.parts {
            match part {
                Part::Text(text) => line.extend_from_slice(text),
                Part::Value { captured, source } => {
                    let value = source.value(request, captures, drawer);
                    write(&value, line);
                    if *captured {
                        captures.push(value);
                    }
                }
            }
        }
    }
}

/// Parses the text between braces.
fn placeholder(text: &str, side: Side, scope: &mut Scope<'_>) -> Result<Part, String> {
    let (name, text) = match text.split_once('=') {
        // After a colon, `=` belongs to a file name.
        Some((name, text)) if !name.contains(':') => (Some(name.trim()), text.trim()),
        _ => (None, text.trim()),
    };
    let source = source(text, side, scope)?;
    let Some(name) = name else { return Ok(Part::Value { captured: false, source }) };
    if side != Side::Send {
        return Err(format!("only sent values can be captured; write {{{name}}} here"));
    }
    if !is_name(name) || RESERVED.contains(&name) {
        return Err(format!(
            "{name:?} is not a valid name: a name starts with a letter, consists of letters, digits \
             and _, and is none of {}",
            RESERVED.join(", ")
        ));
    }
    if scope.captures.iter().any(|(taken, _)| taken == name) {
        return Err(format!("{name} is captured already; give it another name"));
    }
    let kind = source.kind(side, scope);
    scope.captures.push((name.into(), kind));
    Ok(Part::Value { captured: true, source })
}

fn source(text: &str, side: Side, scope: &mut Scope<'_>) -> Result<Source, String> {
    let (word, argument) = match text.split_once(':') {
        Some((word, argument)) => (word.trim(), Some(argument.trim())),
        None => (text, None),
    };
    if let Some(draw) = Draw::parse(word, argument, |name| scope.lists.find(name)) {
        return match side {
            Side::Send => draw.map(Source::Draw),
            Side::Expect { .. } => Err(format!(
                "an expected reply cannot draw a new value: capture it in the request, e.g. \
                 {{n={text}}}, and write {{n}} here"
            )),
        };
    }
    let function = match word {
        "upper" => Function::Upper,
        "lower" => Function::Lower,
        "reverse" => Function::Reverse,
        "len" => Function::Length,
        _ if argument.is_some() => {
            return Err(format!("no such placeholder: {word:?}; {PLACEHOLDERS}"));
        }
        _ => return of_captures(text, side, scope),
    };
    let Some(argument) = argument.filter(|name| is_name(name)) else {
        return Err(format!("{word} needs the name of a capture, e.g. {{{word}:name}}"));
    };
    Ok(Source::Function(function, Box::new(of_captures(argument, side, scope)?)))
}

/// Parses the request, a capture, or arithmetic with captures.
fn of_captures(text: &str, side: Side, scope: &Scope<'_>) -> Result<Source, String> {
    if text == "request" {
        return match side {
            Side::Expect { .. } => Ok(Source::Request),
            Side::Send => Err("{request} can be used only in an expected reply".into()),
        };
    }
    let find = |name: &str| {
        let at = scope.captures.iter().position(|(captured, _)| captured == name);
        at.ok_or_else(|| {
            let names: Vec<&str> = scope.captures.iter().map(|(name, _)| name.as_str()).collect();
            let so_far = match &names[..] {
                [] => "nothing is captured so far".into(),
                names => format!("captured so far: {}", names.join(", ")),
            };
            format!("no such placeholder or capture: {name:?}; {so_far}; {PLACEHOLDERS}")
        })
    };
    if is_name(text) {
        return find(text).map(Source::Capture);
    }
    let expression = Expression::parse(text, |name| {
        let at = find(name)?;
        match scope.captures[at].1 {
            Kind::Integer(_) => Ok(at),
            Kind::Text(_) => Err(format!("{name} is text; arithmetic needs integers")),
        }
    })?;
    if expression.bounds(|at| scope.integer(at)).is_none() {
        return Err("the result can exceed 128 bits; use smaller integers".into());
    }
    Ok(Source::Arithmetic(expression))
}

impl Source {
    fn kind(&self, side: Side, scope: &Scope<'_>) -> Kind {
        match self {
            Source::Draw(draw) => draw.kind(|list| scope.lists.text(list)),
            Source::Capture(at) => scope.captures[*at].1,
            Source::Arithmetic(expression) => {
                let bounds = expression.bounds(|at| scope.integer(at));
                Kind::Integer(bounds.expect("checked when the template was parsed"))
            }
            Source::Request => match side {
                Side::Expect { request } => Kind::Text(Text { longest: request, controls: true }),
                Side::Send => unreachable!("rejected when the template was parsed"),
            },
            Source::Function(function, of) => match (function, of.kind(side, scope).text()) {
                (Function::Length, text) => {
                    Kind::Integer(Bounds { low: 0, high: text.longest as i128 })
                }
                (_, text) => Kind::Text(text),
            },
        }
    }

    fn value(&self, request: &[u8], captures: &[Value], drawer: &mut Drawer<'_>) -> Value {
        match self {
            Source::Draw(draw) => drawer.draw(draw),
            Source::Capture(at) => captures[*at].clone(),
            Source::Arithmetic(expression) => {
                Value::Integer(expression.value(|at| match captures[at] {
                    Value::Integer(n) => n,
                    Value::Text(_) => unreachable!("an expression has only integers"),
                }))
            }
            Source::Request => Value::Text(request.to_vec()),
            Source::Function(function, of) => {
                let mut text = Vec::new();
                of.value(request, captures, drawer).write(&mut text);
                function.of(text)
            }
        }
    }
}

impl Function {
    /// Upper and lower case are those of ASCII; `reverse` counts characters, `len` counts bytes.
    fn of(self, mut text: Vec<u8>) -> Value {
        match self {
            Function::Upper => text.make_ascii_uppercase(),
            Function::Lower => text.make_ascii_lowercase(),
            Function::Reverse => {
                let reversed: String = String::from_utf8_lossy(&text).chars().rev().collect();
                text = reversed.into_bytes();
            }
            Function::Length => return Value::Integer(text.len() as i128),
        }
        Value::Text(text)
    }
}

impl Value {
    /// Appends the value as it is.
    pub(crate) fn write(&self, line: &mut Vec<u8>) {
        match self {
            Value::Integer(n) => line.extend_from_slice(n.to_string().as_bytes()),
            Value::Text(text) => line.extend_from_slice(text),
        }
    }
}
