//! Credentials are sent to the right server only.

use helve_core::{CallContext, Redactor, ToolCall};
use helve_fetch::Fetch;
use serde_json::json;

use crate::{CANARY, call, tool};
use helve_testkit::{RawServer, raw_response, raw_response_with, within};

fn ok() -> Vec<u8> {
    raw_response("200 OK", "application/json", "{}")
}

#[tokio::test]
async fn every_kind_goes_where_it_belongs() {
    let server = RawServer::responding([ok()]).await;
    for (auth, header, value) in [
        (json!({"type": "api_key", "header": "X-Key", "value": CANARY}), "x-key", CANARY.to_owned()),
        (json!({"type": "bearer", "token": CANARY}), "authorization", format!("Bearer {CANARY}")),
        (
            json!({"type": "basic", "username": "Aladdin", "password": "open sesame"}),
            "authorization",
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".into(),
        ),
    ] {
        call(&server.url("/"), &json!({"auth_method": auth}), json!({})).await;
        assert_eq!(server.requests().last().expect("a request").header(header), Some(value.as_str()), "{auth}");
    }
    let definition =
        json!({"auth_method": {"type": "api_key", "query": "key", "value": "a+b&c=d e"}, "parameters": [{"name": "q"}, {"name": "key"}]});
    call(&server.url("/x?z=1"), &definition, json!({"q": "y", "key": "of the model"})).await;
    assert_eq!(server.requests().last().expect("a request").target(), "/x?z=1&q=y&key=a%2Bb%26c%3Dd+e");
}

#[tokio::test]
async fn redirects_take_nothing_secret_along() {
    let other = RawServer::responding([raw_response("200 OK", "text/plain", "there")]).await;
    for auth in [
        json!({"auth_method": {"type": "api_key", "header": "X-Key", "value": CANARY}}),
        json!({"auth_method": {"type": "api_key", "query": "key", "value": CANARY}}),
        json!({"auth_method": {"type": "bearer", "token": CANARY}}),
        json!({"headers": {"X-Secret": CANARY, "Cookie": CANARY}}),
    ] {
        let here = RawServer::responding([raw_response_with("302 Found", &format!("location: {}\r\n", other.url("/next")), "")]).await;
        let outcome = call(&here.url("/"), &auth, json!({})).await;
        assert_eq!(outcome["text"], "there", "{outcome}");
        assert!(format!("{:?}", here.requests()).contains("canary"), "{auth}");
    }
    let seen = other.requests();
    assert!(seen.len() == 4 && !format!("{seen:?}").contains("canary"), "{seen:?}");
}

/// Security case S46 for every error of an HTTP tool.
#[tokio::test]
async fn secrets_are_in_no_error() {
    let secret = format!("{CANARY}/+=&");
    let echo = format!("refused: {secret} {}", "canary-0123456789%2F%2B%3D%26");
    for auth in [
        json!({"auth_method": {"type": "api_key", "query": "key", "value": secret}}),
        json!({"auth_method": {"type": "api_key", "header": "X-Key", "value": secret}}),
        json!({"auth_method": {"type": "bearer", "token": secret}}),
        json!({"auth_method": {"type": "basic", "username": "me", "password": secret}}),
        json!({"headers": {"Authorization": format!("Bearer {secret}")}, "query": {"token": CANARY}}),
    ] {
        for bytes in [
            raw_response("400 Bad Request", "text/plain", &echo),
            raw_response("401 Unauthorized", "text/plain", &format!("{}{echo}", "x".repeat(290))),
            raw_response("200 OK", "text/html", &echo),
            raw_response("200 OK", "application/json", &format!("{{\"{CANARY}/+=&\": ")),
            raw_response("200 OK", "application/json", &json!({secret.clone(): 1}).to_string()),
            Vec::new(),
            b"SSH-2.0\r\n\r\n".to_vec(),
            raw_response_with("302 Found", &format!("location: http://127.0.0.1:1/?key={CANARY}\r\n"), ""),
            raw_response_with("302 Found", &format!("location: http://{CANARY}@127.0.0.1/\r\n"), ""),
        ] {
            let server = RawServer::responding([bytes]).await;
            let mut definition = auth.clone();
            definition["result"] = json!("/nothing");
            // `call` checks every failure for the canary.
            let outcome = call(&server.url("/"), &definition, json!({})).await;
            assert_eq!(outcome["success"], json!(false), "{outcome}");
        }
    }
}

fn client(token_url: &str) -> serde_json::Value {
    json!({"auth_method": {"type": "oauth_client_credentials", "token_url": token_url, "client_id": "me", "client_secret": CANARY, "scopes": ["a", "b"]}})
}

fn token(number: u32, life: &str) -> Vec<u8> {
    raw_response(
        "200 OK",
        "application/json",
        &format!("{{\"access_token\": \"token-number-{number}\", \"token_type\": \"Bearer\", \"expires_in\": {life}}}"),
    )
}

#[tokio::test]
async fn tokens_are_fetched_once_and_kept() {
    let tokens = RawServer::responding([token(1, "3600"), token(2, "3600")]).await;
    let api = RawServer::responding([ok()]).await;
    let tool = tool(&api.url("/"), &client(&tokens.url("/token")), &Redactor::default());
    let (request, cx) = (ToolCall::new("ask", json!({})), CallContext::default());
    // Ten concurrent calls, and one more.
    let results = within(futures_util::future::join_all((0..10).map(|_| tool.call(&request, &cx)))).await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    within(tool.call(&request, &cx)).await.expect("an output");
    assert!(api.requests().len() == 11 && api.requests().iter().all(|seen| seen.header("authorization") == Some("Bearer token-number-1")));
    let asked = tokens.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].line.as_str(), asked[0].body.as_str()), ("POST /token HTTP/1.1", "grant_type=client_credentials&scope=a+b"));
    assert_eq!(asked[0].header("authorization"), Some("Basic bWU6Y2FuYXJ5LTAxMjM0NTY3ODk="));
}

#[tokio::test]
async fn tools_of_one_client_share_a_token_and_every_redactor_knows_it() {
    let tokens = RawServer::responding([token(1, "3600")]).await;
    let api = RawServer::responding([ok()]).await;
    let fetch = Fetch::default();
    let definition = crate::definition(&api.url("/"), &client(&tokens.url("/token")));
    let redactors = [Redactor::default(), Redactor::default()];
    // Both exist at the same time, otherwise there is nothing to share.
    let tools = redactors.each_ref().map(|redactor| definition.tool("file", &fetch, redactor).expect("a tool"));
    for (tool, redactor) in tools.iter().zip(&redactors) {
        within(tool.call(&ToolCall::new("ask", json!({})), &CallContext::default())).await.expect("an output");
        assert_eq!(redactor.clean("token-number-1").as_deref(), Some("[REDACTED]"));
    }
    assert_eq!((api.requests().len(), tokens.requests().len()), (2, 1));
    within(call(&api.url("/"), &client(&tokens.url("/token")), json!({}))).await;
    assert_eq!(tokens.requests().len(), 2, "another fetch is another client");
}

#[tokio::test]
async fn a_refused_or_expired_token_is_renewed_once() {
    let refused = || raw_response("401 Unauthorized", "text/plain", "token-number-2 is not good");
    let tokens = RawServer::responding([token(1, "3600"), token(2, "\"3600\"")]).await;
    let api = RawServer::responding([refused(), ok(), refused()]).await;
    let redactor = Redactor::default();
    let tool = tool(&api.url("/"), &client(&tokens.url("/token")), &redactor);
    let (request, cx) = (ToolCall::new("ask", json!({})), CallContext::default());
    within(tool.call(&request, &cx)).await.expect("an output");
    assert_eq!((api.requests().len(), tokens.requests().len()), (2, 2));
    assert_eq!(api.requests()[1].header("authorization"), Some("Bearer token-number-2"));
    // A token is renewed only once, and the error does not show it.
    let error = within(tool.call(&request, &cx)).await.expect_err("refused");
    assert_eq!((api.requests().len(), tokens.requests().len()), (4, 3));
    assert!(error.kind() == helve_core::ErrorKind::PermissionDenied && !error.message().contains("token-number"), "{error}");
    // A token without a lifetime is requested again.
    let tokens = RawServer::responding([token(1, "0")]).await;
    let api = RawServer::responding([ok()]).await;
    let tool = crate::tool(&api.url("/"), &client(&tokens.url("/token")), &redactor);
    for _ in 0..2 {
        within(tool.call(&request, &cx)).await.expect("an output");
    }
    assert_eq!(tokens.requests().len(), 2);
}

#[tokio::test]
async fn credentials_in_the_body_are_tried_where_the_header_is_refused() {
    let tokens = RawServer::responding([raw_response("401 Unauthorized", "text/plain", ""), token(1, "60")]).await;
    let api = RawServer::responding([ok()]).await;
    let outcome = call(&api.url("/"), &client(&tokens.url("/token")), json!({})).await;
    assert_eq!(outcome["success"], json!(true), "{outcome}");
    assert!(tokens.requests()[1].body.ends_with(&format!("&client_id=me&client_secret={CANARY}")));
    assert_eq!(tokens.requests()[1].header("authorization"), None);
}

#[tokio::test]
async fn without_a_token_nothing_is_sent() {
    let api = RawServer::responding([ok()]).await;
    for (bytes, kind) in [
        (raw_response("400 Bad Request", "application/json", &format!("{{\"error\": \"invalid_client {CANARY}\"}}")), "failed"),
        (raw_response("403 Forbidden", "text/plain", CANARY), "permission_denied"),
        (raw_response("200 OK", "application/json", "{\"access_token\": \"\"}"), "failed"),
        (raw_response("200 OK", "text/html", "<p>"), "failed"),
        (raw_response_with("307 Again", &format!("location: {}\r\n", api.url("/")), ""), "failed"),
    ] {
        let tokens = RawServer::responding([bytes]).await;
        let outcome = call(&api.url("/"), &client(&tokens.url("/token")), json!({})).await;
        assert_eq!(outcome["error"]["kind"], kind, "{outcome}");
    }
    assert!(api.requests().is_empty());
}
