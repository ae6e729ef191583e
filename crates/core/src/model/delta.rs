//! The pieces of an answer. Many come at once, so they share one text and cost no allocation each.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One piece of an answer. Calls may come in pieces, without ids, all at once, or interleaved by index.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ModelDelta<'a> {
    /// Words.
    Text(&'a str),
    /// Thoughts that are shown.
    Reasoning(&'a str),
    /// A piece of a call.
    Call {
        /// Which call of the answer, where the provider says.
        index: Option<u32>,
        /// The provider's id.
        id: Option<&'a str>,
        /// The tool's name, or a piece of it.
        name: Option<&'a str>,
        /// A piece of the arguments, as JSON text.
        arguments: &'a str,
    },
    /// Something that only the provider understands and wants back.
    Kept(&'a Value),
    /// What the answer cost so far; later ones replace earlier ones.
    Usage(Usage),
    /// The answer is over.
    End(EndReason),
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndReason {
    /// It said what it had to say.
    Stop,
    /// It waits for its calls.
    Calls,
    /// It ran into its limit.
    Length,
    /// The provider cut it off.
    Filter,
}

/// What an answer cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens read from the provider's cache; part of those read.
    pub cached_tokens: u64,
    /// Tokens written, thoughts included.
    pub output_tokens: u64,
    /// Money in US dollars, where known.
    pub cost: Option<f64>,
}

impl Usage {
    /// The rest after another was taken away.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_sub(other.cached_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            cost: self.cost.map(|cost| (cost - other.cost.unwrap_or_default()).max(0.0)),
        }
    }

    /// Tokens read and written.
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
        // One cost that cannot be added up would make the sum one, and no limit would hold any more.
        let other_cost = other.cost.filter(|cost| cost.is_finite() && *cost >= 0.0);
        self.cost = match (self.cost, other_cost) {
            (Some(one), Some(two)) => Some((one + two).min(f64::MAX)),
            (one, two) => one.or(two),
        };
    }
}

/// Pieces in order. Clearing keeps the room, so that a reader needs one of these for a whole answer.
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
    Kept(usize),
    Usage(Usage),
    End(EndReason),
}

impl Deltas {
    /// Room for an answer of so many bytes.
    #[must_use]
    pub fn with_room(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), pieces: Vec::with_capacity(16), kept: Vec::new() }
    }

    /// Adds a piece.
    pub fn push(&mut self, delta: ModelDelta<'_>) {
        let piece = match delta {
            ModelDelta::Text(text) => Piece::Text(self.hold(text)),
            ModelDelta::Reasoning(text) => Piece::Reasoning(self.hold(text)),
            ModelDelta::Call { index, id, name, arguments } => {
                let (id, name) = (id.map(|id| self.hold(id)), name.map(|name| self.hold(name)));
                Piece::Call { index, id, name, arguments: self.hold(arguments) }
            }
            ModelDelta::Kept(value) => {
                self.kept.push(value.clone());
                Piece::Kept(self.kept.len() - 1)
            }
            ModelDelta::Usage(usage) => Piece::Usage(usage),
            ModelDelta::End(reason) => Piece::End(reason),
        };
        self.pieces.push(piece);
    }

    /// The pieces in order.
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
            Piece::Kept(place) => ModelDelta::Kept(&self.kept[*place]),
            Piece::Usage(usage) => ModelDelta::Usage(*usage),
            Piece::End(reason) => ModelDelta::End(*reason),
        })
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Takes all pieces out; the room stays.
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
            ModelDelta::Kept(&kept),
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
