//! What a model responds, and how it is split into chunks. Each wire writes the chunks in its own format.

use std::iter;

use helve_core::{EndReason, Usage};
use serde_json::Value;

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The tool name.
    pub name: String,
    /// The arguments as sent: JSON, or what should have been JSON.
    pub arguments: String,
    /// The provider's call id. If `None`, the server generates one, unless [`Reply::without_ids`](crate::Reply::without_ids) is set.
    pub id: Option<String>,
}

impl Call {
    /// A call with valid arguments.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "so that `json!(..)` is written without a reference")]
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self::raw(name, arguments.to_string())
    }

    /// A call whose arguments are any text: broken JSON, or an empty string.
    ///
    /// Some wires send arguments as a JSON value, not as text (Gemini, and Anthropic without streaming). There, invalid JSON is sent as a string,
    /// and an empty text as `{}`.
    #[must_use]
    pub fn raw(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { name: name.into(), arguments: arguments.into(), id: None }
    }

    /// Sets the id, which may be empty or the id of another call.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The arguments as a JSON value.
    pub(super) fn value(&self) -> Value {
        match self.arguments.as_str() {
            "" => Value::Object(serde_json::Map::new()),
            text => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
        }
    }
}

impl<N: Into<String>> From<(N, Value)> for Call {
    fn from((name, arguments): (N, Value)) -> Self {
        Self::new(name, arguments)
    }
}

/// How the calls of a streamed response are split into chunks. Gemini never splits a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallPieces {
    /// One call after the other, each in many chunks.
    #[default]
    Split,
    /// In many chunks, one of each call in turn.
    Interleaved,
    /// One chunk per call.
    Whole,
    /// All calls in one chunk if the wire allows it; else like `Whole`.
    Together,
}

/// Whether the response reports token usage.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tokens {
    /// As the provider does: `OpenAI` omits it from streams unless requested.
    AsRequested(Usage),
    Always(Usage),
    Never,
}

/// What a model responds.
#[derive(Debug, Clone)]
pub(super) struct ModelOutput {
    pub reasoning: String,
    pub signature: Option<String>,
    pub text: String,
    pub calls: Vec<Call>,
    pub end: Option<EndReason>,
    pub tokens: Tokens,
    pub piece_chars: usize,
    pub call_pieces: CallPieces,
    pub with_ids: bool,
    pub with_index: bool,
    pub reasoning_field: &'static str,
}

impl Default for ModelOutput {
    fn default() -> Self {
        Self {
            reasoning: String::new(),
            signature: None,
            text: String::new(),
            calls: Vec::new(),
            end: None,
            tokens: Tokens::AsRequested(Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() }),
            piece_chars: 4,
            call_pieces: CallPieces::default(),
            with_ids: true,
            with_index: true,
            reasoning_field: "reasoning_content",
        }
    }
}

/// A chunk of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallPiece {
    /// Index of the call.
    pub call: usize,
    /// Whether it is the first chunk of its call.
    pub opens: bool,
    /// Whether it is the last chunk of its call.
    pub closes: bool,
    pub arguments: String,
}

impl ModelOutput {
    /// The end reason, or its default.
    pub fn end(&self) -> EndReason {
        self.end.unwrap_or(if self.calls.is_empty() { EndReason::Stop } else { EndReason::Calls })
    }

    /// The token usage, for responses that report it by default.
    pub fn usage(&self) -> Option<Usage> {
        match self.tokens {
            Tokens::AsRequested(usage) | Tokens::Always(usage) => Some(usage),
            Tokens::Never => None,
        }
    }

    /// The id of a call; `turn` makes ids of different replies distinct.
    pub fn call_id(&self, call: usize, prefix: &str, turn: usize) -> Option<String> {
        let given = self.calls.get(call).and_then(|call| call.id.clone());
        self.with_ids.then(|| given.unwrap_or_else(|| format!("{prefix}_{}_{}", turn + 1, call + 1)))
    }

    /// Splits a text into chunks. An empty text has none.
    pub fn pieces(&self, text: &str) -> Vec<String> {
        let mut rest = text.chars();
        iter::from_fn(|| Some(rest.by_ref().take(self.piece_chars).collect::<String>()).filter(|piece| !piece.is_empty())).collect()
    }

    /// The calls as streamed; each inner list is one event.
    pub fn call_pieces(&self) -> Vec<Vec<CallPiece>> {
        let calls: Vec<Vec<CallPiece>> = self.calls.iter().enumerate().map(|(call, it)| self.pieces_of(call, &it.arguments)).collect();
        match self.call_pieces {
            CallPieces::Split | CallPieces::Whole => calls.into_iter().flatten().map(|piece| vec![piece]).collect(),
            CallPieces::Together if calls.is_empty() => Vec::new(),
            CallPieces::Together => vec![calls.into_iter().flatten().collect()],
            CallPieces::Interleaved => {
                let mut calls: Vec<_> = calls.into_iter().map(Vec::into_iter).collect();
                let mut rounds = Vec::new();
                loop {
                    let round: Vec<_> = calls.iter_mut().filter_map(Iterator::next).collect();
                    if round.is_empty() {
                        return rounds;
                    }
                    rounds.extend(round.into_iter().map(|piece| vec![piece]));
                }
            }
        }
    }

    fn pieces_of(&self, call: usize, arguments: &str) -> Vec<CallPiece> {
        if matches!(self.call_pieces, CallPieces::Whole | CallPieces::Together) {
            return vec![CallPiece { call, opens: true, closes: true, arguments: arguments.to_owned() }];
        }
        let pieces = self.pieces(arguments);
        let last = pieces.len();
        let all = iter::once(String::new()).chain(pieces).enumerate();
        all.map(|(at, arguments)| CallPiece { call, opens: at == 0, closes: at == last, arguments }).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(call_pieces: CallPieces) -> Vec<Vec<String>> {
        let calls = vec![Call::raw("a", "123456"), Call::raw("b", ""), Call::raw("c", "{}")];
        let output = ModelOutput { calls, call_pieces, ..ModelOutput::default() };
        let show = |piece: &CallPiece| {
            format!("{}{}{}{}", piece.call, if piece.opens { "<" } else { "" }, piece.arguments, if piece.closes { ">" } else { "" })
        };
        output.call_pieces().iter().map(|chunk| chunk.iter().map(show).collect()).collect()
    }

    #[test]
    fn calls_are_cut_in_four_ways() {
        assert_eq!(shown(CallPieces::Split), [["0<"], ["01234"], ["056>"], ["1<>"], ["2<"], ["2{}>"]]);
        assert_eq!(shown(CallPieces::Interleaved), [["0<"], ["1<>"], ["2<"], ["01234"], ["2{}>"], ["056>"]]);
        assert_eq!(shown(CallPieces::Whole), [["0<123456>"], ["1<>"], ["2<{}>"]]);
        assert_eq!(shown(CallPieces::Together), [["0<123456>", "1<>", "2<{}>"]]);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let output = ModelOutput { piece_chars: 2, ..ModelOutput::default() };
        assert_eq!(output.pieces("añb☃c"), ["añ", "b☃", "c"]);
        assert!(output.pieces("").is_empty());
    }

    #[test]
    fn arguments_that_are_no_json_become_a_string() {
        assert_eq!(Call::raw("a", "{\"a\":").value(), json!("{\"a\":"));
        assert_eq!(Call::raw("a", "").value(), json!({}));
        assert_eq!(Call::new("a", json!({"b": 1})).value(), json!({"b": 1}));
    }
}
