//! Programs that change after they were trusted, or that look around in the process that started them.
