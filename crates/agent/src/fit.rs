//! Fits a conversation into the context window of a model: shortens tool results, the oldest first.

use std::sync::Arc;

use helve_core::{Message, MessageBody, Part, printable};

/// Bytes per token, estimated low so that the estimate of tokens is high.
const BYTES_PER_TOKEN: usize = 3;
/// Size of a shortened tool result, in bytes.
const SHORTENED: usize = 200;
/// The share of the context window for messages, as a fraction. The rest is for instructions, tools and the response.
const SHARE: (usize, usize) = (3, 4);

/// Returns the messages, with tool results shortened to fit into three quarters of `context_tokens`. `too_long` is how often the model
/// has rejected the conversation as too long; each time halves the target size.
pub(crate) fn fit(messages: &[Arc<Message>], context_tokens: Option<u32>, too_long: u32) -> Vec<Arc<Message>> {
    let mut fitted = messages.to_vec();
    if context_tokens.is_none() && too_long == 0 {
        return fitted;
    }
    let mut size: usize = messages.iter().map(|message| bytes(message)).sum();
    let known = context_tokens.map_or(usize::MAX, |tokens| tokens as usize * BYTES_PER_TOKEN / SHARE.1 * SHARE.0);
    let room = known.min(size >> too_long);
    // The latest results matter most, so shorten the oldest first.
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
    let MessageBody::Tool { call_id, model_id, tool, text, success } = message.body() else { return None };
    if text.len() <= SHORTENED * 2 {
        return None;
    }
    let short = format!("{}\n[shortened: the whole result had {} bytes]", printable::shorten_bytes(text, SHORTENED), text.len());
    let (call_id, model_id, tool) = (*call_id, model_id.clone(), tool.clone());
    Some(Arc::new(Message::new(MessageBody::Tool { call_id, model_id, tool, text: short, success: *success })))
}

fn bytes(message: &Message) -> usize {
    match message.body() {
        MessageBody::System { text } => text.len(),
        MessageBody::Tool { text, .. } => text.len(),
        MessageBody::User { parts } => parts.iter().map(|part| if let Part::Text { text } = part { text.len() } else { 1000 }).sum(),
        MessageBody::Assistant { text, calls, .. } => text.len() + calls.iter().map(|call| call.arguments.len() + 64).sum::<usize>(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use helve_core::CallId;

    use super::*;

    fn result(text: String) -> Arc<Message> {
        let (call_id, tool) = (CallId::mint(), "read".into());
        Arc::new(Message::new(MessageBody::Tool { call_id, model_id: None, tool, text, success: true }))
    }

    fn lengths(messages: &[Arc<Message>]) -> Vec<usize> {
        messages.iter().map(|message| bytes(message)).collect()
    }

    #[test]
    fn the_oldest_results_are_shortened_first_and_only_as_many_as_needed() {
        let messages =
            [Arc::new(Message::user("x".repeat(1000))), result("a".repeat(3000)), result("b".repeat(3000)), result("c".repeat(3000))];
        assert_eq!(fit(&messages, None, 0), messages);
        assert_eq!(fit(&messages, Some(100_000), 0), messages);
        // 4,200 tokens are about 9,450 bytes: one result must go.
        let fitted = lengths(&fit(&messages, Some(4200), 0));
        assert_eq!((fitted[0], fitted[2], fitted[3]), (1000, 3000, 3000));
        assert!(fitted[1] < 500, "{fitted:?}");
        let fitted = lengths(&fit(&messages, None, 1));
        assert!(fitted[1] < 500 && fitted[2] < 500 && fitted[3] == 3000, "{fitted:?}");
        let fitted = lengths(&fit(&messages, Some(1), 0));
        assert!(fitted[1..].iter().all(|length| *length < 500) && fitted[0] == 1000, "{fitted:?}");
    }

    /// Characters of several bytes take no more room than others, and are never cut in two.
    #[test]
    fn results_in_any_script_are_shortened_to_the_same_size() {
        for character in ["x", "é", "字", "🦀", "👩‍🚀"] {
            for length in 401..420 {
                // Each offset makes the cuts fall at another place within a character.
                let text = format!("{}{}", "x".repeat(length % 7), character.repeat(length));
                let fitted = fit(&[result(text.clone())], Some(1), 0);
                let MessageBody::Tool { text: short, .. } = fitted[0].body() else { panic!("a result") };
                assert!(short.len() < SHORTENED * 2 && short.contains(&format!("the whole result had {} bytes", text.len())), "{short}");
                let (head, _) = short.split_once("…[").expect("a cut");
                assert!(text.starts_with(head) && head.len() > SHORTENED / 2 - 4, "{short}");
            }
        }
    }
}
