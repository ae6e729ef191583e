//! One answer of the server, told without a wire, with everything that can go wrong on its way.

use std::iter;

use helve_core::{EndReason, Usage};
use hyper::body::Bytes;
use serde_json::Value;

use super::answer::{Answer, Call, CallPieces, Tokens};
use super::delivery::Delivery;
use super::failure::Failure;
use super::sse::Event;

/// One answer of the server. It is written in the wire of whoever asks, as a stream if one is asked for.
///
/// A call that a model writes into its text is [`Reply::text`] as well.
#[derive(Debug, Clone)]
#[must_use]
pub struct Reply {
    pub(super) content: Content,
    pub(super) delivery: Delivery,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Answer(Box<Answer>),
    Failure(Failure),
    Events(Vec<Event>),
    Raw { status: u16, content_type: String, pieces: Vec<Bytes> },
    Silence,
}

/// What is said.
impl Reply {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::calls(iter::empty::<Call>()).with_text(text)
    }

    /// Calls: [`Call`]s, or pairs of a name and arguments.
    pub fn calls<C: Into<Call>>(calls: impl IntoIterator<Item = C>) -> Self {
        let calls = calls.into_iter().map(Into::into).collect();
        Self::of(Content::Answer(Box::new(Answer { calls, ..Answer::default() })))
    }

    /// The same reply with this text, which comes before the calls.
    pub fn with_text(self, text: impl Into<String>) -> Self {
        self.answer(|answer| answer.text = text.into())
    }

    /// The same reply with thoughts, which come first.
    pub fn with_reasoning(self, reasoning: impl Into<String>) -> Self {
        self.answer(|answer| answer.reasoning = reasoning.into())
    }

    /// The same reply with what proves its thoughts: `signature` (Anthropic), `thoughtSignature` (Gemini), `encrypted_content`
    /// (Responses). Chat has none.
    pub fn with_signature(self, signature: impl Into<String>) -> Self {
        self.answer(|answer| answer.signature = Some(signature.into()))
    }

    /// The same reply, ending for this reason instead of `Calls` if there are calls, and `Stop` if there are none.
    pub fn with_end(self, end: EndReason) -> Self {
        self.answer(|answer| answer.end = Some(end))
    }

    /// The same reply at this cost. It is told even where an `OpenAI` stream was not asked to tell.
    pub fn with_usage(self, usage: Usage) -> Self {
        self.answer(|answer| answer.tokens = Tokens::Always(usage))
    }

    /// The same reply, not saying what it cost.
    pub fn without_usage(self) -> Self {
        self.answer(|answer| answer.tokens = Tokens::Never)
    }
}

/// How it is cut and labelled.
impl Reply {
    /// The length of the pieces of text, thoughts and arguments in a stream; 4 characters if nothing is said.
    pub fn with_pieces_of(self, characters: usize) -> Self {
        self.answer(|answer| answer.piece_chars = characters.max(1))
    }

    /// How calls are cut in a stream.
    pub fn with_call_pieces(self, call_pieces: CallPieces) -> Self {
        self.answer(|answer| answer.call_pieces = call_pieces)
    }

    /// Leaves out the ids of calls.
    pub fn without_ids(self) -> Self {
        self.answer(|answer| answer.with_ids = false)
    }

    /// Leaves out the number that says which call, block or item a piece belongs to.
    pub fn without_index(self) -> Self {
        self.answer(|answer| answer.with_index = false)
    }

    /// Calls the field of thoughts `reasoning` instead of `reasoning_content`. Only Chat has it.
    pub fn with_reasoning_field(self) -> Self {
        self.answer(|answer| answer.reasoning_field = "reasoning")
    }
}

/// What is no answer.
impl Reply {
    /// An error, with the status and the body that the provider would send. See also [`Reply::with_header`].
    pub fn failure(failure: Failure) -> Self {
        Self::of(Content::Failure(failure))
    }

    /// Server-sent events as they are, each a name, which may be empty, and data.
    pub fn events<N: Into<String>>(events: impl IntoIterator<Item = (N, Value)>) -> Self {
        let event = |(name, data): (N, Value)| Event { name: name.into(), ..Event::data(data) };
        Self::of(Content::Events(events.into_iter().map(event).collect()))
    }

    /// Bytes as they are, sent piece by piece.
    pub fn raw<P: Into<Vec<u8>>>(status: u16, content_type: impl Into<String>, pieces: impl IntoIterator<Item = P>) -> Self {
        let pieces = pieces.into_iter().map(|piece| Bytes::from(piece.into())).collect();
        Self::of(Content::Raw { status, content_type: content_type.into(), pieces })
    }

    /// A page for people, as a proxy sends it.
    pub fn html(status: u16) -> Self {
        Self::raw(status, "text/html", ["<!DOCTYPE html>\n<html><head><title>Gateway</title></head><body><h1>Sorry.</h1></body></html>\n"])
    }

    /// Bytes that are neither events nor text, said to be events.
    pub fn garbage() -> Self {
        Self::raw(200, "text/event-stream", [&b"\x00\x01\xff\xfe{\"not\": an event"[..], b"\n\ndata: {\"broken\":\n\n", b"\xc3\x28\n\n"])
    }

    /// A stream of one line of this many bytes.
    pub fn long_line(bytes: usize) -> Self {
        const BLOCK: usize = 64 * 1024;
        const START: &str = "data: ";
        let block = Bytes::from(vec![b'x'; BLOCK]);
        let rest = bytes.saturating_sub(START.len());
        let blocks = iter::repeat_n(block.clone(), rest / BLOCK);
        let pieces = iter::once(START.into()).chain(blocks).chain([block.slice(..rest % BLOCK), "\n\n".into()]).collect();
        Self::of(Content::Raw { status: 200, content_type: "text/event-stream".to_owned(), pieces })
    }

    /// No answer, ever. The connection stays open.
    pub fn silence() -> Self {
        Self::of(Content::Silence)
    }
}

impl Reply {
    fn of(content: Content) -> Self {
        Self { content, delivery: Delivery::default() }
    }

    /// Changes what is said, where something is.
    fn answer(mut self, change: impl FnOnce(&mut Answer)) -> Self {
        if let Content::Answer(answer) = &mut self.content {
            change(answer);
        }
        self
    }
}
