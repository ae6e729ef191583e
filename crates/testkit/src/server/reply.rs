//! A reply of the server, independent of the wire, with everything that can go wrong on its way.

use std::iter;

use helve_core::{EndReason, Usage};
use hyper::body::Bytes;
use serde_json::Value;

use super::delivery::Delivery;
use super::failure::Failure;
use super::output::{Call, CallPieces, ModelOutput, Tokens};
use super::sse::Event;

/// A reply of the server. It is written in the wire format of the request, streamed if the client asks for that.
///
/// For a call that a model writes into its text, use [`Reply::text`].
#[derive(Debug, Clone)]
#[must_use]
pub struct Reply {
    pub(super) content: Content,
    pub(super) delivery: Delivery,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Output(Box<ModelOutput>),
    Failure(Failure),
    Events(Vec<Event>),
    Raw { status: u16, content_type: String, pieces: Vec<Bytes> },
    Silence,
}

/// Content.
impl Reply {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::calls(iter::empty::<Call>()).with_text(text)
    }

    /// Calls: [`Call`]s, or pairs of a name and arguments.
    pub fn calls<C: Into<Call>>(calls: impl IntoIterator<Item = C>) -> Self {
        let calls = calls.into_iter().map(Into::into).collect();
        Self::of(Content::Output(Box::new(ModelOutput { calls, ..ModelOutput::default() })))
    }

    /// Sets the text, which comes before the calls.
    pub fn with_text(self, text: impl Into<String>) -> Self {
        self.change(|output| output.text = text.into())
    }

    /// Sets the reasoning, which comes first.
    pub fn with_reasoning(self, reasoning: impl Into<String>) -> Self {
        self.change(|output| output.reasoning = reasoning.into())
    }

    /// Sets the signature of the reasoning: `signature` (Anthropic), `thoughtSignature` (Gemini), `encrypted_content` (Responses). Chat has
    /// none.
    pub fn with_signature(self, signature: impl Into<String>) -> Self {
        self.change(|output| output.signature = Some(signature.into()))
    }

    /// Sets the end reason; by default `Calls` if there are calls, else `Stop`.
    pub fn with_end(self, end: EndReason) -> Self {
        self.change(|output| output.end = Some(end))
    }

    /// Sets the token usage. It is reported even if an `OpenAI` stream did not request it.
    pub fn with_usage(self, usage: Usage) -> Self {
        self.change(|output| output.tokens = Tokens::Always(usage))
    }

    /// Omits the token usage.
    pub fn without_usage(self) -> Self {
        self.change(|output| output.tokens = Tokens::Never)
    }
}

/// Chunks and labels.
impl Reply {
    /// Sets the length of the chunks of text, reasoning and arguments in a stream; 4 characters by default.
    pub fn with_pieces_of(self, characters: usize) -> Self {
        self.change(|output| output.piece_chars = characters.max(1))
    }

    /// Sets how calls are split in a stream.
    pub fn with_call_pieces(self, call_pieces: CallPieces) -> Self {
        self.change(|output| output.call_pieces = call_pieces)
    }

    /// Omits the ids of calls.
    pub fn without_ids(self) -> Self {
        self.change(|output| output.with_ids = false)
    }

    /// Omits the index that assigns a chunk to its call, block or item.
    pub fn without_index(self) -> Self {
        self.change(|output| output.with_index = false)
    }

    /// Names the reasoning field `reasoning` instead of `reasoning_content`. Chat only.
    pub fn with_reasoning_field(self) -> Self {
        self.change(|output| output.reasoning_field = "reasoning")
    }
}

/// Errors and broken responses.
impl Reply {
    /// An error, with the status and body that the provider would send. See also [`Reply::with_header`].
    pub fn failure(failure: Failure) -> Self {
        Self::of(Content::Failure(failure))
    }

    /// Raw server-sent events: pairs of a name, which may be empty, and data.
    pub fn events<N: Into<String>>(events: impl IntoIterator<Item = (N, Value)>) -> Self {
        let event = |(name, data): (N, Value)| Event { name: name.into(), ..Event::data(data) };
        Self::of(Content::Events(events.into_iter().map(event).collect()))
    }

    /// Raw bytes, sent chunk by chunk.
    pub fn raw<P: Into<Vec<u8>>>(status: u16, content_type: impl Into<String>, pieces: impl IntoIterator<Item = P>) -> Self {
        let pieces = pieces.into_iter().map(|piece| Bytes::from(piece.into())).collect();
        Self::of(Content::Raw { status, content_type: content_type.into(), pieces })
    }

    /// An HTML page, as a proxy sends it.
    pub fn html(status: u16) -> Self {
        Self::raw(status, "text/html", ["<!DOCTYPE html>\n<html><head><title>Gateway</title></head><body><h1>Sorry.</h1></body></html>\n"])
    }

    /// Binary data declared as events.
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

    /// No response, ever. The connection stays open.
    pub fn silence() -> Self {
        Self::of(Content::Silence)
    }
}

impl Reply {
    fn of(content: Content) -> Self {
        Self { content, delivery: Delivery::default() }
    }

    /// Changes the response, if the reply has one.
    fn change(mut self, change: impl FnOnce(&mut ModelOutput)) -> Self {
        if let Content::Output(output) = &mut self.content {
            change(output);
        }
        self
    }
}
