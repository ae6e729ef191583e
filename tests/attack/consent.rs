//! A call that waits in the queue runs only with trust or with a person's stored consent.
