//! Templates in the arguments of a command, such as `{{ name }}`. They are parsed when the file is loaded, and filled in for each call.
//!
//! There are no filters, conditions or loops.

use serde_json::Value;

/// The hint for every template error.
pub(crate) const HINT: &str = "write `{{ parameter }}` or `{{ parameter.field }}`; for literal braces write `{{ '{{' }}`";

/// The template of one argument: literal text and placeholders for values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// A placeholder: the name of a parameter, then names of nested fields.
    Value(Vec<String>),
}

impl Template {
    /// Parses an argument. Returns an error message if the template is invalid.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, inside)) = rest.split_once("{{") {
            push_text(&mut pieces, before);
            // `{{ '{{' }}` is an escape for literal braces, for arguments that contain templates of other programs.
            if let Some(after) = quoted_braces(inside) {
                push_text(&mut pieces, "{{");
                rest = after;
                continue;
            }
            let Some((path, after)) = inside.split_once("}}") else {
                return Err(format!("`{{{{{inside}` is not closed"));
            };
            let path: Vec<_> = path.trim().split('.').map(str::to_owned).collect();
            if path.iter().any(|name| name.is_empty() || name.contains(|c: char| c.is_whitespace() || "{}|()'\"".contains(c))) {
                return Err(format!("`{}` is not a valid parameter name", path.join(".")));
            }
            pieces.push(Piece::Value(path));
            rest = after;
        }
        push_text(&mut pieces, rest);
        Ok(Self(pieces))
    }

    /// Returns the paths of all placeholders in the template.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &[String]> {
        self.0.iter().filter_map(|piece| if let Piece::Value(path) = piece { Some(path.as_slice()) } else { None })
    }

    /// Returns whether the template starts with a placeholder.
    pub(crate) fn begins_with_value(&self) -> bool {
        matches!(self.0.first(), Some(Piece::Value(_)))
    }

    /// Fills in the values. Returns `None` if a value is missing or null.
    pub(crate) fn fill(&self, arguments: &Value) -> Option<String> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(literal) => text.push_str(literal),
                Piece::Value(path) => match path.iter().try_fold(arguments, |value, name| value.get(name))? {
                    Value::Null => return None,
                    Value::String(value) => text.push_str(value),
                    value => text.push_str(&value.to_string()),
                },
            }
        }
        Some(text)
    }
}

fn push_text(pieces: &mut Vec<Piece>, more: &str) {
    match pieces.last_mut() {
        Some(Piece::Text(text)) => text.push_str(more),
        _ if more.is_empty() => {}
        _ => pieces.push(Piece::Text(more.to_owned())),
    }
}

/// Returns the text after the escape `'{{' }}` or `"{{" }}`, or `None` if the text starts with no escape.
fn quoted_braces(inside: &str) -> Option<&str> {
    let inside = inside.trim_start();
    let after = inside.strip_prefix("'{{'").or_else(|| inside.strip_prefix("\"{{\""))?;
    after.trim_start().strip_prefix("}}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn fill(template: &str, arguments: &Value) -> Option<String> {
        Template::parse(template).expect("a template").fill(arguments)
    }

    #[test]
    fn values_are_filled_in() {
        let arguments = json!({"text": "a b", "n": -1.5, "yes": true, "list": [1, "x"], "at": {"city": {"name": "Köln"}}, "no": null});
        for (template, expected) in [
            ("{{ text }}", Some("a b")),
            ("{{text}}", Some("a b")),
            ("--n={{ n }}", Some("--n=-1.5")),
            ("{{ yes }}/{{ list }}", Some("true/[1,\"x\"]")),
            ("{{ at.city.name }}", Some("Köln")),
            ("{{ at }}", Some(r#"{"city":{"name":"Köln"}}"#)),
            ("{{ no }}", None),
            ("{{ missing }}", None),
            ("--missing={{ missing }}", None),
            ("{{ text.length }}", None),
            ("", Some("")),
            ("{x} }} {\"a\":{}}", Some("{x} }} {\"a\":{}}")),
            ("{{ '{{' }}.Names}} {{\"{{\"}}", Some("{{.Names}} {{")),
        ] {
            assert_eq!(fill(template, &arguments).as_deref(), expected, "{template}");
        }
    }

    /// A value that looks like a template is not expanded.
    #[test]
    fn values_are_not_read_again() {
        assert_eq!(fill("{{ a }}", &json!({"a": "{{ b }}", "b": "secret"})).as_deref(), Some("{{ b }}"));
    }

    #[test]
    fn mistakes_are_named() {
        for (template, message) in [
            ("x {{ a", "`{{ a` is not closed"),
            ("{{ a }", "`{{ a }` is not closed"),
            ("{{ }}", "`` is not a valid parameter name"),
            ("{{.Names}}", "`.Names` is not a valid parameter name"),
            ("{{ a..b }}", "`a..b` is not a valid parameter name"),
            ("{{ a b }}", "`a b` is not a valid parameter name"),
            ("{{ a | upper }}", "`a | upper` is not a valid parameter name"),
            ("{{{ a }}}", "`{ a` is not a valid parameter name"),
        ] {
            assert_eq!(Template::parse(template), Err(message.to_owned()), "{template}");
        }
    }

    proptest! {
        #[test]
        fn text_without_templates_stays_as_it_is(text in "[^{]{0,40}") {
            prop_assert_eq!(fill(&text, &json!({})), Some(text));
        }

        #[test]
        fn any_value_comes_through_unchanged(value in any::<String>(), before in "[a-z ]{0,5}") {
            let template = format!("{before}{{{{ v }}}}");
            prop_assert_eq!(fill(&template, &json!({"v": value})), Some(before + &value));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[{}a'. ]{0,30}") {
            let _ = Template::parse(&text);
        }
    }
}
