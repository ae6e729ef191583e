//! `#[tools]` through the public API: methods that are tools share one value.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use helve_core::{CallContext, Caller, DynTool, ErrorKind, IntoTools, Output, Permission, ToolCall, ToolError, tools};
use serde_json::{Value, json};

/// Where notes are kept.
#[derive(Default)]
struct Notes {
    notes: Mutex<BTreeMap<String, String>>,
    longest: usize,
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Note {
    name: String,
    text: String,
}

#[tools(crate = helve_core)]
impl Notes {
    const SHOWN: usize = 2;

    /// Keeps a note.
    #[tool(permission = "confirm", validate = self.check)]
    async fn keep(
        &self,
        /// What it is called.
        name: String,
        #[default("nothing")] text: String,
        cx: &CallContext,
    ) -> helve_core::Result<usize> {
        let by = cx.caller().agent.as_deref().ok_or("who are you?")?;
        let mut notes = self.notes.lock().map_err(|error| error.to_string())?;
        notes.insert(name, format!("{text} ({by})"));
        Ok(notes.len())
    }

    /// Lists notes, on a thread.
    #[tool(name = "list-notes", title = "Notes", idempotent, output)]
    fn list(&self, #[default(Self::SHOWN)] most: usize) -> Result<Vec<Note>, ToolError> {
        let notes = self.notes.lock().map_err(|_| ToolError::failed("broken"))?;
        Ok(notes.iter().take(most).map(|(name, text)| Note { name: name.clone(), text: text.clone() }).collect())
    }

    /// Needs no value.
    #[helve_core::tool(validate = Self::is_short)]
    pub(crate) async fn shout(#[flatten] note: Note) -> String {
        note.text.to_uppercase()
    }

    /// Is not there.
    #[tool]
    #[cfg(false)]
    async fn absent(&self) {}

    fn check(&self, name: &str, _text: &str) -> Result<(), String> {
        if name.len() > self.longest { Err(format!("a name has at most {} letters", self.longest)) } else { Ok(()) }
    }

    fn is_short(note: &Note) -> Result<(), ToolError> {
        let denied = || ToolError::new(ErrorKind::PermissionDenied, "no long notes");
        if note.text.len() < 10 { Ok(()) } else { Err(denied()) }
    }
}

async fn run(tool: &Arc<dyn DynTool>, arguments: Value) -> Result<Output, ToolError> {
    let call = ToolCall::new(tool.spec().name().clone(), arguments);
    let caller = Caller::default().agent("smith");
    tool.validate(&call)?;
    tool.call(&call, &CallContext::new(caller)).await
}

#[tokio::test]
async fn methods_share_their_value() {
    let notes = Arc::new(Notes { longest: 5, ..Notes::default() });
    let tools = notes.clone().into_tools().expect("tools");
    let names: Vec<_> = tools.iter().map(|tool| tool.spec().name().to_string()).collect();
    assert_eq!(names, ["keep", "list-notes", "shout"]);
    assert_eq!(run(&tools[0], json!({"name": "a", "text": "b"})).await.expect("kept").data, json!(1));
    assert_eq!(run(&tools[0], json!({"name": "c"})).await.expect("kept").data, json!(2));
    let listed = run(&tools[1], json!({})).await.expect("a list").data;
    assert_eq!(listed, json!([{"name": "a", "text": "b (smith)"}, {"name": "c", "text": "nothing (smith)"}]));
    assert_eq!(notes.notes.lock().expect("not broken").len(), 2);
    assert_eq!(notes.list(1).expect("a list").len(), 1);
}

#[tokio::test]
async fn methods_have_the_specs_of_functions() {
    let tools = Notes::default().into_tools().expect("tools");
    let [keep, list, shout] = [0, 1, 2].map(|index| tools[index].spec());
    assert_eq!(&**keep.description(), "Keeps a note.");
    assert_eq!(keep.rules().permission, Permission::Confirm);
    assert_eq!(keep.origin().location.as_deref(), Some("tools_macro::Notes::keep"));
    assert_eq!(
        keep.input().value()["properties"],
        json!({"name": {"type": "string", "description": "What it is called."}, "text": {"type": "string", "default": "nothing"}})
    );
    assert_eq!(list.title(), Some("Notes"));
    assert_eq!(list.output().expect("a promise").value()["type"], "array");
    assert_eq!(list.input().value()["properties"]["most"]["default"], 2);
    assert_eq!(shout.input().value()["required"], json!(["name", "text"]));
}

#[tokio::test]
async fn arguments_are_refused_by_the_author() {
    let tools = Notes { longest: 1, ..Notes::default() }.into_tools().expect("tools");
    let error = run(&tools[0], json!({"name": "long"})).await.expect_err("refused");
    assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidParameters, "a name has at most 1 letters"));
    let error = run(&tools[2], json!({"name": "", "text": "far too long"})).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "an error that says what it is about keeps its kind");
    assert_eq!(run(&tools[2], json!({"name": "", "text": "hi"})).await.expect("a text").text, "HI");
}

struct Tally<T> {
    start: T,
    calls: AtomicU64,
}

#[tools(crate = helve_core)]
impl<T: Display + Send + Sync + 'static> Tally<T> {
    /// Counts calls.
    #[tool]
    async fn tally(&self) -> String {
        format!("{}{}", self.start, self.calls.fetch_add(1, Ordering::Relaxed))
    }
}

#[tokio::test]
async fn a_type_may_be_generic() {
    let tools = Tally { start: "#", calls: AtomicU64::new(7) }.into_tools().expect("tools");
    assert_eq!(run(&tools[0], json!({})).await.expect("a text").text, "#7");
    assert_eq!(run(&tools[0], json!({})).await.expect("a text").text, "#8");
}
