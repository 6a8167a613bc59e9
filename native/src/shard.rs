//! One MemWAL shard.
