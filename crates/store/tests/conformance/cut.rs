//! A connection to PostgreSQL that is cut while answers are under way: what the server did is told as it is.

use std::sync::atomic::{AtomicI64, Ordering};

use helve_core::store::{AcceptResult, FinishResult};
use helve_store::PostgresStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::scene::*;
use crate::server::Schema;

/// How many answers still come through before connections are cut; nothing is cut while it is negative.
type Left = Arc<AtomicI64>;

/// Stands between a store and the server. Gives the address of the store's side.
async fn between(schema: &Schema, left: Left) -> String {
    let url = schema.url();
    let host = url.split(['@', '/']).nth(3).expect("postgres://user@host:port/name").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let here = listener.local_addr().expect("an address").to_string();
    let there = url.replacen(&host, &here, 1);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(&host).await.expect("the server");
            let (left, (from_client, to_client), (from_server, to_server)) = (left.clone(), client.into_split(), server.into_split());
            tokio::spawn(async move {
                tokio::select! {
                    () = copy(from_client, to_server, None) => {}
                    () = copy(from_server, to_client, Some(left)) => {}
                }
            });
        }
    });
    there
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, left: Option<Left>) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let cut = left.as_ref().is_some_and(|left| left.load(Ordering::SeqCst) >= 0 && left.fetch_sub(1, Ordering::SeqCst) <= 0);
        if cut || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

/// Tries something with a cut after so many answers, and says what the store says of it.
async fn with_cut<T>(left: &Left, answers: i64, work: impl Future<Output = T>) -> T {
    left.store(answers, Ordering::SeqCst);
    let said = work.await;
    left.store(-1, Ordering::SeqCst);
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_lost_answer_said_is_found_out() {
    let Some(schema) = Schema::new("what_a_lost_answer_said_is_found_out").await else { return };
    let left = Left::new(AtomicI64::new(-1));
    let store = PostgresStore::open(&between(&schema, left.clone()).await).await.expect("a store");
    let worker = process(&store).await;
    let mut refused = 0;
    for round in 0..16 {
        let answers = round % 4;
        // All statements are prepared, so that the answers are those of the work itself.
        accepted(&store, task("warm")).await;
        let warm = claim_one(&store, worker).await;
        finish(&store, &warm, TaskEnd::Over(good(&warm))).await;

        let new = task("a");
        if with_cut(&left, answers, store.accept(new.clone())).await.is_err() {
            refused += 1;
            assert_eq!(store.accept(new.clone()).await.expect("accepted"), AcceptResult::New, "what failed did not happen");
        }
        let wish = Claim { holder: worker, limit: 1, tools: None };
        let held = match with_cut(&left, answers, store.claim(wish)).await {
            Ok(mut tasks) => tasks.pop().expect("a task"),
            Err(_) => claim_one(&store, worker).await,
        };
        assert_eq!((held.id, held.attempts), (new.call.id, 1), "no process has a task that was not handed out");
        let ended = || vec![Finish { task: held.id, epoch: held.epoch, end: TaskEnd::Over(good(&held)) }];
        let finished = if let Ok(finished) = with_cut(&left, answers, store.finish(ended())).await {
            finished
        } else {
            refused += 1;
            store.finish(ended()).await.expect("recorded")
        };
        assert_eq!(finished, [FinishResult::Recorded], "what failed did not happen");
    }
    assert!(refused > 0, "some connections were cut before their commit");
}
