//! Commands and shard maps, compared with redis-server, nutcracker and the shards of other clients.

mod commands;
mod live;
mod redis_sharding;
mod twemproxy;
