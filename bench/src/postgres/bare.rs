//! The same jobs by bare statements: a table with the same columns and indexes, ready-made texts, and nothing to decide. There are no
//! transitions, no fences and no JSON.

use std::sync::Arc;

use helve::id::CallId;
use helve::store::Store;
use helve_store::PostgresStore;
use tokio_postgres::Client;

use super::{Race, WORKERS, connect};
use crate::queue::job;

const PUT: &str = "INSERT INTO bare_tasks (id, state, rank, due, definition, epoch, attempts, cancelling, heard, updated, body)
    SELECT id, 'queued', 1, 1, 'd', 0, 0, false, false, 1, $2 FROM unnest($1::text[]) AS new (id)";
const TAKE: &str = "WITH next AS MATERIALIZED (SELECT id FROM bare_tasks WHERE state = 'queued' AND due <= 2 ORDER BY rank, id LIMIT $1
    FOR UPDATE SKIP LOCKED) UPDATE bare_tasks AS task SET state = 'running', epoch = epoch + 1 FROM next WHERE task.id = next.id
    RETURNING task.id, task.body";
const END: &str = "UPDATE bare_tasks SET state = 'done', body = $2 WHERE id = ANY($1::text[])";

/// The bare loop.
pub(super) struct Bare {
    url: String,
    /// What a task is as text, so that both write as much.
    text: Arc<str>,
}

impl Bare {
    pub(super) async fn prepare(store: &PostgresStore, client: &Client, url: &str) -> Self {
        let table = "DROP TABLE IF EXISTS bare_tasks; CREATE TABLE bare_tasks (LIKE helve_tasks INCLUDING ALL)";
        client.batch_execute(table).await.expect("a table");
        store.accept(job()).await.expect("accepted");
        let row = client.query_one("SELECT body FROM helve_tasks LIMIT 1", &[]).await.expect("a task");
        Self { url: url.to_owned(), text: row.get::<_, String>(0).into() }
    }

    /// Workers with a connection each.
    pub(super) async fn workers(&self, race: &Arc<Race>) -> Vec<impl Future<Output = ()> + Send + 'static> {
        let mut workers = Vec::new();
        for _ in 0..WORKERS {
            workers.push(rounds(connect(&self.url).await, self.text.clone(), race.clone()));
        }
        workers
    }
}

async fn rounds(client: Client, text: Arc<str>, race: Arc<Race>) {
    let put = client.prepare(PUT).await.expect("a statement");
    let take = client.prepare(TAKE).await.expect("a statement");
    let end = client.prepare(END).await.expect("a statement");
    let limit = i64::try_from(race.jobs).expect("a few");
    for round in 0.. {
        if race.is_over(round) {
            return;
        }
        if round < race.rounds {
            let ids: Vec<String> = (0..race.jobs).map(|_| CallId::mint().to_string()).collect();
            client.execute(&put, &[&ids, &&*text]).await.expect("put");
        }
        let taken = client.query(&take, &[&limit]).await.expect("taken");
        if taken.is_empty() {
            continue;
        }
        let ids: Vec<&str> = taken.iter().map(|row| row.get(0)).collect();
        client.execute(&end, &[&ids, &&*text]).await.expect("ended");
        race.ended(taken.len());
    }
}
