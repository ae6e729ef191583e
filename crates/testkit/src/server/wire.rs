//! The wire formats of the server, one file each.

#![expect(clippy::needless_pass_by_value, reason = "values are made by `json!` where they are handed over")]

mod anthropic;
mod gemini;
mod models;
mod openai_chat;
mod openai_responses;

use serde_json::Value;

pub(super) use gemini::wants_array;
pub(super) use models::list as list_models;

use super::failure::Failure;
use super::output::ModelOutput;
use super::request::{ParsedRequest, Request};
use super::sse::Event;

/// The wire format of a model API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wire {
    /// `OpenAI` Chat Completions and compatible APIs: `POST …/chat/completions`.
    OpenAiChat,
    /// `OpenAI` Responses: `POST …/responses`.
    OpenAiResponses,
    /// Anthropic Messages: `POST …/messages`.
    Anthropic,
    /// Gemini: `POST …/models/NAME:generateContent` and `…:streamGenerateContent`.
    Gemini,
    /// Not a model request. The script is not used.
    Other,
}

impl Wire {
    /// The wire format of a path.
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

    pub(super) fn read(self, path: &str, body: &Value) -> ParsedRequest {
        match self {
            Self::OpenAiChat => openai_chat::read(body),
            Self::OpenAiResponses => openai_responses::read(body),
            Self::Anthropic => anthropic::read(body),
            Self::Gemini => gemini::read(path, body),
            Self::Other => ParsedRequest::default(),
        }
    }

    /// A complete response.
    pub(super) fn whole(self, output: &ModelOutput, request: &Request) -> Value {
        match self {
            Self::OpenAiChat | Self::Other => openai_chat::whole(output, request),
            Self::OpenAiResponses => openai_responses::whole(output, request),
            Self::Anthropic => anthropic::whole(output, request),
            Self::Gemini => gemini::whole(output, request),
        }
    }

    /// A streamed response.
    pub(super) fn events(self, output: &ModelOutput, request: &Request) -> Vec<Event> {
        match self {
            Self::OpenAiChat | Self::Other => openai_chat::events(output, request),
            Self::OpenAiResponses => openai_responses::events(output, request),
            Self::Anthropic => anthropic::events(output, request),
            Self::Gemini => gemini::events(output, request),
        }
    }

    /// The status and body of an error.
    pub(super) fn failure(self, failure: &Failure) -> (u16, Value) {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses | Self::Other => openai_chat::failure(failure),
            Self::Anthropic => anthropic::failure(failure),
            Self::Gemini => gemini::failure(failure),
        }
    }

    /// The events of an error in a stream, after this many others.
    pub(super) fn failure_events(self, failure: &Failure, request: &Request, after: usize) -> Vec<Event> {
        let (_, body) = self.failure(failure);
        match self {
            Self::OpenAiChat | Self::Gemini | Self::Other => vec![Event::data(body)],
            Self::Anthropic => vec![Event::typed(body)],
            Self::OpenAiResponses => openai_responses::failure_events(&body["error"], request, after),
        }
    }
}
