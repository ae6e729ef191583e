//! The object `_meta` of requests and results, in which clients and servers describe themselves.

use serde_json::{Map, Value};

const FIELD: &str = "_meta";

/// The names of the keys in `_meta`; their values are in [`META`].
#[derive(Debug)]
pub struct MetaKeys {
    /// The key of the protocol version of a request.
    pub version: &'static str,
    /// The key of the client's name and version.
    pub client: &'static str,
    /// The key of the client's capabilities.
    pub capabilities: &'static str,
    /// The key of the lowest level of log messages that the client wants for a request.
    pub log_level: &'static str,
    /// The key of the server's name and version.
    pub server: &'static str,
    /// The key of the id of the subscription that a notification belongs to.
    pub subscription: &'static str,
    /// The key of the token that the progress notifications of a request contain.
    pub progress: &'static str,
}

/// The keys of `_meta`.
pub const META: MetaKeys = MetaKeys {
    version: "io.modelcontextprotocol/protocolVersion",
    client: "io.modelcontextprotocol/clientInfo",
    capabilities: "io.modelcontextprotocol/clientCapabilities",
    log_level: "io.modelcontextprotocol/logLevel",
    server: "io.modelcontextprotocol/serverInfo",
    subscription: "io.modelcontextprotocol/subscriptionId",
    progress: "progressToken",
};

/// The object `_meta` of a request or a result.
#[derive(Debug, Clone, Copy)]
pub struct Meta<'a>(&'a Map<String, Value>);

impl<'a> Meta<'a> {
    /// Returns the `_meta` of a request's parameters or of a result, or `None` if it is missing or not an object.
    #[must_use]
    pub fn of(object: Option<&'a Value>) -> Option<Self> {
        object?.get(FIELD)?.as_object().map(Self)
    }

    /// Returns the value of a key, if it is present.
    #[must_use]
    pub fn get(self, key: &str) -> Option<&'a Value> {
        self.0.get(key)
    }

    /// Returns the protocol version of the request, if it is a string.
    #[must_use]
    pub fn version(self) -> Option<&'a str> {
        self.get(META.version)?.as_str()
    }

    /// Returns whether the request states its protocol version, as requests of the modern era do.
    #[must_use]
    pub fn has_version(self) -> bool {
        self.0.contains_key(META.version)
    }

    /// Returns the progress token of the request, if it is a string or an integer.
    #[must_use]
    pub fn progress_token(self) -> Option<&'a Value> {
        self.get(META.progress).filter(|token| token.is_string() || token.is_i64() || token.is_u64())
    }

    /// Returns a copy of the `_meta` of an object, whatever its type, to forward it unchanged.
    #[must_use]
    pub fn raw(object: &Value) -> Option<Value> {
        object.get(FIELD).cloned()
    }

    /// Removes `_meta` from an object.
    pub fn clear(object: &mut Map<String, Value>) {
        object.remove(FIELD);
    }

    /// Sets the `_meta` of an object, and replaces an existing one.
    pub fn put(object: &mut Map<String, Value>, meta: Value) {
        object.insert(FIELD.to_owned(), meta);
    }

    /// Applies `change` to the `_meta` of an object. Creates `_meta` if it is missing or not an object.
    pub fn change(object: &mut Map<String, Value>, change: impl FnOnce(&mut Map<String, Value>)) {
        let meta = object.entry(FIELD).or_insert(Value::Null);
        if !meta.is_object() {
            *meta = Value::Object(Map::new());
        }
        meta.as_object_mut().map(change);
    }

    /// Removes keys from the `_meta` of an object. Removes `_meta` itself if it is empty afterwards.
    pub fn remove(object: &mut Map<String, Value>, keys: &[&str]) {
        if let Some(Value::Object(meta)) = object.get_mut(FIELD) {
            for key in keys {
                meta.remove(*key);
            }
            if meta.is_empty() {
                object.remove(FIELD);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_keys_survive_and_an_empty_meta_does_not() {
        let mut object = Map::new();
        Meta::change(&mut object, |meta| drop(meta.insert(META.version.to_owned(), json!("2026-07-28"))));
        Meta::change(&mut object, |meta| drop(meta.insert("vendor/key".to_owned(), json!(1))));
        let value = Value::Object(object.clone());
        let meta = Meta::of(Some(&value)).expect("a meta");
        assert_eq!((meta.version(), meta.get("vendor/key")), (Some("2026-07-28"), Some(&json!(1))));
        Meta::remove(&mut object, &[META.version]);
        assert_eq!(Value::Object(object.clone()), json!({"_meta": {"vendor/key": 1}}));
        Meta::remove(&mut object, &["vendor/key"]);
        assert!(object.is_empty());
    }

    #[test]
    fn a_token_is_a_text_or_an_integer() {
        for (token, is_token) in [(json!("a"), true), (json!(7), true), (json!(1.5), false), (json!({}), false)] {
            let params = json!({"_meta": {META.progress: token}});
            assert_eq!(Meta::of(Some(&params)).and_then(Meta::progress_token).is_some(), is_token, "{params}");
        }
    }
}
