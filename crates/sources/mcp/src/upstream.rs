//! One server that Helve is a client of: its connections, and which of its tools may be called.

mod sessions;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helve_core::Digest;
use helve_core::json::canonical;
use helve_mcp_wire::{CODES, Era, META, RpcError};
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value, json};
use tokio::sync::{broadcast, watch};

use self::sessions::Sessions;
use crate::asking::{ASKS, MAX_REQUESTS};
use crate::caller::{BackChannel, Downstream};
use crate::client::{Connection, Hello, How, Place, Trouble};
use crate::definition::McpDefinition;
use crate::era_store::EraStore;
use crate::parked::{Held, Parked, Step};
use crate::serve::Change;
use crate::watching::Watching;

/// How long a call waits for a server that is just being connected.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a server may ask back before its answer.
const MAX_ROUNDS: usize = 10;
/// How many changes wait for someone who looks after them.
const CHANGES: usize = 64;
/// Under which name the only question of a server of the older era is asked.
pub(crate) const ONLY: &str = "input";

/// One server.
pub(crate) struct Upstream {
    pub(crate) definition: McpDefinition,
    pub(crate) identity: Digest,
    place: Place,
    hello: Hello,
    main: watch::Sender<Option<Arc<Connection>>>,
    down: Mutex<Trouble>,
    sessions: Sessions,
    approved: RwLock<HashMap<String, Digest>>,
    changes: broadcast::Sender<Change>,
    parked: Arc<Parked>,
    watching: Watching,
    /// Whether the server has refused the older era.
    is_modern_only: AtomicBool,
    eras: Option<Arc<dyn EraStore>>,
}

impl Upstream {
    pub(crate) fn new(
        definition: McpDefinition,
        identity: Digest,
        place: Place,
        capabilities: Value,
        eras: Option<Arc<dyn EraStore>>,
    ) -> Self {
        Self {
            definition,
            identity,
            place,
            hello: Hello::helve(capabilities),
            main: watch::Sender::new(None),
            down: Mutex::new(not_connected()),
            sessions: Sessions::default(),
            approved: RwLock::default(),
            changes: broadcast::Sender::new(CHANGES),
            parked: Arc::default(),
            watching: Watching::default(),
            is_modern_only: AtomicBool::new(false),
            eras,
        }
    }

    /// Connects anew.
    pub(crate) async fn open(&self) -> Result<Connection, Trouble> {
        let known = self.eras.as_ref().and_then(|eras| eras.era(&self.identity)).filter(|era| *era == Era::Legacy);
        // One that did not know the question before is spared it, as some take it badly.
        let opened = match Connection::open(&self.place, &self.hello, known).await {
            Err(Trouble::Protocol(_) | Trouble::Refused(_) | Trouble::Late(_)) if known.is_some() => {
                Connection::open(&self.place, &self.hello, None).await
            }
            opened => opened,
        };
        if let (Ok(connection), Some(eras)) = (&opened, &self.eras)
            && Some(connection.era) != known
        {
            eras.remember(&self.identity, connection.era);
        }
        opened
    }

    /// Lets calls use a connection, or none for a reason.
    pub(crate) fn set(&self, connection: Result<Arc<Connection>, Trouble>) {
        let (connection, down) = match connection {
            Ok(connection) => (Some(connection), not_connected()),
            Err(why) => (None, why),
        };
        *self.down.lock() = down;
        self.main.send_replace(connection);
    }

    /// The connection that everyone shares, if it stands.
    pub(crate) fn now(&self) -> Option<Arc<Connection>> {
        self.main.borrow().clone()
    }

    /// The connection that everyone shares; waits a little for one that is just being made.
    async fn main(&self) -> Result<Arc<Connection>, Trouble> {
        if let Some(connection) = self.now().filter(|connection| connection.ended().is_none()) {
            return Ok(connection);
        }
        let mut main = self.main.subscribe();
        let standing = |connection: &Option<Arc<Connection>>| connection.as_ref().is_some_and(|connection| connection.ended().is_none());
        // A server that may not be started is not waited for.
        let decided = |connection: &Option<Arc<Connection>>| standing(connection) || self.is_refused();
        match tokio::time::timeout(PATIENCE, main.wait_for(decided)).await {
            Ok(Ok(connection)) => connection.clone().ok_or_else(|| self.unreachable()),
            _ => Err(self.unreachable()),
        }
    }

    fn is_refused(&self) -> bool {
        matches!(*self.down.lock(), Trouble::Changed(_))
    }

    fn unreachable(&self) -> Trouble {
        match &*self.down.lock() {
            known @ (Trouble::Changed(_) | Trouble::Unreachable(_)) => known.clone(),
            other => Trouble::Unreachable(other.to_string()),
        }
    }

    /// Ends everything: the server is not used any more.
    pub(crate) fn close(&self, why: &str) {
        let standing = self.now();
        self.approve(HashMap::new());
        self.set(Err(Trouble::Unreachable(why.to_owned())));
        self.sessions.clear();
        self.parked.clear();
        self.watching.stop();
        // Whoever still holds the connection finds it ended, and the last to let go closes it.
        if let Some(connection) = standing {
            connection.end(&Trouble::Gone(why.to_owned()));
        }
    }

    /// Which tools, with which definitions, may be called from now on.
    pub(crate) fn approve(&self, tools: HashMap<String, Digest>) {
        *self.approved.write() = tools;
    }

    /// Whether a tool may be called whose definition was this.
    pub(crate) fn is_approved(&self, tool: &str, definition: Digest) -> bool {
        self.approved.read().get(tool) == Some(&definition)
    }

    /// What changes on the server, from now on.
    pub(crate) fn changes(&self) -> &broadcast::Sender<Change> {
        &self.changes
    }

    /// Calls that hold while a person is asked.
    pub(crate) fn parked(&self) -> &Arc<Parked> {
        &self.parked
    }

    /// Resources that clients want to hear of.
    pub(crate) fn watching(&self) -> &Watching {
        &self.watching
    }

    /// How the server speaks; waits a little for one that is just being connected.
    pub(crate) async fn era(&self) -> Result<Era, Trouble> {
        self.main().await.map(|connection| connection.era)
    }

    /// Asks for Helve itself.
    pub(crate) async fn ask(&self, method: &str, params: &Map<String, Value>, how: &How) -> Result<Value, Trouble> {
        self.repeat_if_forgotten(|connection| async move {
            self.check_agreed(how)?;
            connection.request(method, params, how).await
        })
        .await
    }

    /// A call may have waited for a server that came back with other tools than those it left with.
    fn check_agreed(&self, how: &How) -> Result<(), Trouble> {
        match &how.agreed {
            Some((tool, definition)) if !self.is_approved(tool, *definition) => Err(Trouble::Unpinned),
            _ => Ok(()),
        }
    }

    /// A server that has forgotten the session did not look at the request, so it is sent once more.
    async fn repeat_if_forgotten<F>(&self, ask: impl Fn(Arc<Connection>) -> F) -> Result<Value, Trouble>
    where
        F: Future<Output = Result<Value, Trouble>>,
    {
        for last in [false, true] {
            let connection = self.main().await?;
            match ask(connection.clone()).await {
                Err(trouble) if trouble.ends_connection() => {
                    connection.end(&trouble);
                    if last || trouble != Trouble::Forgotten {
                        return Err(trouble);
                    }
                }
                answered => return answered,
            }
        }
        Err(Trouble::Forgotten)
    }

    /// Passes a request of a client on, in the era of the client where the server speaks it.
    pub(crate) async fn pass(
        self: &Arc<Self>,
        method: &str,
        mut params: Map<String, Value>,
        from: &Downstream,
        how: How,
    ) -> Result<Value, Trouble> {
        clear_meta(&mut params);
        let client = from.client.clone().unwrap_or_else(|| self.hello.client.clone());
        let how = How {
            channel: Some(Arc::new(Passing(from.clone()))),
            progress: from.progress_token.is_some(),
            hello: Some(Hello { client, capabilities: from.capabilities.clone() }),
            log_level: from.log_level.clone(),
            ..how
        };
        let Some(session) = from.session.as_ref().filter(|_| from.era == Era::Legacy) else {
            let holds = self.era().await? == Era::Legacy && from.capabilities.get("elicitation").is_some();
            return if holds { self.hold(method, params, how).await } else { self.ask(method, &params, &how).await };
        };
        for last in [false, true] {
            let connection = match self.session(session, from).await {
                // A server of the newer era alone: what it asks becomes requests to the client.
                Err(Trouble::Protocol(_)) => return self.ask_around(method, params, how, from).await,
                connection => connection?,
            };
            self.check_agreed(&how)?;
            let result = connection.request(method, &params, &how).await;
            match &result {
                Ok(_) => self.sessions.heard(session, method, &params),
                Err(trouble) if trouble.ends_connection() => self.sessions.lose(session, &connection),
                Err(_) => {}
            }
            // A server that has forgotten the session did not look at the request.
            if last || !matches!(result, Err(Trouble::Forgotten)) {
                return result;
            }
        }
        Err(Trouble::Forgotten)
    }

    /// Asks a server of the older era for a client of the newer one: a question ends the request for now, and the client makes it again
    /// with the answer.
    async fn hold(self: &Arc<Self>, method: &str, mut params: Map<String, Value>, how: How) -> Result<Value, Trouble> {
        let cancel = how.cancel.clone();
        self.check_agreed(&how)?;
        let (name, answers) = (params.remove("requestState"), params.remove("inputResponses"));
        params.remove("_meta");
        let belongs = bound(method, &params);
        let parked = name.as_ref().map(|name| self.parked.take(name.as_str().unwrap_or_default(), belongs));
        let held = match parked {
            None => Held::start(self, method, params, how),
            Some(Some((held, reply))) => {
                held.tells(how.channel);
                let answer = answers.as_ref().and_then(|answers| answers.get(ONLY)).cloned();
                // A client that left its answer out does not want to give one.
                let _ = reply.send(answer.unwrap_or_else(|| json!({"action": "cancel"})));
                held
            }
            Some(None) => {
                let message = "the request that this goes on with is over".to_owned();
                return Err(Trouble::Refused(RpcError { code: CODES.params, message, data: None }));
            }
        };
        match held.step(&cancel).await {
            Step::Over(result) => result,
            Step::Asks(held, ask) => {
                let request = json!({"method": "elicitation/create", "params": ask.params});
                let too_many = || Trouble::Unreachable("too many of its calls wait for an answer already".to_owned());
                let name = self.parked.put(held, ask.reply, belongs).ok_or_else(too_many)?;
                Ok(json!({"resultType": "input_required", "inputRequests": {ONLY: request}, "requestState": name}))
            }
        }
    }

    /// Asks a server of the newer era for a client of the older one: each question goes to the client as a request.
    async fn ask_around(&self, method: &str, mut params: Map<String, Value>, how: How, from: &Downstream) -> Result<Value, Trouble> {
        for _ in 0..MAX_ROUNDS {
            let result = self.ask(method, &params, &how).await?;
            if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
                return Ok(result);
            }
            let mut answers = Map::new();
            for (key, request) in result.get("inputRequests").and_then(Value::as_object).into_iter().flatten().take(MAX_REQUESTS) {
                let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
                if !ASKS.contains(&method) {
                    return Err(Trouble::Protocol("it asks for something that no client offers".to_owned()));
                }
                let params = request.get("params").cloned().unwrap_or_else(|| json!({}));
                let answer = tokio::select! {
                    answer = from.channel.ask(method, params) => answer.map_err(Trouble::Refused)?,
                    () = how.cancel.cancelled() => return Err(Trouble::Cancelled),
                };
                answers.insert(key.clone(), answer);
            }
            params.insert("inputResponses".to_owned(), Value::Object(answers));
            match result.get("requestState") {
                Some(state) => params.insert("requestState".to_owned(), state.clone()),
                None => params.remove("requestState"),
            };
        }
        Err(Trouble::Protocol(format!("it asked back {MAX_ROUNDS} times")))
    }
}

fn not_connected() -> Trouble {
    Trouble::Unreachable("it is not connected yet".to_owned())
}

/// What a request that was put aside belongs to: only the same one goes on with it.
pub(crate) fn bound(method: &str, params: &Map<String, Value>) -> Digest {
    Digest::of([method.as_bytes(), canonical(&Value::Object(params.clone())).as_bytes()])
}

/// What belongs to one hop of a request does not go along on the next.
fn clear_meta(params: &mut Map<String, Value>) {
    if let Some(Value::Object(meta)) = params.get_mut("_meta") {
        for key in [META.version, META.client, META.capabilities, META.log_level, META.progress] {
            meta.remove(key);
        }
        if meta.is_empty() {
            params.remove("_meta");
        }
    }
}

/// The way from a server through Helve to the client that asked.
struct Passing(Downstream);

impl BackChannel for Passing {
    fn notify(&self, method: &str, mut params: Value) {
        if method == "notifications/progress" {
            // The server knows the request by another name than the client does.
            let Some(token) = &self.0.progress_token else { return };
            params[META.progress] = token.clone();
        }
        self.0.channel.notify(method, params);
    }

    fn ask(&self, method: &str, params: Value) -> BoxFuture<'_, Result<Value, RpcError>> {
        let method = method.to_owned();
        Box::pin(async move { self.0.channel.ask(&method, params).await })
    }
}
