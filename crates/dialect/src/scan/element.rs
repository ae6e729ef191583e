//! Parses a call with brackets: an object, or a name and then the arguments.

use serde_json::{Map, Value};

use super::Cx;
use super::head::{self, Head};
use crate::call::{self, Parts};
use crate::fault::Fault;
use crate::format::{Format, Keys, Shape};
use crate::json::{self, Extent, Reach, Syntax};
use crate::repair::{Repair, Repairs};

/// The result of parsing a call so far.
#[derive(Debug)]
pub(crate) enum Step {
    /// More text is needed.
    More,
    /// The call, valid or not, ends at this position.
    Done(usize, Result<Parts, Fault>),
    /// The text is not a call.
    Words,
    /// The text up to this position is a header that announces text or reasoning.
    Announces(usize, Speech),
}

/// What the header of a channel announces, if not a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speech {
    Text,
    Thoughts,
}

/// The state of parsing a call with brackets. Positions are relative to the first byte that was not emitted yet.
#[derive(Debug)]
pub(crate) struct Bracketed {
    start: usize,
    head: Option<Head>,
    body: Option<(usize, Extent)>,
    searched: usize,
}

impl Bracketed {
    pub fn new(start: usize) -> Self {
        Self { start, head: None, body: None, searched: start }
    }

    /// Returns the tool name, once it is known.
    pub fn name(&self) -> Option<&str> {
        self.head.as_ref().map(|head| head.name.as_str())
    }

    /// Returns whether the arguments are inside a code fence that the head opened.
    pub fn fenced(&self) -> bool {
        self.head.as_ref().is_some_and(|head| head.fenced)
    }

    /// Returns whether the text ends inside the brackets.
    pub fn goes_on(&mut self, text: &str, stops: &[String]) -> bool {
        self.body.as_mut().is_some_and(|(_, extent)| extent.advance(text, stops, false) == Reach::More)
    }

    pub fn advance(
        &mut self,
        text: &str,
        format: &'static Format,
        keys: &[&'static Keys],
        stops: &[String],
        cx: &Cx<'_>,
        end: bool,
    ) -> Step {
        if self.body.is_none() {
            match head::find(text, self.start, &mut self.searched, format, stops, cx, end) {
                head::Found::More => return Step::More,
                head::Found::Words => return Step::Words,
                head::Found::Broken(at, fault) => return Step::Done(at, Err(fault)),
                head::Found::Announces(at, speech) => return Step::Announces(at, speech),
                head::Found::Input(at, parts) => return Step::Done(at, Ok(parts)),
                head::Found::Head(at, head) => {
                    self.head = head;
                    let syntax = syntax(format, keys);
                    // Most arguments are plain JSON and complete. Then one pass is enough.
                    if let Some((length, result)) = self.at_once(&text[at..], syntax, keys, cx) {
                        return Step::Done(at + length, result);
                    }
                    self.body = Some((at, Extent::new(syntax, at)));
                }
            }
        }
        let Some((body, extent)) = &mut self.body else { return Step::More };
        let body = *body;
        match extent.advance(text, stops, end) {
            Reach::Whole(at) => Step::Done(at, self.read(&text[body..at], format, keys, 0, cx)),
            Reach::Stopped(at) => Step::Done(at, self.read(text[body..at].trim_end(), format, keys, usize::MAX, cx)),
            Reach::More if !end => Step::More,
            // Only the outermost bracket may be missing, because then name and arguments are complete.
            Reach::More if extent.depth() == 1 && matches!(format.shape, Shape::Object(_)) => {
                let result = self.read(text[body..].trim_end(), format, keys, 1, cx);
                let whole = result.ok().filter(|parts| !parts.repairs.contains(Repair::MissingArguments));
                Step::Done(text.len(), whole.ok_or_else(Fault::cut))
            }
            Reach::More => Step::Done(text.len(), Err(Fault::cut())),
        }
    }

    fn read(&self, body: &str, format: &'static Format, keys: &[&'static Keys], missing: usize, cx: &Cx<'_>) -> Result<Parts, Fault> {
        let syntax = syntax(format, keys);
        if format.shape.syntax() == Syntax::Python {
            return self.python(body, cx);
        }
        let reading = json::read(body, syntax, cx.mode, missing)?;
        self.made(reading.value, reading.repairs, keys, cx)
    }

    /// Parses arguments that are complete and plain JSON. Returns `None` for others.
    fn at_once(&self, body: &str, syntax: Syntax, keys: &[&'static Keys], cx: &Cx<'_>) -> Option<(usize, Result<Parts, Fault>)> {
        if syntax != Syntax::Json {
            return None;
        }
        if self.head.is_none() {
            let (members, length) = json::read_members(body)?;
            return Some((length, call::from_members(members, keys, cx.mode, cx.tools)));
        }
        let (value, length) = json::read_plain(body)?;
        Some((length, self.made(value, Repairs::default(), keys, cx)))
    }

    /// Creates the call from its parsed object or arguments.
    fn made(&self, value: Value, mut repairs: Repairs, keys: &[&'static Keys], cx: &Cx<'_>) -> Result<Parts, Fault> {
        let Some(head) = &self.head else {
            return call::from_value(value, keys, cx.mode, cx.tools, repairs);
        };
        repairs.join(head.repairs);
        match value {
            Value::Object(arguments) => call::finish(&head.name, head.id.clone(), arguments, cx.mode, cx.tools, repairs),
            other => Err(call::not_an_object(&head.name, &other)),
        }
    }

    fn python(&self, body: &str, cx: &Cx<'_>) -> Result<Parts, Fault> {
        let name = self.name().unwrap_or_default();
        let reading = json::read_arguments(body, cx.mode)?;
        let (mut arguments, mut repairs) = (reading.value, reading.repairs);
        if let Some(value) = reading.positional {
            place(value, name, &mut arguments, &mut repairs, cx)?;
        }
        call::finish(name, None, arguments, cx.mode, cx.tools, repairs)
    }
}

/// Assigns an argument without a name to the only required parameter. Fails if there is no such parameter.
pub(super) fn place(value: Value, name: &str, arguments: &mut Map<String, Value>, repairs: &mut Repairs, cx: &Cx<'_>) -> Result<(), Fault> {
    match cx.tools.only_required(name) {
        Some(only) if !arguments.contains_key(only) => {
            repairs.add(Repair::PositionalArgument);
            arguments.insert(only.to_owned(), value);
            Ok(())
        }
        _ => Err(Fault::syntax("every argument needs its name: tool(name=value)")),
    }
}

fn syntax(format: &Format, keys: &[&Keys]) -> Syntax {
    if keys.iter().any(|keys| keys.python) { Syntax::Python } else { format.shape.syntax() }
}
