//! OAuth 2.1 for servers that want to know on whose behalf Helve asks.
