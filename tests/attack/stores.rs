//! Store files and state folders that somebody else prepared.
