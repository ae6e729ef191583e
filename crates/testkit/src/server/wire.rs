//! The wires that the server speaks: which one a request means, and one file for each.

#![expect(clippy::needless_pass_by_value, reason = "values are made by `json!` where they are handed over")]

mod anthropic;
mod gemini;
mod models;
mod openai_chat;
mod openai_responses;

use serde_json::Value;

pub(super) use gemini::wants_array;
pub(super) use models::list as list_models;

use super::answer::Answer;
use super::failure::Failure;
use super::request::{Asked, Request};
use super::sse::Event;

/// A way to speak to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wire {
    /// `OpenAI` Chat Completions, and the many that copy it: `POST …/chat/completions`.
    OpenAiChat,
    /// `OpenAI` Responses: `POST …/responses`.
    OpenAiResponses,
    /// Anthropic Messages: `POST …/messages`.
    Anthropic,
    /// Gemini: `POST …/models/NAME:generateContent` and `…:streamGenerateContent`.
    Gemini,
    /// No question to a model. No script is asked.
    Other,
}

impl Wire {
    /// The wire that a path means.
    pub(super) fn of(method: &str, path: &str) -> Self {
        let path = path.split('?').next().unwrap_or_default();
        if method != "POST" {
            Self::Other
        } else if path.ends_with("/chat/completions") {
            Self::OpenAiChat
        } else if path.ends_with("/responses") {
            Self::OpenAiResponses
        } else if path.ends_with("/messages") {
            Self::Anthropic
        } else if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") {
            Self::Gemini
        } else {
            Self::Other
        }
    }

    pub(super) fn read(self, path: &str, body: &Value) -> Asked {
        match self {
            Self::OpenAiChat => openai_chat::read(body),
            Self::OpenAiResponses => openai_responses::read(body),
            Self::Anthropic => anthropic::read(body),
            Self::Gemini => gemini::read(path, body),
            Self::Other => Asked::default(),
        }
    }

    /// An answer that comes at once.
    pub(super) fn whole(self, answer: &Answer, request: &Request) -> Value {
        match self {
            Self::OpenAiChat | Self::Other => openai_chat::whole(answer, request),
            Self::OpenAiResponses => openai_responses::whole(answer, request),
            Self::Anthropic => anthropic::whole(answer, request),
            Self::Gemini => gemini::whole(answer, request),
        }
    }

    /// An answer that comes as a stream.
    pub(super) fn events(self, answer: &Answer, request: &Request) -> Vec<Event> {
        match self {
            Self::OpenAiChat | Self::Other => openai_chat::events(answer, request),
            Self::OpenAiResponses => openai_responses::events(answer, request),
            Self::Anthropic => anthropic::events(answer, request),
            Self::Gemini => gemini::events(answer, request),
        }
    }

    /// The status and the body of a refusal.
    pub(super) fn failure(self, failure: &Failure) -> (u16, Value) {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses | Self::Other => openai_chat::failure(failure),
            Self::Anthropic => anthropic::failure(failure),
            Self::Gemini => gemini::failure(failure),
        }
    }

    /// The events of a failure in the middle of a stream, after so many others.
    pub(super) fn failure_events(self, failure: &Failure, request: &Request, after: usize) -> Vec<Event> {
        let (_, body) = self.failure(failure);
        match self {
            Self::OpenAiChat | Self::Gemini | Self::Other => vec![Event::data(body)],
            Self::Anthropic => vec![Event::typed(body)],
            Self::OpenAiResponses => openai_responses::failure_events(&body["error"], request, after),
        }
    }
}
