//! Requests, names and values that strangers send to Helve's doors.
