//! Feeds arbitrary bytes to the scanner: spans must cover them, text must be its span, and pieces must make no difference.
//!
//! The first four bytes choose the dialect, the mode and the tools, and how the rest is cut.

#![no_main]

use std::sync::{Arc, LazyLock};

use helve_dialect::{Content, Dialect, Item, Items, Mode, Scanner, ToolTable};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| ["auto"].into_iter().chain(Dialect::names()).collect());
static TOOLS: LazyLock<[Arc<ToolTable>; 2]> = LazyLock::new(|| {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": {"type": "string"}, "n": {"type": "integer"}, "l": {"type": "array", "items": {"type": "number"}},
            "o": {"type": "object", "properties": {"k": {"type": ["string", "null"]}}}, "e": {"enum": ["x", "y"]}
        },
        "required": ["a"]
    });
    [Arc::new(ToolTable::new([("f", schema.clone()), ("get_weather", schema)])), Arc::new(ToolTable::unknown())]
});

fn scan(input: &[u8], piece: usize, dialect: &Dialect, mode: Mode, tools: &Arc<ToolTable>) -> Vec<Item> {
    let mut scanner = Scanner::new(dialect.clone(), mode, Arc::clone(tools));
    let mut items = Items::default();
    for piece in input.chunks(piece.max(1)) {
        scanner.push(piece, &mut |event| items.push(event));
    }
    scanner.finish(&mut |event| items.push(event));
    items.into_vec()
}

fuzz_target!(|data: &[u8]| {
    let [name, flags, piece, _, input @ ..] = data else { return };
    let dialect = Dialect::named(NAMES[usize::from(*name) % NAMES.len()]).expect("a known name");
    let mode = if flags & 1 == 0 { Mode::Lenient } else { Mode::Strict };
    let tools = &TOOLS[usize::from(flags >> 1 & 1)];
    let whole = scan(input, input.len(), &dialect, mode, tools);
    let mut at = 0;
    for item in &whole {
        assert_eq!(item.span.start, at, "a gap or an overlap");
        at = item.span.end;
        if let Content::Text(text) | Content::Reasoning(text) = &item.content {
            assert_eq!(*text, String::from_utf8_lossy(&input[item.span.clone()]), "text is not its span");
        }
    }
    assert_eq!(at, input.len(), "the end is missing");
    assert_eq!(whole, scan(input, 1 + usize::from(*piece) % 16, &dialect, mode, tools), "pieces make a difference");
});
