//! Workloads and workload files: the scripts made of them, and the replies that they accept.

mod files;
mod http_files;
mod line_files;
mod line_scripts;
mod messages;
