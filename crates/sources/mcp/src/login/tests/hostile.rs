//! Servers, issuers and pages that mean no good, and people who say no.

use futures_util::future::join_all;
use helve_core::Redactor;
use helve_fetch::{Fetch, FetchError};
use serde_json::{Value, json};

use super::super::{AuthError, AuthOptions, Authorizer};
use super::http::{Reply, Server, send};
use super::person::Mood;
use super::world::{IssuerPlan, ServerPlan, World, quick};

const PROGRAMS: [&str; 6] = [
    "file:///etc/passwd",
    "javascript:alert(1)",
    "a$(calc)",
    "https://login.example/$(calc)",
    "https://me@login.example/",
    "http://8.8.8.8/",
];

async fn with_metadata(metadata: Value) -> (World, AuthError) {
    let world = World::new(IssuerPlan { metadata, ..IssuerPlan::default() }, ServerPlan::default()).await;
    let error = world.log_in().await.expect_err("that cannot work");
    assert_eq!(world.person.times(), 0, "nothing is opened");
    (world, error)
}

/// Security case S41.
#[tokio::test]
async fn addresses_that_are_programs_are_refused() {
    for field in ["authorization_endpoint", "token_endpoint", "registration_endpoint"] {
        for address in PROGRAMS {
            let (world, error) = with_metadata(json!({field: address})).await;
            assert!(matches!(error, AuthError::Address { .. }), "{field} {address}: {error}");
            assert!(error.to_string().starts_with("the ") && error.to_string().contains("endpoint cannot be used: "), "{error}");
            assert_eq!(world.issuer.paths().len(), 1);
        }
    }
    for address in PROGRAMS {
        let server = ServerPlan { metadata: json!({"authorization_servers": [address]}), ..ServerPlan::default() };
        let world = World::new(IssuerPlan::default(), server).await;
        assert!(matches!(world.log_in().await, Err(AuthError::Address { .. })), "{address}");
        let hint = format!("Bearer resource_metadata=\"{address}\"");
        let refused = world.authorizer(world.options()).challenged(401, Some(&hint), None).await;
        assert!(matches!(refused, Err(AuthError::Address { .. })), "{address}: {refused:?}");
    }
}

#[tokio::test]
async fn a_public_server_cannot_reach_this_machine() {
    let world = World::new(IssuerPlan::default(), ServerPlan::default()).await;
    let hint = format!("Bearer resource_metadata=\"{}/.well-known/oauth-protected-resource/mcp\"", world.server.url);
    for address in ["https://mcp.example/mcp", "http://mcp.example/mcp"] {
        let server = address.parse().expect("an address");
        let authorizer = Authorizer::new(&server, Fetch::default(), Redactor::default(), world.options());
        let refused = authorizer.challenged(401, Some(&hint), None).await;
        assert!(matches!(refused, Err(AuthError::Address { .. })), "{refused:?}");
    }
    assert_eq!(world.server.paths(), Vec::<String>::new());
}

#[tokio::test]
async fn without_proof_keys_there_is_no_login() {
    for methods in [json!(null), json!([]), json!(["plain"]), json!("S256")] {
        let (_, error) = with_metadata(json!({"code_challenge_methods_supported": methods})).await;
        assert!(error.to_string().contains("PKCE"), "{error}");
    }
}

#[tokio::test]
async fn metadata_is_bounded_and_complete() {
    let (_, error) = with_metadata(json!({"filler": "x".repeat(70 << 10)})).await;
    assert!(matches!(error, AuthError::Fetch(FetchError::TooLarge { .. })), "{error}");
    for field in ["authorization_endpoint", "token_endpoint"] {
        for value in [json!(null), json!(1), json!(["https://login.example/"])] {
            let (_, error) = with_metadata(json!({field: value})).await;
            assert!(matches!(error, AuthError::Discovery { .. }), "{error}");
        }
    }
    for servers in [json!([]), json!(null), json!([1, {}])] {
        let server = ServerPlan { metadata: json!({"authorization_servers": servers}), ..ServerPlan::default() };
        let world = World::new(IssuerPlan::default(), server).await;
        assert!(matches!(world.log_in().await, Err(AuthError::Discovery { .. })));
    }
}

async fn against(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> (Server, AuthError) {
    let world = World::new(IssuerPlan::default(), ServerPlan::default()).await;
    let server = Server::start(move |_, seen| answer(&seen.path)).await;
    let url = format!("{}/mcp", server.url).parse().expect("an address");
    let authorizer = Authorizer::new(&url, Fetch::default(), Redactor::default(), world.options());
    let error = authorizer.challenged(401, None, None).await.expect_err("that cannot work");
    assert_eq!(world.person.times(), 0, "nothing is opened");
    (server, error)
}

#[tokio::test]
async fn a_server_that_fails_is_not_one_of_the_first_revision() {
    let (server, error) = against(|_| Reply::status(503)).await;
    assert!(matches!(error, AuthError::Discovery { .. }), "{error}");
    assert_eq!(server.paths().len(), 1);
}

#[tokio::test]
async fn a_server_that_only_wants_a_key_says_so() {
    let (server, error) = against(|_| Reply::status(404)).await;
    assert!(error.to_string().ends_with("it does not name its issuer"), "{error}");
    assert_eq!(server.paths().last().map(String::as_str), Some("/register"));
}

#[tokio::test]
async fn a_site_that_answers_everything_with_a_page_is_no_issuer() {
    let (_, error) = against(|_| Reply { body: "<!doctype html>".to_owned(), ..Reply::status(200) }).await;
    assert!(matches!(error, AuthError::Registration { .. }), "{error}");
}

#[tokio::test]
async fn codes_do_not_follow_redirects() {
    for status in [302, 307] {
        let thief = Server::start(|_, _| Reply::json(200, &json!({"access_token": "x"}))).await;
        let target = thief.url.clone();
        let lure = Server::start(move |_, _| Reply::status(status).with("location", target.clone())).await;
        let issuer = IssuerPlan { metadata: json!({"token_endpoint": lure.url}), ..IssuerPlan::default() };
        let world = World::new(issuer, ServerPlan::default()).await;
        let error = world.log_in().await.expect_err("it leads elsewhere");
        assert!(matches!(error, AuthError::Fetch(_)), "{error}");
        assert_eq!(thief.paths(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn answers_without_a_usable_token_are_refused() {
    for tokens in [
        json!({"token_type": "DPoP"}),
        json!({"access_token": null}),
        json!({"access_token": ""}),
        json!({"access_token": "two\r\nlines: 1"}),
        json!({"access_token": "x".repeat(20 << 10)}),
        json!({"access_token": 5}),
    ] {
        let world = World::new(IssuerPlan { tokens: tokens.clone(), ..IssuerPlan::default() }, ServerPlan::default()).await;
        assert!(matches!(world.log_in().await, Err(AuthError::Response { .. })), "{tokens}");
    }
}

#[tokio::test]
async fn what_no_login_asked_for_changes_nothing() {
    let world = World::new(IssuerPlan::default(), ServerPlan::default()).await;
    world.person.feels(Mood::Ignores);
    let authorizer = world.authorizer(AuthOptions { patience: quick(), ..world.options() });
    world.call(&authorizer, "tools/list").await.expect_err("its state is no longer good");
    world.person.feels(Mood::IsAttacked);
    world.log_in().await.expect("the right answer still counts");
    assert_eq!(world.person.times(), 2);
    assert!(!world.issuer.heard().contains("evil"));
    let back = world.person.back.lock().expect("an address").clone();
    assert!(send("GET", &back, &[], "").await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn a_port_that_is_taken_is_no_login() {
    let world = World::new(IssuerPlan::default(), ServerPlan::default()).await;
    let taken = world.url().port().expect("a port");
    let authorizer = world.authorizer(AuthOptions { callback_port: taken, ..world.options() });
    let error = world.call(&authorizer, "tools/list").await.expect_err("somebody else listens there");
    assert!(error.to_string().contains(&format!("cannot listen on 127.0.0.1:{taken}")), "{error}");
    assert!(world.issuer_seen("/register").is_empty());
}

#[tokio::test]
async fn a_person_may_say_no() {
    let world = World::new(IssuerPlan::default(), ServerPlan::default()).await;
    world.person.feels(Mood::Declines);
    let error = world.log_in().await.expect_err("they said no");
    assert_eq!(error, AuthError::Declined { issuer: world.issuer.url.clone() });

    let authorizer = world.authorizer(world.options());
    let answers = join_all((0..10).map(|_| authorizer.challenged(401, None, None))).await;
    assert!(answers.iter().all(|answer| answer.as_ref().is_err_and(|error| matches!(error, AuthError::Declined { .. }))), "{answers:?}");
    assert_eq!(world.person.times(), 2, "and is not asked once for each call that waits");
}

#[tokio::test]
async fn a_person_may_not_come_back() {
    let world = World::new(IssuerPlan::default(), ServerPlan::default()).await;
    world.person.feels(Mood::Ignores);
    let authorizer = world.authorizer(AuthOptions { patience: quick(), ..world.options() });
    let error = world.call(&authorizer, "tools/list").await.expect_err("they never came back");
    assert!(matches!(error, AuthError::TimedOut { .. }) && error.needs_person(), "{error}");
    world.person.feels(Mood::HasNoBrowser);
    let error = world.call(&authorizer, "tools/list").await.expect_err("there is no screen");
    assert_eq!(error, AuthError::Browser { reason: "there is no screen".into() });
}

#[tokio::test]
async fn a_server_that_is_never_content_is_given_up() {
    let issuer = IssuerPlan { tokens: json!({"access_token": "canary-unknown"}), ..IssuerPlan::default() };
    let world = World::new(issuer, ServerPlan::default()).await;
    let authorizer = world.authorizer(world.options());
    for _ in 0..2 {
        let error = world.call(&authorizer, "tools/list").await.expect_err("it takes no token");
        assert_eq!(error, AuthError::TooOften { server: world.server.url.clone() });
    }
    assert_eq!(world.person.times(), 3);
}

#[tokio::test]
async fn a_plain_no_is_no_reason_to_log_in() {
    let world = World::new(IssuerPlan::default(), ServerPlan::default()).await;
    let authorizer = world.authorizer(world.options());
    for challenge in [None, Some("Basic realm=\"x\""), Some("Bearer")] {
        let error = authorizer.challenged(403, challenge, None).await.expect_err("it is forbidden");
        assert!(matches!(error, AuthError::Forbidden { .. }), "{error}");
    }
    assert_eq!(world.server.paths(), Vec::<String>::new());
}

#[tokio::test]
async fn secrets_are_known_and_not_told() {
    let registered = json!({"client_secret": "canary-secret", "token_endpoint_auth_method": "client_secret_post"});
    let said = "canary-code-2 of canary-secret\u{1b}[31m is gone";
    let tokens = json!({"error": "invalid_grant", "error_description": said});
    let world = World::new(IssuerPlan { registered: registered.clone(), tokens, ..IssuerPlan::default() }, ServerPlan::default()).await;
    let error = world.log_in().await.expect_err("it is refused");
    let text = format!("{error} {error:?}");
    assert!(text.contains("invalid_grant") && !text.contains("canary") && !text.contains('\u{1b}'), "{text}");

    let world = World::new(IssuerPlan { registered, ..IssuerPlan::default() }, ServerPlan::default()).await;
    let authorizer = world.log_in().await.expect("a login");
    let bought = world.bought();
    for secret in ["canary-code-2", "canary-token-3", "canary-refresh-3", "canary-secret", bought.field("code_verifier")] {
        assert!(world.redactor.clean(secret).is_some(), "{secret}");
    }
    let debug = format!("{authorizer:?} {:?} {:?}", authorizer.header().await, world.options());
    assert!(!debug.contains("canary"), "{debug}");
    let next = Redactor::default();
    let again = Authorizer::new(&world.url(), Fetch::default(), next.clone(), world.options());
    again.header().await.expect("a header");
    assert!(next.clean("canary-refresh-3").is_some(), "also when they were only read back");
}
