//! Results of successful responses.

use serde_json::{Value, json};

use crate::{call, call_once};
use helve_testkit::{RawServer, raw_response, raw_response_with};

const JSON: &str = "application/json; charset=utf-8";

#[tokio::test]
async fn json_becomes_data_and_compact_text() {
    let outcome = call_once(raw_response("200 OK", JSON, "{ \"items\": [1, 2] }"), &json!({})).await;
    assert_eq!(
        (&outcome["success"], &outcome["data"], &outcome["text"]),
        (&json!(true), &json!({"items": [1, 2]}), &json!("{\"items\":[1,2]}"))
    );
    assert_eq!(outcome["metadata"], json!({"status": 200}));
    // A response without a `Content-Type` is understood too.
    let outcome = call_once(raw_response("201 Created", "text/plain", "[1]"), &json!({})).await;
    assert_eq!((&outcome["data"], &outcome["metadata"]["status"]), (&json!([1]), &json!(201)));
    let outcome = call_once(raw_response("200 OK", "application/problem+json", "\"word\""), &json!({})).await;
    assert_eq!((&outcome["data"], &outcome["text"]), (&Value::Null, &json!("word")));
}

#[tokio::test]
async fn text_stays_text() {
    for (kind, body) in [("text/plain", "hello"), ("text/html", "<p>hello</p>"), ("text/plain", "[not json"), ("text/plain", "")] {
        let outcome = call_once(raw_response("200 OK", kind, body), &json!({})).await;
        assert_eq!((&outcome["data"], &outcome["text"]), (&Value::Null, &json!(body)), "{body}");
    }
    let outcome = call_once(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".to_vec(), &json!({})).await;
    assert_eq!((&outcome["success"], &outcome["text"]), (&json!(true), &json!("")));
}

#[tokio::test]
async fn a_pointer_or_a_template_picks_the_result() {
    let body = r#"{"items": [{"name": "a", "n": 1}, {"name": "b", "n": 2}], "status": "ok", "a/b": 5}"#;
    for (result, data, text) in [
        ("/items/1", json!({"name": "b", "n": 2}), r#"{"name":"b","n":2}"#),
        ("/a~1b", json!(5), "5"),
        ("/items/0/name", Value::Null, "a"),
        ("{{ items[0].n }}", json!(1), "1"),
        ("{{ items[0].name }}", Value::Null, "a"),
        ("{{ response }}", serde_json::from_str(body).expect("JSON"), &serde_json::from_str::<Value>(body).expect("JSON").to_string()),
        ("{{ status }} and {{ items | length }}", Value::Null, "ok and 2"),
        ("{% for item in items %}{{ loop.index }}. {{ item.name }}\n{% endfor %}", Value::Null, "1. a\n2. b\n"),
    ] {
        let outcome = call_once(raw_response("200 OK", JSON, body), &json!({"result": result})).await;
        assert_eq!((&outcome["data"], &outcome["text"]), (&data, &json!(text)), "{result}");
    }
    let outcome = call_once(raw_response("202 Accepted", "text/plain", "words"), &json!({"result": "{{ status }}: {{ response }}"})).await;
    assert_eq!(outcome["text"], json!("202: words"));
}

#[tokio::test]
async fn a_result_that_is_not_there_is_a_clear_failure() {
    for (kind, body, more, message) in [
        (
            JSON,
            r#"{"data": 1, "next": 2}"#,
            json!({"result": "/items"}),
            "the response has no value at `/items`; its fields are data, next",
        ),
        (JSON, "[1, 2]", json!({"result": "/items"}), "the response has no value at `/items`; it is a list of 2"),
        (
            JSON,
            r#"{"data": 1}"#,
            json!({"result": "{{ items[0].name }}"}),
            "the response has no value for `{{ items[0].name }}`; its fields are data",
        ),
        ("text/html", "<h1>Sign  in</h1>", json!({"result": "/items"}), "127.0.0.1 sent HTML instead of JSON: <h1>Sign in</h1>"),
        ("text/html", "<h1>Sign in</h1>", json!({"output": {"type": "object"}}), "127.0.0.1 sent HTML instead of JSON: <h1>Sign in</h1>"),
        ("text/html", "<h1>Sign in</h1>", json!({"result": "{{ items }}"}), "127.0.0.1 sent HTML instead of JSON: <h1>Sign in</h1>"),
        ("text/plain", "", json!({"result": "/items"}), "127.0.0.1 sent an empty response instead of JSON"),
        (JSON, "{\"a\": ", json!({}), "127.0.0.1 sent invalid JSON"),
        (JSON, r#"{"a": 1, "a": 2}"#, json!({}), "127.0.0.1 sent invalid JSON"),
    ] {
        let outcome = call_once(raw_response("200 OK", kind, body), &more).await;
        let error = &outcome["error"];
        assert!(
            error["kind"] == "failed" && error["message"].as_str().is_some_and(|text| text.starts_with(message)),
            "{body} {more}: {outcome}"
        );
    }
}

#[tokio::test]
async fn an_output_schema_is_held() {
    let schema = json!({"output": {"type": "object", "required": ["n"]}, "result": "/x"});
    let good = call_once(raw_response("200 OK", JSON, r#"{"x": {"n": 1}}"#), &schema).await;
    assert_eq!(good["data"], json!({"n": 1}));
    let bad = call_once(raw_response("200 OK", JSON, r#"{"x": {"m": 1}}"#), &schema).await;
    assert_eq!(bad["error"]["kind"], "invalid_output");
}

#[tokio::test]
async fn what_is_not_text_is_named() {
    let zipped =
        [raw_response_with("200 OK", "content-encoding: gzip\r\ncontent-type: application/json\r\n", "").as_slice(), b"\x1f\x8b\x08"]
            .concat();
    let outcome = call_once(zipped, &json!({})).await;
    let message = "127.0.0.1 sent the content encoding `gzip`, which was not requested";
    assert_eq!(outcome["error"]["message"], json!(message));
    let image = b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\nconnection: close\r\n\r\n\x89PNG\xff\xfe".to_vec();
    let outcome = call_once(image, &json!({})).await;
    assert_eq!(outcome["error"]["message"], json!("127.0.0.1 sent 6 bytes of `image/png`, which is not text"));
}

#[tokio::test]
async fn headers_are_the_answer_to_head() {
    let server =
        RawServer::responding([b"HTTP/1.1 200 OK\r\ncontent-length: 12345\r\nset-cookie: a=b\r\nconnection: close\r\n\r\n".to_vec()]).await;
    let outcome = call(&server.url("/"), &json!({"method": "HEAD", "result": "/content-length"}), json!({})).await;
    assert_eq!(outcome["text"], json!("12345"), "{outcome}");
    assert_eq!(server.requests()[0].line, "HEAD / HTTP/1.1");
}

#[tokio::test]
async fn a_whole_request_on_the_wire() {
    let server = RawServer::responding([raw_response("200 OK", JSON, "{}")]).await;
    let definition = json!({
        "method": "PUT",
        "parameters": [{"name": "id"}, {"name": "tags", "type": "array", "items": "string"}, {"name": "n", "type": "integer", "required": false}],
        "query": {"tag": "{{ tags }}", "n": "{{ n }}"},
        "headers": {"X-Id": "id {{ id }}"},
        "body": {"who": "{{ id }}", "n": "{{ n }}"},
    });
    let outcome = call(&server.url("/things/{{ id }}/parts"), &definition, json!({"id": "../a b?c", "tags": ["x", "y&z"]})).await;
    assert_eq!(outcome["success"], json!(true), "{outcome}");
    let seen = &server.requests()[0];
    assert_eq!(seen.target(), "/things/..%2Fa%20b%3Fc/parts?tag=x&tag=y%26z");
    assert_eq!((seen.header("x-id"), seen.header("content-type")), (Some("id ../a b?c"), Some("application/json")));
    assert_eq!(seen.body, r#"{"who":"../a b?c"}"#);
}

#[tokio::test]
async fn arguments_cannot_leave_their_place() {
    let server = RawServer::responding([raw_response("200 OK", JSON, "{}")]).await;
    let definition = json!({"parameters": [{"name": "id"}, {"name": "h", "required": false}], "headers": {"X-H": "{{ h }}"}});
    for arguments in [
        json!({"id": ".."}),
        json!({"id": "."}),
        json!({"id": ""}),
        json!({"id": "a", "h": "x\r\nx-evil: 1"}),
        json!({"id": "a", "h": "\0"}),
    ] {
        let outcome = call(&server.url("/users/{{ id }}"), &definition, arguments.clone()).await;
        assert_eq!(outcome["error"]["kind"], "invalid_parameters", "{arguments}: {outcome}");
    }
    assert!(server.requests().is_empty());
}
