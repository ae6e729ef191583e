//! Makes a conversation fit what a model can read: the oldest tool results are shortened first.

use std::sync::Arc;

use helve_core::{Message, MessageBody, Part, printable};

/// How many bytes make a token, to be on the safe side.
const BYTES_PER_TOKEN: usize = 3;
/// What is left of a result that was shortened.
const REST: usize = 200;
/// The share of the context that what was said may take; the rest is for instructions, tools and the answer.
const SHARE: (usize, usize) = (3, 4);

/// The messages as they are, or with results shortened so that they fit.
pub(crate) fn fit(messages: &[Arc<Message>], context_tokens: Option<u32>) -> Vec<Arc<Message>> {
    let mut fitted = messages.to_vec();
    let Some(tokens) = context_tokens else { return fitted };
    let room = tokens as usize * BYTES_PER_TOKEN * SHARE.0 / SHARE.1;
    let mut size: usize = messages.iter().map(|message| bytes(message)).sum();
    // The results of the last turn are what the model waits for: they come last.
    for message in &mut fitted {
        if size <= room {
            break;
        }
        if let Some(short) = shortened(message) {
            size -= bytes(message) - bytes(&short);
            *message = short;
        }
    }
    fitted
}

fn shortened(message: &Message) -> Option<Arc<Message>> {
    let MessageBody::Tool { call_id, model_id, tool, text, success, untrusted } = message.body() else { return None };
    if text.len() <= REST * 2 {
        return None;
    }
    let text = format!("{}\n[shortened: the whole result had {} bytes]", printable::shorten(text, REST), text.len());
    let (call_id, model_id, tool) = (*call_id, model_id.clone(), tool.clone());
    Some(Arc::new(Message::new(MessageBody::Tool { call_id, model_id, tool, text: text.into(), success: *success, untrusted: *untrusted })))
}

fn bytes(message: &Message) -> usize {
    match message.body() {
        MessageBody::System { text } | MessageBody::Tool { text, .. } => text.len(),
        MessageBody::User { parts } => parts.iter().map(|part| if let Part::Text { text } = part { text.len() } else { 1000 }).sum(),
        MessageBody::Assistant { text, calls, .. } => text.len() + calls.iter().map(|call| call.arguments.len() + 64).sum::<usize>(),
        _ => 0,
    }
}
