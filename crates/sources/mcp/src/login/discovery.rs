//! Discovers the issuer of a server, by the server's metadata (RFC 9728) and the issuer's metadata (RFC 8414 or `OpenID` Connect).

use helve_fetch::Url;
use serde_json::Value;

use super::address::{covers, origin};
use super::challenge::Challenge;
use super::error::AuthError;
use super::issuer_client::{IssuerClient, Object};
use super::scopes::Scopes;

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const ISSUER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";
/// Maximum number of issuers of a server that are considered.
const MOST_ISSUERS: usize = 16;

/// The result of the discovery.
#[derive(Debug, Clone)]
pub(super) struct Discovery {
    /// The identifier of the server, byte by byte as in its metadata, because URL parsers would add slashes.
    pub(super) resource: String,
    /// The scopes in the server's metadata.
    pub(super) scopes: Scopes,
    pub(super) issuer: Issuer,
}

/// An issuer (authorization server), as described by its metadata.
#[derive(Debug, Clone)]
pub(super) struct Issuer {
    /// The identifier of the issuer, byte by byte as in its metadata.
    pub(super) name: String,
    pub(super) authorization: Url,
    pub(super) token: Url,
    pub(super) registration: Option<Url>,
    pub(super) scopes: Scopes,
    /// The methods by which clients may authenticate at the token endpoint; empty if the metadata lists none.
    pub(super) methods: Vec<String>,
    /// Whether a client may use the URL of its metadata document as its id.
    pub(super) documents: bool,
    /// Whether the issuer names itself in its redirects.
    pub(super) names_itself: bool,
    /// Whether the issuer has no metadata, and the endpoints are the defaults of the first MCP revisions.
    pub(super) guessed: bool,
}

/// Discovers the issuer of a server. If the server has several issuers, the first one in `prefer` is used.
pub(super) async fn discover(
    exchange: &IssuerClient,
    server: &Url,
    challenge: &Challenge,
    prefer: &[&str],
) -> Result<Discovery, AuthError> {
    exchange.guard.check_server()?;
    let fail = |reason: String| AuthError::discovery(exchange.guard.server(), reason);
    let Some(metadata) = resource_metadata(exchange, server, challenge).await? else {
        return without_metadata(exchange, server).await;
    };
    let resource = text(&metadata, "resource").ok_or_else(|| fail("its metadata names no resource".to_owned()))?;
    let parsed = exchange.guard.read(resource, "resource")?;
    if !covers(&parsed, server) {
        return Err(fail(format!("its metadata is about another server, {}", origin(&parsed))));
    }
    let named: Vec<&str> = texts(&metadata, "authorization_servers").take(MOST_ISSUERS).collect();
    let preferred = prefer.iter().find(|issuer| named.contains(issuer)).copied();
    let name = preferred.or_else(|| named.first().copied()).ok_or_else(|| fail("its metadata names no issuer".to_owned()))?;
    let issuer = issuer_metadata(exchange, &[name]).await?.ok_or_else(|| fail(format!("{} has no metadata", exchange.excerpt(name))))?;
    Ok(Discovery { resource: resource.to_owned(), scopes: Scopes::listed(metadata.get("scopes_supported")), issuer })
}

/// Requests the server's metadata: from the URL in the challenge, else from the well-known URL for the server's path, else from the root.
async fn resource_metadata(exchange: &IssuerClient, server: &Url, challenge: &Challenge) -> Result<Option<Object>, AuthError> {
    let mut places = Vec::new();
    if let Some(hint) = &challenge.resource_metadata {
        places.push(exchange.guard.read(hint, "URL of the server's metadata")?);
    }
    for place in [inserted(server, RESOURCE), rooted(server, RESOURCE)] {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for place in places {
        let metadata = exchange.get(&place).await?;
        if metadata.as_ref().is_some_and(|metadata| metadata.contains_key("resource")) {
            return Ok(metadata);
        }
    }
    Ok(None)
}

/// Discovers the issuer of a server without metadata, as in MCP 2025-03-26: the origin of the server is the issuer. If the issuer has no
/// metadata either, uses the default endpoints.
async fn without_metadata(exchange: &IssuerClient, server: &Url) -> Result<Discovery, AuthError> {
    let name = origin(server);
    // No document names this issuer, so its identifier may have a trailing slash or not.
    let with_slash = format!("{name}/");
    let issuer = match issuer_metadata(exchange, &[&name, &with_slash]).await? {
        Some(issuer) => issuer,
        None => Issuer {
            authorization: rooted(server, "/authorize"),
            token: rooted(server, "/token"),
            registration: Some(rooted(server, "/register")),
            name,
            scopes: Scopes::default(),
            methods: Vec::new(),
            documents: false,
            names_itself: false,
            guessed: true,
        },
    };
    let mut resource = server.clone();
    resource.set_fragment(None);
    // The canonical form has no slash.
    let resource = if resource.path() == "/" && resource.query().is_none() { origin(server) } else { resource.to_string() };
    Ok(Discovery { resource, scopes: Scopes::default(), issuer })
}

/// Requests the metadata of an issuer. `names` are its possible identifiers, which differ only in a trailing slash.
async fn issuer_metadata(exchange: &IssuerClient, names: &[&str]) -> Result<Option<Issuer>, AuthError> {
    let Some(base) = names.first() else { return Ok(None) };
    let url = exchange.guard.read(base, "issuer")?;
    if url.query().is_some() {
        return Err(AuthError::Address { what: "issuer", reason: "it has a query".to_owned() });
    }
    let mut places = vec![inserted(&url, ISSUER), inserted(&url, OPENID)];
    if url.path().len() > 1 {
        let mut appended = url.clone();
        appended.set_path(&format!("{}{OPENID}", url.path().trim_end_matches('/')));
        places.push(appended);
    }
    let mut stranger = None;
    for place in places {
        let Some(metadata) = exchange.get(&place).await? else { continue };
        match text(&metadata, "issuer") {
            Some(name) if names.contains(&name) => return read_issuer(exchange, name, &metadata).map(Some),
            // Does not use any part of this document: a forged one could redirect people anywhere.
            other => stranger = Some(exchange.excerpt(other.unwrap_or("an unnamed issuer"))),
        }
    }
    match stranger {
        Some(other) => Err(AuthError::discovery(exchange.guard.server(), format!("the metadata of {base} belongs to {other}"))),
        None => Ok(None),
    }
}

fn read_issuer(exchange: &IssuerClient, name: &str, metadata: &Object) -> Result<Issuer, AuthError> {
    let fail = |reason: &str| AuthError::discovery(exchange.guard.server(), format!("the metadata of {name} {reason}"));
    let address = |field: &'static str, what: &'static str| text(metadata, field).map(|url| exchange.guard.read(url, what)).transpose();
    let authorization = address("authorization_endpoint", "authorization endpoint")?;
    let token = address("token_endpoint", "token endpoint")?;
    // Without PKCE, a leaked code could be exchanged for a token.
    if !texts(metadata, "code_challenge_methods_supported").any(|method| method == "S256") {
        return Err(fail("does not support PKCE with S256"));
    }
    Ok(Issuer {
        name: name.to_owned(),
        authorization: authorization.ok_or_else(|| fail("has no authorization endpoint"))?,
        token: token.ok_or_else(|| fail("has no token endpoint"))?,
        registration: address("registration_endpoint", "registration endpoint")?,
        scopes: Scopes::listed(metadata.get("scopes_supported")),
        methods: texts(metadata, "token_endpoint_auth_methods_supported").map(str::to_owned).collect(),
        documents: is_true(metadata, "client_id_metadata_document_supported"),
        names_itself: is_true(metadata, "authorization_response_iss_parameter_supported"),
        guessed: false,
    })
}

/// Returns the well-known URL for a URL: the well-known path comes before the path of the URL.
fn inserted(url: &Url, well_known: &str) -> Url {
    let mut place = url.clone();
    place.set_path(&format!("{well_known}{}", url.path().trim_end_matches('/')));
    place.set_fragment(None);
    place
}

fn rooted(url: &Url, path: &str) -> Url {
    let mut place = url.clone();
    place.set_path(path);
    place.set_query(None);
    place.set_fragment(None);
    place
}

fn text<'a>(object: &'a Object, field: &str) -> Option<&'a str> {
    object.get(field).and_then(Value::as_str)
}

fn texts<'a>(object: &'a Object, field: &str) -> impl Iterator<Item = &'a str> {
    object.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn is_true(object: &Object, field: &str) -> bool {
    object.get(field) == Some(&Value::Bool(true))
}
