//! [`Reader`]: parses a model's response, with native calls and with calls in the text, into the same events.

mod rescue;

use std::sync::Arc;

use serde_json::Value;

use self::rescue::Rescue;
use crate::call::{self, Parts};
use crate::dialect::{Dialect, MAX_NAME};
use crate::event::{Call, Event, EventKind, Malformed, Mode};
use crate::fault::{Fault, FaultKind};
use crate::json::{self, Syntax};
use crate::repair::Repairs;
use crate::scan::{Scanner, made_id};
use crate::tools::ToolTable;

/// A delta of a model's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Text, which may contain calls.
    Text(&'a str),
    /// Reasoning, if the provider sends it separately from the text.
    Reasoning(&'a str),
    /// A delta of a native call.
    Call(CallDelta<'a>),
}

/// A delta of a native call. Providers may omit any field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallDelta<'a> {
    /// Index of the call in the response.
    pub index: Option<u32>,
    /// The provider's call id.
    pub id: Option<&'a str>,
    /// The tool name, or a part of the name.
    pub name: Option<&'a str>,
    /// A part of the arguments, as JSON text.
    pub arguments: &'a str,
}

/// Maximum number of native calls in a response.
const MAX_CALLS: usize = 1024;

/// A native call that is assembled from deltas.
#[derive(Debug, Default)]
struct Slot {
    index: usize,
    wire_index: Option<u32>,
    id: String,
    name: String,
    arguments: String,
    opened: bool,
    given: bool,
}

/// A parser for one response of a model. The spans of its events are byte ranges of the text; those of native calls and of separate
/// reasoning are empty.
#[derive(Debug)]
pub struct Reader {
    mode: Mode,
    tools: Arc<ToolTable>,
    scanner: Option<Scanner>,
    /// The calls in the text, held back because a native call would turn them into plain text.
    rescue: Option<Rescue>,
    slots: Vec<Slot>,
    calls: usize,
    /// Number of bytes of text so far.
    place: usize,
    full: bool,
}

impl Reader {
    /// Creates a reader that parses only native calls. Text never contains calls.
    #[must_use]
    pub fn native(mode: Mode, tools: Arc<ToolTable>) -> Self {
        Self { mode, tools, scanner: None, rescue: None, slots: Vec::new(), calls: 0, place: 0, full: false }
    }

    /// Creates a reader that parses native calls, and calls in the text.
    #[must_use]
    pub fn scanning(dialect: Dialect, mode: Mode, tools: Arc<ToolTable>) -> Self {
        let scanner = Scanner::new(dialect, mode, Arc::clone(&tools));
        Self { scanner: Some(scanner), ..Self::native(mode, tools) }
    }

    /// Creates a reader that parses native calls, and calls in the text only if the response has no native call. If it has one, calls in
    /// the text are treated as quotations.
    #[must_use]
    pub fn rescuing(dialect: Dialect, mode: Mode, tools: Arc<ToolTable>) -> Self {
        Self { rescue: Some(Rescue::default()), ..Self::scanning(dialect, mode, tools) }
    }

    /// Returns the offset from which text is held back because it may contain a call, or the end of the text if none is held back. Returns
    /// `None` if the reader does not parse calls in the text.
    #[must_use]
    pub fn held_from(&self) -> Option<usize> {
        let scanner = self.scanner.as_ref()?;
        Some(self.rescue.as_ref().map_or(scanner.given, Rescue::given))
    }

    /// Makes the text start inside reasoning, because the prompt ended with an opening reasoning tag.
    #[must_use]
    pub fn thinking(mut self) -> Self {
        self.scanner = self.scanner.map(Scanner::thinking);
        self
    }

    /// Processes a delta and passes the resulting events to the sink.
    pub fn push(&mut self, delta: Delta<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        match delta {
            Delta::Text(text) => {
                let start = self.place;
                self.place += text.len();
                if let Some(scanner) = &mut self.scanner {
                    scanner.calls = scanner.calls.max(self.calls);
                    match &mut self.rescue {
                        Some(rescue) => rescue.push(text, scanner, sink),
                        None => scanner.push_str(text, sink),
                    }
                    self.calls = self.calls.max(scanner.calls);
                    if self.rescue.as_ref().is_some_and(Rescue::is_full) {
                        self.leave_text(sink);
                    }
                } else if !text.is_empty() {
                    sink(Event { span: start..self.place, kind: EventKind::Text(text) });
                }
            }
            Delta::Reasoning("") => {}
            Delta::Reasoning(text) => sink(Event { span: self.place..self.place, kind: EventKind::Reasoning(text) }),
            Delta::Call(delta) => self.call(delta, sink),
        }
    }

    /// Ends the response and passes the remaining events to the sink. `cut` says that the model reached a length limit, so that the last
    /// call may be incomplete.
    pub fn finish(mut self, cut: bool, sink: &mut dyn FnMut(Event<'_>)) {
        if let Some(mut scanner) = self.scanner.take() {
            scanner.calls = scanner.calls.max(self.calls);
            match self.rescue.take() {
                Some(rescue) => rescue.finish(scanner, sink),
                None => scanner.finish(sink),
            }
        }
        let last = self.slots.len().saturating_sub(1);
        for place in 0..self.slots.len() {
            let bare = cut && place == last && self.slots[place].arguments.trim().is_empty();
            self.give(place, bare, None, sink);
        }
    }

    /// Emits the text that was held back as plain text, and stops parsing calls in the text.
    fn leave_text(&mut self, sink: &mut dyn FnMut(Event<'_>)) {
        if let Some(rescue) = self.rescue.take() {
            self.scanner = None;
            rescue.give_back(sink);
        }
    }

    fn call(&mut self, delta: CallDelta<'_>, sink: &mut dyn FnMut(Event<'_>)) {
        if delta.name.is_some_and(|name| !name.is_empty()) {
            self.leave_text(sink);
        }
        let Some(place) = self.find(&delta, sink) else { return };
        let here = self.place;
        let slot = &mut self.slots[place];
        if let Some(id) = delta.id.filter(|_| slot.id.is_empty()) {
            id.clone_into(&mut slot.id);
        }
        if let Some(name) = delta.name {
            // Some providers send a name in parts. Others send the whole name, or the name so far, with every delta.
            if slot.arguments.is_empty() && slot.name != name {
                if name.starts_with(&slot.name) && self.tools.lists(name) {
                    slot.name.clear();
                }
                slot.name.push_str(name);
            }
        }
        slot.arguments.push_str(delta.arguments);
        if !slot.opened && !slot.name.is_empty() && !slot.arguments.is_empty() {
            slot.opened = true;
            sink(Event { span: here..here, kind: EventKind::CallOpened { index: slot.index, name: &slot.name } });
        }
        if slot.opened && !delta.arguments.is_empty() {
            sink(Event { span: here..here, kind: EventKind::ArgsDelta { index: slot.index, text: delta.arguments } });
        }
    }

    /// Returns the index of the slot that a delta belongs to. Creates the slot for the first delta of a call.
    fn find(&mut self, delta: &CallDelta<'_>, sink: &mut dyn FnMut(Event<'_>)) -> Option<usize> {
        let id = delta.id.filter(|id| !id.is_empty());
        let name = delta.name.filter(|name| !name.is_empty());
        let known = match (delta.index, id) {
            (Some(index), _) => self.slots.iter().rposition(|slot| slot.wire_index == Some(index)),
            (None, Some(id)) => self.slots.iter().rposition(|slot| slot.id == id),
            (None, None) => self.slots.len().checked_sub(1),
        };
        if let Some(place) = known {
            let slot = &self.slots[place];
            // Some providers send one index for all calls, or none. Then a new id, or a name after arguments or a complete name, starts
            // another call.
            let other_id = id.is_some_and(|id| !slot.id.is_empty() && slot.id != id);
            let unmarked = id.is_none() && delta.index.is_none();
            let lists = |name: &str| name.len() <= MAX_NAME && self.tools.lists(name);
            let ended = !slot.arguments.is_empty() || (lists(&slot.name) && name.is_some_and(lists));
            let named_again = unmarked && name.is_some() && !slot.name.is_empty() && ended;
            if !other_id && !named_again {
                // Deltas of a call that was already emitted are ignored.
                return (!slot.given).then_some(place);
            }
        }
        if self.slots.len() >= MAX_CALLS {
            self.overflow(sink);
            return None;
        }
        // The start of another call ends the previous one if that is complete.
        if let Some(last) = self.slots.len().checked_sub(1) {
            let written = self.slots[last].arguments.trim();
            if let Some((value, _)) = json::read_plain(written).filter(|(_, end)| *end == written.len()) {
                self.give(last, false, Some(value), sink);
            }
        }
        self.slots.push(Slot { index: self.calls, wire_index: delta.index, ..Slot::default() });
        self.calls += 1;
        Some(self.slots.len() - 1)
    }

    /// Emits one malformed call that says that there are too many calls.
    fn overflow(&mut self, sink: &mut dyn FnMut(Event<'_>)) {
        if !std::mem::replace(&mut self.full, true) {
            let error = format!("a response may have at most {MAX_CALLS} calls; the others were not run");
            let malformed = Malformed { index: self.calls, kind: FaultKind::Syntax, error, raw: String::new() };
            self.calls += 1;
            sink(Event { span: self.place..self.place, kind: EventKind::Malformed(malformed) });
        }
    }

    /// Emits a call, valid or malformed. `known` are its arguments if they were parsed before.
    fn give(&mut self, place: usize, bare: bool, known: Option<Value>, sink: &mut dyn FnMut(Event<'_>)) {
        let here = self.place;
        let slot = &mut self.slots[place];
        if std::mem::replace(&mut slot.given, true) {
            return;
        }
        let result = if bare { Err(Fault::cut()) } else { read(slot, known, self.mode, &self.tools) };
        let said = match result {
            Ok((parts, as_written)) => {
                let id = parts.id.unwrap_or_else(|| made_id(slot.index + 1));
                let written = as_written.then(|| std::mem::take(&mut slot.arguments));
                EventKind::Call(Call {
                    index: slot.index,
                    id,
                    name: parts.name,
                    arguments: parts.arguments,
                    repairs: parts.repairs,
                    written,
                })
            }
            Err(fault) => {
                let raw = format!("{} {}", slot.name, slot.arguments);
                EventKind::Malformed(Malformed { index: slot.index, kind: fault.kind, error: fault.error, raw })
            }
        };
        sink(Event { span: here..here, kind: said });
    }
}

/// Parses a native call. Returns the call, and whether its arguments are a single valid JSON object.
fn read(slot: &Slot, known: Option<Value>, mode: Mode, tools: &ToolTable) -> Result<(Parts, bool), Fault> {
    if slot.name.trim().is_empty() {
        return Err(call::no_name());
    }
    let id = Some(slot.id.clone()).filter(|id| !id.is_empty());
    let written = slot.arguments.trim();
    // Some providers send an empty string if a call has no arguments.
    if written.is_empty() {
        return call::finish(&slot.name, id, serde_json::Map::new(), mode, tools, Repairs::default()).map(|parts| (parts, false));
    }
    let (value, mut repairs) = if let Some(value) = known {
        (value, Repairs::default())
    } else {
        let reading = json::read(written, Syntax::Json, mode, 0)?;
        (reading.value, reading.repairs)
    };
    let as_written = value.is_object() && repairs.is_empty();
    let arguments = call::arguments(value, &slot.name, mode, &mut repairs)?;
    call::finish(&slot.name, id, arguments, mode, tools, repairs).map(|parts| (parts, as_written))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What comes of pieces: calls as `id name arguments`, everything else in a word.
    fn told(deltas: &[Delta<'_>], cut: bool) -> Vec<String> {
        let tools = ToolTable::new([("f", json!({"properties": {"a": {"type": "integer"}}})), ("g", json!({}))]);
        let mut reader = Reader::scanning(Dialect::auto(), Mode::Lenient, Arc::new(tools));
        let mut told = Vec::new();
        let mut sink = |event: Event<'_>| match event.kind {
            EventKind::Text(text) => told.push(format!("text {text}")),
            EventKind::Reasoning(text) => told.push(format!("thought {text}")),
            EventKind::Call(call) => told.push(format!("{}: {} {} {}", call.index, call.id, call.name, Value::Object(call.arguments))),
            EventKind::Malformed(malformed) => told.push(format!("{}: malformed {}", malformed.index, malformed.kind)),
            _ => {}
        };
        for delta in deltas {
            reader.push(*delta, &mut sink);
        }
        reader.finish(cut, &mut sink);
        told
    }

    fn piece<'a>(index: Option<u32>, id: Option<&'a str>, name: Option<&'a str>, arguments: &'a str) -> Delta<'a> {
        Delta::Call(CallDelta { index, id, name, arguments })
    }

    #[test]
    fn pieces_are_put_together_by_index() {
        let deltas = [
            piece(Some(0), Some("c1"), Some("f"), ""),
            piece(Some(1), Some("c2"), Some("g"), ""),
            piece(Some(0), None, None, "{\"a\""),
            piece(Some(1), None, None, "{}"),
            piece(Some(0), None, None, ": 1}"),
        ];
        assert_eq!(told(&deltas, false), ["0: c1 f {\"a\":1}", "1: c2 g {}"]);
    }

    #[test]
    fn one_index_for_all_calls_is_no_obstacle() {
        let deltas = [piece(Some(0), Some("c1"), Some("f"), "{\"a\": 1}"), piece(Some(0), Some("c2"), Some("g"), "{}")];
        assert_eq!(told(&deltas, false), ["0: c1 f {\"a\":1}", "1: c2 g {}"]);
    }

    #[test]
    fn neither_index_nor_id_is_needed() {
        let deltas = [
            piece(None, None, Some("f"), "{\"a\":"),
            piece(None, None, None, " \"2\"}"),
            piece(None, None, Some("g"), ""),
            piece(None, None, None, "{}"),
        ];
        assert_eq!(told(&deltas, false), ["0: call_1 f {\"a\":2}", "1: call_2 g {}"]);
    }

    #[test]
    fn names_come_in_pieces_or_again_and_again() {
        let deltas = [piece(Some(0), None, Some("f"), ""), piece(Some(0), None, Some("f"), "{}"), piece(Some(0), None, Some("f"), "")];
        assert_eq!(told(&deltas, false), ["0: call_1 f {}"]);
        let deltas = [piece(Some(0), None, Some("get_"), ""), piece(Some(0), None, Some("weather"), ""), piece(Some(0), None, None, "{}")];
        assert_eq!(told(&deltas, false), ["0: call_1 get_weather {}"]);
    }

    #[test]
    fn names_may_grow_or_follow_each_other() {
        let deltas = [piece(None, None, Some("f"), ""), piece(None, None, Some("g"), "")];
        assert_eq!(told(&deltas, false), ["0: call_1 f {}", "1: call_2 g {}"]);
        let deltas = [piece(Some(0), None, Some("get"), ""), piece(Some(0), None, Some("get_g"), "{}")];
        assert_eq!(told(&deltas, false), ["0: call_1 getget_g {}"], "only a known name is taken for all so far");
    }

    #[test]
    fn a_call_is_given_once() {
        let deltas = [
            piece(Some(0), Some("a"), Some("g"), "{}"),
            piece(Some(1), Some("b"), Some("f"), "{\"a\""),
            piece(Some(0), Some("a"), Some("g"), ""),
            piece(Some(0), None, None, " "),
            piece(Some(1), None, None, ": 1}"),
        ];
        assert_eq!(told(&deltas, false), ["0: a g {}", "1: b f {\"a\":1}"]);
    }

    #[test]
    fn text_and_thoughts_do_not_disturb_each_other() {
        let deltas = [Delta::Text("<tool_"), Delta::Reasoning("abc"), Delta::Text("x")];
        assert_eq!(told(&deltas, false), ["thought abc", "text <tool_x"]);
    }

    #[test]
    fn empty_arguments_are_none_unless_the_answer_was_cut() {
        let deltas = [piece(Some(0), Some("c1"), Some("f"), "")];
        assert_eq!(told(&deltas, false), ["0: c1 f {}"]);
        assert_eq!(told(&deltas, true), ["0: malformed incomplete"]);
    }

    #[test]
    fn half_a_call_is_no_call() {
        let deltas = [piece(Some(0), Some("c1"), Some("g"), "{}"), piece(Some(1), Some("c2"), Some("f"), "{\"a\": 1")];
        assert_eq!(told(&deltas, true), ["0: c1 g {}", "1: malformed incomplete"]);
        assert_eq!(told(&[piece(Some(0), Some("c1"), None, "{}")], false), ["0: malformed no_name"]);
        assert_eq!(told(&[piece(Some(0), Some("c1"), Some("f"), "[1]")], false), ["0: malformed not_an_object"]);
    }

    #[test]
    fn arguments_may_be_json_inside_a_string() {
        assert_eq!(told(&[piece(Some(0), Some("c1"), Some("f"), "\"{\\\"a\\\": 1}\"")], false), ["0: c1 f {\"a\":1}"]);
    }

    #[test]
    fn calls_in_text_are_found_beside_native_ones() {
        let deltas = [
            Delta::Reasoning("hm"),
            Delta::Text("Ok. <tool_"),
            Delta::Text("call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>"),
            piece(None, Some("n1"), Some("g"), "{}"),
        ];
        assert_eq!(told(&deltas, false), ["thought hm", "text Ok. ", "0: call_1 f {\"a\":1}", "1: n1 g {}"]);
    }

    #[test]
    fn a_call_in_text_is_announced_once_and_ends_with_its_index() {
        let mut reader = Reader::scanning(Dialect::auto(), Mode::Lenient, Arc::new(ToolTable::unknown()));
        let mut told = Vec::new();
        let mut sink = |event: Event<'_>| match event.kind {
            EventKind::CallOpened { index, name } => told.push(format!("{index} opens {name}")),
            EventKind::ArgsDelta { index, .. } => told.push(format!("{index} goes on")),
            EventKind::Call(call) => told.push(format!("{} is {}", call.index, call.name)),
            other => told.push(format!("{other:?}")),
        };
        for text in ["[TOOL_CALLS]f[ARGS]{\"a\": ", "1", "}"] {
            reader.push(Delta::Text(text), &mut sink);
        }
        reader.push(piece(None, Some("n"), Some("g"), "{}"), &mut sink);
        reader.finish(false, &mut sink);
        told.dedup();
        assert_eq!(told, ["0 opens f", "0 goes on", "1 opens g", "1 goes on", "0 is f", "1 is g"]);
    }

    fn rescued(deltas: &[Delta<'_>]) -> Vec<String> {
        let mut reader = Reader::rescuing(Dialect::auto(), Mode::Lenient, Arc::new(ToolTable::new([("f", json!({})), ("g", json!({}))])));
        let (mut told, mut place) = (Vec::new(), 0);
        let mut sink = |event: Event<'_>| {
            assert_eq!(event.span.start, place, "places follow each other");
            place = event.span.end;
            match event.kind {
                EventKind::Text(text) => told.push(format!("text {text}")),
                EventKind::Call(call) => told.push(format!("{} {}", call.name, Value::Object(call.arguments))),
                other => told.push(format!("{other:?}")),
            }
        };
        for delta in deltas {
            reader.push(*delta, &mut sink);
        }
        reader.finish(false, &mut sink);
        told.retain(|line| !line.starts_with("CallOpened") && !line.starts_with("ArgsDelta"));
        told
    }

    const QUOTE: &str = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>";

    #[test]
    fn calls_in_text_are_rescued_where_no_native_one_comes() {
        let (one, two) = QUOTE.split_at(20);
        assert_eq!(rescued(&[Delta::Text("Ok. "), Delta::Text(one), Delta::Text(two)]), ["text Ok. ", "f {}"]);
        let said = rescued(&[Delta::Text(&format!("{QUOTE} and")), Delta::Text(" so on")]);
        assert_eq!(said, ["f {}", "text  and", "text  so on"]);
    }

    #[test]
    fn beside_a_native_call_text_is_text() {
        let native = piece(Some(0), Some("n"), Some("g"), "{}");
        let (one, two) = QUOTE.split_at(20);
        let quoted = format!("text {QUOTE}");
        assert_eq!(rescued(&[Delta::Text(QUOTE), native]), [quoted.as_str(), "g {}"]);
        assert_eq!(rescued(&[native, Delta::Text(QUOTE)]), [quoted.as_str(), "g {}"]);
        let said = rescued(&[Delta::Text("A "), Delta::Text(one), native, Delta::Text(two), Delta::Text(QUOTE)]);
        let (one, two) = (format!("text {one}"), format!("text {two}"));
        assert_eq!(said, ["text A ", one.as_str(), two.as_str(), quoted.as_str(), "g {}"]);
    }

    #[test]
    fn prefilled_thoughts_are_thoughts() {
        let reader = Reader::scanning(Dialect::auto(), Mode::Lenient, Arc::new(ToolTable::unknown()));
        let (mut reader, mut told) = (reader.thinking(), Vec::new());
        let mut sink = |event: Event<'_>| told.push(format!("{:?}", event.kind));
        reader.push(Delta::Text("hm [TOOL_CALLS]f{}[/THINK]Hi."), &mut sink);
        reader.finish(false, &mut sink);
        assert_eq!(told, ["Reasoning(\"hm [TOOL_CALLS]f{}\")", "Markup(\"[/THINK]\")", "Text(\"Hi.\")"]);
    }

    #[test]
    fn calls_without_number_are_bounded() {
        let ids: Vec<String> = (0..MAX_CALLS + 5).map(|number| format!("c{number}")).collect();
        let deltas: Vec<_> = ids.iter().map(|id| piece(None, Some(id), Some("g"), "{}")).collect();
        let told = told(&deltas, false);
        assert_eq!(told.len(), MAX_CALLS + 1);
        assert!(told.iter().any(|line| line.contains("malformed")), "the rest is not dropped in silence");
    }
}
