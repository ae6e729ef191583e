//! The guarded HTTP fetch that every edge uses: bounded in size, time and redirects.
