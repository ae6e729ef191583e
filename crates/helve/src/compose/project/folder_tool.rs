//! Tools of the folder whose files use variables. The spec comes from the file without expanding variables. The implementation needs
//! their values: Helve creates it at once in a trusted folder, otherwise for each call that a person consents to.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use helve_command::CommandDefinition;
use helve_core::authored::FieldError;
use helve_core::json::canonical;
use helve_core::{CallContext, Denial, Digest, DynTool, Output, Redactor, ToolCall, ToolError, ToolSpec};
use helve_http::{HttpDefinition, OpenApiDefinition};
use helve_project::{Diagnostic, FileKind as Kind, Gate, ProjectFile, Severity};
use serde_json::Value;

use super::capability;
use super::document::Document;
use super::load::LoadContext;

type CreatedTool = Result<Arc<dyn DynTool>, Box<Diagnostic>>;

/// A tool of the folder whose file uses variables.
pub(super) struct FolderTool {
    spec: Arc<ToolSpec>,
    create: Box<dyn Fn() -> CreatedTool + Send + Sync>,
    /// The digest of the tool's files when the tool was loaded, and a function that computes the current digest.
    files: Option<(Digest, Box<dyn Fn() -> Digest + Send + Sync>)>,
}

impl FolderTool {
    /// Creates a command tool, from the file as it is written and as it passed the gate.
    pub(super) fn command(gate: Gate, written: &ProjectFile, passed: &ProjectFile, root: &Path, context: &LoadContext<'_>) -> CreatedTool {
        let (folder, redactor) = (root.to_owned(), context.redactor.clone());
        let read = |file: &ProjectFile, folder: &Path, redactor: &Redactor| {
            file.teach(redactor);
            let definition: CommandDefinition = file.read()?;
            definition.tool(folder, file.path(), redactor).map_err(|error| wrong(file, &error))
        };
        if written.variables(Kind::Command).is_empty() {
            return read(passed, &folder, &redactor);
        }
        // An unexpanded variable is not a secret, so the redactor is not used.
        let unexpanded = written.pass(Kind::Command, Gate::Closed).and_then(|file| read(&file, root, &Redactor::default()));
        let (at, file) = (folder.clone(), written.clone());
        let files = move || capability::of_file(Kind::Command, &file, None, &at).first().map_or_else(|| Digest::of([]), |one| one.digest);
        let loaded = files();
        let implementation = Digest::of([root.as_os_str().as_encoded_bytes(), loaded.as_bytes().as_slice()]);
        let spec = unexpanded.map(|tool| ToolSpec::clone(tool.spec()).with_implementation(implementation).share());
        let create = move |file: &ProjectFile| read(file, &folder, &redactor);
        let tool = Self::with_variables(gate, Kind::Command, written, passed, spec, create)?;
        Ok(Arc::new(Self { files: Some((loaded, Box::new(files))), ..tool }))
    }

    /// Creates an HTTP tool, from the file as it is written and as it passed the gate.
    pub(super) fn http(gate: Gate, written: &ProjectFile, passed: &ProjectFile, context: &LoadContext<'_>) -> CreatedTool {
        let (fetch, redactor) = (context.fetch.clone(), context.redactor.clone());
        let create = move |file: &ProjectFile| {
            file.teach(&redactor);
            let definition: HttpDefinition = file.read()?;
            definition.tool(file.path(), &fetch, &redactor).map_err(|error| wrong(file, &error))
        };
        if written.variables(Kind::Native).is_empty() {
            return create(passed);
        }
        let spec = written.pass(Kind::Native, Gate::Closed).and_then(|file| {
            let definition: HttpDefinition = file.read()?;
            let spec = definition.spec(file.path()).map_err(|error| wrong(&file, &error))?;
            Ok(spec.with_implementation(implementation(written, &definition.name, None)).share())
        });
        Self::with_variables(gate, Kind::Native, written, passed, spec, create).map(|tool| Arc::new(tool) as Arc<dyn DynTool>)
    }

    /// Creates one tool of an OpenAPI document.
    pub(super) fn imported(
        gate: Gate,
        tool: &HttpDefinition,
        written: &ProjectFile,
        document: &Document,
        context: &LoadContext<'_>,
    ) -> Result<Arc<dyn DynTool>, FieldError> {
        let spec = tool.spec(written.path())?.with_implementation(implementation(written, &tool.name, document.digest)).share();
        let (fetch, redactor) = (context.fetch.clone(), context.redactor.clone());
        if gate == Gate::Open {
            let tool = tool.tool(written.path(), &fetch, &redactor)?;
            return Ok(Arc::new(Self { spec, create: Box::new(move || Ok(tool.clone())), files: None }));
        }
        let (name, written, document) = (tool.name.clone(), written.clone(), document.content.clone());
        let create = move || {
            let file = written.pass(Kind::Native, Gate::Open)?;
            file.teach(&redactor);
            let definition: OpenApiDefinition = file.read()?;
            let no_operation = |message: String| wrong(&file, &FieldError::new("/openapi", message));
            let document = document.as_ref().map_err(|message| no_operation(message.clone()))?;
            let imported = helve_http::import(&definition, document).map_err(|error| wrong(&file, &error))?;
            let found = imported.tools.iter().find(|tool| tool.name == name);
            let tool = found.ok_or_else(|| no_operation(format!("there is no operation `{name}`")))?;
            tool.tool(file.path(), &fetch, &redactor).map_err(|error| wrong(&file, &error))
        };
        Ok(Arc::new(Self { spec, create: Box::new(create), files: None }))
    }

    fn with_variables(
        gate: Gate,
        kind: Kind,
        written: &ProjectFile,
        passed: &ProjectFile,
        spec: Result<Arc<ToolSpec>, Box<Diagnostic>>,
        create: impl Fn(&ProjectFile) -> CreatedTool + Send + Sync + 'static,
    ) -> Result<Self, Box<Diagnostic>> {
        if gate == Gate::Closed {
            let written = written.clone();
            let create = move || create(&written.pass(kind, Gate::Open)?);
            return Ok(Self { spec: spec?, create: Box::new(create), files: None });
        }
        let tool = create(passed)?;
        // The written file has no spec if it has a variable in a field that is not a string; the created tool has one.
        let spec = spec.unwrap_or_else(|_| tool.spec().clone());
        Ok(Self { spec, create: Box::new(move || Ok(tool.clone())), files: None })
    }
}

/// Returns the digest of the implementation, which approvals are bound to. It contains the names of variables, not their values, so that a
/// new API key does not change it.
fn implementation(written: &ProjectFile, tool: &str, document: Option<Digest>) -> Digest {
    let says = canonical(&Value::Object(written.counted(Kind::Native)));
    Digest::of([tool.as_bytes(), says.as_bytes(), document.as_ref().map_or(&[][..], |digest| digest.as_bytes())])
}

fn wrong(file: &ProjectFile, error: &FieldError) -> Box<Diagnostic> {
    Box::new(file.diagnose(Severity::Error, error))
}

/// An untrusted tool: agents need approval for each call to it.
pub(super) struct UntrustedTool {
    pub(super) tool: Arc<dyn DynTool>,
    pub(super) because: String,
}

impl DynTool for UntrustedTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        self.tool.spec()
    }

    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        self.tool.call(call, cx)
    }

    fn validate(&self, call: &ToolCall) -> Result<(), ToolError> {
        self.tool.validate(call)
    }

    fn held_because(&self) -> Option<&str> {
        Some(&self.because)
    }

    fn forget(&self, call: &ToolCall, state: &Value) {
        self.tool.forget(call, state);
    }
}

impl DynTool for FolderTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn call<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let tool = (self.create)().map_err(|diagnostic| ToolError::failed(diagnostic.message.clone()))?;
            // The tool was created just now, possibly from other files than those that were approved.
            if self.files.as_ref().is_some_and(|(loaded, now)| *loaded != now()) {
                let message = "not started: the files of this tool have changed since it was loaded; `helve trust` shows what would run";
                return Err(ToolError::denied(Denial::Policy, message));
            }
            tool.call(call, cx).await
        })
    }
}
