//! Tracks the open connections: their phases, their timeouts, and which one to close when there are too many.
//!
//! The server accepts connections before it checks a token, so a client that only connects must not be able to block others.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{self, Instant};
use tokio_util::sync::CancellationToken;

use super::framing::Head;

/// Timeout for the head of a request, measured from the start of the connection or from the first byte of the head.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Timeout for the next request on an idle connection.
const IDLE_TIME: Duration = Duration::from_mins(1);
/// Divisor of a client's share: a client with a quarter of all connections displaces one of its own waiting connections.
const SHARE: usize = 4;
/// Maximum number of connections that are checked to find a waiting one.
const LOOKS: usize = 64;

/// Returns the address that identifies a client before its token is known: the IPv4 address, or the /64 network of the IPv6 address.
pub(super) fn client(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address @ IpAddr::V4(_) => address,
    }
}

/// The open connections of a server.
#[derive(Debug)]
pub(super) struct Connections {
    max: usize,
    table: Mutex<Table>,
    /// Notified when a connection ends.
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
    /// The client's connections, oldest first, including some that have ended.
    queue: VecDeque<u64>,
}

/// The phase of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The head of a request is arriving.
    Head,
    /// The connection waits for the next request.
    Idle,
    /// The body of a request is arriving.
    Body,
    /// A request is running, or its response is being sent.
    TrackedBody,
}

impl Phase {
    fn time(self) -> Option<Duration> {
        match self {
            Self::Head => Some(HEAD_TIME),
            Self::Idle => Some(IDLE_TIME),
            // These phases have other timeouts.
            Self::Body | Self::TrackedBody => None,
        }
    }
}

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub client: IpAddr,
    state: Mutex<State>,
    /// The token that is cancelled when a new connection displaces this one.
    pub displaced: CancellationToken,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    since: Instant,
    /// The head of the current or the last request.
    head: Head,
    /// Whether more of the current request follows.
    has_more: bool,
}

impl Connections {
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max: max.max(1), table: Mutex::default(), changed: Notify::new() })
    }

    /// Adds a connection. If there are too many, displaces the oldest waiting connection of the client with the most connections. If no
    /// connection is waiting, waits until one ends.
    pub async fn enter(self: &Arc<Self>, client: IpAddr) -> ConnectionSlot {
        loop {
            let changed = self.changed.notified();
            if let Some(entered) = self.try_enter(client) {
                return entered;
            }
            // Polls, because connections start to wait without a notification.
            let _ = time::timeout(Duration::from_millis(10), changed).await;
        }
    }

    fn try_enter(self: &Arc<Self>, client: IpAddr) -> Option<ConnectionSlot> {
        let mut table = self.table();
        if table.clients.get(&client).is_some_and(|client| client.count >= (self.max / SHARE).max(1)) {
            table.displace(client);
        }
        if table.connections.len() >= self.max && !table.displace_any() {
            return None;
        }
        let (number, connection) = table.add(client);
        Some(ConnectionSlot { connections: self.clone(), number, connection })
    }

    /// Displaces a connection because another limit was reached, such as the number of open files.
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
        // Removes ended connections only now and then, because it takes time.
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

    /// Displaces a waiting connection, preferably of the client with the most connections. Returns whether there was one.
    fn displace_any(&mut self) -> bool {
        let mut clients: Vec<_> = self.clients.iter().map(|(address, client)| (client.count, *address)).collect();
        clients.sort_unstable_by(|a, b| b.cmp(a));
        clients.into_iter().any(|(_, address)| self.displace(address))
    }

    /// Displaces the oldest waiting connection of a client. Returns whether there was one.
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

    /// Records the receipt of bytes. `head` is the head of a request that ended in these bytes; `has_more` says whether more of the request
    /// follows.
    pub fn received(&self, head: Option<Head>, has_more: bool) {
        let mut state = self.state();
        state.head = head.unwrap_or(state.head);
        state.has_more = has_more;
        match state.phase {
            Phase::Idle => state.enter(Phase::Head),
            Phase::Body if !has_more => state.enter(Phase::TrackedBody),
            Phase::Head | Phase::Body | Phase::TrackedBody => {}
        }
    }

    /// Records that the head of a request is complete, and returns the head.
    pub fn begin(&self) -> Head {
        let mut state = self.state();
        let phase = if state.has_more { Phase::Body } else { Phase::TrackedBody };
        state.enter(phase);
        state.head
    }

    /// Records that the response starts, even if the request was not read completely.
    pub fn respond(&self) {
        self.state().enter(Phase::TrackedBody);
    }

    /// Records that the response has ended.
    pub fn rest(&self) {
        self.state().enter(Phase::Idle);
    }

    /// Waits until the current phase of the connection times out.
    pub async fn overdue(&self) {
        loop {
            let deadline = {
                let state = self.state();
                state.phase.time().map(|time| state.since + time)
            };
            match deadline {
                Some(deadline) if deadline <= Instant::now() => return,
                Some(deadline) => time::sleep_until(deadline).await,
                // The next phase lasts at least this long.
                None => time::sleep(HEAD_TIME).await,
            }
        }
    }

    /// Returns whether the connection waits for a request, or for the rest of one.
    fn is_waiting(&self) -> bool {
        self.state().phase != Phase::TrackedBody
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

/// An open connection in the table of connections. Dropping it removes the connection from the table.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    connections: Arc<Connections>,
    number: u64,
    pub connection: Arc<Connection>,
}

impl Drop for ConnectionSlot {
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

    fn alive(entered: &[ConnectionSlot]) -> Vec<bool> {
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
        // A connection with a running request stays, so a client can have more.
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
