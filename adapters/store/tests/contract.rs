//! The in-memory store keeps the contract of stores.

freehold_testkit::store_contract!(freehold_testkit::MemoryRig, without reopen, crash, fail, spoil, zone);
