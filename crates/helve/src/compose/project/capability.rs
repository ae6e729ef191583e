//! Lists the capabilities of a folder for the person who decides whether to trust it: every program, every URL that data is sent
//! to, every variable that Helve reads, and every file that trust covers.
//!
//! This module inspects files as they are written, even if the rest of Helve cannot use them. A setting without a description here is
//! listed with its value, so that the list is complete.

use std::collections::BTreeMap;
use std::path::Path;

use helve_core::Digest;
use helve_core::json::canonical;
use helve_core::secret::{MASK, is_secret_field, password_in_url};
use helve_fetch::read_url;
use helve_process::{CommandLine, script_digest};
use helve_project::{Capability, FileKind as Kind, ProjectFile, has_variable, variables_in};
use serde_json::{Map, Value, json};

use super::document::Document;

/// Returns the capabilities of a file.
pub(super) fn of_file(kind: Kind, file: &ProjectFile, document: Option<&Document>, root: &Path) -> Vec<Capability> {
    let fields = file.counted(kind);
    match kind {
        Kind::Command | Kind::Native | Kind::Mcp => vec![of_tool(kind, &fields, file, document, root)],
        Kind::Config | Kind::Set | Kind::Agent => {
            let owner = match kind {
                Kind::Config => None,
                _ => Some(file.value().get("name").and_then(Value::as_str).unwrap_or_default().to_owned()),
            };
            fields.iter().flat_map(|(field, value)| of_setting(field, value, owner.as_deref(), file)).collect()
        }
    }
}

/// Returns the tools of agents and sets as a capability, if permission rules depend on them: a change could disable a `deny` rule.
pub(super) fn of_members<'a>(files: impl Iterator<Item = (Kind, &'a ProjectFile)>) -> Option<Capability> {
    let (mut says, mut own, mut counts, mut config) = (Vec::new(), BTreeMap::new(), false, None);
    for (kind, file) in files {
        let fields: &[&str] = match kind {
            Kind::Config => &["agent"],
            Kind::Set => &["name", "tools", "tool_sets"],
            Kind::Agent => &["name", "tools", "tool_sets", "subagents"],
            Kind::Command | Kind::Native | Kind::Mcp => continue,
        };
        let value = file.value();
        let rules = value.get("permissions");
        let looks = |rule: &Value| rule.get("set").is_some() || rule.get("agent").is_some_and(|agent| agent != "*");
        counts |= match kind {
            Kind::Config => rules.and_then(Value::as_array).is_some_and(|rules| rules.iter().any(looks)),
            _ => rules.is_some(),
        };
        config = config.or(Some(file));
        let said: Vec<Value> = fields.iter().filter_map(|field| Some(json!([field, value.get(field)?]))).collect();
        own.insert(file.path().to_string(), Some(Digest::of([canonical(&json!(said)).as_bytes()])));
        // The kind matters: a rule for sets no longer applies to a set that became an agent.
        says.push(json!([format!("{kind:?}"), &**file.path(), said]));
    }
    let what = "permission rules depend on the tools of these";
    let file = config.filter(|_| counts)?;
    let members = setting("agents and sets".into(), what.into(), &canonical(&Value::Array(says)), file);
    Some(Capability { files: own, fields: BTreeMap::new(), ..members })
}

/// The path of a store inside the project folder. Earlier versions of Helve kept the store there.
pub(in crate::compose) const STORE: &str = ".helve/helve.db";

/// Returns the capability of a store inside the folder. The author of the folder may have created the store, with calls in its queue.
pub(super) fn of_store(root: &Path) -> Option<Capability> {
    // A link could point to another project's store, which would then be moved.
    let is_real = |path: &Path| path.symlink_metadata().is_ok_and(|facts| facts.is_file() || facts.is_dir());
    let file = root.join(STORE);
    if !file.is_file() || !is_real(&file) || !file.parent().is_some_and(is_real) {
        return None;
    }
    let hashed = |name: String| root.join(&name).is_file().then(|| (name.clone(), script_digest(&root.join(&name))));
    let files: BTreeMap<_, _> = ["", "-wal", "-journal"].into_iter().filter_map(|ending| hashed(format!("{STORE}{ending}"))).collect();
    let what = "uses the store in the folder, with its pending calls and approvals".to_owned();
    let digest = digest(STORE, &files);
    Some(Capability {
        name: "store in the folder".into(),
        what,
        file: STORE.into(),
        digest,
        fields: BTreeMap::new(),
        files,
        uncovered: Vec::new(),
        is_setting: false,
    })
}

/// Returns the capabilities of a setting: one, or one per model for `models`.
fn of_setting(field: &str, value: &Value, owner: Option<&str>, file: &ProjectFile) -> Vec<Capability> {
    if let ("models", Value::Object(models)) = (field, value) {
        let of = |(name, model): (&String, &Value)| Capability {
            fields: model.as_object().map(texts_of).unwrap_or_default(),
            ..setting(format!("model {name}"), of_model(model), &canonical(model), file)
        };
        return models.iter().map(of).collect();
    }
    let what = match (field, value) {
        ("model", Value::String(model)) => format!("sends conversations to {}", address(model)),
        ("store", Value::String(store)) => {
            format!("stores conversations, calls and approvals in {}", without_password(store))
        }
        ("approvals", Value::Object(approvals)) => {
            let webhook = approvals.get("webhook").and_then(Value::as_str);
            let tells = webhook.map(|url| format!("sends every approval request, with the arguments of the call, to {}; ", address(url)));
            format!("{}{}", tells.unwrap_or_default(), shown(value))
        }
        _ => shown(value),
    };
    let what = with_variables(what, &variables_in(value));
    let name = owner.map_or_else(|| field.to_owned(), |owner| format!("{field} of {owner}"));
    let fields = BTreeMap::from([(field.to_owned(), shown(value))]);
    let in_file = field == "store" && value.as_str().is_some_and(|store| store.starts_with("sqlite:"));
    let uncovered = in_file.then(|| "calls and approvals that other programs write to this file".to_owned());
    vec![Capability { fields, uncovered: uncovered.into_iter().collect(), ..setting(name, what, &canonical(value), file) }]
}

fn setting(name: String, what: String, says: &str, file: &ProjectFile) -> Capability {
    let digest = Digest::of([name.as_bytes(), says.as_bytes()]);
    let (file, fields, files) = (file.path().to_string(), BTreeMap::new(), BTreeMap::new());
    Capability { name, what, file, digest, fields, files, uncovered: Vec::new(), is_setting: true }
}

/// Returns the fields as JSON text, with secrets masked.
fn texts_of(fields: &Map<String, Value>) -> BTreeMap<String, String> {
    let Value::Object(masked) = masked(&Value::Object(fields.clone())) else { return BTreeMap::new() };
    masked.into_iter().map(|(field, value)| (field, value.to_string())).collect()
}

fn of_model(model: &Value) -> String {
    let text = |field: &str| model.get(field).and_then(Value::as_str);
    let variables = variables_in(model);
    match text("base_url") {
        Some(url) => format!("sends conversations{} to {}", and(&variables), address(url)),
        None => format!("sends conversations and your API key to {}{}", text("provider").unwrap_or("its provider"), and(&variables)),
    }
}

/// Returns the capability of a tool or a server: its file, and the files that it refers to.
fn of_tool(kind: Kind, fields: &Map<String, Value>, file: &ProjectFile, document: Option<&Document>, root: &Path) -> Capability {
    let value = Value::Object(fields.clone());
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let name = text("/name").map_or_else(|| file.path().to_string(), ToOwned::to_owned);
    let variables = variables_in(&value);
    let (words, env) = (texts(value.get("command")), texts(value.get("env")));
    let line = CommandLine { words: &words, env: &env, folder: text("/working_folder") };
    let (mut files, mut uncovered) = (BTreeMap::new(), Vec::new());
    let what = if words.is_empty() {
        let own = ["/api_url", "/url", "/mcp_server_url", "/auth_method/token_url", "/oauth/issuer"];
        let mut addresses: Vec<String> = own.into_iter().filter_map(text).map(address).collect();
        if text("/api_url").is_none() {
            addresses.extend(document.iter().flat_map(|document| document.addresses()).map(|url| address(&url)));
        }
        addresses.dedup();
        let to = addresses.join(", ");
        match (kind, variables.is_empty()) {
            _ if to.is_empty() => "has no URL".to_owned(),
            (Kind::Mcp, true) => format!("connects to {to}"),
            (Kind::Mcp, false) => format!("connects to {to}, with {}", variables.join(", ")),
            _ => format!("sends arguments{} to {to}", and(&variables)),
        }
    } else {
        for script in line.scripts(root) {
            let name = script.strip_prefix(root).unwrap_or(&script).to_string_lossy().into_owned();
            files.insert(name, script_digest(&script));
        }
        uncovered = line.uncovered(root);
        line.shown()
    };
    let what = with_variables(what, &variables);
    files.extend(document.map(|document| (document.path.clone(), document.digest)));
    let digest = digest(&canonical(&value), &files);
    Capability { name, what, file: file.path().to_string(), digest, fields: texts_of(fields), files, uncovered, is_setting: false }
}

fn digest(says: &str, files: &BTreeMap<String, Option<Digest>>) -> Digest {
    let parts = files.iter().flat_map(|(name, digest)| [name.as_bytes(), digest.as_ref().map_or(&[][..], |digest| digest.as_bytes())]);
    Digest::of([says.as_bytes()].into_iter().chain(parts))
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), ToOwned::to_owned)).collect()
}

/// Appends the variables that `what` does not name.
fn with_variables(what: String, variables: &[String]) -> String {
    let unnamed: Vec<&str> = variables.iter().map(String::as_str).filter(|name| !what.contains(name)).collect();
    if unnamed.is_empty() { what } else { format!("{what} (reads {})", unnamed.join(", ")) }
}

fn and(variables: &[String]) -> String {
    if variables.is_empty() { String::new() } else { format!(" and {}", variables.join(", ")) }
}

/// Returns a URL in the normal form of the URL parser, without query and fragment, which may contain secrets.
fn address(text: &str) -> String {
    // A variable may expand to any part of the URL, so nothing is removed.
    let parsed = if has_variable(text) { None } else { read_url(text.trim()).ok().map(|url| url.to_string()) };
    parsed.map_or_else(|| text.to_owned(), |url| url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/').to_owned())
}

fn without_password(url: &str) -> String {
    password_in_url(url).filter(|password| !has_variable(password)).map_or_else(|| url.to_owned(), |password| url.replace(&*password, MASK))
}

/// Returns a value as JSON on one line, with secrets masked.
fn shown(value: &Value) -> String {
    masked(value).to_string()
}

fn masked(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(masked).collect(),
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(name, field)| {
                    let secret = is_secret_field(name) && field.as_str().is_some_and(|text| !has_variable(text));
                    (name.clone(), if secret { MASK.into() } else { masked(field) })
                })
                .collect(),
        ),
        other => other.clone(),
    }
}
