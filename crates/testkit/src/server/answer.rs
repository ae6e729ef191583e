//! What a model says in a reply, and how it comes in pieces. How a piece is written is a matter of the wire.

use std::iter;

use helve_core::{EndReason, Usage};
use serde_json::Value;

/// A call that a model makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The tool's name.
    pub name: String,
    /// The arguments as they are sent: JSON, or what should have been JSON.
    pub arguments: String,
    /// The provider's id. Where there is none, the server makes one up, unless [`Reply::without_ids`](crate::Reply::without_ids) says no.
    pub id: Option<String>,
}

impl Call {
    /// A call with proper arguments.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "so that `json!(..)` is written without a reference")]
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self::raw(name, arguments.to_string())
    }

    /// A call whose arguments are any text: broken JSON, or nothing at all.
    ///
    /// Where a wire has a JSON value and no text for them (Gemini, and whole answers of Anthropic), what is no JSON is sent as a string,
    /// and nothing as `{}`.
    #[must_use]
    pub fn raw(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self { name: name.into(), arguments: arguments.into(), id: None }
    }

    /// The same call under this id, which may be empty or that of another call.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The arguments for a wire that has a JSON value for them.
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

/// How the calls of a streamed answer are cut into pieces. Gemini never cuts a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallPieces {
    /// One call after the other, each in many pieces.
    #[default]
    Split,
    /// In many pieces, a piece of each call in turn.
    Interleaved,
    /// Each call in one piece.
    Whole,
    /// All calls in one piece, where the wire has room for more than one; else like `Whole`.
    Together,
}

/// Whether the server says what the answer cost.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tokens {
    /// As the provider does: `OpenAI` leaves it out of a stream unless it is asked for.
    AsAsked(Usage),
    Always(Usage),
    Never,
}

/// What a model says.
#[derive(Debug, Clone)]
pub(super) struct Answer {
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

impl Default for Answer {
    fn default() -> Self {
        Self {
            reasoning: String::new(),
            signature: None,
            text: String::new(),
            calls: Vec::new(),
            end: None,
            tokens: Tokens::AsAsked(Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() }),
            piece_chars: 4,
            call_pieces: CallPieces::default(),
            with_ids: true,
            with_index: true,
            reasoning_field: "reasoning_content",
        }
    }
}

/// A piece of one call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CallPiece {
    /// Which call of the answer.
    pub call: usize,
    /// Whether it is the first of its call.
    pub opens: bool,
    /// Whether it is the last of its call.
    pub closes: bool,
    pub arguments: String,
}

impl Answer {
    /// Why the answer ends, if nobody said otherwise.
    pub fn end(&self) -> EndReason {
        self.end.unwrap_or(if self.calls.is_empty() { EndReason::Stop } else { EndReason::Calls })
    }

    /// What it cost, for answers that always say so unless told not to.
    pub fn usage(&self) -> Option<Usage> {
        match self.tokens {
            Tokens::AsAsked(usage) | Tokens::Always(usage) => Some(usage),
            Tokens::Never => None,
        }
    }

    /// The id of a call; `turn` keeps ids of different replies apart.
    pub fn call_id(&self, call: usize, prefix: &str, turn: usize) -> Option<String> {
        let given = self.calls.get(call).and_then(|call| call.id.clone());
        self.with_ids.then(|| given.unwrap_or_else(|| format!("{prefix}_{}_{}", turn + 1, call + 1)))
    }

    /// A text in pieces of the wanted length. An empty text has none.
    pub fn pieces(&self, text: &str) -> Vec<String> {
        let mut rest = text.chars();
        iter::from_fn(|| Some(rest.by_ref().take(self.piece_chars).collect::<String>()).filter(|piece| !piece.is_empty())).collect()
    }

    /// The calls as they are streamed: each inner list goes out at once.
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
        let answer = Answer { calls, call_pieces, ..Answer::default() };
        let show = |piece: &CallPiece| {
            format!("{}{}{}{}", piece.call, if piece.opens { "<" } else { "" }, piece.arguments, if piece.closes { ">" } else { "" })
        };
        answer.call_pieces().iter().map(|chunk| chunk.iter().map(show).collect()).collect()
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
        let answer = Answer { piece_chars: 2, ..Answer::default() };
        assert_eq!(answer.pieces("añb☃c"), ["añ", "b☃", "c"]);
        assert!(answer.pieces("").is_empty());
    }

    #[test]
    fn arguments_that_are_no_json_become_a_string() {
        assert_eq!(Call::raw("a", "{\"a\":").value(), json!("{\"a\":"));
        assert_eq!(Call::raw("a", "").value(), json!({}));
        assert_eq!(Call::new("a", json!({"b": 1})).value(), json!({"b": 1}));
    }
}
