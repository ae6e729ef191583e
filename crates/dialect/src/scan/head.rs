//! Parses the head of a call, before the arguments: the tool name, an id, or the header of a channel.

use serde_json::{Map, Value};

use super::element::{self, Speech};
use super::tag::floor;
use super::{Cx, Match, blank_end, literal};
use crate::call::{self, Parts};
use crate::fault::{Fault, FaultKind};
use crate::find::first_mark;
use crate::format::{Format, Shape};
use crate::repair::{Repair, Repairs};
use crate::work::seen;

/// Maximum length of a head, in bytes.
const MAX_HEAD: usize = 1024;

/// The head of a call.
#[derive(Debug)]
pub(crate) struct Head {
    pub name: String,
    pub id: Option<String>,
    pub fenced: bool,
    pub repairs: Repairs,
}

/// The result of parsing the head of a call.
pub(super) enum Found {
    /// More text is needed.
    More,
    /// The text is not a call.
    Words,
    /// The call is invalid, and ends at this position.
    Broken(usize, Fault),
    /// The text up to this position is a header that announces text or reasoning.
    Announces(usize, Speech),
    /// The arguments start at this position. Without a head they are the whole call.
    Head(usize, Option<Head>),
    /// The call is complete and ends at this position: its input is plain text or missing.
    Input(usize, Parts),
}

/// Parses the head of a call that starts at `start`.
pub(super) fn find(text: &str, start: usize, searched: &mut usize, format: &Format, stops: &[String], cx: &Cx<'_>, end: bool) -> Found {
    match &format.shape {
        Shape::Object(_) => Found::Head(start, None),
        Shape::Python => named(text, start, start, b'(', end),
        Shape::Braces(_) => named(text, start, start + "call:".len(), b'{', end),
        Shape::Channel => channel(text, start, cx, end),
        Shape::Headed { heads, text_input } if format.weak => weakly_headed(text, start, searched, heads[0], *text_input, cx, end),
        Shape::Headed { heads, .. } => headed(text, start, searched, heads, stops, cx, end),
        Shape::Tagged(_) => Found::Broken(start, call::no_name()),
    }
}

/// Parses a name that is directly followed by its bracket.
fn named(text: &str, start: usize, from: usize, bracket: u8, end: bool) -> Found {
    let rest = &text.as_bytes()[from.min(text.len())..];
    let window = &rest[..rest.len().min(MAX_HEAD)];
    match seen(window, memchr::memchr(bracket, window)) {
        Some(at) => {
            let name = text[from..from + at].trim().to_owned();
            Found::Head(from + at, Some(Head { name, id: None, fenced: false, repairs: Repairs::default() }))
        }
        None if rest.len() < MAX_HEAD && !end => Found::More,
        None if rest.len() < MAX_HEAD => Found::Broken(text.len(), Fault::cut()),
        None => Found::Broken(start, call::no_name()),
    }
}

/// Parses a name and a separator after an unambiguous marker.
fn headed(text: &str, start: usize, searched: &mut usize, heads: &[&str], stops: &[String], cx: &Cx<'_>, end: bool) -> Found {
    let limit = floor(text, start + MAX_HEAD);
    let unseen = &text.as_bytes()[(*searched).min(limit)..limit];
    let brace = seen(unseen, memchr::memchr(b'{', unseen)).map(|at| at + *searched);
    let written = &text[start..brace.unwrap_or(limit)];
    if let Some(stop) = stops.iter().filter_map(|stop| seen(written, written.find(stop.as_str()))).min() {
        return without_arguments(&written[..stop], start + stop, heads, cx);
    }
    let Some(brace) = brace else {
        *searched = limit;
        return match (text.len() - start >= MAX_HEAD, end) {
            (true, _) => Found::Broken(start, call::no_name()),
            (false, false) => Found::More,
            (false, true) => Found::Broken(text.len(), Fault::cut()),
        };
    };
    match fenced(written).and_then(|(written, fenced)| Some((matching(heads, written)?, fenced))) {
        Some(((name, id), fenced)) => Found::Head(brace, Some(Head { name, id, fenced, repairs: Repairs::default() })),
        None => Found::Broken(brace, Fault::new(FaultKind::NoName, "the call does not start with the tool's name as the format requires")),
    }
}

/// Parses a line with the name of a known tool, the rest of the template, and then the input. Everything else is text.
fn weakly_headed(text: &str, start: usize, searched: &mut usize, template: &str, text_input: bool, cx: &Cx<'_>, end: bool) -> Found {
    const AROUND: [char; 4] = [' ', '`', '"', '*'];
    let tail = template.split_once('\n').map_or("", |(_, tail)| tail);
    let rest = &text[start..];
    let window = &rest.as_bytes()[..rest.len().min(MAX_HEAD)];
    let line = seen(window, memchr::memchr(b'\n', window));
    if line.is_none() && rest.len() >= MAX_HEAD {
        return Found::Words;
    }
    let name = rest[..line.unwrap_or(rest.len())].trim().trim_matches(AROUND);
    let Some(line) = line else {
        let may = !end && (name.is_empty() || (is_name(name) && cx.tools.has_prefix(name)));
        return if may { Found::More } else { Found::Words };
    };
    if !is_name(name) || !cx.tools.knows(name) {
        return Found::Words;
    }
    let at = blank_end(text, start + line);
    if at - start > MAX_HEAD {
        return Found::Words;
    }
    match literal(&text[at..], tail, end) {
        Match::No => return Found::Words,
        Match::Partly => return Found::More,
        Match::Yes => {}
    }
    let from = at + tail.len();
    let input = blank_end(text, from);
    if input - from > MAX_HEAD {
        return plain_input(text, from, searched, name, text_input, cx, end);
    }
    let head = |fenced| Head { name: name.to_owned(), id: None, fenced, repairs: Repairs::default() };
    match text.as_bytes().get(input) {
        None if end => Found::Broken(text.len(), Fault::cut()),
        None => Found::More,
        Some(b'{') => Found::Head(input, Some(head(false))),
        Some(b'`') => {
            let inner = &text[input..];
            let inner = &inner.as_bytes()[..inner.len().min(MAX_HEAD)];
            let ticks = inner.iter().take_while(|b| **b == b'`').count();
            let word = inner[ticks..].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
            let brace = input + ticks + word + inner[ticks + word..].iter().take_while(|b| b.is_ascii_whitespace()).count();
            match text.as_bytes().get(brace) {
                None if !end && inner.len() < MAX_HEAD => Found::More,
                Some(b'{') => Found::Head(brace, Some(head(ticks >= 3))),
                _ => plain_input(text, from, searched, name, text_input, cx, end),
            }
        }
        Some(_) => plain_input(text, from, searched, name, text_input, cx, end),
    }
}

/// Handles a head without arguments.
fn without_arguments(head: &str, at: usize, heads: &[&str], cx: &Cx<'_>) -> Found {
    let matched = matching(heads, head).or_else(|| {
        let name = head.trim();
        (is_name(name) && heads.iter().any(|head| head.starts_with("{name}"))).then(|| (name.to_owned(), None))
    });
    match matched {
        Some((name, id)) if cx.mode.is_lenient() => {
            let mut repairs = Repairs::default();
            repairs.add(Repair::MissingArguments);
            match call::finish(&name, id, Map::new(), cx.mode, cx.tools, repairs) {
                Ok(parts) => Found::Input(at, parts),
                Err(fault) => Found::Broken(at, fault),
            }
        }
        Some((name, _)) => Found::Broken(at, Fault::syntax(format!("the call to {name} has no arguments; write {{}} if there are none"))),
        None => Found::Broken(at, call::no_name()),
    }
}

/// Removes a code fence from the end of a head, and returns whether there was one. Returns `None` if the fence has other text after it.
fn fenced(head: &str) -> Option<(&str, bool)> {
    match head.rfind("```") {
        Some(at) => {
            let word = head[at + 3..].trim();
            word.bytes().all(|b| b.is_ascii_alphanumeric()).then(|| (&head[..at], true))
        }
        None => Some((head, false)),
    }
}

/// Returns the name and the id in a head that matches one of the templates.
fn matching(heads: &[&str], head: &str) -> Option<(String, Option<String>)> {
    heads.iter().find_map(|template| fit(template, head))
}

/// Returns the name and the id in a head that matches a template.
fn fit(template: &str, head: &str) -> Option<(String, Option<String>)> {
    let (mut name, mut id) = (None, None);
    let (mut pattern, mut rest) = (template, head);
    while let Some(open) = pattern.find('{') {
        rest = rest.trim_start().strip_prefix(&pattern[..open])?;
        let close = pattern.find('}')?;
        let field = &pattern[open + 1..close];
        pattern = &pattern[close + 1..];
        let literal = &pattern[..pattern.find('{').unwrap_or(pattern.len())];
        let end = if literal.is_empty() { rest.len() } else { rest.find(literal)? };
        let value = rest[..end].trim();
        rest = &rest[end..];
        match field {
            "id" => id = Some(value.to_owned()),
            // `functions.name:0` is the id and contains the name.
            "function" => {
                id = Some(value.to_owned());
                let short = value.strip_prefix("functions.").unwrap_or(value);
                let short = match short.rsplit_once(':') {
                    Some((short, number)) if number.bytes().all(|b| b.is_ascii_digit()) => short,
                    _ => short,
                };
                name = Some(short.to_owned());
            }
            _ => name = Some(value.to_owned()),
        }
    }
    let tail = rest.trim_start_matches(' ').strip_prefix(pattern)?;
    let name = name.filter(|name| is_name(name))?;
    tail.trim().is_empty().then_some((name, id))
}

/// Returns whether a text can be a tool name.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 256
        && !text
            .contains(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '{' | '}' | '(' | ')' | '[' | ']' | '"' | '\'' | '`' | ','))
}

/// Literals that end plain input.
const STOPS: [&str; 4] = ["\nObservation", "\nThought:", "\nAction:", "\nFinal Answer"];

/// Parses input that is plain text, as the value of the only required parameter.
fn plain_input(text: &str, from: usize, searched: &mut usize, name: &str, allowed: bool, cx: &Cx<'_>, end: bool) -> Found {
    let not_an_object =
        |at| Found::Broken(at, Fault::new(FaultKind::NotAnObject, format!("the arguments of {name} must be a JSON object")));
    if !allowed {
        return not_an_object(from);
    }
    let unseen = from.max(*searched);
    let rest = &text.as_bytes()[unseen..];
    let stop = first_mark(rest, &STOPS).map(|(at, _)| at);
    if stop.is_none() && !end {
        *searched = unseen.max(text.len().saturating_sub(STOPS[3].len()));
        return Found::More;
    }
    let length = stop.map_or_else(|| from + text[from..].trim_end().len(), |stop| unseen + stop);
    let mut value = text[from..length].trim();
    if let Some(inner) = value.strip_prefix('"') {
        match inner.strip_suffix('"') {
            Some(inner) if !inner.contains('"') => value = inner,
            None if stop.is_none() && !inner.contains('"') => return Found::Broken(length, Fault::cut()),
            _ => {}
        }
    }
    let value = value.to_owned();
    let mut arguments = Map::new();
    if element::place(Value::String(value), name, &mut arguments, &mut Repairs::default(), cx).is_err() {
        return not_an_object(length);
    }
    match call::finish(name, None, arguments, cx.mode, cx.tools, Repairs::default()) {
        Ok(parts) => Found::Input(length, parts),
        Err(fault) => Found::Broken(length, fault),
    }
}

const MESSAGE: &str = "<|message|>";

/// Parses the header of a channel, up to `<|message|>`.
fn channel(text: &str, start: usize, cx: &Cx<'_>, end: bool) -> Found {
    let limit = text.len().min(start + MAX_HEAD);
    let window = &text.as_bytes()[start..limit];
    let Some(at) = seen(window, memchr::memmem::find(window, MESSAGE.as_bytes())) else {
        return match (limit - start >= MAX_HEAD, end) {
            (true, _) => Found::Words,
            (false, false) => Found::More,
            (false, true) => Found::Broken(text.len(), Fault::cut()),
        };
    };
    let header = &text[start..start + at];
    let after = start + at + MESSAGE.len();
    if let Some(recipient) = header.find("to=").map(|at| &header[at + 3..]) {
        let written = recipient[..recipient.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(recipient.len())].trim();
        let name = written.strip_prefix("functions.").unwrap_or(written);
        if is_name(name) && (name != written || cx.tools.knows(name)) {
            // Without a channel it may be a header of another model family. Then the call follows in its own markers.
            let sure = name != written || header.contains("<|channel|>");
            return call_body(text, after, name, sure, end);
        }
    }
    let channel = header.rsplit("<|channel|>").next().unwrap_or(header).trim_start();
    let thoughts = header.contains("<|channel|>") && channel.starts_with("analysis");
    Found::Announces(after, if thoughts { Speech::Thoughts } else { Speech::Text })
}

fn call_body(text: &str, after: usize, name: &str, sure: bool, end: bool) -> Found {
    let start = blank_end(text, after);
    let trimmed = &text[start..];
    if start - after > MAX_HEAD {
        return Found::Broken(after, Fault::new(FaultKind::NotAnObject, format!("the arguments of {name} must be a JSON object")));
    }
    if trimmed.is_empty() {
        return if end { Found::Broken(text.len(), Fault::cut()) } else { Found::More };
    }
    if !trimmed.starts_with('{') && !sure {
        return Found::Announces(after, Speech::Text);
    }
    if !trimmed.starts_with('{') {
        return Found::Broken(after, Fault::new(FaultKind::NotAnObject, format!("the arguments of {name} must be a JSON object")));
    }
    let head = Head { name: name.to_owned(), id: None, fenced: false, repairs: Repairs::default() };
    Found::Head(start, Some(head))
}
