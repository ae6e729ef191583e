//! Folders that come from anywhere: nothing of them is read from the environment, sent, started, stored or believed before trust.
