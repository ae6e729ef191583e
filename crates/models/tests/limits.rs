//! The client against servers that ask for too much memory, time or reach.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::time::Duration;

use helve_core::{Deltas, LanguageModel, Message, ModelDelta, ModelError, ModelRequest, Usage};
use helve_models::{HttpModel, ModelEndpoint, ModelOptions, Price, Provider};
use helve_testkit::{ModelServer, Reply, Script};

const PROVIDERS: [&str; 4] = ["openai_compatible", "openai_responses", "anthropic", "gemini"];

/// A model of a provider that the server plays.
fn model(server: &ModelServer, provider: &str, name: &str, change: impl FnOnce(&mut ModelOptions)) -> HttpModel {
    let mut options = ModelOptions { retries: 0, ..ModelOptions::default() };
    change(&mut options);
    let base = if provider == "gemini" { format!("{}/v1beta", server.origin()) } else { server.url().to_owned() };
    let endpoint = ModelEndpoint { base_url: Some(base), options, ..ModelEndpoint::default() };
    Provider::named(provider).expect("a provider").model(name, endpoint).expect("a model")
}

/// The text of the response, and its usage.
async fn ask(model: &HttpModel, stream: bool) -> Result<(String, Usage), ModelError> {
    let mut request = ModelRequest::default();
    request.messages.push(Message::user("Hello?").into());
    request.stream = stream;
    let (mut response, mut deltas, mut said, mut cost) = (model.ask(request).await?, Deltas::default(), String::new(), Usage::default());
    while response.read(&mut deltas).await? {
        for delta in deltas.iter() {
            match delta {
                ModelDelta::Text(text) => said.push_str(text),
                ModelDelta::Usage(usage) => cost = usage,
                _ => {}
            }
        }
        deltas.clear();
    }
    Ok((said, cost))
}

fn assert_too_large(response: &Result<(String, Usage), ModelError>, limit: u64, name: &str) {
    assert!(matches!(response, Err(ModelError::Protocol(said)) if said.contains(&limit.to_string())), "{name}: {response:?}");
}

#[tokio::test]
async fn a_response_is_read_up_to_its_limit_and_no_further() {
    for provider in PROVIDERS {
        for stream in [false, true] {
            let server = ModelServer::start([Reply::text("Hello."), Reply::text("word ".repeat(1000))]).await;
            let model = model(&server, provider, "big", |options| options.limits.bytes = 4000);
            let name = format!("{provider}, stream: {stream}");
            assert_eq!(ask(&model, stream).await.map(|(said, _)| said), Ok("Hello.".to_owned()), "{name}");
            assert_too_large(&ask(&model, stream).await, 4000, &name);
        }
    }
}

/// The default limit is 32 MiB, whatever the bytes are.
#[tokio::test]
async fn without_a_limit_of_its_own_an_answer_has_32_mebibytes() {
    const PIECE: usize = 1 << 20;
    let words = r#"{"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]}"#;
    // Nothing but room in front of the response.
    let spaces = |pieces: usize| (0..pieces).map(|_| vec![b' '; PIECE]).chain([words.into()]);
    let comments = (0..33).map(|_| [vec![b':'; PIECE - 1], b"\n".to_vec()].concat());
    let script = Script::new()
        .reply(Reply::raw(200, "application/json", spaces(31)))
        .reply(Reply::raw(200, "application/json", spaces(32)))
        .reply(Reply::raw(200, "text/event-stream", comments));
    let server = ModelServer::start(script).await;
    let model = model(&server, "openai_compatible", "big", |_| {});
    assert_eq!(ask(&model, false).await.map(|(said, _)| said), Ok("Hello.".to_owned()));
    assert_too_large(&ask(&model, false).await, 32 << 20, "whole");
    assert_too_large(&ask(&model, true).await, 32 << 20, "in events");
}

/// The status of an error response says enough: the client does not wait for a body that comes one byte per second.
#[tokio::test(start_paused = true)]
async fn a_refusal_that_trickles_is_given_up_and_its_status_counts() {
    for (status, kind) in [(401, "auth"), (404, "model_not_found"), (500, "overloaded")] {
        let words = format!("Sorry, {} and that was all", "no ".repeat(30));
        let server = ModelServer::start(Reply::raw(status, "text/plain", [words]).in_chunks_of(1).with_pause(Duration::from_secs(1))).await;
        let error = ask(&model(&server, "openai_compatible", "big", |_| {}), false).await.expect_err("a refusal");
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains("Sorry") && !error.to_string().contains("that was all"), "{error}");
    }
}

/// A response that keeps coming is never idle, but the total time is limited.
#[tokio::test]
async fn a_response_that_never_stops_coming_meets_the_limit_of_the_whole() {
    for (content_type, piece) in [("text/event-stream", ": still here\n\n"), ("application/json", " ")] {
        let trickle = Reply::raw(200, content_type, vec![piece; 3000]).with_pause(Duration::from_millis(5));
        let server = ModelServer::start(trickle).await;
        let model = model(&server, "openai_compatible", "big", |options| options.limits.total = Duration::from_millis(200));
        let response = ask(&model, true).await;
        assert!(matches!(response, Err(ModelError::Timeout(_))), "{content_type}: {response:?}");
    }
}

#[tokio::test]
async fn a_models_name_changes_no_address_but_its_own() {
    let cases = [
        ("gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash"),
        ("tunedModels/mine", "/v1beta/tunedModels/mine"),
        ("a?key=b", "/v1beta/models/a%3Fkey%3Db"),
        ("a#b", "/v1beta/models/a%23b"),
        ("my own model", "/v1beta/models/my%20own%20model"),
        ("模型", "/v1beta/models/%E6%A8%A1%E5%9E%8B"),
        ("100%41", "/v1beta/models/100%2541"),
        ("../../upload", "/v1beta/models/..%2F..%2Fupload"),
        ("%2e%2e/x", "/v1beta/%252e%252e/x"),
        ("a\\..\\b", "/v1beta/models/a%5C..%5Cb"),
        ("/etc", "/v1beta/models/%2Fetc"),
    ];
    let server = ModelServer::start(Script::from_fn(|_| Reply::text("Hello."))).await;
    for (name, path) in cases {
        for (stream, method) in [(false, "generateContent"), (true, "streamGenerateContent?alt=sse")] {
            let said = ask(&model(&server, "gemini", name, |_| {}), stream).await;
            assert_eq!(said.map(|(said, _)| said), Ok("Hello.".to_owned()), "{name}");
            assert_eq!(server.requests().last().expect("a request").path, format!("{path}:{method}"), "{name}");
        }
        for (provider, path) in
            [("openai_compatible", "/v1/chat/completions"), ("openai_responses", "/v1/responses"), ("anthropic", "/v1/messages")]
        {
            ask(&model(&server, provider, name, |_| {}), true).await.expect("a response");
            let asked = server.requests().pop().expect("a request");
            assert_eq!((asked.path.as_str(), asked.model.as_str()), (path, name), "{provider}");
        }
    }
}

#[tokio::test]
async fn a_price_that_is_none_makes_no_cost() {
    let server = ModelServer::start(Script::from_fn(|_| Reply::text("Hello."))).await;
    for (input, priced) in [(2.0, true), (f64::NAN, false), (f64::INFINITY, false), (-2.0, false)] {
        for stream in [false, true] {
            let model = model(&server, "anthropic", "big", |options| options.price = Some(Price { input, output: 0.0 }));
            let (_, usage) = ask(&model, stream).await.expect("a response");
            assert!(usage.input_tokens > 0 && usage.cost.is_some() == priced, "{input}: {usage:?}");
        }
    }
}
