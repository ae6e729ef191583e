//! A report on the state of a server, for people.

use crate::client::offer::Offer;
use crate::pin::Pins;

/// A report on the state of a server, for people.
#[derive(Debug, Clone, Default)]
pub struct ServerReport {
    /// The name of the server in its definition.
    pub name: String,
    /// The command that starts the server, or the server's URL.
    pub place: String,
    /// Whether the server is connected.
    pub connected: bool,
    /// Why the server is not connected, if known.
    pub error: Option<String>,
    /// The protocol version of the connection.
    pub version: Option<String>,
    /// Whether a person must log in to the server first.
    pub needs_login: bool,
    /// The name and version that the server states.
    pub server: Option<String>,
    /// The server's instructions for models.
    pub instructions: Option<String>,
    /// The tools that the definition selects, each with whether its definition is approved.
    pub offers: Vec<Offer>,
    /// Problems with the server's list of tools.
    pub notes: Vec<String>,
}

impl ServerReport {
    /// Returns the tools that are not used because their definition is not approved.
    pub fn withheld(&self) -> impl Iterator<Item = &Offer> {
        self.offers.iter().filter(|offer| !offer.pinned.is_same())
    }

    /// Returns the pins that approve the server's instructions and all of its tools.
    #[must_use]
    pub fn pins(&self) -> Pins {
        let tools = self.offers.iter().map(|offer| (offer.name.clone(), offer.definition.clone())).collect();
        Pins { instructions: self.instructions.clone(), tools }
    }
}
