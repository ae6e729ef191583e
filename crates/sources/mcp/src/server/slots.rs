//! Slots that limit concurrent work, shared so that no client can take all of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Minimum number of slots for which the share of each client is limited.
const FEW: usize = 8;

/// The IP address of the client that sent a request. Known only if the server itself accepts connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct Address(pub IpAddr);

/// The owner of a slot.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum SlotOwner {
    /// One client at an address: the id of a legacy session, or the name of a modern client. One client may take a quarter of the slots,
    /// and more while more than half of them are free.
    Client(Option<IpAddr>, Arc<str>),
    /// All clients at one address, which may be a proxy. Together they may take three quarters of the slots.
    Address(IpAddr),
}

/// Why no slot is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CapacityError {
    /// All slots are taken.
    All,
    /// The owner has taken all slots of its share.
    Share,
}

/// A limited number of slots. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Slots {
    room: Arc<Semaphore>,
    count: usize,
    /// Maximum number of concurrent calls of one client.
    turns: usize,
    shares: Arc<Mutex<HashMap<SlotOwner, OwnerShare>>>,
}

/// The slots that an owner has taken.
#[derive(Debug)]
struct OwnerShare {
    count: usize,
    turns: Arc<Semaphore>,
}

impl Slots {
    pub fn new(count: usize, turns: usize) -> Self {
        let count = count.min(Semaphore::MAX_PERMITS);
        Self { room: Arc::new(Semaphore::new(count)), count, turns: turns.clamp(1, Semaphore::MAX_PERMITS), shares: Arc::default() }
    }

    /// Takes a slot for these owners. Fails if all slots are taken, or if an owner has used up its share.
    pub fn take(&self, owners: Vec<SlotOwner>) -> Result<Slot, CapacityError> {
        let mut shares = self.shares();
        if owners.iter().any(|owner| self.has_share(owner, shares.get(owner).map_or(0, |shares| shares.count))) {
            return Err(CapacityError::Share);
        }
        let permit = self.room.clone().try_acquire_owned().map_err(|_| CapacityError::All)?;
        let mut turns = None;
        for owner in &owners {
            let new = || OwnerShare { count: 0, turns: Arc::new(Semaphore::new(self.turns)) };
            let shares = shares.entry(owner.clone()).or_insert_with(new);
            shares.count += 1;
            turns = turns.or_else(|| Some(shares.turns.clone()));
        }
        drop(shares);
        Ok(Slot { slots: self.clone(), owners, turns, _permit: permit })
    }

    fn has_share(&self, owner: &SlotOwner, shares: usize) -> bool {
        let most = match owner {
            _ if self.count < FEW => return false,
            SlotOwner::Client(..) if self.room.available_permits() > self.count / 2 => return false,
            SlotOwner::Client(..) => self.count / 4,
            SlotOwner::Address(_) => self.count / 4 * 3,
        };
        shares >= most
    }

    /// Waits until all slots are free, and takes all of them forever.
    pub async fn close(&self) {
        if let Ok(all) = self.room.acquire_many(u32::try_from(self.count).unwrap_or(u32::MAX)).await {
            all.forget();
        }
    }

    fn shares(&self) -> MutexGuard<'_, HashMap<SlotOwner, OwnerShare>> {
        self.shares.lock()
    }
}

/// A taken slot. Dropping it releases the slot.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Slots,
    owners: Vec<SlotOwner>,
    turns: Option<Arc<Semaphore>>,
    _permit: OwnedSemaphorePermit,
}

impl Slot {
    /// Waits for a permit to run a call. The permits limit the concurrent calls of one client, so that they do not delay other clients.
    /// Returns `None` immediately if the slot has no owner.
    pub fn turn(&self) -> impl Future<Output = Option<OwnedSemaphorePermit>> + use<> {
        let turns = self.turns.clone();
        async move { turns?.acquire_owned().await.ok() }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut shares = self.slots.shares();
        for owner in &self.owners {
            if let Some(has) = shares.get_mut(owner) {
                has.count -= 1;
                if has.count == 0 {
                    shares.remove(owner);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn client(name: &str, last: u8) -> Vec<SlotOwner> {
        let address = IpAddr::from([127, 0, 0, last]);
        vec![SlotOwner::Client(Some(address), name.into()), SlotOwner::Address(address)]
    }

    fn take(slots: &Slots, name: &str, last: u8) -> Vec<Slot> {
        std::iter::from_fn(|| slots.take(client(name, last)).ok()).collect()
    }

    #[test]
    fn no_client_gets_all_slots() {
        let slots = Slots::new(16, 2);
        let greedy = take(&slots, "greedy", 1);
        assert_eq!(greedy.len(), 8, "more than a quarter, while half is free");
        let neighbour = take(&slots, "neighbour", 1);
        assert_eq!(neighbour.len(), 4, "a quarter, and three quarters for one address");
        let other = take(&slots, "other", 2);
        assert_eq!(other.len(), 4);
        assert_eq!(slots.take(client("last", 3)).map(|_| ()), Err(CapacityError::All));
        drop((greedy, neighbour));
        assert_eq!(take(&slots, "other", 2).len(), 4, "until half is taken");
        drop(other);
        assert!(slots.shares().is_empty());
    }

    #[test]
    fn the_turns_of_one_client_take_none_of_another() {
        let slots = Slots::new(16, 2);
        let (greedy, other) = (take(&slots, "greedy", 1), take(&slots, "other", 1));
        let turns: Vec<_> = greedy.iter().filter_map(|slot| slot.turn().now_or_never()).collect();
        assert_eq!(turns.len(), 2);
        assert!(other[0].turn().now_or_never().is_some_and(|turn| turn.is_some()));
        drop(turns);
        assert!(greedy[5].turn().now_or_never().is_some());
        assert!(slots.take(Vec::new()).is_ok_and(|slot| slot.turn().now_or_never().is_some()), "who has no name waits for nobody");
    }

    #[test]
    fn few_slots_are_not_shared() {
        let slots = Slots::new(2, 2);
        assert_eq!(take(&slots, "a", 1).len(), 2);
    }
}
