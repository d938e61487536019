//! Which process is which, across reuse of pids and across reboots.
