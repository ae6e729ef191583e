//! Clients of the newer era that listen for changes.

use helve_mcp::Change;
use helve_mcp::server::ServerOptions;
use serde_json::{Value, json};

use super::client::{House, modern, soon};

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

fn notifications(filter: &Value) -> Value {
    json!({"notifications": filter})
}

#[tokio::test]
async fn only_what_was_asked_for_is_told_and_all_of_it_is_marked() {
    let house = House::open(ServerOptions::default()).await;
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["test://a", "test://refused"]});
    let mut stream = house.modern("subscriptions/listen", notifications(&filter)).await;
    assert!(stream.is_stream());
    let accepted = stream.event().await.unwrap();
    assert_eq!(accepted["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(accepted["params"]["notifications"], json!({"toolsListChanged": true, "resourceSubscriptions": ["test://a"]}));
    assert_eq!(accepted["params"]["_meta"][SUBSCRIPTION], 1);
    for change in [Change::Prompts, Change::Resources, Change::Resource("test://b".to_owned()), Change::Tools] {
        house.stage.change(change);
    }
    house.stage.change(Change::Resource("test://a".to_owned()));
    let told = [stream.event().await.unwrap(), stream.event().await.unwrap()];
    assert_eq!(told[0]["method"], "notifications/tools/list_changed");
    assert_eq!((&told[1]["method"], &told[1]["params"]["uri"]), (&json!("notifications/resources/updated"), &json!("test://a")));
    assert!(told.iter().all(|event| event["params"]["_meta"][SUBSCRIPTION] == 1), "{told:?}");
    drop(stream);
    soon(house.stage.wait_for("resources/unsubscribe test://a")).await;
}

#[tokio::test]
async fn a_server_that_stops_says_so() {
    let house = House::open(ServerOptions::default()).await;
    let mut stream = house.modern("subscriptions/listen", notifications(&json!({}))).await;
    assert_eq!(stream.event().await.unwrap()["params"]["notifications"], json!({}));
    house.stop.cancel();
    let last = stream.event().await.unwrap();
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(1), &json!("complete")));
    assert_eq!(last["result"]["_meta"][SUBSCRIPTION], 1);
    assert_eq!(stream.event().await, None);
    soon(house.running).await.unwrap().unwrap();
}

#[tokio::test]
async fn who_cannot_listen_is_told_so() {
    let house = House::open(ServerOptions { max_listeners: 1, ..ServerOptions::default() }).await;
    let wrong = house.modern("subscriptions/listen", json!({})).await;
    assert_eq!((wrong.status, wrong.json().await["error"]["code"].as_i64()), (400, Some(-32602)));
    let (headers, message) = modern(4, "subscriptions/listen", notifications(&json!({})));
    let mut headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    headers.push(("accept", "application/json"));
    assert_eq!(house.post(&headers, &message).await.status, 406);
    let mut first = house.modern("subscriptions/listen", notifications(&json!({}))).await;
    assert!(first.event().await.is_some());
    assert_eq!(house.modern("subscriptions/listen", notifications(&json!({}))).await.status, 503);
}

#[tokio::test]
async fn who_missed_too_much_is_told_of_everything() {
    let house = House::open(ServerOptions { queue: 1, ..ServerOptions::default() }).await;
    let mut stream =
        house.modern("subscriptions/listen", notifications(&json!({"toolsListChanged": true, "promptsListChanged": true}))).await;
    assert!(stream.event().await.is_some());
    // More at once than anybody keeps; the task that tells has no chance to run in between.
    for _ in 0..100 {
        house.stage.change(Change::Resources);
    }
    let told = [stream.event().await.unwrap()["method"].take(), stream.event().await.unwrap()["method"].take()];
    assert_eq!(told, ["notifications/tools/list_changed", "notifications/prompts/list_changed"]);
}
