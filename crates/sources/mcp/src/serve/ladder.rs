//! What a request of the newer era must say before it is worked on, in the order in which it is looked at.

use std::collections::HashMap;
use std::sync::Arc;

use helve_mcp_wire::{CODES, Era, HEADERS, HeaderParam, META, RpcError, VERSIONS, decode_header, name_of};
use hyper::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::hub::error;
use super::level::Level;

/// Methods of the older era that are gone.
const REMOVED: [&str; 5] = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
/// Tools whose headers are remembered.
const MAX_TOOLS: usize = 10_000;

/// Who asks, as a request of the newer era says.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub capabilities: Arc<Value>,
    pub client: Option<Arc<Value>>,
    pub level: Option<Level>,
    pub progress: Option<Value>,
}

/// Looks at a request. Over stdio there are no headers.
pub(super) fn climb(method: &str, params: Option<&Value>, headers: Option<&HeaderMap>, mirrored: &Mirrored) -> Result<Caller, RpcError> {
    let meta = meta(params);
    let version = meta.and_then(|meta| meta.get(META.version)?.as_str());
    let missing = |key: &str| error(CODES.params, format!("The request must have `{key}` in `_meta`"));
    if let Some(headers) = headers
        && version.is_some()
    {
        compare(headers, HEADERS.version, version)?;
    }
    let version = version.ok_or_else(|| missing(META.version))?;
    let capabilities = meta.and_then(|meta| meta.get(META.capabilities)).filter(|given| given.is_object());
    let capabilities = capabilities.ok_or_else(|| missing(META.capabilities))?;
    if Era::of(version) != Some(Era::Modern) {
        return Err(unspoken(version));
    }
    if let Some(headers) = headers {
        compare(headers, HEADERS.method, Some(method))?;
    }
    if REMOVED.contains(&method) {
        return Err(error(CODES.method, format!("There is no method `{method}` in version {version}")));
    }
    if let Some(headers) = headers {
        compare_name(headers, method, params)?;
        mirrored.compare(headers, method, params)?;
    }
    let level = match meta.and_then(|meta| meta.get(META.log_level)) {
        None => None,
        Some(level) => Some(level.as_str().and_then(Level::read).ok_or_else(|| error(CODES.params, "There is no such level of logs"))?),
    };
    Ok(Caller {
        capabilities: Arc::new(capabilities.clone()),
        client: meta.and_then(|meta| meta.get(META.client)).cloned().map(Arc::new),
        level,
        progress: progress(params),
    })
}

/// The `_meta` of a request.
pub(super) fn meta(params: Option<&Value>) -> Option<&Map<String, Value>> {
    params?.get("_meta")?.as_object()
}

/// How the client names the progress of a request.
pub(super) fn progress(params: Option<&Value>) -> Option<Value> {
    meta(params)?.get(META.progress).filter(|token| token.is_string() || token.is_i64() || token.is_u64()).cloned()
}

/// The versions of the newer era.
pub(super) fn versions() -> Vec<&'static str> {
    VERSIONS.iter().filter(|(_, era)| *era == Era::Modern).map(|(version, _)| *version).collect()
}

/// The status that goes with the code of an error.
pub(super) fn status(code: i64) -> StatusCode {
    let bad = [CODES.parse, CODES.request, CODES.params, CODES.headers, CODES.capability, CODES.version];
    match code {
        code if code == CODES.method => StatusCode::NOT_FOUND,
        code if code == super::BUSY => StatusCode::SERVICE_UNAVAILABLE,
        code if bad.contains(&code) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

fn unspoken(version: &str) -> RpcError {
    let data = json!({"supported": versions(), "requested": version});
    RpcError { code: CODES.version, message: format!("Version `{version}` is not spoken here"), data: Some(data) }
}

/// Whether a header says the same as the body. One that is there twice says nothing.
fn compare(headers: &HeaderMap, name: &str, expected: Option<&str>) -> Result<(), RpcError> {
    let given = single(headers, name)?;
    if given.map(str::trim) == expected {
        return Ok(());
    }
    let is = given.map_or_else(|| "is missing".to_owned(), |given| format!("is `{given}`"));
    Err(error(CODES.headers, format!("The header `{name}` {is}, but the body says `{}`", expected.unwrap_or_default())))
}

fn compare_name(headers: &HeaderMap, method: &str, params: Option<&Value>) -> Result<(), RpcError> {
    let Some(expected) = name_of(method, params) else { return Ok(()) };
    let given = single(headers, HEADERS.name)?;
    if given.and_then(decode_header).as_deref() == Some(expected) {
        return Ok(());
    }
    let message = format!("The header `{}` is missing, or says something else than the body", HEADERS.name);
    Err(error(CODES.headers, message))
}

fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else { return Ok(None) };
    match (first.to_str(), values.next()) {
        (Ok(value), None) => Ok(Some(value)),
        _ => Err(error(CODES.headers, format!("The header `{name}` is there twice, or is no text"))),
    }
}

/// Tools whose arguments also stand in headers, as the last lists of tools said.
#[derive(Debug, Default)]
pub(super) struct Mirrored(Mutex<HashMap<String, Vec<HeaderParam>>>);

impl Mirrored {
    /// Remembers the tools of a list that is given out.
    pub fn learn(&self, list: &Value) {
        let tools = list.get("tools").and_then(Value::as_array).into_iter().flatten();
        let mut known = self.0.lock();
        for tool in tools {
            let Some(name) = tool.get("name").and_then(Value::as_str) else { continue };
            // Clients do not use a tool that breaks the rules, so there is nothing to compare.
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
                let message = format!("The header `{}` does not say the same as the argument `{}`", param.header, param.path.join("."));
                return Err(error(CODES.headers, message));
            }
        }
        Ok(())
    }
}
