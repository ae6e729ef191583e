//! An HTTP tool: a definition that was found to be sound, and what it takes to call it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_core::authored::{FieldError, read_parameters};
use helve_core::secret::is_secret_field;
use helve_core::{CallContext, DynTool, Output, Permission, Redactor, Schema, ToolCall, ToolError, ToolKind, ToolSpec};
use helve_fetch::{Fetch, Limits, Request};
use secrecy::SecretString;

use crate::answer::Answer;
use crate::auth::Credentials;
use crate::definition::{Auth, HttpDefinition, Method};
use crate::failure;
use crate::plan::Plan;
use crate::template::has_template;

const DEFAULT_BYTES: u64 = 1 << 20;
const MAX_BYTES: u64 = 64 << 20;

impl HttpDefinition {
    /// Makes the tool. Everything that can be wrong with the definition is found here; its secrets are made known
    /// to the redactor.
    ///
    /// # Errors
    /// Where the definition has a mistake, with the field it is in.
    pub fn tool(&self, location: &str, fetch: &Fetch, redactor: &Redactor) -> Result<Arc<dyn DynTool>, FieldError> {
        redactor.add(self.secrets());
        let input = read_parameters(self.parameters.as_ref(), "/parameters")?;
        let plan = Plan::read(self, &input)?;
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
        let bytes = self.max_bytes.unwrap_or(DEFAULT_BYTES);
        if !(1..=MAX_BYTES).contains(&bytes) {
            return Err(FieldError::new("/max_bytes", format!("an answer may have 1 to {MAX_BYTES} bytes")));
        }
        if let Some((index, status)) = self.retry_on.iter().enumerate().find(|(_, status)| !(400..600).contains(*status)) {
            return Err(FieldError::new(format!("/retry_on/{index}"), format!("{status} is not the status of a failure")));
        }
        let limits = Limits { time: spec.rules().timeout(), bytes, ..Limits::default() };
        Ok(Arc::new(HttpTool {
            plan,
            credentials: Credentials::read(self.auth_method.as_ref(), fetch, redactor)?,
            answer: Answer::read(self.result.as_deref(), self.output.is_some(), self.method == Method::Head)?,
            retry_on: self.retry_on.clone(),
            limits,
            fetch: fetch.clone(),
            redactor: redactor.clone(),
            spec: spec.share(),
        }))
    }

    /// Everything in it that must never be shown: its credentials, and headers and entries of the query whose names
    /// say that they hold some.
    #[must_use]
    pub fn secrets(&self) -> Vec<SecretString> {
        let secret = |name: &str| is_secret_field(name) || name.to_ascii_lowercase().ends_with("key");
        let headers = self.headers.iter().map(|(name, text)| (name, text.as_str()));
        let query = self.query.iter().filter_map(|(name, value)| Some((name, value.as_str()?)));
        let written = headers.chain(query).filter(|(name, text)| secret(name) && !has_template(text));
        // After `Bearer ` or `Basic ` comes what is secret.
        let written = written.flat_map(|(_, text)| [text, text.split_once(' ').map_or("", |(_, rest)| rest.trim())]);
        let auth = self.auth_method.as_ref().map(Auth::secrets).unwrap_or_default();
        auth.into_iter().chain(written.filter(|text| !text.is_empty()).map(SecretString::from)).collect()
    }
}

struct HttpTool {
    spec: Arc<ToolSpec>,
    plan: Plan,
    credentials: Credentials,
    answer: Answer,
    retry_on: Vec<u16>,
    limits: Limits,
    fetch: Fetch,
    redactor: Redactor,
}

impl HttpTool {
    async fn exchange(&self, request: Request) -> Result<Output, ToolError> {
        let response = self.credentials.send(&self.fetch, request).await?;
        if response.status.is_success() {
            self.answer.output(&response, &self.redactor)
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
                () = cx.cancelled().cancelled() => Err(ToolError::cancelled()),
                result = self.exchange(request) => result,
            }
        })
    }
}
