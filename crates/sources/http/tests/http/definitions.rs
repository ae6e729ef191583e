//! Mistakes in definitions, and the tools of valid ones.

use std::time::Duration;

use helve_core::{Permission, Redactor, ToolKind};
use helve_fetch::Fetch;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::{CANARY, definition, tool};

fn mistake(more: &Value) -> (String, String) {
    let error = definition("https://a.example/x", more).tool("file", &Fetch::default(), &Redactor::default()).expect_err("a mistake");
    assert!(!format!("{error:?}").contains("canary"), "{error:?}");
    (error.path, error.message)
}

#[test]
fn mistakes_are_found_where_they_are() {
    let key = |more: Value| {
        let mut auth = json!({"type": "api_key", "value": CANARY});
        auth.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        json!({"auth_method": auth})
    };
    for (more, path) in [
        (json!({"name": ""}), "/name"),
        (json!({"api_url": "ftp://a.example"}), "/api_url"),
        (json!({"api_url": "https://me:canary@a.example"}), "/api_url"),
        (json!({"api_url": "https://{{ host }}/"}), "/api_url"),
        (json!({"parameters": [{"name": "a", "type": "strin"}]}), "/parameters/0/type"),
        (json!({"parameters": {"type": "array"}}), "/parameters"),
        (json!({"query": {"q": "{{ nobody }}"}}), "/query/q"),
        (json!({"output": {"type": "objekt"}}), "/output"),
        (json!({"output": {"$ref": "http://a.example/schema"}}), "/output"),
        (json!({"result": "items"}), "/result"),
        (json!({"result": "/a~2b"}), "/result"),
        (json!({"result": "{{ items"}), "/result"),
        (json!({"result": "{{ items | nosuch }}"}), "/result"),
        // A template must not build a text of any size, and a value must not add entries or cookies.
        (json!({"result": "x{% set a = 'xx' %}{% set a = a ~ a %}{{ a }}"}), "/result"),
        (json!({"result": "{{ 'x' | indent(9999999999) }}"}), "/result"),
        (json!({"result": "a{{ '%9999999999d' | format(1) }}"}), "/result"),
        (json!({"method": "POST", "body_format": "form", "body": "role=guest&user={{ q }}", "parameters": [{"name": "q"}]}), "/body"),
        (json!({"headers": {"Cookie": "role=guest; u={{ q }}"}, "parameters": [{"name": "q"}]}), "/headers/Cookie"),
        (json!({"max_bytes": 0}), "/max_bytes"),
        (json!({"max_bytes": (64 << 20) + 1}), "/max_bytes"),
        (json!({"retry_on": [503, 200]}), "/retry_on/1"),
        (key(json!({})), "/auth_method"),
        (key(json!({"header": "X-Key", "query": "key"})), "/auth_method/query"),
        (key(json!({"header": "Host"})), "/auth_method/header"),
        (key(json!({"header": "no good"})), "/auth_method/header"),
        (key(json!({"header": "X-Key", "value": ""})), "/auth_method/value"),
        (key(json!({"header": "X-Key", "value": "canary\n"})), "/auth_method/value"),
        (key(json!({"query": "key", "value": " "})), "/auth_method/value"),
        (json!({"auth_method": {"type": "bearer", "token": ""}}), "/auth_method/token"),
        (json!({"auth_method": {"type": "basic", "username": "a:b", "password": "canary"}}), "/auth_method/username"),
        (
            json!({"auth_method": {"type": "oauth_client_credentials", "token_url": "javascript:alert()", "client_id": "a", "client_secret": "canary"}}),
            "/auth_method/token_url",
        ),
    ] {
        assert_eq!(mistake(&more).0, path, "{more}: {:?}", mistake(&more));
    }
}

#[test]
fn a_good_definition_becomes_a_spec() {
    let made = tool(
        "https://a.example/x",
        &json!({"title": "Ask", "permission": "confirm", "timeout": "1m", "idempotent": true, "parameters": [{"name": "q"}], "output": {"type": "array"}}),
        &Redactor::default(),
    );
    let spec = made.spec();
    assert_eq!((&**spec.name(), spec.title(), &**spec.description()), ("ask", Some("Ask"), "Asks."));
    assert_eq!((spec.rules().permission, spec.rules().attempt_timeout()), (Permission::Confirm, Duration::from_mins(1)));
    assert_eq!((spec.origin().kind, spec.origin().location.as_deref()), (ToolKind::Native, Some("tools/native/ask.yaml")));
    assert_eq!(spec.output().map(|output| output.value().clone()), Some(json!({"type": "array"})));
    let plain = tool("https://a.example/x", &json!({}), &Redactor::default());
    assert_eq!(plain.spec().rules().permission, Permission::Auto);
}

#[test]
fn secrets_are_known_in_every_spelling() {
    let redactor = Redactor::default();
    let more = json!({
        "auth_method": {"type": "basic", "username": "me", "password": "pass word/1"},
        "headers": {"Authorization": "Token header-secret", "X-Api-Key": "key-in-header", "X-Page": "not-secret-at-all", "X-Token": "{{ q }}"},
        "query": {"access_token": "token-in-query", "size": 10},
        "api_url": "https://a.example/x?api_key=key+in+address&page=not-secret-at-all",
        "body": {"login": [{"password": "password-in-body", "name": "not-secret-at-all"}]},
        "parameters": [{"name": "q"}],
    });
    tool("https://a.example/x", &more, &redactor);
    for secret in [
        "pass word/1",
        "pass+word%2F1",
        "pass%20word%2F1",
        "bWU6cGFzcyB3b3JkLzE=",
        "header-secret",
        "key-in-header",
        "token-in-query",
        "key in address",
        "password-in-body",
    ] {
        assert_eq!(redactor.clean(secret).as_deref(), Some("[REDACTED]"), "{secret}");
    }
    assert_eq!(redactor.clean("not-secret-at-all {{ q }}"), None);
    let known = definition("https://a.example", &more).secrets();
    assert!(known.iter().any(|secret| secret.expose_secret() == "header-secret"));
}

/// An approval must not survive a change of what a call does; a new key is no such change.
#[test]
fn what_stands_behind_a_tool_is_known_by_its_hash() {
    let hash = |url: &str, more: &Value| tool(url, more, &Redactor::default()).spec().implementation();
    let with_key = |key: &str| json!({"auth_method": {"type": "bearer", "token": key}, "headers": {"X-Token": key}});
    let one = hash("https://a.example/x", &with_key(CANARY));
    assert!(one.is_some());
    assert_eq!(one, hash("https://a.example/x", &with_key("another-secret-key")));
    assert_ne!(one, hash("https://b.example/x", &with_key(CANARY)));
    assert_ne!(one, hash("https://a.example/x", &json!({})));
    let posted = json!({"method": "POST"});
    assert_ne!(hash("https://a.example/x", &posted), hash("https://a.example/x", &json!({"method": "DELETE"})));
    assert_ne!(hash("https://a.example/x", &posted), hash("https://a.example/x", &json!({"method": "POST", "body": {"a": 1}})));
}
