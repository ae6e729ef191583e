//! Shows calls and results in a few lines.

use std::fmt::Write;
use std::time::Duration;

use helve::internal::printable;
use serde_json::Value;

use super::{FAINT, counted, cut, styled};

/// Maximum number of lines of a result to show.
const LINES: usize = 4;
/// Maximum width of an argument's value, in columns.
const VALUE: usize = 60;
/// Maximum width of an argument's value, in columns, if the line would otherwise be too long.
const NARROW_VALUE: usize = 16;
/// Maximum number of characters of a line to look at.
const WIDEST: usize = 1_000;

/// Returns a call as one line without styles: `add(a=2, b=3)`.
pub fn call_line(tool: &str, arguments: &Value, width: usize) -> String {
    let tool = printable::escape_line(tool);
    let line = |most: usize| match arguments {
        Value::Object(fields) => {
            let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{}={}", word(name, VALUE), brief(value, most))).collect();
            format!("{tool}({})", fields.join(", "))
        }
        Value::Null => format!("{tool}()"),
        other => format!("{tool}({})", brief(other, most)),
    };
    let whole = line(VALUE);
    // Shortens the values, so that all of them are visible.
    let shown = if cut(&whole, width) == whole { whole } else { line(NARROW_VALUE) };
    let cut = cut(&shown, width.saturating_sub(1));
    if cut == shown || width < 3 { cut } else { format!("{cut})") }
}

/// Returns the lines that show a result after its mark: the first lines, the number of other lines, and the duration.
pub fn result_lines(mark: &str, text: &str, duration: Duration, width: usize) -> Vec<String> {
    let time = styled(FAINT, &format!("({})", self::duration(duration)));
    let mut lines = text.trim_end().lines();
    let room = width.min(WIDEST).saturating_sub(4);
    let shown = |line: &str, room: usize| {
        let line: String = line.chars().take(WIDEST).collect();
        cut(&printable::escape_line(&line.replace('\t', "    ")), room)
    };
    let mut result = match lines.next() {
        None => vec![format!("  {mark} {time}")],
        Some(first) => vec![format!("  {mark} {} {time}", shown(first, room.saturating_sub(self::duration(duration).len() + 3)))],
    };
    result.extend(lines.by_ref().take(LINES - 1).map(|line| format!("    {}", shown(line, room))));
    match lines.count() {
        0 => {}
        more => result.push(styled(FAINT, &format!("    … {}", counted(more, "more line")))),
    }
    result
}

/// Formats a duration for people: `12 ms`, `1.2 s`, `2 min 5 s`.
pub fn duration(duration: Duration) -> String {
    match duration.as_millis() {
        0 => "<1 ms".to_owned(),
        milliseconds @ 1..=999 => format!("{milliseconds} ms"),
        1_000..=59_949 => format!("{:.1} s", duration.as_secs_f64()),
        _ => {
            let seconds = (duration + Duration::from_millis(500)).as_secs();
            format!("{} min {} s", seconds / 60, seconds % 60)
        }
    }
}

/// Returns a value in at most `most` columns.
fn brief(value: &Value, most: usize) -> String {
    match value {
        Value::String(text) => word(text, most),
        Value::Array(_) | Value::Object(_) => cut(&printable::escape_line(&value.to_string()), most),
        other => other.to_string(),
    }
}

/// Returns a text in at most `most` columns: bare if it is one word, otherwise quoted, so that it cannot look like several arguments.
fn word(text: &str, most: usize) -> String {
    let head: String = text.chars().take(WIDEST).collect();
    let bare = |character: char| character.is_alphanumeric() || "-_./:@%+~?&#*".contains(character);
    if !head.is_empty() && head.chars().all(bare) && serde_json::from_str::<Value>(&head).is_err() {
        return cut(&printable::escape_line(&head), most);
    }
    let mut quoted = String::from("\"");
    for character in head.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            // Writing to a string cannot fail.
            _ => drop(write!(quoted, "{}", printable::escape_line(character.encode_utf8(&mut [0; 4])))),
        }
    }
    let whole = cut(&quoted, most.saturating_sub(1));
    whole + "\""
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn a_call_is_one_line() {
        let line = |arguments: Value| call_line("add", &arguments, 80);
        assert_eq!(line(json!({"a": 2, "b": 3.5})), "add(a=2, b=3.5)");
        assert_eq!(line(json!({})), "add()");
        assert_eq!(line(json!(null)), "add()");
        assert_eq!(line(json!([1, "x"])), "add([1,\"x\"])");
        assert_eq!(line(json!({"path": "src/main.rs", "city": "上海"})), "add(path=src/main.rs, city=上海)");
        assert_eq!(
            line(json!({"a": "", "b": "two words", "c": "1", "d": "true", "e": "x, f=1"})),
            r#"add(a="", b="two words", c="1", d="true", e="x, f=1")"#
        );
        assert_eq!(line(json!({"on": true, "o": {"a": [1]}})), r#"add(on=true, o={"a":[1]})"#);
        assert_eq!(line(json!({"q\u{1b}": "a\n\u{1b}[2J\u{202e}\"\\"})), r#"add("q\u{1b}"="a\n\u{1b}[2J\u{202e}\"\\")"#);
    }

    #[test]
    fn a_long_call_is_cut() {
        let arguments = json!({"text": "天气".repeat(100), "mode": "fast", "n": 1});
        assert_eq!(call_line("write", &arguments, 60), "write(text=天气天气天气天…, mode=fast, n=1)");
        for width in [0, 1, 2, 3, 10, 40, 80, 200, usize::MAX] {
            let line = call_line("write", &arguments, width);
            assert!(line.width() <= width.max(1), "{width}: {line}");
        }
        assert_eq!(call_line("write", &arguments, 20), "write(text=天气天…)");
    }

    fn result(text: &str, success: bool, milliseconds: u64, width: usize) -> Vec<String> {
        let mark = if success { "✓" } else { "✗" };
        let lines = result_lines(mark, text, Duration::from_millis(milliseconds), width);
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect()
    }

    #[test]
    fn a_result_is_few_lines() {
        assert_eq!(result("5\n", true, 12, 80), ["  ✓ 5 (12 ms)"]);
        assert_eq!(result("", false, 1_234, 80), ["  ✗ (1.2 s)"]);
        assert_eq!(result("a\n\tb\n\u{1b}c\nd", true, 0, 80), ["  ✓ a (<1 ms)", "        b", r"    \u{1b}c", "    d"]);
        assert_eq!(result("1\n2\n3\n4\n5", true, 1, 80).last().map(String::as_str), Some("    … 1 more line"));
        let long = "line\n".repeat(124);
        let lines = result(&long, true, 65_000, 80);
        assert_eq!((lines.len(), lines[4].as_str(), lines[0].as_str()), (5, "    … 120 more lines", "  ✓ line (1 min 5 s)"));
        for line in result(&"天气 很好 ".repeat(100), true, 12, 40) {
            assert!(line.width() <= 40, "{line}");
        }
    }

    #[test]
    fn times_are_round() {
        let shown = |milliseconds| duration(Duration::from_millis(milliseconds));
        assert_eq!(
            [shown(999), shown(1_000), shown(59_949), shown(59_950), shown(125_000)],
            ["999 ms", "1.0 s", "59.9 s", "1 min 0 s", "2 min 5 s"]
        );
    }
}
