//! Resolves plain scalars by the YAML 1.2 core schema, in which `no` and `on` are strings.

use serde_json::{Number, Value};

/// Returns the value of a plain scalar.
pub(super) fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::from(text), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let first = digits.bytes().next()?;
    if !first.is_ascii_digit() && first != b'.' {
        return None;
    }
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        return i64::from_str_radix(hexadecimal, 16).ok().map(Number::from);
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return i64::from_str_radix(octal, 8).ok().map(Number::from);
    }
    let plain = text.strip_prefix('+').unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // An integer that does not fit into 64 bits stays a string, so that no digit is lost.
        return plain.parse::<i64>().map(Number::from).or_else(|_| plain.parse::<u64>().map(Number::from)).ok();
    }
    let is_float = digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    plain.parse::<f64>().ok().filter(|_| is_float).and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::resolve;

    #[test]
    fn words_and_numbers_are_told_apart() {
        for (text, value) in [
            ("", json!(null)),
            ("~", json!(null)),
            ("true", json!(true)),
            ("yes", json!("yes")),
            ("off", json!("off")),
            ("30", json!(30)),
            ("-7", json!(-7)),
            ("+7", json!(7)),
            ("1.5", json!(1.5)),
            ("1e3", json!(1000.0)),
            ("0x1f", json!(31)),
            ("0o17", json!(15)),
            ("30s", json!("30s")),
            ("1.2.3", json!("1.2.3")),
            ("127.0.0.1", json!("127.0.0.1")),
            ("12:30", json!("12:30")),
            ("-", json!("-")),
            (".", json!(".")),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551616", json!("18446744073709551616")),
            (".inf", json!(".inf")),
        ] {
            assert_eq!(resolve(text), value, "{text}");
        }
    }
}
