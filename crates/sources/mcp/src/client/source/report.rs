//! The state of a server, for people.

use crate::client::offer::Offer;
use crate::pin::Pins;

/// The state of a server, for people.
#[derive(Debug, Clone, Default)]
pub struct ServerReport {
    /// The name of the source.
    pub name: String,
    /// The command it runs, or its URL.
    pub place: String,
    /// Whether it is connected.
    pub connected: bool,
    /// Why it is not connected, if that is known.
    pub error: Option<String>,
    /// The protocol version.
    pub version: Option<String>,
    /// Whether a person must log in first.
    pub needs_login: bool,
    /// The server's own name and version.
    pub server: Option<String>,
    /// The server's instructions for models.
    pub instructions: Option<String>,
    /// The selected tools, and whether a person approved them.
    pub offers: Vec<Offer>,
    /// Problems with its lists.
    pub notes: Vec<String>,
}

impl ServerReport {
    /// Tools that are not used because they are not approved.
    pub fn withheld(&self) -> impl Iterator<Item = &Offer> {
        self.offers.iter().filter(|offer| !offer.pinned.is_same())
    }

    /// The pins that approve everything.
    #[must_use]
    pub fn pins(&self) -> Pins {
        let tools = self.offers.iter().map(|offer| (offer.name.clone(), offer.definition.clone())).collect();
        Pins { instructions: self.instructions.clone(), tools }
    }
}
