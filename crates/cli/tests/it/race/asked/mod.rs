//! What is asked of a race: arguments, loads, manifests, workload files, gates.

mod arguments;
mod axes;
mod dry_run;
mod gate;
mod hash;
mod heads;
mod manifests;
mod many;
mod null;
mod own;
mod workload;
