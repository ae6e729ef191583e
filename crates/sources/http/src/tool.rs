//! Creates HTTP tools from definitions, and runs their calls.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_core::authored::{FieldError, read_spec};
use helve_core::json::canonical;
use helve_core::secret::{MASK, is_secret_field};
use helve_core::{CallContext, Digest, DynTool, Output, Permission, Redactor, ToolCall, ToolError, ToolKind, ToolSpec};
use helve_fetch::{Fetch, FetchLimits, Request};
use secrecy::SecretString;
use serde_json::{Map, Value, json};

use crate::auth::Credentials;
use crate::definition::{Auth, HttpDefinition, Method};
use crate::failure;
use crate::plan::Plan;
use crate::response::ResponseReader;
use crate::template::has_template;

/// Default for the maximum size of a response, in bytes.
const DEFAULT_BYTES: u64 = 1 << 20;
/// Largest allowed value of `max_bytes`.
const MAX_BYTES: u64 = 64 << 20;

impl HttpDefinition {
    /// Returns the tool's spec, which can be read before the tool is trusted. `location` tells people where the tool is defined.
    ///
    /// # Errors
    /// Returns an error if the name, the parameters or the output schema are invalid.
    pub fn spec(&self, location: &str) -> Result<ToolSpec, FieldError> {
        let spec = read_spec(&self.name, self.title.as_deref(), &self.description, self.parameters.as_ref(), self.output.as_ref())?;
        Ok(spec.with_rules(self.rules.rules(Permission::Auto)).with_origin(ToolKind::Native, location))
    }

    /// Creates the tool, and adds its secrets to the redactor. `location` tells people where the tool is defined.
    ///
    /// # Errors
    /// Returns the first invalid field of the definition.
    pub fn tool(&self, location: &str, fetch: &Fetch, redactor: &Redactor) -> Result<Arc<dyn DynTool>, FieldError> {
        redactor.add_written(self.secrets());
        let spec = self.spec(location)?.with_implementation(self.implementation());
        let plan = Plan::read(self, spec.input())?;
        let bytes = self.max_bytes.unwrap_or(DEFAULT_BYTES);
        if !(1..=MAX_BYTES).contains(&bytes) {
            return Err(FieldError::new("/max_bytes", format!("must be between 1 and {MAX_BYTES}")));
        }
        if let Some((index, status)) = self.retry_on.iter().enumerate().find(|(_, status)| !(400..600).contains(*status)) {
            return Err(FieldError::new(format!("/retry_on/{index}"), format!("{status} is not an error status (400 to 599)")));
        }
        let limits = FetchLimits { time: spec.rules().attempt_timeout(), bytes, ..FetchLimits::default() };
        Ok(Arc::new(HttpTool {
            plan,
            credentials: Credentials::read(self.auth_method.as_ref(), fetch, redactor)?,
            response: ResponseReader::read(self.result.as_deref(), self.output.is_some(), self.method == Method::Head)?,
            retry_on: self.retry_on.clone(),
            limits,
            fetch: fetch.clone(),
            redactor: redactor.clone(),
            spec: spec.share(),
        }))
    }

    /// Returns a digest of what calls do, to which approvals are bound. The digest does not cover credentials, so that a new key does not
    /// invalidate approvals.
    fn implementation(&self) -> Digest {
        let auth = self.auth_method.as_ref().map(Auth::outline);
        let method = format!("{:?} {:?}", self.method, self.body_format);
        // Mask values by name, never by content: otherwise a file could declare its own URL a secret.
        let shown = |name: &str, value: Value| if is_secret_field(name) { Value::from(MASK) } else { value };
        let query: Map<String, Value> = self.query.iter().map(|(name, value)| (name.clone(), shown(name, value.clone()))).collect();
        let headers: Map<String, Value> = self.headers.iter().map(|(name, value)| (name.clone(), shown(name, json!(value)))).collect();
        let what = json!([method, self.api_url, auth, query, headers, self.body, self.result]);
        Digest::of([canonical(&what).as_bytes()])
    }

    /// Returns all secrets in the definition: credentials, and values in the URL, query, headers and body whose names look like secrets.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretString> {
        let in_address = self.api_url.split_once('?').map_or("", |(_, query)| query);
        let mut named: Vec<(String, String)> = form_urlencoded::parse(in_address.as_bytes()).into_owned().collect();
        named.extend(self.headers.clone());
        collect_texts(&Value::Object(self.query.clone()), "", &mut named);
        self.body.iter().for_each(|body| collect_texts(body, "", &mut named));
        named.retain(|(name, text)| (is_secret_field(name) || name.to_ascii_lowercase().ends_with("key")) && !has_template(text));
        // Also add the part after a scheme such as `Bearer`, which is the secret itself.
        let written = named.iter().flat_map(|(_, text)| [Some(text.as_str()), text.split_once(' ').map(|(_, rest)| rest.trim())]);
        let auth = self.auth_method.as_ref().map(Auth::secrets).unwrap_or_default();
        auth.into_iter().chain(written.flatten().map(SecretString::from)).collect()
    }
}

/// Adds all strings in a value to `texts`, with the names of their fields.
fn collect_texts(value: &Value, name: &str, texts: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => texts.push((name.to_owned(), text.clone())),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, name, texts)),
        Value::Object(fields) => fields.iter().for_each(|(name, field)| collect_texts(field, name, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

struct HttpTool {
    spec: Arc<ToolSpec>,
    plan: Plan,
    credentials: Credentials,
    response: ResponseReader,
    retry_on: Vec<u16>,
    limits: FetchLimits,
    fetch: Fetch,
    redactor: Redactor,
}

impl HttpTool {
    async fn exchange(&self, request: Request) -> Result<Output, ToolError> {
        let response = self.credentials.send(&self.fetch, request).await?;
        if response.status.is_success() {
            self.response.output(&response, &self.redactor)
        } else {
            Err(failure::of_status(&response, &self.retry_on, &self.redactor))
        }
    }
}

impl DynTool for HttpTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let mut request = self.plan.request(&call.arguments)?;
            request.limits = self.limits;
            tokio::select! {
                biased;
                () = cx.cancelled() => Err(ToolError::cancelled()),
                result = self.exchange(request) => result,
            }
        })
    }
}
