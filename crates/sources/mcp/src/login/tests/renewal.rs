//! Tokens that grow old: renewed in time, once, by one, and kept.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use secrecy::SecretString;
use serde_json::json;

use super::super::{AuthError, AuthOptions, MemoryStore, RegisteredClient, TokenStore};
use super::world::{IssuerPlan, ServerPlan, World, client_of, header};

async fn world() -> World {
    World::new(IssuerPlan::default(), ServerPlan::default()).await
}

fn nobody(world: &World) -> AuthOptions {
    AuthOptions { browser: None, ..world.options() }
}

#[tokio::test]
async fn a_login_is_found_again_by_the_next_process() {
    let world = world().await;
    let first = world.log_in().await.expect("a login");
    let next = world.authorizer(nobody(&world));
    world.call(&next, "tools/list").await.expect("the same login");
    assert_eq!(next.header().await, first.header().await);
    assert_eq!(world.person.times(), 1);

    next.forget().await.expect("it is forgotten");
    assert_eq!(next.header().await, None);
    assert_eq!(world.kept().await, json!(null));
    let error = world.call(&next, "tools/list").await.expect_err("nobody is there");
    assert_eq!(error, AuthError::LoginNeeded { server: world.server.url.clone() });
    assert!(error.needs_person());
}

#[tokio::test]
async fn an_old_token_is_renewed_before_it_is_sent() {
    let world = world().await;
    world.log_in().await.expect("a login");
    for _ in 0..2 {
        world.age().await;
        let old = world.kept().await;
        let next = world.authorizer(nobody(&world));
        let shown = next.header().await.expect("a header");
        let new = world.kept().await;
        assert_eq!(shown, header(new["tokens"]["access"].as_str().expect("a token")));
        assert_ne!(old["tokens"]["access"], new["tokens"]["access"]);
        assert_ne!(old["tokens"]["refresh"], new["tokens"]["refresh"], "each refresh token is good once");
        let bought = world.bought();
        assert_eq!(bought.field("refresh_token"), old["tokens"]["refresh"].as_str().expect("a token"));
        assert_eq!(bought.field("resource"), world.url().as_str());
        assert_eq!(bought.field("client_id"), world.asked().field("client_id"));
    }
}

#[tokio::test]
async fn without_a_new_refresh_token_the_old_one_stays() {
    let world = World::new(IssuerPlan { tokens: json!({"refresh_token": null}), ..IssuerPlan::default() }, ServerPlan::default()).await;
    world.log_in().await.expect("a login");
    world.age().await;
    let mut kept = world.kept().await;
    kept["tokens"]["refresh"] = "canary-refresh".into();
    world.store.save(world.url().as_str(), kept.to_string().into()).await.expect("a store");
    world.ledger().refresh.insert("canary-refresh".into(), String::new());
    world.authorizer(nobody(&world)).header().await.expect("a header");
    assert_ne!(world.kept().await["tokens"]["access"], kept["tokens"]["access"]);
    assert_eq!(world.kept().await["tokens"]["refresh"], "canary-refresh");
}

#[tokio::test]
async fn many_calls_renew_once() {
    let world = world().await;
    world.log_in().await.expect("a login");
    world.age().await;
    let next = world.authorizer(nobody(&world));
    let headers = join_all((0..10).map(|_| next.header())).await;
    assert!(headers.iter().all(|header| header.is_some() && *header == headers[0]), "{headers:?}");
    assert_eq!(world.issuer_seen("/token").len(), 2, "one for the code, one for the refresh token");
}

#[tokio::test]
async fn many_calls_ask_once() {
    let world = world().await;
    let authorizer = world.authorizer(world.options());
    let answers = join_all((0..10).map(|_| authorizer.challenged(401, None, None))).await;
    assert!(answers.iter().all(|answer| answer.is_ok() && *answer == answers[0]), "{answers:?}");
    assert_eq!(world.person.times(), 1);
}

#[tokio::test]
async fn a_call_that_goes_away_loses_no_token() {
    let world = world().await;
    world.log_in().await.expect("a login");
    world.age().await;
    let next = world.authorizer(nobody(&world));
    assert_eq!(next.header().now_or_never(), None, "it waits for the issuer, and is dropped");
    let shown = next.header().await.expect("a header");
    assert_eq!(shown, header(world.kept().await["tokens"]["access"].as_str().expect("a token")));
    assert_eq!(world.issuer_seen("/token").len(), 2, "the one that was begun was finished");
}

#[tokio::test]
async fn a_refused_token_is_renewed_without_a_person() {
    let world = world().await;
    let authorizer = world.log_in().await.expect("a login");
    world.ledger().good.clear();
    world.call(&authorizer, "tools/list").await.expect("a new token");
    assert_eq!(world.person.times(), 1);
    assert_eq!(world.bought().field("grant_type"), "refresh_token");
}

#[tokio::test]
async fn what_another_process_renewed_is_taken() {
    let world = world().await;
    let (one, other) = (world.log_in().await.expect("a login"), world.authorizer(nobody(&world)));
    other.header().await.expect("a header");
    world.ledger().good.clear();
    world.call(&one, "tools/list").await.expect("a new token");
    world.call(&other, "tools/list").await.expect("the same token");
    assert_eq!(world.issuer_seen("/token").len(), 2);
}

#[tokio::test]
async fn a_refresh_token_that_is_refused_leads_to_the_person() {
    let world = world().await;
    world.log_in().await.expect("a login");
    world.age().await;
    {
        let mut ledger = world.ledger();
        ledger.good.clear();
        ledger.refresh.clear();
    }
    let error = world.call(&world.authorizer(nobody(&world)), "tools/list").await.expect_err("nobody is there");
    assert!(matches!(error, AuthError::LoginNeeded { .. }), "{error}");
    assert_eq!(world.kept().await["tokens"]["refresh"], json!(null), "it is not tried again");
    world.call(&world.authorizer(world.options()), "tools/list").await.expect("a login");
    assert_eq!(world.person.times(), 2);
}

#[tokio::test]
async fn when_the_issuer_is_away_the_server_is_the_judge() {
    let mut world = world().await;
    world.log_in().await.expect("a login");
    world.age().await;
    let next = world.authorizer(world.options());
    // Nobody listens where the issuer was.
    world.issuer = world.server.clone();
    let shown = next.header().await;
    assert_eq!(shown, Some(header(world.kept().await["tokens"]["access"].as_str().expect("a token"))));
    assert!(world.kept().await["tokens"]["refresh"].is_string(), "it is still good");
    world.call(&next, "tools/list").await.expect("the server still takes it");
    world.ledger().good.clear();
    let error = world.call(&next, "tools/list").await.expect_err("the issuer is away");
    assert!(matches!(error, AuthError::Fetch(_)), "{error}");
    assert_eq!(world.person.times(), 1);
}

#[tokio::test]
async fn the_secret_of_a_known_client_stays_with_its_person() {
    let metadata = json!({"token_endpoint_auth_methods_supported": ["client_secret_basic"]});
    let world = World::new(IssuerPlan { metadata, ..IssuerPlan::default() }, ServerPlan::default()).await;
    let client =
        |id: &str| RegisteredClient { issuer: world.issuer.url.clone(), id: id.into(), secret: Some("canary-secret".to_owned().into()) };
    let options = |id: &str| AuthOptions { client: Some(client(id)), ..world.options() };
    world.call(&world.authorizer(options("me")), "tools/list").await.expect("a login");
    assert!(!world.kept().await.to_string().contains("canary-secret"));
    world.age().await;
    world.authorizer(options("me")).header().await.expect("a header");
    assert_eq!((client_of(&world.bought()).as_str(), world.bought().field("grant_type")), ("me", "refresh_token"));
    assert_eq!(world.authorizer(options("other")).header().await, None, "that login belongs to another client");
    let elsewhere = RegisteredClient { issuer: "https://login.example".into(), ..client("me") };
    assert_eq!(world.authorizer(AuthOptions { client: Some(elsewhere), ..world.options() }).header().await, None);
    assert_eq!(world.authorizer(world.options()).header().await, None);
}

/// Finds what another process kept, but only when it looks a third time.
struct Behind {
    store: Arc<MemoryStore>,
    old: Mutex<Vec<SecretString>>,
}

impl TokenStore for Behind {
    fn load<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, String>> {
        match self.old.lock().expect("documents").pop() {
            Some(document) => Box::pin(async { Ok(Some(document)) }),
            None => self.store.load(key),
        }
    }

    fn save<'a>(&'a self, key: &'a str, document: SecretString) -> BoxFuture<'a, Result<(), String>> {
        self.store.save(key, document)
    }

    fn remove<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), String>> {
        self.store.remove(key)
    }
}

#[tokio::test]
async fn who_comes_second_does_not_spoil_the_first() {
    let world = world().await;
    let one = world.log_in().await.expect("a login");
    let old = world.store.load(world.url().as_str()).await.expect("a store").expect("a document");
    world.ledger().good.clear();
    world.call(&one, "tools/list").await.expect("a new token");
    let behind = Behind { store: world.store.clone(), old: Mutex::new(vec![old; 2]) };
    let other = world.authorizer(AuthOptions { store: Arc::new(behind), ..nobody(&world) });
    let kept = world.kept().await;
    world.call(&other, "tools/list").await.expect("the token of the first");
    assert_eq!(world.kept().await, kept);
    assert_eq!(world.issuer_seen("/token").len(), 3, "it tried");
}

/// Keeps nothing.
struct Full;

impl TokenStore for Full {
    fn load<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<SecretString>, String>> {
        Box::pin(async { Ok(None) })
    }

    fn save<'a>(&'a self, _: &'a str, _: SecretString) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Err("no disk".to_owned()) })
    }

    fn remove<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Err("no disk".to_owned()) })
    }
}

#[tokio::test]
async fn a_store_that_fails_does_not_stop_the_work() {
    let world = world().await;
    let authorizer = world.authorizer(AuthOptions { store: Arc::new(Full), ..world.options() });
    for _ in 0..2 {
        world.call(&authorizer, "tools/list").await.expect("a login");
    }
    world.ledger().good.clear();
    world.call(&authorizer, "tools/list").await.expect("a new token");
    assert_eq!(world.person.times(), 1);
    assert!(authorizer.forget().await.is_err());
}
