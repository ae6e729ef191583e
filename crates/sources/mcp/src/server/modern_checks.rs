//! Checks a modern request before it runs, in the order that the protocol requires.

use std::collections::HashMap;
use std::sync::Arc;

use helve_mcp_wire::{CODES, Era, HEADERS, HeaderParam, META, Meta, RpcError, VERSIONS, decode_header, name_of};
use hyper::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::log_level::LogLevel;

/// Legacy methods that do not exist in the modern era.
const REMOVED: [&str; 5] = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
/// Maximum number of tools whose header parameters are remembered.
const MAX_TOOLS: usize = 10_000;

/// A modern client, as described by one of its requests.
#[derive(Debug, Clone)]
pub(super) struct ModernClient {
    pub capabilities: Arc<Value>,
    pub client: Option<Arc<Value>>,
    pub level: Option<LogLevel>,
    pub progress: Option<Value>,
}

/// Checks a request, and returns its client. `headers` is `None` over stdio.
pub(super) fn check(
    method: &str,
    params: Option<&Value>,
    headers: Option<&HeaderMap>,
    header_params: &HeaderParams,
) -> Result<ModernClient, RpcError> {
    let meta = Meta::of(params);
    let version = meta.and_then(Meta::version);
    let missing = |key: &str| RpcError::new(CODES.params, format!("The request must have `{key}` in `_meta`"));
    if let Some(headers) = headers
        && version.is_some()
    {
        compare(headers, HEADERS.version, version)?;
    }
    let version = version.ok_or_else(|| missing(META.version))?;
    let capabilities = meta.and_then(|meta| meta.get(META.capabilities)).filter(|given| given.is_object());
    let capabilities = capabilities.ok_or_else(|| missing(META.capabilities))?;
    if Era::of(version) != Some(Era::Modern) {
        return Err(unsupported(version));
    }
    if let Some(headers) = headers {
        compare(headers, HEADERS.method, Some(method))?;
    }
    if REMOVED.contains(&method) {
        return Err(RpcError::new(CODES.method, format!("Method `{method}` does not exist in version {version}")));
    }
    if let Some(headers) = headers {
        compare_name(headers, method, params)?;
        header_params.compare(headers, method, params)?;
    }
    let level = match meta.and_then(|meta| meta.get(META.log_level)) {
        None => None,
        Some(level) => Some(level.as_str().and_then(LogLevel::read).ok_or_else(|| RpcError::new(CODES.params, "Unknown log level"))?),
    };
    Ok(ModernClient {
        capabilities: Arc::new(capabilities.clone()),
        client: meta.and_then(|meta| meta.get(META.client)).cloned().map(Arc::new),
        level,
        progress: meta.and_then(Meta::progress_token).cloned(),
    })
}

/// Returns the supported versions of the modern era.
pub(super) fn versions() -> Vec<&'static str> {
    VERSIONS.iter().filter(|(_, era)| *era == Era::Modern).map(|(version, _)| *version).collect()
}

/// Returns the HTTP status for a JSON-RPC error code.
pub(super) fn status(code: i64) -> StatusCode {
    let bad = [CODES.parse, CODES.request, CODES.params, CODES.headers, CODES.capability, CODES.version];
    match code {
        code if code == CODES.method => StatusCode::NOT_FOUND,
        code if code == super::BUSY => StatusCode::SERVICE_UNAVAILABLE,
        code if bad.contains(&code) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

fn unsupported(version: &str) -> RpcError {
    let data = json!({"supported": versions(), "requested": version});
    RpcError { code: CODES.version, message: format!("Protocol version `{version}` is not supported"), data: Some(data) }
}

/// Checks that a header matches the body, and does not occur twice.
fn compare(headers: &HeaderMap, name: &str, expected: Option<&str>) -> Result<(), RpcError> {
    let given = single(headers, name)?;
    if given.map(str::trim) == expected {
        return Ok(());
    }
    let is = given.map_or_else(|| "is missing".to_owned(), |given| format!("is `{given}`"));
    Err(RpcError::new(CODES.headers, format!("The header `{name}` {is}, but the body says `{}`", expected.unwrap_or_default())))
}

fn compare_name(headers: &HeaderMap, method: &str, params: Option<&Value>) -> Result<(), RpcError> {
    let Some(expected) = name_of(method, params) else { return Ok(()) };
    let given = single(headers, HEADERS.name)?;
    if given.and_then(decode_header).as_deref() == Some(expected) {
        return Ok(());
    }
    let message = format!("The header `{}` is missing, or does not match the body", HEADERS.name);
    Err(RpcError::new(CODES.headers, message))
}

fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else { return Ok(None) };
    match (first.to_str(), values.next()) {
        (Ok(value), None) => Ok(Some(value)),
        _ => Err(RpcError::new(CODES.headers, format!("The header `{name}` occurs twice, or is not text"))),
    }
}

/// The header parameters of tools, from the tool lists that were sent to clients.
#[derive(Debug, Default)]
pub(super) struct HeaderParams(Mutex<HashMap<String, Vec<HeaderParam>>>);

impl HeaderParams {
    /// Remembers the header parameters of the tools in a list that is sent to a client.
    pub fn learn(&self, list: &Value) {
        let tools = list.get("tools").and_then(Value::as_array).into_iter().flatten();
        let mut known = self.0.lock();
        for tool in tools {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            // Clients do not use a tool with invalid header parameters, so they need not be remembered.
            let params = tool.get("inputSchema").and_then(|schema| HeaderParam::of(schema).ok()).unwrap_or_default();
            if params.is_empty() {
                known.remove(name);
            } else if known.len() < MAX_TOOLS || known.contains_key(name) {
                known.insert(name.to_owned(), params);
            }
        }
    }

    fn compare(&self, headers: &HeaderMap, method: &str, params: Option<&Value>) -> Result<(), RpcError> {
        let Some(name) = (method == "tools/call").then(|| name_of(method, params)).flatten() else { return Ok(()) };
        let known = self.0.lock();
        let arguments = params.and_then(|params| params.get("arguments")).unwrap_or(&Value::Null);
        for param in known.get(name).into_iter().flatten() {
            if !param.fits(arguments, single(headers, &param.header)?) {
                let message = format!("The header `{}` does not match the argument `{}`", param.header, param.path.join("."));
                return Err(RpcError::new(CODES.headers, message));
            }
        }
        Ok(())
    }
}
