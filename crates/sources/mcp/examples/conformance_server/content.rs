//! Blocks of content, and the smallest files that are an image and a sound.

use serde_json::{Value, json};

/// One red pixel.
pub const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
/// Nothing to hear, at 8 kHz.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

pub fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

pub fn image() -> Value {
    json!({"type": "image", "data": PNG, "mimeType": "image/png"})
}

pub fn audio() -> Value {
    json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"})
}

pub fn resource(uri: &str, mime_type: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": text}})
}
