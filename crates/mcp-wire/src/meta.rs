//! `_meta`, the object of requests and results in which both sides describe themselves.

use serde_json::{Map, Value};

const FIELD: &str = "_meta";

/// Keys of `_meta`.
#[derive(Debug)]
pub struct MetaKeys {
    /// The protocol version of a request.
    pub version: &'static str,
    /// The client's name and version.
    pub client: &'static str,
    /// The client's capabilities.
    pub capabilities: &'static str,
    /// The lowest level of log messages that the client wants for this request.
    pub log_level: &'static str,
    /// The server's name and version.
    pub server: &'static str,
    /// The subscription that a notification belongs to.
    pub subscription: &'static str,
    /// The token that progress notifications of this request carry.
    pub progress: &'static str,
}

/// The keys of `_meta` as they are written.
pub const META: MetaKeys = MetaKeys {
    version: "io.modelcontextprotocol/protocolVersion",
    client: "io.modelcontextprotocol/clientInfo",
    capabilities: "io.modelcontextprotocol/clientCapabilities",
    log_level: "io.modelcontextprotocol/logLevel",
    server: "io.modelcontextprotocol/serverInfo",
    subscription: "io.modelcontextprotocol/subscriptionId",
    progress: "progressToken",
};

/// The `_meta` of a request or a result.
#[derive(Debug, Clone, Copy)]
pub struct Meta<'a>(&'a Map<String, Value>);

impl<'a> Meta<'a> {
    /// The `_meta` of parameters or of a result. Returns `None` if it is missing or not an object.
    #[must_use]
    pub fn of(object: Option<&'a Value>) -> Option<Self> {
        object?.get(FIELD)?.as_object().map(Self)
    }

    /// The value of a key.
    #[must_use]
    pub fn get(self, key: &str) -> Option<&'a Value> {
        self.0.get(key)
    }

    /// The protocol version of a request.
    #[must_use]
    pub fn version(self) -> Option<&'a str> {
        self.get(META.version)?.as_str()
    }

    /// Returns whether a request states its protocol version, as those of the modern era do.
    #[must_use]
    pub fn has_version(self) -> bool {
        self.0.contains_key(META.version)
    }

    /// The progress token of a request: a text or an integer.
    #[must_use]
    pub fn progress_token(self) -> Option<&'a Value> {
        self.get(META.progress).filter(|token| token.is_string() || token.is_i64() || token.is_u64())
    }

    /// The `_meta` of an object as it came, to pass it on.
    #[must_use]
    pub fn raw(object: &Value) -> Option<Value> {
        object.get(FIELD).cloned()
    }

    /// Removes the whole `_meta` of an object.
    pub fn clear(object: &mut Map<String, Value>) {
        object.remove(FIELD);
    }

    /// Sets the whole `_meta` of an object.
    pub fn put(object: &mut Map<String, Value>, meta: Value) {
        object.insert(FIELD.to_owned(), meta);
    }

    /// Changes the `_meta` of an object, which is created if it is missing.
    pub fn change(object: &mut Map<String, Value>, change: impl FnOnce(&mut Map<String, Value>)) {
        let meta = object.entry(FIELD).or_insert(Value::Null);
        if !meta.is_object() {
            *meta = Value::Object(Map::new());
        }
        meta.as_object_mut().map(change);
    }

    /// Removes keys from the `_meta` of an object, and `_meta` itself if nothing is left of it.
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
