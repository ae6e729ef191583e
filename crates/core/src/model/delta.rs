//! Deltas of a streamed response. Many deltas arrive together, so they share one buffer instead of allocating separately.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One delta of a response. A call may arrive in parts, without an id, all at once, or interleaved with other calls by index.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ModelDelta<'a> {
    /// The next part of the text.
    Text(&'a str),
    /// The next part of the reasoning.
    Reasoning(&'a str),
    /// The next part of a call.
    Call {
        /// Index of the call in the response, if the provider sends it.
        index: Option<u32>,
        /// The provider's id of the call.
        id: Option<&'a str>,
        /// The tool's name, or a part of it.
        name: Option<&'a str>,
        /// A part of the arguments, as JSON text.
        arguments: &'a str,
    },
    /// An opaque part that the provider requires back.
    ProviderPart(&'a Value),
    /// Usage so far. It replaces the usage of earlier deltas.
    Usage(Usage),
    /// The end of the response.
    End(EndReason),
}

/// Why a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// The model finished its response.
    Stop,
    /// The model waits for the results of its calls.
    Calls,
    /// The response reached the token limit.
    Length,
    /// The provider's content filter stopped the response.
    Filter,
}

/// Tokens and cost of one or more responses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Number of input tokens.
    pub input_tokens: u64,
    /// Number of input tokens from the provider's cache; included in `input_tokens`.
    pub cached_tokens: u64,
    /// Number of output tokens, including reasoning.
    pub output_tokens: u64,
    /// Cost in US dollars, if known.
    pub cost: Option<f64>,
}

impl Usage {
    /// Subtracts another usage, down to zero.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(other.cached_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            cost: self.cost.map(|cost| (cost - other.cost.unwrap_or_default()).max(0.0)),
        }
    }

    /// Returns the sum of input and output tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        // A NaN or infinite cost would make the sum useless, and no cost limit would apply.
        let other_cost = other.cost.filter(|cost| cost.is_finite() && *cost >= 0.0);
        self.cost = match (self.cost, other_cost) {
            (Some(one), Some(two)) => Some((one + two).min(f64::MAX)),
            (one, two) => one.or(two),
        };
    }
}

/// A buffer of deltas. Clearing it keeps its capacity, so one buffer is enough for a whole response.
#[derive(Debug, Clone, Default)]
pub struct Deltas {
    text: String,
    pieces: Vec<Piece>,
    kept: Vec<Value>,
}

#[derive(Debug, Clone)]
enum Piece {
    Text(Range<usize>),
    Reasoning(Range<usize>),
    Call { index: Option<u32>, id: Option<Range<usize>>, name: Option<Range<usize>>, arguments: Range<usize> },
    ProviderPart(usize),
    Usage(Usage),
    End(EndReason),
}

impl Deltas {
    /// Creates a buffer with capacity for `bytes` bytes of text.
    #[must_use]
    pub fn with_room(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), pieces: Vec::with_capacity(16), kept: Vec::new() }
    }

    /// Adds a delta to the buffer.
    pub fn push(&mut self, delta: ModelDelta<'_>) {
        let piece = match delta {
            ModelDelta::Text(text) => Piece::Text(self.hold(text)),
            ModelDelta::Reasoning(text) => Piece::Reasoning(self.hold(text)),
            ModelDelta::Call { index, id, name, arguments } => {
                let (id, name) = (id.map(|id| self.hold(id)), name.map(|name| self.hold(name)));
                Piece::Call { index, id, name, arguments: self.hold(arguments) }
            }
            ModelDelta::ProviderPart(value) => {
                self.kept.push(value.clone());
                Piece::ProviderPart(self.kept.len() - 1)
            }
            ModelDelta::Usage(usage) => Piece::Usage(usage),
            ModelDelta::End(reason) => Piece::End(reason),
        };
        self.pieces.push(piece);
    }

    /// Returns an iterator over the deltas, in order.
    pub fn iter(&self) -> impl Iterator<Item = ModelDelta<'_>> {
        self.pieces.iter().map(|piece| match piece {
            Piece::Text(range) => ModelDelta::Text(&self.text[range.clone()]),
            Piece::Reasoning(range) => ModelDelta::Reasoning(&self.text[range.clone()]),
            Piece::Call { index, id, name, arguments } => ModelDelta::Call {
                index: *index,
                id: id.clone().map(|range| &self.text[range]),
                name: name.clone().map(|range| &self.text[range]),
                arguments: &self.text[arguments.clone()],
            },
            Piece::ProviderPart(place) => ModelDelta::ProviderPart(&self.kept[*place]),
            Piece::Usage(usage) => ModelDelta::Usage(*usage),
            Piece::End(reason) => ModelDelta::End(*reason),
        })
    }

    /// Returns whether the buffer contains no deltas.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the number of deltas.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Removes all deltas and keeps the capacity.
    pub fn clear(&mut self) {
        self.text.clear();
        self.pieces.clear();
        self.kept.clear();
    }

    fn hold(&mut self, text: &str) -> Range<usize> {
        let start = self.text.len();
        self.text.push_str(text);
        start..self.text.len()
    }
}

impl<'a> FromIterator<ModelDelta<'a>> for Deltas {
    fn from_iter<I: IntoIterator<Item = ModelDelta<'a>>>(pieces: I) -> Self {
        let mut deltas = Self::default();
        deltas.extend(pieces);
        deltas
    }
}

impl<'a> Extend<ModelDelta<'a>> for Deltas {
    fn extend<I: IntoIterator<Item = ModelDelta<'a>>>(&mut self, pieces: I) {
        pieces.into_iter().for_each(|piece| self.push(piece));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_come_out_as_they_went_in() {
        let kept = json!({"signature": "s"});
        let usage = Usage { input_tokens: 3, cost: Some(0.5), ..Usage::default() };
        let pieces = [
            ModelDelta::Text("héllo"),
            ModelDelta::Reasoning("hm"),
            ModelDelta::Call { index: Some(1), id: Some("c"), name: None, arguments: "{\"a\"" },
            ModelDelta::ProviderPart(&kept),
            ModelDelta::Usage(usage),
            ModelDelta::End(EndReason::Calls),
        ];
        let mut deltas = Deltas::default();
        for _ in 0..2 {
            for piece in &pieces {
                deltas.push(*piece);
            }
            assert!(deltas.iter().eq(pieces.iter().copied()));
            deltas.clear();
            assert!(deltas.is_empty());
        }
    }

    #[test]
    fn costs_add_up_where_they_are_known() {
        let mut sum = Usage { input_tokens: 1, output_tokens: 2, ..Usage::default() };
        sum += Usage { input_tokens: 10, cost: Some(0.25), ..Usage::default() };
        sum += Usage { cost: Some(0.5), ..Usage::default() };
        assert_eq!((sum.tokens(), sum.cost), (13, Some(0.75)));
    }

    #[test]
    fn sums_never_overflow_and_costs_that_are_none_do_not_count() {
        let most = Usage { input_tokens: u64::MAX, cached_tokens: u64::MAX, output_tokens: u64::MAX, cost: Some(f64::MAX) };
        let mut sum = most;
        sum += most;
        assert_eq!((sum, sum.tokens()), (most, u64::MAX));
        for cost in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
            let mut sum = Usage { cost: Some(0.5), ..Usage::default() };
            sum += Usage { input_tokens: 3, cost: Some(cost), ..Usage::default() };
            assert_eq!((sum.input_tokens, sum.cost), (3, Some(0.5)), "{cost}");
        }
    }
}
