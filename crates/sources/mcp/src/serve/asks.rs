//! What clients of the older era were asked and have not answered yet.

use std::collections::HashMap;
use std::time::Duration;

use helve_mcp_wire::{CODES, Message, RequestId, RpcError};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time;
use tokio_util::sync::CancellationToken;

use super::hub::error;
use super::stream::Out;

/// Questions of one session at the same time.
const MAX_OPEN: usize = 64;
/// A person may have to think.
const PATIENCE: Duration = Duration::from_mins(10);

type Answer = Result<Value, RpcError>;

/// Questions of one session.
#[derive(Debug, Default)]
pub(super) struct Asks(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    last: i64,
    open: HashMap<i64, oneshot::Sender<Answer>>,
}

impl Asks {
    /// Sends a question, and waits for the answer, until the call that it belongs to is over.
    pub async fn ask(&self, out: &mpsc::Sender<Out>, method: &str, params: Value, over: &CancellationToken) -> Answer {
        let (question, answer) = self.open(out)?;
        let id = RequestId::Number(question.id);
        let request = Message::Request { id, method: method.to_owned(), params: Some(params) };
        let asked = async {
            let sent = out.send(Out::Note { text: request.write(), number: None }).await;
            sent.map_err(|_| error(CODES.internal, "The client cannot be asked: it does not read any more"))?;
            answer.await.unwrap_or_else(|_| Err(error(CODES.internal, "The question was forgotten")))
        };
        tokio::select! {
            biased;
            answer = asked => answer,
            () = over.cancelled() => Err(error(CODES.internal, "The call was over before the client answered")),
            () = time::sleep(PATIENCE) => Err(error(CODES.internal, "The client did not answer in time")),
        }
    }

    /// Takes an answer. One that nobody waits for is dropped.
    pub fn answer(&self, id: &RequestId, answer: Answer) {
        let RequestId::Number(id) = id else { return };
        if let Some(waiting) = self.table().open.remove(id) {
            let _ = waiting.send(answer);
        }
    }

    fn open<'a>(&'a self, out: &'a mpsc::Sender<Out>) -> Result<(Question<'a>, oneshot::Receiver<Answer>), RpcError> {
        let mut table = self.table();
        if table.open.len() >= MAX_OPEN {
            return Err(error(CODES.internal, "The client has too many questions to answer already"));
        }
        table.last += 1;
        let id = table.last;
        let (sender, receiver) = oneshot::channel();
        table.open.insert(id, sender);
        Ok((Question { asks: self, out, id }, receiver))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock()
    }
}

/// A question. When nobody waits for its answer any more, the client is told so.
struct Question<'a> {
    asks: &'a Asks,
    out: &'a mpsc::Sender<Out>,
    id: i64,
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        let open = self.asks.table().open.remove(&self.id);
        if open.is_some() {
            let params = json!({"requestId": self.id, "reason": "nobody waits for the answer any more"});
            let _ = self.out.try_send(Out::note("notifications/cancelled", params));
        }
    }
}
