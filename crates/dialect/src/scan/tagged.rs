//! Parses a call in tags: the tool name, then parameters. The value of a parameter is the text up to its closing tag.

use std::ops::Range;

use serde_json::{Map, Value};

use super::Cx;
use super::element::Step;
use super::marks::TagMarks;
use super::tag::{MAX_TAG, floor, tag_end};
use super::value::{Look, ValueScan};
use super::{Match, any, blank_end, literal};
use crate::call::{self, Parts};
use crate::fault::{Fault, FaultKind};
use crate::format::{CallTag, ParameterTag, Tags};
use crate::json::{self, MAX_VALUES};
use crate::repair::{Repair, Repairs};
use crate::types::Types;
use crate::work::{self, seen};
use crate::xml;

/// The state of parsing a call in tags. Positions are relative to the first byte that was not emitted yet.
#[derive(Debug)]
pub(crate) struct Tagged {
    start: usize,
    at: usize,
    name: Option<String>,
    id: Option<String>,
    parameters: Vec<Parameter>,
    value: Option<(Parameter, ValueScan)>,
    wrapped: bool,
    unwrapped: bool,
    repairs: Repairs,
}

/// The name of the called tool, and the parameters so far.
pub(super) struct Declared<'a> {
    pub name: &'a str,
    given: &'a [Parameter],
}

impl Declared<'_> {
    pub fn count(&self) -> usize {
        self.given.len()
    }

    pub fn has(&self, key: &str) -> bool {
        work::count(self.given.len());
        self.given.iter().any(|parameter| parameter.key == key)
    }
}

#[derive(Debug)]
pub(super) struct Parameter {
    key: String,
    kind: Option<String>,
    value: Range<usize>,
}

enum Part {
    More,
    Go,
    Done(Step),
}

impl Tagged {
    pub fn new(start: usize) -> Self {
        Self {
            start,
            at: start,
            name: None,
            id: None,
            parameters: Vec::new(),
            value: None,
            wrapped: false,
            unwrapped: false,
            repairs: Repairs::default(),
        }
    }

    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub fn advance(&mut self, text: &str, marks: &TagMarks, cx: &mut Cx<'_>, end: bool) -> Step {
        loop {
            let part = if self.name.is_none() {
                self.open(text, marks, cx, end)
            } else if self.value.is_some() {
                self.value(text, marks, cx, end)
            } else {
                self.between(text, marks, cx, end)
            };
            match part {
                Part::Go => {}
                Part::More if end => return Step::Done(text.len(), Err(Fault::cut())),
                Part::More => return Step::More,
                Part::Done(step) => return step,
            }
        }
    }

    /// Parses the start of the call, up to and including the tool name.
    fn open(&mut self, text: &str, marks: &TagMarks, cx: &Cx<'_>, end: bool) -> Part {
        let rest = &text[self.start..];
        let tags = marks.tags;
        let (name, after) = match tags.call {
            CallTag::Equals(stem) => {
                let skip = tags.open.len() + stem.len() + 1;
                let Some(close) = tag_end(rest, skip, tags) else { return self.no_tag_end(rest, end) };
                (rest[skip..close].trim().trim_matches('"').to_owned(), close + tags.end.len())
            }
            CallTag::Attribute(stem, attribute) => {
                let skip = tags.open.len() + stem.len();
                let Some(close) = tag_end(rest, skip, tags) else { return self.no_tag_end(rest, end) };
                let inside = &rest[skip..close];
                self.id = xml::attribute(inside, "id", &mut Repairs::default());
                let Some(name) = xml::attribute(inside, attribute, &mut self.repairs) else {
                    return Part::Done(Step::Done(self.start + close + tags.end.len(), Err(call::no_name())));
                };
                if inside.trim_end().ends_with('/') {
                    return self.empty_call(&name, self.start + close + tags.end.len(), cx);
                }
                (name, close + tags.end.len())
            }
            CallTag::Text(separator) => {
                let limit = rest.len().min(MAX_TAG);
                let window = &rest.as_bytes()[..limit];
                let Some(name_end) = seen(window, window.iter().position(|b| *b == b'<' || *b == b'\n')) else {
                    return self.no_tag_end(rest, end);
                };
                let name = rest[..name_end].trim().to_owned();
                if name.contains(' ') && !cx.tools.lists(&name) && cx.tools.split(&name).is_none() {
                    return Part::Done(Step::Words);
                }
                let mut after = name_end;
                if cx.mode.is_lenient()
                    && let Some((key_close, _)) = &marks.pair
                {
                    // `<tool_call>namekey</arg_key>`: the opening tag of the first key is missing.
                    match literal(&rest[after..], key_close, end) {
                        Match::Partly => return Part::More,
                        Match::Yes => {
                            if let Some((tool, key)) = cx.tools.split(&name) {
                                self.repairs.add(Repair::MissingParameterClose);
                                let part = self.pair_value(text, self.start + after, key.to_owned(), marks, end);
                                if let Part::Go = part {
                                    self.name = Some(tool.to_owned());
                                }
                                return part;
                            }
                        }
                        Match::No => {}
                    }
                }
                if let Some(separator) = separator {
                    match literal(&rest[after..], separator, end) {
                        Match::Yes => after += separator.len(),
                        Match::Partly => return Part::More,
                        Match::No => {}
                    }
                }
                (name, after)
            }
            CallTag::Child(_) => {
                let Some((open, close)) = &marks.name else { return Part::Done(Step::Words) };
                let window = &rest[..floor(rest, MAX_TAG)];
                let Some(found) = seen(window, window.find(close.as_str())) else { return self.no_tag_end(rest, end) };
                let Some(inner) = rest[..found].trim_start().strip_prefix(open.as_str()) else {
                    return Part::Done(Step::Done(self.start + found + close.len(), Err(call::no_name())));
                };
                (xml::plain(inner, tags, &mut self.repairs).trim().to_owned(), found + close.len())
            }
        };
        if name.is_empty() || name.len() > 256 || name.contains(['<', '>', '{', '}', '\n']) {
            return Part::Done(Step::Done(self.start, Err(call::no_name())));
        }
        self.at = self.start + after;
        self.name = Some(name);
        Part::Go
    }

    fn no_tag_end(&self, rest: &str, end: bool) -> Part {
        if rest.len() > MAX_TAG {
            return Part::Done(Step::Done(self.start, Err(call::no_name())));
        }
        if end { Part::Done(Step::Done(self.start + rest.len(), Err(Fault::cut()))) } else { Part::More }
    }

    fn empty_call(&mut self, name: &str, at: usize, cx: &Cx<'_>) -> Part {
        Part::Done(Step::Done(at, call::finish(name, self.id.take(), Map::new(), cx.mode, cx.tools, self.repairs)))
    }

    /// Parses the next parameter or the end of the call.
    fn between(&mut self, text: &str, marks: &TagMarks, cx: &Cx<'_>, end: bool) -> Part {
        if self.parameters.len() > MAX_VALUES {
            return Part::Done(Step::Done(self.at, Err(json::too_large())));
        }
        self.at = blank_end(text, self.at);
        let rest = &text[self.at..];
        if rest.is_empty() {
            return if end { self.run_out(text, marks, cx) } else { Part::More };
        }
        match any(rest, &marks.closing, end) {
            (Match::Yes, length) => {
                self.at += length;
                return self.done(text, marks, cx);
            }
            (Match::Partly, _) => return Part::More,
            _ => {}
        }
        // The closing marker belongs to the frame if the call has no closing tag, or if the tag is missing.
        let format = marks.format;
        match any(rest, format.call.close, end) {
            (Match::Yes, _) => return self.done(text, marks, cx),
            (Match::Partly, _) => return Part::More,
            _ => {}
        }
        match any(rest, format.section.close, end) {
            (Match::Yes, _) => {
                self.repairs.add(Repair::MissingClose);
                return self.done(text, marks, cx);
            }
            (Match::Partly, _) => return Part::More,
            _ => {}
        }
        if end && cx.mode.is_lenient() && !self.parameters.is_empty() && marks.call_close.iter().any(|mark| partly(rest, mark, marks.tags))
        {
            self.at = text.len();
            return self.run_out(text, marks, cx);
        }
        self.parameter(text, marks, cx, end)
    }

    /// Ends a call if the text ended between two parameters. The call is incomplete unless only its closing marker can be missing.
    fn run_out(&mut self, text: &str, marks: &TagMarks, cx: &Cx<'_>) -> Part {
        // Only the outermost marker may be missing. The closing tag of a call inside a section must not be missing.
        let outermost = (marks.closing.is_empty() || marks.format.section.close.is_empty()) && self.wrapped == self.unwrapped;
        let missing = |name: &str| !self.parameters.iter().any(|parameter| parameter.key == name);
        let lacks = cx.tools.required(self.name.as_deref().unwrap_or_default()).any(missing);
        if !cx.mode.is_lenient() || !outermost || self.parameters.is_empty() || lacks {
            return Part::Done(Step::Done(text.len(), Err(Fault::cut())));
        }
        self.repairs.add(Repair::MissingClose);
        self.done(text, marks, cx)
    }

    /// Parses the opening tag of a parameter, or a tag of the element around the parameters.
    fn parameter(&mut self, text: &str, marks: &TagMarks, cx: &Cx<'_>, end: bool) -> Part {
        let (tags, rest) = (marks.tags, &text[self.at..]);
        let junk = |this: &Self| {
            let place = this.parameters.last().or(this.value.as_ref().map(|(parameter, _)| parameter));
            let place = place.map_or_else(|| "the tool's name".to_owned(), |parameter| format!("the parameter {:?}", parameter.key));
            Part::Done(Step::Done(this.at, Err(Fault::syntax(format!("expected another parameter or the end of the call after {place}")))))
        };
        let opening = match literal(rest, tags.open, end) {
            Match::Yes => tags.open.len(),
            Match::Partly => return Part::More,
            Match::No if end && tags.open.starts_with(rest) => return Part::More,
            Match::No => return junk(self),
        };
        let Some(close) = tag_end(rest, opening, tags) else {
            return if rest.len() > MAX_TAG { junk(self) } else { Part::More };
        };
        let inside = &rest[opening..close];
        let after = self.at + close + tags.end.len();
        let (key, kind, value_tag) = match tags.parameter {
            ParameterTag::Equals(stem) => match inside.strip_prefix(stem).and_then(|rest| rest.trim_start().strip_prefix('=')) {
                Some(key) => (key.trim().trim_matches('"').to_owned(), None, stem.to_owned()),
                None => return junk(self),
            },
            ParameterTag::Attribute(stem, attribute) => {
                let Some(attributes) = inside.strip_prefix(stem) else { return junk(self) };
                let Some(key) = xml::attribute(attributes, attribute, &mut self.repairs) else { return junk(self) };
                let kind = tags.typed.and_then(|typed| xml::attribute(attributes, typed, &mut self.repairs));
                (key, kind, stem.to_owned())
            }
            ParameterTag::Pair(key_tag, _) => return self.pair(text, after, inside, key_tag, marks, end),
            ParameterTag::Child(wrappers) => {
                let name = inside.trim_end_matches('/').trim_end();
                if !self.wrapped && self.parameters.is_empty() && wrappers.contains(&name) {
                    self.wrapped = true;
                    self.at = after;
                    return Part::Go;
                }
                if self.wrapped && inside.strip_prefix('/').is_some_and(|name| wrappers.contains(&name.trim_end())) {
                    self.unwrapped = true;
                    self.at = after;
                    return Part::Go;
                }
                if !xml::starts_name(inside) {
                    return junk(self);
                }
                if !self.wrapped && !wrappers.is_empty() {
                    if !cx.mode.is_lenient() {
                        let fault = Fault::syntax(format!("the parameters are not inside <{}>", wrappers[0]));
                        return Part::Done(Step::Done(self.at, Err(fault)));
                    }
                    self.repairs.add(Repair::MissingWrapper);
                }
                let name = name.split_whitespace().next().unwrap_or(name).to_owned();
                (name.clone(), None, name)
            }
        };
        if inside.ends_with('/') && tags.end == ">" {
            self.parameters.push(Parameter { key, kind, value: after..after });
            self.at = after;
            return Part::Go;
        }
        self.value = Some((Parameter { key, kind, value: after..after }, ValueScan::new(after, &value_tag, tags)));
        Part::Go
    }

    /// Parses `key</arg_key><arg_value>`, after the opening tag of the key.
    fn pair(&mut self, text: &str, after: usize, inside: &str, key_tag: &str, marks: &TagMarks, end: bool) -> Part {
        if inside.trim() != key_tag {
            let fault = Fault::syntax(format!("expected <{key_tag}>, found <{inside}>"));
            return Part::Done(Step::Done(after, Err(fault)));
        }
        let rest = &text[after..];
        let window = &rest[..floor(rest, MAX_TAG)];
        // A second opening tag of the key is ignored.
        let doubled = blank_end(rest, 0);
        if doubled > MAX_TAG {
            return Part::Done(Step::Done(after, Err(call::no_name())));
        }
        match literal(&rest[doubled..], &marks.parameter_open, end) {
            Match::Partly => return Part::More,
            Match::Yes => {
                self.repairs.add(Repair::MissingParameterClose);
                self.at = after + doubled;
                return Part::Go;
            }
            Match::No => {}
        }
        let Some(found) = seen(window, window.find('<')) else {
            return if rest.len() > MAX_TAG { Part::Done(Step::Done(after, Err(call::no_name()))) } else { Part::More };
        };
        self.pair_value(text, after + found, rest[..found].trim().to_owned(), marks, end)
    }

    /// Parses `</arg_key><arg_value>`, after the key.
    fn pair_value(&mut self, text: &str, from: usize, key: String, marks: &TagMarks, end: bool) -> Part {
        let (Some((key_close, value_open)), ParameterTag::Pair(_, value_tag)) = (&marks.pair, marks.tags.parameter) else {
            return Part::Done(Step::Words);
        };
        let rest = &text[from..];
        let (mut at, mut closed) = (0, 0);
        while at <= MAX_TAG {
            match literal(&rest[at..], key_close, end) {
                Match::Yes => {
                    at = blank_end(rest, at + key_close.len());
                    closed += 1;
                }
                Match::Partly => return Part::More,
                Match::No => break,
            }
        }
        if closed != 1 {
            self.repairs.add(Repair::MissingParameterClose);
        }
        match literal(&rest[at..], value_open, end) {
            Match::Yes => at += value_open.len(),
            Match::Partly => return Part::More,
            Match::No if rest[at..].is_empty() => return Part::More,
            Match::No => self.repairs.add(Repair::MissingParameterClose),
        }
        let from = from + at;
        self.value = Some((Parameter { key, kind: None, value: from..from }, ValueScan::new(from, value_tag, marks.tags)));
        Part::Go
    }

    fn value(&mut self, text: &str, marks: &TagMarks, cx: &mut Cx<'_>, end: bool) -> Part {
        let Some((_, scan)) = &mut self.value else { return Part::Go };
        let tool = Declared { name: self.name.as_deref().unwrap_or_default(), given: &self.parameters };
        let look = scan.advance(text, marks, &tool, &mut self.repairs, cx, end);
        match look {
            Look::More => Part::More,
            Look::Cut => Part::Done(Step::Done(text.len(), Err(Fault::cut()))),
            Look::Ends { value, next } => {
                if let Some((mut parameter, _)) = self.value.take() {
                    parameter.value = value;
                    self.parameters.push(parameter);
                }
                self.at = next;
                Part::Go
            }
        }
    }

    fn done(&mut self, text: &str, marks: &TagMarks, cx: &Cx<'_>) -> Part {
        let result = self.build(text, marks.tags, cx);
        Part::Done(Step::Done(self.at, result))
    }

    /// Creates the call from its name and parameters.
    fn build(&mut self, text: &str, tags: &Tags, cx: &Cx<'_>) -> Result<Parts, Fault> {
        let mut repairs = self.repairs;
        let name = call::clean(self.name.as_deref().unwrap_or_default(), cx.mode, cx.tools, &mut repairs)?;
        if !cx.mode.is_lenient() && !repairs.is_empty() && !only_harmless(repairs) {
            let named = repairs.iter().map(Repair::as_str).collect::<Vec<_>>().join(", ");
            return Err(Fault::syntax(format!("the call violates the format's grammar: {named}")));
        }
        let types = Types::new(cx.tools.schema(&name), cx.mode);
        let mut arguments = Map::new();
        let parameters = std::mem::take(&mut self.parameters);
        let once = |place: usize| parameters[..place].iter().all(|other| other.key != parameters[place].key);
        if parameters.len() <= 16 && (0..parameters.len()).all(once) {
            for parameter in parameters {
                let schema = types.parameter(&parameter.key);
                let value = value_of(text, &parameter, tags, &types, schema, &mut repairs)?;
                arguments.insert(parameter.key, value);
            }
            return Ok(Parts { name, id: self.id.take(), arguments, repairs, extra: false });
        }
        let members = parameters.into_iter().map(|parameter| (parameter.key.clone(), parameter)).collect();
        for (key, mut same) in xml::group(members) {
            let schema = types.parameter(&key);
            let read = |parameter: &Parameter, schema, repairs: &mut Repairs| value_of(text, parameter, tags, &types, schema, repairs);
            let value = if same.len() == 1 {
                read(&same[0], schema, &mut repairs)?
            } else if matches!(tags.parameter, ParameterTag::Child(_)) {
                let items = types.items(schema);
                Value::Array(same.iter().map(|parameter| read(parameter, items, &mut repairs)).collect::<Result<_, _>>()?)
            } else if cx.mode.is_lenient() {
                repairs.add(Repair::DuplicateKey);
                same.drain(..same.len() - 1);
                read(&same[0], schema, &mut repairs)?
            } else {
                return Err(Fault::new(FaultKind::DuplicateKey, format!("duplicate parameter {key:?}; write it once")));
            };
            arguments.insert(key, value);
        }
        Ok(Parts { name, id: self.id.take(), arguments, repairs, extra: false })
    }
}

/// Returns whether all repairs are allowed by the grammar of every format.
fn only_harmless(repairs: Repairs) -> bool {
    repairs.iter().all(|repair| matches!(repair, Repair::BareAmpersand))
}

/// Converts the text of a parameter to a value.
fn value_of<'a>(
    text: &str,
    parameter: &Parameter,
    tags: &Tags,
    types: &Types<'a>,
    schema: Option<&'a Value>,
    repairs: &mut Repairs,
) -> Result<Value, Fault> {
    let mut raw = &text[parameter.value.clone()];
    if tags.lines {
        raw = raw.strip_prefix("\r\n").or_else(|| raw.strip_prefix('\n')).unwrap_or(raw);
        raw = raw.strip_suffix("\r\n").or_else(|| raw.strip_suffix('\n')).unwrap_or(raw);
    }
    if let Some(kind) = parameter.kind.as_deref() {
        return Ok(types.of_marked(raw, matches!(kind, "true" | "string"), schema, repairs));
    }
    if matches!(tags.parameter, ParameterTag::Child(_)) {
        return xml::value(raw, tags, types, schema, repairs);
    }
    if tags.cdata || tags.entities {
        return Ok(types.of_text(&xml::plain(raw, tags, repairs), schema, repairs));
    }
    Ok(types.of_text(raw, schema, repairs))
}

/// Returns whether the text was cut off inside a closing marker, after the part that distinguishes it from an opening one.
fn partly(rest: &str, mark: &str, tags: &Tags) -> bool {
    mark.starts_with(rest) && rest.len() >= tags.close.len() && rest.len() > 1
}
