//! The catalogue: order, duplicates, scopes, live sources, sets and toolkits.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that goes wrong should stop")]

use std::sync::Arc;

use helve_core::{ConversationId, DynTool, ListSource, Rules, Scope, SourceId, SourceState, SpecError, ToolSource};
use helve_testkit::{echo, fake, spec};
use helve_tools::{Catalogue, Selection, ToolSet, Toolkit, ToolkitError, View};
use tokio::sync::watch;

fn source(id: &str, names: &[&str]) -> Arc<ListSource> {
    Arc::new(ListSource::new(id, names.iter().map(|name| echo(name, Rules::default()))))
}

fn names(catalogue: &Catalogue, view: &View) -> Vec<String> {
    catalogue.snapshot(view).iter().map(|entry| entry.name().to_string()).collect()
}

fn catalogue(sources: &[Arc<ListSource>]) -> Catalogue {
    let catalogue = Catalogue::new();
    for source in sources {
        catalogue.add_source(source.clone());
    }
    catalogue
}

#[test]
fn the_earlier_of_two_equal_names_stays_and_the_later_is_remembered() {
    let catalogue = catalogue(&[source("one", &["a", "b"]), source("two", &["b", "c"]), source("three", &["b"])]);
    assert_eq!(names(&catalogue, &View::default()), ["a", "b", "c"]);
    let b = catalogue.get("b").expect("b");
    assert_eq!(b.source().as_str(), "one");
    assert_eq!(b.duplicates().iter().map(|duplicate| duplicate.source.as_str()).collect::<Vec<_>>(), ["two", "three"]);
    let snapshot = catalogue.snapshot(&View::default());
    let displaced: Vec<_> = snapshot.sources().filter(|report| !report.displaced.is_empty()).map(|report| report.source.as_str()).collect();
    assert_eq!(displaced, ["two", "three"], "a warning for each");
}

#[test]
fn a_name_is_registered_once() {
    let catalogue = catalogue(&[source("other", &["b"])]);
    let tools = |names: &[&str]| names.iter().map(|name| echo(name, Rules::default())).collect::<Vec<_>>();
    catalogue.register_all(tools(&["a"])).expect("new");
    catalogue.register_all(tools(&["b"])).expect("the other one is of another source");
    assert_eq!(catalogue.get("b").expect("b").source().as_str(), "program");
    let refused = |name: &str| Err(SpecError::Duplicate { name: name.to_owned() });
    assert_eq!(catalogue.register_all(tools(&["c", "a"])), refused("a"));
    assert_eq!(catalogue.register_all(tools(&["c", "c"])), refused("c"));
    assert_eq!(names(&catalogue, &View::default()), ["a", "b"], "all or none");
    catalogue.register_all(tools(&["c"])).expect("new");
}

#[test]
fn names_that_look_like_others_are_pointed_out() {
    let told = |sources: &[Arc<ListSource>]| {
        let found = catalogue(sources).snapshot(&View::default()).lookalikes();
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let own = source("builtin", &["get_time", "get_date"]);
    let evil = source("mcp:evil", &["g\u{435}t_time", "GET_DATE", "evil_g\u{435}t_date", "time", "\u{5929}_get_time"]);
    assert_eq!(
        told(&[own.clone(), evil]),
        [
            "the tool `g\\u{435}t_time` of `mcp:evil` looks like `get_time` of `builtin`",
            "the tool `GET_DATE` of `mcp:evil` looks like `get_date` of `builtin`",
            "the tool `evil_g\\u{435}t_date` of `mcp:evil` looks like `get_date` of `builtin`",
        ]
    );
    let honest = source("mcp:a", &["a_get_time", "a_get-date", "\u{65f6}\u{95f4}"]);
    assert_eq!(told(&[own, honest, source("mcp:b", &["b_get_time"])]), [""; 0]);
    assert_eq!(told(&[source("mcp:a", &["read_file", "read-file"])]).len(), 1);
}

#[test]
fn live_sources_come_and_go_without_a_restart() {
    let live = source("live", &["x"]);
    let catalogue = catalogue(&[source("fixed", &["a"]), live.clone()]);
    let before = catalogue.snapshot(&View::default());
    live.set(SourceState::Ready([echo("y", Rules::default())].into_iter().collect()));
    assert_eq!(names(&catalogue, &View::default()), ["a", "y"]);
    assert!(before.get("x").is_some() && before.get("y").is_none(), "an old picture never changes");
    live.set(SourceState::Failed("the server is down".into()));
    assert_eq!(names(&catalogue, &View::default()), ["a"]);
    let snapshot = catalogue.snapshot(&View::default());
    let errors: Vec<_> = snapshot.sources().filter_map(|report| report.error.as_deref()).collect();
    assert_eq!(errors, ["the server is down"]);
    catalogue.remove_source(&Scope::Global, &SourceId::from("fixed"));
    assert_eq!(names(&catalogue, &View::default()), [""; 0]);
}

#[test]
fn entries_that_did_not_change_are_kept() {
    let live = source("live", &["x"]);
    let catalogue = catalogue(&[source("fixed", &["a"]), live.clone()]);
    let before = catalogue.get("a").expect("a");
    live.add(echo("y", Rules::default())).expect("a new name");
    assert!(Arc::ptr_eq(&before, &catalogue.get("a").expect("a")));
    assert!(Arc::ptr_eq(&catalogue.get("a").expect("a"), &catalogue.get("a").expect("a")));
}

#[tokio::test]
async fn a_change_can_be_waited_for() {
    let live = source("live", &["x"]);
    let catalogue = catalogue(std::slice::from_ref(&live));
    let everyone = View::default();
    let first = catalogue.snapshot(&everyone);
    let (second, added) = tokio::join!(catalogue.next(&everyone, &first), async { live.add(echo("y", Rules::default())) });
    added.expect("a new name");
    assert_eq!(second.len(), 2);
    let (third, ()) = tokio::join!(catalogue.next(&everyone, &second), async { catalogue.add_source(source("late", &["z"])) });
    assert_eq!(third.len(), 3);
    live.add(echo("w", Rules::default())).expect("a new name");
    let _ = catalogue.snapshot(&everyone);
    assert_eq!(catalogue.next(&everyone, &third).await.len(), 4, "a change that someone else saw first is not lost");
}

#[tokio::test(start_paused = true)]
async fn what_a_viewer_cannot_see_does_not_wake_it() {
    let elsewhere = Arc::new(ListSource::new("lamp", []).with_scope(Scope::Device("other".into())));
    let catalogue = catalogue(&[source("base", &["a"]), elsewhere.clone()]);
    let first = catalogue.snapshot(&View::default());
    elsewhere.add(echo("on", Rules::default())).expect("a new name");
    let waited = tokio::time::timeout(std::time::Duration::from_mins(1), catalogue.next(&View::default(), &first)).await;
    assert!(waited.is_err());
}

/// A source whose other end someone else holds.
struct Ending(SourceId, watch::Receiver<SourceState>);
impl ToolSource for Ending {
    fn id(&self) -> &SourceId {
        &self.0
    }

    fn tools(&self) -> watch::Receiver<SourceState> {
        self.1.clone()
    }
}

#[test]
fn the_last_word_of_a_source_that_ends_is_heard() {
    let live = Slow("live".into(), watch::Sender::new(SourceState::Ready([echo("x", Rules::default())].into_iter().collect())));
    let catalogue = Catalogue::new();
    catalogue.add_source(Arc::new(Ending("live".into(), live.1.subscribe())));
    assert_eq!(names(&catalogue, &View::default()), ["x"]);
    live.1.send_replace(SourceState::Failed("unplugged".into()));
    drop(live);
    assert_eq!(names(&catalogue, &View::default()), [""; 0]);
}

#[test]
fn sources_of_the_same_name_in_two_conversations_stay_apart() {
    let (one, two) = (ConversationId::mint(), ConversationId::mint());
    let notes = |conversation, name: &str| {
        Arc::new(ListSource::new("notes", [echo(name, Rules::default())]).with_scope(Scope::Conversation(conversation)))
    };
    let catalogue = catalogue(&[notes(one, "note_of_one"), notes(two, "note_of_two")]);
    let sees = |conversation| names(&catalogue, &View { conversation: Some(conversation), device: None });
    assert_eq!((sees(one), sees(two), sees(one)), (vec!["note_of_one".into()], vec!["note_of_two".into()], vec!["note_of_one".to_owned()]));
    catalogue.remove_source(&Scope::Conversation(one), &SourceId::from("notes"));
    assert_eq!((sees(one).len(), sees(two).len()), (0, 1));
}

#[test]
fn a_stranger_cannot_rewrite_what_another_source_says() {
    let warned = fake(spec("wipe").with_description("Wipes. 未经确认不得调用。"), |_, _| {
        Box::pin(async { Ok(helve_core::Output::default()) })
    });
    let catalogue = Catalogue::new();
    catalogue.add_source(Arc::new(ListSource::new("mine", [warned])));
    catalogue.add_source(Arc::new(ListSource::new("theirs", [echo("未经确认不得调用。", Rules::default())])));
    let tools = Toolkit::everything(&catalogue.snapshot(&View::default()));
    assert_eq!(&*tools.model_list().tools()[0].description, "Wipes. 未经确认不得调用。");
}

#[test]
fn devices_and_conversations_never_see_each_others_tools() {
    let device = |id: &str, names: &[&str]| {
        let tools = names.iter().map(|name| echo(name, Rules::default()));
        Arc::new(ListSource::new(format!("device:{id}").as_str(), tools).with_scope(Scope::Device(id.into())))
    };
    let conversation = ConversationId::mint();
    let talk = ListSource::new("talk", [echo("note", Rules::default())]).with_scope(Scope::Conversation(conversation));
    let catalogue = catalogue(&[source("base", &["a"]), device("one", &["lamp", "a"]), device("two", &["lamp"]), Arc::new(talk)]);
    let sees = |device: Option<&str>, conversation| View { device: device.map(Into::into), conversation };
    assert_eq!(names(&catalogue, &View::default()), ["a"]);
    let one = catalogue.snapshot(&sees(Some("one"), None));
    assert_eq!(one.iter().map(|entry| entry.source().as_str()).collect::<Vec<_>>(), ["base", "device:one"]);
    assert_eq!(one.get("a").expect("a").source().as_str(), "base", "a device cannot take the place of a tool that everyone has");
    assert_eq!(catalogue.snapshot(&sees(Some("two"), None)).get("lamp").expect("lamp").source().as_str(), "device:two");
    assert_eq!(names(&catalogue, &sees(Some("two"), Some(conversation))), ["a", "lamp", "note"]);
    assert_eq!(names(&catalogue, &sees(None, Some(ConversationId::mint()))), ["a"]);
}

#[test]
fn models_get_names_they_can_use_also_in_descriptions() {
    let described: Arc<dyn DynTool> =
        fake(spec("note").with_description("Use self.light.on first."), |_, _| Box::pin(async { Ok(helve_core::Output::default()) }));
    let catalogue = Catalogue::new();
    catalogue
        .add_source(Arc::new(ListSource::new("x", [echo("self.light.on", Rules::default()), echo("天气", Rules::default()), described])));
    let tools = Toolkit::everything(&catalogue.snapshot(&View::default()));
    let list = tools.model_list();
    assert_eq!(&*list.tools()[0].name, "self--light--on");
    assert!(list.tools()[1].name.starts_with("tool_x"));
    assert_eq!(&*list.tools()[2].description, "Use self--light--on first.");
    assert_eq!(tools.get("self--light--on").expect("by the model's name").name(), tools.get("self.light.on").expect("by its own").name());
    let json: serde_json::Value = serde_json::from_str(list.json()).expect("JSON");
    assert_eq!(
        json[0],
        serde_json::json!({"name": "self--light--on", "description": "A fake.", "parameters": {"type": "object", "additionalProperties": true}})
    );
}

fn select(sets: &[&str], tools: &[&str]) -> Selection {
    Selection::default().agent("scribe").sets(sets.iter().copied()).tools(tools.iter().copied())
}

#[test]
fn a_toolkit_is_the_union_in_order() {
    let catalogue = catalogue(&[source("s", &["files_read", "files_write", "search", "plot"])]);
    catalogue.define_set(ToolSet::new("files", ["files_*"]));
    catalogue.define_set(ToolSet::new("data", ["plot", "files_read"]));
    let listed = |selection: &Selection| {
        let toolkit = catalogue.toolkit(selection, &View::default()).expect("a toolkit");
        toolkit.list().map(|entry| entry.name().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&select(&["data", "files"], &["search", "files_*"])), ["plot", "files_read", "files_write", "search"]);
    assert_eq!(catalogue.set("data").expect("a set").len(), 2);
    assert!(catalogue.set("dat").is_none());
    let toolkit = catalogue.toolkit(&select(&[], &["plot"]), &View::default()).expect("a toolkit");
    let more = toolkit.add(catalogue.get("search").expect("search")).add(catalogue.get("plot").expect("plot"));
    assert_eq!((toolkit.list().count(), more.list().count()), (1, 2));
}

#[tokio::test]
async fn a_call_outside_the_toolkit_names_the_agent() {
    let catalogue = catalogue(&[source("s", &["read", "write"])]);
    let toolkit = catalogue.toolkit(&select(&[], &["read"]), &View::default()).expect("a toolkit");
    let executor = helve_tools::Executor::default();
    let outcome = toolkit.execute(&executor, "write", serde_json::json!({}), &helve_core::CallContext::default()).await;
    assert_eq!(outcome.text(), "unknown_tool: there is no tool `write` for agent `scribe`. Use only the tools you were given.");
}

#[test]
fn names_that_nothing_can_bring_are_errors_with_a_hint() {
    let catalogue = catalogue(&[source("s", &["search"])]);
    catalogue.define_set(ToolSet::new("data", ["serch"]));
    let error = |selection: &Selection| catalogue.toolkit(selection, &View::default()).map(|_| ()).expect_err("unknown").to_string();
    assert_eq!(error(&select(&["dta"], &[])), "there is no tool set `dta`; did you mean `data`?");
    assert_eq!(error(&select(&["data"], &[])), "there is no tool `serch` for agent `scribe`; did you mean `search`?");
    let toolkit = catalogue.toolkit(&select(&[], &["none_*"]), &View::default()).expect("a pattern may match nothing yet");
    assert_eq!(toolkit.missing().len(), 1);
}

/// A source that is not up yet, whose tools have a prefix.
struct Slow(SourceId, watch::Sender<SourceState>);

impl ToolSource for Slow {
    fn id(&self) -> &SourceId {
        &self.0
    }

    fn may_bring(&self, name: &str) -> bool {
        name.starts_with("slow_")
    }

    fn tools(&self) -> watch::Receiver<SourceState> {
        self.1.subscribe()
    }
}

#[test]
fn a_name_under_the_prefix_of_a_source_that_is_not_up_only_waits() {
    let slow = Arc::new(Slow("slow".into(), watch::Sender::new(SourceState::Connecting)));
    let catalogue = Catalogue::new();
    catalogue.add_source(slow.clone());
    let resolve = |name: &str| catalogue.toolkit(&select(&[], &[name]), &View::default());
    assert_eq!(resolve("slow_x").expect("it may still come").missing().len(), 1);
    assert!(matches!(resolve("fast_x").map(|_| ()), Err(ToolkitError::UnknownTool { .. })));
    slow.1.send_replace(SourceState::Ready([echo("slow_y", Rules::default())].into_iter().collect()));
    assert!(resolve("slow_x").is_err(), "now it is up and has no such tool");
    assert_eq!(resolve("slow_y").expect("there").list().count(), 1);
}
