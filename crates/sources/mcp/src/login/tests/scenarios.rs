//! The authorization scenarios of the official MCP conformance suite, by name.

use std::sync::Arc;

use serde_json::json;

use super::super::{AuthError, AuthOptions, RegisteredClient, Scopes};
use super::world::{Iss, IssuerPlan, ServerPlan, World, client_of, start_issuer, start_server};

#[tokio::test]
async fn metadata_default() {
    let world = World::new(IssuerPlan::default(), ServerPlan::default()).await;
    world.log_in().await.expect("a login");
    assert_eq!(world.server.paths(), ["/mcp", "/.well-known/oauth-protected-resource/mcp", "/mcp"]);
    assert_eq!(world.issuer.paths(), ["/.well-known/oauth-authorization-server", "/register", "/authorize", "/token"]);
    assert_eq!(world.asked().field("resource"), world.url().as_str());
    assert_eq!(world.bought().field("resource"), world.url().as_str());
}

#[tokio::test]
async fn metadata_var1() {
    let issuer = IssuerPlan { metadata_at: Some("/.well-known/openid-configuration"), ..IssuerPlan::default() };
    let world = World::new(issuer, ServerPlan { hint: false, ..ServerPlan::default() }).await;
    world.log_in().await.expect("a login");
    assert_eq!(world.server.paths(), ["/mcp", "/.well-known/oauth-protected-resource/mcp", "/mcp"]);
}

#[tokio::test]
async fn metadata_var2() {
    let at = Some("/.well-known/oauth-authorization-server/tenant1");
    let issuer = IssuerPlan { metadata_at: at, prefix: "/tenant1", ..IssuerPlan::default() };
    let server = ServerPlan { metadata_at: Some("/.well-known/oauth-protected-resource"), hint: false, ..ServerPlan::default() };
    let world = World::new(issuer, server).await;
    world.log_in().await.expect("a login");
    assert_eq!(world.issuer.paths()[0], "/.well-known/oauth-authorization-server/tenant1");
    // Byte by byte as the server names itself: without the slash that parsers add.
    assert_eq!(world.asked().field("resource"), world.server.url);
    assert_eq!(world.bought().field("resource"), world.server.url);
}

#[tokio::test]
async fn metadata_var3() {
    let issuer = IssuerPlan { metadata_at: Some("/tenant1/.well-known/openid-configuration"), prefix: "/tenant1", ..IssuerPlan::default() };
    let world = World::new(issuer, ServerPlan { metadata_at: Some("/custom/location.json"), ..ServerPlan::default() }).await;
    world.log_in().await.expect("a login");
    let tried = ["/.well-known/oauth-authorization-server/tenant1", "/.well-known/openid-configuration/tenant1"];
    assert_eq!(world.issuer.paths()[..2], tried);
}

#[tokio::test]
async fn basic_cimd() {
    let document = "https://helve.example/client.json";
    let options = |world: &World| AuthOptions { client_document: Some(document.into()), ..world.options() };
    let issuer = IssuerPlan { metadata: json!({"client_id_metadata_document_supported": true}), ..IssuerPlan::default() };
    let world = World::new(issuer, ServerPlan::default()).await;
    world.call(&world.authorizer(options(&world)), "tools/list").await.expect("a login");
    assert_eq!((world.asked().field("client_id"), world.bought().field("client_id")), (document, document));
    assert!(world.issuer_seen("/register").is_empty());

    let world = World::new(IssuerPlan::default(), ServerPlan::default()).await;
    world.call(&world.authorizer(options(&world)), "tools/list").await.expect("a login");
    assert_eq!(world.issuer_seen("/register").len(), 1, "who does not read documents registers");
}

#[tokio::test]
async fn scope_from_www_authenticate() {
    let server = ServerPlan { scope: Some("mcp:basic"), metadata: json!({"scopes_supported": ["mcp:other"]}), ..ServerPlan::default() };
    let world = World::new(IssuerPlan::default(), server).await;
    world.log_in().await.expect("a login");
    assert_eq!(world.asked().field("scope"), "mcp:basic");
}

#[tokio::test]
async fn scope_from_scopes_supported() {
    let server = ServerPlan { metadata: json!({"scopes_supported": ["mcp:read", "mcp:write"]}), ..ServerPlan::default() };
    let world = World::new(IssuerPlan::default(), server).await;
    world.log_in().await.expect("a login");
    assert_eq!(world.asked().field("scope"), "mcp:read mcp:write");
}

#[tokio::test]
async fn scope_omitted_when_undefined() {
    let world = World::new(IssuerPlan::default(), ServerPlan::default()).await;
    world.log_in().await.expect("a login");
    assert!(!world.asked().fields.contains_key("scope"));
}

#[tokio::test]
async fn scopes_that_a_person_wants_are_asked_for() {
    let world = World::new(IssuerPlan::default(), ServerPlan { scope: Some("mcp:basic"), ..ServerPlan::default() }).await;
    let authorizer = world.authorizer(AuthOptions { scopes: Scopes::read("mine"), ..world.options() });
    world.call(&authorizer, "tools/list").await.expect("a login");
    assert_eq!(world.asked().field("scope"), "mine mcp:basic");
}

#[tokio::test]
async fn scope_step_up() {
    let server = ServerPlan { scope: Some("mcp:basic"), call_scope: Some("mcp:write"), ..ServerPlan::default() };
    let world = World::new(IssuerPlan::default(), server).await;
    let authorizer = world.log_in().await.expect("a login");
    world.call(&authorizer, "tools/call").await.expect("a second login");
    let mut scopes: Vec<_> = world.asked().field("scope").split(' ').map(str::to_owned).collect();
    scopes.sort();
    assert_eq!(scopes, ["mcp:basic", "mcp:write"]);
    assert_eq!(world.person.times(), 2);
    assert_eq!(world.issuer_seen("/register").len(), 1, "the registration is still good");
}

#[tokio::test]
async fn scope_retry_limit() {
    let server = ServerPlan { scope: Some("mcp:admin"), call_scope: Some("mcp:admin"), greedy: true, ..ServerPlan::default() };
    let world = World::new(IssuerPlan::default(), server).await;
    let authorizer = world.authorizer(world.options());
    for _ in 0..3 {
        let error = world.call(&authorizer, "tools/call").await.expect_err("never enough");
        assert!(matches!(&error, AuthError::Forbidden { scopes, .. } if scopes.to_string() == "mcp:admin"), "{error}");
    }
    assert_eq!(world.person.times(), 1, "what was agreed to is not asked again");
}

#[tokio::test]
async fn token_endpoint_auth_basic() {
    let world = World::new(
        IssuerPlan {
            metadata: json!({"token_endpoint_auth_methods_supported": ["client_secret_basic"]}),
            registered: json!({"client_secret": "canary secret", "token_endpoint_auth_method": "client_secret_basic"}),
            ..IssuerPlan::default()
        },
        ServerPlan::default(),
    )
    .await;
    world.log_in().await.expect("a login");
    assert_eq!(client_of(&world.bought()), world.asked().field("client_id"));
    let bought = world.bought();
    assert!(bought.header("authorization").starts_with("Basic ") && !bought.fields.contains_key("client_secret"));
    assert!(!bought.fields.contains_key("client_id"));
}

#[tokio::test]
async fn token_endpoint_auth_post() {
    let world = World::new(
        IssuerPlan {
            metadata: json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]}),
            registered: json!({"client_secret": "canary-secret", "token_endpoint_auth_method": "client_secret_post"}),
            ..IssuerPlan::default()
        },
        ServerPlan::default(),
    )
    .await;
    world.log_in().await.expect("a login");
    let bought = world.bought();
    assert_eq!((bought.field("client_secret"), bought.header("authorization")), ("canary-secret", ""));
}

#[tokio::test]
async fn token_endpoint_auth_none() {
    let metadata = json!({"token_endpoint_auth_methods_supported": ["none"]});
    let world = World::new(IssuerPlan { metadata, ..IssuerPlan::default() }, ServerPlan::default()).await;
    world.log_in().await.expect("a login");
    let bought = world.bought();
    assert_eq!((bought.field("client_secret"), bought.header("authorization")), ("", ""));
    let registered = world.issuer_seen("/register")[0].json();
    assert_eq!(registered["token_endpoint_auth_method"], "none");
    assert_eq!(registered["application_type"], "native");
    assert_eq!(registered["grant_types"], json!(["authorization_code", "refresh_token"]));
    assert_eq!(registered["redirect_uris"], json!([world.asked().field("redirect_uri")]));
}

#[tokio::test]
async fn pre_registration() {
    let metadata = json!({"registration_endpoint": null, "token_endpoint_auth_methods_supported": ["client_secret_basic"]});
    let world = World::new(IssuerPlan { metadata, ..IssuerPlan::default() }, ServerPlan::default()).await;
    let client = |issuer: &str| {
        Some(RegisteredClient { issuer: issuer.to_owned(), id: "canary-client".into(), secret: Some("canary-secret".to_owned().into()) })
    };
    let authorizer = world.authorizer(AuthOptions { client: client(&world.issuer.url), ..world.options() });
    world.call(&authorizer, "tools/list").await.expect("a login");
    assert_eq!(client_of(&world.bought()), "canary-client");

    let world = World::new(IssuerPlan::default(), ServerPlan::default()).await;
    let authorizer = world.authorizer(AuthOptions { client: client("https://login.example"), ..world.options() });
    let error = world.call(&authorizer, "tools/list").await.expect_err("it belongs to another issuer");
    assert!(matches!(error, AuthError::Registration { .. }), "{error}");
    assert!(!world.issuer.heard().contains("canary"), "nobody else hears of it");
}

#[tokio::test]
async fn of_several_issuers_the_known_one_is_asked() {
    let world = World::new(IssuerPlan::default(), ServerPlan::default()).await;
    let issuer = world.issuer.url.clone();
    let metadata = json!({"authorization_servers": ["https://login.example", issuer]});
    let server = start_server(ServerPlan { metadata, ..ServerPlan::default() }, &world.ledger).await;
    let world = World { server: Arc::new(server), ..world };
    let client = Some(RegisteredClient { issuer, id: "me".into(), secret: None });
    world.call(&world.authorizer(AuthOptions { client, ..world.options() }), "tools/list").await.expect("a login");
    assert_eq!(world.asked().field("client_id"), "me");
}

#[tokio::test]
async fn a_registration_that_is_gone_is_not_used_again() {
    let world = World::new(IssuerPlan::default(), ServerPlan { call_scope: Some("mcp:write"), ..ServerPlan::default() }).await;
    let authorizer = world.log_in().await.expect("a login");
    world.ledger().unknown = world.asked().field("client_id").to_owned();
    let error = world.call(&authorizer, "tools/call").await.expect_err("the issuer forgot it");
    assert!(matches!(&error, AuthError::Refused { code, .. } if code == "invalid_client"), "{error}");
    world.call(&authorizer, "tools/call").await.expect("a new one");
    assert_eq!(world.issuer_seen("/register").len(), 2);
}

#[tokio::test]
async fn without_registration_there_is_no_login() {
    let issuer = IssuerPlan { metadata: json!({"registration_endpoint": null}), ..IssuerPlan::default() };
    let world = World::new(issuer, ServerPlan::default()).await;
    let error = world.log_in().await.expect_err("nobody knows Helve");
    assert!(error.to_string().contains("register a client there"), "{error}");
}

#[tokio::test]
async fn resource_mismatch() {
    let server = ServerPlan { metadata: json!({"resource": "https://evil.example/mcp"}), ..ServerPlan::default() };
    let world = World::new(IssuerPlan::default(), server).await;
    let error = world.log_in().await.expect_err("that is another server");
    assert!(error.to_string().contains("another server"), "{error}");
    assert_eq!(world.issuer.paths(), Vec::<String>::new());
}

#[tokio::test]
async fn offline_access_scope() {
    let issuer = IssuerPlan { metadata: json!({"scopes_supported": ["mcp:basic", "offline_access"]}), ..IssuerPlan::default() };
    let server = ServerPlan { metadata: json!({"scopes_supported": ["mcp:basic"]}), ..ServerPlan::default() };
    let world = World::new(issuer, server).await;
    world.log_in().await.expect("a login");
    assert_eq!((world.asked().field("scope"), world.asked().field("prompt")), ("mcp:basic offline_access", "consent"));
}

#[tokio::test]
async fn offline_access_not_supported() {
    let issuer = IssuerPlan { metadata: json!({"scopes_supported": ["mcp:basic"]}), ..IssuerPlan::default() };
    let server = ServerPlan { metadata: json!({"scopes_supported": ["mcp:basic", "offline_access"]}), ..ServerPlan::default() };
    let world = World::new(issuer, server).await;
    world.log_in().await.expect("a login");
    assert_eq!((world.asked().field("scope"), world.asked().field("prompt")), ("mcp:basic", ""));
}

#[tokio::test]
async fn authorization_server_migration() {
    let issuer =
        IssuerPlan { registered: json!({"client_id": "canary-old-client", "client_secret": "canary-old-secret"}), ..IssuerPlan::default() };
    let world = World::new(issuer, ServerPlan::default()).await;
    let authorizer = world.log_in().await.expect("a login");
    let new = start_issuer(IssuerPlan::default(), &world.ledger).await;
    {
        let mut ledger = world.ledger();
        ledger.issuer.clone_from(&new.url);
        ledger.good.clear();
    }
    let asked_before = world.issuer.paths().len();
    world.call(&authorizer, "tools/list").await.expect("a login at the new one");
    assert_eq!(new.paths(), ["/.well-known/oauth-authorization-server", "/register", "/authorize", "/token"]);
    assert!(
        !new.heard().contains("canary-old") && !new.heard().contains("canary-refresh"),
        "nothing of the old issuer goes to the new one"
    );
    assert_eq!(world.issuer.paths().len(), asked_before);
    assert_eq!(world.kept().await["issuer"], new.url);
}

async fn with_iss(iss: Iss, advertised: bool) -> (Result<(), AuthError>, usize) {
    let metadata = json!({"authorization_response_iss_parameter_supported": if advertised { json!(true) } else { json!(null) }});
    let world = World::new(IssuerPlan { metadata, iss, ..IssuerPlan::default() }, ServerPlan::default()).await;
    let result = world.log_in().await.map(|_| ());
    assert_eq!(world.person.times(), 1);
    (result, world.issuer_seen("/token").len())
}

#[tokio::test]
async fn iss_supported() {
    assert_eq!(with_iss(Iss::Right, true).await, (Ok(()), 1));
}

#[tokio::test]
async fn iss_not_advertised() {
    assert_eq!(with_iss(Iss::Missing, false).await, (Ok(()), 1));
    assert_eq!(with_iss(Iss::Right, false).await, (Ok(()), 1));
}

#[tokio::test]
async fn iss_supported_missing() {
    assert!(matches!(with_iss(Iss::Missing, true).await, (Err(AuthError::Response { .. }), 0)));
}

#[tokio::test]
async fn iss_wrong_issuer() {
    assert!(matches!(with_iss(Iss::Wrong, true).await, (Err(AuthError::Response { .. }), 0)));
}

#[tokio::test]
async fn iss_unexpected() {
    assert!(matches!(with_iss(Iss::Wrong, false).await, (Err(AuthError::Response { .. }), 0)));
}

#[tokio::test]
async fn iss_normalized() {
    assert!(matches!(with_iss(Iss::WithSlash, true).await, (Err(AuthError::Response { .. }), 0)));
}

#[tokio::test]
async fn metadata_issuer_mismatch() {
    let issuer = IssuerPlan { metadata: json!({"issuer": "https://attacker.example"}), ..IssuerPlan::default() };
    let world = World::new(issuer, ServerPlan::default()).await;
    let error = world.log_in().await.expect_err("that is another issuer");
    assert!(matches!(error, AuthError::Discovery { .. }), "{error}");
    assert!(world.issuer_seen("/register").is_empty() && world.issuer_seen("/authorize").is_empty());
}

#[tokio::test]
async fn oauth_metadata_backcompat_2025_03_26() {
    // Nobody named the issuer, so both ways to write a root are right.
    for slash in ["", "/"] {
        let plan = move |own: &str| IssuerPlan {
            prefix: "/oauth",
            metadata: json!({"issuer": format!("{own}{slash}"), "authorization_response_iss_parameter_supported": null}),
            ..IssuerPlan::default()
        };
        let world = World::of_one(plan, Iss::Missing).await;
        world.log_in().await.expect("a login");
        let tried = ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"];
        assert_eq!(world.server.paths()[1..3], tried);
        assert_eq!(world.issuer_seen("/oauth/authorize").len(), 1);
        assert_eq!(world.asked().field("resource"), world.url().as_str());
    }
}

#[tokio::test]
async fn oauth_endpoint_fallback_2025_03_26() {
    let world = World::of_one(|_| IssuerPlan { metadata_at: None, ..IssuerPlan::default() }, Iss::Missing).await;
    world.log_in().await.expect("a login");
    let paths = world.server.paths();
    assert_eq!(paths[paths.len() - 4..], ["/register", "/authorize", "/token", "/mcp"]);
}
