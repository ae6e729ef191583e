//! Places for what is worked on at the same time: how many there are, and that no client gets all of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// With fewer places than this, there is nothing to share.
const FEW: usize = 8;

/// The address that a request came from, where the server listens by itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Address(pub IpAddr);

/// Who holds places.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    /// One client at an address: a session of the older era, or in the newer one what it calls itself. It gets a quarter of the places;
    /// more while half of them are free.
    Client(Option<IpAddr>, Arc<str>),
    /// All clients at one address. They may be many, behind a proxy, and get three quarters.
    Address(IpAddr),
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// All are taken.
    All,
    /// The client has its part of them.
    Share,
}

/// Places.
#[derive(Debug, Clone)]
pub(super) struct Places {
    room: Arc<Semaphore>,
    count: usize,
    /// How many of one client may do something at the same time.
    turns: usize,
    held: Arc<Mutex<HashMap<Holder, Held>>>,
}

/// What a holder has.
#[derive(Debug)]
struct Held {
    count: usize,
    turns: Arc<Semaphore>,
}

impl Places {
    pub fn new(count: usize, turns: usize) -> Self {
        let count = count.min(Semaphore::MAX_PERMITS);
        Self { room: Arc::new(Semaphore::new(count)), count, turns: turns.clamp(1, Semaphore::MAX_PERMITS), held: Arc::default() }
    }

    /// Takes a place, for all of these.
    pub fn take(&self, holders: Vec<Holder>) -> Result<Place, Full> {
        let mut held = self.held();
        if holders.iter().any(|holder| self.has_share(holder, held.get(holder).map_or(0, |held| held.count))) {
            return Err(Full::Share);
        }
        let permit = self.room.clone().try_acquire_owned().map_err(|_| Full::All)?;
        let mut turns = None;
        for holder in &holders {
            let new = || Held { count: 0, turns: Arc::new(Semaphore::new(self.turns)) };
            let held = held.entry(holder.clone()).or_insert_with(new);
            held.count += 1;
            turns = turns.or_else(|| Some(held.turns.clone()));
        }
        drop(held);
        Ok(Place { places: self.clone(), holders, turns, _permit: permit })
    }

    fn has_share(&self, holder: &Holder, held: usize) -> bool {
        let most = match holder {
            _ if self.count < FEW => return false,
            Holder::Client(..) if self.room.available_permits() > self.count / 2 => return false,
            Holder::Client(..) => self.count / 4,
            Holder::Address(_) => self.count / 4 * 3,
        };
        held >= most
    }

    /// Waits until all places are free, and keeps them.
    pub async fn close(&self) {
        if let Ok(all) = self.room.acquire_many(u32::try_from(self.count).unwrap_or(u32::MAX)).await {
            all.forget();
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Holder, Held>> {
        self.held.lock()
    }
}

/// A place that is taken until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    holders: Vec<Holder>,
    turns: Option<Arc<Semaphore>>,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    /// Waits until it is the turn of this one among those of its client, so that others are not behind all of them. Where nobody shares,
    /// that is at once.
    pub fn turn(&self) -> impl Future<Output = Option<OwnedSemaphorePermit>> + use<> {
        let turns = self.turns.clone();
        async move { turns?.acquire_owned().await.ok() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.places.held();
        for holder in &self.holders {
            if let Some(has) = held.get_mut(holder) {
                has.count -= 1;
                if has.count == 0 {
                    held.remove(holder);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn client(name: &str, last: u8) -> Vec<Holder> {
        let address = IpAddr::from([127, 0, 0, last]);
        vec![Holder::Client(Some(address), name.into()), Holder::Address(address)]
    }

    fn take(places: &Places, name: &str, last: u8) -> Vec<Place> {
        std::iter::from_fn(|| places.take(client(name, last)).ok()).collect()
    }

    #[test]
    fn no_client_gets_all_places() {
        let places = Places::new(16, 2);
        let greedy = take(&places, "greedy", 1);
        assert_eq!(greedy.len(), 8, "more than a quarter, while half is free");
        let neighbour = take(&places, "neighbour", 1);
        assert_eq!(neighbour.len(), 4, "a quarter, and three quarters for one address");
        let other = take(&places, "other", 2);
        assert_eq!(other.len(), 4);
        assert_eq!(places.take(client("last", 3)).map(|_| ()), Err(Full::All));
        drop((greedy, neighbour));
        assert_eq!(take(&places, "other", 2).len(), 4, "until half is taken");
        drop(other);
        assert!(places.held().is_empty());
    }

    #[test]
    fn the_turns_of_one_client_take_none_of_another() {
        let places = Places::new(16, 2);
        let (greedy, other) = (take(&places, "greedy", 1), take(&places, "other", 1));
        let turns: Vec<_> = greedy.iter().filter_map(|place| place.turn().now_or_never()).collect();
        assert_eq!(turns.len(), 2);
        assert!(other[0].turn().now_or_never().is_some_and(|turn| turn.is_some()));
        drop(turns);
        assert!(greedy[5].turn().now_or_never().is_some());
        assert!(places.take(Vec::new()).is_ok_and(|place| place.turn().now_or_never().is_some()), "who has no name waits for nobody");
    }

    #[test]
    fn few_places_are_not_shared() {
        let places = Places::new(2, 2);
        assert_eq!(take(&places, "a", 1).len(), 2);
    }
}
