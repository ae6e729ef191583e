//! Loads a project's files (tools, servers, tool sets, agents and settings), and collects diagnostics.
//!
//! First, all files are read without expanding variables. Then the trust decisions about their contents determine, file by file, whether
//! the gate is open. An invalid file does not affect the others.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helve_core::authored::FieldError;
use helve_core::{DynTool, Redactor};
use helve_fetch::Fetch;
use helve_http::{OpenApiDefinition, RemoteDefinition};
use helve_mcp::McpDefinition;
use helve_project::{
    AgentFile, Capability, Diagnostic, FileKind as Kind, Fingerprint, Gate, HelveFile, ProjectFile, ProjectFolder, SetFile, Severity,
    Trust, TrustStore, discover, has_variable,
};
use secrecy::{ExposeSecret, SecretString};

use super::capability;
use super::document::Document;
use super::folder_tool::{FolderTool, UntrustedTool};

/// The reason why agents need approval for the tools of an untrusted folder.
pub(super) const UNTRUSTED: &str = "the folder is not trusted; `helve trust` shows what it would do";
/// The reason why agents need approval for a tool that is new or changed in a trusted folder.
const CHANGED: &str = "this tool is new or has changed since the folder was trusted; `helve trust` shows what it would do";
const REVIEW: &str = "review and trust the folder with `helve trust`";
/// Maximum number of attempts to load the files if they change meanwhile.
const ATTEMPTS: usize = 3;

/// The contents of a project's files.
#[derive(Default)]
pub(in crate::compose) struct LoadedProject {
    pub(in crate::compose) root: PathBuf,
    pub(super) fingerprints: Fingerprints,
    pub(in crate::compose) config: HelveFile,
    pub(super) commands: FolderTools,
    pub(super) native: FolderTools,
    pub(in crate::compose) remotes: Vec<(RemoteDefinition, ProjectFile)>,
    pub(in crate::compose) servers: Vec<(McpDefinition, ProjectFile)>,
    pub(super) sets: Vec<(SetFile, ProjectFile)>,
    pub(in crate::compose) agents: Vec<(AgentFile, ProjectFile)>,
    /// Names of agents that several files define. None of these agents is used.
    refused: Vec<String>,
    pub(in crate::compose) config_file: Option<ProjectFile>,
    /// Whether the settings are invalid, so that their rules are unknown.
    pub(super) config_is_broken: bool,
    /// The capabilities of the folder: what it can do once it is trusted.
    pub(super) capabilities: Vec<Capability>,
    /// Whether the folder is trusted; `None` if the stored decisions cannot be read.
    pub(super) trust: Option<Trust>,
    /// Files of tools and servers that are not trusted in their current form.
    pub(super) waiting: BTreeSet<String>,
    /// Settings that are not used until the folder is trusted: file and field.
    pub(super) sealed: Vec<(Arc<str>, String)>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Whether the folder contains any project file.
    pub(super) is_project: bool,
}

/// Fingerprints of the files, computed before the files were read, to detect changes.
#[derive(Default, Clone)]
pub(super) struct Fingerprints {
    pub(super) folder: Fingerprint,
    /// Files outside the usual folders that project files refer to.
    pub(super) extra_files: Vec<PathBuf>,
    pub(super) extra: Fingerprint,
    /// The fingerprint of the stored trust decisions, which another process may change.
    pub(super) decisions: Fingerprint,
}

/// The tools of one source of the folder.
#[derive(Default)]
pub(super) struct FolderTools {
    pub(super) trusted: Vec<Arc<dyn DynTool>>,
    pub(super) untrusted: Vec<Arc<dyn DynTool>>,
}

impl FolderTools {
    fn push(&mut self, untrusted: Option<String>, tool: Arc<dyn DynTool>) {
        match untrusted {
            None => self.trusted.push(tool),
            Some(because) => self.untrusted.push(Arc::new(UntrustedTool { tool, because })),
        }
    }
}

/// One file before variables are expanded, with the OpenAPI document that it refers to.
struct SourceFile {
    kind: Kind,
    file: Result<ProjectFile, Box<Diagnostic>>,
    document: Option<Document>,
}

/// The shared parts that are needed to create tools.
pub(super) struct LoadContext<'a> {
    pub(super) fetch: &'a Fetch,
    pub(super) redactor: &'a Redactor,
}

impl LoadContext<'_> {
    /// Adds the secrets that a file contains to the redactor. An unexpanded variable is not a secret.
    fn redact(&self, written: impl IntoIterator<Item = SecretString>) {
        self.redactor.add_written(written.into_iter().filter(|secret| !has_variable(secret.expose_secret())));
    }
}

/// Loads all files of a project. Without `decisions`, no file is trusted.
pub(super) fn load(folder: &Path, context: &LoadContext<'_>, decisions: Option<&TrustStore>) -> std::io::Result<LoadedProject> {
    let mut attempt = 1;
    loop {
        let (mut loaded, written) = read(folder)?;
        loaded.trust = decisions.map(|decisions| decisions.of(&loaded.root, &loaded.capabilities));
        let trusted = |capability: &Capability| decisions.is_some_and(|decisions| decisions.change(&loaded.root, capability).is_none());
        let waiting = loaded.capabilities.iter().filter(|capability| loaded.gate() == Gate::Closed || !trusted(capability));
        loaded.waiting = waiting.map(|capability| capability.file.clone()).collect();
        if let Some(decisions) = decisions.filter(|_| loaded.trust == Some(Trust::Changed)) {
            loaded.diagnostics.push(trust_lost(decisions, &loaded));
        }
        loaded.pass(&written, context);
        // A script that changed while the files were loaded is not the one that was trusted.
        if loaded.gate() == Gate::Closed || capabilities(&written, &loaded.root) == loaded.capabilities {
            return Ok(loaded);
        }
        if attempt == ATTEMPTS {
            return Err(std::io::Error::other("the files of the project keep changing while Helve loads them; try again"));
        }
        attempt += 1;
    }
}

/// Reads the files without expanding variables.
fn read(folder: &Path) -> std::io::Result<(LoadedProject, Vec<SourceFile>)> {
    let ProjectFolder { root, files, diagnostics } = discover(folder)?;
    // Computed first, so that a change during the reading is detected.
    let fingerprints = Fingerprints { folder: Fingerprint::of(&root), ..Fingerprints::default() };
    let mut loaded = LoadedProject { root, fingerprints, diagnostics, is_project: !files.is_empty(), ..LoadedProject::default() };
    let mut written = Vec::with_capacity(files.len());
    for (kind, path) in files {
        let file = ProjectFile::open(&loaded.root, &path);
        let with_document = file.as_ref().ok().filter(|_| kind == Kind::Native);
        let document = with_document.and_then(|file| Document::of(file, &loaded.root));
        written.push(SourceFile { kind, file, document });
    }
    loaded.capabilities = capabilities(&written, &loaded.root);
    let extra = loaded.capabilities.iter().flat_map(|capability| capability.files.keys());
    loaded.fingerprints.extra_files = extra.map(|file| loaded.root.join(file)).collect();
    loaded.fingerprints.extra = Fingerprint::of_files(&loaded.fingerprints.extra_files);
    Ok((loaded, written))
}

fn capabilities(written: &[SourceFile], root: &Path) -> Vec<Capability> {
    let readable = written.iter().filter_map(|one| Some((one.kind, one.file.as_ref().ok()?, one.document.as_ref())));
    let members = capability::of_members(readable.clone().map(|(kind, file, _)| (kind, file)));
    let files = readable.flat_map(|(kind, file, document)| capability::of_file(kind, file, document, root));
    files.chain(members).chain(capability::of_store(root)).collect()
}

impl LoadedProject {
    /// Returns the gate for the settings, agents and tool sets of the folder.
    pub(in crate::compose) fn gate(&self) -> Gate {
        if self.trust.is_some_and(Trust::allows) { Gate::Open } else { Gate::Closed }
    }

    /// Returns the gate for a file.
    pub(in crate::compose) fn gate_of(&self, file: &str) -> Gate {
        if self.waiting.contains(file) { Gate::Closed } else { self.gate() }
    }

    /// Returns the file that defines the server `name`.
    fn server(&self, name: &str) -> Option<&ProjectFile> {
        let remote = self.remotes.iter().find(|(known, _)| known.name == name).map(|(_, file)| file);
        self.servers.iter().find(|(known, _)| known.name == name).map(|(_, file)| file).or(remote)
    }

    /// Returns the reason why agents need approval for the tools of a file, with a description of what a call does. Returns `None` if the
    /// file is trusted.
    fn untrusted(&self, file: &ProjectFile) -> Option<String> {
        if self.gate_of(file.path()) == Gate::Open {
            return None;
        }
        let why = if self.gate() == Gate::Open { CHANGED } else { UNTRUSTED };
        let capability = self.capabilities.iter().find(|capability| *capability.file == **file.path());
        Some(capability.map_or_else(|| why.to_owned(), |capability| format!("{why}. What this call does: {}", capability.what)))
    }

    /// Loads the files; the gate of each file decides which of its fields take effect.
    fn pass(&mut self, written: &[SourceFile], context: &LoadContext<'_>) {
        if self.waiting.contains(capability::STORE) {
            let message = format!("the store {} is not used: it is not trusted", capability::STORE);
            self.diagnostics.push(Diagnostic::general(Severity::Warning, message).hint(REVIEW));
        }
        // Trusted files come first, so that no other file takes their names.
        let partly = self.gate() == Gate::Open;
        let is_waiting = |one: &&SourceFile| partly && one.file.as_ref().is_ok_and(|file| self.waiting.contains(&**file.path()));
        let (waiting, trusted): (Vec<_>, Vec<_>) = written.iter().partition(is_waiting);
        for one in trusted.into_iter().chain(waiting) {
            let added = match &one.file {
                Ok(file) => self.add(one.kind, file, one.document.as_ref(), context),
                Err(diagnostic) => Err(diagnostic.clone()),
            };
            if let Err(diagnostic) = added {
                self.config_is_broken |= one.kind == Kind::Config;
                self.diagnostics.push(*diagnostic);
            }
        }
    }

    fn add(
        &mut self,
        kind: Kind,
        written: &ProjectFile,
        document: Option<&Document>,
        context: &LoadContext<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let gate = self.gate_of(written.path());
        let file = written.pass(kind, gate)?;
        file.teach(context.redactor);
        let wrong = |error: FieldError| Box::new(file.diagnose(Severity::Error, &error));
        self.warn(kind, written);
        match kind {
            Kind::Config => {
                if written.variables(kind).is_empty() {
                    // Reports errors in untrusted fields now. A field with a variable cannot be checked before it is expanded.
                    written.read::<HelveFile>()?;
                }
                self.config = file.read()?;
                context.redact(self.config.secrets());
                self.config_file = Some(file);
            }
            Kind::Command => self.commands.push(self.untrusted(written), FolderTool::command(gate, written, &file, &self.root, context)?),
            Kind::Native => match document {
                Some(document) => self.import(written, &file, document, context)?,
                None => self.native.push(self.untrusted(written), FolderTool::http(gate, written, &file, context)?),
            },
            Kind::Mcp if file.has("mcp_server_url") => {
                let definition: RemoteDefinition = file.read()?;
                context.redact(definition.secrets());
                if let Some(earlier) = self.server(&definition.name) {
                    return Err(wrong(duplicate("server", &definition.name, earlier)));
                }
                self.remotes.push((definition, file));
            }
            Kind::Mcp => {
                let definition: McpDefinition = file.read()?;
                context.redact(definition.secrets());
                if let Some(earlier) = self.server(&definition.name) {
                    return Err(wrong(duplicate("server", &definition.name, earlier)));
                }
                if gate == Gate::Open || written.variables(kind).is_empty() {
                    definition.check(&self.root).map_err(wrong)?;
                }
                self.servers.push((definition, file));
            }
            Kind::Set => {
                let set: SetFile = file.read()?;
                if set.name.trim().is_empty() {
                    return Err(wrong(FieldError::new("/name", "the `name` of the tool set is empty")));
                }
                if let Some((_, earlier)) = self.sets.iter().find(|(known, _)| known.name == set.name) {
                    return Err(wrong(duplicate("tool set", &set.name, earlier)));
                }
                self.sets.push((set, file));
            }
            Kind::Agent => self.add_agent(file)?,
        }
        Ok(())
    }

    fn add_agent(&mut self, file: ProjectFile) -> Result<(), Box<Diagnostic>> {
        let wrong = |error: FieldError| Box::new(file.diagnose(Severity::Error, &error));
        let agent: AgentFile = file.read()?;
        check_agent(&agent).map_err(wrong)?;
        if let Some(place) = self.agents.iter().position(|(known, _)| known.name == agent.name) {
            // Neither is used: their order must not decide which model and limits apply.
            let (_, earlier) = self.agents.remove(place);
            self.diagnostics.push(earlier.diagnose(Severity::Error, &duplicate("agent", &agent.name, &file)));
            self.refused.push(agent.name.clone());
            return Err(wrong(duplicate("agent", &agent.name, &earlier)));
        }
        if self.refused.contains(&agent.name) {
            return Err(wrong(FieldError::new("/name", format!("other files also define an agent named `{}`", agent.name))));
        }
        self.agents.push((agent, file));
        Ok(())
    }

    /// Reports parts of a file that have no effect: untrusted settings, and variables in text that models read.
    fn warn(&mut self, kind: Kind, file: &ProjectFile) {
        if self.gate() == Gate::Open && self.waiting.contains(&**file.path()) && kind != Kind::Mcp {
            let message = "new or changed since the folder was trusted: agents need approval to use it";
            self.diagnostics.push(file.diagnose(Severity::Warning, &FieldError::new("", message).hint(REVIEW)));
        }
        if self.gate_of(file.path()) == Gate::Closed {
            let sealed = file.sealed(kind);
            if let Some(first) = sealed.first() {
                let message = format!("not used because the folder is not trusted: {}", sealed.join(", "));
                let error = FieldError::new(format!("/{first}"), message).hint(REVIEW);
                self.diagnostics.push(file.diagnose(Severity::Warning, &error));
            }
            self.sealed.extend(sealed.into_iter().map(|field| (file.path().clone(), field)));
        }
        for pointer in file.unexpanded(kind) {
            let error = FieldError::new(pointer, "variables are not expanded in text that models read, nor in rules");
            self.diagnostics.push(file.diagnose(Severity::Warning, &error.hint("write `$${` for a literal `${`")));
        }
    }

    /// Imports the tools of an OpenAPI document.
    fn import(
        &mut self,
        written: &ProjectFile,
        file: &ProjectFile,
        document: &Document,
        context: &LoadContext<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let wrong = |error: FieldError| Box::new(file.diagnose(Severity::Error, &error));
        let parsed = document.content.as_ref().map_err(|message| wrong(FieldError::new("/openapi", message)))?;
        let mut definition: OpenApiDefinition = file.read()?;
        context.redact(definition.auth_method.iter().flat_map(helve_http::Auth::secrets));
        let (gate, reads_variables) = (self.gate_of(written.path()), !written.variables(Kind::Native).is_empty());
        if reads_variables && gate == Gate::Closed {
            definition.api_url = definition.api_url.map(|_| UNKNOWN_URL.to_owned());
        }
        let imported = helve_http::import(&definition, parsed).map_err(wrong)?;
        for tool in &imported.tools {
            let tool = if reads_variables {
                FolderTool::imported(gate, tool, written, document, context).map_err(wrong)?
            } else {
                tool.tool(file.path(), context.fetch, context.redactor).map_err(wrong)?
            };
            self.native.push(self.untrusted(written), tool);
        }
        for skipped in &imported.skipped {
            tracing::info!(file = %file.path(), operation = %skipped.operation, reason = %skipped.reason, "operation not imported");
        }
        Ok(())
    }
}

/// Reports which changed settings made a trusted folder untrusted.
fn trust_lost(decisions: &TrustStore, loaded: &LoadedProject) -> Diagnostic {
    let settings = loaded.capabilities.iter().filter(|one| one.is_setting && decisions.change(&loaded.root, one).is_some());
    let missing = decisions.missing(&loaded.root, &loaded.capabilities);
    let names: Vec<String> = settings.chain(&missing).map(|one| format!("{} ({})", one.name, one.file)).collect();
    let what = if names.is_empty() { "everything in the folder".to_owned() } else { names.join(", ") };
    let message = format!("changed since the folder was trusted: {what}. The whole folder is not trusted until you trust it again");
    Diagnostic::general(Severity::Warning, message).hint(REVIEW)
}

/// The placeholder for the URL of an imported service while Helve may not read the variables in it.
const UNKNOWN_URL: &str = "https://not-known-before-trust.invalid";

fn duplicate(what: &str, name: &str, earlier: &ProjectFile) -> FieldError {
    FieldError::new("/name", format!("{} also defines a {what} named `{name}`", earlier.path()))
}

fn check_agent(agent: &AgentFile) -> Result<(), FieldError> {
    if agent.name.trim().is_empty() {
        return Err(FieldError::new("/name", "the `name` of the agent is empty"));
    }
    let strategy = agent.output_strategy;
    if !strategy.function_calling && !strategy.fallback_to_structured_output {
        let error = FieldError::new("/output_strategy", "with both strategies off, the agent cannot call tools");
        return Err(error.hint("turn on `function_calling` or `fallback_to_structured_output`"));
    }
    Ok(())
}
