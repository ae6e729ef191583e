//! Server-sent events, in the styles of different servers.

use hyper::body::Bytes;
use serde_json::Value;

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Event {
    /// The event name; omitted if empty.
    pub name: String,
    pub data: String,
}

impl Event {
    /// An event with data only.
    #[expect(clippy::needless_pass_by_value, reason = "so that `json!(..)` is written without a reference")]
    pub fn data(data: Value) -> Self {
        Self { name: String::new(), data: data.to_string() }
    }

    /// An event named after the `type` of its data.
    pub fn typed(data: Value) -> Self {
        Self { name: data["type"].as_str().unwrap_or_default().to_owned(), ..Self::data(data) }
    }
}

/// How events are written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Style {
    /// Lines end in CR LF.
    pub crlf: bool,
    /// A comment before each event.
    pub comments: bool,
    /// No space after a colon.
    pub tight: bool,
}

impl Style {
    pub fn write(self, event: &Event) -> Bytes {
        let (end, space) = (if self.crlf { "\r\n" } else { "\n" }, if self.tight { "" } else { " " });
        let comment = self.comments.then(|| format!(":{space}keep-alive{end}{end}"));
        let name = Some(&event.name).filter(|name| !name.is_empty()).map(|name| format!("event:{space}{name}{end}"));
        let data = event.data.split('\n').map(|line| format!("data:{space}{line}{end}"));
        Bytes::from(comment.into_iter().chain(name).chain(data).chain([end.to_owned()]).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_written_in_every_style() {
        let event = Event::typed(json!({"type": "ping"}));
        let written = |crlf, comments, tight| String::from_utf8(Style { crlf, comments, tight }.write(&event).to_vec()).expect("text");
        assert_eq!(written(false, false, false), "event: ping\ndata: {\"type\":\"ping\"}\n\n");
        assert_eq!(written(true, true, true), ":keep-alive\r\n\r\nevent:ping\r\ndata:{\"type\":\"ping\"}\r\n\r\n");
        let lines = Event { name: String::new(), data: "a\nb".into() };
        assert_eq!(Style::default().write(&lines), "data: a\ndata: b\n\n");
    }
}
