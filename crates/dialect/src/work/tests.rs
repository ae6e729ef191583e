//! No text makes more than linear work: whatever is repeated in whatever place, a byte costs a bounded number of looks.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Map, json};

use super::taken;
use crate::dialect::Row;
use crate::format::{Format, Markup};
use crate::{CallDelta, Delta, Dialect, Mode, Reader, Scanner, ToolTable, WrittenCall, formats};

/// The sizes that are compared. Windows that are looked through again and again are full at the first one.
const SIZES: [usize; 2] = [4 * 1024, 16 * 1024];
/// How a text is cut: not at all, or into pieces of so many bytes.
const WHOLE: usize = usize::MAX;

/// Text that repeats one unit in some place.
#[derive(Debug, Clone)]
struct Attack {
    before: String,
    unit: String,
    after: String,
}

impl Attack {
    fn new(before: &str, unit: &str, after: &str) -> Self {
        Self { before: before.to_owned(), unit: unit.to_owned(), after: after.to_owned() }
    }

    fn text(&self, size: usize) -> String {
        [self.before.as_str(), &self.unit.repeat(size.div_ceil(self.unit.len().max(1))), &self.after].concat()
    }
}

/// How many looks a byte may take, by the size of the pieces. In small pieces, a tag or a head that is not whole is looked at again
/// with each piece, up to the length that such a thing may have.
fn limit(piece: usize) -> usize {
    if piece > 2048 { 1000 } else { 8000 / piece + 1000 }
}

fn looks(text: &str, piece: usize, dialect: &Dialect, mode: Mode, tools: &Arc<ToolTable>) -> usize {
    taken();
    let mut scanner = Scanner::new(dialect.clone(), mode, Arc::clone(tools)).endless();
    for piece in text.as_bytes().chunks(piece.min(text.len()).max(1)) {
        scanner.push(piece, &mut |_| {});
    }
    scanner.finish(&mut |_| {});
    taken()
}

/// What is wrong with the work that an attack makes, if anything.
fn excess(attack: &Attack, pieces: &[usize], dialect: &Dialect, tools: &Arc<ToolTable>) -> Option<String> {
    for mode in [Mode::Lenient, Mode::Strict] {
        for piece in pieces {
            let [few, many] = SIZES.map(|size| {
                let text = attack.text(size);
                looks(&text, *piece, dialect, mode, tools) / text.len()
            });
            if many > few + few / 2 + 16 || many > limit(*piece) {
                let name = dialect.name();
                return Some(format!("{few}, then {many} looks a byte: {name}, {mode:?}, in pieces of {piece}: {attack:?}"));
            }
        }
    }
    None
}

fn tools() -> [Arc<ToolTable>; 2] {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "object"}}, "required": ["a"]});
    [Arc::new(ToolTable::new([("f", schema)])), Arc::new(ToolTable::unknown())]
}

/// What formats share: brackets, quotes, escapes, fences, comments, CDATA, names.
const PIECES_OF_ALL: [&str; 64] = [
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "\"",
    "'",
    "\\",
    "\\\"",
    "\\u",
    ":",
    ",",
    ";",
    "\n",
    " ",
    "\t",
    "`",
    "```",
    "```json\n",
    "\n```\n",
    "<",
    ">",
    "</",
    "/>",
    "<|",
    "|>",
    "<![CDATA[",
    "]]>",
    "//",
    "/*",
    "*/",
    "#",
    "'''",
    "\"\"\"",
    "name",
    "f",
    "a",
    "=",
    "f(a=1)",
    "{\"name\": \"f\"",
    ", \"arguments\": {}",
    "}}",
    "{\"tool_calls\": [",
    "], ",
    "]}",
    "\"a\": \"x\"",
    "<a>",
    "</a>",
    "<a/>",
    "<b>",
    "</b>",
    "<params>",
    "<name>f</name>",
    "\nAction: f\n",
    "Action Input: ",
    "\nObservation",
    "&amp;",
    "&",
    "1",
    "-",
    "é",
    "\u{3000}",
    "call:f{",
];

/// The marks of one format.
fn marks(format: &'static Format) -> Vec<String> {
    let row = Row::new(format, false);
    let mut marks: Vec<String> = [format.section.open, format.section.close, format.call.open, format.call.close, format.noise]
        .concat()
        .iter()
        .map(|mark| (*mark).to_owned())
        .collect();
    marks.extend(format.thinks.iter().flat_map(|(open, close)| [(*open).to_owned(), (*close).to_owned()]));
    for markup in format.markup {
        match *markup {
            Markup::Token(token) => marks.push(token.to_owned()),
            Markup::Through(open, close) | Markup::Upto(open, close) => marks.extend([open.to_owned(), close.to_owned()]),
        }
    }
    if let Some(tags) = row.tags {
        marks.extend([tags.closing, tags.call_open, tags.call_close, tags.structure, vec![tags.parameter_open]].concat());
        marks.extend(tags.pair.into_iter().chain(tags.name).flat_map(|(one, other)| [one, other]));
    }
    marks.sort();
    marks.dedup();
    marks
}

/// A value that no mark has in it.
const VALUE: &str = "@@";

/// A call in a format, with some text as its argument.
fn call(format: &str, value: &str) -> String {
    let arguments = Map::from_iter([("a".to_owned(), json!(value)), ("b".to_owned(), json!({"k": [1]}))]);
    Dialect::write(format, &[WrittenCall { id: "c1", name: "f", arguments: &arguments }]).expect("a known format")
}

/// Places to be in: the start of the text, and every place in a call behind a character that may mean something.
fn places(format: &str) -> Vec<String> {
    let call = call(format, VALUE);
    let ends = call.char_indices().filter(|(_, c)| !c.is_alphanumeric()).map(|(at, c)| at + c.len_utf8());
    let mut places: Vec<String> =
        [0, call.find(VALUE).map_or(0, |at| at + 1)].into_iter().chain(ends).map(|end| call[..end].to_owned()).collect();
    places.dedup();
    places
}

/// Attacks on one format: each looks far ahead in a way that may lead to nothing.
fn known_attacks(name: &str) -> Vec<Attack> {
    let whole = call(name, VALUE);
    let (open, close) = whole.split_once(VALUE).unwrap_or((&whole, ""));
    let mut attacks = vec![
        Attack::new("", &whole, ""),
        Attack::new(&whole, ", ", ""),
        Attack::new(&format!("{whole},"), " ", ""),
        Attack::new("", "{\"tool_calls\": [{\"name\": \"f\", \"arguments\": {}}], ", ""),
        Attack::new("", "{\"tool_calls\": [{\"name\": \"f\", \"arguments\": {}}], ", "]"),
        Attack::new("", "Action: f\nAction Input: x\nObservation: y\n", ""),
        Attack::new("", "Action: f\nAction Input: x\nThought: y\n", ""),
        Attack::new("", &format!("Action: {}\n", "f".repeat(1500)), &" ".repeat(8192)),
        Attack::new("", ">>>f\n{", ""),
        Attack::new("", "\u{fffd}", ""),
        Attack::new(&format!("{open}<b>{}x", " ".repeat(8192)), "<![CDATA[]]>", &format!("</b>{close}")),
    ];
    for inside in ["/*", "//", "<![CDATA[x", "\"", "`", "<a>", "[", "\\"] {
        for closer in ["", close] {
            attacks.push(Attack::new("", &format!("{open}{inside}{closer}"), ""));
        }
        for unit in ["</a>", "</a><b>", "]]>", "</parameter>", "\n", "<![CDATA[", "<tool_call>", "```\n"] {
            attacks.push(Attack::new(&format!("{open}{inside}"), unit, if unit.len() % 2 == 0 { "" } else { close }));
        }
    }
    attacks
}

/// Tries the attacks on every fourth format, so that four tests can run side by side.
fn assert_bounded(part: usize) {
    let (dialects, tools) = (Dialect::names().skip(part).step_by(4), tools());
    let mut wrong = Vec::new();
    for (place, name) in dialects.enumerate() {
        let own = Dialect::named(name).expect("a known name");
        for (number, attack) in known_attacks(name).iter().enumerate() {
            let dialect = if (place + number) % 4 == 0 { &Dialect::auto() } else { &own };
            let pieces = if (place + number) % 3 == 0 { &[WHOLE, 7][..] } else { &[WHOLE] };
            wrong.extend(excess(attack, pieces, dialect, &tools[(place + number / 2) % 2]));
        }
    }
    assert!(wrong.is_empty(), "{} attacks make too much work:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn known_attacks_make_linear_work_1() {
    assert_bounded(0);
}

#[test]
fn known_attacks_make_linear_work_2() {
    assert_bounded(1);
}

#[test]
fn known_attacks_make_linear_work_3() {
    assert_bounded(2);
}

#[test]
fn known_attacks_make_linear_work_4() {
    assert_bounded(3);
}

/// Pieces of a native call, of which each may make the name or the arguments a little longer.
#[test]
fn native_calls_in_pieces_make_linear_work() {
    let looks = |count: usize, delta: CallDelta<'_>| {
        taken();
        let mut reader = Reader::native(Mode::Lenient, Arc::clone(&tools()[0]));
        for _ in 0..count {
            reader.push(Delta::Call(delta), &mut |_| {});
        }
        reader.finish(false, &mut |_| {});
        taken() / count
    };
    let deltas = [
        CallDelta { name: Some("n"), ..CallDelta::default() },
        CallDelta { arguments: "[", ..CallDelta::default() },
        CallDelta { name: Some("f"), arguments: "{}", ..CallDelta::default() },
    ];
    for delta in deltas {
        let (few, many) = (looks(4096, delta), looks(16384, delta));
        assert!(many <= few + few / 2 + 16, "{few}, then {many} looks a piece: {delta:?}");
    }
}

fn attacks() -> impl Strategy<Value = (&'static str, Attack)> {
    prop::sample::select(Dialect::names().collect::<Vec<_>>()).prop_flat_map(|name| {
        let mut own: Vec<String> = formats::all().filter(|format| format.name == name).flat_map(marks).collect();
        own.push(call(name, "x"));
        own.push(call(name, "<![CDATA[x"));
        own.extend(places(name));
        own.retain(|piece| !piece.is_empty());
        let shared: Vec<String> = PIECES_OF_ALL.iter().map(|piece| (*piece).to_owned()).collect();
        let piece = prop_oneof![prop::sample::select(own), prop::sample::select(shared)];
        let unit = prop::collection::vec(piece.clone(), 1..5).prop_map(|pieces| pieces.concat());
        let before = (prop::sample::select(places(name)), prop::collection::vec(piece.clone(), 0..3))
            .prop_map(|(place, pieces)| place + &pieces.concat());
        let after = prop::collection::vec(piece, 0..3).prop_map(|pieces| pieces.concat());
        (Just(name), (before, unit, after).prop_map(|(before, unit, after)| Attack { before, unit, after }))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_byte_costs_a_bounded_number_of_looks((name, attack) in attacks(), auto in any::<bool>(), known in any::<bool>()) {
        let dialect = if auto { Dialect::auto() } else { Dialect::named(name).expect("a known name") };
        let tools = &tools()[usize::from(known)];
        let excess = excess(&attack, &[WHOLE, 4096, 7, 1], &dialect, tools);
        prop_assert!(excess.is_none(), "{}", excess.unwrap_or_default());
    }
}
