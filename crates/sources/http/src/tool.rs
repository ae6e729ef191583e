//! An HTTP tool: a definition that was found to be sound, and what it takes to call it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_core::authored::{FieldError, read_parameters};
use helve_core::json::canonical;
use helve_core::secret::{MASK, is_secret_field};
use helve_core::{CallContext, Digest, DynTool, Output, Permission, Redactor, Schema, ToolCall, ToolError, ToolKind, ToolSpec};
use helve_fetch::{Fetch, FetchLimits, Request};
use secrecy::SecretString;
use serde_json::{Map, Value, json};

use crate::auth::Credentials;
use crate::definition::{Auth, HttpDefinition, Method};
use crate::failure;
use crate::plan::Plan;
use crate::response::ResponseReader;
use crate::template::has_template;

const DEFAULT_BYTES: u64 = 1 << 20;
const MAX_BYTES: u64 = 64 << 20;

impl HttpDefinition {
    /// What the tool offers: what may be known of it before it may do anything.
    ///
    /// # Errors
    /// Where the name, the parameters or the output have a mistake, with the field it is in.
    pub fn spec(&self, location: &str) -> Result<ToolSpec, FieldError> {
        let input = read_parameters(self.parameters.as_ref(), "/parameters")?;
        let mut spec = ToolSpec::new(self.name.as_str(), self.description.as_str(), input)?
            .with_rules(self.rules.rules(Permission::Auto))
            .with_origin(ToolKind::Native, location);
        if let Some(title) = &self.title {
            spec = spec.with_title(title.as_str());
        }
        if let Some(output) = &self.output {
            let schema = Schema::new(output.clone()).map_err(|error| FieldError::new("/output", error.to_string()))?;
            spec = spec.with_output(schema);
        }
        Ok(spec)
    }

    /// Makes the tool. Everything that can be wrong with the definition is found here; its secrets are made known
    /// to the redactor.
    ///
    /// # Errors
    /// Where the definition has a mistake, with the field it is in.
    pub fn tool(&self, location: &str, fetch: &Fetch, redactor: &Redactor) -> Result<Arc<dyn DynTool>, FieldError> {
        redactor.add_written(self.secrets());
        let spec = self.spec(location)?.with_implementation(self.implementation());
        let plan = Plan::read(self, spec.input())?;
        let bytes = self.max_bytes.unwrap_or(DEFAULT_BYTES);
        if !(1..=MAX_BYTES).contains(&bytes) {
            return Err(FieldError::new("/max_bytes", format!("a response may have 1 to {MAX_BYTES} bytes")));
        }
        if let Some((index, status)) = self.retry_on.iter().enumerate().find(|(_, status)| !(400..600).contains(*status)) {
            return Err(FieldError::new(format!("/retry_on/{index}"), format!("{status} is not the status of a failure")));
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

    /// The hash of what calls do, which an approval is bound to. A new key does the same thing, so credentials are no
    /// part of it.
    fn implementation(&self) -> Digest {
        let auth = self.auth_method.as_ref().map(Auth::outline);
        let method = format!("{:?} {:?}", self.method, self.body_format);
        // Masked by their names, never by their text: or a file could call its own address a secret.
        let shown = |name: &str, value: Value| if is_secret_field(name) { Value::from(MASK) } else { value };
        let query: Map<String, Value> = self.query.iter().map(|(name, value)| (name.clone(), shown(name, value.clone()))).collect();
        let headers: Map<String, Value> = self.headers.iter().map(|(name, value)| (name.clone(), shown(name, json!(value)))).collect();
        let what = json!([method, self.api_url, auth, query, headers, self.body, self.result]);
        Digest::of([canonical(&what).as_bytes()])
    }

    /// Everything in it that must never be shown: its credentials, and what stands in the address, the query, the
    /// headers or the body under a name that says so.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretString> {
        let in_address = self.api_url.split_once('?').map_or("", |(_, query)| query);
        let mut named: Vec<(String, String)> = form_urlencoded::parse(in_address.as_bytes()).into_owned().collect();
        named.extend(self.headers.clone());
        collect_texts(&Value::Object(self.query.clone()), "", &mut named);
        self.body.iter().for_each(|body| collect_texts(body, "", &mut named));
        named.retain(|(name, text)| (is_secret_field(name) || name.to_ascii_lowercase().ends_with("key")) && !has_template(text));
        // After `Bearer ` or `Basic ` comes what is secret.
        let written = named.iter().flat_map(|(_, text)| [Some(text.as_str()), text.split_once(' ').map(|(_, rest)| rest.trim())]);
        let auth = self.auth_method.as_ref().map(Auth::secrets).unwrap_or_default();
        auth.into_iter().chain(written.flatten().map(SecretString::from)).collect()
    }
}

/// All texts in a value, with the names under which they stand.
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
