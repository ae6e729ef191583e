//! A project's files become tools, sources, sets and agents; what is wrong with them becomes diagnostics.
//!
//! Files are read as they are written, then it is asked whether a person trusts the folder with what they say, and only then they pass
//! the gate. A broken file costs only itself.

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
use super::folder_tool::{FolderTool, HeldTool};

/// Why agents must ask before they use what a folder brings.
pub(super) const UNTRUSTED: &str = "the folder is not trusted; `helve trust` shows what it would do";
/// Why they must ask before they use a tool that was added to a trusted folder, or changed in it.
const NOT_AGREED: &str = "this tool is new or has changed since the folder was trusted; `helve trust` shows what it would do";
const LOOK: &str = "`helve trust` shows what the folder would do, and asks";
/// How often the files are read again because they changed meanwhile.
const ATTEMPTS: usize = 3;

/// What a project's files say.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) root: PathBuf,
    /// What the files looked like before they were read.
    pub(super) seen: Fingerprint,
    pub(super) config: HelveFile,
    pub(super) commands: Tools,
    pub(super) native: Tools,
    pub(super) remotes: Vec<(RemoteDefinition, ProjectFile)>,
    pub(super) servers: Vec<(McpDefinition, ProjectFile)>,
    pub(super) sets: Vec<(SetFile, ProjectFile)>,
    pub(super) agents: Vec<(AgentFile, ProjectFile)>,
    /// Names that several agents have.
    refused: Vec<String>,
    pub(super) config_file: Option<ProjectFile>,
    /// Whether there are settings that cannot be read, so that nobody knows the rules in them.
    pub(super) config_is_broken: bool,
    /// What the folder can do once it is trusted.
    pub(super) capabilities: Vec<Capability>,
    /// Whether it is; nothing where decisions cannot be read.
    pub(super) trust: Option<Trust>,
    /// Files of tools and servers that a person has not agreed to, or not as they are now.
    pub(super) waiting: BTreeSet<String>,
    /// Settings that wait for trust, with the file they stand in.
    pub(super) sealed: Vec<(Arc<str>, String)>,
    /// Files beside the project's own that count.
    pub(super) beside: Vec<PathBuf>,
    /// What the file of decisions looked like before it was read.
    pub(super) seen_decisions: Fingerprint,
    /// What those looked like when they were read.
    pub(super) seen_beside: Fingerprint,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Whether the folder has any file of a project.
    pub(super) is_project: bool,
}

/// The tools of a source: those that work, and those that wait for trust, which never take the place of another.
#[derive(Default)]
pub(super) struct Tools {
    pub(super) open: Vec<Arc<dyn DynTool>>,
    pub(super) waiting: Vec<Arc<dyn DynTool>>,
}

impl Tools {
    fn push(&mut self, held: Option<String>, tool: Arc<dyn DynTool>) {
        match held {
            None => self.open.push(tool),
            Some(because) => self.waiting.push(Arc::new(HeldTool { tool, because })),
        }
    }
}

/// One file as it is written, with the document that it names; or why it cannot be read.
struct Written {
    kind: Kind,
    file: Result<ProjectFile, Box<Diagnostic>>,
    document: Option<Document>,
}

/// What the sources of tools need.
pub(super) struct Workshop<'a> {
    pub(super) fetch: &'a Fetch,
    pub(super) redactor: &'a Redactor,
}

impl Workshop<'_> {
    /// Keeps secrets that stand in a file out of sight. A variable that was not expanded is none.
    fn learn(&self, written: impl IntoIterator<Item = SecretString>) {
        self.redactor.add_written(written.into_iter().filter(|secret| !has_variable(secret.expose_secret())));
    }
}

/// Reads all files of a project, and lets them through the gate as far as a person agreed to what they say; nobody did where their
/// decisions cannot be read.
pub(super) fn load(folder: &Path, workshop: &Workshop<'_>, decisions: Option<&TrustStore>) -> std::io::Result<Loaded> {
    let mut attempt = 1;
    loop {
        let (mut loaded, written) = read(folder)?;
        loaded.trust = decisions.map(|decisions| decisions.of(&loaded.root, &loaded.capabilities));
        let agreed = |capability: &Capability| decisions.is_some_and(|decisions| decisions.change(&loaded.root, capability).is_none());
        let waiting = loaded.capabilities.iter().filter(|capability| loaded.gate() == Gate::Closed || !agreed(capability));
        loaded.waiting = waiting.map(|capability| capability.file.clone()).collect();
        if let Some(decisions) = decisions.filter(|_| loaded.trust == Some(Trust::Changed)) {
            loaded.diagnostics.push(closed(decisions, &loaded));
        }
        loaded.pass(&written, workshop);
        // A script that was changed between the request and the tool is not the one that a person agreed to.
        if loaded.gate() == Gate::Closed || capabilities(&written, &loaded.root) == loaded.capabilities {
            return Ok(loaded);
        }
        if attempt == ATTEMPTS {
            return Err(std::io::Error::other("its files change while they are read"));
        }
        attempt += 1;
    }
}

/// Reads the files as they are written.
fn read(folder: &Path) -> std::io::Result<(Loaded, Vec<Written>)> {
    let ProjectFolder { root, files, diagnostics } = discover(folder)?;
    // Before the files are read: a change in between is then seen as one.
    let seen = Fingerprint::of(&root);
    let mut loaded = Loaded { root, seen, diagnostics, is_project: !files.is_empty(), ..Loaded::default() };
    let mut written = Vec::with_capacity(files.len());
    for (kind, path) in files {
        let file = ProjectFile::open(&loaded.root, &path);
        let with_document = file.as_ref().ok().filter(|_| kind == Kind::Native);
        let document = with_document.and_then(|file| Document::of(file, &loaded.root));
        written.push(Written { kind, file, document });
    }
    loaded.capabilities = capabilities(&written, &loaded.root);
    let beside = loaded.capabilities.iter().flat_map(|capability| capability.files.keys());
    loaded.beside = beside.map(|file| loaded.root.join(file)).collect();
    loaded.seen_beside = Fingerprint::of_files(&loaded.beside);
    Ok((loaded, written))
}

fn capabilities(written: &[Written], root: &Path) -> Vec<Capability> {
    let readable = written.iter().filter_map(|one| Some((one.kind, one.file.as_ref().ok()?, one.document.as_ref())));
    let members = capability::of_members(readable.clone().map(|(kind, file, _)| (kind, file)));
    let files = readable.flat_map(|(kind, file, document)| capability::of_file(kind, file, document, root));
    files.chain(members).chain(capability::of_store(root)).collect()
}

impl Loaded {
    /// Whether the gate is open for the settings, agents and sets of the folder.
    pub(super) fn gate(&self) -> Gate {
        if self.trust.is_some_and(Trust::allows) { Gate::Open } else { Gate::Closed }
    }

    /// Whether it is open for a file.
    pub(super) fn gate_of(&self, file: &str) -> Gate {
        if self.waiting.contains(file) { Gate::Closed } else { self.gate() }
    }

    /// The file of a server.
    fn server(&self, name: &str) -> Option<&ProjectFile> {
        let remote = self.remotes.iter().find(|(known, _)| known.name == name).map(|(_, file)| file);
        self.servers.iter().find(|(known, _)| known.name == name).map(|(_, file)| file).or(remote)
    }

    /// Why agents ask before they use the tools of a file, with what a call does; `None` if a person agreed to it.
    fn held(&self, file: &ProjectFile) -> Option<String> {
        if self.gate_of(file.path()) == Gate::Open {
            return None;
        }
        let why = if self.gate() == Gate::Open { NOT_AGREED } else { UNTRUSTED };
        let does = self.capabilities.iter().find(|capability| *capability.file == **file.path());
        Some(does.map_or_else(|| why.to_owned(), |does| format!("{why}. This call: {}", does.what)))
    }

    /// Lets the files through the gate.
    fn pass(&mut self, written: &[Written], workshop: &Workshop<'_>) {
        if self.waiting.contains(capability::STORE) {
            let message = format!("the store {} is not used because the folder is not trusted with it", capability::STORE);
            self.diagnostics.push(Diagnostic::general(Severity::Warning, message).hint(LOOK));
        }
        // What a person agreed to comes first, so that nothing else takes its name.
        let partly = self.gate() == Gate::Open;
        let is_waiting = |one: &&Written| partly && one.file.as_ref().is_ok_and(|file| self.waiting.contains(&**file.path()));
        let (waiting, agreed): (Vec<_>, Vec<_>) = written.iter().partition(is_waiting);
        for one in agreed.into_iter().chain(waiting) {
            let taken = match &one.file {
                Ok(file) => self.take(one.kind, file, one.document.as_ref(), workshop),
                Err(diagnostic) => Err(diagnostic.clone()),
            };
            if let Err(diagnostic) = taken {
                self.config_is_broken |= one.kind == Kind::Config;
                self.diagnostics.push(*diagnostic);
            }
        }
    }

    fn take(
        &mut self,
        kind: Kind,
        written: &ProjectFile,
        document: Option<&Document>,
        workshop: &Workshop<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let gate = self.gate_of(written.path());
        let file = written.pass(kind, gate)?;
        file.teach(workshop.redactor);
        let wrong = |error: FieldError| Box::new(file.diagnose(Severity::Error, &error));
        self.note(kind, written);
        match kind {
            Kind::Config => {
                if written.variables(kind).is_empty() {
                    // Mistakes in fields that wait for trust show before, where no variable stands for what is right.
                    written.read::<HelveFile>()?;
                }
                self.config = file.read()?;
                workshop.learn(self.config.secrets());
                self.config_file = Some(file);
            }
            Kind::Command => self.commands.push(self.held(written), FolderTool::command(gate, written, &file, &self.root, workshop)?),
            Kind::Native => match document {
                Some(document) => self.import(written, &file, document, workshop)?,
                None => self.native.push(self.held(written), FolderTool::http(gate, written, &file, workshop)?),
            },
            Kind::Mcp if file.has("mcp_server_url") => {
                let definition: RemoteDefinition = file.read()?;
                workshop.learn(definition.secrets());
                if let Some(earlier) = self.server(&definition.name) {
                    return Err(wrong(taken("server", &definition.name, earlier)));
                }
                self.remotes.push((definition, file));
            }
            Kind::Mcp => {
                let definition: McpDefinition = file.read()?;
                workshop.learn(definition.secrets());
                if let Some(earlier) = self.server(&definition.name) {
                    return Err(wrong(taken("server", &definition.name, earlier)));
                }
                if gate == Gate::Open || written.variables(kind).is_empty() {
                    definition.check(&self.root).map_err(wrong)?;
                }
                self.servers.push((definition, file));
            }
            Kind::Set => {
                let set: SetFile = file.read()?;
                if set.name.trim().is_empty() {
                    return Err(wrong(FieldError::new("/name", "a tool set needs a name")));
                }
                if let Some((_, earlier)) = self.sets.iter().find(|(known, _)| known.name == set.name) {
                    return Err(wrong(taken("tool set", &set.name, earlier)));
                }
                self.sets.push((set, file));
            }
            Kind::Agent => {
                let agent: AgentFile = file.read()?;
                check_agent(&agent).map_err(wrong)?;
                if let Some(place) = self.agents.iter().position(|(known, _)| known.name == agent.name) {
                    // Neither is used: which of them is meant, and which model and limits hold, is not for their order to decide.
                    let (_, earlier) = self.agents.remove(place);
                    self.diagnostics.push(earlier.diagnose(Severity::Error, &taken("agent", &agent.name, &file)));
                    self.refused.push(agent.name.clone());
                    return Err(wrong(taken("agent", &agent.name, &earlier)));
                }
                if self.refused.contains(&agent.name) {
                    return Err(wrong(FieldError::new("/name", format!("there are several agents `{}`", agent.name))));
                }
                self.agents.push((agent, file));
            }
        }
        Ok(())
    }

    /// Reports what of a file is not used: settings that wait for trust, and variables in texts for models.
    fn note(&mut self, kind: Kind, file: &ProjectFile) {
        if self.gate() == Gate::Open && self.waiting.contains(&**file.path()) && kind != Kind::Mcp {
            let message = "new, or changed since the folder was trusted: agents ask before they use it";
            self.diagnostics.push(file.diagnose(Severity::Warning, &FieldError::new("", message).hint(LOOK)));
        }
        if self.gate_of(file.path()) == Gate::Closed {
            let sealed = file.sealed(kind);
            if let Some(first) = sealed.first() {
                let message = format!("not used because the folder is not trusted: {}", sealed.join(", "));
                let error = FieldError::new(format!("/{first}"), message).hint(LOOK);
                self.diagnostics.push(file.diagnose(Severity::Warning, &error));
            }
            self.sealed.extend(sealed.into_iter().map(|field| (file.path().clone(), field)));
        }
        for pointer in file.unexpanded(kind) {
            let error = FieldError::new(pointer, "variables are not expanded in text that models read, nor in rules");
            self.diagnostics.push(file.diagnose(Severity::Warning, &error.hint("write `$${` where the text itself is meant")));
        }
    }

    /// Makes tools of an OpenAPI document that lies beside the file.
    fn import(
        &mut self,
        written: &ProjectFile,
        file: &ProjectFile,
        document: &Document,
        workshop: &Workshop<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let wrong = |error: FieldError| Box::new(file.diagnose(Severity::Error, &error));
        let content = document.content.as_ref().map_err(|message| wrong(FieldError::new("/openapi", message)))?;
        let mut definition: OpenApiDefinition = file.read()?;
        workshop.learn(definition.auth_method.iter().flat_map(helve_http::Auth::secrets));
        let (gate, reads_variables) = (self.gate_of(written.path()), !written.variables(Kind::Native).is_empty());
        if reads_variables && gate == Gate::Closed {
            definition.api_url = definition.api_url.map(|_| NOT_KNOWN_YET.to_owned());
        }
        let imported = helve_http::import(&definition, content).map_err(wrong)?;
        for tool in &imported.tools {
            let tool = if reads_variables {
                FolderTool::imported(gate, tool, written, document, workshop).map_err(wrong)?
            } else {
                tool.tool(file.path(), workshop.fetch, workshop.redactor).map_err(wrong)?
            };
            self.native.push(self.held(written), tool);
        }
        for skipped in &imported.skipped {
            tracing::info!(file = %file.path(), operation = %skipped.operation, reason = %skipped.reason, "operation not imported");
        }
        Ok(())
    }
}

/// Says which settings closed a folder that was trusted.
fn closed(decisions: &TrustStore, loaded: &Loaded) -> Diagnostic {
    let settings = loaded.capabilities.iter().filter(|one| one.is_setting && decisions.change(&loaded.root, one).is_some());
    let missing = decisions.missing(&loaded.root, &loaded.capabilities);
    let names: Vec<String> = settings.chain(&missing).map(|one| format!("{} ({})", one.name, one.file)).collect();
    let what = if names.is_empty() { "everything in the folder".to_owned() } else { names.join(", ") };
    let message = format!("changed since the folder was trusted: {what}. Until you agree, all of the folder counts as not trusted");
    Diagnostic::general(Severity::Warning, message).hint(LOOK)
}

/// Where an imported service is while the variable that says so may not be read.
const NOT_KNOWN_YET: &str = "https://not-known-before-trust.invalid";

fn taken(what: &str, name: &str, earlier: &ProjectFile) -> FieldError {
    FieldError::new("/name", format!("{} has a {what} named `{name}`, too", earlier.path()))
}

fn check_agent(agent: &AgentFile) -> Result<(), FieldError> {
    if agent.name.trim().is_empty() {
        return Err(FieldError::new("/name", "an agent needs a name"));
    }
    let strategy = agent.output_strategy;
    if !strategy.function_calling && !strategy.fallback_to_structured_output {
        let error = FieldError::new("/output_strategy", "an agent with both strategies off could not call any tool");
        return Err(error.hint("leave one of `function_calling` and `fallback_to_structured_output` on"));
    }
    Ok(())
}
