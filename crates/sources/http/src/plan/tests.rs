//! Requests made from arguments, and mistakes found before the first call.

use helve_core::authored::read_parameters;
use serde_json::json;

use super::*;

fn plan(definition: &Value) -> Result<Plan, FieldError> {
    let mut whole = json!({"name": "t", "description": "d", "api_url": "https://a.example/x"});
    whole.as_object_mut().expect("an object").extend(definition.as_object().expect("an object").clone());
    let definition: HttpDefinition = serde_json::from_value(whole).expect("a definition");
    Plan::read(&definition, &read_parameters(definition.parameters.as_ref(), "/parameters")?)
}

fn request(definition: &Value, arguments: &Value) -> Result<Request, ToolError> {
    plan(definition).expect("a plan").request(arguments)
}

fn body(request: &Request) -> &str {
    request.body.as_deref().map_or("", |body| str::from_utf8(body).expect("text"))
}

#[test]
fn arguments_without_a_place_go_where_the_method_puts_them() {
    let parameters = json!([{"name": "id"}, {"name": "q", "required": false}, {"name": "n", "type": "integer", "required": false}]);
    let definition = |method: &str| json!({"method": method, "api_url": "https://a.example/x/{{ id }}", "parameters": parameters});
    let arguments = json!({"id": "7", "q": "a b&c", "n": 2});
    for method in ["GET", "DELETE", "HEAD"] {
        let sent = request(&definition(method), &arguments).expect("a request");
        assert_eq!((sent.url.as_str(), body(&sent)), ("https://a.example/x/7?q=a+b%26c&n=2", ""), "{method}");
    }
    for method in ["POST", "PUT", "PATCH"] {
        let sent = request(&definition(method), &arguments).expect("a request");
        assert_eq!((sent.url.as_str(), body(&sent)), ("https://a.example/x/7", r#"{"q":"a b&c","n":2}"#), "{method}");
        assert_eq!(sent.headers["content-type"], "application/json");
    }
    let placed = json!({"method": "POST", "api_url": "https://a.example/{{ id }}", "parameters": [{"name": "id"}]});
    assert_eq!(request(&placed, &json!({"id": 1})).expect("a request").body, None);
}

#[test]
fn a_query_repeats_lists_and_leaves_out_what_was_left_out() {
    let definition = json!({
        "parameters": {"type": "object", "additionalProperties": true},
        "api_url": "https://a.example/x?fixed=1",
        "query": {"q": "{{ q }}", "tag": "{{ tags }}", "two": ["a", "{{ q }}"], "n": 5, "none": "{{ none }}", "o": "{{ o }}", "t": "{{ q | upper }}!"}
    });
    let sent = request(&definition, &json!({"q": "ä&=", "tags": ["x", "y z"], "o": {"k": 1}, "extra": "unused"})).expect("a request");
    let expected = "fixed=1&q=%C3%A4%26%3D&tag=x&tag=y+z&two=a&two=%C3%A4%26%3D&n=5&o=%7B%22k%22%3A1%7D&t=%C3%84%26%3D%21";
    assert_eq!(sent.url.query(), Some(expected));
    assert_eq!(request(&definition, &json!({})).expect_err("`q` is needed").message(), "/query/t of the request needs `q`");
}

#[test]
fn bodies_are_written_as_asked() {
    let parameters = json!([{"name": "a"}, {"name": "n", "type": "integer"}, {"name": "l", "type": "array", "required": false}]);
    let arguments = json!({"a": "x\"y & z", "n": 3, "l": [1, 2]});
    for (format, written, kind, expected) in [
        ("json", json!({"k": "{{ a }}", "n": "{{ n }}", "t": "n={{ n }}"}), "application/json", r#"{"k":"x\"y & z","n":3,"t":"n=3"}"#),
        ("json", json!("{\"k\": \"{{ a }}\", \"l\": \"{{ l }}\"}"), "application/json", r#"{"k":"x\"y & z","l":[1,2]}"#),
        ("json", json!("{{ l }}"), "application/json", "[1,2]"),
        ("json", json!("{{ a }}"), "application/json", r#""x\"y & z""#),
        ("form", json!({"a": "{{ a }}", "l": "{{ l }}"}), "application/x-www-form-urlencoded", "a=x%22y+%26+z&l=1&l=2"),
        ("text", json!("say {{ a }}"), "text/plain; charset=utf-8", "say x\"y & z"),
    ] {
        let definition = json!({"method": "POST", "parameters": parameters, "body": written, "body_format": format});
        let sent = request(&definition, &arguments).expect("a request");
        assert_eq!((body(&sent), sent.headers["content-type"].to_str().expect("text")), (expected, kind), "{format}");
    }
}

/// Security case S24.
#[test]
fn headers_hold_one_line() {
    let definition = json!({"parameters": [{"name": "x", "required": false}], "headers": {"X-One": "a{{ x }}", "X-Two": "{{ x }}", "Accept": "text/csv"}});
    for bad in ["a\r\nx-evil: 1", "a\nb", "a\rb", "a\0b", "a\u{7f}", "a\u{85}b", "a\u{9b}b", "a\u{2028}b"] {
        let error = request(&definition, &json!({"x": bad})).expect_err(bad);
        assert_eq!(error.kind(), helve_core::ErrorKind::InvalidParameters);
        assert!(error.message().contains("`x` is not allowed in the header"), "{error}");
    }
    let sent = request(&definition, &json!({"x": "ü\tb"})).expect("a request");
    assert_eq!(sent.headers["x-one"].as_bytes(), "aü\tb".as_bytes());
    assert_eq!(sent.headers["accept"], "text/csv");
    let two = json!({"parameters": [{"name": "x", "required": false}], "headers": {"X-Two": "{{ x }}"}});
    assert!(!request(&two, &json!({})).expect("a request").headers.contains_key("x-two"));
}

#[test]
fn mistakes_are_found_where_they_are() {
    let word = json!([{"name": "query"}]);
    for (definition, path) in [
        (json!({"api_url": "https://a.example/{{ word }}"}), "/api_url"),
        (json!({"api_url": "https://{{ query }}/", "parameters": word}), "/api_url"),
        (json!({"query": {"q": "{{ qeury }}"}, "parameters": word}), "/query/q"),
        (json!({"query": {"a/b": ["x", "{{ query"]}, "parameters": word}), "/query/a~1b/1"),
        (json!({"query": {"q": {"deep": 1}}}), "/query/q"),
        (json!({"headers": {"X-A": "{{ nobody }}"}, "parameters": word}), "/headers/X-A"),
        (json!({"headers": {"X-A": "{% if %}"}}), "/headers/X-A"),
        (json!({"headers": {"X-A": "a\nb"}}), "/headers/X-A"),
        (json!({"headers": {"bad name": "x"}}), "/headers/bad name"),
        (json!({"headers": {"Host": "evil.example"}}), "/headers/Host"),
        (json!({"headers": {"Content-Length": "5"}}), "/headers/Content-Length"),
        (json!({"headers": {"transfer-encoding": "chunked"}}), "/headers/transfer-encoding"),
        (json!({"method": "POST", "body": {"a": [{"b": "{{ nobody }}"}]}, "parameters": word}), "/body/a/0/b"),
        (json!({"method": "POST", "body": "{\"a\": {{ query }}}", "parameters": word}), "/body"),
        (json!({"method": "POST", "body": ["x"], "body_format": "form"}), "/body"),
        (json!({"method": "POST", "body": {"x": 1}, "body_format": "text"}), "/body"),
        (json!({"method": "POST", "body_format": "text", "parameters": word}), "/body"),
        (json!({"parameters": {"type": "string"}, "query": {"q": "{{ a }}"}}), "/query/q"),
    ] {
        let error = plan(&definition).expect_err(path);
        assert_eq!(error.path, path, "{definition}: {error}");
    }
    let typo = plan(&json!({"query": {"q": "{{ qeury }}"}, "parameters": word})).expect_err("a mistake");
    assert_eq!((typo.message.as_str(), typo.hint.as_deref()), ("unknown parameter `qeury`", Some("did you mean `query`?")));
}
