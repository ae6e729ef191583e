//! Cleans descriptions for models: removes markup and hidden characters, and limits the length.

use helve_core::printable::is_deceptive;

/// Number of bytes that are read for each character that may be kept.
pub(super) const READ_FOR_ONE: usize = 16;
/// Maximum number of bytes that are searched for the end of a tag or link.
const MAX_MARKUP: usize = 2_000;

/// HTML tags that start a new line.
const BLOCKS: [&str; 25] = [
    "blockquote",
    "br",
    "center",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "td",
    "tr",
    "ul",
];
/// HTML tags that do not start a new line. All other words in angle brackets, such as `<token>`, count as text.
const INLINE: [&str; 28] = [
    "a", "abbr", "article", "b", "cite", "code", "del", "em", "figure", "font", "i", "iframe", "img", "ins", "kbd", "mark", "nav", "s",
    "script", "small", "span", "strong", "style", "sub", "sup", "tbody", "th", "thead",
];
const ENTITIES: [(&str, &str); 7] =
    [("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&apos;", "'"), ("&nbsp;", " ")];

/// Returns the text without markup, on one line, and with at most about `limit` characters. Cuts at the end of a sentence if possible.
pub(super) fn clean(text: &str, limit: usize) -> String {
    let mut plain = String::new();
    without_markup(head(text, limit * READ_FOR_ONE), &mut plain, 0);
    let visible: String = plain.chars().map(|c| if c.is_control() { ' ' } else { c }).filter(|c| !is_deceptive(*c)).collect();
    let words: Vec<&str> = visible.split_whitespace().collect();
    at_sentence(&words.join(" "), limit)
}

/// Joins a summary and a description. Leaves out the summary if the description starts with it.
pub(super) fn joined(summary: &str, description: &str) -> String {
    let bare = summary.trim_end_matches(['.', ' ']);
    if summary.is_empty() || description.to_lowercase().starts_with(&bare.to_lowercase()) {
        return description.to_owned();
    }
    if description.is_empty() { summary.to_owned() } else { format!("{} {description}", sentence(summary)) }
}

/// Adds a full stop if the text does not end with punctuation.
pub(super) fn sentence(text: &str) -> String {
    let ended = text.is_empty() || text.ends_with(['.', '!', '?', ':', ';', '…', '。', '！', '？']);
    if ended { text.to_owned() } else { format!("{text}.") }
}

fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn without_markup(text: &str, plain: &mut String, depth: usize) {
    let mut rest = text;
    while let Some(start) = rest.find(['<', '!', '[', '&']) {
        plain.push_str(&rest[..start]);
        rest = &rest[start..];
        let window = head(rest, MAX_MARKUP);
        let taken = if window.starts_with("<!--") {
            rest.find("-->").map_or(rest.len(), |end| end + 3)
        } else if window.starts_with('<') {
            tag(window, plain)
        } else if let Some(link) = window.strip_prefix('!') {
            label(link).map_or(0, |(_, length)| length + 1)
        } else if window.starts_with('[') {
            label(window).filter(|_| depth < 4).map_or(0, |(inner, length)| {
                without_markup(inner, plain, depth + 1);
                length
            })
        } else {
            ENTITIES.iter().find(|(entity, _)| window.starts_with(entity)).map_or(0, |(entity, character)| {
                plain.push_str(character);
                entity.len()
            })
        };
        if taken == 0 {
            // Each of the four characters is a single byte.
            plain.push_str(&rest[..1]);
        }
        rest = &rest[taken.max(1)..];
    }
    plain.push_str(rest);
}

/// Returns the length of the HTML tag at the start of a text, or 0 if there is none. Adds a space to `plain` if the tag starts a new line.
fn tag(text: &str, plain: &mut String) -> usize {
    let inner = text[1..].trim_start_matches('/');
    let name = head(inner, 12).split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_ascii_lowercase();
    let is_block = BLOCKS.contains(&name.as_str());
    if !is_block && !INLINE.contains(&name.as_str()) {
        return 0;
    }
    let Some(end) = text.find('>') else { return 0 };
    if is_block {
        plain.push(' ');
    }
    end + 1
}

/// Returns the label of the Markdown link at the start of a text, and the length of the link in bytes.
fn label(text: &str) -> Option<(&str, usize)> {
    let mut open = 0usize;
    let end = text.char_indices().find_map(|(at, c)| {
        match c {
            // More deeply nested brackets are not links, and scanning all of them would take too long.
            '[' if open == 3 => return Some(None),
            '[' => open += 1,
            ']' => open = open.saturating_sub(1),
            _ => {}
        }
        (open == 0).then_some(Some(at))
    })??;
    if !text.starts_with('[') || !text[end..].starts_with("](") {
        return None;
    }
    let close = text[end..].find(')')?;
    Some((&text[1..end], end + close + 1))
}

/// Shortens a cleaned text to at most about `limit` characters, at the end of a sentence if possible.
pub(super) fn at_sentence(text: &str, limit: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(limit) else { return text.to_owned() };
    let kept = &text[..end];
    let stop = kept.char_indices().rev().find(|(at, c)| match c {
        '.' | '!' | '?' => text[at + 1..].starts_with(' '),
        '。' | '！' | '？' => true,
        _ => false,
    });
    match stop {
        Some((at, c)) if at > end / 2 => kept[..at + c.len_utf8()].to_owned(),
        _ => format!("{}…", kept[..kept.rfind(' ').unwrap_or(end)].trim_end_matches([',', ';', ' '])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_goes_and_meaning_stays() {
        for (text, plain) in [
            ("Gets <b>a</b> pet.<br/>Then\n\n more", "Gets a pet. Then more"),
            ("![logo](https://x.example/a.png) Lists", "Lists"),
            ("See [the docs](https://x.example) and [![b](c)](d)!", "See the docs and !"),
            ("Bearer <token> if a < b && c > d", "Bearer <token> if a < b && c > d"),
            ("a &lt; b &amp; c<!-- hidden --> d", "a < b & c d"),
            ("kept <!-- never closed", "kept"),
            ("hid\u{200b}den \u{202e}text", "hidden text"),
            ("arr[0] and [x] (y) and ![", "arr[0] and [x] (y) and !["),
        ] {
            assert_eq!(clean(text, 1_000), plain, "{text}");
        }
    }

    #[test]
    fn long_texts_end_with_a_sentence() {
        let text = "One sentence here. ".repeat(100);
        let short = clean(&text, 100);
        assert!(short.len() <= 100 && short.ends_with("here."), "{short}");
        assert_eq!(clean(&"word ".repeat(100), 22), "word word word word…");
        assert_eq!(clean(&"é".repeat(50), 10), format!("{}…", "é".repeat(10)));
    }

    #[test]
    fn summaries_are_not_said_twice() {
        assert_eq!(joined("Get a pet", "Returns one."), "Get a pet. Returns one.");
        assert_eq!(joined("Get a pet.", "Get a pet by its number."), "Get a pet by its number.");
        assert_eq!(joined("", "Returns one."), "Returns one.");
        assert_eq!(joined("Get a pet", ""), "Get a pet");
    }
}
