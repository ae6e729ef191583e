//! Who is connected: what each connection is doing, how long it may take, and which one gives way when there are too many.
//!
//! All of this comes before the token is looked at, so nothing here may be held by whoever only connects.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::framing::Head;

/// How long the head of a request may take, from the connection or its first byte on.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a connection may wait for the next request.
const IDLE_TIME: Duration = Duration::from_mins(1);
/// From this part of all connections on, a client that connects once more gives up one that waits for a request.
const SHARE: usize = 4;
/// How many connections are looked at to find one that waits.
const LOOKS: usize = 64;

/// Who a client is as long as nobody knows its token: an address, or in IPv6 the network that one machine has to itself.
pub(super) fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address @ IpAddr::V4(_) => address,
    }
}

/// All connections.
#[derive(Debug)]
pub(super) struct Connections {
    max: usize,
    table: Mutex<Table>,
    /// Tells that there may be room.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    last: u64,
    connections: HashMap<u64, Arc<Connection>>,
    clients: HashMap<IpAddr, Client>,
}

#[derive(Debug, Default)]
struct Client {
    count: usize,
    /// Its connections, the oldest first, and some that are over.
    queue: VecDeque<u64>,
}

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A head is coming in.
    Head,
    /// Nothing is coming in.
    Idle,
    /// A body is coming in.
    Body,
    /// A request is worked on or answered.
    Served,
}

impl Phase {
    fn time(self) -> Option<Duration> {
        match self {
            Self::Head => Some(HEAD_TIME),
            Self::Idle => Some(IDLE_TIME),
            // Both have limits where they are read and written.
            Self::Body | Self::Served => None,
        }
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub client: IpAddr,
    state: Mutex<State>,
    /// Fires when it has to give way to another.
    pub displaced: CancellationToken,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    since: Instant,
    /// The head that came in last.
    head: Head,
    /// Whether its body is still coming in.
    has_more: bool,
}

impl Connections {
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max: max.max(1), table: Mutex::default(), changed: Notify::new() })
    }

    /// Finds a place for a connection. Where there is none, one that only waits gives way: the oldest of the client that has most
    /// connections. Where none waits, one must end first.
    pub async fn enter(self: &Arc<Self>, client: IpAddr) -> Entered {
        loop {
            let changed = self.changed.notified();
            if let Some(entered) = self.try_enter(client) {
                return entered;
            }
            // Most become idle without telling, so it is looked again.
            let _ = time::timeout(Duration::from_millis(10), changed).await;
        }
    }

    fn try_enter(self: &Arc<Self>, client: IpAddr) -> Option<Entered> {
        let mut table = self.table();
        if table.clients.get(&client).is_some_and(|client| client.count >= (self.max / SHARE).max(1)) {
            table.displace(client);
        }
        if table.connections.len() >= self.max && !table.displace_any() {
            return None;
        }
        let (number, connection) = table.add(client);
        Some(Entered { connections: self.clone(), number, connection })
    }

    /// Makes room where there are other limits than the own one, such as that of open files.
    pub fn make_room(&self) {
        self.table().displace_any();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

impl Table {
    fn add(&mut self, client: IpAddr) -> (u64, Arc<Connection>) {
        self.last += 1;
        let connection = Arc::new(Connection::new(client));
        self.connections.insert(self.last, connection.clone());
        let client = self.clients.entry(client).or_default();
        client.count += 1;
        client.queue.push_back(self.last);
        // What is over is forgotten now and then, not each time.
        if client.queue.len() > 2 * client.count + LOOKS {
            client.queue.retain(|number| self.connections.contains_key(number));
        }
        (self.last, connection)
    }

    fn remove(&mut self, number: u64) {
        let Some(connection) = self.connections.remove(&number) else { return };
        if let Some(client) = self.clients.get_mut(&connection.client) {
            client.count -= 1;
            if client.count == 0 {
                self.clients.remove(&connection.client);
            }
        }
    }

    /// Ends a connection that waits, of the client that has most; whether there was one.
    fn displace_any(&mut self) -> bool {
        let mut clients: Vec<_> = self.clients.iter().map(|(address, client)| (client.count, *address)).collect();
        clients.sort_unstable_by(|a, b| b.cmp(a));
        clients.into_iter().any(|(_, address)| self.displace(address))
    }

    /// Ends a connection of a client that waits, the oldest first; whether there was one.
    fn displace(&mut self, address: IpAddr) -> bool {
        let Some(client) = self.clients.get_mut(&address) else { return false };
        for _ in 0..client.queue.len().min(LOOKS) {
            let Some(number) = client.queue.pop_front() else { return false };
            let Some(connection) = self.connections.get(&number) else { continue };
            if connection.is_waiting() {
                connection.displaced.cancel();
                self.remove(number);
                return true;
            }
            client.queue.push_back(number);
        }
        false
    }
}

impl Connection {
    fn new(client: IpAddr) -> Self {
        let state = State { phase: Phase::Head, since: Instant::now(), head: Head::default(), has_more: false };
        Self { client, state: Mutex::new(state), displaced: CancellationToken::new() }
    }

    /// Bytes came in: the head that ended with them, if any, and whether the request has more.
    pub fn received(&self, head: Option<Head>, has_more: bool) {
        let mut state = self.state();
        state.head = head.unwrap_or(state.head);
        state.has_more = has_more;
        match state.phase {
            Phase::Idle => state.enter(Phase::Head),
            Phase::Body if !has_more => state.enter(Phase::Served),
            Phase::Head | Phase::Body | Phase::Served => {}
        }
    }

    /// The head of a request is whole: the head.
    pub fn begin(&self) -> Head {
        let mut state = self.state();
        let phase = if state.has_more { Phase::Body } else { Phase::Served };
        state.enter(phase);
        state.head
    }

    /// The response begins, whether or not all of the request was read.
    pub fn respond(&self) {
        self.state().enter(Phase::Served);
    }

    /// The response is over.
    pub fn rest(&self) {
        self.state().enter(Phase::Idle);
    }

    /// Waits until the connection has taken too long.
    pub async fn overdue(&self) {
        loop {
            let deadline = {
                let state = self.state();
                state.phase.time().map(|time| state.since + time)
            };
            match deadline {
                Some(deadline) if deadline <= Instant::now() => return,
                Some(deadline) => time::sleep_until(deadline).await,
                // What comes next has this much time at least.
                None => time::sleep(HEAD_TIME).await,
            }
        }
    }

    /// Whether it waits for a request, or for the rest of one.
    fn is_waiting(&self) -> bool {
        self.state().phase != Phase::Served
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    fn enter(&mut self, phase: Phase) {
        if self.phase != phase {
            self.phase = phase;
            self.since = Instant::now();
        }
    }
}

/// A connection that has its place until this is dropped.
#[derive(Debug)]
pub(super) struct Entered {
    connections: Arc<Connections>,
    number: u64,
    pub connection: Arc<Connection>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.connections.table().remove(self.number);
        self.connections.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    fn alive(entered: &[Entered]) -> Vec<bool> {
        entered.iter().map(|entered| !entered.connection.displaced.is_cancelled()).collect()
    }

    #[tokio::test]
    async fn the_oldest_that_waits_of_the_biggest_client_gives_way() {
        let connections = Connections::new(8);
        let mut entered = Vec::new();
        for last in [1, 1, 1, 2] {
            entered.push(connections.enter(address(last)).await);
        }
        assert_eq!(alive(&entered), [false, true, true, true], "a client with a quarter gives up its own");
        // What is served stays, so that a client can have more.
        entered[1].connection.begin();
        entered[2].connection.begin();
        for last in [1, 1, 1, 3, 3, 4] {
            entered.push(connections.enter(address(last)).await);
        }
        assert_eq!(alive(&entered), [false, true, true, true, false, false, true, true, true, true]);
        entered.push(connections.enter(address(5)).await);
        assert_eq!(connections.table().connections.len(), 8);
        entered.push(connections.enter(address(6)).await);
        assert!(!alive(&entered)[6], "of the biggest client, the one that waits");
        assert!(alive(&entered)[1] && alive(&entered)[2] && alive(&entered)[11]);
        drop(entered);
        let table = connections.table();
        assert!(table.connections.is_empty() && table.clients.is_empty());
    }

    #[tokio::test]
    async fn who_comes_and_goes_leaves_nothing() {
        let connections = Connections::new(4);
        let stays = connections.enter(address(1)).await;
        stays.connection.begin();
        for _ in 0..1_000 {
            let passing = connections.enter(address(1)).await;
            passing.connection.begin();
        }
        assert!(connections.table().clients[&address(1)].queue.len() < 3 * LOOKS);
    }

    #[tokio::test(start_paused = true)]
    async fn where_nobody_waits_there_is_no_room_until_somebody_does() {
        let connections = Connections::new(1);
        let first = connections.enter(address(1)).await;
        first.connection.begin();
        assert!(connections.try_enter(address(2)).is_none());
        first.connection.rest();
        let second = connections.enter(address(2)).await;
        assert!(first.connection.displaced.is_cancelled());
        drop(first);
        second.connection.begin();
        drop(second);
        assert!(connections.try_enter(address(3)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn heads_and_pauses_have_their_time_and_answers_have_not() {
        let taken = async |connection: &Connection| {
            let begin = Instant::now();
            time::timeout(Duration::from_hours(1), connection.overdue()).await.map(|()| begin.elapsed()).ok()
        };
        let fresh = Connection::new(address(1));
        assert_eq!(taken(&fresh).await, Some(HEAD_TIME), "who says nothing");
        let idle = Connection::new(address(1));
        idle.begin();
        idle.rest();
        assert_eq!(taken(&idle).await, Some(IDLE_TIME));
        idle.rest();
        idle.received(None, true);
        time::advance(HEAD_TIME / 2).await;
        idle.received(None, true);
        assert_eq!(taken(&idle).await, Some(HEAD_TIME / 2), "each byte more gives no time");
        idle.begin();
        assert_eq!(taken(&idle).await, None);
    }

    #[test]
    fn one_machine_is_one_client() {
        let client = |text: &str| client(text.parse().expect("an address"));
        assert_eq!(client("::ffff:10.0.0.1"), client("10.0.0.1"));
        assert_eq!(client("2001:db8:1:2:a::1"), client("2001:db8:1:2:b::2"));
        assert_ne!(client("2001:db8:1:2::1"), client("2001:db8:1:3::1"));
        assert_ne!(client("10.0.0.1"), client("10.0.0.2"));
    }
}
