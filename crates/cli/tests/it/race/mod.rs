//! `regatta race` with contenders that behave badly, and when it is killed, interrupted or called with
//! invalid arguments; its loads, output, events and result directories, replays, and gates.

mod answers;
mod arguments;
mod axes;
mod backends;
mod container;
mod drawn;
mod dry_run;
mod events;
mod gate;
mod handed_over;
mod hash;
mod heads;
mod interrupted;
mod killed;
mod lies;
mod live;
mod live_browser;
mod manifests;
mod many;
mod null;
mod output;
mod own;
mod own_session;
mod processes;
mod replay;
mod results;
mod resumed;
mod running;
mod starts;
mod workload;
