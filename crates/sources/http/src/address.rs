//! The URL of a tool. Scheme, host and port are fixed. Arguments fill in templates in the path and the query, and are encoded so that
//! they cannot change other parts of the URL.

use std::collections::BTreeSet;

use helve_core::ToolError;
use helve_core::authored::FieldError;
use helve_fetch::{Url, read_url};

use crate::shape::{broken, unfilled};
use crate::template::{Encoding, Template, TemplateError, Variables, has_template};

/// A URL with templates in its path and query.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    /// Scheme, host and port.
    base: Url,
    path: Template,
    query: Option<Template>,
    /// The field of the definition that contains the URL, as a JSON pointer.
    field: &'static str,
}

impl Address {
    /// Parses a URL with templates. `field` is the JSON pointer of its field in the definition.
    pub(crate) fn read(text: &str, field: &'static str) -> Result<Self, FieldError> {
        let host_start = text.find("://").map_or(0, |at| at + 3);
        let host_end = text[host_start..].find(['/', '?', '#']).map_or(text.len(), |at| host_start + at);
        let (base, rest) = text.split_at(host_end);
        if has_template(base) || base.contains("}}") {
            let error = FieldError::new(field, "the scheme, host and port of a URL cannot contain templates");
            return Err(error.hint("use templates in the path and in the query only"));
        }
        let base = read_base(base, field)?;
        let (path, query) = split_query(rest);
        let read = |text: &str, encoding| Template::text(text, encoding).map_err(|why| broken(field, &why));
        let path = read(path, Encoding::Path)?;
        let query = query.map(|query| read(query, Encoding::Query)).transpose()?;
        let address = Self { base, path, query, field };
        address.try_out()?;
        Ok(address)
    }

    /// Returns the names of the variables in the templates of the URL.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let query = self.query.as_ref().map(Template::names).unwrap_or_default();
        self.path.names().into_iter().chain(query).collect()
    }

    /// Returns the URL of one call, with the arguments filled in.
    pub(crate) fn fill(&self, variables: &Variables) -> Result<Url, ToolError> {
        let write = |template: &Template| template.written(variables).map_err(|error| unfilled(&error, self.field, &template.names()));
        let path = write(&self.path)?;
        let query = self.query.as_ref().map(write).transpose()?;
        self.join(&path, query.as_deref()).map_err(|why| unfilled(&TemplateError::Other(why), self.field, &self.names()))
    }

    fn join(&self, path: &str, query: Option<&str>) -> Result<Url, String> {
        // The URL standard treats `%2e` as a dot, so percent-encoding does not protect a dot segment.
        let dots = |segment: &str| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
        if path.split('/').any(dots) {
            return Err("a path segment cannot be `.` or `..`".to_owned());
        }
        let text =
            format!("{}{path}{}{}", self.base.as_str().trim_end_matches('/'), if query.is_some() { "?" } else { "" }, query.unwrap_or(""));
        let mut url = read_url(&text).map_err(|error| error.to_string())?;
        url.set_fragment(None);
        // Encoded values cannot change the host. Check it all the same.
        if url.origin() == self.base.origin() { Ok(url) } else { Err("the URL would point to another host".to_owned()) }
    }

    /// Checks the literal parts of the URL, with `x` as the value of every variable.
    fn try_out(&self) -> Result<(), FieldError> {
        let names = self.names().into_iter().map(|name| (name, "x".into()));
        let variables = Variables::new(&serde_json::Value::Object(names.collect()));
        let written = |template: &Template| template.written(&variables);
        let (Ok(path), Ok(query)) = (written(&self.path), self.query.as_ref().map(written).transpose()) else {
            // The templates need other values, so only a call can check the URL.
            return Ok(());
        };
        self.join(&path, query.as_deref()).map(|_| ()).map_err(|why| FieldError::new(self.field, why))
    }
}

/// Parses a URL without templates. `field` is the JSON pointer of its field in the definition.
pub(crate) fn read_base(text: &str, field: &'static str) -> Result<Url, FieldError> {
    read_url(text).map_err(|error| FieldError::new(field, error.to_string()).hint("write a URL such as `https://api.example.com/search`"))
}

/// Splits a path from a query at the first `?` outside a template.
fn split_query(text: &str) -> (&str, Option<&str>) {
    let mut inside = false;
    let bytes = text.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        match (byte, bytes.get(index + 1)) {
            (b'{', Some(b'{' | b'%')) => inside = true,
            (b'}' | b'%', Some(b'}')) => inside = false,
            (b'?', _) if !inside => return (&text[..index], Some(&text[index + 1..])),
            _ => {}
        }
    }
    (text, None)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fill(text: &str, arguments: &Value) -> Result<String, ToolError> {
        Address::read(text, "/api_url").expect("an address").fill(&Variables::new(arguments)).map(String::from)
    }

    #[test]
    fn arguments_stay_where_they_were_put() {
        for (text, arguments, filled) in [
            ("https://a.example", json!({}), "https://a.example/"),
            ("https://a.example?x=1", json!({}), "https://a.example/?x=1"),
            ("https://a.example/b/#c", json!({}), "https://a.example/b/"),
            ("https://a.example/{{ x }}/y", json!({"x": "a/b?c#d"}), "https://a.example/a%2Fb%3Fc%23d/y"),
            ("https://a.example/{{ x }}?q={{ y }}&z", json!({"x": 1, "y": "a&b=c d"}), "https://a.example/1?q=a%26b%3Dc%20d&z"),
            ("https://a.example/{{ x | default('?') }}", json!({}), "https://a.example/%3F"),
            ("https://a.example:8443{{ x }}", json!({"x": "y"}), ""),
        ] {
            let filled_in = if filled.is_empty() { String::new() } else { fill(text, &arguments).expect("filled") };
            assert_eq!(filled_in, filled, "{text}");
        }
    }

    #[test]
    fn nobody_climbs_out_of_a_path() {
        for x in ["..", ".", "%2e%2E", ""] {
            let result = fill("https://a.example/files/{{ x }}/edit", &json!({"x": x}));
            // `%2e` is encoded again, so it is an ordinary name.
            assert_eq!(result.is_ok(), x.starts_with('%'), "{x}: {result:?}");
        }
        assert!(fill("https://a.example/{{ x }}{{ x }}", &json!({"x": "."})).is_err());
        assert!(fill("https://a.example/{{ x }}", &json!({})).is_err_and(|error| error.message().contains("`x`")));
        assert!(fill("https://a.example/{{ x }}", &json!({"x": {}})).is_err());
    }

    #[test]
    fn mistakes_are_found_when_it_is_read() {
        for text in [
            "",
            "a.example/x",
            "/x",
            "ftp://a.example",
            "file:///etc/passwd",
            "https://user:pass@a.example/",
            "https://{{ host }}/x",
            "https://{{ x }}.a.example/",
            "{{ scheme }}://a.example/",
            "https://a.example:{{ port }}/",
            "https://a.example{{ x }}/",
            "{{ url }}",
            "https://a.example/{{ x",
            "https://a.example/{{ x | nosuch }}",
            "https://a.example/a/../{{ x }}",
            "https://a.example/with space/{{ x }}",
        ] {
            let error = Address::read(text, "/api_url").expect_err(text);
            assert_eq!(error.path, "/api_url", "{text}");
        }
    }
}
