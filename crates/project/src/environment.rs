//! Expands references to environment variables, such as `${NAME}`, in project files.

use helve_core::authored::FieldError;
use helve_core::secret::{is_secret_field, is_secret_variable};
use secrecy::SecretString;
use serde_json::Value;

use crate::yaml::Node;

/// Expands `${NAME}` and `${NAME:-default}` in every string whose JSON pointer satisfies `expands`. All other strings keep their
/// references as text. `$${` is an escaped `${` in all strings.
///
/// # Errors
/// Returns an error if a variable is not set, or a reference is not closed.
pub(crate) fn expand(
    node: &mut Node,
    expands: &dyn Fn(&str) -> bool,
    look_up: &dyn Fn(&str) -> Option<String>,
) -> Result<Expansion, FieldError> {
    let mut all = Expansion::default();
    node.rewrite::<FieldError>(&mut |path, text| {
        if !text.contains("${") {
            return Ok(None);
        }
        if !expands(path) {
            return Ok(Some(text.replace("$${", "${")));
        }
        let (expanded, used) = expand_text(text, look_up).map_err(|error| FieldError { path: path.to_owned(), ..error })?;
        let field = path.rsplit('/').next().unwrap_or_default();
        let in_secret_field = is_secret_field(field) || path.starts_with("/auth_method");
        all.variables.extend(used.iter().map(|(name, _)| name.clone()));
        let secret = used.into_iter().filter(|(name, _)| in_secret_field || is_secret_variable(name));
        all.secrets.extend(secret.map(|(name, value)| (name, value.into())));
        Ok(Some(expanded))
    })?;
    all.variables.sort_unstable();
    all.variables.dedup();
    Ok(all)
}

/// Returns the sorted names of all environment variables that a value refers to.
#[must_use]
pub fn variables_in(value: &Value) -> Vec<String> {
    let mut names = Vec::new();
    collect(value, &mut names);
    names.sort_unstable();
    names.dedup();
    names
}

fn collect(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            // `ProjectFile::pass` reports a reference that is not closed.
            let used = expand_text(text, &|_| Some("set".to_owned())).map(|(_, used)| used).unwrap_or_default();
            names.extend(used.into_iter().map(|(name, _)| name));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Value::Object(fields) => fields.values().for_each(|field| collect(field, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns whether a string refers to an environment variable.
#[must_use]
pub fn has_variable(text: &str) -> bool {
    text.replace("$${", "").contains("${")
}

/// The variables that were expanded in a file.
#[derive(Debug, Default)]
pub(crate) struct Expansion {
    /// Names of the expanded variables, sorted.
    pub(crate) variables: Vec<String>,
    /// Names and values of the variables that look like secrets.
    pub(crate) secrets: Vec<(String, SecretString)>,
}

/// The expanded text, and the name and value of each variable in it.
type ExpandedText = (String, Vec<(String, String)>);

fn expand_text(text: &str, look_up: &dyn Fn(&str) -> Option<String>) -> Result<ExpandedText, FieldError> {
    let mut expanded = String::with_capacity(text.len());
    let mut used = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(escaped) = before.strip_suffix('$') {
            expanded.push_str(escaped);
            expanded.push_str("${");
            rest = after;
            continue;
        }
        expanded.push_str(before);
        let Some((reference, tail)) = after.split_once('}') else {
            return Err(FieldError::new("", "`${` is not closed").hint("write `${NAME}` or `${NAME:-default}`"));
        };
        let (name, default) = reference.split_once(":-").map_or((reference, None), |(name, default)| (name, Some(default)));
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(FieldError::new("", format!("`{name}` is not a valid environment variable name")));
        }
        let value = look_up(name).filter(|value| !value.is_empty()).or_else(|| default.map(str::to_owned));
        let Some(value) = value else {
            let error = FieldError::new("", format!("environment variable `{name}` is not set"));
            return Err(error.hint(format!("set `{name}` before you start Helve, or write a default: `${{{name}:-default}}`")));
        };
        expanded.push_str(&value);
        used.push((name.to_owned(), value));
        rest = tail;
    }
    expanded.push_str(rest);
    Ok((expanded, used))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;
    use serde_json::json;

    use super::*;

    fn look_up(name: &str) -> Option<String> {
        match name {
            "HOUSE_KEY" => Some("s3cr3t-value".into()),
            "PLACE" => Some("Rome".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    fn expanded(text: &str) -> Result<(Value, Vec<String>), FieldError> {
        let mut node = crate::yaml::read(text).expect("YAML");
        let used = expand(&mut node, &|path| path != "/text", &look_up)?;
        Ok((node.value(), used.secrets.iter().map(|(_, secret)| secret.expose_secret().to_owned()).collect()))
    }

    #[test]
    fn variables_are_replaced_and_secrets_are_known() {
        let (value, secrets) = expanded("a: in ${PLACE}, ${PLACE}\nb: {c: '${HOUSE_KEY}'}\nd: ${NONE:-x}${EMPTY:-y}\n").expect("expanded");
        assert_eq!(value, json!({"a": "in Rome, Rome", "b": {"c": "s3cr3t-value"}, "d": "xy"}));
        assert_eq!(secrets, ["s3cr3t-value"]);
        assert_eq!(expanded("a: '$${PLACE} ${PLACE} $$x'").expect("expanded").0, json!({"a": "${PLACE} Rome $$x"}));
        assert_eq!(expanded("auth_method: {value: '${PLACE}'}").expect("expanded").1, ["Rome"]);
        assert_eq!(expanded("text: '${HOUSE_KEY} $${PLACE}'").expect("as written").0, json!({"text": "${HOUSE_KEY} ${PLACE}"}));
    }

    #[test]
    fn what_is_not_set_is_named_with_its_field() {
        let error = expanded("a:\n  - ${MISSING}\n").expect_err("not set");
        assert_eq!((error.path.as_str(), error.message.as_str()), ("/a/0", "environment variable `MISSING` is not set"));
        assert_eq!(expanded("a: ${PLACE").expect_err("open").message, "`${` is not closed");
        assert!(expanded("a: ${a b}").is_err());
    }
}
