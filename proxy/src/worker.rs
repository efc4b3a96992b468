//! One worker thread: its sockets, snapshot cache and pools, lent out to the exchange.
