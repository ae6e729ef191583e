//! Responses with too many parts: they are refused, and take no memory.

use helve_core::{Deltas, ModelError};
use serde_json::{Value, json};

use super::fixtures::streamed;
use crate::list::MAX_PARTS;
use crate::wire::Wire;
use crate::{Anthropic, Gemini, OpenAiChat, OpenAiResponses};

fn assert_refused(error: &ModelError) {
    assert!(matches!(error, ModelError::Protocol(said) if said.contains(&format!("more than {MAX_PARTS} parts"))), "{error}");
}

/// Feeds events until one is refused.
fn feed(wire: &dyn Wire, event: impl Fn(u32) -> Value) -> ModelError {
    let (mut reader, mut deltas) = (wire.events(), Deltas::default());
    let refused = (0..1_000_000).find_map(|number| {
        deltas.clear();
        let error = reader.event("", event(number).to_string().as_bytes(), &mut deltas).err()?;
        Some((number as usize, error))
    });
    let (number, error) = refused.expect("an end");
    assert!(number <= MAX_PARTS + 1, "{number} were accepted");
    error
}

#[test]
fn parts_that_are_begun_and_never_ended_are_refused_at_last() {
    for block in [json!({"type": "tool_use", "id": "a", "name": "add", "input": {}}), json!({"type": "thinking", "thinking": "hm"})] {
        let begin = |index: u32| json!({"type": "content_block_start", "index": index, "content_block": block});
        assert_refused(&feed(&Anthropic, begin));
        assert_refused(&feed(&Anthropic, |_| begin(0)));
    }
    let responses = OpenAiResponses::default();
    for kind in ["message", "function_call", "reasoning"] {
        assert_refused(&feed(
            &responses,
            |index| json!({"type": "response.output_item.added", "output_index": index, "item": {"type": kind}}),
        ));
    }
    assert_refused(&feed(&responses, |index| json!({"type": "response.output_text.delta", "output_index": index, "delta": "x"})));
}

#[test]
fn a_list_of_a_million_parts_is_not_read_to_its_end() {
    let many = format!("[{}{{}}]", "{},".repeat(1_000_000));
    let cases: [(&dyn Wire, [String; 2]); 4] = [
        (&Anthropic, [format!(r#"{{"content": {many}}}"#), format!(r#"{{"type": "message_start", "message": {{"content": {many}}}}}"#)]),
        (
            &OpenAiResponses::default(),
            [format!(r#"{{"output": {many}}}"#), format!(r#"{{"type": "response.completed", "response": {{"output": {many}}}}}"#)],
        ),
        (&Gemini, [format!(r#"{{"candidates": {many}}}"#), format!(r#"{{"candidates": [{{"content": {{"parts": {many}}}}}]}}"#)]),
        (
            &OpenAiChat::default(),
            [
                format!(r#"{{"choices": [{{"message": {{"tool_calls": {many}}}}}]}}"#),
                format!(r#"{{"choices": [{{"delta": {{"reasoning_details": {many}}}}}]}}"#),
            ],
        ),
    ];
    for (wire, [whole, event]) in cases {
        assert_refused(&wire.from_wire(whole.as_bytes(), &mut Deltas::default()).expect_err("too many"));
        assert_refused(&wire.events().event("", event.as_bytes(), &mut Deltas::default()).expect_err("too many"));
    }
}

/// A call in two pieces, of an item whose number is `PLACE`.
const ANTHROPIC: &str = r#"data: {"type": "content_block_start", "index": PLACE, "content_block": {"type": "tool_use", "id": "a", "name": "add"}}

data: {"type": "content_block_delta", "index": PLACE, "delta": {"partial_json": "{}"}}

data: {"type": "message_stop"}

"#;

const RESPONSES: &str = r#"data: {"type": "response.output_item.added", "output_index": PLACE, "item": {"type": "function_call", "call_id": "a", "name": "add"}}

data: {"type": "response.function_call_arguments.delta", "output_index": PLACE, "delta": "{}"}

data: {"type": "response.completed", "response": {"status": "completed"}}

"#;

/// The index of a part is only its name. No memory is taken for those before it.
#[test]
fn the_four_billionth_part_is_a_part_like_any_other() {
    let cases: [(&dyn Wire, &str); 2] = [(&Anthropic, ANTHROPIC), (&OpenAiResponses::default(), RESPONSES)];
    for (wire, response) in cases {
        let read = |place: &str| streamed(wire, response.replace("PLACE", place).as_bytes(), usize::MAX);
        let (first, ended) = read("0");
        assert!(ended.is_ok() && first.len() == 3, "{}: {first:?}", wire.name());
        for place in ["4000000000", "9223372036854775807", "-1"] {
            let (deltas, ended) = read(place);
            assert!(ended.is_ok() && deltas.iter().eq(first.iter()), "{} {place}: {deltas:?}", wire.name());
        }
        let (_, ended) = read("9223372036854775808");
        assert!(matches!(ended, Err(ModelError::Protocol(_))), "{}: {ended:?}", wire.name());
    }
}
