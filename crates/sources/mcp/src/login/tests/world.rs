//! A small world for logins: issuers that check what they are shown, a server that wants tokens, and a person.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use helve_core::Redactor;
use helve_fetch::{Fetch, HeaderValue, Url};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::super::{AuthError, AuthOptions, Authorizer, MemoryStore, TokenStore};
use super::http::{Reply, Seen, Server, send};
use super::person::Person;

/// How an issuer names itself when it sends people back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Iss {
    Right,
    Missing,
    Wrong,
    WithSlash,
}

/// What makes one issuer different from another.
#[derive(Debug, Clone)]
pub(super) struct IssuerPlan {
    pub(super) metadata_at: Option<&'static str>,
    /// Before all of its paths, and at the end of its name.
    pub(super) prefix: &'static str,
    /// Instead of the usual fields of its metadata; null removes one.
    pub(super) metadata: Value,
    /// The same for the answer to a registration.
    pub(super) registered: Value,
    /// The same for an answer with tokens.
    pub(super) tokens: Value,
    pub(super) iss: Iss,
}

impl Default for IssuerPlan {
    fn default() -> Self {
        let nothing = json!({});
        Self {
            metadata_at: Some("/.well-known/oauth-authorization-server"),
            prefix: "",
            metadata: nothing.clone(),
            registered: nothing.clone(),
            tokens: nothing,
            iss: Iss::Right,
        }
    }
}

/// What makes one server different from another.
#[derive(Debug, Clone)]
pub(super) struct ServerPlan {
    pub(super) metadata_at: Option<&'static str>,
    pub(super) metadata: Value,
    /// Whether the challenge says where the metadata is.
    pub(super) hint: bool,
    /// The scope that its challenge names.
    pub(super) scope: Option<&'static str>,
    /// The scope that `tools/call` wants.
    pub(super) call_scope: Option<&'static str>,
    /// Whether no token is ever enough.
    pub(super) greedy: bool,
}

impl Default for ServerPlan {
    fn default() -> Self {
        Self {
            metadata_at: Some("/.well-known/oauth-protected-resource/mcp"),
            metadata: json!({}),
            hint: true,
            scope: None,
            call_scope: None,
            greedy: false,
        }
    }
}

/// What issuers remember.
#[derive(Default)]
pub(super) struct Ledger {
    count: usize,
    codes: HashMap<String, HashMap<String, String>>,
    /// Tokens that are good, with their scopes.
    pub(super) good: HashMap<String, String>,
    /// Refresh tokens that were not used yet.
    pub(super) refresh: HashMap<String, String>,
    /// Whom the server sends people to.
    pub(super) issuer: String,
    /// A client that the issuer forgot.
    pub(super) unknown: String,
}

pub(super) struct World {
    pub(super) issuer: Arc<Server>,
    pub(super) server: Arc<Server>,
    pub(super) ledger: Arc<Mutex<Ledger>>,
    pub(super) person: Arc<Person>,
    pub(super) store: Arc<MemoryStore>,
    pub(super) redactor: Redactor,
}

impl World {
    pub(super) async fn new(issuer: IssuerPlan, server: ServerPlan) -> Self {
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let name = issuer.prefix;
        let issuer = start_issuer(issuer, &ledger).await;
        ledger.lock().expect("a ledger").issuer = format!("{}{name}", issuer.url);
        let server = start_server(server, &ledger).await;
        Self::with(Arc::new(issuer), Arc::new(server), ledger)
    }

    /// A server without metadata that is its own issuer, as the first revisions of MCP had them.
    pub(super) async fn of_one(plan: impl Fn(&str) -> IssuerPlan + Send + Sync + 'static, iss: Iss) -> Self {
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let (shared, bare) = (ledger.clone(), ServerPlan { metadata_at: None, ..ServerPlan::default() });
        let both = Server::start(move |own, seen| {
            let mut ledger = shared.lock().expect("a ledger");
            if seen.path == "/mcp" {
                return serve(&bare, own, seen, &ledger);
            }
            issue(&IssuerPlan { iss, ..plan(own) }, own, seen, &mut ledger)
        });
        let both = Arc::new(both.await);
        Self::with(both.clone(), both, ledger)
    }

    fn with(issuer: Arc<Server>, server: Arc<Server>, ledger: Arc<Mutex<Ledger>>) -> Self {
        Self { issuer, server, ledger, person: Arc::default(), store: Arc::default(), redactor: Redactor::default() }
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("a ledger")
    }

    pub(super) fn url(&self) -> Url {
        format!("{}/mcp", self.server.url).parse().expect("an address")
    }

    pub(super) fn options(&self) -> AuthOptions {
        AuthOptions { browser: Some(self.person.clone()), store: self.store.clone(), ..AuthOptions::default() }
    }

    pub(super) fn authorizer(&self, options: AuthOptions) -> Authorizer {
        Authorizer::new(&self.url(), Fetch::default(), self.redactor.clone(), options)
    }

    /// One call as a client makes it, with all the logins it takes.
    pub(super) async fn call(&self, authorizer: &Authorizer, method: &str) -> Result<(), AuthError> {
        let mut header = authorizer.header().await;
        for _ in 0..10 {
            let shown = header.as_ref().map_or("", |header| header.to_str().expect("text"));
            let headers: &[_] = if header.is_some() { &[("authorization", shown)] } else { &[] };
            let reply = send("POST", self.url().as_str(), headers, &json!({"method": method}).to_string()).await.expect("an answer");
            if reply.status == 200 {
                return Ok(());
            }
            let challenge = reply.headers.iter().find(|(name, _)| *name == "www-authenticate").map(|(_, value)| value.as_str());
            header = Some(authorizer.challenged(reply.status, challenge, header.as_ref()).await?);
        }
        panic!("the authorizer goes on for ever");
    }

    /// One login and one call.
    pub(super) async fn log_in(&self) -> Result<Authorizer, AuthError> {
        let authorizer = self.authorizer(self.options());
        self.call(&authorizer, "tools/list").await?;
        Ok(authorizer)
    }

    /// What the person was asked, the last time.
    pub(super) fn asked(&self) -> Seen {
        self.issuer_seen("/authorize").pop().expect("somebody was asked")
    }

    /// What came for tokens, the last time.
    pub(super) fn bought(&self) -> Seen {
        self.issuer_seen("/token").pop().expect("somebody wanted tokens")
    }

    pub(super) fn issuer_seen(&self, end: &str) -> Vec<Seen> {
        let paths = self.issuer.paths();
        let path = paths.iter().find(|path| path.ends_with(end)).cloned().unwrap_or_default();
        self.issuer.seen(&path)
    }

    pub(super) async fn kept(&self) -> Value {
        use secrecy::ExposeSecret;
        let document = self.store.load(self.url().as_str()).await.expect("a store");
        document.map(|document| serde_json::from_str(document.expose_secret()).expect("JSON")).unwrap_or_default()
    }

    /// As if time had passed: the token that is kept is old.
    pub(super) async fn age(&self) {
        let mut kept = self.kept().await;
        kept["tokens"]["issued"] = "2020-01-01T00:00:00Z".into();
        kept["tokens"]["expires"] = "2020-01-01T01:00:00Z".into();
        self.store.save(self.url().as_str(), kept.to_string().into()).await.expect("a store");
    }
}

pub(super) async fn start_issuer(plan: IssuerPlan, ledger: &Arc<Mutex<Ledger>>) -> Server {
    let ledger = ledger.clone();
    Server::start(move |own, seen| issue(&plan, own, seen, &mut ledger.lock().expect("a ledger"))).await
}

fn issue(plan: &IssuerPlan, own: &str, seen: &Seen, ledger: &mut Ledger) -> Reply {
    let name = format!("{own}{}", plan.prefix);
    if plan.metadata_at == Some(seen.path.as_str()) {
        let usual = json!({
            "issuer": name,
            "authorization_endpoint": format!("{name}/authorize"),
            "token_endpoint": format!("{name}/token"),
            "registration_endpoint": format!("{name}/register"),
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        });
        return Reply::json(200, &merged(usual, &plan.metadata));
    }
    ledger.count += 1;
    let count = ledger.count;
    match (seen.method.as_str(), seen.path.strip_prefix(plan.prefix)) {
        ("POST", Some("/register")) => {
            let usual = json!({"client_id": format!("client-{count}"), "redirect_uris": seen.json()["redirect_uris"]});
            Reply::json(201, &merged(usual, &plan.registered))
        }
        ("GET", Some("/authorize")) => {
            let code = format!("canary-code-{count}");
            ledger.codes.insert(code.clone(), seen.fields.clone());
            let mut back: Url = seen.field("redirect_uri").parse().expect("an address");
            back.query_pairs_mut().extend_pairs([("code", code.as_str()), ("state", seen.field("state"))]);
            match plan.iss {
                Iss::Right => _ = back.query_pairs_mut().append_pair("iss", &name),
                Iss::Wrong => _ = back.query_pairs_mut().append_pair("iss", "https://evil.example"),
                Iss::WithSlash => _ = back.query_pairs_mut().append_pair("iss", &format!("{name}/")),
                Iss::Missing => {}
            }
            Reply::status(302).with("location", back)
        }
        ("POST", Some("/token")) => match sell(seen, ledger) {
            Ok(scope) => {
                let (token, refresh) = (format!("canary-token-{count}"), format!("canary-refresh-{count}"));
                ledger.good.insert(token.clone(), scope.clone());
                ledger.refresh.insert(refresh.clone(), scope);
                let usual = json!({"access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh});
                Reply::json(200, &merged(usual, &plan.tokens))
            }
            Err(error) => Reply::json(400, &json!({"error": error, "error_description": "no such thing"})),
        },
        _ => Reply::status(404),
    }
}

/// Checks what an issuer must check; gives the scope of the token.
fn sell(seen: &Seen, ledger: &mut Ledger) -> Result<String, &'static str> {
    if seen.field("grant_type") == "refresh_token" {
        return ledger.refresh.remove(seen.field("refresh_token")).ok_or("invalid_grant");
    }
    let asked = ledger.codes.remove(seen.field("code")).ok_or("invalid_grant")?;
    let proof = URL_SAFE_NO_PAD.encode(Sha256::digest(seen.field("code_verifier")));
    if asked["code_challenge"] != proof || asked["code_challenge_method"] != "S256" {
        return Err("invalid_grant");
    }
    if asked["redirect_uri"] != seen.field("redirect_uri") || asked["resource"] != seen.field("resource") {
        return Err("invalid_target");
    }
    if asked["client_id"] != client_of(seen) || asked["client_id"] == ledger.unknown {
        return Err("invalid_client");
    }
    Ok(asked.get("scope").cloned().unwrap_or_default())
}

/// Whom a request for tokens comes from.
pub(super) fn client_of(seen: &Seen) -> String {
    let basic = seen.header("authorization").strip_prefix("Basic ");
    let pair = basic.map(|pair| String::from_utf8(STANDARD.decode(pair).expect("Base64")).expect("text"));
    pair.map_or_else(|| seen.field("client_id").to_owned(), |pair| pair.split(':').next().expect("a name").to_owned())
}

pub(super) async fn start_server(plan: ServerPlan, ledger: &Arc<Mutex<Ledger>>) -> Server {
    let ledger = ledger.clone();
    Server::start(move |own, seen| serve(&plan, own, seen, &ledger.lock().expect("a ledger"))).await
}

fn serve(plan: &ServerPlan, own: &str, seen: &Seen, ledger: &Ledger) -> Reply {
    if plan.metadata_at == Some(seen.path.as_str()) {
        let resource = if seen.path == "/.well-known/oauth-protected-resource" { own.to_owned() } else { format!("{own}/mcp") };
        let usual = json!({"resource": resource, "authorization_servers": [ledger.issuer]});
        return Reply::json(200, &merged(usual, &plan.metadata));
    }
    if seen.path != "/mcp" {
        return Reply::status(404);
    }
    let hint = plan.metadata_at.filter(|_| plan.hint).map(|at| format!("resource_metadata=\"{own}{at}\""));
    let challenge = |error: Option<&str>, scope: Option<&str>| {
        let error = error.map(|error| format!("error=\"{error}\""));
        let scope = scope.map(|scope| format!("scope=\"{scope}\""));
        format!("Bearer {}", hint.clone().into_iter().chain(error).chain(scope).collect::<Vec<_>>().join(", "))
    };
    let token = seen.header("authorization").strip_prefix("Bearer ").unwrap_or_default();
    let Some(scopes) = ledger.good.get(token) else {
        return Reply::status(401).with("www-authenticate", challenge(None, plan.scope));
    };
    let wanted = plan.call_scope.filter(|_| seen.json()["method"] == "tools/call");
    let enough = wanted.is_none_or(|wanted| scopes.split(' ').any(|scope| scope == wanted));
    if plan.greedy || !enough {
        return Reply::status(403).with("www-authenticate", challenge(Some("insufficient_scope"), plan.call_scope));
    }
    Reply::status(200)
}

/// Fields with others in their place; null removes one.
fn merged(mut usual: Value, others: &Value) -> Value {
    for (name, value) in others.as_object().expect("an object") {
        usual[name] = value.clone();
    }
    usual.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
    usual
}

pub(super) fn quick() -> Duration {
    Duration::from_millis(50)
}

pub(super) fn header(token: &str) -> HeaderValue {
    HeaderValue::try_from(format!("Bearer {token}")).expect("a header")
}
