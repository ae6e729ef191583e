//! What stands before the arguments: the tool's name, an id, a channel's header.

use serde_json::{Map, Value};

use super::Cx;
use super::element::{self, Speech};
use crate::call::{self, Parts};
use crate::fault::{Fault, Kind};
use crate::format::{Format, Shape};
use crate::repair::{Repair, Repairs};

/// A head is never longer than this.
const MAX_HEAD: usize = 1024;

/// Who is called.
#[derive(Debug)]
pub(crate) struct Head {
    pub name: String,
    pub id: Option<String>,
    pub fenced: bool,
    pub repairs: Repairs,
}

/// What a look for the head found.
pub(super) enum Found {
    More,
    Words,
    Broken(usize, Fault),
    Announces(usize, Speech),
    /// The arguments begin here. Without a head they are the whole call.
    Head(usize, Option<Head>),
    /// The input was plain text, and ends here.
    Input(usize, Parts),
}

pub(super) fn find(text: &str, start: usize, searched: &mut usize, format: &Format, stops: &[String], cx: &Cx<'_>, end: bool) -> Found {
    match &format.shape {
        Shape::Object(_) => Found::Head(start, None),
        Shape::Python => named(text, start, start, b'(', end),
        Shape::Braces(_) => named(text, start, start + "call:".len(), b'{', end),
        Shape::Channel => channel(text, start, cx, end),
        Shape::Headed { heads, text_input } => headed(text, start, searched, format, heads, *text_input, stops, cx, end),
        Shape::Tagged(_) => Found::Broken(start, call::no_name()),
    }
}

/// A name right before its bracket.
fn named(text: &str, start: usize, from: usize, bracket: u8, end: bool) -> Found {
    let rest = &text.as_bytes()[from.min(text.len())..];
    let window = &rest[..rest.len().min(MAX_HEAD)];
    match memchr::memchr(bracket, window) {
        Some(at) => {
            let name = text[from..from + at].trim().to_owned();
            Found::Head(from + at, Some(Head { name, id: None, fenced: false, repairs: Repairs::default() }))
        }
        None if rest.len() < MAX_HEAD && !end => Found::More,
        None if rest.len() < MAX_HEAD => Found::Broken(text.len(), Fault::cut()),
        None => Found::Broken(start, call::no_name()),
    }
}

#[expect(clippy::too_many_arguments, reason = "one look, seen from one place")]
fn headed(
    text: &str,
    start: usize,
    searched: &mut usize,
    format: &Format,
    heads: &[&str],
    text_input: bool,
    stops: &[String],
    cx: &Cx<'_>,
    end: bool,
) -> Found {
    let limit = text.len().min(start + MAX_HEAD);
    let window = &text.as_bytes()[*searched..limit];
    let Some(brace) = memchr::memchr(b'{', window).map(|at| at + *searched) else {
        let head = text.get(start..limit).unwrap_or_default();
        if let Some(stop) = stops.iter().filter_map(|stop| head.find(stop.as_str())).min() {
            return without_arguments(&head[..stop], start + stop, heads, format, cx);
        }
        if text_input && let Some(found) = plain_input(text, start, heads, cx, end) {
            return found;
        }
        if format.weak && !may_become(head, heads, cx) {
            return Found::Words;
        }
        if format.weak && !text_input && let Some((name, rest)) = head.split_once('\n') && !rest.trim().is_empty() {
            let fault = Fault::new(Kind::NotAnObject, format!("the arguments of {} must be a JSON object", name.trim()));
            return Found::Broken(start + name.len() + 1, fault);
        }
        if limit < text.len() || limit - start >= MAX_HEAD {
            return if format.weak { Found::Words } else { Found::Broken(start, call::no_name()) };
        }
        *searched = limit;
        return match (end, format.weak) {
            (false, _) => Found::More,
            (true, true) => Found::Words,
            (true, false) => Found::Broken(text.len(), Fault::cut()),
        };
    };
    let written = &text[start..brace];
    if let Some(stop) = stops.iter().filter_map(|stop| written.find(stop.as_str())).min() {
        return without_arguments(&written[..stop], start + stop, heads, format, cx);
    }
    let matched = fenced(written).and_then(|(written, fenced)| Some((matching(heads, written)?, fenced)));
    let Some(((name, id), fenced)) = matched.filter(|((name, _), _)| !format.weak || cx.tools.knows(name)) else {
        if text_input && let Some(found) = plain_input(text, start, heads, cx, end) {
            return found;
        }
        if format.weak {
            return Found::Words;
        }
        return Found::Broken(brace, Fault::new(Kind::NoName, "the call does not begin with the tool's name as the format wants it"));
    };
    Found::Head(brace, Some(Head { name, id, fenced, repairs: Repairs::default() }))
}

/// A head whose arguments never came.
fn without_arguments(head: &str, at: usize, heads: &[&str], format: &Format, cx: &Cx<'_>) -> Found {
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
        Some((name, _)) => Found::Broken(at, Fault::syntax(format!("the call of {name} has no arguments; write {{}} where there are none"))),
        None if format.weak => Found::Words,
        None => Found::Broken(at, call::no_name()),
    }
}

/// Takes a code fence off the end of a head. Nothing where something else stands there.
fn fenced(head: &str) -> Option<(&str, bool)> {
    match head.rfind("```") {
        Some(at) => {
            let word = head[at + 3..].trim();
            word.bytes().all(|b| b.is_ascii_alphanumeric()).then(|| (&head[..at], true))
        }
        None => Some((head, false)),
    }
}

/// The name and id in a head that fits one of the templates.
fn matching(heads: &[&str], head: &str) -> Option<(String, Option<String>)> {
    heads.iter().find_map(|template| fit(template, head))
}

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
        let value = rest[..end].trim().trim_matches(['`', '"', '*']);
        rest = &rest[end..];
        match field {
            "id" => id = Some(value.to_owned()),
            // `functions.name:0` is name and id at once.
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

/// Whether text can be a tool's name.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 256
        && !text.contains(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '{' | '}' | '(' | ')' | '[' | ']' | '"' | '\'' | '`' | ','))
}

/// Whether the start of a head can still become one of a known tool.
fn may_become(head: &str, heads: &[&str], cx: &Cx<'_>) -> bool {
    let head = head.trim_start_matches([' ', '`', '"', '*']);
    match head.split_once('\n') {
        None => {
            let name = head.trim_end().trim_end_matches(['`', '"', '*']);
            name.is_empty() || (is_name(name) && cx.tools.has_prefix(name))
        }
        Some((name, after)) => {
            let wanted = heads.iter().filter_map(|template| template.split_once('\n')).map(|(_, after)| after);
            let after = after.trim_start();
            cx.tools.knows(name.trim().trim_end_matches(['`', '"', '*'])) && wanted.into_iter().any(|wanted| after.starts_with(wanted) || wanted.starts_with(after))
        }
    }
}

/// Input that is plain text: the value of the only required parameter.
fn plain_input(text: &str, start: usize, heads: &[&str], cx: &Cx<'_>, end: bool) -> Option<Found> {
    let template = heads.first()?.strip_prefix("{name}")?;
    let rest = &text[start..];
    let at = rest.find(template)?;
    let name = rest[..at].trim();
    if !is_name(name) || !cx.tools.knows(name) {
        return None;
    }
    let from = start + at + template.len();
    let input = &text[from..];
    let trimmed = input.trim_start();
    if trimmed.is_empty() && !end {
        return Some(Found::More);
    }
    if trimmed.starts_with('{') || (trimmed.starts_with('`') && trimmed.len() < 16 && !end) || fence_then_brace(trimmed) {
        return None;
    }
    let stop = ["\nObservation", "\nThought:", "\nAction:", "\nFinal Answer"].iter().filter_map(|mark| input.find(mark)).min();
    if stop.is_none() && !end {
        return Some(Found::More);
    }
    let value = input[..stop.unwrap_or(input.len())].trim();
    let length = if stop.is_some() { from + stop.unwrap_or(0) } else { from + input.trim_end().len() };
    let (mut arguments, mut repairs) = (Map::new(), Repairs::default());
    let value = Value::String(value.trim_matches('"').to_owned());
    if let Err(fault) = element::place(value, name, &mut arguments, &mut repairs, cx) {
        let fault = Fault::new(Kind::NotAnObject, format!("{}; write the input as a JSON object", fault.error));
        return Some(Found::Broken(length, fault));
    }
    Some(match call::finish(name, None, arguments, cx.mode, cx.tools, Repairs::default()) {
        Ok(parts) => Found::Input(length, parts),
        Err(fault) => Found::Broken(length, fault),
    })
}

fn fence_then_brace(text: &str) -> bool {
    text.strip_prefix("```").is_some_and(|rest| rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).trim_start().starts_with('{'))
}

const MESSAGE: &str = "<|message|>";

/// A channel's header, up to `<|message|>`.
fn channel(text: &str, start: usize, cx: &Cx<'_>, end: bool) -> Found {
    let limit = text.len().min(start + MAX_HEAD);
    let Some(window) = text.get(start..limit) else { return Found::Broken(start, call::no_name()) };
    let Some(at) = window.find(MESSAGE) else {
        return match (limit - start >= MAX_HEAD, end) {
            (true, _) => Found::Announces(start, Speech::Text),
            (false, false) => Found::More,
            (false, true) => Found::Broken(text.len(), Fault::cut()),
        };
    };
    let header = &window[..at];
    let after = start + at + MESSAGE.len();
    if let Some(recipient) = header.find("to=").map(|at| &header[at + 3..]) {
        let written = recipient[..recipient.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(recipient.len())].trim();
        let name = written.strip_prefix("functions.").unwrap_or(written);
        if is_name(name) && (name != written || cx.tools.knows(name)) {
            // Without a channel it may be another family's header; then the call itself follows in its own marks.
            let sure = name != written || header.contains("<|channel|>");
            return call_body(text, after, name, sure, end);
        }
    }
    let channel = header.rsplit("<|channel|>").next().unwrap_or(header).trim_start();
    let thoughts = header.contains("<|channel|>") && channel.starts_with("analysis");
    Found::Announces(after, if thoughts { Speech::Thoughts } else { Speech::Text })
}

fn call_body(text: &str, after: usize, name: &str, sure: bool, end: bool) -> Found {
    let body = &text[after..];
    let trimmed = body.trim_start();
    if trimmed.is_empty() {
        return if end { Found::Broken(text.len(), Fault::cut()) } else { Found::More };
    }
    if !trimmed.starts_with('{') && !sure {
        return Found::Announces(after, Speech::Text);
    }
    if !trimmed.starts_with('{') {
        return Found::Broken(after, Fault::new(Kind::NotAnObject, format!("the arguments of {name} must be a JSON object")));
    }
    let head = Head { name: name.to_owned(), id: None, fenced: false, repairs: Repairs::default() };
    Found::Head(after + body.len() - trimmed.len(), Some(head))
}
