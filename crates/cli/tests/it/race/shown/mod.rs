//! What a race prints, draws, serves and stores.

mod drawn;
mod events;
mod live;
mod live_browser;
mod output;
mod replay;
mod results;
