//! Secrets in the spellings that leak, and in the words of people and models.

use std::path::PathBuf;
use std::process::Output;

use helve_testkit::{Reply, Request, Script, Turn};
use serde_json::{Value, json};

use crate::folder::{stderr, stdout};
use crate::scene::{Running, Scene};
#[cfg(unix)]
use crate::stores::change;

const VARIABLE: &str = "HOUSE_TOKEN";
const SECRET: &str = "cAn4ry/S3cr+t 9'x\"ü7?>~~";
/// The secret as others write it.
const SPELLINGS: [&str; 20] = [
    SECRET,
    r#"cAn4ry/S3cr+t 9'x\"ü7?>~~"#,
    r#"cAn4ry\/S3cr+t 9'x\"\u00fc7?>~~"#,
    r#"cAn4ry/S3cr+t 9'x\\\"ü7?>~~"#,
    r"\u0063\u0041\u006E\u0034\u0072\u0079\u002F\u0053\u0033\u0063\u0072\u002B\u0074\u0020\u0039\u0027\u0078\u0022\u00FC\u0037\u003F\u003E\u007E\u007E",
    r"\u0063\u0041\u006e\u0034\u0072\u0079\u002f\u0053\u0033\u0063\u0072\u002b\u0074\u0020\u0039\u0027\u0078\u0022\u00fc\u0037\u003f\u003e\u007e\u007e",
    "cAn4ry%2FS3cr%2Bt%209%27x%22%C3%BC7%3F%3E~~",
    "cAn4ry%2fS3cr%2bt%209%27x%22%c3%bc7%3f%3e~~",
    "cAn4ry%2fS3cr%2Bt+9'x%22%C3%bc7%3f%3E%7E~",
    "%63%41%6e%34%72%79%2f%53%33%63%72%2b%74%20%39%27%78%22%c3%bc%37%3f%3e%7e%7e",
    r#"'cAn4ry/S3cr+t 9'\''x"ü7?>~~'"#,
    r#"'cAn4ry/S3cr+t 9'"'"'x"ü7?>~~'"#,
    r#"cAn4ry/S3cr+t\ 9\'x\"ü7\?\>\~\~"#,
    "cAn4ry/S3cr+t 9&#x27;x&quot;ü7?&gt;~~",
    "Y0FuNHJ5L1MzY3IrdCA5J3giw7w3Pz5+fg==",
    "Y0FuNHJ5L1MzY3IrdCA5J3giw7w3Pz5-fg",
    "Basic dTpjQW40cnkvUzNjcit0IDkneCLDvDc/Pn5+",
    "dTpjQW40cnkvUzNjcit0IDkneCLDvDc_Pn5-",
    "YWRhOmNBbjRyeS9TM2NyK3QgOSd4IsO8Nz8+fn4=",
    "YWRhOmNBbjRyeS9TM2NyK3QgOSd4IsO8Nz8-fn4",
];
/// Parts of these that nothing else has.
const TRACES: [&str; 10] = [
    "cAn4ry",
    "S3cr",
    "Y0FuNHJ5L1MzY3Ir",
    "jQW40cnkvUzNjcit",
    "NBbjRyeS9TM2NyK3",
    "%63%41%6",
    "u0063\\u0041",
    "u0063\\\\u0041",
    "u0063\\\\\\\\u0041",
    "9'x",
];

/// Writes down what it gets, and gives it back.
const NOTE: (&str, &str) = (
    "tools/builtin/note.yaml",
    "name: note\ndescription: Writes down.\npermission: auto\ncommand: [sh, -c, \"tee -a got.txt\"]\nparameters: [{name: text}]\n",
);
/// The same, later.
const LATER: (&str, &str) = (
    "tools/builtin/later.yaml",
    "name: later\ndescription: Writes down later.\npermission: auto\nmode: background\ncommand: [sh, -c, \"tee -a got.txt\"]\nparameters: [{name: text}]\n",
);
/// The same, later, if someone agrees.
#[cfg(unix)]
const LATER_ASKED: (&str, &str) = (
    "tools/builtin/later.yaml",
    "name: later\ndescription: Writes down later.\npermission: confirm\nmode: background\ncommand: [sh, -c, \"tee -a got.txt\"]\nparameters: [{name: text}]\n",
);
/// The same, if someone agrees.
const ASKED: (&str, &str) = (
    "tools/builtin/asked.yaml",
    "name: asked\ndescription: Writes down.\npermission: confirm\ncommand: [sh, -c, \"tee -a got.txt\"]\nparameters: [{name: text}]\n",
);

/// A project with a store beside it, in a shell that has the secret or not.
struct House(Scene);

impl House {
    fn new(script: impl Into<Script>, tools: &[(&str, &str)]) -> Self {
        let scene = tools.iter().fold(Scene::new(script), |scene, (file, text)| scene.with(file, text));
        let house = Self(scene);
        let trusted = house.helve(&["trust", "--yes"], None);
        assert!(trusted.status.success(), "{}", stderr(&trusted));
        house
    }

    fn store(&self) -> PathBuf {
        self.0.project.state.path().join("house.db")
    }

    /// The command, where the variable has this value or is not set.
    fn helve(&self, arguments: &[&str], secret: Option<&str>) -> Output {
        let store = format!("sqlite:{}", self.store().display());
        let mut command = self.0.command(&[arguments, &["--store", &store]].concat());
        command.envs(secret.map(|secret| (VARIABLE, secret)));
        command.output().expect("helve runs")
    }

    fn json(&self, arguments: &[&str], secret: Option<&str>) -> Value {
        let output = self.helve(&[arguments, &["--json"]].concat(), secret);
        let (text, said) = (stdout(&output), stderr(&output));
        assert!(TRACES.iter().all(|trace| !text.contains(trace) && !said.contains(trace)), "{arguments:?} shows it: {text}{said}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{said}"))
    }

    /// What tools got so far.
    fn got(&self) -> String {
        std::fs::read_to_string(self.0.project.folder.path().join("got.txt")).unwrap_or_default()
    }

    /// Looks for the secret in every byte that lasts.
    fn is_stored_nowhere(&self) {
        let mut seen = 0;
        let folders = [self.0.project.state.path().to_owned(), self.0.project.folder.path().to_owned()];
        let mut open: Vec<PathBuf> = folders.into();
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
            } else if path.file_name().is_none_or(|name| name != "got.txt") {
                let bytes = std::fs::read(&path).unwrap_or_default();
                seen += usize::from(bytes.windows(9).any(|window| window == b"[REDACTED"));
                for trace in TRACES.iter().chain(&SPELLINGS) {
                    let found = bytes.windows(trace.len()).position(|window| window == trace.as_bytes());
                    let around = found.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(80)..at + 40]).into_owned());
                    assert_eq!(around, None, "{trace} in {}", path.display());
                }
            }
        }
        assert!(seen > 0, "a mask stands where it stood");
    }
}

fn has_result(request: &Request) -> bool {
    request.turns.iter().any(|turn| matches!(turn, Turn::Result { .. }))
}

#[test]
fn what_people_and_models_say_is_stored_and_shown_without_secrets() {
    let said = SPELLINGS.join(" | ");
    let words = said.clone();
    let script = Script::from_fn(move |request: &Request| {
        let calls = [("note", json!({"text": words})), ("note", json!({SECRET: 1}))];
        if has_result(request) { Reply::text(&words) } else { Reply::calls(calls) }
    });
    let house = House::new(script, &[NOTE]);
    let ran = house.helve(&["run", "--approve", "yes", &said], Some(SECRET));
    assert!(ran.status.success(), "{}", stderr(&ran));
    assert!(TRACES.iter().all(|trace| !stdout(&ran).contains(trace)), "{}", stdout(&ran));
    assert!(format!("{:?}", house.0.server.requests().first()).contains("cAn4ry"), "the model is told what the user says");
    assert!(house.got().contains("cAn4ry"), "the tool gets what the model says: {}", house.got());
    house.is_stored_nowhere();

    // A shell that does not know the secret has nothing to mask with.
    let runs = house.json(&["runs"], None);
    let id = runs["runs"][0]["id"].as_str().expect("a run");
    assert!(house.json(&["runs", "show", id], None).to_string().contains("[REDACTED"));
    let shown = stdout(&house.helve(&["runs", "show", id], None));
    assert!(TRACES.iter().all(|trace| !shown.contains(trace)) && shown.contains("[REDACTED"), "{shown}");
}

/// Queues a call with the secret in it, and gives its id.
fn queued(house: &House, text: &str) -> String {
    let accepted = house.json(&["tools", "call", "later", "--yes", &format!("text={text}")], Some(SECRET));
    accepted["task_id"].as_str().unwrap_or_else(|| panic!("{accepted}")).to_owned()
}

#[test]
fn a_queued_call_gets_its_secret_back_or_is_interrupted() {
    let house = House::new(Reply::text("hi"), &[LATER]);
    let text = format!("Bearer {SECRET} and Basic dTpjQW40cnkvUzNjcit0IDkneCLDvDc/Pn5+");
    let id = queued(&house, &text);
    house.is_stored_nowhere();
    let shown = house.json(&["tasks", "show", &id], None);
    assert!(shown["arguments"]["text"].as_str().is_some_and(|text| text.contains("[REDACTED:env:HOUSE_TOKEN:")), "{shown}");
    house.json(&["tasks", "show", &id], Some(SECRET));

    for other in [None, Some("another-value-of-it")] {
        let id = queued(&house, &text);
        house.helve(&["worker", "--until-empty"], other);
        let task = house.json(&["tasks", "show", &id], other);
        let error = &task["outcome"]["error"];
        assert_eq!((&task["state"], &error["kind"]), (&json!("failed"), &json!("interrupted")), "{task}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains(VARIABLE)), "{error}");
        assert_eq!(house.got(), "", "it never runs with a placeholder");
    }

    let again = house.json(&["tasks", "retry", &id], None);
    let again = again["task"]["id"].as_str().unwrap_or_else(|| panic!("{again}"));
    house.helve(&["worker", "--until-empty"], Some(SECRET));
    let task = house.json(&["tasks", "show", again], None);
    assert_eq!(task["state"], "done", "{task}");
    let got: Value = serde_json::from_str(&house.got()).expect("the arguments");
    assert_eq!(got, json!({"text": text}));
    house.is_stored_nowhere();
}

/// Trying a call again is consent to this call, however its secret is spelled meanwhile, and to no other.
#[cfg(unix)]
#[test]
fn a_call_that_is_tried_again_keeps_its_secret_and_its_consent() {
    for (forged, state) in [(false, "done"), (true, "failed")] {
        let house = House::new(Reply::text("hi"), &[LATER_ASKED]);
        let first = queued(&house, SECRET);
        house.helve(&["worker", "--until-empty"], None);
        let task = house.json(&["tasks", "show", &first], None);
        assert_eq!(task["outcome"]["error"]["kind"], "interrupted", "{task}");
        let again = house.json(&["tasks", "retry", &first], None)["task"].clone();
        let placeholder = again["arguments"]["text"].as_str().unwrap_or_else(|| panic!("{again}"));
        assert!(placeholder.starts_with("[REDACTED:env:HOUSE_TOKEN:"), "{again}");
        let again = again["id"].as_str().expect("an id");
        if forged {
            let sql = format!(
                "UPDATE tasks SET body = json_set(body, '$.call.arguments.text', 'to ' || json_extract(body, '$.call.arguments.text')) WHERE id = '{again}'"
            );
            change(&house.store(), &sql);
        }
        house.helve(&["worker", "--until-empty"], Some(SECRET));
        let task = house.json(&["tasks", "show", again], None);
        assert_eq!(task["state"], state, "{task}");
        if forged {
            assert_eq!(task["outcome"]["error"]["kind"], "permission_denied", "{task}");
            assert_eq!(house.got(), "");
        } else {
            assert_eq!(serde_json::from_str::<Value>(&house.got()).ok(), Some(json!({"text": SECRET})), "once, with its secret");
        }
        house.is_stored_nowhere();
    }
}

#[test]
fn text_that_looks_like_a_placeholder_is_never_filled_in() {
    let house = House::new(Reply::text("hi"), &[LATER]);
    let first = queued(&house, SECRET);
    let task = house.json(&["tasks", "show", &first], None);
    let placeholder = task["arguments"]["text"].as_str().expect("a text").to_owned();
    house.json(&["tasks", "cancel", &first], None);
    queued(&house, &placeholder);
    house.helve(&["worker", "--until-empty"], Some(SECRET));
    assert_eq!(serde_json::from_str::<Value>(&house.got()).ok(), Some(json!({"text": placeholder})));
}

fn asks() -> Script {
    Script::from_fn(
        |request: &Request| {
            if has_result(request) { Reply::text("done") } else { Reply::calls([("asked", json!({"text": SECRET}))]) }
        },
    )
}

/// A run that waits for an answer, and the answer from a shell without the secret.
fn answered() -> (House, String) {
    let house = House::new(asks(), &[ASKED]);
    let waiting = house.helve(&["run", "use it"], Some(SECRET));
    assert_eq!(waiting.status.code(), Some(3), "{}", stderr(&waiting));
    house.is_stored_nowhere();
    let list = house.json(&["approvals"], None);
    let id = list["approvals"][0]["id"].as_str().unwrap_or_else(|| panic!("{list}"));
    assert!(list["approvals"][0]["arguments"]["text"].as_str().is_some_and(|text| text.starts_with("[REDACTED")), "{list}");
    for secret in [None, Some(SECRET)] {
        let shown = stdout(&house.helve(&["approvals", "show", id], secret));
        assert!(shown.contains("[REDACTED") && TRACES.iter().all(|trace| !shown.contains(trace)), "{shown}");
    }
    let approved = house.json(&["approvals", "approve", id], None);
    assert_eq!(approved["approval"]["state"], "approved", "{approved}");
    let run = list["approvals"][0]["run_id"].as_str().expect("a run").to_owned();
    (house, run)
}

#[test]
fn an_approved_call_runs_elsewhere_with_its_secret() {
    let (house, run) = answered();
    let resumed = house.helve(&["run", "--resume", &run], Some(SECRET));
    assert_eq!((resumed.status.code(), stdout(&resumed).as_str()), (Some(0), "done\n"), "{}", stderr(&resumed));
    let got: Value = serde_json::from_str(&house.got()).expect("the arguments, once");
    assert_eq!(got, json!({"text": SECRET}), "the grant is bound to what was asked, and that is what runs");
    house.is_stored_nowhere();
}

#[test]
fn an_approved_call_without_its_secret_is_interrupted() {
    let (house, run) = answered();
    let resumed = house.helve(&["run", "--resume", &run], None);
    assert_eq!((resumed.status.code(), stdout(&resumed).as_str()), (Some(0), "done\n"), "{}", stderr(&resumed));
    assert_eq!(house.got(), "");
    let told = house.0.told();
    assert!(told.iter().any(|text| text.contains("interrupted") && text.contains(VARIABLE)), "{told:?}");
    house.is_stored_nowhere();
}

#[test]
fn a_conversation_goes_on_with_its_secrets_where_they_are_known() {
    for (secret, known) in [(Some(SECRET), true), (None, false)] {
        let house = House::new(Script::from_fn(|_: &Request| Reply::text("hi")), &[]);
        let first = house.helve(&["run", &format!("my token is {SECRET}")], Some(SECRET));
        assert!(first.status.success(), "{}", stderr(&first));
        let store = format!("sqlite:{}", house.store().display());
        let mut chat = house.0.command(&["chat", "--continue", "--store", &store]);
        chat.envs(secret.map(|secret| (VARIABLE, secret)));
        let chat = Running::start(&mut chat, "and now?\n").finish();
        assert_eq!(chat.code, Some(0), "{}", chat.stderr);
        let told = format!("{:?}", house.0.server.requests().last().expect("a request").turns);
        assert!(told.contains("and now?"), "{told}");
        assert_eq!((told.contains("cAn4ry"), told.contains("[REDACTED:env:HOUSE_TOKEN")), (known, !known), "{told}");
        house.is_stored_nowhere();
    }
}
