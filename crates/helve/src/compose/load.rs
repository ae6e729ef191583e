//! A project's files become tools, sources, sets and agents; what is wrong with them becomes diagnostics.
//!
//! A broken file costs only itself.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use helve_command::CommandDefinition;
use helve_core::authored::FieldError;
use helve_core::json::canonical;
use helve_core::{Digest, DynTool, Redactor};
use helve_fetch::Fetch;
use helve_http::{HttpDefinition, OpenApiDefinition, RemoteDefinition};
use helve_mcp::McpDefinition;
use helve_process::{CommandLine, script_digest};
use helve_project::{
    AgentFile, Diagnostic, Fingerprint, Folder, HelveFile, Kind, ProjectFile, Runnable, SetFile, Severity, discover, read_inside,
};

/// What a project's files say.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) root: PathBuf,
    /// What the files looked like before they were read.
    pub(super) seen: Fingerprint,
    pub(super) config: HelveFile,
    pub(super) commands: Vec<Arc<dyn DynTool>>,
    pub(super) native: Vec<Arc<dyn DynTool>>,
    pub(super) remotes: Vec<(RemoteDefinition, ProjectFile)>,
    pub(super) servers: Vec<(McpDefinition, ProjectFile)>,
    pub(super) sets: Vec<(SetFile, ProjectFile)>,
    pub(super) agents: Vec<(AgentFile, ProjectFile)>,
    pub(super) config_file: Option<ProjectFile>,
    /// Whether there are settings that cannot be read, so that nobody knows the rules in them.
    pub(super) config_is_broken: bool,
    pub(super) runnables: Vec<Runnable>,
    /// Tools that agents must ask for until the folder is trusted, besides its commands.
    pub(super) wary: Vec<String>,
    /// Files beside the project's own that decide what runs.
    pub(super) scripts: Vec<PathBuf>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Whether the folder has any file of a project.
    pub(super) is_project: bool,
}

/// Reads all files of a project.
pub(super) fn load(folder: &Path, fetch: &Fetch, redactor: &Redactor) -> std::io::Result<Loaded> {
    let Folder { root, files, diagnostics } = discover(folder)?;
    // Before the files are read: a change in between is then seen as one.
    let seen = Fingerprint::of(&root);
    let mut loaded = Loaded { root, seen, diagnostics, is_project: !files.is_empty(), ..Loaded::default() };
    for (kind, path) in &files {
        let file = match ProjectFile::open(&loaded.root, path) {
            Ok(file) => file,
            Err(diagnostic) => {
                loaded.config_is_broken |= *kind == Kind::Config;
                loaded.diagnostics.push(*diagnostic);
                continue;
            }
        };
        redactor.add(file.secrets().iter().cloned());
        if let Err(diagnostic) = loaded.take(*kind, file, fetch, redactor) {
            loaded.config_is_broken |= *kind == Kind::Config;
            loaded.diagnostics.push(*diagnostic);
        }
    }
    Ok(loaded)
}

impl Loaded {
    fn take(&mut self, kind: Kind, file: ProjectFile, fetch: &Fetch, redactor: &Redactor) -> Result<(), Box<Diagnostic>> {
        let wrong = |error: FieldError| Box::new(file.diagnose(Severity::Error, &error));
        match kind {
            Kind::Config => {
                self.config = file.read()?;
                redactor.add_written(self.config.secrets());
                self.rules_to_trust(&file);
                self.models_to_trust(&file);
                self.record_to_trust(&file);
                self.webhook_to_trust(&file);
                self.config_file = Some(file);
            }
            Kind::Command => {
                let definition: CommandDefinition = file.read()?;
                self.commands.push(definition.tool(&self.root, file.path(), redactor).map_err(wrong)?);
                self.runnables.push(runnable(&definition.name, definition.line(), &self.root, &file));
                self.scripts.extend(definition.line().scripts(&self.root));
            }
            Kind::Native if file.has("openapi") => self.import(&file, fetch, redactor)?,
            Kind::Native => {
                let definition: HttpDefinition = file.read()?;
                redactor.add_written(definition.secrets());
                self.native.push(definition.tool(file.path(), fetch, redactor).map_err(wrong)?);
                self.sends_variables([definition.name.clone()], &definition.api_url, &file);
            }
            Kind::Mcp if file.has("mcp_server_url") => {
                let definition: RemoteDefinition = file.read()?;
                redactor.add_written(definition.secrets());
                let what = format!("connects to {}", address(&definition.mcp_server_url));
                let digest = Digest::of([file.text().as_bytes()]);
                self.runnables.push(Runnable { name: definition.name.clone(), what, file: file.path().to_string(), digest });
                self.remotes.push((definition, file));
            }
            Kind::Mcp => {
                let definition: McpDefinition = file.read()?;
                redactor.add_written(definition.secrets());
                if let Some((_, earlier)) = self.servers.iter().find(|(known, _)| known.name == definition.name) {
                    let message = format!("there is a server `{}` in {} already", definition.name, earlier.path());
                    return Err(Box::new(file.diagnose(Severity::Error, &FieldError::new("/name", message))));
                }
                definition.check(&self.root).map_err(wrong)?;
                self.server_to_trust(&definition, &file);
                self.servers.push((definition, file));
            }
            Kind::Set => {
                let set: SetFile = file.read()?;
                if set.name.trim().is_empty() {
                    return Err(wrong(FieldError::new("/name", "a tool set needs a name")));
                }
                if let Some((_, earlier)) = self.sets.iter().find(|(known, _)| known.name == set.name) {
                    let message = format!("there is a tool set `{}` in {} already", set.name, earlier.path());
                    return Err(Box::new(file.diagnose(Severity::Error, &FieldError::new("/name", message))));
                }
                self.sets.push((set, file));
            }
            Kind::Agent => {
                let agent: AgentFile = file.read()?;
                check_agent(&agent).map_err(wrong)?;
                if let Some((_, earlier)) = self.agents.iter().find(|(known, _)| known.name == agent.name) {
                    let message = format!("there is an agent `{}` in {} already", agent.name, earlier.path());
                    return Err(Box::new(file.diagnose(Severity::Error, &FieldError::new("/name", message))));
                }
                if let Some(spec) = &agent.model {
                    self.model_to_trust(&format!("of {}", agent.name), spec, &file);
                }
                self.agents.push((agent, file));
            }
        }
        Ok(())
    }

    /// Makes tools of an OpenAPI document that lies beside the file.
    fn import(&mut self, file: &ProjectFile, fetch: &Fetch, redactor: &Redactor) -> Result<(), Box<Diagnostic>> {
        let wrong = |error: FieldError| Box::new(file.diagnose(Severity::Error, &error));
        let definition: OpenApiDefinition = file.read()?;
        redactor.add_written(definition.auth_method.iter().flat_map(helve_http::Auth::secrets));
        let document =
            read_document(&self.root, file.path(), &definition.openapi).map_err(|message| wrong(FieldError::new("/openapi", message)))?;
        let imported = helve_http::import(&definition, &document).map_err(wrong)?;
        for tool in &imported.tools {
            self.native.push(tool.tool(file.path(), fetch, redactor).map_err(wrong)?);
        }
        let to = imported.tools.first().map(|tool| tool.api_url.clone()).unwrap_or_default();
        self.sends_variables(imported.tools.into_iter().map(|tool| tool.name), &to, file);
        for skipped in &imported.skipped {
            tracing::info!(file = %file.path(), operation = %skipped.operation, reason = %skipped.reason, "operation not imported");
        }
        Ok(())
    }

    /// Tools that send what the environment holds elsewhere are part of what a person must trust.
    fn sends_variables(&mut self, tools: impl IntoIterator<Item = String>, url: &str, file: &ProjectFile) {
        if file.variables().is_empty() {
            return;
        }
        let what = format!("sends {} to {}", file.variables().join(", "), address(url));
        let digest = Digest::of([file.text().as_bytes()]);
        self.runnables.push(Runnable { name: file.path().to_string(), what, file: file.path().to_string(), digest });
        self.wary.extend(tools);
    }

    /// A server is a program that runs here, or one elsewhere that reads what its tools are called with.
    fn server_to_trust(&mut self, definition: &McpDefinition, file: &ProjectFile) {
        if let Some(line) = definition.line() {
            self.runnables.push(runnable(&definition.name, line, &self.root, file));
            self.scripts.extend(line.scripts(&self.root));
            return;
        }
        let with = if file.variables().is_empty() { String::new() } else { format!(", with {}", file.variables().join(", ")) };
        let what = format!("connects to {}{with}", definition.place());
        let digest = Digest::of([file.text().as_bytes()]);
        self.runnables.push(Runnable { name: definition.name.clone(), what, file: file.path().to_string(), digest });
    }

    /// Models elsewhere read all that is said, so they are part of what a person must trust.
    fn models_to_trust(&mut self, file: &ProjectFile) {
        let addresses: Vec<(String, String)> =
            self.config.models.iter().filter_map(|(name, model)| Some((name.clone(), model.base_url.clone()?))).collect();
        for (name, url) in addresses {
            self.model_to_trust(&name, &url, file);
        }
        if let Some(spec) = self.config.model.clone() {
            self.model_to_trust("of the project", &spec, file);
        }
    }

    fn model_to_trust(&mut self, name: &str, url: &str, file: &ProjectFile) {
        if !url.starts_with("http") || is_here(url) {
            return;
        }
        let key = if file.variables().is_empty() { String::new() } else { format!(", with {}", file.variables().join(", ")) };
        let what = format!("sends what is said to {}{key}", address(url));
        let digest = Digest::of([file.text().as_bytes()]);
        self.runnables.push(Runnable { name: format!("model {name}"), what, file: file.path().to_string(), digest });
    }

    /// A record outside of the folder gets all that is said, so it is part of what a person must trust.
    fn record_to_trust(&mut self, file: &ProjectFile) {
        let Some(store) = &self.config.store else { return };
        let own = store
            .strip_prefix("sqlite:")
            .map(Path::new)
            .filter(|path| path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)));
        if own.is_none() {
            let what = format!("keeps what is said in {}", address(store));
            let digest = Digest::of([store.as_bytes()]);
            self.runnables.push(Runnable { name: "record".into(), what, file: file.path().to_string(), digest });
        }
    }

    /// Whoever is told of questions reads the arguments of calls, so that is part of what a person must trust.
    fn webhook_to_trust(&mut self, file: &ProjectFile) {
        if let Some(url) = &self.config.approvals.webhook {
            let what = format!("tells {} of every question, with the arguments of the call", address(url));
            let digest = Digest::of([url.as_bytes()]);
            self.runnables.push(Runnable { name: "webhook".into(), what, file: file.path().to_string(), digest });
        }
    }

    /// Rules are part of what a person must trust: until then they only tighten.
    fn rules_to_trust(&mut self, file: &ProjectFile) {
        if self.config.permissions.is_empty() {
            return;
        }
        let what = serde_json::to_string(&self.config.permissions).unwrap_or_default();
        let digest = Digest::of([what.as_bytes()]);
        self.runnables.push(Runnable { name: "permission rules".into(), what, file: file.path().to_string(), digest });
    }
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

/// A document named in a file, found beside that file and inside the project.
fn read_document(root: &Path, beside: &str, name: &str) -> Result<serde_json::Value, String> {
    const MAX_BYTES: u64 = 5 << 20;
    let folder = root.join(beside).parent().map(Path::to_owned).unwrap_or_default();
    let bytes = read_inside(root, &folder.join(name), MAX_BYTES).map_err(|error| format!("`{name}` cannot be read: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("`{name}` is not UTF-8 text"))?;
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(&text).map_err(|error| format!("`{name}` is not valid JSON: {error}"));
    }
    helve_project::read_yaml(&text).map(|node| node.value()).map_err(|error| format!("`{name}`, line {}: {error}", error.position.line))
}

/// What a command would run: all that its file says, and the scripts of the project that it names.
fn runnable(name: &str, line: CommandLine<'_>, root: &Path, file: &ProjectFile) -> Runnable {
    let says = canonical(&file.value());
    let mut parts: Vec<Vec<u8>> = vec![says.into_bytes()];
    for script in line.scripts(root) {
        // A script that cannot be read counts by its name; when it can be, that is a change.
        parts.push(script.to_string_lossy().into_owned().into_bytes());
        parts.push(script_digest(&script).map(|digest| digest.as_bytes().to_vec()).unwrap_or_default());
    }
    let digest = Digest::of(parts.iter().map(Vec::as_slice));
    Runnable { name: name.to_owned(), what: line.shown(), file: file.path().to_string(), digest }
}

/// An address without what may be secret in it.
fn address(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// Whether an address is on this machine.
pub(super) fn is_here(url: &str) -> bool {
    let host = helve_fetch::read_url(url).ok().and_then(|url| url.host_str().map(ToOwned::to_owned));
    host.is_some_and(|host| {
        host == "localhost" || host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    })
}
