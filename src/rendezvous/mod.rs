//! How processes outside a run find it: the registry of runs and the handshake of attached actors.
