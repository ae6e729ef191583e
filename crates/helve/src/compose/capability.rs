//! What a folder can do once it is trusted, in words for the person who is asked: every program, every address that something is sent
//! to, every variable that is read, and every file that counts.
//!
//! It looks at files as they are written, whether the rest of Helve can use them or not. Nothing is left out: a setting that this file
//! has no words for is shown as it stands.

use std::collections::BTreeMap;
use std::path::Path;

use helve_core::Digest;
use helve_core::json::canonical;
use helve_core::secret::{MASK, is_secret_field, password_in_url};
use helve_fetch::read_url;
use helve_process::{CommandLine, script_digest};
use helve_project::{Capability, Kind, ProjectFile, has_variable, variables_in};
use serde_json::{Map, Value};

use super::document::Document;

/// What a file lets the folder do.
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

/// Where earlier versions kept a project's store, and where a folder may bring one along.
pub(super) const STORE: &str = ".helve/helve.db";

/// The store that lies in the folder. Whoever made the folder may have written it, with calls that wait in its queue.
pub(super) fn of_store(root: &Path) -> Option<Capability> {
    if !root.join(STORE).symlink_metadata().is_ok_and(|file| file.is_file()) {
        return None;
    }
    let hashed = |name: String| root.join(&name).is_file().then(|| (name.clone(), script_digest(&root.join(&name))));
    let files: BTreeMap<_, _> = ["", "-wal"].into_iter().filter_map(|ending| hashed(format!("{STORE}{ending}"))).collect();
    let what = "takes over the store in the folder, with the calls and approvals that wait in it".to_owned();
    let digest = digest(STORE, &files);
    Some(Capability {
        name: "store in the folder".into(),
        what,
        file: STORE.into(),
        digest,
        files,
        uncovered: Vec::new(),
        is_setting: false,
    })
}

/// A setting, or each model where there are several.
fn of_setting(field: &str, value: &Value, owner: Option<&str>, file: &ProjectFile) -> Vec<Capability> {
    if let ("models", Value::Object(models)) = (field, value) {
        return models.iter().map(|(name, model)| setting(format!("model {name}"), of_model(model), value_of(model), file)).collect();
    }
    let what = match (field, value) {
        ("model", Value::String(model)) => format!("sends what is said to {}", address(model)),
        ("store", Value::String(store)) => format!("keeps what is said in {}", without_password(store)),
        ("approvals", Value::Object(approvals)) => match approvals.get("webhook").and_then(Value::as_str) {
            Some(url) => format!("tells {} of every question, with the arguments of the call", address(url)),
            None => shown(value),
        },
        _ => shown(value),
    };
    let name = owner.map_or_else(|| field.to_owned(), |owner| format!("{field} of {owner}"));
    vec![setting(name, what, value_of(value), file)]
}

fn value_of(value: &Value) -> Vec<u8> {
    canonical(value).into_bytes()
}

fn setting(name: String, what: String, says: Vec<u8>, file: &ProjectFile) -> Capability {
    let digest = Digest::of([name.as_bytes(), says.as_slice()]);
    Capability { name, what, file: file.path().to_string(), digest, files: BTreeMap::new(), uncovered: Vec::new(), is_setting: true }
}

fn of_model(model: &Value) -> String {
    let text = |field: &str| model.get(field).and_then(Value::as_str);
    let to = text("base_url").map_or_else(|| text("provider").unwrap_or("its provider").to_owned(), address);
    format!("sends what is said{} to {to}", and(&variables_in(model)))
}

/// A tool or a server: one file, and the files that it names.
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
            _ if to.is_empty() => "reaches no address".to_owned(),
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
    files.extend(document.map(|document| (document.path.clone(), document.digest)));
    let digest = digest(&canonical(&value), &files);
    Capability { name, what, file: file.path().to_string(), digest, files, uncovered, is_setting: false }
}

fn digest(says: &str, files: &BTreeMap<String, Option<Digest>>) -> Digest {
    let parts = files.iter().flat_map(|(name, digest)| [name.as_bytes(), digest.as_ref().map_or(&[][..], |digest| digest.as_bytes())]);
    Digest::of([says.as_bytes()].into_iter().chain(parts))
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), ToOwned::to_owned)).collect()
}

fn and(variables: &[String]) -> String {
    if variables.is_empty() { String::new() } else { format!(" and {}", variables.join(", ")) }
}

/// An address as whoever connects to it understands it, without what may be secret in it.
fn address(text: &str) -> String {
    let parsed = read_url(text.trim()).map(|url| url.to_string());
    let text = parsed.as_deref().unwrap_or(text);
    text.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/').to_owned()
}

fn without_password(url: &str) -> String {
    password_in_url(url).filter(|password| !has_variable(password)).map_or_else(|| url.to_owned(), |password| url.replace(&*password, MASK))
}

/// A value on one line, without the secrets that stand in it.
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
